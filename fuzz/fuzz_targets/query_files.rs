//! Query files of each form, in pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::query_files(bytes));

//! Filter_path, on any reply.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::filter_paths(bytes));

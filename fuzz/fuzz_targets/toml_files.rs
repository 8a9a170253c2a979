//! Job files, matrices, lists of queries; variables in them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::toml_files(bytes));

//! Parameters of a search, in a URL or in JSON.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::search_parameters(bytes));

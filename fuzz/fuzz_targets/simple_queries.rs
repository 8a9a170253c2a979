//! The simple query language, in each of its types.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::simple_queries(bytes));

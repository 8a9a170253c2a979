//! SQL of the voter's database, its JSON API, and its log.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::sql(bytes));

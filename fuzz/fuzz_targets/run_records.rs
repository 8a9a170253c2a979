//! Run.json; written again, and shown in all ways.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::run_records(bytes));

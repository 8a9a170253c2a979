//! JSON that is scanned without a tree; serde_json finds the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::json_scans(bytes));

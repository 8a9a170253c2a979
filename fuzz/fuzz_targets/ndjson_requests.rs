//! Requests in NDJSON; serde_json reads the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::ndjson_requests(bytes));

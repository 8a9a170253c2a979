//! Paths and parameters of /document/v1.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::document_requests(bytes));

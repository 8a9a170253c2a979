//! Document ids and paths of /document/v1; written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::document_ids(bytes));

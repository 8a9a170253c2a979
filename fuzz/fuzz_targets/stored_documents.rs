//! Records of the document store; written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::stored_documents(bytes));

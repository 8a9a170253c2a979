//! Files of documents, plain or compressed.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::corpus_files(bytes));

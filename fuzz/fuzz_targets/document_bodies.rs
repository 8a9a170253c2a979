//! Bodies of puts and updates; the document is stored and read.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::document_bodies(bytes));

//! Schema files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_documents::fuzz::schema_file(bytes));

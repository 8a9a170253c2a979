//! Bodies of puts and updates.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_documents::fuzz::bodies(bytes));

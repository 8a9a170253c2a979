//! Files of other load tools, and the records that are made of them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::imports(bytes));

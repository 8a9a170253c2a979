//! Checks, classes and headers, and the replies that they judge.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::rules(bytes));

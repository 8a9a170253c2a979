//! Times, rates, limits, assertions, users; shown and read again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::flag_values(bytes));

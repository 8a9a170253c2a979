//! Scenario files, as command lines.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::scenario_files(bytes));

//! Encoded histograms; the hdrhistogram crate reads the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::histograms(bytes));

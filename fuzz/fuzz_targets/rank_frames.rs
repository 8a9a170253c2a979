//! Frames of the ranking benchmark, both sides, and Thrift replies; written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::rank_frames(bytes));

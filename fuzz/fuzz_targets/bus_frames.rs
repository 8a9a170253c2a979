//! Frames of the bus between processes, both sides, in pieces; written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::bus_frames(bytes));

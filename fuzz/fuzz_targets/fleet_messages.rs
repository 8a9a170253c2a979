//! Packets and messages between coordinator and agents; seconds are written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::fleet_messages(bytes));

//! Files of operations, in pieces, and replies to operations; written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::feed_operations(bytes));

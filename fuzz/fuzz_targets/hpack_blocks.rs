//! Header blocks of HTTP/2; another reader of HPACK reads the same fields.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::hpack_blocks(bytes));

//! Frames of a server of HTTP/2, in pieces; h2 reads the same replies.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::http2_frames(bytes));

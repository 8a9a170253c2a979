//! Replies of HTTP/1.1, in pieces; httparse and hyper read the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::http1_replies(bytes));

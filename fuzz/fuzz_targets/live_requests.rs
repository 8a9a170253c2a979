//! Requests to the live page; none is answered without the token.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::live_requests(bytes));

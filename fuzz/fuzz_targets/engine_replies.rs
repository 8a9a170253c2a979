//! Replies of search engines, and of receivers of OTLP.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::engine_replies(bytes));

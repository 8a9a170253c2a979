//! Continuation tokens, and the visit that resumes from one; written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::visit_tokens(bytes));

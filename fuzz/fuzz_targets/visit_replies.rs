//! Replies to visits, compressed or not, in pieces; states of visits.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::visit_replies(bytes));

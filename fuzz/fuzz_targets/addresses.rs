//! URLs of HTTP, PostgreSQL, VoltDB, OTLP; the http crate reads the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::addresses(bytes));

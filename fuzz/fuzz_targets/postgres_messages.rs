//! Messages of a PostgreSQL server, in pieces, with and without a login.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::postgres_messages(bytes));

//! Greetings of a NATS server, in pieces, for clients with TLS and without.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::bus_greetings(bytes));

//! Addresses of a bus; shown without the secret, and read again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::bus_addresses(bytes));

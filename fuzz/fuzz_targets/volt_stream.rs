//! Messages of a VoltDB server, in pieces, with and without a login.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::volt_stream(bytes));

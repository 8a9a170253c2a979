//! Calls, responses, tables and logins of VoltDB's protocol, both sides; written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::volt_messages(bytes));

//! Files of SQL statements and of VoltDB's calls.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::statement_files(bytes));

//! Rows as CSV, TSV and NDJSON, plain or compressed; the csv crate reads the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::row_files(bytes));

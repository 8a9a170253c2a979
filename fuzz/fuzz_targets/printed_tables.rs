//! Tables of search results, summaries of vespa-fbench, words of a shell.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::printed_tables(bytes));

//! Searches and counts of Elasticsearch.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::elastic_searches(bytes));

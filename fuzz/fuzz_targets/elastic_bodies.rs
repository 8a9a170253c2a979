//! Mappings, documents, bulks, settings and dates of Elasticsearch, and its log.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::elastic_bodies(bytes));

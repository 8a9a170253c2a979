//! Bodies in gzip and deflate; what is compressed comes back.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzzing::content_codings(bytes));

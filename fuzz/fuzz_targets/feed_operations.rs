//! Files of operations, as `plimsoll feed` reads them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = plimsoll_feed::fuzz_operations(bytes);
});

//! Document ids.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::vespa::DocumentId;

fuzz_target!(|text: &str| {
    if let Ok(id) = DocumentId::parse(text) {
        assert_eq!(id.as_str(), text);
        let _ = (id.location(), id.gid(), id.smallest_bucket());
    }
});

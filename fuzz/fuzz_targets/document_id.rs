//! Document ids.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::vespa::DocumentId;

fuzz_target!(|text: &str| {
    if let Ok(id) = DocumentId::parse(text) {
        // The text of an id is canonical: it reads as the same id.
        assert_eq!(DocumentId::parse(id.as_str()).as_ref(), Ok(&id));
        let _ = (id.location(), id.gid(), id.smallest_bucket());
    }
});

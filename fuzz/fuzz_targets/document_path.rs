//! Paths of /document/v1: what is understood is written back and understood again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::vespa::{DocumentId, DocumentPath, push_document_path};

fuzz_target!(|bytes: &[u8]| {
    let _ = DocumentPath::parse(bytes);
    let Some(id) = std::str::from_utf8(bytes).ok().and_then(|text| DocumentId::parse(text).ok())
    else {
        return;
    };
    let mut path = String::new();
    push_document_path(&mut path, &id);
    assert!(DocumentPath::parse(&path).is_ok(), "{path}");
});

//! Replies that hold the replies to several requests: Elasticsearch's `_msearch` (`responses`) and `_mget` (`docs`).
//!
//! Such a reply has status 200 whatever became of its parts.

use crate::json_scan::{Pointer, elements, members, unsigned};

/// Members that hold the replies.
const LISTS: [&str; 2] = ["responses", "docs"];
/// The least status that is a failure.
const FAILED: u64 = 400;

/// Conditions on every part of a reply.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    error: Pointer,
    status: Pointer,
    timed_out: Pointer,
    failed_shards: Pointer,
}

impl Parts {
    pub(super) fn new() -> Option<Self> {
        Some(Self {
            error: Pointer::parse("/error")?,
            status: Pointer::parse("/status")?,
            timed_out: Pointer::parse("/timed_out")?,
            failed_shards: Pointer::parse("/_shards/failed")?,
        })
    }

    /// Index and text of the first part that failed.
    pub(super) fn failed<'a>(&self, body: &'a [u8]) -> Option<(usize, &'a [u8])> {
        let mut lists = members(body)
            .filter(|(key, _)| LISTS.iter().any(|list| key[1..key.len() - 1] == *list.as_bytes()));
        lists.find_map(|(_, list)| elements(list).enumerate().find(|(_, part)| !self.is_fine(part)))
    }

    fn is_fine(&self, part: &[u8]) -> bool {
        let is = |pointer: &Pointer, value: &[u8]| pointer.find(part).is_none_or(|v| v == value);
        part.first() == Some(&b'{')
            && self.error.find(part).is_none()
            && self.status.find(part).and_then(unsigned).is_none_or(|status| status < FAILED)
            && is(&self.timed_out, b"false")
            && is(&self.failed_shards, b"0")
    }
}

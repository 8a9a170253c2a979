//! Keys of documents: in the order in which buckets are visited.
//!
//! A bucket is the set of documents whose locations share their low bits. With the bits reversed
//! these become the high ones, so that a bucket of any size is one range of keys, and the ranges
//! follow one another in the order in which Vespa visits.

use plimsoll_wire::vespa::{DocumentId, key as place};

/// The bytes before the id.
pub(crate) const LOCATION_BYTES: usize = 8;

/// The key of a document.
pub(crate) fn key(id: &DocumentId) -> Vec<u8> {
    let mut key = Vec::with_capacity(LOCATION_BYTES + id.as_str().len());
    key.extend_from_slice(&place(id.location()).to_be_bytes());
    key.extend_from_slice(id.as_str().as_bytes());
    key
}

/// The id that a key holds, and the place in the order of visits before it.
pub(crate) fn parts(key: &[u8]) -> Option<(u64, &str)> {
    let (location, id) = key.split_first_chunk::<LOCATION_BYTES>()?;
    Some((u64::from_be_bytes(*location), std::str::from_utf8(id).ok()?))
}

//! Positions of the present version of each document in the log.
//!
//! Ids are kept as hashes of 128 bits: two ids of one index with the same hash are as likely as a
//! fault of the memory that holds them. An entry takes about 50 to 100 bytes.

use super::log::Record;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

/// A document's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The position of the record in the log.
    pub(crate) at: u64,
    pub(crate) sequence: u64,
    pub(crate) version: u64,
    /// Bytes of the record.
    pub(crate) bytes: u32,
    /// The document is gone; its version goes on when it comes back.
    pub(crate) removed: bool,
}

impl Entry {
    /// The place of a record that begins at this position.
    pub(crate) fn of(at: u64, record: &Record<'_>) -> Self {
        Self {
            at,
            sequence: record.sequence,
            version: record.version,
            bytes: record.bytes(),
            removed: record.removed,
        }
    }

    fn live_bytes(self) -> u64 {
        if self.removed { 0 } else { u64::from(self.bytes) }
    }
}

/// A hasher for keys that are hashes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (chunk, _) = bytes.split_at(bytes.len().min(8));
        let mut whole = [0; 8];
        whole[..chunk.len()].copy_from_slice(chunk);
        self.0 ^= u64::from_le_bytes(whole);
    }

    fn write_u128(&mut self, number: u128) {
        self.0 ^= number as u64;
    }
}

type Map = HashMap<u128, Entry, BuildHasherDefault<AsIs>>;

/// The documents of a shard.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    entries: Map,
    /// Bytes of the records of documents that are there.
    live_bytes: u64,
}

/// The key of an id.
pub(crate) fn key(id: &str) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        id.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(1) << 64 | half(2)
}

impl Ids {
    pub(crate) fn get(&self, id: &str) -> Option<Entry> {
        self.by_key(key(id))
    }

    pub(crate) fn by_key(&self, key: u128) -> Option<Entry> {
        self.entries.get(&key).copied()
    }

    pub(crate) fn insert(&mut self, key: u128, entry: Entry) -> Option<Entry> {
        let old = self.entries.insert(key, entry);
        self.live_bytes += entry.live_bytes();
        self.live_bytes -= old.map_or(0, Entry::live_bytes);
        old
    }

    /// Bytes of the records of documents that are there.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }
}

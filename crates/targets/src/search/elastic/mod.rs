//! Elasticsearch's API beside Vespa's, on the same port: indices of several shards, documents,
//! searches. Replies and errors have the shape of version 7; `docs/elasticsearch.md` says what is
//! spoken and where the differences are.

mod api;
mod dialect;
mod document;
mod error;
mod index;
mod indices;
mod mapping;
mod names;
mod routing;
mod searching;
mod settings;
mod shard;
mod values;

pub(crate) use api::{handle, owns};

use super::fuzzy::FuzzyMode;
use super::scan::ScanQueue;
use super::store::Durability;
use index::Defaults;
use indices::Indices;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Scans that may wait; more are refused.
const SCAN_QUEUE: usize = 1000;
/// The name of the one node.
pub(crate) const NODE: &str = "plimsoll";
/// The version that clients are told.
pub(crate) const VERSION: &str = "7.10.2";

/// What the handlers of Elasticsearch's API share.
pub(crate) struct Elastic {
    pub(crate) indices: Indices,
    pub(crate) mode: FuzzyMode,
}

impl Elastic {
    /// Opens the indices under the data folder.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub(crate) fn open(
        data: &Path,
        durability: Durability,
        mode: FuzzyMode,
        scan_threads: usize,
    ) -> io::Result<Self> {
        let scans =
            (mode == FuzzyMode::Scan).then(|| Arc::new(ScanQueue::new(SCAN_QUEUE, scan_threads)));
        let indices = Indices::open(data.join("elastic"), Defaults { durability, scans })?;
        Ok(Self { indices, mode })
    }

    /// Ends the threads of all shards; everything acknowledged is on the disk then.
    pub(crate) fn stop(&self) {
        self.indices.stop();
    }
}

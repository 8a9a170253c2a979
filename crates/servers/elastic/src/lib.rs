//! A search server with Elasticsearch's API: indices of several shards, documents, searches. Replies and errors have
//! the format of version 7; `docs/elasticsearch.md` lists the supported features and the differences. It can share
//! a port with another API.
//!
//! ```no_run
//! use plimsoll_serving::stop::Stop;
//! use std::net::TcpListener;
//!
//! let stop = Stop::new()?;
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! plimsoll_elastic::run(listener, &plimsoll_elastic::ElasticConfig::new("data"), &stop)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod api;
mod bulk_room;
mod dialect;
mod document;
mod error;
pub mod fuzz;
mod index;
mod indices;
mod mapping;
mod memory;
mod names;
mod params;
mod routing;
mod searching;
mod settings;
mod shard;
mod state;
#[cfg(test)]
mod tests;
mod values;

use bulk_room::BulkRoom;
use index::Defaults;
use indices::Indices;
use memory::Replies;
use plimsoll_disk::Real;
use plimsoll_front::{Answering, Api, Call, DataError, Durability, FrontConfig, Pools};
pub use plimsoll_index::fuzzy::FuzzyMode;
use plimsoll_index::scan::ScanQueue;
use plimsoll_serving::stop::Stop;
use shard::COMPACT_FROM_BYTES;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

/// Scans that may wait; more are refused.
const SCAN_QUEUE: usize = 1000;
/// The name of the one node.
const NODE: &str = "plimsoll";
/// The version that clients see.
const VERSION: &str = "7.10.2";

/// Folder and limits of the server.
#[derive(Clone, Debug)]
pub struct ElasticConfig {
    /// The folder that holds the indices in a folder `elastic`; made when it is missing, kept across restarts.
    pub data_dir: PathBuf,
    /// Time of acknowledgement of a write.
    pub durability: Durability,
    /// Search for approximate words.
    pub fuzzy: FuzzyMode,
    /// Threads that share one scan of the text; 1 at least.
    pub scan_threads: usize,
    /// Members that the reply of `/` has besides its own, as a JSON object; empty without any.
    pub root: &'static str,
    /// Limits of its front.
    pub front: FrontConfig,
}

impl ElasticConfig {
    /// The usual settings: synchronised commits, words found as Lucene finds them, and those of the front.
    #[must_use]
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            durability: Durability::Sync,
            fuzzy: FuzzyMode::Index,
            scan_threads: 1,
            root: "",
            front: FrontConfig::default(),
        }
    }
}

/// Reason why the server could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data cannot be opened.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The system refused a socket operation or a thread.
    #[error("cannot serve: {0}")]
    System(#[from] io::Error),
}

/// Opens the data and serves on a bound listener until the stop is requested.
///
/// # Errors
/// When the data folder cannot be used, the system has no thread or socket to give, or something acknowledged is not
/// on the disk at the end.
pub fn run(listener: TcpListener, config: &ElasticConfig, stop: &Stop) -> Result<(), OpenError> {
    let pools = Pools::start(&config.front, 1)?;
    let elastic = Elastic::open(config, &pools)?;
    plimsoll_front::run(vec![listener], &config.front, &pools, vec![Arc::new(elastic)], stop)?;
    Ok(())
}

/// The open indices with the threads behind them.
pub struct Elastic {
    app: Arc<App>,
}

/// State that the handlers share.
struct App {
    indices: Indices,
    mode: FuzzyMode,
    root: &'static str,
    /// Threads for searches and for reads of documents.
    pools: Pools,
    /// Room for the lines of bulk requests.
    bulk_room: BulkRoom,
    /// Replies that are made now.
    replies: Arc<Replies>,
}

impl Elastic {
    /// Opens the indices under the data folder.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub fn open(config: &ElasticConfig, pools: &Pools) -> Result<Self, DataError> {
        DataError::make_folder(&config.data_dir)?;
        let scans = (config.fuzzy == FuzzyMode::Scan)
            .then(|| Arc::new(ScanQueue::new(SCAN_QUEUE, config.scan_threads)));
        let (disk, durability) = (Arc::new(Real), config.durability);
        let drafts = Arc::default();
        let defaults =
            Defaults { disk, durability, scans, compact_from: COMPACT_FROM_BYTES, drafts };
        let indices = Indices::open(config.data_dir.join("elastic"), defaults)
            .map_err(|error| DataError::data(&config.data_dir, error.to_string()))?;
        let (mode, root, pools) = (config.fuzzy, config.root, pools.clone());
        Ok(Self {
            app: Arc::new(App {
                indices,
                mode,
                root,
                pools,
                bulk_room: BulkRoom::default(),
                replies: Arc::default(),
            }),
        })
    }
}

impl Api for Elastic {
    fn owns(&self, path: &str) -> bool {
        api::owns(path)
    }

    fn answer<'a>(&'a self, call: Call<'a>) -> Answering<'a> {
        Box::pin(api::handle(&self.app, call))
    }

    /// Ends the threads of all shards; everything acknowledged is on the disk then.
    fn close(&self) -> io::Result<()> {
        self.app.indices.stop()
    }
}

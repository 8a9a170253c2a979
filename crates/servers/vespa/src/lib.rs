//! A search server that speaks Vespa's APIs, in one process, small enough to start in a test and real enough to be
//! measured.
//!
//! Documents live in a redb file, which is the truth; a tantivy index follows it. A write is
//! acknowledged once it is on the disk, is seen by `GET` at once, and can be found by searches
//! within the refresh interval plus the time of an index commit. `docs/search-target.md` tells
//! users the rest: the query language, the limits, and what survives which kind of crash.
//!
//! Clients come through containers: ports with limits and counters of their own, over one store.
//!
//! YQL and the simple query language end in a tree of `plimsoll_index::query`, which that crate plans and runs.
//!
//! ```no_run
//! use plimsoll_serving::stop::Stop;
//! use std::net::TcpListener;
//!
//! let stop = Stop::new()?;
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! plimsoll_vespa::run(vec![listener], plimsoll_vespa::VespaConfig::new("data"), &stop)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod benchmark_headers;
mod container;
mod document_api;
pub mod fuzz;
mod index;
mod mapping;
mod order_parameter;
mod query_type;
mod search_api;
mod search_reply;
mod search_request;
mod simple;
mod state_api;
mod store;
#[cfg(test)]
mod tests;
mod visit;
mod yql;

use benchmark_headers::HeaderCase;
use container::Container;
use index::{IndexError, Indexer};
use mapping::IndexSchema;
use plimsoll_disk::{Disk, Real};
pub use plimsoll_documents::schema::SchemaError;
use plimsoll_documents::schema::{DEFAULT_CLUSTER, Schemas};
use plimsoll_front::{
    Answering, Api, Call, DataError, Durability, FrontConfig, Kind, Pool, Pools, processors,
};
use plimsoll_index::lids::Lids;
use plimsoll_serving::STACK_BYTES;
use plimsoll_serving::stop::Stop;
pub use state_api::HANDLERS;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use store::{IndexMessage, Store, StoreError, WriterMessage};
use tantivy::IndexReader;
use tokio::sync::Semaphore;
use tokio::sync::watch;

/// Number of changes that may wait for the index before writes wait for it too.
const INDEX_QUEUE: usize = 8192;
/// Largest number of visits at a time.
const MAX_VISITS: usize = 128;
/// Writes of operations on selections that may wait besides those of clients.
const REWRITE_QUEUE: usize = 1024;

/// Folder of the server's data, and its limits.
#[derive(Clone, Debug)]
pub struct VespaConfig {
    /// The folder of the documents and the index; made when it is missing, kept across restarts.
    /// One server at a time can use it.
    pub data_dir: PathBuf,
    /// Schema files (`.sd`), one for each document type; without any, the built-in type `doc`.
    pub schemas: Vec<PathBuf>,
    /// The name of the content cluster, which requests and replies mention.
    pub cluster: String,
    /// The pause between two commits of the index, and so most of the time until a write can be
    /// found. A commit that takes long makes the pause longer: at least twice its time.
    pub refresh_interval: Duration,
    /// Time of acknowledgement of a write.
    pub durability: Durability,
    /// Document operations that each container hands to the store at a time.
    pub operations_under_way: usize,
    /// Document operations that may wait behind these; more are refused with status 429.
    pub max_throttled: usize,
    /// Bits of a document's location that name its bucket: `1 << bits` buckets, 1 to 32.
    pub distribution_bits: u8,
    /// Limits of its front.
    pub front: FrontConfig,
}

impl VespaConfig {
    /// The usual settings: 100 ms between index commits, 1024 operations in flight and 256 waiting
    /// behind them, synchronised commits, 256 buckets, and those of the front.
    #[must_use]
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            schemas: Vec::new(),
            cluster: DEFAULT_CLUSTER.to_owned(),
            refresh_interval: Duration::from_millis(100),
            durability: Durability::Sync,
            operations_under_way: 1024,
            max_throttled: 256,
            distribution_bits: 8,
            front: FrontConfig::default(),
        }
    }

    /// Document operations that a container accepts at a time.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.operations_under_way + self.max_throttled
    }
}

/// Reason why the server could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum VespaError {
    /// The data cannot be opened.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The folder is of an earlier version.
    #[error(
        "the documents in {path} were written by an earlier version of plimsoll, whose layout is not \
         read any more; take another folder with --data and feed them again"
    )]
    Former {
        /// The folder.
        path: PathBuf,
    },
    /// A schema file cannot be used.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The system refused a socket operation or a thread.
    #[error("cannot serve: {0}")]
    System(#[from] io::Error),
}

/// Opens the data and serves on bound listeners, one a container, until the stop is requested.
///
/// # Errors
/// When the data folder cannot be used, the system has no thread or socket to give, or something acknowledged is not
/// on the disk at the end.
pub fn run(
    listeners: Vec<TcpListener>,
    config: VespaConfig,
    stop: &Stop,
) -> Result<(), VespaError> {
    let front = FrontConfig { read_queue: config.operations(), ..config.front.clone() };
    let pools = Pools::start(&front, listeners.len())?;
    let vespa = Vespa::open(config, listeners.len(), &pools)?;
    plimsoll_front::run(listeners, &front, &pools, vec![Arc::new(vespa)], stop)?;
    Ok(())
}

/// State that the handlers share.
struct App {
    config: VespaConfig,
    schema: IndexSchema,
    store: Store,
    reader: IndexReader,
    lids: Lids,
    /// Threads for searches, and for reads of single documents.
    pools: Pools,
    /// Pool for the scans of visits.
    scans: Pool,
    /// Room for visits.
    visits: Arc<Semaphore>,
    header_case: HeaderCase,
    writes: SyncSender<WriterMessage>,
    index: SyncSender<IndexMessage>,
    searchable: watch::Receiver<u64>,
    stopping: AtomicBool,
    failure: Arc<Mutex<Option<String>>>,
}

impl App {
    fn begin_stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Reason why the index does not follow the store any more.
    fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until what was acknowledged can be found; gives the sequence number of the last write
    /// covered, or nothing when the index has stopped.
    async fn refreshed(&self) -> Option<u64> {
        let target = self.store.progress.committed.load(Ordering::Acquire);
        // When the queue is full, a commit is coming anyway.
        let _ = self.index.try_send(IndexMessage::Refresh);
        let mut searchable = self.searchable.clone();
        let covered = searchable.wait_for(|sequence| *sequence >= target).await.ok()?;
        Some(*covered)
    }
}

/// The open data with the threads behind it: whoever has one can say that the server is ready.
pub struct Vespa {
    app: Arc<App>,
    threads: Mutex<Option<Threads>>,
}

/// The threads that write.
struct Threads {
    writer: JoinHandle<Result<(), StoreError>>,
    indexer: JoinHandle<()>,
}

impl Vespa {
    /// Opens the data folder for this many containers; applies the writes that a crash left
    /// unindexed.
    ///
    /// # Errors
    /// When a schema or the data folder cannot be used, or the system has no thread to give.
    pub fn open(config: VespaConfig, containers: usize, pools: &Pools) -> Result<Self, VespaError> {
        let schemas = Arc::new(Schemas::read(&config.schemas, &config.cluster)?);
        let folder = config.data_dir.clone();
        DataError::make_folder(&folder)?;
        let data = |message| VespaError::Data(DataError::data(&folder, message));
        let (disk, file): (Arc<dyn Disk>, _) = (Arc::new(Real), folder.join("documents.redb"));
        let store = Store::open(&disk, &file, config.durability, Arc::clone(&schemas)).map_err(
            |error| match error {
                StoreError::Former => VespaError::Former { path: folder.clone() },
                error => data(error.to_string()),
            },
        )?;
        let indexer = Indexer::open(&folder.join("index"), &store, config.refresh_interval)
            .map_err(|error: IndexError| data(error.to_string()))?;
        let operations = containers.max(1) * config.operations();
        let scans = Pool::start("search-scan", processors(), MAX_VISITS * (visit::MAX_AHEAD + 1))?;
        let header_case =
            tokio::runtime::Builder::new_current_thread().build()?.block_on(HeaderCase::learn());
        let (writes, write_queue) = sync_channel(operations + REWRITE_QUEUE);
        let (index, index_queue) = sync_channel(INDEX_QUEUE);
        let failure = Arc::new(Mutex::new(None));
        let app = Arc::new(App {
            config,
            schema: IndexSchema::new(schemas),
            store: store.clone(),
            reader: indexer.reader(),
            lids: Lids::default(),
            pools: pools.clone(),
            scans,
            visits: Arc::new(Semaphore::new(MAX_VISITS)),
            header_case,
            writes,
            index: index.clone(),
            searchable: indexer.searchable(),
            stopping: AtomicBool::new(false),
            failure: Arc::clone(&failure),
        });
        let writer = std::thread::Builder::new()
            .name("search-writer".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || store.write_until_stopped(&write_queue, &index))?;
        let indexer =
            std::thread::Builder::new().name("search-index".to_owned()).spawn(move || {
                if let Err(error) = indexer.follow(&index_queue) {
                    let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                    *failure = Some(error.to_string());
                }
            })?;
        Ok(Self { app, threads: Mutex::new(Some(Threads { writer, indexer })) })
    }
}

impl Api for Vespa {
    fn owns(&self, path: &str) -> bool {
        matches!(path, "/search/" | "/search")
            || path.starts_with("/document/v1/")
            || state_api::owns(path)
    }

    fn answer<'a>(&'a self, call: Call<'a>) -> Answering<'a> {
        let container = Container::new(&self.app, call.port);
        let Call { method, path, query, headers, body, .. } = call;
        match path {
            "/search/" | "/search" => Box::pin(async move {
                let reply = search_api::handle(&container, method, query, headers, body).await;
                (Kind::Search, reply)
            }),
            _ if path.starts_with("/document/v1/") => Box::pin(async move {
                let request = document_api::Request { method, path, query, headers };
                document_api::handle(&container, &request, body).await
            }),
            _ => Box::pin(async move {
                (Kind::State, state_api::handle(&container, method, path, query).await)
            }),
        }
    }

    fn begin_stop(&self) {
        self.app.begin_stop();
    }

    /// Ends the threads in the order of the data: scans, writes, index.
    fn close(&self) -> io::Result<()> {
        self.app.scans.stop();
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Threads { writer, indexer }) = threads else { return Ok(()) };
        let _ = self.app.writes.send(WriterMessage::Stop);
        let panicked = |_| Err(StoreError::Failed("its thread has panicked".to_owned()));
        let written = writer.join().unwrap_or_else(panicked);
        let _ = self.app.index.send(IndexMessage::Stop);
        let _ = indexer.join();
        written.map_err(|error| {
            io::Error::other(format!(
                "acknowledged writes may be missing on the disk: {error}; check the disk of {}, \
                 start the server again and repeat the last writes",
                self.app.config.data_dir.display()
            ))
        })
    }
}

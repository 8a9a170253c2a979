//! `plimsoll serve search`: a search server in one process, small enough to start in a test and
//! real enough to be measured.
//!
//! Documents live in a redb file, which is the truth; a tantivy index follows it. A write is
//! acknowledged once it is on the disk, is seen by `GET` at once, and can be found by searches
//! within the refresh interval plus the time of an index commit. `docs/search-target.md` tells
//! users the rest: the query language, the limits, and what survives which kind of crash.
//!
//! Clients come through containers: ports with limits and counters of their own, over one store.
//!
//! A query language is a parser that produces a tree of `query`; `plan` checks the tree against
//! the schema, and `execute` runs it.

mod automaton;
mod benchmark_headers;
mod complement;
mod container;
mod document;
mod document_api;
mod elastic;
mod encoding;
mod execute;
mod field_set;
mod filter;
pub mod fuzz;
mod fuzzy;
mod http;
mod index;
mod lids;
mod mapping;
mod metrics;
mod near;
mod numbers;
mod operation;
mod order_parameter;
mod parameters;
mod plan;
mod pool;
mod query;
mod query_type;
mod range;
mod render;
mod scan;
mod schema;
mod search_api;
mod search_reply;
mod search_request;
mod selection;
mod similar;
mod simple;
mod sort;
mod standard;
mod state_api;
mod store;
#[cfg(test)]
mod tests;
mod text;
mod value;
mod visit;
mod vocabulary;
mod window;
mod words;
mod yql;

use benchmark_headers::HeaderCase;
use container::Container;
pub use fuzzy::FuzzyMode;
use index::{IndexError, IndexMessage, Indexer};
use lids::Lids;
use mapping::IndexSchema;
use plimsoll_serving::stop::Stop;
use pool::{Pool, STACK_BYTES};
use schema::Schemas;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
pub use store::Durability;
use store::{Store, StoreError, WriterMessage};
use tantivy::IndexReader;
use tokio::sync::Semaphore;
use tokio::sync::watch;

pub use schema::SchemaError;

/// How many changes may wait for the index before writes wait for it too.
const INDEX_QUEUE: usize = 8192;
/// Visits that may be under way at a time.
const MAX_VISITS: usize = 128;
/// Writes of operations on selections that may wait besides those of clients.
const REWRITE_QUEUE: usize = 1024;
/// How long tasks may go on after the connections were closed.
const RUNTIME_STOP: Duration = Duration::from_millis(100);

/// Where the server keeps its data and how much it may take.
#[derive(Clone, Debug)]
pub struct SearchConfig {
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
    /// Threads that run queries; 0 is one for each processor.
    pub query_threads: usize,
    /// Queries that may wait for a thread; more are refused with status 503.
    pub query_queue: usize,
    /// When a write is acknowledged.
    pub durability: Durability,
    /// Document operations that each container hands to the store at a time.
    pub operations_under_way: usize,
    /// Document operations that may wait behind these; more are refused with status 429.
    pub max_throttled: usize,
    /// Bits of a document's location that name its bucket: `1 << bits` buckets, 1 to 32.
    pub distribution_bits: u8,
    /// How long a client may take nothing of a reply before it is cut off.
    pub write_timeout: Duration,
    /// Threads that read requests and write replies; 0 is one for each processor, two at most.
    pub io_threads: usize,
    /// Connections of a container open at a time; further ones wait to be accepted.
    pub max_connections: usize,
    /// How approximate words of Elasticsearch's queries are found.
    pub fuzzy: FuzzyMode,
    /// Threads that share one scan of the text; 1 at least.
    pub scan_threads: usize,
}

impl SearchConfig {
    /// The usual settings: 100 ms between index commits, 256 waiting queries, 1024 operations under
    /// way and 256 waiting behind them, synchronised commits, 256 buckets and 10,000 connections.
    #[must_use]
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            schemas: Vec::new(),
            cluster: schema::DEFAULT_CLUSTER.to_owned(),
            refresh_interval: Duration::from_millis(100),
            query_threads: 0,
            query_queue: 256,
            durability: Durability::Sync,
            operations_under_way: 1024,
            max_throttled: 256,
            distribution_bits: 8,
            write_timeout: Duration::from_secs(120),
            io_threads: 0,
            max_connections: 10_000,
            fuzzy: FuzzyMode::Index,
            scan_threads: 1,
        }
    }
}

/// Why the server could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The data folder cannot be used.
    #[error("cannot use the data folder {path}: {error}; choose another one with --data")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The documents or the index cannot be read or written.
    #[error("cannot open the documents in {path}: {message}; is another server using the folder?")]
    Data {
        /// The folder.
        path: PathBuf,
        /// What went wrong.
        message: String,
    },
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

/// Opens the data and serves on a bound listener until the stop is requested.
///
/// # Errors
/// When the data folder cannot be used, or the system has no thread or socket to give.
pub fn run(listener: TcpListener, config: SearchConfig, stop: Stop) -> Result<(), SearchError> {
    Server::open(config, 1)?.serve(vec![listener], &stop)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What the handlers share.
struct App {
    config: SearchConfig,
    schema: IndexSchema,
    store: Store,
    /// What is reached by Elasticsearch's API.
    elastic: elastic::Elastic,
    reader: IndexReader,
    lids: Lids,
    /// Where searches run.
    pool: Pool,
    /// Where single documents are read.
    reads: Pool,
    /// Where visits scan.
    scans: Pool,
    /// Room for visits.
    visits: Arc<Semaphore>,
    /// What request bodies may take in memory.
    body_budget: Arc<Semaphore>,
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

    /// Why the index does not follow the store any more.
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
pub struct Server {
    app: Arc<App>,
    writer: JoinHandle<()>,
    indexer: JoinHandle<()>,
}

impl Server {
    /// Opens the data folder for so many containers; catches up with what was written before a
    /// crash.
    ///
    /// # Errors
    /// When a schema or the data folder cannot be used, or the system has no thread to give.
    pub fn open(config: SearchConfig, containers: usize) -> Result<Self, SearchError> {
        let schemas = Arc::new(Schemas::read(&config.schemas, &config.cluster)?);
        let folder = config.data_dir.clone();
        std::fs::create_dir_all(&folder)
            .map_err(|error| SearchError::Folder { path: folder.clone(), error })?;
        let data = |message: String| SearchError::Data { path: folder.clone(), message };
        let store =
            Store::open(&folder.join("documents.redb"), config.durability, Arc::clone(&schemas))
                .map_err(|error| match error {
                    StoreError::Former => SearchError::Former { path: folder.clone() },
                    error => data(error.to_string()),
                })?;
        let elastic =
            elastic::Elastic::open(&folder, config.durability, config.fuzzy, config.scan_threads)
                .map_err(|error| data(error.to_string()))?;
        let indexer = Indexer::open(&folder.join("index"), &store, config.refresh_interval)
            .map_err(|error: IndexError| data(error.to_string()))?;
        let threads = match config.query_threads {
            0 => processors(),
            threads => threads,
        };
        let pool = Pool::start("search-query", threads, config.query_queue)?;
        let containers = containers.max(1);
        let operations = containers * (config.operations_under_way + config.max_throttled);
        let reads = Pool::start("search-read", processors(), operations)?;
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
            elastic,
            reader: indexer.reader(),
            lids: Lids::default(),
            pool,
            reads,
            scans,
            visits: Arc::new(Semaphore::new(MAX_VISITS)),
            body_budget: http::budget(),
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
        Ok(Self { app, writer, indexer })
    }

    /// Serves on bound listeners, one a container, until the stop is requested.
    ///
    /// Returns within about a second of the request to stop, with everything acknowledged on the disk
    /// and in the index.
    ///
    /// # Errors
    /// When the system has no thread or socket to give.
    pub fn serve(self, listeners: Vec<TcpListener>, stop: &Stop) -> Result<(), SearchError> {
        let threads = match self.app.config.io_threads {
            0 => processors().min(2),
            threads => threads,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("search-io")
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()?;
        let served = runtime.block_on(async {
            let container = |number| Container::new(Arc::clone(&self.app), number);
            let numbered = listeners.into_iter().enumerate();
            let containers = numbered.map(|(number, listener)| (listener, container(number)));
            http::serve(containers.collect(), stop).await
        });
        runtime.shutdown_timeout(RUNTIME_STOP);
        self.close();
        Ok(served?)
    }

    /// Ends the threads in the order of the data: queries, writes, index.
    fn close(self) {
        self.app.begin_stop();
        self.app.pool.stop();
        self.app.reads.stop();
        self.app.scans.stop();
        self.app.elastic.stop();
        let _ = self.app.writes.send(WriterMessage::Stop);
        let _ = self.writer.join();
        let _ = self.app.index.send(IndexMessage::Stop);
        let _ = self.indexer.join();
    }
}

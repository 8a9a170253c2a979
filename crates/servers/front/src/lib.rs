//! The HTTP front of the search servers. Ports accept connections in HTTP/1.1 and HTTP/2; each request goes to the [`Api`]
//! that owns its path. Bodies are read within a budget, replies are whole or streamed, queries and reads run in pools
//! with queues that have an end, and every port counts what it answers.
//!
//! It is not the loop of `plimsoll_serving::http`: that one answers from the thread that reads, drops bodies, and knows
//! neither HTTP/2 nor replies that are sent while they are made.
//!
//! ```
//! use plimsoll_front::{Durability, json};
//!
//! let reply = json(hyper::StatusCode::OK, "application/json", b"{}".to_vec());
//! assert_eq!(reply.status(), 200);
//! assert_eq!(Durability::default(), Durability::Sync);
//! ```

mod arriving;
mod connections;
pub mod gzip;
pub mod metrics;
mod parsed;
mod pool;
mod port;
mod reply;
mod request_body;
mod untaken;

pub use connections::{Served, reads, serve};
pub use metrics::Kind;
pub use parsed::{NoRoom, READ_BYTES_MAX, indexed_bytes, tree_bytes};
pub use pool::{Pool, QueueFull};
pub use port::{Place, Port};
pub use reply::{Gone, PieceSender, Reply, ReplyBody, json, mark_gzip, reply, stream};
pub use request_body::{Body, BodyError, Held, WholeBody};

use hyper::Method;
use hyper::header::HeaderMap;
use plimsoll_core::system_error::words;
use plimsoll_disk::{Real, durable};
use plimsoll_serving::STACK_BYTES;
use plimsoll_serving::http::raise_descriptor_limit;
use plimsoll_serving::stop::Stop;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Grace period of tasks after the connections were closed.
const RUNTIME_STOP: Duration = Duration::from_millis(100);

/// Time of acknowledgement of a write, and so the loss that a crash can cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// After its commit is on the disk: acknowledged writes survive everything.
    #[default]
    Sync,
    /// Once it can be read; on the disk at most 100 ms and one commit later.
    Async,
    /// Once it can be read; on the disk when the server stops, or every ten seconds.
    None,
}

/// Limits of the front.
#[derive(Clone, Debug)]
pub struct FrontConfig {
    /// Threads that run queries; 0 is one for each processor.
    pub query_threads: usize,
    /// Queries that may wait for a thread; more are refused.
    pub query_queue: usize,
    /// Reads and writes of documents that may wait for a thread, for each port.
    pub read_queue: usize,
    /// Longest time for which a client may read nothing of a reply; then it is cut off.
    pub write_timeout: Duration,
    /// Threads that read requests and write replies; 0 is one for each processor, two at most.
    pub io_threads: usize,
    /// Connections of a port open at a time; for a further one, the one that has been at rest longest is closed.
    pub max_connections: usize,
}

impl Default for FrontConfig {
    /// 256 waiting queries, 1280 waiting reads, 10,000 connections, and two minutes for a client that takes nothing.
    fn default() -> Self {
        Self {
            query_threads: 0,
            query_queue: 256,
            read_queue: 1280,
            write_timeout: Duration::from_secs(120),
            io_threads: 0,
            max_connections: 10_000,
        }
    }
}

/// Reason why a server could not open its data.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The data folder cannot be used.
    #[error("cannot use the data folder {path}: {}; choose another one with --data", words(error))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// The documents or the index cannot be read or written.
    #[error("cannot open the documents in {path}: {message}; is another server using the folder?")]
    Data {
        /// The folder.
        path: PathBuf,
        /// Reason.
        message: String,
    },
}

impl DataError {
    /// Makes the folder where it is missing. It is there after a power cut too.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_folder(path: &Path) -> Result<(), Self> {
        durable::create_folders(&Real, path)
            .map_err(|error| Self::Folder { path: path.to_owned(), error })
    }

    /// The error of documents in a folder.
    #[must_use]
    pub fn data(path: &Path, message: String) -> Self {
        Self::Data { path: path.to_owned(), message }
    }
}

/// A request that an [`Api`] answers.
pub struct Call<'a> {
    /// The port that it came to.
    pub port: &'a Arc<Port>,
    /// Its method.
    pub method: &'a Method,
    /// Its path, as it came.
    pub path: &'a str,
    /// Its query, as it came; empty without one.
    pub query: &'a str,
    /// Its header fields.
    pub headers: &'a HeaderMap,
    /// Its body, unread.
    pub body: &'a mut Body,
}

/// Answer of an [`Api`]: the count to which the request belongs, and the reply.
pub type Answering<'a> = Pin<Box<dyn Future<Output = (Kind, Reply)> + Send + 'a>>;

/// A family of paths with what stands behind them.
pub trait Api: Send + Sync {
    /// True if a path is one of this family.
    fn owns(&self, path: &str) -> bool;

    /// Answers a request.
    fn answer<'a>(&'a self, call: Call<'a>) -> Answering<'a>;

    /// No more requests come; those in flight may end.
    fn begin_stop(&self) {}

    /// Ends the threads. Everything acknowledged is on the disk when it returns.
    ///
    /// # Errors
    /// When something acknowledged is not on the disk, and what to do then.
    fn close(&self) -> io::Result<()>;
}

/// The threads that APIs share.
#[derive(Clone)]
pub struct Pools {
    /// Threads for searches.
    pub queries: Arc<Pool>,
    /// Threads for reads of single documents.
    pub reads: Arc<Pool>,
}

impl Pools {
    /// Starts the threads for this many ports.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(config: &FrontConfig, ports: usize) -> io::Result<Self> {
        let threads = match config.query_threads {
            0 => processors(),
            threads => threads,
        };
        let queries = Pool::start("search-query", threads, config.query_queue)?;
        let reads = Pool::start("search-read", processors(), ports.max(1) * config.read_queue)?;
        Ok(Self { queries: Arc::new(queries), reads: Arc::new(reads) })
    }

    fn stop(&self) {
        self.queries.stop();
        self.reads.stop();
    }
}

/// Processors of this machine that the process may use.
#[must_use]
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Serves APIs on bound listeners until the stop is requested, and closes them. The first API also answers unowned
/// paths.
///
/// Returns about a second after the request to stop, or when the search, the read and the write that run then have ended, with
/// everything acknowledged on the disk.
///
/// # Errors
/// When the system has no thread or socket to give, or something acknowledged is not on the disk at the end.
pub fn run(
    listeners: Vec<TcpListener>,
    config: &FrontConfig,
    pools: &Pools,
    apis: Vec<Arc<dyn Api>>,
    stop: &Stop,
) -> io::Result<()> {
    let threads = match config.io_threads {
        0 => processors().min(2),
        threads => threads,
    };
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("search-io")
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()?;
    let served = Arc::new(Served::new(apis, config.write_timeout));
    let numbered = listeners.into_iter().enumerate();
    let ports =
        numbered.map(|(number, listener)| (listener, Port::new(number, config.max_connections)));
    let result = runtime.block_on(serve(ports.collect(), &served, stop));
    runtime.shutdown_timeout(RUNTIME_STOP);
    close(&served, pools).and(result)
}

/// Ends the threads: first those that answer, then those of the data.
///
/// # Errors
/// When something acknowledged is not on the disk.
pub fn close(served: &Served, pools: &Pools) -> io::Result<()> {
    served.begin_stop();
    pools.stop();
    served.close()
}

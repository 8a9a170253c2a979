//! The rank target: FeedSim's leaf server, rewritten. A request goes through eight stages that
//! load a machine as serving a feed does; `docs/rank.md` describes them.
//!
//! `stages` does the work, `service` takes requests through it, `frames` and `http` talk to
//! clients; the other modules are the kernels and know nothing of requests.
//!
//! ```no_run
//! use plimsoll_serving::stop::Stop;
//! use std::net::TcpListener;
//!
//! let stop = Stop::new()?;
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! plimsoll_ranker::run(listener, plimsoll_ranker::RankConfig::mini(), &stop)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chase;
mod compact;
mod config;
mod frames;
pub mod fuzz;
mod graph;
mod http;
mod metrics;
mod pagerank;
mod pool;
mod reply_size;
mod service;
mod stages;
mod story;
#[cfg(test)]
mod tests;
mod walk;

pub use config::{RankConfig, RankConfigError, RankThreads};
pub use metrics::{RankConnections, RankSummary, StageSummary};
pub use reply_size::{REPLY_BYTES_MAX, ReplySize, ReplySizeError};

use http::Pages;
use metrics::Bad;
use plimsoll_core::clock::now_ns;
use plimsoll_serving::accept::{ACCEPT_PAUSE, accept};
use plimsoll_serving::cpu_time::process_cpu_ns;
use plimsoll_serving::http::raise_descriptor_limit;
use plimsoll_serving::room::{Room, Seat};
use plimsoll_serving::stop::Stop;
use service::Service;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use thiserror::Error;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Longest time that a connection may stay silent before it is closed.
const IDLE: Duration = Duration::from_secs(300);
/// Time for requests in flight when the server stops.
const DRAIN: Duration = Duration::from_secs(2);
/// Longest time that tasks may go on after the connections were closed.
const RUNTIME_STOP: Duration = Duration::from_millis(100);
/// Connections open at a time; for a further one, the one that has been at rest longest is closed.
const CONNECTIONS_MAX: usize = 10_000;

/// Reason why the server could not start or go on.
#[derive(Debug, Error)]
pub enum RankError {
    /// The configuration is out of its range.
    #[error(transparent)]
    Config(#[from] RankConfigError),
    /// The data would not fit.
    #[error(
        "this needs about {} MB of memory and {} MB are available; give a smaller --scale, \
         --chase-entries or --stories", .needed_bytes / 1_000_000, .available_bytes / 1_000_000
    )]
    Memory {
        /// The memory that the configuration needs.
        needed_bytes: u64,
        /// The memory that the system has.
        available_bytes: u64,
    },
    /// The system refused a socket operation or a thread.
    #[error("cannot serve: {0}")]
    System(#[from] io::Error),
}

/// Makes the data and serves on a bound listener until the stop is requested.
///
/// # Errors
/// See [`RankError`].
pub fn run(
    listener: std::net::TcpListener,
    config: RankConfig,
    stop: &Stop,
) -> Result<RankSummary, RankError> {
    Server::open(config)?.serve(listener, stop)
}

/// The data and the threads: whoever has one can say that the server is ready.
pub struct Server {
    service: Arc<Service>,
}

impl Server {
    /// Makes the graph and the other data, ranks the graph, and starts the threads.
    ///
    /// # Errors
    /// See [`RankError`].
    pub fn open(config: RankConfig) -> Result<Self, RankError> {
        config.validate()?;
        let needed_bytes = config.memory_bytes();
        if let Some(available_bytes) = available_bytes()
            && needed_bytes > available_bytes
        {
            return Err(RankError::Memory { needed_bytes, available_bytes });
        }
        raise_descriptor_limit();
        let service = Service::open(config)?;
        service.metrics.setup_cpu_ns.store(process_cpu_ns(), Ordering::Relaxed);
        service.metrics.start_ns.store(now_ns(), Ordering::Relaxed);
        Ok(Self { service })
    }

    /// Serves until the stop is requested; returns counts of the requests served.
    ///
    /// Requests in flight then have two seconds to end; those that wait for a worker longer are
    /// dropped with their connections.
    ///
    /// # Errors
    /// When the system has no thread or socket to give.
    pub fn serve(
        self,
        listener: std::net::TcpListener,
        stop: &Stop,
    ) -> Result<RankSummary, RankError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(self.service.config.threads.net)
            .thread_name("rank-net")
            .enable_all()
            .build()?;
        let served = runtime.block_on(accept_all(listener, &self.service, stop));
        self.service.stop();
        runtime.shutdown_timeout(RUNTIME_STOP);
        served?;
        let Service { metrics, config, .. } = &*self.service;
        Ok(metrics.summary(config, self.service.now(), false))
    }
}

/// Returns the memory that is available without swapping, bytes.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Accepts connections until the stop is requested, then lets the requests in flight end.
async fn accept_all(
    listener: std::net::TcpListener,
    service: &Arc<Service>,
    stop: &Stop,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let stop = stop.as_fd().try_clone_to_owned()?;
    // SAFETY: the descriptor is a duplicate that `AsyncFd` owns: it stays open, and the same, as
    // long.
    let stopped = unsafe { AsyncFd::register(stop) }?;
    let (tell, stopping) = watch::channel(false);
    let room = Room::new(CONNECTIONS_MAX);
    let pages = Arc::new(Pages::new(Arc::clone(service)));
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopped.readable() => break,
            accepted = accept(&listener, &room) => accepted,
        };
        match accepted {
            Ok((stream, seat)) => {
                let (service, pages) = (Arc::clone(service), Arc::clone(&pages));
                let stopping = stopping.clone();
                tokio::spawn(async move {
                    let open = OpenConnection::new(&service);
                    let seat = Arc::new(seat);
                    tokio::select! {
                        () = seat.sent_away() => {}
                        () = connection(stream, open.service, pages, stopping, &seat) => {}
                    }
                });
            }
            Err(_) => {
                room.send_one_away();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    let _ = tell.send(true);
    let _ = tokio::time::timeout(DRAIN, room.emptied()).await;
    Ok(())
}

/// Counts a connection as open while it lives.
struct OpenConnection<'s> {
    service: &'s Arc<Service>,
}

impl<'s> OpenConnection<'s> {
    fn new(service: &'s Arc<Service>) -> Self {
        service.metrics.open_connections.fetch_add(1, Ordering::Relaxed);
        Self { service }
    }
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.service.metrics.open_connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves one connection in the language of its first byte: a frame begins with the zero of its
/// kind, an HTTP request with a letter.
async fn connection(
    stream: TcpStream,
    service: &Arc<Service>,
    pages: Arc<Pages>,
    mut stopping: watch::Receiver<bool>,
    seat: &Arc<Seat>,
) {
    let mut first = [0; 1];
    let peeked = tokio::select! {
        peeked = tokio::time::timeout(IDLE, stream.peek(&mut first)) => peeked,
        _ = stopping.wait_for(|stopping| *stopping) => return,
    };
    let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
    match (peeked, first[0]) {
        (Ok(Ok(1..)), 0) => {
            count(&service.metrics.frame_connections);
            frames::serve(stream, Arc::clone(service), IDLE, stopping, seat).await;
        }
        (Ok(Ok(1..)), b'A'..=b'Z' | b'a'..=b'z') => {
            count(&service.metrics.http_connections);
            http::serve(stream, pages, IDLE, stopping, seat).await;
        }
        (Ok(Ok(1..)), _) => service.metrics.count_bad(Bad::Start),
        // Closed, reset or silent: nothing was asked.
        _ => {}
    }
}

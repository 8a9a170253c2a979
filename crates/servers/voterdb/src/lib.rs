//! A partitioned in-memory database that speaks VoltDB's protocol and runs the voter application: `plimsoll serve voter`.
//!
//! Network threads read calls and pass them to partitions in batches. One thread owns a partition, its votes and its
//! views, and runs its calls one after another without a lock. Calls that need all partitions are run by a separate thread,
//! which borrows them: every partition stops during that time, so that the call sees one moment of all.
//!
//! Memory grows with the rows, and with nothing else: calls in flight are limited by `pending_calls` and `pending_bytes` of
//! each network thread, above which its sockets are not read, results by 40 MiB, messages by 50 MiB.
//!
//! ```no_run
//! use plimsoll_serving::stop::Stop;
//! use std::net::TcpListener;
//!
//! let stop = Stop::new()?;
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! plimsoll_voterdb::Server::open(plimsoll_voterdb::VoterConfig::default())?.serve(listener, None, &stop)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod application;
mod arguments;
mod connection_counts;
mod executor;
pub mod fuzz;
mod http;
mod identity;
mod inbox;
mod log;
mod log_writer;
mod mailbox;
mod message;
mod network;
mod procedures;
mod result;
mod routing;
mod shared;
mod sql;
mod statistics;
mod system;
mod tables;
mod transactions;
mod users;

#[cfg(test)]
mod tests;

use connection_counts::{NetworkCounts, Registry};
use executor::Executor;
use identity::Identity;
use inbox::Inbox;
use log::{Folder, Found, Log, Rows, SnapshotHealth, Tell, write_snapshot};
use log_writer::Writer;
use mailbox::Mailbox;
use network::Network;
use plimsoll_disk::{Disk, Real};
use plimsoll_serving::http::{Inbox as NewConnections, Intake, raise_descriptor_limit};
use plimsoll_serving::stop::Stop;
use routing::Routing;
use shared::{Deliveries, Shared};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tables::Partition;
use transactions::Transactions;
use users::Users;

/// The most partitions, and the most network threads.
const THREADS_MAX: usize = 256;

/// Time of acknowledgement of a vote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Once it is in memory. A clean stop writes everything down where there is a folder.
    #[default]
    None,
    /// Once it is in memory; it is in the command log some milliseconds later.
    Async,
    /// Once it is in the command log on the disk.
    Sync,
}

impl Durability {
    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Async => "async",
            Self::Sync => "sync",
        }
    }
}

/// The way the server is.
#[derive(Clone)]
pub struct VoterConfig {
    /// Partitions, each with a thread; 1 to 256.
    pub partitions: usize,
    /// Threads that read and write sockets; 1 to 256.
    pub network_threads: usize,
    /// Time of acknowledgement of a write.
    pub durability: Durability,
    /// Folder of log and snapshots; without it nothing is kept.
    pub data: Option<PathBuf>,
    /// Users and their passwords. Without any, every login succeeds.
    pub users: Vec<(String, String)>,
    /// Calls in flight per network thread; above it its sockets are not read until 80 % are left.
    pub pending_calls: usize,
    /// Bytes of such calls, likewise.
    pub pending_bytes: usize,
    /// Bytes of the command log above which a snapshot takes its place.
    pub log_bytes_max: u64,
    /// Longest time that a client may take nothing of its answers before its connection is closed.
    pub unread: Duration,
}

impl std::fmt::Debug for VoterConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Passwords are nobody's business.
        let names: Vec<&String> = self.users.iter().map(|(name, _)| name).collect();
        f.debug_struct("VoterConfig")
            .field("partitions", &self.partitions)
            .field("network_threads", &self.network_threads)
            .field("durability", &self.durability)
            .field("data", &self.data)
            .field("users", &names)
            .field("pending_calls", &self.pending_calls)
            .field("pending_bytes", &self.pending_bytes)
            .field("log_bytes_max", &self.log_bytes_max)
            .field("unread", &self.unread)
            .finish()
    }
}

impl Default for VoterConfig {
    /// A partition a processor, one network thread, nothing durable, VoltDB's limits.
    fn default() -> Self {
        Self {
            partitions: std::thread::available_parallelism().map_or(1, usize::from),
            network_threads: 1,
            durability: Durability::None,
            data: None,
            users: Vec::new(),
            pending_calls: 1_000,
            pending_bytes: 8 << 20,
            log_bytes_max: 256 << 20,
            unread: Duration::from_secs(30),
        }
    }
}

/// Reason why the server does not serve.
#[derive(Debug, thiserror::Error)]
pub enum VoterError {
    /// The configuration is wrong.
    #[error("{0}")]
    Config(String),
    /// The kept data cannot be used.
    #[error("{0}")]
    Data(String),
    /// The log or the last snapshot cannot be written.
    #[error("the command log cannot be written: {0}; what was acknowledged before is kept")]
    Log(io::Error),
    /// The snapshot of a clean stop cannot be written, and there is no log.
    #[error(
        "the snapshot cannot be written: {0}; there is no log, and all rows since the start are lost"
    )]
    Snapshot(io::Error),
    /// The system refused something.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A thread ended that should not.
    #[error("a thread of the server ended by itself; this is a defect")]
    Thread,
}

impl VoterConfig {
    /// Checks that a server can have this configuration.
    ///
    /// # Errors
    /// One line that says what is wrong.
    pub fn validate(&self) -> Result<(), VoterError> {
        let refused = |text: &str| Err(VoterError::Config(text.to_owned()));
        if !(1..=THREADS_MAX).contains(&self.partitions) {
            return refused("--partitions takes a number from 1 to 256");
        }
        if !(1..=THREADS_MAX).contains(&self.network_threads) {
            return refused("--network-threads takes a number from 1 to 256");
        }
        if self.pending_calls == 0 || self.pending_bytes == 0 {
            return refused("--pending-calls and --pending-bytes take numbers from 1");
        }
        if self.log_bytes_max == 0 {
            return refused("--log-max takes a size from 1 byte");
        }
        if self.durability != Durability::None && self.data.is_none() {
            return refused(
                "--durability async and sync need --data, a folder for the command log",
            );
        }
        let mut names: Vec<&str> = self.users.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return refused(&format!("the user '{}' is given twice", pair[0]));
        }
        Ok(())
    }
}

/// A server with its data, before it serves.
pub struct Server {
    config: VoterConfig,
    routing: Routing,
    partitions: Vec<Partition>,
    folder: Option<Arc<Folder>>,
    found: Found,
    tell: Tell,
}

/// The contents of the folder at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Votes.
    pub votes: usize,
    /// Bytes at the end of the log that a crash left unfinished. They were never acknowledged, and are cut off.
    pub torn_bytes: u64,
}

impl Server {
    /// Makes the partitions and reads what was kept.
    ///
    /// # Errors
    /// A configuration that cannot be, or a folder that cannot be used.
    pub fn open(config: VoterConfig) -> Result<Self, VoterError> {
        Self::open_on(Arc::new(Real), config)
    }

    /// The same on any disk.
    pub(crate) fn open_on(disk: Arc<dyn Disk>, config: VoterConfig) -> Result<Self, VoterError> {
        config.validate()?;
        let routing = Routing::new(config.partitions);
        let mut partitions: Vec<Partition> =
            (0..config.partitions).map(|_| Partition::default()).collect();
        let (mut folder, mut found) = (None, Found::default());
        if let Some(path) = &config.data {
            let open = Folder::open(disk, path).map_err(VoterError::Data)?;
            found = log::replay(&open, &mut partitions, &routing).map_err(VoterError::Data)?;
            folder = Some(Arc::new(open));
        }
        Ok(Self { config, routing, partitions, folder, found, tell: Arc::new(|_| {}) })
    }

    /// The same, with a receiver of one-line messages about conditions that need attention.
    #[must_use]
    pub fn telling(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.tell = Arc::new(tell);
        self
    }

    /// Returns the contents of the folder at the start.
    #[must_use]
    pub fn kept(&self) -> Kept {
        let votes = self.partitions.iter().map(|partition| partition.votes().len()).sum();
        Kept { votes, torn_bytes: self.found.torn_bytes }
    }

    /// Serves VoltDB's protocol, and the HTTP JSON API if there is a listener for it, until a stop is requested or a thread ends by
    /// itself; then calls in flight are answered, for a while, and all threads have ended.
    ///
    /// # Errors
    /// When the system refuses threads or sockets, what was acknowledged cannot be kept, or a thread has panicked.
    pub fn serve(
        self,
        listener: TcpListener,
        http: Option<TcpListener>,
        stop: &Stop,
    ) -> Result<(), VoterError> {
        let shared = Arc::new(self.shared(&listener)?);
        self.serve_with(&shared, listener, http, stop)
    }

    fn serve_with(
        mut self,
        shared: &Arc<Shared>,
        listener: TcpListener,
        http: Option<TcpListener>,
        stop: &Stop,
    ) -> Result<(), VoterError> {
        raise_descriptor_limit();
        let writer = self.writer(shared, stop)?;
        let (mut lent, mut back, mut executors) = (Vec::new(), Vec::new(), Vec::new());
        for (number, partition) in std::mem::take(&mut self.partitions).into_iter().enumerate() {
            // Room for one, so that neither side waits.
            let (lend, taken) = sync_channel(1);
            let (give, own) = sync_channel(1);
            lent.push(taken);
            back.push(give);
            let executor = Executor { number, shared: Arc::clone(shared), lend, back: own };
            let run = move || executor.run(partition);
            executors.push(thread(named(format!("voter-part-{number}")), stop, run)?);
        }
        let done = Deliveries::new(shared);
        let folder = self.folder.clone();
        let own = Arc::clone(shared);
        let transactions = Transactions { shared: own, lent, back, done, folder, writing: None };
        // Conditions nest: their computing takes stack.
        let builder = named("voter-multi").stack_size(16 << 20);
        let transactions = thread(builder, stop, move || transactions.run())?;
        let mut volt = listener.local_addr()?;
        if volt.ip().is_unspecified() {
            volt.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        let networks = networks(shared, listener, stop)?;
        let http = http.map(|listener| {
            let own = stop.clone();
            thread(named("voter-http"), stop, move || http::serve(listener, volt, &own))
        });
        let http = http.transpose()?;
        let mut ended = Ok(());
        for network in networks.into_iter().chain(http) {
            let one = network.join().map_err(|_| VoterError::Thread);
            ended = ended.and(one.and_then(|one| Ok(one?)));
        }
        shared.transactions.close();
        let partitions = transactions.join();
        // Partitions that were not borrowed at the end, because that thread has panicked, still wait for letters.
        shared.partitions.iter().for_each(Mailbox::close);
        let panicked = executors.into_iter().map(JoinHandle::join).filter(Result::is_err).count();
        if let Some(writer) = writer {
            shared.log.iter().for_each(|log| log.close());
            writer.join().map_err(|_| VoterError::Thread)?.map_err(VoterError::Log)?;
        }
        ended?;
        let partitions = partitions.ok().flatten().filter(|_| panicked == 0);
        let partitions = partitions.ok_or(VoterError::Thread)?;
        if let Some(folder) = &self.folder {
            let number = shared.log.as_ref().map_or(self.found.next, |log| log.next_number());
            let lost = if shared.log.is_some() { VoterError::Log } else { VoterError::Snapshot };
            write_snapshot(folder, number, &Rows::of(&partitions)).map_err(lost)?;
        }
        Ok(())
    }

    /// Starts the thread that writes the log, where there is one.
    fn writer(
        &self,
        shared: &Arc<Shared>,
        stop: &Stop,
    ) -> Result<Option<JoinHandle<io::Result<()>>>, VoterError> {
        let (Some(log), Some(folder)) = (&shared.log, &self.folder) else { return Ok(None) };
        let writer = Writer {
            shared: Arc::clone(shared),
            log: Arc::clone(log),
            folder: Arc::clone(folder),
            number: self.found.next,
            bytes: self.found.log_bytes,
            bytes_max: self.config.log_bytes_max,
        };
        Ok(Some(thread(named("voter-log"), stop, move || writer.run())?))
    }

    fn shared(&self, listener: &TcpListener) -> Result<Shared, VoterError> {
        let networks = self.config.network_threads;
        Ok(Shared {
            identity: Identity::new(listener.local_addr()?),
            users: Users::new(&self.config.users),
            routing: self.routing.clone(),
            partitions: self.partitions.iter().map(|_| Mailbox::default()).collect(),
            transactions: Mailbox::default(),
            inboxes: (0..networks).map(|_| Inbox::new()).collect::<io::Result<_>>()?,
            counts: (0..networks).map(|_| Mutex::new(NetworkCounts::default())).collect(),
            registry: Registry::default(),
            log: match self.config.durability {
                Durability::None => None,
                Durability::Async => Some(Arc::new(Log::new(false, self.found.next))),
                Durability::Sync => Some(Arc::new(Log::new(true, self.found.next))),
            },
            snapshots: SnapshotHealth::new(Arc::clone(&self.tell)),
            config: self.config.clone(),
        })
    }
}

/// Requests the stop of the server when it is dropped.
struct EndsServer(Stop);

impl Drop for EndsServer {
    fn drop(&mut self) {
        self.0.request();
    }
}

/// Starts a thread of the server. No thread works without the others: when one ends, by a panic too, the server stops.
fn thread<T: Send + 'static>(
    builder: Builder,
    stop: &Stop,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let ends = EndsServer(stop.clone());
    builder.spawn(move || {
        let _ends = ends;
        run()
    })
}

fn named(name: impl Into<String>) -> Builder {
    Builder::new().name(name.into())
}

/// Starts the network threads: the first accepts and hands connections out in turn.
fn networks(
    shared: &Arc<Shared>,
    listener: TcpListener,
    stop: &Stop,
) -> Result<Vec<JoinHandle<io::Result<()>>>, VoterError> {
    let others = 1..shared.config.network_threads;
    let others = others.map(|_| NewConnections::new().map(Arc::new));
    let others = others.collect::<io::Result<Vec<_>>>()?;
    let mut intakes = vec![Intake::Listener { listener, others: others.clone() }];
    intakes.extend(others.into_iter().map(Intake::Inbox));
    let mut threads = Vec::new();
    for (number, intake) in intakes.into_iter().enumerate() {
        let network = Network::new(number, Arc::clone(shared), intake, stop.clone())?;
        threads.push(thread(named(format!("voter-net-{number}")), stop, move || network.run())?);
    }
    Ok(threads)
}

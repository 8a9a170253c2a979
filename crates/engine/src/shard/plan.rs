//! Plan of a shard.

use crate::gauge::Gauge;
use crate::target::Target;
use crate::tls::Tls;
use crate::windows::WindowCounts;
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::schedule::{Limits, LoadModel, Slice};
use plimsoll_core::verdict::ConnectionLimit;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The work of a shard.
#[derive(Clone, Debug)]
pub struct ShardPlan {
    /// The load model of the whole run.
    pub model: LoadModel,
    /// This shard's part of it.
    pub slice: Slice,
    /// Seed of the schedule.
    pub seed: u64,
    /// Length of the run (warm-up included) and requests of the run.
    pub limits: Limits,
    /// Requests that should have started before this, ns after the start, are not measured.
    pub warmup_ns: u64,
    /// Requests of each client that are not measured.
    pub ignore_first: u32,
    /// Most connections of this shard.
    pub connections: u32,
    /// Number of connections at the beginning, if the others are opened when they are needed; none: all of them.
    pub warm_connections: Option<u32>,
    /// Limit of the number of connections.
    pub connection_limit: ConnectionLimit,
    /// Slots and queue of this shard.
    pub admission: AdmissionModel,
    /// Limits on waiting.
    pub timeouts: Timeouts,
    /// Targets; connection i goes to target i modulo their number.
    pub targets: Arc<Vec<Target>>,
    /// TLS, where the targets speak it.
    pub tls: Option<Tls>,
    /// Number of classes of requests.
    pub classes: usize,
    /// Poll this long before an intended start instead of sleeping, ns.
    pub spin_ns: u64,
    /// Gather answers in batches when many are in flight (closed models at full speed).
    pub batching: bool,
    /// Open all connections before the first request.
    pub preconnect: bool,
    /// Use a connection for the next request when the server lets it open. Requests that ask for its end
    /// want this off: a server can ignore them, and nothing can follow them (RFC 9112, 9.6).
    pub keep_alive: bool,
    /// Its place in a run of several parts.
    pub part: Part,
}

/// A start that this process does not decide alone.
pub trait Agreement: Debug + Send + Sync {
    /// Waits until the start is known, ns on the engine's clock; `None` if there will be none. It is called when all connections
    /// are open.
    fn start_ns(&self) -> Option<u64>;
}

/// The place of a part in its run.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Phase that its seconds belong to.
    pub phase: u32,
    /// Time from the start of the run to its own, ns.
    pub offset_ns: u64,
    /// Counts by when requests were due, one a shard; empty where no one asks for them.
    pub windows: Vec<Arc<WindowCounts>>,
    /// Gauges of the shards; empty if none are read.
    pub gauges: Vec<Arc<Gauge>>,
    /// Drops what is due and not sent at the end instead of sending it while a timeout lasts.
    pub drop_backlog: bool,
    /// Ends the schedule before its time when it is set; what is in flight is waited for as usual.
    pub end_early: Option<Arc<AtomicBool>>,
    /// Time at which the first requests are due at the earliest, ns on the engine's clock: an agreed start, which several
    /// processes wait for with their connections open.
    pub start_ns: Option<u64>,
    /// A start that others decide, instead.
    pub agreement: Option<Arc<dyn Agreement>>,
    /// Users who are there when the run starts; none: every user comes.
    pub users_before: Option<UsersBefore>,
}

/// Time for which users have already come when the run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsersBefore {
    /// Time from the beginning of the profile to the start of the run, ns.
    pub before_ns: u64,
    /// Response time of every request before the start, ns.
    pub answer_ns: u64,
}

/// Longest waits, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection, TLS included.
    pub connect_ns: u64,
    /// From sending a request to its last byte.
    pub request_ns: u64,
}

impl ShardPlan {
    /// The cycle time of a closed model, or the pace of users, ns; 0: none.
    pub(super) const fn cycle_ns(&self) -> u64 {
        match self.model {
            LoadModel::Closed { cycle_ns, .. } => cycle_ns,
            LoadModel::Users { pace, .. } => pace.ns,
            _ => 0,
        }
    }
}

//! State shared by all threads of the server.

use super::VoterConfig;
use super::connection_counts::{NetworkCounts, Registry};
use super::identity::Identity;
use super::inbox::Inbox;
use super::log::{Log, Records, SnapshotHealth};
use super::mailbox::Mailbox;
use super::message::{Batch, Errand, Letter};
use super::routing::Routing;
use super::users::Users;
use std::sync::{Arc, Mutex};

/// Answers on their way, and what must be written down for them.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    /// True if anything is written down at all.
    pub(crate) is_logged: bool,
    pub(crate) records: Records,
    pub(crate) batches: Vec<Batch>,
}

impl Deliveries {
    pub(crate) fn new(shared: &Shared) -> Self {
        Self { is_logged: shared.log.is_some(), ..Self::default() }
    }
}

/// The state that all threads share.
pub(crate) struct Shared {
    pub(crate) config: VoterConfig,
    pub(crate) identity: Identity,
    pub(crate) users: Users,
    pub(crate) routing: Routing,
    pub(crate) partitions: Vec<Mailbox<Letter>>,
    pub(crate) transactions: Mailbox<Errand>,
    pub(crate) inboxes: Vec<Inbox>,
    /// Of each network thread, which takes its own lock once a round.
    pub(crate) counts: Vec<Mutex<NetworkCounts>>,
    pub(crate) registry: Registry,
    pub(crate) log: Option<Arc<Log>>,
    pub(crate) snapshots: SnapshotHealth,
}

impl Shared {
    /// Sends answers back, once what they promise is as durable as it must be.
    pub(crate) fn deliver(&self, done: &mut Deliveries) {
        if let Some(log) = &self.log {
            log.append(&mut done.records, &mut done.batches);
        }
        for batch in done.batches.drain(..) {
            self.inboxes[batch.network].put(batch);
        }
    }
}

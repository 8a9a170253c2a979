//! Counts of a network thread: latency inside the server, and the calls of each connection.

use super::procedures::Procedure;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts of one network thread.
#[derive(Debug)]
pub(crate) struct NetworkCounts {
    /// From a call received to its answer written, us. Up to an hour, two digits.
    pub(crate) latency_us: Histogram<u64>,
}

impl Default for NetworkCounts {
    fn default() -> Self {
        #[expect(clippy::unwrap_used, reason = "the bounds are constants and valid")]
        let latency_us = Histogram::new_with_bounds(1, 3_600_000_000, 2).unwrap();
        Self { latency_us }
    }
}

/// Results of one connection's calls of one procedure. Written by one thread, read by any.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pub(crate) invocations: AtomicU64,
    pub(crate) total_ms: AtomicU64,
    pub(crate) min_ms: AtomicU64,
    pub(crate) max_ms: AtomicU64,
    pub(crate) aborts: AtomicU64,
    pub(crate) failures: AtomicU64,
}

impl Calls {
    /// Counts a call with its duration and status.
    #[inline]
    pub(crate) fn count(&self, took_ms: u64, status: i8) {
        // Only one thread writes: no locked instruction is needed.
        let add = |counter: &AtomicU64, more: u64| {
            counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        };
        if self.invocations.load(Ordering::Relaxed) == 0
            || took_ms < self.min_ms.load(Ordering::Relaxed)
        {
            self.min_ms.store(took_ms, Ordering::Relaxed);
        }
        if took_ms > self.max_ms.load(Ordering::Relaxed) {
            self.max_ms.store(took_ms, Ordering::Relaxed);
        }
        add(&self.invocations, 1);
        add(&self.total_ms, took_ms);
        match status {
            1 => {}
            -1 => add(&self.aborts, 1),
            _ => add(&self.failures, 1),
        }
    }
}

/// The calls of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionCounts {
    pub(crate) id: u64,
    /// The peer's address.
    pub(crate) host: String,
    pub(crate) votes: Calls,
    /// Calls of all other procedures.
    others: Mutex<BTreeMap<&'static str, Arc<Calls>>>,
}

impl ConnectionCounts {
    pub(crate) fn new(id: u64, host: String) -> Self {
        Self { id, host, votes: Calls::default(), others: Mutex::default() }
    }

    pub(crate) fn count(&self, procedure: Procedure, took_ms: u64, status: i8) {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.entry(procedure.name()).or_default().count(took_ms, status);
    }

    /// The counts of other procedures than `Vote`.
    pub(crate) fn others(&self) -> Vec<(&'static str, Arc<Calls>)> {
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.iter().map(|(name, calls)| (*name, Arc::clone(calls))).collect()
    }
}

/// All open connections, for those who ask about them.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    connections: Mutex<BTreeMap<u64, Arc<ConnectionCounts>>>,
    next_id: AtomicU64,
}

impl Registry {
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn add(&self, counts: &Arc<ConnectionCounts>) {
        let mut all = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(counts.id, Arc::clone(counts));
    }

    pub(crate) fn remove(&self, id: u64) {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// Those that are open now.
    pub(crate) fn all(&self) -> Vec<Arc<ConnectionCounts>> {
        let all = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().cloned().collect()
    }
}

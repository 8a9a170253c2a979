//! The moment at which the load of a run begins.

use plimsoll_core::clock::now_ns;
use plimsoll_core::interval::Interval;
use plimsoll_core::record::{FailureSample, Sink};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Start of the load of a run, ns; unknown until it has begun. Agents wait for each other before.
#[derive(Clone, Debug, Default)]
pub struct Started(Arc<AtomicU64>);

impl Started {
    /// A load that begins now.
    #[must_use]
    pub fn now() -> Self {
        let started = Self::default();
        started.set(now_ns());
        started
    }

    /// The start; none while the load has not begun.
    #[must_use]
    pub fn ns(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&ns| ns > 0)
    }

    fn set(&self, ns: u64) {
        // The first phase counts.
        let _ = self.0.compare_exchange(0, ns, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Notes when the load begins.
pub(super) struct Starting<'a> {
    pub inner: &'a mut (dyn Sink + Send),
    pub started: &'a Started,
}

impl Sink for Starting<'_> {
    fn counts_from(&mut self, start_ns: u64) {
        self.started.set(start_ns);
        self.inner.counts_from(start_ns);
    }

    fn interval(&mut self, interval: &Interval) -> std::io::Result<()> {
        self.inner.interval(interval)
    }

    fn failure(&mut self, sample: &FailureSample) -> std::io::Result<()> {
        self.inner.failure(sample)
    }
}

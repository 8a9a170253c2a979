//! Counts of a run at this moment, for displays that change more often than once a second.
//!
//! A shard writes its own gauge once a round and no other thread does; there is no lock, and no cost where no one looks.

use std::sync::atomic::{AtomicU64, Ordering};

/// Values of a gauge: of a shard, or of several added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Requests handed to connections so far, those of a warm-up included.
    pub sent: u64,
    /// Of these, successful ones.
    pub ok: u64,
    /// Failed ones.
    pub failed: u64,
    /// Requests rejected because the queue was full.
    pub queue_full: u64,
    /// Requests rejected because they had waited in the queue for longer than its timeout.
    pub queue_timeout: u64,
    /// Requests in the queue now.
    pub queued: u64,
    /// Requests in flight now.
    pub under_way: u64,
    /// The longest that a request had waited in the queue when it left it, since the last look, ns.
    pub longest_wait_ns: u64,
}

impl Reading {
    /// Requests that came to their end, good or bad; those that were rejected not among them.
    #[must_use]
    pub const fn completed(&self) -> u64 {
        self.ok + self.failed
    }

    /// Requests rejected.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.queue_full + self.queue_timeout
    }

    fn add(&mut self, other: &Reading) {
        self.sent += other.sent;
        self.ok += other.ok;
        self.failed += other.failed;
        self.queue_full += other.queue_full;
        self.queue_timeout += other.queue_timeout;
        self.queued += other.queued;
        self.under_way += other.under_way;
        self.longest_wait_ns = self.longest_wait_ns.max(other.longest_wait_ns);
    }
}

/// Gauge of one worker thread.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Gauge {
    sent: AtomicU64,
    ok: AtomicU64,
    failed: AtomicU64,
    queue_full: AtomicU64,
    queue_timeout: AtomicU64,
    queued: AtomicU64,
    under_way: AtomicU64,
    longest_wait_ns: AtomicU64,
}

impl Gauge {
    /// Shows how the shard stands.
    pub(crate) fn show(&self, reading: &Reading) {
        let set = |cell: &AtomicU64, value| cell.store(value, Ordering::Relaxed);
        set(&self.sent, reading.sent);
        set(&self.ok, reading.ok);
        set(&self.failed, reading.failed);
        set(&self.queue_full, reading.queue_full);
        set(&self.queue_timeout, reading.queue_timeout);
        set(&self.queued, reading.queued);
        set(&self.under_way, reading.under_way);
        if reading.longest_wait_ns > 0 {
            // Whoever looks puts it back to 0.
            self.longest_wait_ns.fetch_max(reading.longest_wait_ns, Ordering::Relaxed);
        }
    }

    /// Returns the counts of the shard. The longest wait begins again with each look.
    #[must_use]
    pub fn look(&self) -> Reading {
        let read = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        Reading {
            sent: read(&self.sent),
            ok: read(&self.ok),
            failed: read(&self.failed),
            queue_full: read(&self.queue_full),
            queue_timeout: read(&self.queue_timeout),
            queued: read(&self.queued),
            under_way: read(&self.under_way),
            longest_wait_ns: self.longest_wait_ns.swap(0, Ordering::Relaxed),
        }
    }

    /// Sum of the gauges of several worker threads.
    #[must_use]
    pub fn look_at_all<'a>(gauges: impl IntoIterator<Item = &'a std::sync::Arc<Gauge>>) -> Reading {
        let mut all = Reading::default();
        gauges.into_iter().for_each(|gauge| all.add(&gauge.look()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn shards_add_up_and_the_longest_wait_begins_anew() {
        let gauges = [Arc::new(Gauge::default()), Arc::new(Gauge::default())];
        for (gauge, n) in gauges.iter().zip([1, 10]) {
            gauge.show(&Reading {
                sent: 5 * n,
                ok: 3 * n,
                failed: n,
                queued: n,
                longest_wait_ns: n,
                ..Reading::default()
            });
        }
        gauges[0].show(&Reading { sent: 6, ok: 3, failed: 1, under_way: 2, ..Reading::default() });
        let all = Gauge::look_at_all(&gauges);
        assert_eq!((all.sent, all.completed(), all.queued, all.under_way), (56, 44, 10, 2));
        assert_eq!((all.longest_wait_ns, Gauge::look_at_all(&gauges).longest_wait_ns), (10, 0));
    }
}

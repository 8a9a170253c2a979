//! Account of requests that were never answered: refused, never sent, or cut off.

use super::Books;
use plimsoll_core::admission::Due;

impl Books {
    /// The managed queue has no place for a request; `is_late` when the generator was late to look. It did not wait: it
    /// was rejected at once.
    pub fn refused_queue_full(&mut self, due: Due, is_late: bool) {
        let recorder = self.recorder_for(due);
        recorder.scheduled(1);
        let interval = recorder.interval_mut();
        interval.ledger.refused.queue_full += 1;
        interval.counters.refused_late += u64::from(is_late);
        interval.unserved.record(0);
        self.standing.queue_full += 1;
        self.count_due(due.intended_ns);
        self.count_given_up(due.intended_ns, due.intended_ns, None);
    }

    /// The time of a request in the managed queue is over; `is_late` when the generator was late to look.
    pub fn refused_queue_timeout(&mut self, due: Due, is_late: bool, now_ns: u64) {
        let recorder = self.recorder_for(due);
        recorder.scheduled(1);
        let interval = recorder.interval_mut();
        interval.ledger.refused.queue_timeout += 1;
        interval.counters.refused_late += u64::from(is_late);
        interval.unserved.record(now_ns.saturating_sub(due.intended_ns));
        self.standing.queue_timeout += 1;
        self.count_due(due.intended_ns);
        self.count_given_up(due.intended_ns, now_ns, None);
    }

    /// A request was due, and is never sent.
    pub fn unsent(&mut self, due: Due, now_ns: u64) {
        self.count_due(due.intended_ns);
        self.count_given_up(due.intended_ns, now_ns, None);
        let interval = self.recorder_for(due).interval_mut();
        interval.ledger.scheduled += 1;
        interval.ledger.unsent.stopped += 1;
        interval.unserved.record(now_ns.saturating_sub(due.intended_ns));
    }

    /// Arrivals were due at about the same time, and are never sent.
    pub fn unsent_many(&mut self, count: u64, intended_ns: u64, now_ns: u64) {
        debug_assert!(self.windows.is_none(), "windows count each request by itself");
        let interval = self.recorder_for(Due { intended_ns, client: 0 }).interval_mut();
        interval.ledger.scheduled += count;
        interval.ledger.unsent.stopped += count;
        interval.unserved.record_many(now_ns.saturating_sub(intended_ns), count);
    }

    /// Returns true if arrivals that are never sent may be counted many at a time.
    pub fn may_count_many(&self) -> bool {
        self.windows.is_none()
    }

    /// A request is still in flight when the run is cut off.
    pub fn unfinished(&mut self, class: u16, intended_ns: u64, measured: bool, now_ns: u64) {
        self.count_given_up(intended_ns, now_ns, Some(class));
        let interval = self.recorder_of(measured).interval_mut();
        interval.ledger.unfinished += 1;
        interval.unserved.record(now_ns.saturating_sub(intended_ns));
        if let Some(part) = interval.classes.get_mut(class as usize) {
            part.ledger.unfinished += 1;
        }
    }

    /// Counts a request by when it was due, if requested.
    fn count_due(&self, intended_ns: u64) {
        if let Some(windows) = &self.windows {
            windows.due(self.since_start_ns(intended_ns));
        }
    }

    /// Counts how long a request was waited for in vain, if requested.
    fn count_given_up(&self, intended_ns: u64, now_ns: u64, class: Option<u16>) {
        if let Some(windows) = &self.windows {
            let (due_ns, now_ns) = (self.since_start_ns(intended_ns), self.since_start_ns(now_ns));
            windows.given_up(due_ns, now_ns, class);
        }
    }
}

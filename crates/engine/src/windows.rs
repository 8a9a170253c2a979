//! Requests counted by when they were due, for a search that asks how many of them were late.
//!
//! A shard writes its own counts and no other thread does; whoever steers the search reads them meanwhile. A request
//! that never came to an end was never on time, so that nothing need be waited for and nothing is forgotten.

use plimsoll_core::seek::plant::{LIMITS_MAX, Window};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit as requests are counted by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimit {
    /// Longest response time, ns; `u64::MAX` where only failures count.
    pub limit_ns: u64,
    /// The only class that it judges; `None` for all of them.
    pub class: Option<u16>,
}

impl WindowLimit {
    /// A limit on all requests.
    #[must_use]
    pub const fn of_all(limit_ns: u64) -> Self {
        Self { limit_ns, class: None }
    }

    fn judges(self, class: u16) -> bool {
        self.class.is_none_or(|own| own == class)
    }
}

/// Outcome of a request, at its end.
#[derive(Clone, Copy, Debug)]
pub struct EndedRequest {
    /// Time at which it was due, ns since the run's start.
    pub due_ns: u64,
    /// Time at which it ended, ns since the run's start.
    pub done_ns: u64,
    /// Its class.
    pub class: u16,
    /// True if it was a success.
    pub ok: bool,
}

/// Counts of one shard, a window at a time.
#[derive(Debug)]
pub struct WindowCounts {
    window_ns: u64,
    limits: Vec<WindowLimit>,
    /// Time with which a failed request counts at least, ns.
    timeout_ns: u64,
    /// The run's start on the engine's clock, ns; 0 before it.
    start_ns: AtomicU64,
    cells: Box<[Cell]>,
}

#[derive(Debug, Default)]
struct Cell {
    scheduled: AtomicU64,
    on_time: [AtomicU64; LIMITS_MAX],
    exempt: [AtomicU64; LIMITS_MAX],
    failed: AtomicU64,
    completed: AtomicU64,
    response_sum_ns: AtomicU64,
    /// As two's complement: failed requests count longer than they took.
    exempt_sum_ns: [AtomicU64; LIMITS_MAX],
}

/// Adds to a counter that only the calling thread writes.
#[inline]
fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}

impl WindowCounts {
    /// Counts for `windows` windows of `window_ns` each, judged by at most [`LIMITS_MAX`] limits.
    #[must_use]
    pub fn new(window_ns: u64, windows: usize, limits: &[WindowLimit]) -> Self {
        Self {
            window_ns: window_ns.max(1),
            limits: limits.iter().copied().take(LIMITS_MAX).collect(),
            timeout_ns: 0,
            start_ns: AtomicU64::new(0),
            cells: (0..windows).map(|_| Cell::default()).collect(),
        }
    }

    /// Counts a failed request with its timeout at least, as limits on a run do: failing fast is not fast.
    #[must_use]
    pub fn with_timeout(self, timeout_ns: u64) -> Self {
        Self { timeout_ns, ..self }
    }

    /// The run starts now.
    pub fn start(&self, start_ns: u64) {
        self.start_ns.store(start_ns, Ordering::Release);
    }

    /// Time at which the run started, ns on the engine's clock; nothing before it did.
    #[must_use]
    pub fn started_ns(&self) -> Option<u64> {
        Some(self.start_ns.load(Ordering::Acquire)).filter(|&start_ns| start_ns > 0)
    }

    fn cell(&self, at_ns: u64) -> Option<&Cell> {
        self.cells.get((at_ns / self.window_ns) as usize)
    }

    /// A request was due, ns since the run's start.
    #[inline]
    pub fn due(&self, due_ns: u64) {
        if let Some(cell) = self.cell(due_ns) {
            add(&cell.scheduled, 1);
        }
    }

    /// A request that was due is sent, and now has a class: limits on other classes do not judge it.
    #[inline]
    pub fn sent(&self, due_ns: u64, class: u16) {
        if let Some(cell) = self.cell(due_ns) {
            for (exempt, limit) in cell.exempt.iter().zip(&self.limits) {
                if !limit.judges(class) {
                    add(exempt, 1);
                }
            }
        }
    }

    /// A request that was due was given up without an end, ns since the run's start: it took until then at least.
    pub fn given_up(&self, due_ns: u64, now_ns: u64, class: Option<u16>) {
        self.lost(due_ns, now_ns.saturating_sub(due_ns), class);
    }

    /// A request that did not succeed took this long; limits count at least its timeout.
    fn lost(&self, due_ns: u64, waited_ns: u64, class: Option<u16>) {
        self.took(due_ns, waited_ns, class);
        let Some(cell) = self.cell(due_ns) else { return };
        let more_ns = self.timeout_ns.saturating_sub(waited_ns);
        for (sum, limit) in cell.exempt_sum_ns.iter().zip(&self.limits) {
            if class.is_none_or(|class| limit.judges(class)) {
                add(sum, more_ns.wrapping_neg());
            }
        }
    }

    #[inline]
    fn took(&self, due_ns: u64, response_ns: u64, class: Option<u16>) {
        let Some(cell) = self.cell(due_ns) else { return };
        add(&cell.response_sum_ns, response_ns);
        for (sum, limit) in cell.exempt_sum_ns.iter().zip(&self.limits) {
            if class.is_some_and(|class| !limit.judges(class)) {
                add(sum, response_ns);
            }
        }
    }

    /// A request that was sent has ended.
    #[inline]
    pub fn ended(&self, request: EndedRequest) {
        let response_ns = request.done_ns.saturating_sub(request.due_ns);
        if !request.ok {
            self.lost(request.due_ns, response_ns, Some(request.class));
            if let Some(cell) = self.cell(request.due_ns) {
                add(&cell.failed, 1);
            }
            return;
        }
        self.took(request.due_ns, response_ns, Some(request.class));
        if let Some(cell) = self.cell(request.due_ns) {
            for (on_time, limit) in cell.on_time.iter().zip(&self.limits) {
                if limit.judges(request.class) && response_ns <= limit.limit_ns {
                    add(on_time, 1);
                }
            }
        }
        if let Some(cell) = self.cell(request.done_ns) {
            add(&cell.completed, 1);
        }
    }

    /// The counts so far, added to `sums`, which has one entry a window.
    pub fn add_to(&self, sums: &mut [Window]) {
        for (sum, cell) in sums.iter_mut().zip(&self.cells) {
            let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            // What is on time is read before what was due: a request that is both while this looks must not make
            // fewer late than there are.
            let on_time: [u64; LIMITS_MAX] = std::array::from_fn(|at| read(&cell.on_time[at]));
            let exempt: [u64; LIMITS_MAX] = std::array::from_fn(|at| read(&cell.exempt[at]));
            let scheduled = read(&cell.scheduled);
            let mut late = [0; LIMITS_MAX];
            for (at, _) in self.limits.iter().enumerate() {
                late[at] = scheduled.saturating_sub(on_time[at]).saturating_sub(exempt[at]);
            }
            sum.add(&Window {
                scheduled,
                late,
                exempt,
                failed: read(&cell.failed),
                completed: read(&cell.completed),
                response_sum_s: read(&cell.response_sum_ns) as f64 / 1e9,
                exempt_sum_s: std::array::from_fn(|at| {
                    read(&cell.exempt_sum_ns[at]).cast_signed() as f64 / 1e9
                }),
            });
        }
    }
}

/// The counts of all shards so far, an entry a window.
#[must_use]
pub fn sums_of(counts: &[Arc<WindowCounts>]) -> Vec<Window> {
    let windows = counts.iter().map(|own| own.cells.len()).max().unwrap_or(0);
    let mut sums = vec![Window::default(); windows];
    counts.iter().for_each(|own| own.add_to(&mut sums));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};

    #[test]
    fn what_never_ends_is_late_and_what_fails_is_late_for_every_limit() {
        let limits = [10 * MILLISECOND_NS, 100 * MILLISECOND_NS, u64::MAX].map(WindowLimit::of_all);
        let counts = WindowCounts::new(SECOND_NS, 2, &limits);
        let at = |ms: u64| ms * MILLISECOND_NS;
        for due_ms in [0, 100, 200, 300, 1500] {
            counts.due(at(due_ms));
        }
        let ended = |due_ms, done_ms, ok| {
            counts.sent(at(due_ms), 0);
            counts.ended(EndedRequest { due_ns: at(due_ms), done_ns: at(done_ms), class: 0, ok });
        };
        ended(0, 10, true);
        ended(100, 150, true);
        ended(200, 1200, true);
        ended(300, 301, false);
        let mut sums = [Window::default(); 2];
        counts.add_to(&mut sums);
        assert_eq!((sums[0].scheduled, sums[0].failed, sums[0].completed), (4, 1, 2));
        assert_eq!(sums[0].late[..4], [3, 2, 1, 0], "limits that were not set are never missed");
        assert!((sums[0].response_sum_s - 1.061).abs() < 1e-9);
        // The reply of the first window's slow request came in the second window.
        assert_eq!((sums[1].scheduled, sums[1].completed, sums[1].late[2]), (1, 1, 1));
    }

    /// A target that rejects most requests at once has no low mean, nor has a queue that refuses them.
    #[test]
    fn a_fast_failure_counts_with_its_timeout() {
        let of_class = |class| WindowLimit { limit_ns: u64::MAX, class: Some(class) };
        let limits = [WindowLimit::of_all(u64::MAX), of_class(0), of_class(1)];
        let counts = WindowCounts::new(SECOND_NS, 1, &limits).with_timeout(SECOND_NS);
        let at = |ms: u64| ms * MILLISECOND_NS;
        for (done_ms, ok) in [(10, true), (1, false), (1500, false)] {
            counts.due(0);
            counts.sent(0, 0);
            counts.ended(EndedRequest { due_ns: 0, done_ns: at(done_ms), class: 0, ok });
        }
        // One that is refused at once has no class, and counts for every limit.
        counts.due(0);
        counts.given_up(0, 0, None);
        let mut sums = [Window::default(); 1];
        counts.add_to(&mut sums);
        assert!((sums[0].response_sum_s - 1.511).abs() < 1e-9, "as long as they took");
        for (limit, sum_s) in [(0, 3.51), (1, 3.51), (2, 1.0)] {
            assert!((sums[0].subject_sum_s(limit) - sum_s).abs() < 1e-9, "{limit}");
        }
    }

    /// Limits on class 1 and on class 0, and one on all: each judges its own requests, and all that have no class.
    #[test]
    fn a_limit_on_a_class_leaves_the_requests_of_others_alone() {
        let limits = [
            WindowLimit { limit_ns: 10 * MILLISECOND_NS, class: Some(1) },
            WindowLimit { limit_ns: u64::MAX, class: Some(0) },
            WindowLimit::of_all(100 * MILLISECOND_NS),
        ];
        let counts = WindowCounts::new(SECOND_NS, 1, &limits);
        let at = |ms: u64| ms * MILLISECOND_NS;
        let ended = |due_ms, done_ms, class, ok| {
            counts.due(at(due_ms));
            counts.sent(at(due_ms), class);
            counts.ended(EndedRequest { due_ns: at(due_ms), done_ns: at(done_ms), class, ok });
        };
        ended(0, 5, 1, true);
        ended(0, 50, 1, true);
        ended(0, 150, 0, true);
        ended(0, 3, 0, false);
        // One of class 0 that is still in flight, and one that was never sent.
        counts.due(at(10));
        counts.sent(at(10), 0);
        counts.due(at(20));
        counts.given_up(at(20), at(320), None);
        let mut sums = [Window::default(); 1];
        counts.add_to(&mut sums);
        let sum = sums[0];
        assert_eq!([0, 1, 2].map(|at| sum.subject(at)), [3, 4, 6]);
        assert_eq!(sum.late[..3], [2, 3, 4]);
        assert!((sum.response_sum_s - 0.508).abs() < 1e-9);
        // Class 1 took 5 and 50 ms, and the one without a class 300.
        assert!((sum.subject_sum_s(0) - 0.355).abs() < 1e-9);
        assert!((sum.subject_sum_s(1) - 0.453).abs() < 1e-9);
    }
}

//! Requests counted by when they were due, for a search that asks how many of them were late.
//!
//! A shard writes its own counts and nobody else does; whoever steers the search reads them meanwhile. A request
//! that never came to an end was never on time, so that nothing need be waited for and nothing is forgotten.

use plimsoll_core::seek::plant::{LIMITS_MAX, Window};
use std::sync::atomic::{AtomicU64, Ordering};

/// What became of a request, at its end.
#[derive(Clone, Copy, Debug)]
pub struct EndedRequest {
    /// When it was due, ns since the run's start.
    pub due_ns: u64,
    /// When it ended, ns since the run's start.
    pub done_ns: u64,
    /// Whether it was a success.
    pub ok: bool,
}

/// Counts of one shard, a window at a time.
#[derive(Debug)]
pub struct WindowCounts {
    window_ns: u64,
    /// Longest response time of each limit, ns; `u64::MAX` where only failures count.
    limits_ns: Vec<u64>,
    /// The run's start on the engine's clock, ns; 0 before it.
    start_ns: AtomicU64,
    cells: Box<[Cell]>,
}

#[derive(Debug, Default)]
struct Cell {
    scheduled: AtomicU64,
    on_time: [AtomicU64; LIMITS_MAX],
    failed: AtomicU64,
    completed: AtomicU64,
    response_sum_ns: AtomicU64,
}

/// Adds to a counter that only the calling thread writes.
#[inline]
fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}

impl WindowCounts {
    /// Counts for `windows` windows of `window_ns` each, judged by at most [`LIMITS_MAX`] limits.
    #[must_use]
    pub fn new(window_ns: u64, windows: usize, limits_ns: &[u64]) -> Self {
        Self {
            window_ns: window_ns.max(1),
            limits_ns: limits_ns.iter().copied().take(LIMITS_MAX).collect(),
            start_ns: AtomicU64::new(0),
            cells: (0..windows).map(|_| Cell::default()).collect(),
        }
    }

    /// The run starts now.
    pub fn start(&self, start_ns: u64) {
        self.start_ns.store(start_ns, Ordering::Release);
    }

    /// When the run started, ns on the engine's clock; nothing before it did.
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

    /// A request that was due has ended.
    #[inline]
    pub fn ended(&self, request: EndedRequest) {
        let response_ns = request.done_ns.saturating_sub(request.due_ns);
        if let Some(cell) = self.cell(request.due_ns) {
            add(&cell.response_sum_ns, response_ns);
            if request.ok {
                for (on_time, limit_ns) in cell.on_time.iter().zip(&self.limits_ns) {
                    if response_ns <= *limit_ns {
                        add(on_time, 1);
                    }
                }
            } else {
                add(&cell.failed, 1);
            }
        }
        if request.ok
            && let Some(cell) = self.cell(request.done_ns)
        {
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
            let scheduled = read(&cell.scheduled);
            let mut late = [0; LIMITS_MAX];
            for ((late, on_time), _) in late.iter_mut().zip(on_time).zip(&self.limits_ns) {
                *late = scheduled.saturating_sub(on_time);
            }
            sum.add(&Window {
                scheduled,
                late,
                failed: read(&cell.failed),
                completed: read(&cell.completed),
                response_sum_s: read(&cell.response_sum_ns) as f64 / 1e9,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};

    #[test]
    fn what_never_ends_is_late_and_what_fails_is_late_for_every_limit() {
        let counts =
            WindowCounts::new(SECOND_NS, 2, &[10 * MILLISECOND_NS, 100 * MILLISECOND_NS, u64::MAX]);
        let at = |ms: u64| ms * MILLISECOND_NS;
        for due_ms in [0, 100, 200, 300, 1500] {
            counts.due(at(due_ms));
        }
        let ended = |due_ms, done_ms, ok| {
            counts.ended(EndedRequest { due_ns: at(due_ms), done_ns: at(done_ms), ok });
        };
        ended(0, 10, true);
        ended(100, 150, true);
        ended(200, 1200, true);
        ended(300, 301, false);
        let mut sums = [Window::default(); 2];
        counts.add_to(&mut sums);
        assert_eq!((sums[0].scheduled, sums[0].failed, sums[0].completed), (4, 1, 2));
        assert_eq!(sums[0].late[..4], [3, 2, 1, 0], "limits that nobody set are never missed");
        assert!((sums[0].response_sum_s - 1.061).abs() < 1e-9);
        // The reply of the first window's slow request came in the second window.
        assert_eq!((sums[1].scheduled, sums[1].completed, sums[1].late[2]), (1, 1, 1));
    }
}

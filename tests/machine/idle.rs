//! The share of the machine that nothing uses.

use plimsoll_core::clock::{SECOND_NS, now_ns};

/// Least time over which it is measured, ns.
const WINDOW_NS: u64 = SECOND_NS;

/// Idle time of the processors since a moment.
pub struct Idle {
    /// Time and counts at its beginning.
    begun_ns: Option<(u64, Times)>,
}

#[derive(Clone, Copy)]
struct Times {
    idle: u64,
    all: u64,
}

impl Idle {
    pub const fn new() -> Self {
        Self { begun_ns: None }
    }

    /// The idle share of the time since the last call that returned one; none before a second is over.
    pub fn share(&mut self) -> Option<f64> {
        let now = times(&std::fs::read_to_string("/proc/stat").ok()?)?;
        let Some((since_ns, before)) = self.begun_ns else {
            self.begun_ns = Some((now_ns(), now));
            return None;
        };
        if now_ns() - since_ns < WINDOW_NS {
            return None;
        }
        self.begun_ns = Some((now_ns(), now));
        let all = now.all.saturating_sub(before.all).max(1);
        Some(now.idle.saturating_sub(before.idle) as f64 / all as f64)
    }
}

/// The sums of the first line of `/proc/stat`, in ticks.
fn times(stat: &str) -> Option<Times> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|tick| tick.parse().ok()).collect();
    // Waiting for a disk is idle for all that waits for something else.
    let idle = ticks.get(3)? + ticks.get(4)?;
    // What follows the eighth is in the first two already.
    Some(Times { idle, all: ticks.iter().take(8).sum() })
}

#[test]
fn idle_time_is_that_of_idling_and_of_waiting_for_a_disk() {
    let read = times("cpu  10 1 5 80 20 1 1 2 7 0\ncpu0 1 2 3\n").unwrap();
    assert_eq!((read.idle, read.all), (100, 120));
    assert!(times("intr 1 2 3\n").is_none());
}

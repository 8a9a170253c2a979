//! Check that other programs did not use the machine: then neither the target's truth nor the machine's health is
//! known.

use plimsoll_core::clock::now_ns;

/// Share of one core that others may use in a run; ticks are no finer.
pub const OTHERS_MAX: f64 = 0.10;

/// The CPU time used so far, s.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    at_ns: u64,
    /// CPU time of all processes, and time that a host took away.
    all_s: f64,
    /// By this process and its children that have ended.
    own_s: f64,
}

/// Kernel ticks a second, as /proc counts them.
const TICKS_PER_S: f64 = 100.0;

impl Used {
    /// Reads the counts.
    #[must_use]
    pub fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let own = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let at_ns = now_ns();
        Self { at_ns, all_s: everybodys(&stat), own_s: with_children(&own) }
    }

    /// Share of one core that others have used since `before`.
    #[must_use]
    pub fn by_others_since(&self, before: &Used) -> f64 {
        let seconds = (self.at_ns - before.at_ns) as f64 / 1e9;
        let others_s = (self.all_s - before.all_s) - (self.own_s - before.own_s);
        others_s.max(0.0) / seconds.max(0.001)
    }
}

/// Time of the line `cpu` of /proc/stat that is neither idle nor waiting for a disk, s.
fn everybodys(stat: &str) -> f64 {
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> =
        line.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
    let idle: f64 = ticks.get(3..5).map_or(0.0, |idle| idle.iter().sum());
    (ticks.iter().sum::<f64>() - idle) / TICKS_PER_S
}

/// utime, stime, cutime and cstime of /proc/self/stat, s.
fn with_children(stat: &str) -> f64 {
    // The name stands in brackets and may hold anything.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = rest.split_whitespace().skip(11).take(4).filter_map(|w| w.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_PER_S
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_what_is_left_of_all() {
        let stat = "cpu  100 10 50 1000 30 1 2 7 0 0\ncpu0 1 1\n";
        assert_eq!(everybodys(stat), 1.7);
        let own = "77 (a b) c) S 1 1 1 0 -1 0 0 0 0 0 30 20 5 15 20 0 1 0 0";
        assert_eq!(with_children(own), 0.7);
        let before = Used { at_ns: 0, all_s: 10.0, own_s: 2.0 };
        let after = Used { at_ns: 2_000_000_000, all_s: 11.5, own_s: 2.5 };
        assert_eq!(after.by_others_since(&before), 0.5);
        assert!(Used::now().all_s > 0.0);
    }
}

//! Counts of procedures that ran. Each thread counts its own without a lock; `@Statistics` adds them up.

use super::procedures::Procedure;
use plimsoll_core::clock::now_ns;

/// Invocations of a partition's procedure per timed one, because two readings of the clock would cost more than
/// many a vote.
const TIMED_EVERY: u64 = 16;

/// The results of one procedure's invocations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) invocations: u64,
    /// Number of timed ones.
    pub(crate) timed: u64,
    pub(crate) total_ns: u64,
    pub(crate) min_ns: u64,
    pub(crate) max_ns: u64,
    /// Those that the procedure itself gave up.
    pub(crate) aborts: u64,
    /// Those that failed otherwise.
    pub(crate) failures: u64,
}

impl Counts {
    /// The time at which an invocation begins, if it is one to be timed.
    #[inline]
    pub(crate) fn begin(&mut self) -> Option<u64> {
        let is_timed = self.invocations.is_multiple_of(TIMED_EVERY);
        self.invocations += 1;
        is_timed.then(now_ns)
    }

    /// The end of an invocation that began so.
    #[inline]
    pub(crate) fn end(&mut self, began_ns: Option<u64>) {
        if let Some(began_ns) = began_ns {
            self.time(now_ns().saturating_sub(began_ns));
        }
    }

    /// Counts an invocation with its duration.
    pub(crate) fn count(&mut self, took_ns: u64) {
        self.invocations += 1;
        self.time(took_ns);
    }

    fn time(&mut self, took_ns: u64) {
        self.min_ns = if self.timed == 0 { took_ns } else { self.min_ns.min(took_ns) };
        self.max_ns = self.max_ns.max(took_ns);
        self.timed += 1;
        self.total_ns += took_ns;
    }

    /// Mean of the timed ones, ns.
    pub(crate) fn mean_ns(&self) -> u64 {
        self.total_ns.checked_div(self.timed).unwrap_or(0)
    }

    /// Takes in what another thread counted.
    pub(crate) fn add(&mut self, other: &Self) {
        if other.timed > 0 {
            let least = if self.timed == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
            self.min_ns = least;
        }
        self.max_ns = self.max_ns.max(other.max_ns);
        self.invocations += other.invocations;
        self.timed += other.timed;
        self.total_ns += other.total_ns;
        self.aborts += other.aborts;
        self.failures += other.failures;
    }
}

/// The counts of all procedures.
#[derive(Clone, Debug)]
pub(crate) struct ProcedureCounts([Counts; Procedure::ALL.len()]);

impl Default for ProcedureCounts {
    fn default() -> Self {
        Self([Counts::default(); Procedure::ALL.len()])
    }
}

impl ProcedureCounts {
    #[inline]
    pub(crate) fn of(&mut self, procedure: Procedure) -> &mut Counts {
        &mut self.0[procedure as usize]
    }

    pub(crate) fn get(&self, procedure: Procedure) -> &Counts {
        &self.0[procedure as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn what_several_threads_counted_adds_up() {
        let mut first = Counts::default();
        first.count(300);
        let mut second = Counts::default();
        second.count(100);
        second.count(500);
        second.failures = 1;
        let mut sum = Counts::default();
        for part in [first, second, Counts::default()] {
            sum.add(&part);
        }
        assert_eq!((sum.invocations, sum.min_ns, sum.max_ns, sum.mean_ns()), (3, 100, 500, 300));
        assert_eq!(sum.failures, 1);
    }

    #[test]
    fn some_of_many_are_timed() {
        let mut counts = Counts::default();
        for _ in 0..100 {
            let began = counts.begin();
            counts.end(began);
        }
        assert_eq!((counts.invocations, counts.timed), (100, 7));
    }
}

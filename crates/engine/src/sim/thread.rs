//! The thread that drives a simulated network: what its work costs, and when it does not run.
//!
//! Without costs and absences it is an ideal generator: it does everything in no time. With them it is late in the
//! ways in which real ones are, and its vital signs show what a kernel would show of that, and no more.

/// Costs of a thread's work, and times at which others have its core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// CPU time to take received bytes and to judge them, ns.
    pub completion_ns: u64,
    /// CPU time to send, ns.
    pub send_ns: u64,
    /// By how much its timers may be late, ns; what arrives wakes it at once.
    pub timers_late_ns: u64,
    /// Times when it does not run, ascending; they do not overlap.
    pub absences: Vec<Absence>,
}

/// A stretch in which the thread does not run, whatever it has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absence {
    /// Time at which it begins, ns.
    pub from_ns: u64,
    /// Its length, ns.
    pub for_ns: u64,
    /// The reason.
    pub why: Why,
}

/// Reason why a thread does not run. The kernel shows each in another place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Another thread runs on its core: the time for which it is ready and waits is its run delay.
    Neighbour,
    /// Its group has used up its quota.
    Throttled,
    /// The host has taken the core away.
    Stolen,
    /// The process was stopped, and continues at the end: no count of time shows it.
    Stopped,
}

/// Sums since the start, ns; times are those for which the thread had work and did not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Absent {
    /// Behind neighbours.
    pub run_delay_ns: u64,
    /// By a quota.
    pub throttled_ns: u64,
    /// By the host.
    pub stolen_ns: u64,
    /// Stops that have begun, with or without work.
    pub stops: u64,
}

impl Absence {
    /// Returns when it ends, ns.
    #[must_use]
    pub const fn end_ns(&self) -> u64 {
        self.from_ns.saturating_add(self.for_ns)
    }
}

/// A thread in the course of a run.
#[derive(Debug, Default)]
pub(super) struct Running {
    thread: Thread,
    /// The first absence that has not ended.
    at: usize,
    stops_before: u64,
    absent: Absent,
}

impl Running {
    pub(super) fn new(thread: Thread) -> Self {
        Self { thread, ..Self::default() }
    }

    pub(super) const fn completion_ns(&self) -> u64 {
        self.thread.completion_ns
    }

    pub(super) const fn send_ns(&self) -> u64 {
        self.thread.send_ns
    }

    pub(super) const fn timers_late_ns(&self) -> u64 {
        self.thread.timers_late_ns
    }

    /// Returns when a thread that has work at `now_ns` runs, ns. The time until then is counted.
    pub(super) fn resumes_ns(&mut self, now_ns: u64) -> u64 {
        self.pass(now_ns);
        let Some(absence) = self.thread.absences.get(self.at) else { return now_ns };
        if absence.from_ns > now_ns {
            return now_ns;
        }
        let (end_ns, why) = (absence.end_ns(), absence.why);
        let lost_ns = end_ns - now_ns;
        match why {
            Why::Neighbour => self.absent.run_delay_ns += lost_ns,
            Why::Throttled => self.absent.throttled_ns += lost_ns,
            Why::Stolen => self.absent.stolen_ns += lost_ns,
            Why::Stopped => {}
        }
        self.pass(end_ns);
        end_ns
    }

    /// Returns when a thread that runs at `now_ns` is interrupted next, ns.
    pub(super) fn interrupted_ns(&self) -> u64 {
        self.thread.absences.get(self.at).map_or(u64::MAX, |absence| absence.from_ns)
    }

    /// Leaves the absences behind that have ended by `now_ns`.
    fn pass(&mut self, now_ns: u64) {
        while let Some(absence) = self.thread.absences.get(self.at)
            && absence.end_ns() <= now_ns
        {
            self.stops_before += u64::from(absence.why == Why::Stopped);
            self.at += 1;
        }
    }

    pub(super) fn absent(&mut self, now_ns: u64) -> Absent {
        self.pass(now_ns);
        let stopped_now = self
            .thread
            .absences
            .get(self.at)
            .is_some_and(|absence| absence.from_ns <= now_ns && absence.why == Why::Stopped);
        Absent { stops: self.stops_before + u64::from(stopped_now), ..self.absent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absence(from_ns: u64, for_ns: u64, why: Why) -> Absence {
        Absence { from_ns, for_ns, why }
    }

    #[test]
    fn time_without_work_is_nobodys_delay() {
        let absences = vec![absence(100, 50, Why::Neighbour), absence(300, 10, Why::Stopped)];
        let mut running = Running::new(Thread { absences, ..Thread::default() });
        assert_eq!((running.resumes_ns(20), running.interrupted_ns()), (20, 100));
        assert_eq!(running.resumes_ns(130), 150, "it became ready in the middle");
        assert_eq!(running.absent(150), Absent { run_delay_ns: 20, ..Absent::default() });
        assert_eq!(running.interrupted_ns(), 300);
        assert_eq!(running.absent(305).stops, 1);
        assert_eq!(running.resumes_ns(400), 400, "it slept through the stop");
        let all = Absent { run_delay_ns: 20, stops: 1, ..Absent::default() };
        assert_eq!(running.absent(400), all);
    }

    #[test]
    fn each_absence_is_counted_where_a_kernel_counts_it() {
        for (why, expected) in [
            (Why::Throttled, Absent { throttled_ns: 7, ..Absent::default() }),
            (Why::Stolen, Absent { stolen_ns: 7, ..Absent::default() }),
            (Why::Stopped, Absent { stops: 1, ..Absent::default() }),
        ] {
            let absences = vec![absence(0, 10, why)];
            let mut running = Running::new(Thread { absences, ..Thread::default() });
            assert_eq!((running.resumes_ns(3), running.absent(10)), (10, expected), "{why:?}");
        }
    }
}

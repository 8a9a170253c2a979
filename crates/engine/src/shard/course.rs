//! The course of a run: when it starts, when its schedule ends, and what ends it early.
//!
//! Invariants: the end only ever moves nearer; a run has been interrupted or its drain has been cut, not both; the
//! first reason for which a target refuses is kept.

use super::{STOP_GRACE_NS, ShardPlan, Timeouts};
use plimsoll_core::clock::SECOND_NS;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The stretch of time that a shard's part of a run takes.
pub(super) struct Course {
    /// 0 before the start.
    start_ns: u64,
    end_ns: u64,
    warmup_ns: u64,
    duration_ns: u64,
    timeouts: Timeouts,
    /// True if what was due in time is sent after the end.
    sends_backlog: bool,
    /// The user's wish to stop.
    stop: Arc<AtomicBool>,
    /// The controller's wish to end the schedule.
    end_early: Option<Arc<AtomicBool>>,
    /// Time at which a stop was noticed, ns.
    stopped_ns: Option<u64>,
    interrupted: bool,
    drain_cut: bool,
    /// Reason why a login was refused.
    refused: Option<&'static str>,
}

impl Course {
    /// The course that a plan lays down, before its start.
    pub fn new(plan: &ShardPlan, stop: Arc<AtomicBool>) -> Self {
        Self {
            start_ns: 0,
            end_ns: 0,
            warmup_ns: plan.warmup_ns,
            duration_ns: plan.limits.duration_ns,
            timeouts: plan.timeouts,
            sends_backlog: plan.model.is_open() && !plan.part.drop_backlog,
            stop,
            end_early: plan.part.end_early.clone(),
            stopped_ns: None,
            interrupted: false,
            drain_cut: false,
            refused: None,
        }
    }

    /// The run starts.
    pub fn begin(&mut self, start_ns: u64) {
        assert!(!self.has_begun(), "a run starts once");
        self.start_ns = start_ns;
        self.end_ns = start_ns.saturating_add(self.duration_ns);
    }

    #[inline]
    pub const fn has_begun(&self) -> bool {
        self.start_ns > 0
    }

    #[inline]
    pub const fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// The end of the schedule, ns.
    #[inline]
    pub const fn end_ns(&self) -> u64 {
        self.end_ns
    }

    #[inline]
    pub const fn has_ended(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns
    }

    #[inline]
    pub const fn measured_from_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.warmup_ns)
    }

    /// Returns true if the warm-up by time is over.
    #[inline]
    pub const fn is_measuring(&self, now_ns: u64) -> bool {
        now_ns >= self.measured_from_ns()
    }

    /// Returns true if what happens to connections counts as measured: what is opened before the start does.
    pub const fn is_counting(&self, now_ns: u64) -> bool {
        self.is_measuring(now_ns) || !self.has_begun()
    }

    /// The schedule ends at `at_ns`, if it does not end before that.
    pub fn end_by(&mut self, at_ns: u64) {
        self.end_ns = self.end_ns.min(at_ns);
    }

    /// The target refuses for good; the first reason is kept.
    pub fn refuse(&mut self, why: &'static str) {
        self.refused.get_or_insert(why);
    }

    pub fn is_stop_asked(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub fn is_end_asked(&self) -> bool {
        self.end_early.as_ref().is_some_and(|early| early.load(Ordering::Relaxed))
    }

    /// Notices a stop that was asked for. A user who stops a run that only waits for its last replies takes nothing from
    /// the measurement; `is_drained` when not even those are missing.
    pub fn notice_stop(&mut self, now_ns: u64, is_drained: impl FnOnce() -> bool) {
        if self.stopped_ns.is_none() && self.is_stop_asked() {
            self.stopped_ns = Some(now_ns);
            self.interrupted = !self.has_ended(now_ns);
            self.drain_cut = !self.interrupted && !is_drained();
            self.end_by(now_ns);
        }
    }

    /// Returns true if a stop has waited long enough for answers.
    pub fn has_stopped(&self, now_ns: u64) -> bool {
        self.stopped_ns.is_some_and(|at_ns| now_ns >= at_ns + STOP_GRACE_NS)
    }

    /// Time until which requests that were due in time are sent, ns. In an open model those that waited for a
    /// connection at the end are the ones that a slow target delayed most: they are still asked, as long as
    /// a timeout lasts, so that their waiting is measured. A user who stops a run does not want to wait for them.
    pub fn backlog_until_ns(&self) -> u64 {
        if self.stopped_ns.is_some() || !self.sends_backlog {
            return self.end_ns;
        }
        self.end_ns.saturating_add(self.timeouts.request_ns)
    }

    /// Deadline of a connection that is asked for now, ns.
    pub fn connect_by_ns(&self, now_ns: u64) -> u64 {
        self.deadline_ns(now_ns, self.timeouts.connect_ns)
    }

    /// Deadline of a request that is sent now, ns.
    #[inline]
    pub fn reply_by_ns(&self, now_ns: u64) -> u64 {
        self.deadline_ns(now_ns, self.timeouts.request_ns)
    }

    /// Deadline of something that begins now, ns. An activity that begins after the end has no more than a second
    /// above the time of what began before it: the run must come to its end, and since all of it was due before
    /// the end, a timeout still counts at least its limit.
    #[inline]
    fn deadline_ns(&self, now_ns: u64, timeout_ns: u64) -> u64 {
        let deadline_ns = now_ns.saturating_add(timeout_ns);
        if now_ns < self.end_ns {
            return deadline_ns;
        }
        deadline_ns.min(self.end_ns.saturating_add(timeout_ns).saturating_add(SECOND_NS))
    }

    /// Time at which requests that are still in flight after the schedule's end are given up, ns: later than any
    /// timeout of theirs, unless connecting and answering both took their time.
    pub fn drained_by_ns(&self) -> u64 {
        let longest_ns = self.timeouts.connect_ns.max(self.timeouts.request_ns);
        self.end_ns.saturating_add(longest_ns).saturating_add(SECOND_NS)
    }

    /// Returns true if the one-by-one count of arrivals that were never sent, which began at `since_ns`, has to end.
    pub fn is_late_for_the_end(&self, now_ns: u64, since_ns: u64) -> bool {
        let limit_ns =
            self.end_ns.saturating_add(self.timeouts.request_ns).saturating_add(SECOND_NS);
        now_ns >= limit_ns.max(since_ns)
            || (self.is_stop_asked() && now_ns >= since_ns + STOP_GRACE_NS)
    }

    pub const fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    pub const fn is_drain_cut(&self) -> bool {
        self.drain_cut
    }

    pub const fn refusal(&self) -> Option<&'static str> {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::closed_plan;
    use plimsoll_core::schedule::{Arrivals, LoadModel};

    fn open(stop: &Arc<AtomicBool>) -> Course {
        let mut plan = closed_plan(1, 10 * SECOND_NS);
        plan.model = LoadModel::Open { rate_per_s: 1.0, arrivals: Arrivals::Uniform };
        plan.warmup_ns = 2 * SECOND_NS;
        Course::new(&plan, stop.clone())
    }

    #[test]
    fn the_warmup_ends_before_the_schedule_and_the_drain_after_it() {
        let mut course = open(&Arc::default());
        assert!(course.is_counting(1) && !course.is_measuring(1) && !course.has_begun());
        course.begin(5 * SECOND_NS);
        assert_eq!((course.measured_from_ns(), course.end_ns()), (7 * SECOND_NS, 15 * SECOND_NS));
        assert!(!course.is_counting(6 * SECOND_NS) && course.is_measuring(7 * SECOND_NS));
        assert_eq!(course.backlog_until_ns(), 16 * SECOND_NS);
        assert_eq!(course.drained_by_ns(), 17 * SECOND_NS);
    }

    #[test]
    fn what_begins_after_the_end_has_a_second_more_than_what_began_before_it() {
        let mut course = open(&Arc::default());
        course.begin(SECOND_NS);
        let end_ns = course.end_ns();
        assert_eq!(course.reply_by_ns(end_ns - 1), end_ns - 1 + SECOND_NS);
        assert_eq!(course.reply_by_ns(end_ns + SECOND_NS / 2), end_ns + SECOND_NS * 3 / 2);
        assert_eq!(course.connect_by_ns(end_ns + 5 * SECOND_NS), end_ns + 2 * SECOND_NS);
    }

    #[test]
    fn a_stop_before_the_end_interrupts_and_one_after_it_cuts_the_drain() {
        for (at_s, drained, interrupted, cut) in
            [(3, true, true, false), (12, false, false, true), (12, true, false, false)]
        {
            let stop = Arc::new(AtomicBool::new(false));
            let mut course = open(&stop);
            course.begin(SECOND_NS);
            course.notice_stop(2 * SECOND_NS, || drained);
            assert!(!course.is_interrupted() && course.end_ns() == 11 * SECOND_NS);
            stop.store(true, Ordering::Relaxed);
            let at_ns = at_s * SECOND_NS;
            course.notice_stop(at_ns, || drained);
            course.notice_stop(at_ns + 1, || !drained);
            assert_eq!((course.is_interrupted(), course.is_drain_cut()), (interrupted, cut));
            assert_eq!(course.end_ns(), at_ns.min(11 * SECOND_NS));
            assert_eq!(course.backlog_until_ns(), course.end_ns(), "a backlog is not waited for");
            assert!(!course.has_stopped(at_ns) && course.has_stopped(at_ns + STOP_GRACE_NS));
        }
    }

    #[test]
    fn the_end_only_moves_nearer_and_the_first_refusal_is_kept() {
        let mut course = open(&Arc::default());
        course.begin(SECOND_NS);
        course.end_by(4 * SECOND_NS);
        course.end_by(9 * SECOND_NS);
        course.refuse("first");
        course.refuse("second");
        assert_eq!((course.end_ns(), course.refusal()), (4 * SECOND_NS, Some("first")));
    }

    #[test]
    #[should_panic(expected = "starts once")]
    fn a_run_does_not_start_twice() {
        let mut course = open(&Arc::default());
        course.begin(1);
        course.begin(2);
    }
}

//! The run so far, and its verdict before its end.

use plimsoll_core::interval::Interval;
use plimsoll_core::ledger::Ledger;
use plimsoll_core::record::Rates;
use plimsoll_core::verdict::{Evidence, MAX_FAILED, Verdict, judge};

/// The load as a judgement needs to know it.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// True if the schedule has intended times of its own.
    pub open: bool,
    /// True if the schedule is a closed one without pauses.
    pub full_speed: bool,
    /// Clients of a closed schedule.
    pub clients: Option<u32>,
    /// Threads of the generator.
    pub threads: u32,
    /// Share of the requests that may fail.
    pub max_failed: f64,
}

impl Default for Model {
    fn default() -> Self {
        Self { open: true, full_speed: false, clients: None, threads: 1, max_failed: MAX_FAILED }
    }
}

/// The seconds so far, added up. Its memory is that of one second.
#[derive(Clone, Debug)]
pub struct Sums {
    model: Model,
    totals: Interval,
    /// End of the last second with a success, ns since the run's start, and failures since.
    last_success: (u64, u64),
    /// True once the run has a second part: a search, whose job judges by other means.
    has_parts: bool,
}

impl Sums {
    /// Nothing yet.
    #[must_use]
    pub fn new(model: Model) -> Self {
        Self { model, totals: Interval::default(), last_success: (0, 0), has_parts: false }
    }

    /// Adds one second.
    pub fn add(&mut self, second: &Interval) {
        self.has_parts |= second.phase > 0;
        match second.ledger.ok {
            0 => self.last_success.1 += second.ledger.failed.total(),
            _ => self.last_success = (second.to_ns, 0),
        }
        // Earlier seconds' requests have ended since.
        self.totals.in_flight = 0;
        self.totals.merge(second);
    }

    /// Everything so far.
    #[must_use]
    pub const fn totals(&self) -> &Interval {
        &self.totals
    }

    /// The same, by value.
    #[must_use]
    pub fn into_totals(self) -> Interval {
        self.totals
    }

    /// The judgement of the run so far, by its failures and the generator's delays; CPU, suspended time and network are
    /// known only at the end. `None` for a search, and before anything was due.
    #[must_use]
    pub fn verdict(&mut self) -> Option<Verdict> {
        let ledger = self.totals.ledger;
        if self.has_parts || ledger.scheduled == 0 {
            return None;
        }
        // Requests in flight will end: the ledger is closed for the judgement alone.
        self.totals.ledger = closed(ledger);
        let measured_s = self.totals.seconds();
        let silent_s = self.totals.to_ns.saturating_sub(self.last_success.0) as f64 / 1e9;
        let verdict = judge(&Evidence {
            rates: rates(&self.totals),
            measured_s,
            open: self.model.open,
            full_speed: self.model.full_speed,
            clients: self.model.clients,
            threads: self.model.threads,
            since_success: (silent_s, self.last_success.1),
            max_failed: self.model.max_failed,
            ..Evidence::of(&self.totals)
        });
        self.totals.ledger = ledger;
        // A run whose first requests are still in flight has not failed.
        (ledger.finished() > 0).then_some(verdict)
    }
}

/// The ledger with what is in flight as unfinished, and what is due and not sent as unsent.
#[must_use]
pub fn closed(mut ledger: Ledger) -> Ledger {
    ledger.unfinished += ledger.sent.saturating_sub(ledger.finished() + ledger.unfinished);
    let refused = ledger.refused.queue_full + ledger.refused.queue_timeout;
    let placed = ledger.sent + refused + ledger.unsent.stopped;
    ledger.unsent.stopped += ledger.scheduled.saturating_sub(placed);
    ledger
}

/// Rates of an interval, requests per second.
#[must_use]
pub fn rates(interval: &Interval) -> Rates {
    let seconds = interval.seconds();
    if seconds <= 0.0 {
        return Rates::default();
    }
    Rates {
        offered_per_s: interval.ledger.scheduled as f64 / seconds,
        achieved_per_s: interval.counters.ended_in_time as f64 / seconds,
        ok_per_s: interval.counters.ok_in_time as f64 / seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::second;
    use super::*;
    use plimsoll_core::verdict::VerdictKind;

    #[test]
    fn a_run_with_requests_in_flight_is_not_void() {
        let mut sums = Sums::new(Model::default());
        assert!(sums.verdict().is_none());
        for number in 0..4 {
            sums.add(&second(number, 200));
        }
        assert_eq!(sums.verdict().unwrap().kind, VerdictKind::Valid);
        assert_eq!(sums.totals().ledger.unfinished, 0, "the ledger stays as it is");
    }

    #[test]
    fn a_target_that_stopped_serving_is_seen_while_the_run_goes_on() {
        let mut sums = Sums::new(Model::default());
        sums.add(&second(0, 200));
        for number in 1..6 {
            let mut failing = second(number, 0);
            failing.ledger.scheduled = 100;
            failing.ledger.sent = 100;
            failing.ledger.failed.reset = 100;
            sums.add(&failing);
        }
        assert_eq!(sums.verdict().unwrap().kind, VerdictKind::TargetFailed);
    }

    /// CPU time is read at the end of a run: a share of 0 % before that would be a figure which no one measured.
    #[test]
    fn a_verdict_before_the_end_names_no_share_of_cpu_time() {
        let mut sums = Sums::new(Model { full_speed: true, ..Model::default() });
        for number in 0..4 {
            let mut delayed = second(number, 200);
            delayed.delays.receive.record_many(4_000_000, 200);
            sums.add(&delayed);
        }
        let reasons = sums.verdict().unwrap().reasons.join("; ");
        assert!(reasons.contains("replies waited"), "{reasons}");
        assert!(!reasons.contains("busy"), "{reasons}");
    }

    #[test]
    fn a_search_is_not_judged_as_a_run() {
        let mut sums = Sums::new(Model::default());
        let mut part = second(0, 200);
        part.phase = 1;
        sums.add(&part);
        assert!(sums.verdict().is_none());
    }
}

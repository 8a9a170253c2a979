//! Check that the speed of a feed or a visit is the target's.

use plimsoll_core::verdict::{Evidence, Verdict, VerdictKind, judge_rate};
use plimsoll_engine::run::RunEnd;
use plimsoll_report::assemble::rates;
use plimsoll_report::number::{lasting, percent};

/// Share of the time that waiting may take before the speed is no longer the target's.
const LIMITED: f64 = 0.2;
/// Share from which on it is worth a sentence.
const NOTICEABLE: f64 = 0.1;
/// Shortest feed or visit whose speed is judged, s: shares of a shorter one say nothing.
const SHORTEST_S: f64 = 0.5;

/// Time for which a job stood still for what is on this side of the network.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Duration of the waiting, s.
    pub waited_s: f64,
    /// Length of the whole, s.
    pub of_s: f64,
    /// Reason for the waiting.
    pub reason: &'static str,
}

impl Waiting {
    fn share(&self) -> f64 {
        if self.of_s < SHORTEST_S { 0.0 } else { self.waited_s / self.of_s }
    }

    fn words(&self) -> String {
        format!(
            "{}: plimsoll was busy with this for {} of {} ({}), so the target may be faster",
            self.reason,
            lasting(self.waited_s),
            lasting(self.of_s),
            percent(self.share())
        )
    }
}

/// The verdict of a job that is complete, compared with what plimsoll itself took; any other verdict says more.
#[must_use]
pub fn judge(of_job: Verdict, end: &RunEnd, waiting: Option<Waiting>) -> Verdict {
    let totals = &end.totals;
    let is_short = end.measured_s < SHORTEST_S && totals.counters.exhausted == 0;
    if of_job.kind != VerdictKind::Valid || is_short {
        return of_job;
    }
    let evidence = Evidence {
        rates: rates(&totals.ledger, &totals.counters, end.measured_s),
        measured_s: end.measured_s,
        open: false,
        health: end.health,
        ..Evidence::of(totals)
    };
    with_waiting(judge_rate(&evidence), waiting)
}

fn with_waiting(of_rate: Verdict, waiting: Option<Waiting>) -> Verdict {
    let Some(waiting) = waiting.filter(|waiting| waiting.share() >= NOTICEABLE) else {
        return of_rate;
    };
    let kind =
        if waiting.share() >= LIMITED { VerdictKind::GeneratorLimited } else { of_rate.kind };
    let mut reasons = of_rate.reasons;
    reasons.insert(0, waiting.words());
    Verdict { kind, reasons, ..of_rate }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_on_this_side_is_told_by_its_share() {
        let judged = |waited_s, of_s| {
            let reason = "the output was slower than the documents arrived";
            with_waiting(Verdict::default(), Some(Waiting { waited_s, of_s, reason }))
        };
        let free = judged(0.05, 1.0);
        assert_eq!((free.kind, free.reasons.len()), (VerdictKind::Valid, 0));
        let noticeable = judged(0.15, 1.0);
        assert_eq!((noticeable.kind, noticeable.reasons.len()), (VerdictKind::Valid, 1));
        let limited = judged(3.0, 4.0);
        assert_eq!(limited.kind, VerdictKind::GeneratorLimited);
        assert!(limited.reasons[0].contains("3.0 s of 4.0 s (75 %)"), "{:?}", limited.reasons);
        // What is over at once has had no time to wait.
        assert_eq!(judged(0.3, 0.4).kind, VerdictKind::Valid);
        assert_eq!(with_waiting(Verdict::default(), None).kind, VerdictKind::Valid);
    }
}

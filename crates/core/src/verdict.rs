//! May the result be believed?

use crate::interval::Interval;
use serde::{Deserialize, Serialize};

/// What kind of result a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
    /// The numbers are the target's.
    #[default]
    Valid,
    /// The generator was the limit; the numbers are not the target's.
    GeneratorLimited,
    /// No request succeeded, or the target could not be reached.
    TargetFailed,
    /// The run was cut short; the numbers cover what was done until then.
    Partial,
    /// No rate holds the limits.
    Infeasible,
    /// The target did not stay the same while it was measured, or got better with load.
    Unstable,
    /// The books do not balance: a defect of plimsoll.
    Void,
}

impl VerdictKind {
    /// The word used in records and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            VerdictKind::Valid => "valid",
            VerdictKind::GeneratorLimited => "generator-limited",
            VerdictKind::TargetFailed => "target-failed",
            VerdictKind::Partial => "partial",
            VerdictKind::Infeasible => "infeasible",
            VerdictKind::Unstable => "unstable",
            VerdictKind::Void => "void",
        }
    }
}

/// The judgement on a run, with its reasons in words.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// The kind that weighs most.
    pub kind: VerdictKind,
    /// Why, one sentence each.
    pub reasons: Vec<String>,
}

/// What a verdict is made from.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Everything measured.
    pub totals: &'a Interval,
    /// Whether the schedule had intended times of its own.
    pub open: bool,
    /// Whether the schedule was a closed one without pauses.
    pub full_speed: bool,
    /// Whether somebody stopped the run.
    pub interrupted: bool,
    /// Share of its time that the busiest shard had work, 0 to 1.
    pub busiest: f64,
    /// Whether target and generator share a machine.
    pub same_host: bool,
    /// How often the requests of the source were asked, on average.
    pub repeats: f64,
    /// Whether the machine of the target may answer repeats from a cache, as far as is known: always true
    /// for a real server.
    pub cacheable: bool,
}

/// A shard that is busier than this has no time left to be on time.
const BUSY: f64 = 0.97;
/// Lag of the generator itself that is tolerated whatever the latency, ns.
const LAG_FLOOR_NS: u64 = 1_000_000;
/// Share of the response time that the generator's own lag may make up.
const LAG_SHARE: f64 = 0.1;
/// Share of queries without hits from which on a warning is given.
const ZERO_HITS: f64 = 0.2;
/// How often the same requests may come round before caches are a worry.
const REPEATS: f64 = 10.0;

/// Judges a run.
#[must_use]
pub fn judge(evidence: &Evidence<'_>) -> Verdict {
    let ledger = &evidence.totals.ledger;
    if let Err(imbalance) = ledger.balance() {
        return Verdict { kind: VerdictKind::Void, reasons: vec![imbalance.to_string()] };
    }
    let mut kind = VerdictKind::Valid;
    let mut reasons = Vec::new();
    if evidence.interrupted {
        kind = VerdictKind::Partial;
        reasons
            .push("the run was stopped before its end; the numbers cover what was done".to_owned());
    }
    if ledger.scheduled == 0 && !evidence.interrupted {
        let reason =
            "no request fell into the measured stretch: there is nothing to judge".to_owned();
        return Verdict { kind: VerdictKind::Partial, reasons: vec![reason] };
    }
    if ledger.scheduled > 0 && ledger.ok == 0 && !(evidence.interrupted && ledger.finished() == 0) {
        kind = VerdictKind::TargetFailed;
        reasons.push(if ledger.finished() > 0 {
            format!("no request succeeded; all {} failed", ledger.finished())
        } else {
            "no request came to an end".to_owned()
        });
        return Verdict { kind, reasons };
    }
    if let Some(reason) = generator_limit(evidence) {
        if kind == VerdictKind::Valid {
            kind = VerdictKind::GeneratorLimited;
        }
        reasons.push(reason);
    }
    Verdict { kind, reasons }
}

fn generator_limit(evidence: &Evidence<'_>) -> Option<String> {
    let busy = evidence.busiest * 100.0;
    if evidence.full_speed {
        return (evidence.busiest > BUSY).then(|| {
            format!(
                "the generator had work {busy:.0} % of the time: the target may hold more; \
                 use more --threads or another machine"
            )
        });
    }
    let lag_p99_ns = evidence.totals.lag.quantile_ns(0.99);
    let response_p99_ns = evidence.totals.all_classes().response.quantile_ns(0.99);
    let allowed_ns = LAG_FLOOR_NS.max((response_p99_ns as f64 * LAG_SHARE) as u64);
    (lag_p99_ns > allowed_ns).then(|| {
        format!(
            "the generator itself was late: p99 of its lag is {:.2} ms (busy {busy:.0} %); \
             give it a core of its own, more --threads or another machine",
            lag_p99_ns as f64 / 1e6
        )
    })
}

/// The warning that holds for every kind of run.
#[must_use]
pub fn same_host_warning(evidence: &Evidence<'_>) -> Vec<String> {
    let text = "target and generator share this machine: they take CPU time from each other";
    evidence.same_host.then(|| text.to_owned()).into_iter().collect()
}

/// What a careful reader should know, although the result may be believed.
#[must_use]
pub fn warnings(evidence: &Evidence<'_>) -> Vec<String> {
    let totals = evidence.totals;
    let ledger = &totals.ledger;
    let mut warnings = same_host_warning(evidence);
    let all = totals.all_classes();
    if all.hits_known > 0 {
        let share = all.zero_hits as f64 / all.hits_known as f64;
        if share > ZERO_HITS {
            warnings.push(format!(
                "{:.0} % of the queries found nothing: such queries are cheap and flatter the latency",
                share * 100.0
            ));
        }
    }
    if evidence.cacheable && evidence.repeats > REPEATS {
        warnings.push(format!(
            "each request was asked {:.0} times on average: caches may have answered",
            evidence.repeats
        ));
    }
    let finished = ledger.finished();
    if finished > 0 && ledger.failed.total() * 100 > finished {
        warnings.push(format!(
            "{:.1} % of the requests failed; their times are in the failed histogram only",
            ledger.failed.total() as f64 * 100.0 / finished as f64
        ));
    }
    if evidence.open && ledger.unsent.stopped > 0 {
        warnings.push(format!(
            "{} requests were due and could not be sent before the end, nor soon after it: the target did not \
             keep up, and their waiting is missing from the latency",
            ledger.unsent.stopped
        ));
    }
    if totals.counters.waited * 20 > ledger.sent.max(1) {
        warnings.push(format!(
            "{:.0} % of the requests waited for a free connection (counted in their response time); \
             more --connections would ask more of the target at once",
            totals.counters.waited as f64 * 100.0 / ledger.sent as f64
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(ok: u64, failed: u64) -> Interval {
        let mut totals = Interval::new(1);
        totals.ledger.scheduled = ok + failed;
        totals.ledger.sent = ok + failed;
        totals.ledger.ok = ok;
        totals.ledger.failed.reset = failed;
        for _ in 0..ok {
            totals.classes[0].response.record(10_000_000);
            totals.lag.record(20_000);
        }
        totals
    }

    fn evidence(totals: &Interval) -> Evidence<'_> {
        Evidence {
            totals,
            open: true,
            full_speed: false,
            interrupted: false,
            busiest: 0.2,
            same_host: false,
            repeats: 1.0,
            cacheable: true,
        }
    }

    #[test]
    fn kinds_in_the_order_of_their_weight() {
        let good = totals(100, 0);
        assert_eq!(judge(&evidence(&good)).kind, VerdictKind::Valid);
        let stopped = Evidence { interrupted: true, ..evidence(&good) };
        assert_eq!(judge(&stopped).kind, VerdictKind::Partial);
        let busy = Evidence { full_speed: true, busiest: 0.99, ..evidence(&good) };
        assert_eq!(judge(&busy).kind, VerdictKind::GeneratorLimited);
        let dead = totals(0, 5);
        assert_eq!(judge(&evidence(&dead)).kind, VerdictKind::TargetFailed);
        assert_eq!(judge(&evidence(&totals(0, 0))).kind, VerdictKind::Partial);
        let mut cooked = totals(1, 0);
        cooked.ledger.sent += 1;
        assert_eq!(judge(&evidence(&cooked)).kind, VerdictKind::Void);
    }

    #[test]
    fn a_late_generator_says_so() {
        let mut late = totals(100, 0);
        for _ in 0..10 {
            late.lag.record(8_000_000);
        }
        let verdict = judge(&evidence(&late));
        assert_eq!(verdict.kind, VerdictKind::GeneratorLimited);
        assert!(verdict.reasons[0].contains("lag"), "{:?}", verdict.reasons);
    }

    #[test]
    fn warnings_name_what_flatters() {
        let mut totals = totals(100, 5);
        totals.classes[0].hits_known = 100;
        totals.classes[0].zero_hits = 60;
        let evidence = Evidence { same_host: true, repeats: 50.0, ..evidence(&totals) };
        assert_eq!(warnings(&evidence).len(), 4, "{:?}", warnings(&evidence));
    }
}

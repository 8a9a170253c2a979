//! May the result be believed?
//!
//! A verdict has three grades: valid; valid within bounds, where delays of the generator may have moved a figure
//! noticeably and it is known how far; and not the target's. The bounds of the headline figures are always given.

mod effects;
mod generator;
mod health;
mod warnings;

pub use effects::{Bound, Bounds};
pub use generator::held_up_by;
pub use health::Health;
pub use warnings::{same_host_warning, warnings};

use crate::histogram::Histogram;
use crate::interval::Interval;
use crate::record::Rates;
use crate::units::Share;
use serde::{Deserialize, Serialize};

/// Kind of a run's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
    /// The numbers are the target's.
    #[default]
    Valid,
    /// The generator was the limit; the numbers are not the target's.
    GeneratorLimited,
    /// A limit of connections shaped the result.
    ConnectionLimited,
    /// No request succeeded, most failed, the target stopped serving, or it could not be reached.
    TargetFailed,
    /// The run was cut short; the numbers cover what was done until then.
    Partial,
    /// No rate holds the limits.
    Infeasible,
    /// A search had too little time to certify a rate.
    BudgetTooSmall,
    /// The target did not stay the same while it was measured, or got better with load.
    Unstable,
    /// The ledger does not balance: a defect of plimsoll.
    Void,
    /// Another tool measured the figures; plimsoll read them from a file and judges nothing of them.
    Imported,
}

impl VerdictKind {
    /// The word used in records and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            VerdictKind::Valid => "valid",
            VerdictKind::GeneratorLimited => "generator-limited",
            VerdictKind::ConnectionLimited => "connection-limited",
            VerdictKind::TargetFailed => "target-failed",
            VerdictKind::Partial => "partial",
            VerdictKind::Infeasible => "infeasible",
            VerdictKind::BudgetTooSmall => "budget-too-small",
            VerdictKind::Unstable => "unstable",
            VerdictKind::Void => "void",
            VerdictKind::Imported => "imported",
        }
    }
}

/// The judgement on a run, with its reasons in words.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The kind that weighs most.
    pub kind: VerdictKind,
    /// The reason, one sentence each. Of a valid result: how far a figure may be off, where that is noticeable.
    pub reasons: Vec<String>,
    /// The intervals in which the headline figures lie that an ideal generator would have measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
}

impl Verdict {
    /// A job's own judgement, which knows of no bounds.
    #[must_use]
    pub const fn new(kind: VerdictKind, reasons: Vec<String>) -> Self {
        Self { kind, reasons, bounds: None }
    }

    /// The second grade: valid, and the reasons say how far a figure may be off. The reasons of a job's own judgement
    /// say something else.
    #[must_use]
    pub fn is_within_bounds(&self) -> bool {
        self.kind == VerdictKind::Valid && self.bounds.is_some() && !self.reasons.is_empty()
    }
}

/// Origin of the number of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionLimit {
    /// Nothing bounds it: every client has its own, or slots are fewer.
    #[default]
    None,
    /// It grew with need and did not come to an end of that: what waited for a connection waited for plimsoll to open it.
    Grown,
    /// The user named this many.
    Asked(u32),
    /// The most that plimsoll opens by itself.
    Own(u32),
    /// The most that this machine lets the process open.
    Machine(u32),
}

/// Evidence for a verdict.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Everything measured.
    pub totals: &'a Interval,
    /// Requests per second.
    pub rates: Rates,
    /// Length of the measured stretch, s.
    pub measured_s: f64,
    /// True if the schedule had intended times of its own.
    pub open: bool,
    /// True if the schedule was a closed one without pauses.
    pub full_speed: bool,
    /// Clients of a closed schedule.
    pub clients: Option<u32>,
    /// Threads of the generator.
    pub threads: u32,
    /// Limit of the number of connections.
    pub connections: ConnectionLimit,
    /// True if the user stopped the run.
    pub interrupted: bool,
    /// Time from the last success to the end of the stretch, s, and the number of failed requests after it.
    pub since_success: (f64, u64),
    /// Share of the requests that may fail before the result is no longer the target's.
    pub max_failed: f64,
    /// Measurements of the generator itself.
    pub health: Health,
    /// True if target and generator share a machine.
    pub same_host: bool,
    /// Number of times that the requests of the source were asked, on average.
    pub repeats: f64,
    /// True if the machine of the target may answer repeats from a cache, as far as is known: always true
    /// for a real server.
    pub cacheable: bool,
}

/// Share of the requests that may fail unless the user says otherwise.
pub const MAX_FAILED: f64 = 0.5;
/// Requests that a silent target must lose before it has stopped serving; in a closed run, one for each client is enough.
const STOPPED_REQUESTS: u64 = 10;
/// Share of the stretch without a success from which a target is silent; at least 1 s.
const STOPPED_SHARE: f64 = 0.05;

impl<'a> Evidence<'a> {
    /// The evidence of an open run of which nothing else is known.
    #[must_use]
    pub fn of(totals: &'a Interval) -> Self {
        Self {
            totals,
            rates: Rates::default(),
            measured_s: totals.seconds(),
            open: true,
            full_speed: false,
            clients: None,
            threads: 1,
            connections: ConnectionLimit::None,
            interrupted: false,
            since_success: (0.0, 0),
            max_failed: MAX_FAILED,
            health: Health::default(),
            same_host: false,
            repeats: 0.0,
            cacheable: false,
        }
    }
}

/// Judges a run.
#[must_use]
pub fn judge(evidence: &Evidence<'_>) -> Verdict {
    let ledger = &evidence.totals.ledger;
    if let Err(imbalance) = ledger.balance() {
        return Verdict::new(VerdictKind::Void, vec![imbalance.to_string()]);
    }
    let mut reasons = Vec::new();
    if evidence.interrupted {
        reasons.push(format!(
            "the run was stopped before its end, after {:.3} s; the figures cover that time",
            evidence.measured_s
        ));
    }
    if ledger.scheduled == 0 && !evidence.interrupted {
        let reason =
            "no request was due in the measured time, so there is nothing to judge".to_owned();
        return Verdict::new(VerdictKind::Partial, vec![reason]);
    }
    if ledger.scheduled > 0 && ledger.ok == 0 && !(evidence.interrupted && ledger.finished() == 0) {
        reasons.push(if ledger.finished() > 0 {
            format!("no request succeeded; all {} failed", ledger.finished())
        } else {
            "no request ended".to_owned()
        });
        if evidence.totals.counters.exhausted == 0 {
            return Verdict::new(VerdictKind::TargetFailed, reasons);
        }
        // The target may never have been asked.
        reasons.extend(generator::judge(evidence).limits);
        return Verdict::new(VerdictKind::GeneratorLimited, reasons);
    }
    let generator = generator::judge(evidence);
    let bounds = Some(generator.bounds);
    let failed = target_failure(evidence);
    let is_limited = !generator.limits.is_empty() || generator.late.is_some();
    let kind = if evidence.interrupted {
        VerdictKind::Partial
    } else if evidence.totals.counters.exhausted > 0 {
        // What failed for want of a port says nothing about the target.
        VerdictKind::GeneratorLimited
    } else if failed.is_some() {
        VerdictKind::TargetFailed
    } else if is_limited {
        VerdictKind::GeneratorLimited
    } else if generator.connections.is_some() {
        VerdictKind::ConnectionLimited
    } else {
        VerdictKind::Valid
    };
    reasons.extend(failed);
    reasons.extend(generator.limits);
    reasons.extend(generator.late);
    reasons.extend(generator.connections);
    reasons.extend(generator.effects);
    Verdict { kind, reasons, bounds }
}

/// Reason why the generator was the limit, if it was, whatever else there is to say of the run.
#[must_use]
pub fn generator_limit(evidence: &Evidence<'_>) -> Option<String> {
    let generator = generator::judge(evidence);
    generator.limits.into_iter().chain(generator.late).next()
}

/// Returns true if nothing but its own delays made the generator the limit. They may be small beside what the run is about.
#[must_use]
pub fn is_merely_late(evidence: &Evidence<'_>) -> bool {
    let generator = generator::judge(evidence);
    generator.limits.is_empty() && generator.late.is_some()
}

/// Judges a job of which a rate is the only figure: whether the generator was what limited it, and if not, how much
/// higher it may have been.
#[must_use]
pub fn judge_rate(evidence: &Evidence<'_>) -> Verdict {
    let (limits, effect) = generator::judge_rate(evidence);
    let kind = match limits.is_empty() {
        true => VerdictKind::Valid,
        false => VerdictKind::GeneratorLimited,
    };
    Verdict::new(kind, limits.into_iter().chain(effect).collect())
}

/// Reason why the target did not serve, if most requests failed and the others do not represent it.
fn target_failure(evidence: &Evidence<'_>) -> Option<String> {
    let ledger = &evidence.totals.ledger;
    let failed = ledger.failed.total();
    if !Share(evidence.max_failed).allows(failed, ledger.finished()) {
        return Some(format!(
            "{:.1} % of the requests failed, more than the {} % that --max-failed allows",
            failed as f64 * 100.0 / ledger.finished().max(1) as f64,
            // Rounding away what the division by 100 added.
            (evidence.max_failed * 1e8).round() / 1e6
        ));
    }
    stopped_serving(evidence)
}

/// Reason why the target is taken to have stopped serving, if it is.
fn stopped_serving(evidence: &Evidence<'_>) -> Option<String> {
    let (silent_s, failed_since) = evidence.since_success;
    if silent_s < (evidence.measured_s * STOPPED_SHARE).max(1.0) {
        return None;
    }
    let (ledger, all) = (&evidence.totals.ledger, evidence.totals.all_classes());
    // The user stopped the wait for them. A target that takes long for everything may yet have answered.
    let may_still_come = silent_s < all.response.max_ns() as f64 / 1e9;
    let waited_for = if may_still_come { 0 } else { ledger.unfinished };
    let lost = failed_since + waited_for;
    // Fewer clients than that cannot lose that many while they wait. All of them have waited, for most of the silence, and
    // most of what was lost was lost then: a target that never answers a share of its requests keeps few clients waiting too.
    let everybody_waits = evidence.clients.is_some_and(|clients| {
        let sum_s = |times: &Histogram| times.mean_ns() * times.count() as f64 / 1e9;
        let waited_s = sum_s(&all.failed) + sum_s(&evidence.totals.unserved);
        lost >= u64::from(clients)
            && lost * 2 > ledger.failed.total() + waited_for
            && waited_s * 2.0 > silent_s * f64::from(clients)
    });
    if lost < STOPPED_REQUESTS && !everybody_waits {
        return None;
    }
    let mut what = Vec::new();
    if failed_since > 0 {
        what.push(format!("{failed_since} failed"));
    }
    if waited_for > 0 {
        what.push(format!("{waited_for} were still waited for when the run was stopped"));
    }
    Some(format!(
        "the target stopped serving: no request succeeded in the last {silent_s:.1} s, and {}",
        what.join(", ")
    ))
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
        let health = Health { busy: 0.2, ..Health::default() };
        Evidence { measured_s: 10.0, health, cacheable: true, repeats: 1.0, ..Evidence::of(totals) }
    }

    fn busy(busy: f64) -> Health {
        Health { busy, ..Health::default() }
    }

    #[test]
    fn kinds_in_the_order_of_their_weight() {
        let good = totals(100, 0);
        assert_eq!(judge(&evidence(&good)).kind, VerdictKind::Valid);
        let stopped = Evidence { interrupted: true, ..evidence(&good) };
        assert_eq!(judge(&stopped).kind, VerdictKind::Partial);
        let saturated = Evidence { full_speed: true, health: busy(0.99), ..evidence(&good) };
        assert_eq!(judge(&saturated).kind, VerdictKind::GeneratorLimited);
        let dead = totals(0, 5);
        assert_eq!(judge(&evidence(&dead)).kind, VerdictKind::TargetFailed);
        assert_eq!(judge(&evidence(&totals(0, 0))).kind, VerdictKind::Partial);
        let mut cooked = totals(1, 0);
        cooked.ledger.sent += 1;
        assert_eq!(judge(&evidence(&cooked)).kind, VerdictKind::Void);
    }

    /// A target that fails most of what it is asked has no latency, however fast the rest was.
    #[test]
    fn a_run_that_mostly_failed_is_not_valid() {
        let half = totals(50, 50);
        assert_eq!(judge(&evidence(&half)).kind, VerdictKind::Valid);
        let most = totals(49, 51);
        assert_eq!(judge(&evidence(&most)).kind, VerdictKind::TargetFailed);
        let strict = Evidence { max_failed: 0.05, ..evidence(&half) };
        let verdict = judge(&strict);
        assert_eq!(verdict.kind, VerdictKind::TargetFailed);
        assert!(verdict.reasons[0].contains("50.0 %") && verdict.reasons[0].contains("the 5 %"));
        // In binary the share is a little less than what was written.
        let some = totals(993, 7);
        let exact = Evidence { max_failed: "0.7%".parse::<Share>().unwrap().0, ..evidence(&some) };
        assert_eq!(judge(&exact).kind, VerdictKind::Valid);
    }

    #[test]
    fn a_target_that_stopped_serving_is_not_valid() {
        let mostly = totals(900, 100);
        let stopped = Evidence { since_success: (2.0, 90), ..evidence(&mostly) };
        assert_eq!(judge(&stopped).kind, VerdictKind::TargetFailed);
        for alive in [(0.4, 90), (2.0, 9)] {
            let alive = Evidence { since_success: alive, ..evidence(&mostly) };
            assert_eq!(judge(&alive).kind, VerdictKind::Valid);
        }
    }

    /// Eight clients that each wait for their last answer until it times out fail eight requests, and no more.
    #[test]
    fn a_target_that_hangs_in_a_closed_run_stopped_serving() {
        fn closed(totals: &Interval, clients: u32, since_success: (f64, u64)) -> VerdictKind {
            let clients = Some(clients);
            judge(&Evidence { open: false, clients, since_success, ..evidence(totals) }).kind
        }
        let failing = |ok, failed, took_ns| {
            let mut totals = totals(ok, failed);
            totals.classes[0].failed.record_many(took_ns, failed);
            totals
        };
        let hung = failing(100_000, 8, 30_000_000_000);
        assert_eq!(closed(&hung, 8, (5.0, 8)), VerdictKind::TargetFailed);
        assert_eq!(closed(&hung, 9, (5.0, 8)), VerdictKind::Valid, "one did not ask");
        assert_eq!(closed(&hung, 8, (0.9, 8)), VerdictKind::Valid);
        // A client that asks every five seconds, and whose last request was rejected at once.
        assert_eq!(closed(&failing(11, 1, 2_000_000), 1, (10.0, 1)), VerdictKind::Valid);
        // A target that never answers a share of what it is asked keeps two clients waiting all the time, and serves.
        let share = failing(66, 6, 3_000_000_000);
        assert_eq!(closed(&share, 2, (2.5, 2)), VerdictKind::Valid);
    }

    /// Ctrl-C while the last replies are waited for makes nothing of what was never answered.
    #[test]
    fn a_target_that_hung_is_not_valid_because_nobody_waited_for_it() {
        let mut hung = totals(500, 0);
        hung.ledger.scheduled += 500;
        hung.ledger.sent += 500;
        hung.ledger.unfinished = 500;
        let stopped = Evidence { since_success: (5.0, 0), ..evidence(&hung) };
        let verdict = judge(&stopped);
        assert_eq!(verdict.kind, VerdictKind::TargetFailed, "{verdict:?}");
        assert!(verdict.reasons[0].contains("500 were still waited for"), "{verdict:?}");
        // A target that takes 10 s for everything has not stopped after 5 s.
        hung.classes[0].response.record(10_000_000_000);
        hung.ledger.ok += 1;
        hung.ledger.scheduled += 1;
        hung.ledger.sent += 1;
        let slow = Evidence { since_success: (5.0, 0), ..evidence(&hung) };
        assert_eq!(judge(&slow).kind, VerdictKind::Valid);
    }

    #[test]
    fn a_verdict_is_within_bounds_only_where_it_names_them() {
        let one = vec!["p99 may be 3.00 ms too high".to_owned()];
        let bounds = Some(Bounds::default());
        let within = Verdict { bounds, ..Verdict::new(VerdictKind::Valid, one.clone()) };
        assert!(within.is_within_bounds());
        assert!(!Verdict::new(VerdictKind::Valid, one.clone()).is_within_bounds());
        assert!(!Verdict { bounds, ..Verdict::new(VerdictKind::Valid, vec![]) }.is_within_bounds());
        assert!(!Verdict { bounds, ..Verdict::new(VerdictKind::Partial, one) }.is_within_bounds());
    }
}

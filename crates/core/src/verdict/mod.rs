//! May the result be believed?
//!
//! A verdict has three grades: valid; valid within bounds, where delays of the generator may have moved a figure
//! noticeably and it is known how far; and not the target's. The bounds of the headline figures are always given.

mod effects;
mod generator;
mod health;
mod warnings;

pub use effects::{Bound, Bounds};
pub use health::Health;
pub use warnings::{same_host_warning, warnings};

use crate::interval::Interval;
use crate::record::Rates;
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
    /// A limit of connections shaped the result.
    ConnectionLimited,
    /// No request succeeded, most failed, the target stopped serving, or it could not be reached.
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
            VerdictKind::ConnectionLimited => "connection-limited",
            VerdictKind::TargetFailed => "target-failed",
            VerdictKind::Partial => "partial",
            VerdictKind::Infeasible => "infeasible",
            VerdictKind::Unstable => "unstable",
            VerdictKind::Void => "void",
        }
    }
}

/// The judgement on a run, with its reasons in words.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// The kind that weighs most.
    pub kind: VerdictKind,
    /// Why, one sentence each. Of a valid result: how far a figure may be off, where that is noticeable.
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
}

/// Where the number of connections comes from.
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

/// What a verdict is made from.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Everything measured.
    pub totals: &'a Interval,
    /// Requests per second.
    pub rates: Rates,
    /// Length of the measured stretch, s.
    pub measured_s: f64,
    /// Whether the schedule had intended times of its own.
    pub open: bool,
    /// Whether the schedule was a closed one without pauses.
    pub full_speed: bool,
    /// Clients of a closed schedule.
    pub clients: Option<u32>,
    /// Threads of the generator.
    pub threads: u32,
    /// What bounded the number of connections.
    pub connections: ConnectionLimit,
    /// Whether somebody stopped the run.
    pub interrupted: bool,
    /// How long before the end of the stretch the last success ended, s, and how many requests failed after it.
    pub since_success: (f64, u64),
    /// Share of the requests that may fail before the result is no longer the target's.
    pub max_failed: f64,
    /// What the generator measured of itself.
    pub health: Health,
    /// Whether target and generator share a machine.
    pub same_host: bool,
    /// How often the requests of the source were asked, on average.
    pub repeats: f64,
    /// Whether the machine of the target may answer repeats from a cache, as far as is known: always true
    /// for a real server.
    pub cacheable: bool,
}

/// Share of the requests that may fail unless the user says otherwise.
pub const MAX_FAILED: f64 = 0.5;
/// A target that fails this many requests in a row, and
const STOPPED_REQUESTS: u64 = 10;
/// for this share of the stretch, but not for less than a second, has stopped serving.
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
            "no request fell into the measured stretch: there is nothing to judge".to_owned();
        return Verdict::new(VerdictKind::Partial, vec![reason]);
    }
    if ledger.scheduled > 0 && ledger.ok == 0 && !(evidence.interrupted && ledger.finished() == 0) {
        reasons.push(if ledger.finished() > 0 {
            format!("no request succeeded; all {} failed", ledger.finished())
        } else {
            "no request came to an end".to_owned()
        });
        return Verdict::new(VerdictKind::TargetFailed, reasons);
    }
    let generator = generator::judge(evidence);
    let bounds = Some(generator.bounds);
    let failed = target_failure(evidence);
    let kind = if evidence.interrupted {
        VerdictKind::Partial
    } else if !generator.limits.is_empty() && evidence.totals.counters.exhausted > 0 {
        // What failed for want of a port says nothing about the target.
        VerdictKind::GeneratorLimited
    } else if failed.is_some() {
        VerdictKind::TargetFailed
    } else if !generator.limits.is_empty() {
        VerdictKind::GeneratorLimited
    } else if generator.connections.is_some() {
        VerdictKind::ConnectionLimited
    } else {
        VerdictKind::Valid
    };
    reasons.extend(failed);
    reasons.extend(generator.limits);
    reasons.extend(generator.connections);
    reasons.extend(generator.effects);
    Verdict { kind, reasons, bounds }
}

/// Why the generator was the limit, if it was, whatever else there is to say of the run.
#[must_use]
pub fn generator_limit(evidence: &Evidence<'_>) -> Option<String> {
    generator::judge(evidence).limits.into_iter().next()
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

/// Why the target did not serve, if so many requests failed that the others do not stand for it.
fn target_failure(evidence: &Evidence<'_>) -> Option<String> {
    let ledger = &evidence.totals.ledger;
    let failed = ledger.failed.total();
    let share = failed as f64 / ledger.finished().max(1) as f64;
    if share > evidence.max_failed {
        return Some(format!(
            "{:.1} % of the requests failed, more than the {} % that --max-failed allows",
            share * 100.0,
            // Rounding away what the division by 100 added.
            (evidence.max_failed * 1e8).round() / 1e6
        ));
    }
    let (silent_s, failed_since) = evidence.since_success;
    let long_s = (evidence.measured_s * STOPPED_SHARE).max(1.0);
    (failed_since >= STOPPED_REQUESTS && silent_s >= long_s).then(|| {
        format!(
            "the target stopped serving: no request succeeded in the last {silent_s:.1} s, and {failed_since} failed"
        )
    })
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
}

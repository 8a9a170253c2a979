//! Result of a search, and its events on the way.

use super::basis::Basis;
use super::goal::Limit;
use super::plant::{LIMITS_MAX, Window};
use super::steps::{Step, StepKind};
use super::watched::Watched;
use serde::{Deserialize, Serialize};

/// The way a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SeekVerdict"))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The line was found, to the wanted width or with the width that is reported.
    Ok,
    /// The generator could not send as planned before the target broke a limit.
    GeneratorLimited,
    /// No rate was found that holds the limits.
    Infeasible,
    /// The limits held at the highest rate that may be offered.
    NeverViolated {
        /// That rate, per second.
        at_least_per_s: f64,
    },
    /// A limit is broken at a low rate and holds at a higher one.
    NonMonotone,
    /// The target got faster or slower while it was measured.
    Drifting,
    /// The time was over before the line was known to the wanted width.
    BudgetTooSmall,
    /// The target stopped answering.
    TargetFailed,
    /// The user stopped the search.
    Interrupted,
}

/// A rate at which one contiguous run was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// Offered, requests per second.
    pub rate_per_s: f64,
    /// Length of the run, s.
    pub seconds: f64,
    /// Requests due.
    pub scheduled: u64,
    /// Late share for each limit of the goal, of the requests that it judges.
    pub late_share: Vec<f64>,
    /// Mean response time, s.
    pub response_mean_s: f64,
    /// Requests that failed.
    pub failed: u64,
}

impl Measured {
    /// From counts.
    #[must_use]
    pub fn new(rate_per_s: f64, seconds: f64, limits: usize, counts: &Window) -> Self {
        let n = counts.scheduled.max(1) as f64;
        Self {
            rate_per_s,
            seconds,
            scheduled: counts.scheduled,
            late_share: (0..limits.min(LIMITS_MAX)).map(|at| counts.late_share(at)).collect(),
            response_mean_s: counts.response_sum_s / n,
            failed: counts.failed,
        }
    }
}

/// Phase of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SeekPhase"))]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Low load until response times stand still.
    WarmUp,
    /// Doubling until a limit breaks.
    Ramp,
    /// A little overload: what the target can at most.
    Capacity,
    /// Short looks between the highest rate that held and the lowest that did not.
    Bracket,
    /// The first blocks near the line: how bursty lateness is there, and how long the rest will take.
    Pilot,
    /// Blocks on both sides of the line.
    Focus,
    /// Contiguous runs closely below the line until one holds.
    Certify,
    /// Blocks on both sides of the line, and a look at the capacity, over and over.
    Watch,
}

/// Beginning and end of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseSpan {
    /// The phase.
    pub phase: Phase,
    /// Its beginning since the search's start, s.
    pub from_s: f64,
    /// Its end, s.
    pub until_s: f64,
}

/// Time that it takes to know the line to the wanted width.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Forecast {
    /// Load at the line, s.
    pub measuring_s: f64,
    /// The whole search, s, with all that was spent before and certification after.
    pub total_s: f64,
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The way it ended.
    pub verdict: Verdict,
    /// One sentence: why, and what can be done.
    pub reason: String,
    /// The headline: the highest rate closely below the estimate whose run held every limit. None if no run did.
    pub certified: Option<Measured>,
    /// True if that run was the search's last; an earlier one is taken if time was over before a last one held.
    pub certified_last: bool,
    /// The lowest rate above it that surely breaks a limit: above the interval, or beyond what the target completes.
    pub failing: Option<Measured>,
    /// The lowest rate above it, and below `failing`, at which a limit was broken in a look or a run that may have been
    /// bad luck.
    #[serde(default)]
    pub broke: Option<Measured>,
    /// Best estimate of the line, requests per second.
    pub estimate_per_s: Option<f64>,
    /// The interval that holds the line with the wanted confidence, requests per second.
    pub interval_per_s: Option<(f64, f64)>,
    /// The confidence, above 0 and below 1.
    pub confidence: f64,
    /// Half of the interval's width over the estimate.
    pub half_width: Option<f64>,
    /// The last forecast.
    pub forecast: Option<Forecast>,
    /// The first forecast, made after the pilot.
    pub forecast_first: Option<Forecast>,
    /// Requests per second that the overloaded target completed, if it was overloaded.
    pub capacity_per_s: Option<f64>,
    /// The most that it completes for a while, requests per second, if that is more than under overload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_per_s: Option<f64>,
    /// Mean response time at the lowest load, s.
    pub floor_s: Option<f64>,
    /// The limit that breaks first, by its label.
    pub binding: Option<String>,
    /// Slope of the late share's logit over the logarithm of the rate, at the line.
    pub slope: Option<f64>,
    /// Every rate that was measured, in ascending order.
    pub curve: Vec<Measured>,
    /// The phases in order.
    pub phases: Vec<PhaseSpan>,
    /// The limits, in the order of the late shares; none in records of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// The way of the search, in the order of time; none in records of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Changes of the target that were seen; what stands above is of the time since the last one.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// Since when the target was the same as at the end, s since the start.
    #[serde(default)]
    pub since_s: f64,
    /// Parts of the search that were offered once more because the generator was late in them.
    #[serde(default)]
    pub repeated: u32,
    /// The evidence behind the line.
    #[serde(default)]
    pub basis: Basis,
    /// Assumptions, observations and ways to narrow the interval, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The line over time, where the target was followed; there is no certified rate and no one estimate then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Vec<Watched>>,
    /// Time it took, s.
    pub elapsed_s: f64,
}

/// A change of the target, seen in what it completes under overload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// Last moment at which the target was as before, s since the start.
    pub from_s: f64,
    /// First moment at which it was seen to have changed, s since the start.
    pub until_s: f64,
    /// Capacity before the change, requests per second.
    pub before_per_s: f64,
    /// Capacity after the change, requests per second.
    pub after_per_s: f64,
}

/// Something to show while a search runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A phase begins.
    Phase {
        /// The phase.
        phase: Phase,
        /// Since the start, s.
        at_s: f64,
    },
    /// A look at one rate.
    Probed {
        /// The measurement.
        seen: Measured,
        /// True if all limits held.
        held: bool,
    },
    /// The line is between these rates, as far as short looks can say; the upper one may be infinite.
    Bracket {
        /// Highest rate that held, per second.
        low_per_s: f64,
        /// Lowest rate that did not, per second.
        high_per_s: f64,
    },
    /// Rate that the target completes under overload, per second.
    Capacity {
        /// Requests per second.
        per_s: f64,
    },
    /// The most that the target completes for a while, where that is more than under overload.
    Peak {
        /// Requests per second.
        per_s: f64,
    },
    /// The target is not what it was.
    Changed(Change),
    /// The line as it is thought to be after another order of blocks.
    Estimate {
        /// Requests per second.
        per_s: f64,
        /// Its interval, requests per second.
        interval_per_s: (f64, f64),
        /// Since the start, s.
        at_s: f64,
    },
    /// Time that it will take.
    Forecast(Forecast),
    /// Another stretch of a target that is followed ended.
    Watched(Watched),
    /// A certifying run ended.
    Certified {
        /// The measurement.
        seen: Measured,
        /// True if all limits held.
        held: bool,
    },
}

impl Event {
    /// Returns the step of the search that the event reports at `at_s` seconds since the start; `None` for an event that the
    /// finding keeps elsewhere.
    #[must_use]
    pub fn step(&self, at_s: f64) -> Option<Step> {
        let (kind, rate, ends, held) = match self {
            Self::Probed { seen, held } => {
                (StepKind::Look, Some(seen.rate_per_s), None, Some(*held))
            }
            Self::Bracket { low_per_s, high_per_s } => {
                (StepKind::Bracket, None, Some((*low_per_s, *high_per_s)), None)
            }
            Self::Estimate { per_s, interval_per_s, .. } => {
                (StepKind::Estimate, Some(*per_s), Some(*interval_per_s), None)
            }
            Self::Certified { seen, held } => {
                (StepKind::Run, Some(seen.rate_per_s), None, Some(*held))
            }
            _ => return None,
        };
        // JSON has no infinity: a bracket without an upper end has none.
        let finite = |rate: f64| Some(rate).filter(|rate| rate.is_finite());
        let (low, high) = (ends.map(|ends| ends.0), ends.map(|ends| ends.1));
        Some(Step {
            kind,
            at_s,
            rate_per_s: rate.and_then(finite),
            low_per_s: low.and_then(finite),
            high_per_s: high.and_then(finite),
            held,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_bracket_has_no_upper_end() {
        let event = Event::Bracket { low_per_s: 8.0, high_per_s: f64::INFINITY };
        let step = event.step(3.0).expect("a step");
        assert_eq!((step.low_per_s, step.high_per_s, step.held), (Some(8.0), None, None));
        let text = serde_json::to_string(&step).expect("JSON");
        assert_eq!(text, r#"{"kind":"bracket","at_s":3.0,"low_per_s":8.0}"#);
        assert_eq!(serde_json::from_str::<Step>(&text).expect("a step"), step);
        assert!(Event::Capacity { per_s: 1.0 }.step(0.0).is_none());
        assert!(Event::Peak { per_s: 1.0 }.step(0.0).is_none());
    }
}

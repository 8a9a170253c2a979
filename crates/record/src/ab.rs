//! Result of a comparison of two sides under the same load (`ab`).

use plimsoll_core::verdict::VerdictKind;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The two sides, what was measured of each in pairs of blocks, and the answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AbResult {
    /// Job of the blocks; `command` if the blocks run another program.
    pub job: String,
    /// The side that the other one is compared with.
    pub a: AbSide,
    /// The side that is better, worse or the same.
    pub b: AbSide,
    /// The metrics: those that the user named first, with an answer; then the others, without one.
    pub metrics: Vec<AbMetric>,
    /// Pairs of blocks from which the answers come.
    pub pairs: u64,
    /// Pairs that fit the time.
    pub pairs_planned: u64,
    /// Pairs of which a block was left out.
    pub pairs_left_out: u64,
    /// Largest chance of a wrong claim in the whole comparison, 0 to 1 (`--error`).
    pub error: f64,
    /// Relative difference below which two sides are the same, 0 to 1 (`--margin`).
    pub margin: f64,
    /// Seed of the order in each pair, and of the blocks.
    pub seed: u64,
    /// True if both blocks of a pair ran at once, each on processors of its own (`--duet`).
    pub duet: bool,
    /// The reason why it ended.
    pub ended: AbEnd,
    /// Time that the whole took, s.
    pub spent_s: f64,
    /// The blocks as they were planned.
    pub plan: AbPlan,
    /// The judgement of the generator over all blocks.
    pub generator: AbGenerator,
    /// Rules of `--fail-on`, and what the intervals say of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<AbRule>,
    /// Facts that a reader needs for the figures, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// All pairs, in the order of time.
    pub blocks: Vec<AbPair>,
}

/// One side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AbSide {
    /// The difference from the other side in words: an address, flags, a program.
    pub name: String,
    /// Command line of its first block, secrets left out.
    pub command: Vec<String>,
    /// Version and commit of the program that made its load; empty if unknown.
    pub tool: String,
    /// Measured relaxation time, s: how long the side remembers its state; null if nothing was measured of it.
    pub relaxation_s: Option<f64>,
    /// Seconds at the beginning of the pilot that differed from the rest.
    pub beginning_s: f64,
}

/// The blocks as they were planned from the measured relaxation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AbPlan {
    /// Measured length of a block, s; null if a block is a whole run of its own length.
    pub block_s: Option<f64>,
    /// Time that is left out at the beginning of each block, s.
    pub discard_s: f64,
    /// Length of a pair with everything around it, s, as the pilot showed it.
    pub pair_s: f64,
    /// Time of both pilots, s.
    pub pilot_s: f64,
    /// Reason for these lengths.
    pub reason: String,
}

/// The reason why a comparison ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AbEnd {
    /// Every named metric has an answer, or the planned number of pairs was reached.
    Settled,
    /// The time was over.
    #[default]
    Budget,
    /// The user stopped it.
    Stopped,
    /// A block could not be measured.
    Failed,
}

/// Judgement of the generator: whether it was the limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AbGenerator {
    /// False if the blocks are generators that are compared, or another program's: then nothing is judged.
    pub is_judged: bool,
    /// True if the generator was the limit, so that nothing is claimed.
    pub is_limit: bool,
    /// True if its own delays might have shaped the times, and were small beside them: answers on percentiles and the mean are at equal
    /// delays of both sides, none is "same", and there is no other answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_late: bool,
    /// True if it was only late, and one side had more of its delays than chance explains: that is the limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_one_sided: bool,
    /// Blocks that were judged.
    pub blocks: u64,
    /// Blocks among them in which the generator had no processor or no time left.
    pub limited_blocks: u64,
    /// Verdict over all blocks of A together; null if there was nothing to judge.
    pub a: Option<VerdictKind>,
    /// Verdict over all blocks of B together.
    pub b: Option<VerdictKind>,
    /// The rule that applied, and the reason of a limit.
    pub reason: String,
}

/// One metric of both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AbMetric {
    /// Name, such as `p99`.
    pub name: String,
    /// Unit of its values: `ms`, `/s`, `us`, `s`, `%`, or empty.
    pub unit: String,
    /// True if a higher value is better.
    pub higher_is_better: bool,
    /// The answer for B; null for a metric that was not named.
    pub answer: Option<AbAnswer>,
    /// Geometric mean of A's blocks; the mean for errors.
    pub a: Option<f64>,
    /// The same of B.
    pub b: Option<f64>,
    /// B/A, the estimate; null if it was not measured.
    pub ratio: Option<f64>,
    /// The interval of B/A; null if there is none.
    pub interval: Option<(f64, f64)>,
    /// Confidence level of the interval.
    pub confidence: f64,
    /// Pairs in which the metric was measured on both sides.
    pub pairs: u64,
    /// p-value of no difference; null for a metric without an answer.
    pub p_value: Option<f64>,
    /// Pairs that an answer would take, if there is none and this is known.
    pub pairs_needed: Option<u64>,
    /// Reason why there is no answer; empty if there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// An answer about B, compared with A.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AbAnswer {
    /// B is better.
    Better,
    /// B is worse.
    Worse,
    /// Both are the same within the margin.
    Same,
    /// The pairs do not decide.
    #[default]
    CannotTell,
}

/// A rule of `--fail-on`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AbRule {
    /// The rule, such as `p99>+5%`.
    pub rule: String,
    /// The judgement of the interval.
    pub judged: AbJudged,
}

/// The judgement of an interval by a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AbJudged {
    /// The rule holds: the whole interval is within the bound.
    Holds,
    /// The bound lies inside the interval, or there is no interval.
    #[default]
    CannotTell,
    /// The rule fails: the whole interval is beyond the bound.
    Fails,
}

/// A pair of blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AbPair {
    /// True if the block of B was the first.
    pub b_first: bool,
    /// Start of the first block, s since the start of the comparison.
    pub at_s: f64,
    /// Values of A's block, in the order of the metrics.
    pub a: Vec<Option<f64>>,
    /// Values of B's block.
    pub b: Vec<Option<f64>>,
    /// Mean delay that the generator added to a request of A's block and of B's, in mean response times of the pair; a delay counts for at
    /// most one of them. Null if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<(f64, f64)>,
    /// Reason why the pair was left out; empty if it counts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub left_out: String,
}

impl AbResult {
    /// The worst that the rules of `--fail-on` came to; `Holds` without any.
    #[must_use]
    pub fn worst(&self) -> AbJudged {
        let any = |wanted| self.rules.iter().any(|rule| rule.judged == wanted);
        match (any(AbJudged::Fails), any(AbJudged::CannotTell)) {
            (true, _) => AbJudged::Fails,
            (_, true) => AbJudged::CannotTell,
            _ => AbJudged::Holds,
        }
    }
}

impl fmt::Display for AbAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::CannotTell => "cannot tell",
        })
    }
}

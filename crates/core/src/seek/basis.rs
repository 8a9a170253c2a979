//! The evidence behind a line: how often the target was looked at, how many requests were judged, how late the generator was.

use super::fit::Fit;
use super::goal::Bound;
use super::plant::Window;
use super::search::Search;
use super::steady::LEAST;
use serde::{Deserialize, Serialize};

/// A search that found no line takes this many times as long, at least.
const MORE: f64 = 1.25;

/// The evidence behind a line, of the time since the target was the same as at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Basis {
    /// Measurements of the capacity.
    pub capacity_looks: u32,
    /// The largest of them over the smallest, less 1; none of fewer than two.
    pub capacity_apart: Option<f64>,
    /// Blocks of load near the line.
    pub blocks: u64,
    /// Their length together, s.
    pub blocks_s: f64,
    /// True if there were enough of them to look for a trend and a step.
    pub tested: bool,
    /// Requests in them that the binding limit judges.
    pub requests: u64,
    /// Share of these that missed it; for a mean, the mean response time over the limit.
    pub missed: f64,
    /// The same where the limit just holds.
    pub allowed: f64,
    /// Requests in the blocks that failed, of whatever class.
    pub failed: u64,
    /// Class that the binding limit judges; none where it judges all requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Variance of a block's late count over that of independent requests.
    pub dispersion: Option<f64>,
    /// The generator's lag at its 99th percentile in the worst part that was judged, s.
    pub lag_p99_s: f64,
    /// Lag above which a part is offered once more, s.
    pub lag_tolerated_s: f64,
    /// Half-width that was asked for.
    pub width: f64,
    /// Time of a search that reaches that width, or where no line is known yet, of the shortest that finds one, s.
    pub needs_s: f64,
}

impl Search<'_> {
    /// The evidence. `fit` is the line that is reported.
    pub(super) fn basis(&self, fit: Option<&Fit>) -> Basis {
        let since = |(at_s, _): &&(f64, f64)| *at_s >= self.since_s - 1e-6;
        let looks: Vec<f64> = self.capacities.iter().filter(since).map(|look| look.1).collect();
        let most = looks.iter().copied().fold(0.0, f64::max);
        let least = looks.iter().copied().fold(f64::INFINITY, f64::min);
        let mut near = Window::default();
        self.blocks.iter().for_each(|block| near.add(&block.counts));
        let at = self.fit.map_or(0, |(_, limit)| limit);
        // A goal that makes no sense may have none.
        let Some(limit) = self.goal.limits.get(at) else { return Basis::default() };
        let (missed, allowed) = match limit.bound {
            Bound::Late { allowed } => (near.late_share(at), allowed),
            Bound::Mean { .. } => (limit.excess(at, &near), 1.0),
        };
        Basis {
            capacity_looks: looks.len() as u32,
            capacity_apart: (looks.len() > 1).then(|| most / least - 1.0),
            blocks: self.blocks.len() as u64,
            blocks_s: self.near_s(),
            tested: self.blocks.len() >= LEAST,
            requests: near.subject(at),
            missed,
            allowed,
            failed: near.failed,
            class: limit.class().map(str::to_owned),
            dispersion: fit.map(|fit| fit.dispersion),
            lag_p99_s: self.lag_p99_s,
            lag_tolerated_s: self.lag_tolerated_s(),
            width: self.goal.width,
            needs_s: self.needs_s(fit),
        }
    }

    fn near_s(&self) -> f64 {
        self.blocks.iter().fold(0.0, |all, block| all + block.seconds)
    }

    /// Time that the whole takes until the interval is as narrow as was asked for: its width falls with the square root of
    /// the time near the line, and the rest takes as long as it did. Without a line, a budget that is enough for an interval.
    pub(super) fn needs_s(&self, fit: Option<&Fit>) -> f64 {
        match fit {
            Some(fit) => {
                let times = (fit.half_width() / self.goal.width).powi(2).max(1.0);
                // Every order takes its time to fill, too.
                let share = self.order_s(6) / (6.0 * self.block_s);
                self.elapsed_s + share * self.near_s() * (times - 1.0)
            }
            // Where that was not enough it takes more, though nobody knows how much.
            None => self.enough_s().max(MORE * self.elapsed_s),
        }
    }
}

//! The evidence of a search, gathered at its end.

use super::basis::Basis;
use super::fit::Fit;
use super::goal::Bound;
use super::plant::Window;
use super::search::Search;
use super::steady::LEAST;

/// A search that found no line takes this many times as long, at least.
const MORE: f64 = 1.25;

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
            // If that was not enough, it takes longer; how much longer is unknown.
            None => self.enough_s().max(MORE * self.elapsed_s),
        }
    }
}

//! The last step: contiguous runs closely below the line until one holds every limit.

use super::finding::Event;
use super::search::{Search, Stop, Stretch};

/// How far below the estimate the first run is, as a share.
const BELOW: f64 = 0.003;
/// How much lower each next one is, at least.
const STEP: f64 = 0.005;
/// Most runs.
const RUNS: usize = 8;

impl Search<'_> {
    /// Blocks of a certifying run: about a twelfth of the budget.
    fn run_blocks(&self) -> usize {
        ((0.08 * self.goal.budget_s / self.block_s).round() as usize).max(1)
    }

    /// Runs at rates closely below the estimate, each a little lower, until one holds.
    pub(super) fn certify(&mut self) -> Result<(), Stop> {
        let Some((mut found, _)) = self.fit else { return Err(Stop::Budget) };
        let mut rate = found.estimate_per_s * (1.0 - BELOW);
        for _ in 0..RUNS {
            let center = found.estimate_per_s;
            let held = self.run(rate)?;
            found = self.estimate(center);
            if held {
                break;
            }
            // The last run that time allows must not be in vain if no earlier run held either: where little is
            // known it goes well into the interval.
            let last = self.left_s() < 2.0 * self.order_s(self.run_blocks());
            let needy = last && self.held_before().is_none();
            let share = if needy { 0.6 * (found.half_width() - 0.04) } else { 0.0 };
            rate = rate.min(found.estimate_per_s) * (1.0 - STEP.max(share));
        }
        Ok(())
    }

    /// The highest rate closely below the estimate at which an earlier run of some length held.
    fn held_before(&self) -> Option<Stretch> {
        let (highest, whole_s) =
            (self.highest(), 0.9 * self.run_blocks().min(2) as f64 * self.block_s);
        self.runs
            .iter()
            .filter(|run| run.seconds >= whole_s && run.rate_per_s <= highest)
            .filter(|run| self.excess(&run.counts) <= 1.0)
            .max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))
            .copied()
    }

    /// No rate above this is certified.
    fn highest(&self) -> f64 {
        self.fit
            .map_or(f64::INFINITY, |(f, _)| f.estimate_per_s * (1.0 - 0.5 * BELOW))
            .min(0.999 * self.starved_at_per_s)
    }

    /// When no run of this phase held: an earlier one, or else the highest rate at which everything that was measured
    /// holds.
    pub(super) fn certify_from_before(&mut self) {
        let highest = self.highest();
        let holds = |run: &&Stretch| run.rate_per_s <= highest && self.excess(&run.counts) <= 1.0;
        let any = || {
            self.curve_by_rate()
                .iter()
                .filter(holds)
                .max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))
                .copied()
        };
        self.certified = self.held_before().or_else(any);
    }

    /// Runs at a rate that short looks saw hold, when nothing better is known.
    pub(super) fn certify_below(&mut self, rate_per_s: f64) -> Result<(), Stop> {
        let mut rate = rate_per_s;
        for _ in 0..RUNS {
            if rate <= 0.0 {
                break;
            }
            match self.run(rate) {
                Ok(true) => break,
                // A longer run may show that the generator cannot do it after all.
                Ok(false) | Err(Stop::GeneratorLimited) => rate *= 0.92,
                Err(stop) => return Err(stop),
            }
        }
        Ok(())
    }

    /// One contiguous run. Its blocks count for the estimate whether it holds or not.
    fn run(&mut self, rate_per_s: f64) -> Result<bool, Stop> {
        let known = self.runs.len();
        self.offer_runs(&[rate_per_s], self.run_blocks(), None)?;
        let Some(&run) = self.runs[known..].first() else { return Err(Stop::Budget) };
        let held = self.excess(&run.counts) <= 1.0;
        if held {
            self.certified = Some(run);
            self.certified_last = true;
        }
        let seen = self.measured(&run);
        self.tell(&Event::Certified { seen, held });
        Ok(held)
    }

    /// The lowest rate above the certified one, or of all, at which a run broke a limit.
    pub(super) fn failing(&self) -> Option<Stretch> {
        let above = self.certified.map_or(0.0, |run| run.rate_per_s);
        self.runs
            .iter()
            .chain(&self.curve)
            .filter(|run| run.rate_per_s > above && self.excess(&run.counts) > 1.0)
            .min_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))
            .copied()
    }
}

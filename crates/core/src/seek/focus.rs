//! Blocks of load near the line: the pilot that says how long it will take, and the estimate itself.

use super::finding::{Event, Forecast};
use super::fit::{Block, Fit, Prior, fit};
use super::plant::{Abort, Segment};
use super::search::{Search, Stop, Stretch};
use super::traffic;

/// Blocks at either rate of an order.
const HALF: usize = 3;
/// Share of the budget that is kept for certification.
pub(super) const RESERVE: f64 = 0.24;
/// Prior knowledge of the dispersion is worth so many blocks.
const WORTH: f64 = 6.0;
/// The interval's variance is multiplied by this. The zoo's tuning set says what the theory leaves out.
const INFLATION: f64 = 1.4;
/// Standard deviation of the slope's logarithm around what theory says.
const SLOPE_LOG_SD: f64 = 0.5;

impl Search<'_> {
    /// Blocks at the lower end of the bracket, or below it if that is too much.
    pub(super) fn pilot(&mut self) -> Result<(), Stop> {
        let mut center = self.bracket.0;
        while !self.offer_blocks(&[center; 2], Some(Abort { excess: 8.0, late_min: 50 }))? {
            center *= 0.93;
            self.bracket = (self.bracket.0.min(0.8 * center), center * 1.2);
        }
        self.bracket = (0.8 * center, 1.25 * center);
        self.estimate(center);
        self.foresee();
        self.forecast_first = self.forecast;
        Ok(())
    }

    /// Blocks on both sides of the line until it is known well enough or the time for it is over.
    pub(super) fn focus(&mut self) -> Result<(), Stop> {
        let Some((mut found, _)) = self.fit else { return Err(Stop::Budget) };
        let mut center = self.bracket.0 / 0.8;
        loop {
            let near = found.estimate_per_s.clamp(0.94 * center, 1.12 * center);
            // The bracket of the short looks is a prior, not a wall.
            self.bracket = (self.bracket.0.min(0.8 * near), self.bracket.1.max(1.2 * near));
            center = near;
            let order_s = self.order_s(2 * HALF);
            if self.left_s() < self.reserve_s() + 0.6 * order_s {
                break;
            }
            let slope = found.slope;
            let step = (0.6 / slope).min(found.half_width().max(0.2 / slope)).clamp(0.003, 0.05);
            let (below, above) = (center * (-step).exp(), center * step.exp());
            let rates = [below, below, below, above, above, above];
            self.offer_blocks(&rates, None)?;
            found = self.estimate(center);
            self.foresee();
            if self.known_well_enough(&found) {
                self.width_reached = true;
                break;
            }
        }
        Ok(())
    }

    pub(super) fn reserve_s(&self) -> f64 {
        RESERVE * self.goal.budget_s
    }

    fn known_well_enough(&self, found: &Fit) -> bool {
        self.blocks.len() >= 2 + 2 * HALF && found.half_width() <= self.goal.width
    }

    /// Time of an order with so many blocks.
    pub(super) fn order_s(&self, blocks: usize) -> f64 {
        self.fill_s() + blocks as f64 * (self.settle_s + self.block_s) + 2.0 * self.goal.limit_s
    }

    /// An order begins with an empty target: this long until its backlog is what it will be.
    fn fill_s(&self) -> f64 {
        self.block_s
    }

    /// Offers blocks at these rates, back to back, after a time to settle, and keeps their counts. Of an order
    /// that the abort rule ended nothing is kept: what it dropped would be missing among the bad blocks.
    pub(super) fn offer_blocks(
        &mut self,
        rates: &[f64],
        abort: Option<Abort>,
    ) -> Result<bool, Stop> {
        let mut segments = vec![Segment { rate_per_s: rates[0], duration_s: self.fill_s() }];
        let each_s = self.settle_s + self.block_s;
        segments.extend(rates.iter().map(|&rate_per_s| Segment { rate_per_s, duration_s: each_s }));
        let trial = self.offer(&segments, abort)?;
        if trial.aborted {
            let all = self.stretch(&trial, rates[0], 0, usize::MAX);
            self.curve.extend(all);
            return Ok(false);
        }
        if self.starved(&trial) {
            self.starved_at_per_s = self.starved_at_per_s.min(rates[0]);
            return Err(Stop::GeneratorLimited);
        }
        let mut at = self.windows_in(self.fill_s());
        for &rate in rates {
            at += self.windows_in(self.settle_s);
            if let Some(block) = self.stretch(&trial, rate, at, self.windows_in(self.block_s)) {
                self.blocks.push(block);
                self.curve.push(block);
            }
            at += self.windows_in(self.block_s);
        }
        Ok(true)
    }

    /// Fits every limit and keeps the one whose line is lowest.
    pub(super) fn estimate(&mut self, center_per_s: f64) -> Fit {
        let reach = self.fit.map_or(0.15, |(fit, _)| 1.5 / fit.slope);
        let lowest = (0..self.goal.limits.len())
            .map(|limit| (self.fit_limit(limit, center_per_s, reach), limit))
            .min_by(|a, b| a.0.estimate_per_s.total_cmp(&b.0.estimate_per_s))
            .expect("a goal has a limit");
        self.fit = Some(lowest);
        self.tell(&Event::Estimate {
            per_s: lowest.0.estimate_per_s,
            interval_per_s: lowest.0.interval_per_s,
            at_s: self.elapsed_s,
        });
        lowest.0
    }

    fn fit_limit(&self, limit: usize, center_per_s: f64, reach: f64) -> Fit {
        let bound = &self.goal.limits[limit];
        let (_, _, allowed) = bound.as_share(limit, &Default::default());
        let block = |stretch: &Stretch| {
            let (scheduled, late, _) = bound.as_share(limit, &stretch.counts);
            Block { rate_per_s: stretch.rate_per_s, seconds: stretch.seconds, scheduled, late }
        };
        let near: Vec<Block> = self
            .blocks
            .iter()
            .filter(|stretch| (stretch.rate_per_s / center_per_s).ln().abs() < reach)
            .map(block)
            .collect();
        let capacity = self.capacity.map(|c| (c.per_s, c.error));
        let room = capacity.map_or(0.15, |c| Prior::room(c, center_per_s));
        let slack_s = (self.goal.limit_s - self.floor_s).max(0.2 * self.goal.limit_s);
        let time_s = traffic::backlog_time_s(slack_s, room / (1.0 + room), allowed);
        // Measured ones are 0.4 to 1.4 of this.
        let dispersion = 0.8 * traffic::dispersion(center_per_s, time_s, allowed);
        let prior = Prior {
            capacity,
            bracket: self.bracket,
            center_per_s,
            slope_log_sd: SLOPE_LOG_SD,
            dispersion: (dispersion, WORTH),
            confidence: self.goal.confidence,
            inflation: INFLATION,
        };
        fit(&near, allowed, &prior)
    }

    /// Says how long it will take.
    fn foresee(&mut self) {
        let Some((found, limit)) = self.fit else { return };
        let (_, _, allowed) = self.goal.limits[limit].as_share(limit, &Default::default());
        let measuring_s = traffic::time_to_width_s(
            found.estimate_per_s,
            found.dispersion,
            found.slope,
            allowed,
            self.goal.width,
            self.goal.confidence,
        );
        let spent_s = self
            .phases
            .iter()
            .find(|span| span.phase == super::finding::Phase::Pilot)
            .map_or(0.0, |span| span.from_s);
        let order_share = self.order_s(2 * HALF) / (2.0 * HALF as f64 * self.block_s);
        let total_s = spent_s + measuring_s * INFLATION * order_share + 0.4 * self.reserve_s();
        let forecast = Forecast { measuring_s, total_s };
        self.forecast = Some(forecast);
        self.tell(&Event::Forecast(forecast));
    }
}

//! Blocks of load near the line: the pilot that says how long it will take, and the estimate itself.

use super::finding::{Event, Forecast};
use super::fit::{Block, Fit, Prior, above_floor, fit};
use super::peak::Peak;
use super::plant::{Abort, Segment, Window};
use super::search::{LEAST_RUN, Search, Stop, Stretch, round_to};
use super::traffic;

/// Blocks at either rate of an order.
pub(super) const HALF: usize = 3;
/// Least and most share of the budget that is kept for certification.
const RESERVE: (f64, f64) = (0.2, 0.25);
/// Prior knowledge of the dispersion is worth this many blocks.
const WORTH: f64 = 14.0;
/// The interval's variance is multiplied by this. The zoo's tuning set says what the theory leaves out.
const INFLATION: f64 = 1.75;
/// An interval needs this many blocks, and this many natural times of the backlog.
pub(super) const LEAST_BLOCKS: usize = 6;
pub(super) const LEAST_BACKLOGS: f64 = 12.0;
/// Late requests that the blocks near a line hold at least, as many as their limit allows there.
const LATE_LEAST: f64 = 30.0;
/// Bursts of late requests that they hold at least where the room to capacity is larger than this: with completions that are
/// more uneven than those of exponential services, and without.
const BURSTS: (f64, f64) = (7.0, 0.2);
const BURSTS_USUAL: (f64, f64) = (2.0, 0.35);
/// Up to this room to capacity theory knows the dispersion; beyond it, late requests come from long services and not from
/// load, and bursts are that much larger.
const HEAVY_ROOM: f64 = 0.2;
/// The search stops where theory puts the half-width at this share of the wanted one.
const PLANNED: f64 = 0.9;
/// An order's beginning that is not counted is this many natural times of the backlog long, three times the time in
/// which a reflected Brownian motion forgets where it began.
pub(super) const FILL: f64 = 6.0;
/// No further than this does an order reach beyond an estimate that no broken limit bounds.
const LEAP: f64 = 1.05;
/// Share of the line below which requests are late for reasons other than load.
const FLOOR_BELOW: f64 = 0.85;
/// Standard deviation of the slope's logarithm around what theory says.
const SLOPE_LOG_SD: f64 = 0.5;

impl Search<'_> {
    /// Blocks at the lower end of the bracket, or below it if that is too much.
    pub(super) fn pilot(&mut self) -> Result<(), Stop> {
        loop {
            let mut center = self.bracket.0;
            while !self.offer_runs(&[center], 2, Some(Abort { excess: 8.0, late_min: 50 }))? {
                center *= 0.93;
                self.bracket = (self.bracket.0.min(0.8 * center), center * 1.2);
            }
            self.bracket = (0.8 * center, 1.25 * center);
            let found = self.estimate(center);
            if self.look_above(found.estimate_per_s)? != Peak::More {
                break;
            }
        }
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
            let peak = self.look_above(found.estimate_per_s)?;
            if peak != Peak::Same {
                if peak == Peak::More {
                    self.pilot()?;
                }
                let Some((again, _)) = self.fit else { return Err(Stop::Budget) };
                (found, center) = (again, self.bracket.0 / 0.8);
                continue;
            }
            if self.outgrown(found.estimate_per_s) {
                // What was measured as capacity was not: a target that was still cold, most likely.
                self.start_over(center)?;
                let Some((again, _)) = self.fit else { return Err(Stop::Budget) };
                (found, center) = (again, self.bracket.0 / 0.8);
                continue;
            }
            // The time that is left goes into orders of about the same length.
            let left_s = self.left_s() - self.reserve_s();
            let orders = (left_s / self.order_s(2 * HALF)).round().max(1.0);
            let spent_s = self.order_s(0);
            let half = ((left_s / orders - spent_s) / (2.0 * self.block_s)).floor() as usize;
            if half == 0 {
                break;
            }
            let slope = found.slope;
            let step = (0.4 / slope).min(found.half_width().max(0.2 / slope)).clamp(0.003, 0.05);
            let below = center * (-step).exp();
            let above = (center * step.exp()).max(self.beyond(&found));
            self.offer_runs(&[below, above], half, None)?;
            found = self.estimate(center);
            if self.look_again(false)? {
                let Some((again, _)) = self.fit else { return Err(Stop::Budget) };
                (found, center) = (again, self.bracket.0 / 0.8);
                continue;
            }
            self.foresee();
            if self.known_well_enough(&found) {
                self.width_reached = true;
                break;
            }
        }
        Ok(())
    }

    /// As long as no run broke a limit the line is bounded from above by belief only, and an estimate drawn up by
    /// small steps would creep: half of the way to the interval's upper end or to capacity, at most.
    pub(super) fn beyond(&self, found: &Fit) -> f64 {
        if self.broke_near(found) {
            return 0.0;
        }
        let estimate = found.estimate_per_s;
        let most = self.bound().map_or(f64::INFINITY, |capacity| capacity.per_s);
        (estimate * found.interval_per_s.1.min(most)).sqrt().min(LEAP * estimate)
    }

    /// Returns true if the line is beyond what the target could at most when that was measured.
    fn outgrown(&self, estimate_per_s: f64) -> bool {
        let beyond = self.bound().is_some_and(|c| estimate_per_s > c.per_s * (1.0 + c.error));
        beyond && !self.started_over && self.left_s() > 2.0 * self.reserve_s()
    }

    /// Looks for the bracket again from a rate near the line, and forgets the blocks before.
    fn start_over(&mut self, rate_per_s: f64) -> Result<(), Stop> {
        self.started_over = true;
        self.blocks.clear();
        self.fit = None;
        self.set_capacity(None);
        self.holds_at_per_s = None;
        self.bracket = (0.9 * rate_per_s, f64::INFINITY);
        self.ramp()?;
        self.overload()?;
        self.narrow()?;
        self.pilot()
    }

    /// Kept for certification: two runs at least, so that a second one may hold where a first did not.
    pub(super) fn reserve_s(&self) -> f64 {
        let runs_s = 2.0 * self.order_s(self.run_blocks());
        let most_s = (RESERVE.1 * self.goal.budget_s).max(self.order_s(LEAST_RUN));
        runs_s.min(most_s).max(RESERVE.0 * self.goal.budget_s)
    }

    /// Returns true if the interval is as narrow as it must be. When to look is decided by how wide it must come out by theory,
    /// and not by how wide it came out: to stop where it looks narrow would pick those that are too narrow.
    fn known_well_enough(&self, found: &Fit) -> bool {
        self.is_founded()
            && self.expected_half_width() <= PLANNED * self.goal.width
            && self.half_width_told(found) <= PLANNED * self.goal.width
    }

    /// Returns true if there are blocks enough for an interval: in number, and in natural times of the backlog.
    pub(super) fn is_founded(&self) -> bool {
        let Some((fit, limit)) = self.fit else { return false };
        let seconds: f64 = self.blocks.iter().map(|block| block.seconds).sum();
        let backlog_s = self.backlog_s(limit, fit.estimate_per_s);
        self.blocks.len() >= LEAST_BLOCKS
            && seconds >= (LEAST_BACKLOGS * backlog_s).max(self.least_bursts_s())
    }

    /// Load near the line that shows enough late requests, and enough bursts of them where the line is so far below capacity
    /// that the theory of queues near saturation says little of them, s. The measurements have no part in it: few late requests
    /// in the blocks would shorten it where they are missing by chance.
    pub(super) fn least_bursts_s(&self) -> f64 {
        // An estimate that is above what heavy tails let expect may lack their bursts.
        let by_capacity = self.line_by_capacity(1.0).unwrap_or(f64::INFINITY);
        let rate = self.guess_per_s().map_or(0.0, |line| line.min(by_capacity));
        if rate <= 0.0 {
            return 0.0;
        }
        // If a target was never saturated, the distance from its line to its capacity and the weight of its tails are unknown.
        let room = self.bound().map_or(f64::INFINITY, |capacity| capacity.per_s / rate - 1.0);
        let heavy = self.bound().is_none() || self.unevenness_of_completions() > 1.0;
        let (bursts, most) = if heavy { BURSTS } else { BURSTS_USUAL };
        let bursts = if room > most { bursts } else { 0.0 };
        let least_s = |limit: usize| {
            let late_per_s = self.allowed(limit) * rate * self.judged_share(limit);
            LATE_LEAST.max(bursts * self.prior(limit, rate).dispersion.0) / late_per_s
        };
        match self.fit {
            Some((_, limit)) => least_s(limit),
            None => (0..self.goal.limits.len()).map(least_s).fold(0.0, f64::max),
        }
    }

    /// Half-width that the blocks so far lead to by theory.
    fn expected_half_width(&self) -> f64 {
        let Some((fit, limit)) = self.fit else { return f64::INFINITY };
        let rate = fit.estimate_per_s;
        let (allowed, prior) = (self.allowed(limit), self.prior(limit, rate));
        let above = above_floor(allowed, prior.floor);
        // A capacity that came out too low makes the line look steep and the interval narrow.
        let flat = self.bound().map_or(fit.slope, |c| {
            let room = Prior::room((c.per_s * (1.0 + 2.0 * c.error), c.error), rate);
            traffic::slope(room, above)
        });
        let rise = fit.slope.min(flat) * above * (1.0 - above) * (1.0 - prior.floor);
        let variance = prior.dispersion.0.max(1.0) * allowed * (1.0 - allowed)
            / (rate * self.judged_share(limit));
        let seconds: f64 = self.blocks.iter().map(|block| block.seconds).sum();
        traffic::width_after(variance * INFLATION, rise, seconds, self.goal.confidence)
    }

    /// Time of an order with this many blocks.
    pub(super) fn order_s(&self, blocks: usize) -> f64 {
        self.fill_s() + self.settle_s + blocks as f64 * self.block_s + 2.0 * self.goal.limit_s
    }

    /// An order begins with an empty target: this long until its backlog is what it will be.
    fn fill_s(&self) -> f64 {
        let known = self.fit.filter(|_| self.bound().is_some());
        let Some((found, limit)) = known else { return self.block_s };
        let fill_s = FILL * self.backlog_s(limit, found.estimate_per_s);
        round_to(fill_s.clamp(0.25 * self.block_s, self.block_s), self.window_s)
    }

    /// Time that the limit leaves for waiting, s.
    pub(super) fn slack_s(&self) -> f64 {
        (self.goal.limit_s - self.floor_s).max(0.2 * self.goal.limit_s)
    }

    /// Natural time of the backlog at a line there, s.
    pub(super) fn backlog_s(&self, limit: usize, line_per_s: f64) -> f64 {
        let allowed = self.allowed(limit);
        let above = above_floor(allowed, self.floor_share(limit, allowed, line_per_s));
        let capacity = self.bound().map(|c| (c.per_s, c.error));
        let room = capacity.map_or(0.15, |c| Prior::room(c, line_per_s));
        traffic::backlog_time_s(self.slack_s(), room / (1.0 + room), above)
    }

    /// Offers runs of `blocks` blocks at each of these rates, back to back, with time to settle before each, and
    /// keeps their counts. Of an order that the abort rule ended nothing is kept: what it dropped would be missing
    /// among the bad blocks.
    pub(super) fn offer_runs(
        &mut self,
        rates: &[f64],
        blocks: usize,
        abort: Option<Abort>,
    ) -> Result<bool, Stop> {
        let (fill, settle) = (self.windows_in(self.fill_s()), self.windows_in(self.settle_s));
        let block = self.windows_in(self.block_s);
        let lead = |at: usize| if at == 0 { fill } else { settle };
        let segment = |(at, rate_per_s): (usize, &f64)| Segment {
            rate_per_s: *rate_per_s,
            duration_s: (lead(at) + blocks * block) as f64 * self.window_s,
        };
        let segments: Vec<Segment> = rates.iter().enumerate().map(segment).collect();
        let trial = self.offer_on_time(&segments, abort)?;
        if trial.aborted {
            let all = self.stretch(&trial, rates[0], 0, usize::MAX);
            self.curve.extend(all);
            return Ok(false);
        }
        if self.starved(&trial) {
            self.starved_at_per_s = self.starved_at_per_s.min(rates[0]);
            return Err(Stop::GeneratorLimited);
        }
        let mut from = 0;
        for (at, &rate) in rates.iter().enumerate() {
            from += lead(at);
            self.runs.extend(self.stretch(&trial, rate, from, blocks * block));
            for _ in 0..blocks {
                let seen = self.stretch(&trial, rate, from, block);
                self.blocks.extend(seen);
                self.curve.extend(seen);
                from += block;
            }
        }
        Ok(true)
    }

    /// Fits every limit and keeps the one whose line is lowest.
    pub(super) fn estimate(&mut self, center_per_s: f64) -> Fit {
        let lowest = (0..self.goal.limits.len())
            .map(|limit| (self.fit_limit(limit, center_per_s), limit))
            .min_by(|a, b| a.0.estimate_per_s.total_cmp(&b.0.estimate_per_s))
            .expect("a goal has a limit");
        // Without a block that counts there is nothing to know yet.
        self.fit = Some(lowest).filter(|(fit, _)| fit.is_known());
        self.tell(&Event::Estimate {
            per_s: lowest.0.estimate_per_s,
            interval_per_s: lowest.0.interval_per_s,
            at_s: self.elapsed_s,
        });
        lowest.0
    }

    fn fit_limit(&self, limit: usize, center_per_s: f64) -> Fit {
        self.fit_of(&self.blocks, limit, center_per_s)
    }

    /// One limit's line from these blocks.
    pub(super) fn fit_of(&self, blocks: &[Stretch], limit: usize, center_per_s: f64) -> Fit {
        let bound = &self.goal.limits[limit];
        let block = |stretch: &Stretch| {
            let (judged, late, _) = bound.as_share(limit, &stretch.counts);
            let arrivals = stretch.counts.scheduled as f64;
            let (rate_per_s, seconds) = (stretch.rate_per_s, stretch.seconds);
            Block { rate_per_s, seconds, arrivals, judged, late }
        };
        let blocks: Vec<Block> = blocks.iter().map(block).collect();
        fit(&blocks, self.allowed(limit), &self.prior(limit, center_per_s))
    }

    fn allowed(&self, limit: usize) -> f64 {
        self.goal.limits[limit].as_share(limit, &Window::default()).2
    }

    /// Share of the requests so far that a limit judges.
    pub(super) fn judged_share(&self, limit: usize) -> f64 {
        let mut all = Window::default();
        self.curve.iter().for_each(|seen| all.add(&seen.counts));
        let share = all.subject(limit) as f64 / all.scheduled.max(1) as f64;
        if all.scheduled > 0 { share.max(1e-3) } else { 1.0 }
    }

    /// Returns the prior of a limit before the blocks.
    pub(super) fn prior(&self, limit: usize, center_per_s: f64) -> Prior {
        let allowed = self.allowed(limit);
        let floor = self.floor_share(limit, allowed, center_per_s);
        let above = above_floor(allowed, floor);
        let capacity = self.bound().map(|c| (c.per_s, c.error));
        let time_s = self.backlog_s(limit, center_per_s);
        let ratio = above * (1.0 - above) / (allowed * (1.0 - allowed));
        // Measured ones are 0.4 to 1.4 of this.
        let judged_per_s = center_per_s * self.judged_share(limit);
        let room = capacity.map_or(0.0, |c| Prior::room(c, center_per_s));
        let beyond = (room / HEAVY_ROOM).max(1.0);
        let dispersion = beyond * 0.8 * ratio * traffic::dispersion(judged_per_s, time_s, above);
        Prior {
            capacity,
            bracket: self.bracket,
            center_per_s,
            slope_log_sd: SLOPE_LOG_SD,
            floor,
            dispersion: (dispersion, WORTH),
            confidence: self.goal.confidence,
            inflation: INFLATION,
        }
    }

    /// Share of requests that is late well below the line already, with half a request's doubt.
    fn floor_share(&self, limit: usize, allowed: f64, center_per_s: f64) -> f64 {
        let (mut scheduled, mut late) = (0.0, 0.0);
        for stretch in self.curve.iter().filter(|s| s.rate_per_s < FLOOR_BELOW * center_per_s) {
            let (n, l, _) = self.goal.limits[limit].as_share(limit, &stretch.counts);
            scheduled += n;
            late += l;
        }
        if scheduled > 0.0 { (late / scheduled).min(0.7 * allowed) } else { 0.0 }
    }

    /// Says how long it will take.
    fn foresee(&mut self) {
        let Some((found, limit)) = self.fit else { return };
        let rate = found.estimate_per_s;
        // The room to capacity that the slope's prior comes from is that of the line, as far as it is known. While
        // the blocks are all well below it, the room above them would make a steep target look flat.
        let found = self.fit_limit(limit, rate);
        let allowed = self.allowed(limit);
        let floor = self.prior(limit, rate).floor;
        let above = above_floor(allowed, floor);
        let rise = found.slope * above * (1.0 - above) * (1.0 - floor);
        let variance =
            found.dispersion * allowed * (1.0 - allowed) / (rate * self.judged_share(limit));
        let (width, confidence) = (self.goal.width, self.goal.confidence);
        let measuring_s = traffic::time_to_width_s(variance, rise, width, confidence);
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

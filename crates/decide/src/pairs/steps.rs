//! Comparison of the highest rates within a limit, by interleaved steps of a search.
//!
//! Both blocks of a pair have the same rate and the same schedule, near the rate at which the limit is met. A block says how far
//! its quantile is from the limit, as y = ln(quantile/limit). Near the line, y rises with ln(rate) by a slope, so that
//! (yA - yB)/slope is the log ratio of the two rates at which y is 0. The middle of both sides is followed as by Robbins and
//! Monro, "A stochastic approximation method" (1951), and the slope comes from rates a little above and below it in turn.
//! Drift of the machine moves both y of a pair, and an error of the slope changes the size of a difference and not its sign.
//!
//! The slope is known better with each pair. So a pair is kept as what was measured ([`Step`]), and the log ratios of all pairs
//! follow from the slope that is known by now ([`Steps::found`]): an error of the slope, which they have in common, is then
//! one factor of their mean, and enters its interval ([`super::Pairs::restate`]).

use crate::student;

/// Change of y between the upper and the lower rate of a duo that is aimed at. Rates far apart say more exactly what the slope
/// between them is, and less what it is at the line: with 1.0, two service times that are mixed had ratios 15 % too large.
const SPREAD: f64 = 0.7;
/// Largest distance of a rate from the middle, in ln(rate).
const DITHER_MOST: f64 = 0.14;
/// Duos are dropped if the dither is less than this share of theirs.
const NARROWER: f64 = 0.7;
/// Slope before it is measured, and the number of duos that it is worth.
const SLOPE: f64 = 2.0;
const PRIOR_DUOS: f64 = 2.0;
/// Limits of the slope: below the lower one, the quantile hardly depends on the rate.
const SLOPE_LEAST: f64 = 0.3;
const SLOPE_MOST: f64 = 40.0;
/// Largest |y| that is taken at its value: beyond the line, y is the length of the block and not a property of the server.
const Y_MOST: f64 = 1.5;
/// Pairs of the approach, which have no value: at least this many, and until each side has crossed the limit twice.
const APPROACH_PAIRS: u32 = 6;
/// Pairs after which the approach no longer waits for a slope: until it is known roughly, rates may be so far from the line that y
/// is cut off.
const SLOPE_PAIRS: u32 = 16;
/// If the approach finds the lines further apart than this in y, the sides have rates of their own. It is far above the noise of
/// the approach: two equal sides need one rate, or an error of the slope would be a difference.
const APART: f64 = 1.5;

/// The quantile 0.975 of the normal distribution.
const NORMAL_975: f64 = 1.959_964;
/// Fewest duos from which the slope has an error of its own.
const DUOS_LEAST: f64 = 3.0;

/// Largest step of the approach in ln(rate); halved at each crossing of the line, down to the least.
const STEP_MOST: f64 = 0.4;
const STEP_LEAST: f64 = 0.03;

/// The approach of one side.
#[derive(Clone, Copy, Debug)]
struct Side {
    crossings: u32,
    over: Option<bool>,
    step_most: f64,
}

impl Side {
    /// Returns the step, limited, and the side after it.
    fn step(mut self, wanted: f64, over: bool) -> (f64, Self) {
        if self.over.replace(over).is_some_and(|before| before != over) {
            self.crossings += 1;
            self.step_most = (0.5 * self.step_most).max(STEP_LEAST);
        }
        (wanted.clamp(-self.step_most, self.step_most), self)
    }
}

/// A pair of blocks near the line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// ln(rate) of A and B.
    ln_rates: [f64; 2],
    /// ln(quantile/limit) of A and B.
    y: [f64; 2],
}

impl Step {
    /// Returns the highest rates of A and B within the limit, requests/s.
    #[must_use]
    pub fn lines_per_s(&self, slope: Slope) -> [f64; 2] {
        [0, 1].map(|side: usize| (self.ln_rates[side] - self.y[side] / slope.value).exp())
    }

    /// Returns ln(B/A) of these rates.
    #[must_use]
    pub fn log_ratio(&self, slope: Slope) -> f64 {
        self.ln_rates[1] - self.ln_rates[0] + (self.y[0] - self.y[1]) / slope.value
    }
}

/// Change of ln(quantile) by ln(rate) near the line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// The slope, above 0.
    pub value: f64,
    /// Its standard error as a share of it, with the factor by which Student's t is wider than a normal distribution; infinite
    /// if it is not known.
    pub relative_error: f64,
}

/// Sums over duos of their rise, the change of y, and their run, the change of ln(rate), from the lower rate to the upper.
#[derive(Clone, Copy, Debug, Default)]
struct Duos {
    count: f64,
    rise: f64,
    run: f64,
    rise_squares: f64,
    products: f64,
    run_squares: f64,
}

impl Duos {
    fn add(&mut self, rise: f64, run: f64) {
        self.count += 1.0;
        self.rise += rise;
        self.run += run;
        self.rise_squares += rise * rise;
        self.products += rise * run;
        self.run_squares += run * run;
    }

    /// Sum of the squares of what a slope leaves unexplained.
    fn misfit(&self, slope: f64) -> f64 {
        let sum =
            self.rise_squares - 2.0 * slope * self.products + slope * slope * self.run_squares;
        sum.max(0.0)
    }

    /// One duo with this slope and run, which fits as these do in the mean.
    fn as_one(&self, slope: f64, run: f64) -> Self {
        let mut one = Self::default();
        one.add(slope * run, run);
        one.rise_squares += self.misfit(slope) / self.count.max(1.0);
        one
    }

    /// The slope as a ratio of means, with the error of such a ratio (Cochran, *Sampling Techniques*, 1977, chapter 6).
    fn slope(&self) -> Option<Slope> {
        let value = self.rise / self.run;
        if self.count < DUOS_LEAST || !(SLOPE_LEAST..=SLOPE_MOST).contains(&value) {
            return None;
        }
        let freedom = self.count - 1.0;
        let error = (self.misfit(value) * self.count / freedom).sqrt() / self.run;
        let wider = student::quantile(0.975, freedom) / NORMAL_975;
        Some(Slope { value, relative_error: error * wider / value })
    }
}

/// A search for two rates in interleaved steps.
#[derive(Clone, Debug)]
pub struct Steps {
    /// ln(rate) of the middle of each side, for A and B.
    middle: [f64; 2],
    /// ln(rate) of B above that of A; 0 unless the approach found the sides far apart.
    offset: f64,
    slope: f64,
    duos: Duos,
    /// First pair of a duo: y and ln(rate), each the mean of both sides.
    first: Option<(f64, f64)>,
    up: bool,
    dither: f64,
    /// The largest dither of the duos in the sums.
    widest: f64,
    pairs: u32,
    sides: [Side; 2],
    is_near: bool,
}

impl Steps {
    /// Begins at this rate, requests/s.
    #[must_use]
    pub fn new(rate_per_s: f64) -> Self {
        Self {
            middle: [rate_per_s.ln(); 2],
            offset: 0.0,
            slope: SLOPE,
            duos: Duos::default(),
            first: None,
            up: true,
            dither: DITHER_MOST,
            widest: DITHER_MOST,
            pairs: 0,
            sides: [Side { crossings: 0, over: None, step_most: STEP_MOST }; 2],
            is_near: false,
        }
    }

    /// Returns true until the line is near; pairs until then have no value.
    #[must_use]
    pub fn approaching(&self) -> bool {
        !self.is_near
    }

    /// Returns the rates of A and B in the next pair, requests/s. They are equal unless the sides are far apart.
    #[must_use]
    pub fn rates_per_s(&self) -> [f64; 2] {
        self.ln_rates().map(f64::exp)
    }

    fn ln_rates(&self) -> [f64; 2] {
        let sign = if self.up { 1.0 } else { -1.0 };
        self.middle.map(|middle| middle + sign * self.dither)
    }

    /// Returns the slope by which the search steps: at its beginning, when little is measured, a usual one.
    #[must_use]
    pub fn slope(&self) -> f64 {
        self.slope
    }

    /// Returns the slope as measured so far.
    #[must_use]
    pub fn found(&self) -> Slope {
        let unknown = Slope { value: self.slope, relative_error: f64::INFINITY };
        self.duos.slope().unwrap_or(unknown)
    }

    /// Takes quantile/limit of A and B in the pair just measured.
    ///
    /// None while the line is approached, and if a block has no quantile.
    pub fn add(&mut self, over: [Option<f64>; 2]) -> Option<Step> {
        let [Some(a), Some(b)] = over else { return None };
        let y = [a, b].map(|over| over.ln().clamp(-Y_MOST, Y_MOST));
        let step = Step { ln_rates: self.ln_rates(), y };
        let approaching = self.approaching();
        self.pairs += 1;
        self.follow(y, approaching);
        let has_slope = self.duos.count >= DUOS_LEAST || self.pairs >= SLOPE_PAIRS;
        let has_crossed = self.sides.iter().all(|side| side.crossings >= 2);
        if approaching && has_slope && has_crossed && self.pairs >= APPROACH_PAIRS {
            self.arrive();
        }
        (!approaching).then_some(step)
    }

    fn follow(&mut self, y: [f64; 2], approaching: bool) {
        let mean = 0.5 * (y[0] + y[1]);
        let sign = if self.up { 1.0 } else { -1.0 };
        let ln_rate = 0.5 * (self.middle[0] + self.middle[1]) + sign * self.dither;
        // A duo is two pairs, one up and one down, in an order that alternates: drift of the machine is in both orders.
        match self.first.take() {
            None => {
                self.first = Some((mean, ln_rate));
                self.up = !self.up;
            }
            Some((first, at)) => {
                // Far from the line on one side, y does not say the slope. Near it, pairs that drift has taken far away are in the
                // mean of the differences as well: a slope without them would be too steep for it.
                if !approaching || first.abs().min(mean.abs()) < 1.0 || first * mean < 0.0 {
                    self.duos.add(sign * (mean - first), sign * (ln_rate - at));
                }
                self.learn();
            }
        }
        // The approach steps by most of what the slope says; later steps are small beside the noise of a block.
        if approaching {
            let step =
                |side: usize| self.sides[side].step(0.7 * y[side] / self.slope, y[side] > 0.0);
            let (after_a, after_b) = (step(0), step(1));
            self.middle = [self.middle[0] - after_a.0, self.middle[1] - after_b.0];
            self.sides = [after_a.1, after_b.1];
        } else if self.offset == 0.0 {
            self.middle = self.middle.map(|middle| middle - 0.15 * mean / self.slope);
        } else {
            // Sides far apart have lines of their own, and the approach found each of them roughly.
            for (middle, y) in self.middle.iter_mut().zip(y) {
                *middle -= 0.15 * y / self.slope;
            }
            self.offset = self.middle[1] - self.middle[0];
        }
    }

    /// The slope from all duos, with the prior's weight; the dither follows it.
    fn learn(&mut self) {
        let prior = PRIOR_DUOS * 2.0 * self.dither;
        let slope = (prior * SLOPE + self.duos.rise) / (prior + self.duos.run).max(0.5 * prior);
        self.slope = slope.clamp(SLOPE_LEAST, SLOPE_MOST);
        let dither = (0.5 * SPREAD / self.slope).min(DITHER_MOST);
        // Rates far apart say little of a steep slope at the line: they count as one duo from now on.
        if dither < NARROWER * self.widest {
            self.duos = self.duos.as_one(self.slope, 2.0 * dither);
            self.widest = dither;
        }
        self.dither = dither;
    }

    fn arrive(&mut self) {
        self.is_near = true;
        let apart = self.middle[1] - self.middle[0];
        if apart.abs() * self.slope > APART {
            self.offset = apart;
        } else {
            self.middle = [0.5 * (self.middle[0] + self.middle[1]); 2];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::Interval;
    use plimsoll_core::rng::Rng;

    /// The pairs that count on sides with these lines, a slope and noise of y, and the slope that is found.
    fn measured(
        lines: [f64; 2],
        slope: f64,
        noise: f64,
        (pairs, seed): (usize, u64),
    ) -> (Vec<Step>, Slope) {
        let mut rng = Rng::new(seed);
        let mut steps = Steps::new(300.0);
        let mut all = Vec::new();
        let mut machine = 0.0;
        while all.len() < pairs {
            let rates = steps.rates_per_s();
            machine = 0.9 * machine + 0.06 * (rng.uniform() - 0.5);
            let over = [0, 1].map(|side: usize| {
                let y = slope * (rates[side] / lines[side]).ln() + machine;
                Some((y + noise * (rng.uniform() - 0.5)).exp())
            });
            all.extend(steps.add(over));
        }
        (all, steps.found())
    }

    /// The mean and standard error of the log ratios of 400 pairs.
    fn values(lines: [f64; 2], slope: f64, noise: f64, seed: u64) -> (f64, f64) {
        let (steps, found) = measured(lines, slope, noise, (400, seed));
        let all: Vec<f64> = steps.iter().map(|step| step.log_ratio(found)).collect();
        let mean = all.iter().sum::<f64>() / 400.0;
        let squares: f64 = all.iter().map(|value| (value - mean).powi(2)).sum();
        (mean, squares.sqrt() / 400.0)
    }

    /// Share of 1,000 comparisons of 60 pairs whose interval holds the ratio of the lines; with and without the error of the slope.
    fn coverage(ratio: f64, slope: f64) -> (f64, f64) {
        let mut held = (0.0, 0.0);
        for seed in 0..1_000 {
            let lines = [1_000.0, 1_000.0 * ratio];
            let (steps, found) = measured(lines, slope, 0.6, (60, seed));
            let ratios: Vec<f64> = steps.iter().map(|step| step.log_ratio(found)).collect();
            let interval = Interval::of(&ratios, 0.05);
            let holds = |scale_error: f64| {
                let (low, high) = interval.ends(scale_error);
                f64::from(low < ratio.ln() && ratio.ln() < high)
            };
            held.0 += 0.1 * holds(found.relative_error);
            held.1 += 0.1 * holds(0.0);
        }
        held
    }

    #[test]
    fn the_interval_of_a_ratio_allows_for_the_error_of_the_slope() {
        for (slope, ratio) in [(1.0, 1.0), (1.0, 0.8), (4.0, 0.95), (4.0, 0.8), (15.0, 0.95)] {
            let (with, without) = coverage(ratio, slope);
            let shown =
                format!("slope {slope}, ratio {ratio}: {with:.1} %, without {without:.1} %");
            assert!((93.0..=98.5).contains(&with), "{shown}");
            // Equal sides have no difference whose size could be wrong.
            assert!(without < with || ratio > 0.99, "{shown}");
        }
    }

    #[test]
    fn lines_and_their_ratio_are_one_statement() {
        let (steps, found) = measured([1_000.0, 900.0], 4.0, 0.3, (40, 7));
        assert!((found.value / 4.0 - 1.0).abs() < 4.0 * found.relative_error, "{found:?}");
        for step in steps {
            let [a, b] = step.lines_per_s(found);
            assert!(((b / a).ln() - step.log_ratio(found)).abs() < 1e-12);
            assert!((a / 1_000.0).ln().abs() < 0.5 && (b / 900.0).ln().abs() < 0.5, "{a} {b}");
        }
    }

    #[test]
    fn the_ratio_of_two_lines_is_found_for_gentle_and_steep_queues() {
        for slope in [1.0, 4.0, 15.0] {
            for ratio in [1.0f64, 0.95, 1.1, 0.5, 3.0] {
                let (mean, error) = values([1_000.0, 1_000.0 * ratio], slope, 0.3, 1);
                // The slope is measured to some percent, so is the size of the difference.
                let reach = 4.0 * error + 0.1 * ratio.ln().abs().min(0.2);
                assert!((mean - ratio.ln()).abs() < reach, "{slope} {ratio}: {mean} +- {error}");
            }
        }
    }

    /// The mean of ln(B/A) over 2,000 pairs of sides whose lines are `ratio` apart, as a share of the true one. y is a `curve` of
    /// ln(rate/line), and drift moves it by about `drift`.
    fn share_of_ratio(ratio: f64, curve: fn(f64) -> f64, drift: f64) -> f64 {
        let mut rng = Rng::new(3);
        let mut steps = Steps::new(900.0);
        let mut all = Vec::new();
        let mut machine = 0.0;
        while all.len() < 2_000 {
            let rates = steps.rates_per_s();
            machine = 0.9 * machine + 1.5 * drift * (rng.uniform() - 0.5);
            let lines = [1_000.0, 1_000.0 * ratio];
            let over = [0, 1].map(|side: usize| {
                let y = curve((rates[side] / lines[side]).ln()) + machine;
                Some((y + 0.3 * (rng.uniform() - 0.5)).exp())
            });
            all.extend(steps.add(over));
        }
        let found = steps.found();
        let sum: f64 = all.iter().map(|step| step.log_ratio(found)).sum();
        sum / all.len() as f64 / ratio.ln()
    }

    #[test]
    fn a_ratio_is_right_where_times_rise_in_a_bend() {
        let share = share_of_ratio(0.9, |x| (4.0 * x).tanh(), 0.0);
        assert!((share - 1.0).abs() < 0.09, "{share}");
    }

    #[test]
    fn a_ratio_is_right_where_drift_takes_pairs_far_from_the_line() {
        let share = share_of_ratio(0.95, |x| 15.0 * x, 1.5);
        assert!((share - 1.0).abs() < 0.06, "{share}");
    }

    #[test]
    fn the_line_is_approached_before_pairs_count() {
        let mut steps = Steps::new(10.0);
        let mut pairs = 0;
        while steps.approaching() {
            let rates = steps.rates_per_s();
            assert_eq!(steps.add(rates.map(|rate| Some((rate / 1_000.0).powi(2)))), None);
            pairs += 1;
        }
        assert!(pairs < 40, "{pairs}");
        // Rates are up to 20 % from the middle, which is within 10 % of the line.
        let rates = steps.rates_per_s();
        assert!((rates[0] / 1_000.0).ln().abs() < 0.3, "{rates:?}, slope {}", steps.slope());
        assert_eq!(steps.rates_per_s()[0], steps.rates_per_s()[1]);
        assert_eq!(steps.add([None, Some(1.0)]), None);
    }
}

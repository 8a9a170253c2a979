//! From blocks of load near the line to the line: an estimate that pays for correlation.
//!
//! The share of late requests is modelled as `p(x) = f + (1 - f) logistic(b + s (x - x0))`, where x is the
//! logarithm of the rate, f the share that is late at low load already, s the slope, x0 the line, and b such that
//! p(x0) is what the limit allows. Counts are fitted by quasi-likelihood
//! (Wedderburn 1974): the binomial score, which is unbiased whatever the counts' variance, with that variance
//! taken from the blocks themselves. Late requests come in bursts, so it is tens to thousands of times the
//! binomial one, and successive blocks may share a burst; both are estimated and paid for, together with what
//! heavy-traffic theory expects of them, since a few blocks that happen to hold no burst look better than they are.
//!
//! The arrivals that really were offered are a control variate with a known coefficient: for Poisson arrivals the
//! derivative of an expectation to the rate is its covariance with the number of arrivals over the rate, so the
//! best correction is to take the line's rate in arrivals per second as counted, not as planned.

use super::traffic::{slope, student_quantile};
use crate::normal;

/// Counts of one block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Offered, requests per second.
    pub rate_per_s: f64,
    /// Its length, s.
    pub seconds: f64,
    /// Requests due in it.
    pub arrivals: f64,
    /// Those that one limit judges.
    pub judged: f64,
    /// Late ones of these.
    pub late: f64,
}

/// Posterior of the line after some blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Most likely rate at which the late share is what the limit allows, per second.
    pub estimate_per_s: f64,
    /// Lower and upper end of the interval, per second.
    pub interval_per_s: (f64, f64),
    /// Slope of the late share's logit over the logarithm of the rate.
    pub slope: f64,
    /// Variance of a block's late count over the binomial one.
    pub dispersion: f64,
}

impl Fit {
    /// Half of the interval's width over the estimate.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.interval_per_s.1 - self.interval_per_s.0) / (2.0 * self.estimate_per_s)
    }

    /// Returns true if there was anything to fit.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let (low, high) = self.interval_per_s;
        self.estimate_per_s.is_finite() && low > 0.0 && high.is_finite()
    }
}

/// Prior of the line before the blocks, and the confidence level of the interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// The rate at which the target is saturated, per second, and its standard error as a share. It bounds the
    /// line, and how far the line is below it says how steep the late share rises.
    pub capacity: Option<(f64, f64)>,
    /// Bracket of the line from short probes, lower and upper rate per second.
    pub bracket: (f64, f64),
    /// Rate near which the line is expected, per second.
    pub center_per_s: f64,
    /// Standard deviation of the slope's logarithm around its theoretical value.
    pub slope_log_sd: f64,
    /// Share of requests that is late at low load already, below what the limit allows.
    pub floor: f64,
    /// A dispersion to begin with, and how many blocks it is worth.
    pub dispersion: (f64, f64),
    /// Share of intervals that must hold the line, 0 to 1.
    pub confidence: f64,
    /// The interval's variance is multiplied by this: what the zoo says is missing.
    pub inflation: f64,
}

impl Prior {
    /// The slope's middle for a line at this logarithm of the rate, and the logarithm of the line's own prior.
    fn at(&self, line: f64, allowed: f64) -> (f64, f64) {
        let (low, high) = (self.bracket.0.ln() - 0.15, self.bracket.1.ln());
        let outside = ((low - line).max(line - high).max(0.0) / 0.07).powi(2);
        let Some((capacity, error)) = self.capacity else { return (15.0, -0.5 * outside) };
        let room = Self::room((capacity, error), self.center_per_s);
        let beyond = (line - capacity.ln()).max(0.0) / error.max(0.002);
        (slope(room, above_floor(allowed, self.floor)), -0.5 * (beyond * beyond + outside))
    }

    /// Distance of a rate's logarithm above the line's, bent as lateness is.
    ///
    /// Lateness rises ever faster towards capacity. To second order its logit follows
    /// `-m ln(1 - u / m) = u + u^2 / (2 m)` with the room m; a straight line would make the middle of two rates
    /// look too late.
    fn bent(&self, u: f64) -> f64 {
        let Some(capacity) = self.capacity else { return u };
        let room = Self::room(capacity, self.center_per_s);
        let z = (u / room).clamp(-1.0 / BEND, 2.0);
        u.max(-room / BEND) + 0.5 * BEND * room * z * z
    }

    /// The late share so far above the line, in the logarithm of the rate.
    #[must_use]
    pub fn late_share(&self, above: f64, slope: f64, allowed: f64) -> f64 {
        let eta = logit(above_floor(allowed, self.floor)) + slope * self.bent(above);
        self.floor + (1.0 - self.floor) / (1.0 + (-eta).exp())
    }

    /// Distance of the capacity, with its standard error, above a rate, as a share of the rate. The error adds:
    /// where the rate that is thought to be the line comes close to a capacity that is not well known, a room near 0
    /// would mean a slope without end, and the estimate would confirm itself.
    #[must_use]
    pub fn room((capacity, error): (f64, f64), rate_per_s: f64) -> f64 {
        (capacity / rate_per_s - 1.0).max(0.0).hypot(ROOM_ERRORS * error).max(0.005)
    }
}

/// No block counts for more than this many standard deviations of the theory's dispersion.
const MOST: f64 = 5.0;
/// Standard errors of the capacity that count as room.
const ROOM_ERRORS: f64 = 1.8;
/// Part of the second order that is taken.
const BEND: f64 = 0.6;
/// Neighbours of a block that may share a burst with it.
const LAGS: usize = 4;
/// Grid of the line's logarithm.
const LINES: usize = 81;
/// Grid of slopes.
const SLOPES: usize = 11;
/// Rates closer together than this share are one.
const CELL: f64 = 0.003;

fn logit(p: f64) -> f64 {
    (p / (1.0 - p)).ln()
}

/// Part of an allowed share that is left for lateness from load.
#[must_use]
pub fn above_floor(allowed: f64, floor: f64) -> f64 {
    (allowed - floor) / (1.0 - floor)
}

/// Logarithm of the logistic function, without overflow.
fn ln_logistic(z: f64) -> f64 {
    if z > 0.0 { -(-z).exp().ln_1p() } else { z - z.exp().ln_1p() }
}

/// Blocks of nearly the same rate together, as (ln rate, scheduled, late).
fn cells(blocks: &[Block]) -> Vec<(f64, f64, f64)> {
    let mut points: Vec<_> = blocks.iter().map(|b| (b.rate_per_s.ln(), b.judged, b.late)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut cells: Vec<(f64, f64, f64)> = Vec::new();
    for (x, scheduled, late) in points {
        match cells.last_mut() {
            Some(cell) if x - cell.0 < CELL => {
                let total = cell.1 + scheduled;
                cell.0 += (x - cell.0) * scheduled / total.max(1.0);
                cell.1 = total;
                cell.2 += late;
            }
            _ => cells.push((x, scheduled, late)),
        }
    }
    cells
}

/// Fits the line to blocks in order of time. `allowed` is the share that may be late, between 0 and 1.
#[must_use]
pub fn fit(blocks: &[Block], allowed: f64, prior: &Prior) -> Fit {
    let cells = cells(blocks);
    let (low, high) = cells
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), c| (low.min(c.0), high.max(c.0)));
    // A first pass finds the mode with the prior's dispersion, a second one uses the blocks' own.
    let mut dispersion = prior.dispersion.0.max(1.0);
    let mut posterior = Posterior::new(&cells, allowed, prior, dispersion, (low - 0.3, high + 0.3));
    for _ in 0..2 {
        let (line, slope) = posterior.mode;
        dispersion = pooled_dispersion(blocks, allowed, line, slope, prior);
        let (from, to) = posterior.support();
        posterior = Posterior::new(&cells, allowed, prior, dispersion, (from, to));
    }
    // The dispersion is estimated too: the tails are those of Student's t.
    let freedom = (blocks.len() as f64 - 1.0).max(0.0) + prior.dispersion.1;
    let wide = student_quantile(0.5 + prior.confidence / 2.0, freedom.max(4.0))
        / normal::quantile(0.5 + prior.confidence / 2.0);
    let tail = (1.0 - prior.confidence) / 2.0;
    let middle = posterior.quantile(0.5);
    let end = |share: f64| {
        (middle + wide * (posterior.quantile(share) - middle) + counted_over_planned(blocks)).exp()
    };
    Fit {
        estimate_per_s: end(0.5),
        interval_per_s: (end(tail), end(1.0 - tail)),
        slope: posterior.mode.1,
        dispersion,
    }
}

/// Logarithm of the arrivals that were counted over those that the rates mean.
fn counted_over_planned(blocks: &[Block]) -> f64 {
    let planned: f64 = blocks.iter().map(|b| b.rate_per_s * b.seconds).sum();
    let counted: f64 = blocks.iter().map(|b| b.arrivals).sum();
    if planned > 0.0 && counted > 0.0 { (counted / planned).ln() } else { 0.0 }
}

/// Pearson's dispersion around the fit, with what neighbouring blocks share, and the prior's worth.
fn pooled_dispersion(blocks: &[Block], allowed: f64, line: f64, slope: f64, prior: &Prior) -> f64 {
    let residuals: Vec<f64> = blocks
        .iter()
        .map(|block| {
            let p = 1.0
                / (1.0
                    + (-(logit(allowed) + slope * prior.bent(block.rate_per_s.ln() - line))).exp());
            // A burst at a rate where the model expects next to nothing must not outweigh all other blocks.
            let expected = p.clamp(0.5 * allowed, 1.0 - 0.5 * allowed);
            let variance = block.judged * expected * (1.0 - expected);
            let most = MOST * prior.dispersion.0.max(1.0).sqrt();
            ((block.late - block.judged * p) / variance.max(1.0).sqrt()).clamp(-most, most)
        })
        .collect();
    let squares: f64 = residuals.iter().map(|r| r * r).sum();
    let together = |lag: usize| {
        let pairs = residuals.iter().zip(residuals.iter().skip(lag));
        pairs.map(|(one, later)| one * later).sum::<f64>()
    };
    // Bartlett's weights, and the first lag whole: what more than two neighbours share is rare in a queue, and usual where
    // something else takes the target's time.
    let shared = |lag: usize| (1.0 - (lag - 1) as f64 / LAGS as f64) * together(lag);
    let neighbours: f64 = (1..=LAGS).map(shared).sum::<f64>().max(together(1));
    let (prior_dispersion, worth) = prior.dispersion;
    let freedom = (blocks.len() as f64 - 1.0).max(0.0);
    let own = squares + 2.0 * neighbours.max(0.0);
    ((own + prior_dispersion * worth) / (freedom + worth).max(1.0)).max(1.0)
}

/// The line's distribution on a grid, with the slope summed out.
struct Posterior {
    from: f64,
    step: f64,
    mass: Vec<f64>,
    /// Most likely line and slope.
    mode: (f64, f64),
}

impl Posterior {
    fn new(
        cells: &[(f64, f64, f64)],
        allowed: f64,
        prior: &Prior,
        dispersion: f64,
        (from, to): (f64, f64),
    ) -> Self {
        let scale = 1.0 / (dispersion * prior.inflation);
        let (above, floor) = (above_floor(allowed, prior.floor), prior.floor);
        let base = logit(above);
        let step = (to - from) / (LINES - 1) as f64;
        let mut logs = vec![[0.0f64; SLOPES]; LINES];
        let mut best = (f64::NEG_INFINITY, 0.0, 0.0);
        for (at, row) in logs.iter_mut().enumerate() {
            let line = from + at as f64 * step;
            let (middle, bound) = prior.at(line, allowed);
            let bent: Vec<f64> = cells.iter().map(|cell| prior.bent(cell.0 - line)).collect();
            for (j, log) in row.iter_mut().enumerate() {
                let z = (j as f64 / (SLOPES - 1) as f64 - 0.5) * 5.0;
                let slope = middle * (z * prior.slope_log_sd).exp();
                let (mut sum, mut information) = (0.0, 0.0);
                for ((_, scheduled, late), bent) in cells.iter().zip(&bent) {
                    let eta = base + slope * bent;
                    // ln(1 - p) is ln p - eta.
                    let ln_share = ln_logistic(eta);
                    let (share, not) = (ln_share.exp(), (ln_share - eta).exp());
                    let p = floor + (1.0 - floor) * share;
                    sum += late * p.max(1e-300).ln()
                        + (scheduled - late) * (ln_share - eta + (1.0 - floor).ln());
                    let counted = share.min(above);
                    information +=
                        scheduled * (1.0 - floor) * counted * counted * not / p.max(1e-300);
                }
                // Jeffreys' prior: with few bursts a flat one would put the line too high. It
                // must not draw the line below all blocks, where all of them would be late and tell much.
                *log = scale * sum + 0.5 * information.max(1e-9).ln() - 0.5 * z * z + bound;
                if *log > best.0 {
                    best = (*log, line, slope);
                }
            }
        }
        let mass =
            logs.iter().map(|row| row.iter().map(|log| (log - best.0).exp()).sum()).collect();
        Self { from, step, mass, mode: (best.1, best.2) }
    }

    /// Range that holds the mass, with room to either side.
    fn support(&self) -> (f64, f64) {
        let (low, high) = (self.quantile(0.001), self.quantile(0.999));
        let room = 0.5 * (high - low) + self.step;
        (low - room, high + room)
    }

    fn quantile(&self, share: f64) -> f64 {
        let total: f64 = self.mass.iter().sum();
        let mut below = 0.0;
        for (at, mass) in self.mass.iter().enumerate() {
            if below + mass >= share * total {
                let within = if *mass > 0.0 { (share * total - below) / mass } else { 0.5 };
                return self.from + (at as f64 + within - 0.5) * self.step;
            }
            below += mass;
        }
        self.from + (self.mass.len() - 1) as f64 * self.step
    }
}

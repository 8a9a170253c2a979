//! The search: ramp, bracket, focus, certify.

use super::fit::{Block, Fit, Prior, fit};
use super::plant::{Abort, Order, Plant, Segment, Trial, Window};
use crate::rng::splitmix64;

/// What is sought.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The share of requests that may miss each limit, in the plant's order.
    pub allowed: Vec<f64>,
    /// The longest time limit, s.
    pub limit_s: f64,
    /// Time for everything, s.
    pub budget_s: f64,
    /// Half-width of the interval that is good enough, as a share of the rate.
    pub width: f64,
    /// Share of intervals that shall hold the line.
    pub confidence: f64,
    /// Seed of the arrivals.
    pub seed: u64,
    /// Where to begin, requests per second.
    pub start_per_s: f64,
    /// Highest rate that may be offered, requests per second.
    pub most_per_s: f64,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The certified passing rate: the headline, per second.
    pub certified_per_s: f64,
    /// The best estimate of the line.
    pub fit: Option<Fit>,
    /// Time it took, s.
    pub elapsed_s: f64,
    /// What was forecast for the wanted width, s.
    pub forecast_s: Option<f64>,
    /// Bracket after the ramp.
    pub bracket: (f64, f64),
}

struct Search<'a> {
    plant: &'a mut dyn Plant,
    goal: &'a Goal,
    elapsed_s: f64,
    orders: u64,
    /// Focus blocks of all limits: rate and counts, in order of time.
    blocks: Vec<(f64, Window)>,
    probes: Vec<(f64, Window)>,
    capacity: Option<(f64, f64)>,
    bracket: (f64, f64),
    block_s: f64,
    settle_s: f64,
    window_s: f64,
}

fn round_to(value: f64, step: f64) -> f64 {
    (value / step).round().max(1.0) * step
}

impl Search<'_> {
    fn offer(&mut self, segments: Vec<Segment>, abort: Option<Abort>) -> Trial {
        self.orders += 1;
        let order = Order {
            segments,
            window_s: self.window_s,
            seed: splitmix64(self.goal.seed ^ splitmix64(self.orders)),
            abort,
            allowed: self.goal.allowed.clone(),
        };
        let trial = self.plant.run(&order);
        self.elapsed_s += trial.elapsed_s;
        trial
    }

    fn left_s(&self) -> f64 {
        self.goal.budget_s - self.elapsed_s
    }

    /// Late share over allowed share, of the worst limit.
    fn excess(&self, counts: &Window) -> f64 {
        let n = counts.scheduled.max(1) as f64;
        self.goal
            .allowed
            .iter()
            .zip(counts.late)
            .map(|(allowed, late)| late as f64 / (allowed * n))
            .fold(0.0, f64::max)
    }

    /// A short look at one rate: whether it holds. Looks longer while that is not clear.
    fn probe(&mut self, rate_per_s: f64, settle_s: f64, duration_s: f64) -> bool {
        let mut sum = Window::default();
        let mut length_s = duration_s;
        for _ in 0..3 {
            let duration = round_to(settle_s + length_s, self.window_s);
            let segments = vec![Segment { rate_per_s, duration_s: duration }];
            let trial = self.offer(segments, Some(Abort { excess: 3.0, late_min: 20 }));
            let skip = (settle_s / self.window_s) as usize;
            if trial.aborted {
                let mut all = sum;
                trial.windows.iter().for_each(|w| all.add(w));
                self.probes.push((rate_per_s, all));
                return false;
            }
            trial.windows.iter().skip(skip).for_each(|w| sum.add(w));
            let late = sum.late.iter().copied().max().unwrap_or(0);
            if self.excess(&sum) <= 1.0 || late >= 12 {
                break;
            }
            length_s *= 2.0;
        }
        self.probes.push((rate_per_s, sum));
        self.excess(&sum) <= 1.0
    }

    fn bracket(&mut self) -> (f64, f64) {
        let limit_s = self.goal.limit_s;
        let step_s = |rate: f64| (4.0 * limit_s).max(1.0).max(30.0 / rate);
        let mut low = 0.0;
        let mut rate = self.goal.start_per_s;
        let mut high = loop {
            if self.probe(rate, 0.0, step_s(rate)) {
                low = rate;
                rate *= 2.0;
            } else if low > 0.0 {
                break rate;
            } else {
                rate /= 4.0;
            }
        };
        self.capacity = self.saturate(high * 1.1);
        high = self.capacity.map_or(high, |c| c.0 * (1.0 + c.1)).min(high);
        low = low.min(0.8 * high);
        while high / low > 1.12 {
            let mid = (low * high).sqrt();
            if self.probe(mid, 2.0 * limit_s, (16.0 * limit_s).max(2.0)) {
                low = mid;
            } else {
                high = mid;
            }
        }
        (low, high)
    }

    /// Overloads the target for a while: what it completes then is what it can.
    fn saturate(&mut self, rate_per_s: f64) -> Option<(f64, f64)> {
        let duration_s =
            round_to((0.04 * self.goal.budget_s).max(4.0 * self.goal.limit_s), self.window_s);
        let trial = self.offer(vec![Segment { rate_per_s, duration_s }], None);
        let skip = trial.windows.len() / 4;
        let mut sum = Window::default();
        trial.windows[skip..].iter().for_each(|w| sum.add(w));
        let seconds = (trial.windows.len() - skip) as f64 * self.window_s;
        let counts: Vec<f64> = trial.windows[skip..].iter().map(|w| w.completed as f64).collect();
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let variance =
            counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (counts.len() - 1) as f64;
        let error = (variance / counts.len() as f64).sqrt() / mean.max(1e-9);
        (mean > 0.0).then_some((sum.completed as f64 / seconds, error))
    }

    fn fit(&self, center_per_s: f64, reach: f64) -> Fit {
        let center = center_per_s.ln();
        let fits: Vec<Fit> = (0..self.goal.allowed.len())
            .map(|limit| {
                let blocks: Vec<Block> = self
                    .blocks
                    .iter()
                    .filter(|(rate, _)| (rate.ln() - center).abs() < reach)
                    .map(|(rate_per_s, w)| Block {
                        rate_per_s: *rate_per_s,
                        scheduled: w.scheduled as f64,
                        late: w.late[limit] as f64,
                    })
                    .collect();
                let prior = Prior {
                    capacity: self.capacity,
                    bracket: self.bracket,
                    center_per_s,
                    slope_log_sd: 0.5,
                    dispersion: (100.0, 2.0),
                    confidence: self.goal.confidence,
                    inflation: 1.3,
                };
                fit(&blocks, self.goal.allowed[limit], &prior)
            })
            .collect();
        fits.into_iter()
            .min_by(|a, b| a.estimate_per_s.total_cmp(&b.estimate_per_s))
            .expect("a goal has a limit")
    }

    /// Offers blocks at these rates, back to back after a settling time, and keeps their counts. With an abort
    /// rule, nothing is kept of an order that it ended.
    fn blocks(&mut self, rates: &[f64], abort: Option<Abort>) -> bool {
        let mut segments = vec![Segment {
            rate_per_s: rates[0],
            duration_s: round_to(self.block_s, self.window_s),
        }];
        for &rate_per_s in rates {
            segments.push(Segment { rate_per_s, duration_s: self.settle_s + self.block_s });
        }
        let trial = self.offer(segments.clone(), abort);
        if trial.aborted {
            return false;
        }
        let count = |s: f64| (s / self.window_s).round() as usize;
        let mut at = count(segments[0].duration_s);
        for &rate in rates {
            at += count(self.settle_s);
            let mut sum = Window::default();
            trial.windows[at..at + count(self.block_s)].iter().for_each(|w| sum.add(w));
            at += count(self.block_s);
            self.blocks.push((rate, sum));
        }
        true
    }

    fn order_s(&self, blocks: usize) -> f64 {
        self.block_s + blocks as f64 * (self.settle_s + self.block_s) + 2.0 * self.goal.limit_s
    }
}

/// Searches the load line of `plant`.
pub fn seek(plant: &mut dyn Plant, goal: &Goal) -> Finding {
    let limit_s = goal.limit_s;
    let window_s = (limit_s / 2.0).clamp(0.05, 1.0);
    let mut search = Search {
        plant,
        goal,
        elapsed_s: 0.0,
        orders: 0,
        blocks: Vec::new(),
        probes: Vec::new(),
        capacity: None,
        bracket: (0.0, 0.0),
        block_s: round_to((16.0 * limit_s).max(4.0), window_s),
        settle_s: round_to((2.0 * limit_s).max(0.5), window_s),
        window_s,
    };
    let bracket = search.bracket();
    let mut center = bracket.0;
    let mut slope = 10.0f64;
    let mut found;
    let reserve_s = 0.2 * goal.budget_s;
    while !search.blocks(&[center; 2], Some(Abort { excess: 8.0, late_min: 50 })) {
        center *= 0.93;
        if search.left_s() < 0.0 {
            break;
        }
    }
    search.bracket = (0.8 * center, 1.2 * center);
    loop {
        found = search.fit(center, 1.5 / slope);
        if std::env::var("TRACE").is_ok() {
            let l = search.blocks.last().unwrap();
            eprintln!(
                "center {center:.1} fit {:?} cap {:?} br {:?} last {:.1} {}/{} t {:.0}",
                found, search.capacity, bracket, l.0, l.1.late[0], l.1.scheduled, search.elapsed_s
            );
        }
        slope = found.slope;
        center = found.estimate_per_s.clamp(center * 0.95, center * 1.05);
        let enough = search.blocks.len() >= 8 && found.half_width() <= goal.width;
        if enough || search.left_s() - reserve_s < search.order_s(6) {
            break;
        }
        let step = (0.6 / slope).min(found.half_width().max(0.2 / slope)).clamp(0.003, 0.05);
        let (a, b) = (center * (-step).exp(), center * step.exp());
        search.blocks(&[a, a, a, b, b, b], None);
    }
    let mut certified = 0.0;
    let mut rate = found.estimate_per_s * (1.0 - 0.5 * found.half_width().min(0.04));
    while certified == 0.0 {
        let n = 4;
        search.blocks(&vec![rate; n], None);
        let mut sum = Window::default();
        search.blocks.iter().rev().take(n).for_each(|(_, w)| sum.add(w));
        found = search.fit(center, 1.5 / slope);
        if search.excess(&sum) <= 1.0 {
            certified = rate;
        } else if search.left_s() < -0.2 * goal.budget_s {
            break;
        }
        rate = rate.min(found.estimate_per_s) * 0.985;
    }
    Finding {
        certified_per_s: certified,
        fit: Some(found),
        elapsed_s: search.elapsed_s,
        forecast_s: None,
        bracket,
    }
}

//! Targets whose percentiles have closed forms.

use crate::draw::Draw;
use crate::oracles::{lognormal_tail, md1_late, mmk_late};
use plimsoll_core::histogram::{Histogram, Packed};
use plimsoll_core::rng::{Rng, derive_seed};

/// Mean response time of targets without a queue, s.
const MEAN_S: f64 = 0.01;
/// Standard deviation of the logarithm.
const SIGMA: f64 = 1.0;
/// Shape of the heavy tail: it has a mean and no variance.
const SHAPE: f64 = 1.5;
/// Share, base and spread of the two modes, s.
const MODES: [(f64, f64, f64); 2] = [(0.9, 0.005, 0.000_5), (0.1, 0.05, 0.01)];
/// Seconds that are being filled at the same time; a reply that takes longer counts in the last of them.
const OPEN_SECONDS: usize = 64;

/// A target. Requests arrive as a Poisson process; a queue is empty at first, as in a run without warm-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// Independent exponential response times.
    Exponential,
    /// Independent lognormal response times.
    Lognormal,
    /// Independent response times of two kinds: hits and misses of a cache.
    Bimodal,
    /// Independent response times with a Pareto tail of shape 1.5.
    HeavyTail,
    /// Exponential service times, first come first served.
    Queue {
        /// Arrival rate as a share of the capacity.
        load: f64,
        /// Servers.
        servers: usize,
    },
    /// Constant service time, one server.
    Constant {
        /// Arrival rate as a share of the capacity.
        load: f64,
    },
}

impl Target {
    /// All targets of the table.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let queue = |load, servers| Self::Queue { load, servers };
        let mut all = vec![Self::Exponential, Self::Lognormal, Self::Bimodal, Self::HeavyTail];
        all.extend([0.3, 0.5, 0.8, 0.9, 0.95].map(|load| queue(load, 1)));
        all.extend([queue(0.8, 4), Self::Constant { load: 0.8 }]);
        all
    }

    /// The name in the table.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Exponential => "exponential".to_owned(),
            Self::Lognormal => "lognormal".to_owned(),
            Self::Bimodal => "bimodal".to_owned(),
            Self::HeavyTail => "heavy tail".to_owned(),
            Self::Queue { load, servers } => format!("M/M/{servers} at {load}"),
            Self::Constant { load } => format!("M/D/1 at {load}"),
        }
    }

    /// The share of requests that take longer than `t_s`, in the long run.
    fn late(self, rate_per_s: f64, t_s: f64) -> f64 {
        match self {
            Self::Exponential => (-t_s / MEAN_S).exp(),
            Self::Lognormal => lognormal_tail(MEAN_S, SIGMA, t_s),
            Self::Bimodal => {
                let tail = |base: f64, spread: f64| (-(t_s - base).max(0.0) / spread).exp();
                MODES.iter().map(|&(share, base, spread)| share * tail(base, spread)).sum()
            }
            Self::HeavyTail => (1.0 + t_s / (MEAN_S * (SHAPE - 1.0))).powf(-SHAPE),
            Self::Queue { load, servers } => {
                mmk_late(servers, load * servers as f64 / rate_per_s, rate_per_s, t_s)
            }
            Self::Constant { load } => md1_late(load / rate_per_s, rate_per_s, t_s),
        }
    }

    /// The true percentile, s; `quantile` is between 0 and 1.
    #[must_use]
    pub fn quantile_s(self, rate_per_s: f64, quantile: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1e-3);
        while self.late(rate_per_s, high) > 1.0 - quantile {
            high *= 2.0;
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.late(rate_per_s, middle) > 1.0 - quantile {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low + high)
    }

    /// The response times of a run, by the second in which they end; those that end later are in the last one.
    #[must_use]
    pub fn run(self, rate_per_s: f64, length_s: u32, seed: u64) -> Vec<Packed> {
        let mut rng = Rng::new(derive_seed(seed, &self.name()));
        let last = length_s as usize - 1;
        let mut open = vec![Histogram::new(); OPEN_SECONDS.min(length_s as usize)];
        let mut done: Vec<Packed> = Vec::new();
        let mut close = |open: &mut Vec<Histogram>, until: usize| {
            while done.len() < until {
                let slot = done.len() % open.len();
                done.push(Packed::of(&open[slot]));
                open[slot].clear();
            }
        };
        let mut station = Station::of(self, rate_per_s);
        let mut now_s = rng.exponential() / rate_per_s;
        let mut second = 0;
        while now_s < f64::from(length_s) {
            if now_s as usize > second {
                second = now_s as usize;
                close(&mut open, second);
            }
            let response_s = station.response_s(now_s, &mut rng);
            let ended = ((now_s + response_s) as usize).min(last).min(second + open.len() - 1);
            let slot = ended % open.len();
            open[slot].record((response_s * 1e9) as u64);
            now_s += rng.exponential() / rate_per_s;
        }
        close(&mut open, length_s as usize);
        done
    }
}

/// The state of a target.
struct Station {
    target: Target,
    service_s: f64,
    /// Moments at which servers become free, s.
    free_s: Vec<f64>,
}

impl Station {
    fn of(target: Target, rate_per_s: f64) -> Self {
        let (servers, load) = match target {
            Target::Queue { load, servers } => (servers, load),
            Target::Constant { load } => (1, load),
            _ => (1, 0.0),
        };
        let service_s = load * servers as f64 / rate_per_s;
        Self { target, service_s, free_s: vec![0.0; servers] }
    }

    fn response_s(&mut self, now_s: f64, rng: &mut Rng) -> f64 {
        let service_s = match self.target {
            Target::Exponential => return MEAN_S * rng.exponential(),
            Target::Lognormal => {
                return Draw::Lognormal { mean_s: MEAN_S, sigma: SIGMA }.draw(rng);
            }
            Target::Bimodal => {
                let (_, base, spread) = MODES[usize::from(rng.uniform() >= MODES[0].0)];
                return base + spread * rng.exponential();
            }
            Target::HeavyTail => return Draw::Pareto { mean_s: MEAN_S, shape: SHAPE }.draw(rng),
            Target::Queue { .. } => self.service_s * rng.exponential(),
            Target::Constant { .. } => self.service_s,
        };
        let mut first = 0;
        for (at, free_s) in self.free_s.iter().enumerate() {
            if *free_s < self.free_s[first] {
                first = at;
            }
        }
        self.free_s[first] = self.free_s[first].max(now_s) + service_s;
        self.free_s[first] - now_s
    }
}

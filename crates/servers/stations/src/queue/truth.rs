//! Response times of a station in closed form.
//!
//! The response time of a request is its waiting plus its service plus the configured delay, as
//! seen by requests that find the station in its steady state. Sources:
//!
//! - M/M/1, M/M/k, Erlang's C formula: Gross, Shortle, Thompson, Harris, *Fundamentals of Queueing
//!   Theory*, 4th ed., sections 2.2 and 2.3.
//! - M/G/1 mean: Pollaczek 1930, Khinchine 1932 (the same book, 5.1).
//! - M/D/1 waiting times: G. J. Franx, "A simple solution for the M/D/c waiting time distribution",
//!   Operations Research Letters 29 (2001), with c = 1. All its terms are positive, where Erlang's
//!   series alternates.
//! - D/M/1: the same book, 5.3 (GI/M/1).
//! - Unlimited servers: no request waits, so the response time is the service time.
//! - Stalls: derived at [`stalls`].

use super::QueueConfig;
use super::service::ServiceTime;
use super::special::invert;
use super::station::{Stall, StationConfig};
use plimsoll_core::gamma::ln_gamma;
use serde::Serialize;

/// The way requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Independent, with exponential gaps.
    Poisson,
    /// One every `1 / rate`.
    Uniform,
}

/// Response times in closed form, in milliseconds; `None` without a closed form.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Truth {
    /// The model in Kendall's notation, for instance `M/M/1`.
    pub model: String,
    /// The formula's name and source.
    pub source: &'static str,
    /// Share of time that a server is busy; 0 for unlimited servers.
    pub utilization: f64,
    /// Mean response.
    pub mean_ms: Option<f64>,
    /// Median response.
    pub p50_ms: Option<f64>,
    /// 90th percentile.
    pub p90_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// The least upper bound, where there is one.
    pub max_ms: Option<f64>,
}

/// The closed form for arrivals at `rate_per_s`, or `None` where there is none.
#[must_use]
pub fn truth(config: &QueueConfig, rate_per_s: f64, arrivals: Arrivals) -> Option<Truth> {
    truth_or_reason(config, rate_per_s, arrivals).ok()
}

/// The closed form, or one sentence that says why there is none.
///
/// # Errors
/// The reason, for people.
pub fn truth_or_reason(
    config: &QueueConfig,
    rate_per_s: f64,
    arrivals: Arrivals,
) -> Result<Truth, &'static str> {
    let station = &config.station;
    if !(rate_per_s.is_finite() && rate_per_s > 0.0) {
        return Err("the rate must be above 0");
    }
    if station.in_flight_cap.is_some() {
        return Err(
            "with a cap on requests in flight the response depends on the rejected requests",
        );
    }
    let service = station.service;
    let truth = match (station.stall, service) {
        (Some(stall), ServiceTime::Fixed { ns: 0 }) => {
            // The requests of a stall wait until its end: at most ten standard deviations more than on average.
            let waiting = rate_per_s * stall.length_ns as f64 / 1e9;
            if waiting + 10.0 * waiting.sqrt() >= station.waiting_max as f64 {
                return Err(LIMITED);
            }
            stalls(stall)
        }
        (Some(_), _) => return Err("stalls have a closed form only with fixed:0 service"),
        (None, _) if station.servers == 0 => unlimited(service, arrivals),
        (None, _) => {
            let servers = station.servers;
            let utilization = rate_per_s * service.mean_ns() / 1e9 / f64::from(servers);
            let is_limited = station.waiting_max < StationConfig::default().waiting_max;
            let steady = Steady { service, servers, rate_per_s, utilization, is_limited };
            steady.truth(arrivals)?
        }
    };
    Ok(truth.delayed_by(station.delay_ns as f64 / 1e6))
}

impl Truth {
    fn new(model: impl Into<String>, source: &'static str, utilization: f64) -> Self {
        let model = model.into();
        Self {
            model,
            source,
            utilization,
            mean_ms: None,
            p50_ms: None,
            p90_ms: None,
            p95_ms: None,
            p99_ms: None,
            max_ms: None,
        }
    }

    fn with_quantiles(mut self, quantile_ms: impl Fn(f64) -> f64) -> Self {
        self.p50_ms = Some(quantile_ms(0.50));
        self.p90_ms = Some(quantile_ms(0.90));
        self.p95_ms = Some(quantile_ms(0.95));
        self.p99_ms = Some(quantile_ms(0.99));
        self
    }

    fn with_mean(mut self, mean_ms: f64) -> Self {
        self.mean_ms = Some(mean_ms);
        self
    }

    fn with_max(mut self, max_ms: f64) -> Self {
        self.max_ms = Some(max_ms);
        self
    }

    fn delayed_by(mut self, delay_ms: f64) -> Self {
        for value in [
            &mut self.mean_ms,
            &mut self.p50_ms,
            &mut self.p90_ms,
            &mut self.p95_ms,
            &mut self.p99_ms,
            &mut self.max_ms,
        ] {
            *value = value.map(|ms| ms + delay_ms);
        }
        self
    }
}

/// Service that takes no time, frozen for the last D of every P, however many servers.
///
/// A request that arrives u after a stall began waits `D - u` when `u < D` and not at all
/// otherwise. Over whole periods u is uniform in [0, P), so `P(R > r) = (D - r) / P` for `0 <= r <
/// D`; hence the q-quantile is `max(0, D - (1 - q) P)`, the mean `D^2 / (2 P)` and the maximum D.
/// This holds for uniform arrivals, for Poisson arrivals, and for any others that do not know the
/// period.
fn stalls(stall: Stall) -> Truth {
    let (length, period) = (stall.length_ns as f64 / 1e6, stall.period_ns as f64 / 1e6);
    Truth::new("stalls", "max(0, D - (1 - q) P), mean D^2 / (2 P)", 0.0)
        .with_mean(length * length / (2.0 * period))
        .with_quantiles(|q| (length - (1.0 - q) * period).max(0.0))
        .with_max(length)
}

fn unlimited(service: ServiceTime, arrivals: Arrivals) -> Truth {
    let process = if arrivals == Arrivals::Poisson { "M" } else { "D" };
    let truth = Truth::new(format!("{process}/{}/inf", letter(service)), "service time", 0.0)
        .with_mean(service.mean_ns() / 1e6)
        .with_quantiles(|q| service.quantile_ns(q) / 1e6);
    match service {
        ServiceTime::Fixed { ns } => truth.with_max(ns as f64 / 1e6),
        ServiceTime::Bimodal { a_ns, b_ns, .. } => truth.with_max(a_ns.max(b_ns) as f64 / 1e6),
        _ => truth,
    }
}

/// Kendall's letter of a service time.
fn letter(service: ServiceTime) -> &'static str {
    match service {
        ServiceTime::Fixed { .. } => "D",
        ServiceTime::Exponential { .. } => "M",
        _ => "G",
    }
}

/// Reason why a line of limited length has no closed form.
const LIMITED: &str =
    "with a limit of waiting requests the response depends on the rejected requests";

/// A station with a limited number of servers.
struct Steady {
    service: ServiceTime,
    servers: u32,
    rate_per_s: f64,
    utilization: f64,
    /// Fewer requests may wait than by default, and arrivals may be rejected.
    is_limited: bool,
}

impl Steady {
    fn truth(&self, arrivals: Arrivals) -> Result<Truth, &'static str> {
        let service_ms = self.service.mean_ns() / 1e6;
        if let (Arrivals::Uniform, ServiceTime::Fixed { .. }) = (arrivals, self.service) {
            // The k-th next arrival comes k / rate later, when this server is free again. The
            // tolerance allows for a utilization of exactly 1 that was rounded.
            if self.utilization > 1.0 + 1e-12 {
                return Err("the station is overloaded: its queue grows without end");
            }
            return Ok(Truth::new(self.model("D"), "no request waits", self.utilization)
                .with_mean(service_ms)
                .with_quantiles(|_| service_ms)
                .with_max(service_ms));
        }
        if self.utilization >= 1.0 {
            return Err("the station is overloaded: its queue grows without end");
        }
        match (arrivals, self.service, self.servers) {
            (_, service, _) if service.mean_ns() == 0.0 => Ok(self.instant(arrivals)),
            _ if self.is_limited => Err(LIMITED),
            (Arrivals::Poisson, ServiceTime::Exponential { .. }, _) => Ok(self.m_m_k()),
            (Arrivals::Poisson, ServiceTime::Fixed { .. }, 1) => Ok(self.m_d_1()),
            (Arrivals::Poisson, _, 1) => Ok(Truth::new("M/G/1", MEAN_SOURCE, self.utilization)
                .with_mean(self.pollaczek_khinchine_ms())),
            (Arrivals::Poisson, _, _) => {
                Err("M/D/k and M/G/k with more than one server have no closed form")
            }
            (Arrivals::Uniform, ServiceTime::Exponential { .. }, 1) => Ok(self.d_m_1()),
            (Arrivals::Uniform, _, _) => {
                Err("uniform arrivals have a closed form only with fixed service, with unlimited \
                     servers, or with one exponential server")
            }
        }
    }

    fn model(&self, process: &str) -> String {
        format!("{process}/{}/{}", letter(self.service), self.servers)
    }

    /// Service without duration: no request waits.
    fn instant(&self, arrivals: Arrivals) -> Truth {
        let process = if arrivals == Arrivals::Poisson { "M" } else { "D" };
        Truth::new(self.model(process), "no request waits", 0.0)
            .with_mean(0.0)
            .with_quantiles(|_| 0.0)
            .with_max(0.0)
    }

    /// M/G/1 mean: `E[S] + rate E[S^2] / (2 (1 - rho))`.
    fn pollaczek_khinchine_ms(&self) -> f64 {
        let mean_s = self.service.mean_ns() / 1e9;
        let second_moment_s2 = self.service.variance_ns2() / 1e18 + mean_s * mean_s;
        let waiting_s = self.rate_per_s * second_moment_s2 / (2.0 * (1.0 - self.utilization));
        (mean_s + waiting_s) * 1e3
    }

    /// The response is the sum of an exponential service and of a waiting that is 0 or, with
    /// probability C, exponential with rate `k mu - lambda`.
    fn m_m_k(&self) -> Truth {
        let service_ms = self.service.mean_ns() / 1e6;
        let servers = f64::from(self.servers);
        let load = self.utilization * servers;
        let waits = erlang_c(self.servers, load);
        // In units of the mean service time the waiting's rate is k - a.
        let drain = servers - load;
        let tail = |t: f64| {
            let gap = drain - 1.0;
            // (1 - exp(-gap t)) / gap, which tends to t as the rates become equal.
            let mixed = if gap.abs() < 1e-9 { t } else { -(-gap * t).exp_m1() / gap };
            (-t).exp() * (1.0 + waits * mixed)
        };
        let source = "exponential waiting with Erlang's C, plus exponential service";
        Truth::new(self.model("M"), source, self.utilization)
            .with_mean(service_ms * (1.0 + waits / drain))
            .with_quantiles(|q| service_ms * invert(|t| 1.0 - tail(t), q))
    }

    /// GI/M/1: the response is exponential with rate `mu (1 - sigma)`, where sigma in (0, 1) solves
    /// `sigma = exp(-mu (1 - sigma) / lambda)`.
    fn d_m_1(&self) -> Truth {
        let service_ms = self.service.mean_ns() / 1e6;
        // With x = 1 - sigma: the positive root of 1 - x = exp(-x / rho), by bisection.
        let (mut low, mut high) = (1e-15, 1.0);
        for _ in 0..200 {
            let x = 0.5 * (low + high);
            if -(-x / self.utilization).exp_m1() > x { low = x } else { high = x }
        }
        let response_ms = service_ms / high;
        Truth::new("D/M/1", "GI/M/1 with its root sigma", self.utilization)
            .with_mean(response_ms)
            .with_quantiles(|q| response_ms * -(-q).ln_1p())
    }

    fn m_d_1(&self) -> Truth {
        let service_ms = self.service.mean_ns() / 1e6;
        let truth =
            Truth::new("M/D/1", "Franx 2001; mean by Pollaczek and Khinchine", self.utilization)
                .with_mean(self.pollaczek_khinchine_ms());
        let Some(waiting) = DeterministicWaiting::new(self.utilization) else { return truth };
        truth.with_quantiles(|q| service_ms * (1.0 + invert(|x| waiting.up_to(x), q)))
    }
}

const MEAN_SOURCE: &str = "mean by Pollaczek and Khinchine; the distribution has no closed form";

/// The probability that an arrival must wait, for `load` = rate times mean service below `servers`;
/// through Erlang's B recursion, which never overflows.
fn erlang_c(servers: u32, load: f64) -> f64 {
    let blocked =
        (1..=servers).fold(1.0, |blocked, n| load * blocked / (f64::from(n) + load * blocked));
    let utilization = load / f64::from(servers);
    blocked / (1.0 - utilization * (1.0 - blocked))
}

/// M/D/1 waiting times in units of the service time.
struct DeterministicWaiting {
    utilization: f64,
    /// `line[m]`: the probability that at most m requests wait (one more may be in service).
    line: Vec<f64>,
}

impl DeterministicWaiting {
    /// Queue lengths are followed until so little is left above them.
    const REST: f64 = 1e-10;
    /// And at most so far: the work is quadratic. Enough for a utilization of 0.995.
    const LENGTHS_MAX: usize = 4_000;

    /// `None` when the utilization is so high that queue lengths beyond the limit matter.
    fn new(utilization: f64) -> Option<Self> {
        // above[m]: the probability of more than m arrivals during one service.
        let mut above = Vec::with_capacity(Self::LENGTHS_MAX);
        let none = (-utilization).exp();
        let mut term = none;
        let mut rest = 1.0 - none;
        for m in 1..=Self::LENGTHS_MAX {
            above.push(rest.max(0.0));
            term *= utilization / m as f64;
            rest -= term;
            // Below the rounding of 1 the difference is noise; the next term bounds the true rest.
            if rest < 1e-14 {
                rest = term;
            }
        }
        // States at departures, in the order of their cut equations: each is a sum of positive
        // terms.
        let mut states = vec![1.0 - utilization];
        let mut sum = states[0];
        let mut line = Vec::new();
        while 1.0 - sum > Self::REST {
            let j = states.len() - 1;
            if j + 1 >= Self::LENGTHS_MAX {
                return None;
            }
            let from_busy = (1..=j).map(|i| states[i] * above[j - i + 1]).sum::<f64>();
            let next = (states[0] * above[j] + from_busy) / none;
            states.push(next);
            sum += next;
            line.push(sum.min(1.0));
        }
        Some(Self { utilization, line })
    }

    /// The probability that a request waits at most `x` service times.
    fn up_to(&self, x: f64) -> f64 {
        let k = x.floor() as usize + 1;
        let ahead = self.utilization * (k as f64 - x);
        let share = |j: usize| match j {
            0 => (-ahead).exp(),
            j => (j as f64 * ahead.ln() - ahead - ln_gamma(j as f64 + 1.0)).exp(),
        };
        let line = |m: usize| self.line.get(m).copied().unwrap_or(1.0);
        (0..k).map(|j| line(k - j - 1) * share(j)).sum()
    }
}

#[cfg(test)]
mod tests;

//! The queue M/G/k with measured variation of its service times, by the approximation of Allen and Cunneen.
//!
//! The mean wait is Erlang's C over the free capacity, times (1 + c²) / 2, where c is the coefficient of variation of the
//! service time (exact for k = 1 and for c = 1). The wait of those that wait is taken as exponential, which is exact for c = 1.
//! The response time is the wait plus a service time, which is a Weibull variable with the measured mean and variation, or the
//! measured distribution itself.

/// Service times with a mean of 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Times with their probabilities, in ascending order. The tail has more of them than its probability.
    times: Vec<(f64, f64)>,
    /// Squared coefficient of variation.
    cv2: f64,
    /// Factor of the mean wait over that of the approximation.
    wait: f64,
}

/// Halvings of the tail: the last part has the probability 2^-8.
const TAILS: u32 = 8;
/// Times in each part.
const PART: u32 = 12;

impl Service {
    /// Returns the Weibull distribution with this squared coefficient of variation, 0.01 to 25 (other values are moved there).
    #[must_use]
    pub fn weibull(cv2: f64) -> Self {
        let cv2 = cv2.clamp(0.01, 25.0);
        // The variation falls as the shape grows.
        let (mut low, mut high) = (0.2f64, 20.0f64);
        for _ in 0..60 {
            let shape = 0.5 * (low + high);
            let mean = gamma(1.0 + 1.0 / shape);
            if gamma(1.0 + 2.0 / shape) / (mean * mean) - 1.0 > cv2 {
                low = shape;
            } else {
                high = shape;
            }
        }
        let shape = 0.5 * (low + high);
        let quantile = |p: f64| (-(-p).ln_1p()).powf(1.0 / shape);
        let certain = Self { times: vec![(1.0, 1.0)], cv2, wait: 1.0 };
        Self { cv2, ..Self::of(quantile).unwrap_or(certain) }
    }

    /// Returns the distribution with this quantile function, whose argument is above 0 and below 1 and whose unit is any;
    /// nothing if its mean is not above 0.
    #[must_use]
    pub fn of(quantile: impl Fn(f64) -> f64) -> Option<Self> {
        let mut times = Vec::new();
        let mut above = 1.0;
        for tail in 0..=TAILS {
            let width = if tail == TAILS { above } else { 0.5 * above };
            for i in 0..PART {
                let p = 1.0 - above + width * (f64::from(i) + 0.5) / f64::from(PART);
                times.push((quantile(p), width / f64::from(PART)));
            }
            above -= width;
        }
        let mean: f64 = times.iter().map(|(time, share)| time * share).sum();
        if !(mean > 0.0 && mean.is_finite()) {
            return None;
        }
        times.iter_mut().for_each(|(time, _)| *time /= mean);
        let cv2 = times.iter().map(|(time, share)| share * (time - 1.0) * (time - 1.0)).sum();
        Some(Self { times, cv2, wait: 1.0 })
    }

    /// Returns the same service times with waits that are `factor` times as long as the approximation has them.
    #[must_use]
    pub fn waiting(&self, factor: f64) -> Self {
        Self { wait: factor, ..self.clone() }
    }

    /// The factor of [`Service::waiting`].
    #[must_use]
    pub fn wait(&self) -> f64 {
        self.wait
    }

    /// The squared coefficient of variation.
    #[must_use]
    pub fn cv2(&self) -> f64 {
        self.cv2
    }

    /// Returns the share of requests whose response takes longer than `limit` mean service times, at `servers` servers that
    /// are busy for this share of the time, 0 to 1.
    #[must_use]
    pub fn late(&self, servers: f64, busy: f64, limit: f64) -> f64 {
        if busy >= 1.0 {
            return 1.0;
        }
        let waiting = erlang_c(servers, busy);
        let decay = servers * (1.0 - busy) * 2.0 / (self.wait * (1.0 + self.cv2));
        let late = |(service, share): &(f64, f64)| {
            let left = limit - service;
            share * if left < 0.0 { 1.0 } else { waiting * (-decay * left).exp() }
        };
        self.times.iter().map(late).sum()
    }

    /// Returns the share of time, 0 to 1, for which `servers` servers are busy at the highest rate at which at most `allowed`
    /// of the requests take longer than `limit` mean service times; 0 if no rate holds that.
    #[must_use]
    pub fn busy_at_limit(&self, servers: f64, limit: f64, allowed: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..24 {
            let busy = 0.5 * (low + high);
            if self.late(servers, busy, limit) <= allowed {
                low = busy;
            } else {
                high = busy;
            }
        }
        low
    }
}

/// Returns the probability that a request waits at `servers` servers, which are busy for this share of the time; between
/// whole numbers of servers it is interpolated.
fn erlang_c(servers: f64, busy: f64) -> f64 {
    let whole = servers.floor().max(1.0);
    let part = (servers - whole).max(0.0);
    let of = |servers: f64| {
        let load = servers * busy;
        let mut blocked = 1.0;
        let mut k = 1.0;
        while k <= servers {
            blocked = load * blocked / (k + load * blocked);
            k += 1.0;
        }
        blocked / (1.0 - busy * (1.0 - blocked))
    };
    if part == 0.0 { of(whole) } else { (1.0 - part) * of(whole) + part * of(whole + 1.0) }
}

/// Returns the gamma function for x from 1 to 12, by Stirling's series after nine steps of the recurrence (relative error
/// below 1e-9).
fn gamma(x: f64) -> f64 {
    let (mut x, mut below) = (x, 1.0);
    while x < 12.0 {
        below *= x;
        x += 1.0;
    }
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    ((x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series).exp() / below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exponential_service_is_that_of_the_closed_form() {
        let service = Service::weibull(1.0);
        // M/M/1: the response time is exponential with the rate 1 - busy.
        for busy in [0.3, 0.5, 0.8] {
            let late = (-(1.0f64 - busy) * 6.0).exp();
            assert!((service.late(1.0, busy, 6.0) / late - 1.0).abs() < 0.05, "{busy}");
        }
        // M/M/4 with 20 ms at p95 = 100 ms holds 163.04 per second.
        let busy = service.busy_at_limit(4.0, 5.0, 0.05);
        assert!((busy * 200.0 / 163.04 - 1.0).abs() < 0.01, "{busy}");
        assert_eq!(service.busy_at_limit(4.0, 0.5, 0.05), 0.0);
    }

    #[test]
    fn more_servers_hold_more_each_and_variation_costs() {
        let busy = |k, cv2| Service::weibull(cv2).busy_at_limit(k, 5.0, 0.05);
        assert!(busy(2.0, 1.0) > busy(1.0, 1.0) && busy(2.5, 1.0) > busy(2.0, 1.0));
        assert!(busy(4.0, 0.1) > busy(4.0, 1.0));
        let even = Service::of(|p| 40.0 * p).expect("times");
        assert!((even.cv2() - 1.0 / 3.0).abs() < 1e-2);
        assert_eq!(Service::of(|_| 0.0), None);
    }

    #[test]
    fn gamma_agrees_with_factorials() {
        for (x, value) in [(1.0, 1.0), (1.5, 0.886_226_925), (2.0, 1.0), (6.0, 120.0)] {
            assert!((gamma(x) / value - 1.0).abs() < 1e-8, "{x}");
        }
    }
}

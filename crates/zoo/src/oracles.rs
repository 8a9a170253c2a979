//! Load lines from closed forms.

/// Probability that an arrival at M/M/k has to wait (Erlang 1917), for an offered load of `a` servers' worth.
fn erlang_c(servers: usize, a: f64) -> f64 {
    // The recursion of the blocking probability does not overflow.
    let mut blocked = 1.0;
    for k in 1..=servers {
        blocked = a * blocked / (k as f64 + a * blocked);
    }
    let k = servers as f64;
    k * blocked / (k - a * (1.0 - blocked))
}

/// Probability that a wait with this chance and rate, and then an exponential service, exceed `t` together.
fn wait_and_service(waits: f64, wait_rate: f64, service_rate: f64, t: f64) -> f64 {
    let served = (-service_rate * t).exp();
    let gap = wait_rate - service_rate;
    let both = if gap.abs() < 1e-9 * service_rate {
        served * (1.0 + service_rate * t)
    } else {
        (wait_rate * served - service_rate * (-wait_rate * t).exp()) / gap
    };
    (1.0 - waits) * served + waits * both
}

/// Share of requests of M/M/k that take longer than `t`, s.
#[must_use]
pub fn mmk_late(servers: usize, service_s: f64, rate_per_s: f64, t: f64) -> f64 {
    let (k, mu) = (servers as f64, 1.0 / service_s);
    wait_and_service(erlang_c(servers, rate_per_s * service_s), k * mu - rate_per_s, mu, t)
}

/// Share of requests of M/D/1 that take longer than `t`, s (Erlang 1909). The sum alternates: good to about ten
/// service times.
#[must_use]
pub fn md1_late(service_s: f64, rate_per_s: f64, t: f64) -> f64 {
    let wait_s = t - service_s;
    if wait_s < 0.0 {
        return 1.0;
    }
    let mut sum = 0.0;
    let mut factorial = 1.0;
    for j in 0..=(wait_s / service_s).floor() as i32 {
        if j > 0 {
            factorial *= f64::from(j);
        }
        let y = rate_per_s * (f64::from(j) * service_s - wait_s);
        sum += (-y).exp() * y.powi(j) / factorial;
    }
    1.0 - (1.0 - rate_per_s * service_s) * sum
}

/// Share of requests of D/M/k that take longer than `t`, s: Takacs' solution of GI/M/k (1962) with the root of
/// `sigma = A*(k mu (1 - sigma))`, where the transform of even gaps is `A*(s) = exp(-s / rate)`.
#[must_use]
pub fn dmk_late(servers: usize, service_s: f64, rate_per_s: f64, t: f64) -> f64 {
    let (k, mu) = (servers as f64, 1.0 / service_s);
    let transform = |s: f64| (-s / rate_per_s).exp();
    let sigma = bisect(1e-12, 1.0 - 1e-9, |sigma| transform(k * mu * (1.0 - sigma)) > sigma);
    let mut sum = 1.0 / (1.0 - sigma);
    let (mut product, mut choose) = (1.0, 1.0);
    for j in 1..=servers {
        let j_ = j as f64;
        let phi = transform(j_ * mu);
        product *= phi / (1.0 - phi);
        choose *= (k - j_ + 1.0) / j_;
        sum += choose / (product * (1.0 - phi)) * (k * (1.0 - phi) - j_) / (k * (1.0 - sigma) - j_);
    }
    let waits = 1.0 / sum / (1.0 - sigma);
    wait_and_service(waits, k * mu * (1.0 - sigma), mu, t)
}

/// Where a condition that holds at `low` stops holding, below `high`.
pub fn bisect(low: f64, high: f64, holds: impl FnMut(f64) -> bool) -> f64 {
    bisect_in(200, low, high, holds)
}

/// The same in so many halvings.
pub fn bisect_in(
    halvings: u32,
    mut low: f64,
    mut high: f64,
    mut holds: impl FnMut(f64) -> bool,
) -> f64 {
    for _ in 0..halvings {
        let mid = 0.5 * (low + high);
        if holds(mid) {
            low = mid;
        } else {
            high = mid;
        }
    }
    0.5 * (low + high)
}

/// The highest rate at which no more than `allowed` are late, below a capacity.
pub fn line(capacity_per_s: f64, allowed: f64, late: impl Fn(f64) -> f64) -> f64 {
    bisect(1e-6 * capacity_per_s, capacity_per_s * (1.0 - 1e-9), |rate| late(rate) <= allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Draw;
    use crate::models::long_run_late;
    use crate::plant::{Arrivals, Queue, Quirk};

    #[test]
    fn published_lines_of_exponential_queues() {
        for (servers, service_s, limit_s, published) in [
            (1, 0.02, 0.5, 44.01),
            (4, 0.02, 0.1, 163.04),
            (16, 0.1, 0.5, 151.87),
            (16, 0.005, 0.02, 2952.0),
        ] {
            let capacity = servers as f64 / service_s;
            let line = line(capacity, 0.05, |rate| mmk_late(servers, service_s, rate, limit_s));
            assert!((line / published - 1.0).abs() < 2e-4, "{servers}: {line}");
        }
    }

    #[test]
    fn closed_forms_agree_with_the_simulated_queues() {
        let even = Arrivals::Uniform;
        let cases = [
            (4, Draw::Exponential(0.02), Arrivals::Poisson, 150.0, mmk_late(4, 0.02, 150.0, 0.06)),
            (1, Draw::Fixed(0.01), Arrivals::Poisson, 70.0, md1_late(0.01, 70.0, 0.06)),
            (1, Draw::Exponential(0.02), even, 35.0, dmk_late(1, 0.02, 35.0, 0.06)),
            (8, Draw::Exponential(0.02), even, 340.0, dmk_late(8, 0.02, 340.0, 0.06)),
        ];
        for (servers, service, arrivals, rate, closed) in cases {
            let queue = Queue { servers, service, delay_s: 0.0, arrivals, quirk: Quirk::None };
            let late = long_run_late(queue, 0.06, rate, 2e6, 11);
            assert!((late / closed - 1.0).abs() < 0.05, "{servers} {rate}: {late} for {closed}");
        }
    }
}

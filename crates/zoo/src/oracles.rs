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

/// Probability that a standard normal variable exceeds `z`, to 1e-7 of itself (Press et al., Numerical Recipes, erfcc).
#[must_use]
pub fn normal_tail(z: f64) -> f64 {
    const SERIES: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x);
    let sum = SERIES.iter().rev().fold(0.0, |sum, c| sum * t + c);
    let tail = 0.5 * t * (sum - x * x).exp();
    if z < 0.0 { 1.0 - tail } else { tail }
}

/// Probability that a lognormal service takes longer than `t`, s.
#[must_use]
pub fn lognormal_tail(mean_s: f64, sigma: f64, t: f64) -> f64 {
    if t <= 0.0 { 1.0 } else { normal_tail((t / mean_s).ln() / sigma + 0.5 * sigma) }
}

/// Share of requests of M/G/1 that take longer than `t`, s. `tail` gives the probability that a service is longer than
/// this many seconds, `own` that of the class in question.
///
/// The wait's tail solves Pollaczek's and Khinchine's renewal equation `W(t) = u E(t) + u (W * e)(t)` with the busy share u
/// and the residual service E, here by the trapezoidal rule.
#[must_use]
pub fn mg1_late(
    mean_s: f64,
    tail: impl Fn(f64) -> f64,
    own: impl Fn(f64) -> f64,
    rate_per_s: f64,
    t: f64,
) -> f64 {
    const STEPS: usize = 1200;
    let step = t / STEPS as f64;
    let busy = rate_per_s * mean_s;
    let residual: Vec<f64> = (0..=STEPS).map(|i| tail(i as f64 * step) / mean_s).collect();
    let mut longer = 1.0;
    let mut waits: Vec<f64> = vec![busy];
    for i in 1..=STEPS {
        longer -= 0.5 * step * (residual[i - 1] + residual[i]);
        let within: f64 = (1..i).map(|j| waits[i - j] * residual[j]).sum();
        let known = busy * (longer + step * (within + 0.5 * waits[0] * residual[i]));
        waits.push(known / (1.0 - 0.5 * busy * step * residual[0]));
    }
    let served: f64 = (0..STEPS)
        .map(|i| {
            let share = own(i as f64 * step) - own((i + 1) as f64 * step);
            share * 0.5 * (waits[STEPS - i] + waits[STEPS - i - 1])
        })
        .sum();
    own(t) + served
}

/// Point at which a condition that holds at `low` stops holding, below `high`.
pub fn bisect(low: f64, high: f64, holds: impl FnMut(f64) -> bool) -> f64 {
    bisect_in(200, low, high, holds)
}

/// The same in this many halvings.
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
    use crate::plant::{Arrivals, Queue};
    use crate::quirk::Quirk;

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
    fn the_renewal_equation_gives_the_closed_forms() {
        let exponential = |u: f64| (-u / 0.02).exp();
        let late = mg1_late(0.02, exponential, exponential, 44.0, 0.5);
        assert!((late / mmk_late(1, 0.02, 44.0, 0.5) - 1.0).abs() < 1e-2, "{late}");
        let lognormal = |u: f64| lognormal_tail(0.02, 1.5, u);
        let late = mg1_late(0.02, lognormal, lognormal, 25.0, 0.5);
        let service = Draw::Lognormal { mean_s: 0.02, sigma: 1.5 };
        let (arrivals, quirk) = (Arrivals::Poisson, Quirk::None);
        let queue = Queue { servers: 1, service, delay_s: 0.0, arrivals, quirk };
        let simulated = long_run_late(queue, 0.5, 25.0, 4e6, 3);
        assert!((late / simulated - 1.0).abs() < 0.06, "{late} for {simulated}");
        for (z, tail) in [(0.0, 0.5), (1.96, 0.024_998), (-1.0, 0.841_345), (4.0, 3.167e-5)] {
            assert!((normal_tail(z) / tail - 1.0).abs() < 1e-3, "{z}");
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

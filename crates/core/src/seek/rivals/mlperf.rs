//! MLPerf LoadGen's server scenario: 600 s a rate, and the early-stopping bound on the late share.

use super::{Answer, Bench};
use crate::normal;

const TRIAL_S: f64 = 600.0;
/// Confidence of the bound.
const CONFIDENCE: f64 = 0.99;

/// Returns true if so few of n independent requests would be late in 1 % of the cases only, if the share were what is
/// allowed: `P(Bin(n, q) <= late) <= 1 - c`, by the normal approximation with continuity correction, which is good
/// at the ten thousands of requests that a trial has.
fn accepts(n: f64, late: f64, allowed: f64) -> bool {
    let deviation = (n * allowed * (1.0 - allowed)).sqrt();
    (late + 0.5 - n * allowed) / deviation.max(1e-9) <= -normal::quantile(CONFIDENCE)
}

fn passes(bench: &mut Bench<'_>, rate_per_s: f64) -> bool {
    let window = bench.trial(rate_per_s, TRIAL_S, 1e-9);
    let late = window.late[bench.task.limit] as f64;
    accepts(window.scheduled as f64, late, bench.task.allowed) && !bench.interrupted
}

pub(super) fn search(bench: &mut Bench<'_>) -> Answer {
    let mut rate = bench.task.start_per_s;
    let mut low = 0.0;
    while rate <= bench.task.most_per_s && passes(bench, rate) {
        low = rate;
        rate *= 2.0;
    }
    let mut high = rate.min(bench.task.most_per_s);
    while high > 1.01 * low && high > 1e-3 && !bench.interrupted {
        let mid = 0.5 * (low + high);
        if passes(bench, mid) {
            low = mid;
        } else {
            high = mid;
        }
    }
    bench.answer(low)
}

#[cfg(test)]
mod tests {
    use super::accepts;

    #[test]
    fn the_bound_needs_the_published_numbers_of_requests() {
        // Least n for p95 and 99 %: 500 late need 11 064, 100 late 2504.
        for (late, n) in [(500.0, 11_064.0), (100.0, 2_504.0)] {
            assert!(accepts(1.01 * n, late, 0.05), "{late}");
            assert!(!accepts(0.985 * n, late, 0.05), "{late}");
        }
    }
}

//! Nighthawk's adaptive load controller: exponential search, then bisection to 1 %, then a testing stage.

use super::{Answer, Bench};

const TRIAL_S: f64 = 30.0;
const COOL_DOWN_S: f64 = 60.0;
const TESTING_S: f64 = 60.0;

pub(super) fn search(bench: &mut Bench<'_>) -> Answer {
    let mut rate = bench.task.start_per_s;
    let mut low = 0.0;
    while rate <= bench.task.most_per_s && bench.holds(rate, TRIAL_S, COOL_DOWN_S) {
        low = rate;
        rate *= 2.0;
    }
    let mut high = rate.min(bench.task.most_per_s);
    while high - low > 0.01 * high && !bench.interrupted {
        let mid = 0.5 * (low + high);
        if bench.holds(mid, TRIAL_S, COOL_DOWN_S) {
            low = mid;
        } else {
            high = mid;
        }
    }
    bench.trial(low.max(1e-3), TESTING_S, 1e-9);
    bench.answer(low)
}

//! mutilate's `--search N:X`.

use super::{Answer, Bench};

const TRIAL_S: f64 = 5.0;

pub(super) fn search(bench: &mut Bench<'_>) -> Answer {
    let peak = bench.peak(TRIAL_S, 0.0);
    let (mut low, mut high, mut current) = (1.0, peak, peak);
    let mut held = false;
    while high > 1.02 * low && current > 0.1 * peak && !bench.interrupted {
        current = 0.5 * (high + low);
        held = bench.holds(current, TRIAL_S, 1e-9);
        if held {
            low = current;
        } else {
            high = current;
        }
    }
    let floor = 0.9 * low;
    while !held && current > floor && !bench.interrupted {
        current *= 0.98;
        held = bench.holds(current, TRIAL_S, 1e-9);
    }
    bench.answer(current)
}

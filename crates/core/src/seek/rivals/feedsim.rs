//! FeedSim's search, as `run.sh` calls `search_qps.sh`.

use super::{Answer, Bench, RATIOS};
use crate::seek::plant::Window;

/// One trial: 7 s to start the driver, 120 s, and 15 s of drain.
const TRIAL_S: f64 = 120.0;
const AROUND_S: f64 = 22.0;
/// Waiting for the server, and the rest.
const FIXED_S: f64 = 95.0;
const TRIES_MAX: u32 = 25;

/// Distance of the quantile beyond the target, as a share; below 0 if it holds by more than the finest step.
fn gap(bench: &Bench<'_>, window: &Window) -> f64 {
    let late = |at: usize| window.late[at] as f64 / window.scheduled.max(1) as f64;
    let allowed = bench.task.allowed;
    // The last ratio that the quantile is beyond; between two of them it is taken at the middle.
    match RATIOS.iter().enumerate().rev().find(|(at, _)| late(*at) > allowed) {
        None => -0.01,
        Some((at, ratio)) => {
            RATIOS.get(at + 1).map_or(ratio + 0.1, |next| 0.5 * (ratio + next)) - 1.0
        }
    }
}

pub(super) fn search(bench: &mut Bench<'_>) -> Answer {
    bench.elapsed_s += FIXED_S + TRIAL_S + AROUND_S;
    let peak = (1.8 * bench.peak(TRIAL_S, AROUND_S)).min(bench.task.most_per_s);
    let (mut low, mut high, mut current) = (1.0, peak, peak);
    let (mut tries, mut beyond) = (0, f64::INFINITY);
    while high > 1.02 * low && current > 0.1 * peak && tries < TRIES_MAX && !bench.interrupted {
        current = 0.5 * (high + low);
        let window = bench.trial(current, TRIAL_S, AROUND_S);
        beyond = gap(bench, &window);
        let measured = window.scheduled as f64 / TRIAL_S;
        if bench.late_share(&window) > bench.task.allowed {
            high = current;
        } else {
            low = current.max(measured);
            if current > 1.02 * measured {
                high *= 0.96;
            }
        }
        tries += 1;
    }
    while beyond > -0.005 && tries < TRIES_MAX && !bench.interrupted {
        current *= match beyond {
            g if g > 0.5 => 0.5,
            g if g >= 0.05 => 1.0 - g / 5.0,
            _ => 0.99,
        };
        if current <= 4.0 {
            break;
        }
        let window = bench.trial(current, TRIAL_S, AROUND_S);
        beyond = gap(bench, &window);
        tries += 1;
    }
    // Whatever this shows, it is the reported number.
    bench.trial(current, 300.0, AROUND_S);
    bench.answer(current)
}

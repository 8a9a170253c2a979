//! Coverage of the prediction intervals of sizing: the table of `make sizing-zoo`.
//!
//! Each draw has its own truth. Four numbers of nodes are measured, from 1 to 4; 8 are predicted and then measured in the
//! same way. The interval holds if that measurement lies in it.

mod laws;
mod station;
pub mod table;

use plimsoll_core::rng::Rng;
use plimsoll_decide::sizing::models::QueueLimit;
use plimsoll_decide::sizing::scaling::{Held, Scaling};
use plimsoll_decide::sizing::{Point, Prediction};

/// Numbers of nodes that are measured.
const MEASURED: [f64; 4] = [1.0, 2.0, 3.0, 4.0];
/// Number of nodes that is predicted.
const PREDICTED: f64 = 8.0;

/// A truth that a draw begins with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    /// Name in the table.
    pub name: &'static str,
    of: Of,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Of {
    Law { law: laws::Law, is_known: bool },
    Station(station::Kind),
}

/// Result of one draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// True if the interval of 8 nodes held the measurement.
    pub held: bool,
    /// Width of that interval over the prediction.
    pub width: f64,
    /// Prediction over measurement, less 1.
    pub off: f64,
    /// True if a peak was reported.
    pub peak: bool,
    /// True if the first two points, and the first three, were declined.
    pub declined: bool,
}

/// The truths of the table.
#[must_use]
pub fn truths() -> Vec<Truth> {
    let law = |name, law, is_known| Truth { name, of: Of::Law { law, is_known } };
    let station = |name, kind| Truth { name, of: Of::Station(kind) };
    vec![
        law("linear", laws::Law::Linear, true),
        law("Amdahl", laws::Law::Amdahl, true),
        law("USL", laws::Law::Usl, true),
        law("Amdahl, errors unknown", laws::Law::Amdahl, false),
        law("USL, errors unknown", laws::Law::Usl, false),
        station("M/M/k", station::Kind::Exponential),
        station("M/G/k, gamma", station::Kind::Gamma),
        station("M/G/k, lognormal", station::Kind::Lognormal),
        station("M/G/k, two kinds of requests", station::Kind::Hyper),
        station("serve queue, 20 ms, p95=100ms", station::Kind::ServeQueue),
    ]
}

/// Points that are noise: nothing can be predicted from them, and no peak may be seen in them.
#[must_use]
pub fn noises() -> Vec<Truth> {
    let law = |name, law, is_known| Truth { name, of: Of::Law { law, is_known } };
    vec![
        law("linear and noise of 10 %", laws::Law::Noisy { growth: 1.0, error: 0.1 }, true),
        law(
            "linear and noise of 10 %, errors unknown",
            laws::Law::Noisy { growth: 1.0, error: 0.1 },
            false,
        ),
        law("flat and noise of 10 %", laws::Law::Noisy { growth: 0.0, error: 0.1 }, true),
        law(
            "flat and noise of 10 %, errors unknown",
            laws::Law::Noisy { growth: 0.0, error: 0.1 },
            false,
        ),
        law(
            "flat and noise of 50 %, errors unknown",
            laws::Law::Noisy { growth: 0.0, error: 0.5 },
            false,
        ),
    ]
}

impl Truth {
    /// Draws once.
    #[must_use]
    pub fn draw(&self, seed: u64) -> Outcome {
        let mut rng = Rng::new(seed);
        let (points, queue, again) = match self.of {
            Of::Law { law, is_known } => {
                let (points, again) = law.measure(&MEASURED, PREDICTED, is_known, &mut rng);
                (points, None, again)
            }
            Of::Station(kind) => station::measure(kind, &MEASURED, PREDICTED, &mut rng),
        };
        outcome(&points, queue, again)
    }
}

/// Measures a system whose rate falls beyond 6.9 nodes, from 1 to 16 nodes, and returns the peaks that were seen in that many
/// draws.
#[must_use]
pub fn retrograde(draws: u64) -> Vec<f64> {
    let peaks = crate::parallel::map(draws, |seed| laws::retrograde_peak(&mut Rng::new(seed)));
    peaks.into_iter().flatten().map(|peak| peak.n).collect()
}

fn outcome(points: &[Point], queue: Option<QueueLimit>, again_per_s: f64) -> Outcome {
    let few = |count: usize| Scaling::of(&points[..count], queue.clone(), "nodes");
    let declined = few(2).held(PREDICTED).is_err() && few(3).held(PREDICTED).is_err();
    let scaling = Scaling::of(points, queue.clone(), "nodes");
    let none = Prediction { per_s: f64::NAN, low_per_s: f64::NAN, high_per_s: f64::NAN };
    let rate = scaling.held(PREDICTED).map_or(none, |held: Held| held.rate);
    let peak = scaling.fit(&[]).is_ok_and(|fit| fit.peak.is_some());
    Outcome {
        held: rate.holds(again_per_s),
        width: rate.relative_width(),
        off: rate.per_s / again_per_s - 1.0,
        peak,
        declined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(outcomes: &[Outcome], of: impl Fn(&Outcome) -> bool) -> f64 {
        outcomes.iter().filter(|one| of(one)).count() as f64 / outcomes.len() as f64
    }

    #[test]
    fn intervals_hold_and_two_points_decline() {
        for truth in truths() {
            let outcomes = crate::parallel::map(40, |seed| truth.draw(seed));
            // 40 draws at 90 %: fewer than 31 have one chance in a hundred.
            assert!(share(&outcomes, |one| one.held) >= 31.0 / 40.0, "{}", truth.name);
            assert!(outcomes.iter().all(|one| one.declined && !one.peak), "{}", truth.name);
        }
    }

    #[test]
    fn noise_has_no_peak_and_a_real_one_is_found() {
        for noise in noises() {
            let outcomes = crate::parallel::map(60, |seed| noise.draw(seed));
            assert!(outcomes.iter().all(|one| !one.peak), "{}", noise.name);
        }
        assert!(retrograde(20).len() >= 18);
    }
}

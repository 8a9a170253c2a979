//! Points of scaling laws, each with an error of its own.

use crate::draw::normal;
use plimsoll_core::rng::Rng;
use plimsoll_decide::sizing::fit::Peak;
use plimsoll_decide::sizing::scaling::Scaling;
use plimsoll_decide::sizing::{Point, RelativeError};

/// A law whose parameters are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// C = a n.
    Linear,
    /// σ from 0 to 0.3.
    Amdahl,
    /// σ from 0 to 0.15, κ from 0 to 0.01.
    Usl,
    /// C = a n^growth, with errors of this share.
    Noisy {
        /// Exponent.
        growth: f64,
        /// Standard error as a share.
        error: f64,
    },
}

/// Standard error of a measured rate, as a share.
const ERROR: f64 = 0.02;
/// Degrees of freedom with which it is known: a run of ten batches.
const FREEDOM: u32 = 9;

/// The rate of the universal scalability law.
fn usl(sigma: f64, kappa: f64, n: f64) -> f64 {
    100.0 * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
}

fn measured(truth_per_s: f64, error: f64, rng: &mut Rng) -> f64 {
    truth_per_s * (error * normal(rng)).exp()
}

/// An estimate of the error from a run's batches.
fn known(error: f64, rng: &mut Rng) -> RelativeError {
    let squares: f64 = (0..FREEDOM).map(|_| normal(rng).powi(2)).sum();
    let freedom = f64::from(FREEDOM);
    RelativeError { share: error * (squares / freedom).sqrt(), freedom }
}

impl Law {
    /// Measures these numbers of nodes, and one more.
    pub fn measure(
        self,
        ns: &[f64],
        more: f64,
        is_known: bool,
        rng: &mut Rng,
    ) -> (Vec<Point>, f64) {
        let (mut sigma, mut kappa) = (0.0, 0.0);
        match self {
            Self::Linear | Self::Noisy { .. } => {}
            Self::Amdahl => sigma = 0.3 * rng.uniform(),
            Self::Usl => (sigma, kappa) = (0.15 * rng.uniform(), 0.01 * rng.uniform()),
        }
        let (growth, error) = match self {
            Self::Noisy { growth, error } => (growth, error),
            _ => (1.0, ERROR),
        };
        let truth = |n: f64| n.powf(growth - 1.0) * usl(sigma, kappa, n);
        let one = |n: &f64| Point {
            n: *n,
            per_s: measured(truth(*n), error, rng),
            error: is_known.then(|| known(error, rng)),
        };
        let points = ns.iter().map(one).collect();
        (points, measured(truth(more), error, rng))
    }
}

/// Measures a system whose rate falls beyond seven nodes, and returns the peak that is seen in it.
pub fn retrograde_peak(rng: &mut Rng) -> Option<Peak> {
    let one = |n: &f64| Point {
        n: *n,
        per_s: measured(usl(0.05, 0.02, *n), ERROR, rng),
        error: Some(known(ERROR, rng)),
    };
    let points: Vec<Point> = [1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0].iter().map(one).collect();
    Scaling::of(&points, None, "nodes").fit(&[]).ok()?.peak
}

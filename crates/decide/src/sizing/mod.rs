//! Sizing: the rate that n nodes hold, from the rates that other numbers of nodes were measured to hold.
//!
//! Between measured numbers of nodes the measured curve is interpolated, and no model is used ([`scaling`]). Beyond the
//! largest one, at most twice as far, rival models are fitted ([`models`]), and the answer is the worst of those that the
//! points do not rule out, with an interval that holds the predictions of all of them ([`fit`]). [`mod@line`] finds the rate at
//! which a measured percentile reaches its limit, and [`nodes`] turns rates into numbers of nodes.
//!
//! Sources: N. J. Gunther, "Guerrilla Capacity Planning" (2007), for the universal scalability law; A. O. Allen, "Probability,
//! Statistics, and Queueing Theory" (1990), for the Allen-Cunneen approximation of the queue M/G/k; R. T. Birge, Phys. Rev. 40
//! (1932) 207, for errors that the points show to be too small.

pub mod fit;
pub mod line;
pub mod models;
pub mod nodes;
pub mod queue;
pub mod scaling;

/// A number of nodes, and the rate that they were measured to hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Nodes, workers or users; above 0.
    pub n: f64,
    /// The rate, requests per second; above 0.
    pub per_s: f64,
    /// Its error, if known.
    pub error: Option<RelativeError>,
}

/// The standard error of a rate as a share of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelativeError {
    /// Standard error over the rate, above 0.
    pub share: f64,
    /// Degrees of freedom with which it is known; infinite if exactly.
    pub freedom: f64,
}

/// A predicted rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The rate, requests per second.
    pub per_s: f64,
    /// Lower end of the prediction interval, requests per second.
    pub low_per_s: f64,
    /// Upper end of the prediction interval, requests per second.
    pub high_per_s: f64,
}

/// Probability with which a further measurement lies in the prediction interval.
pub const LEVEL: f64 = 0.90;

/// Fewest points for a prediction beyond the measured range.
pub const POINTS_MIN: usize = 4;

/// Smallest ratio of the largest to the smallest measured number of nodes for a prediction beyond the measured range.
pub const RANGE_MIN: f64 = 4.0;

/// Largest ratio of a predicted number of nodes to the largest measured one.
pub const REACH_MAX: f64 = 2.0;

/// Standard error by which two runs of the same target differ, beyond what each of them shows of itself, as a share. It is an
/// assumption; repeats at the same number of nodes replace it where they differ by more.
pub const BETWEEN_RUNS: f64 = 0.01;

impl RelativeError {
    /// Returns the error of a run, with that between runs.
    #[must_use]
    pub fn of_run(self) -> Self {
        Self { share: self.share.hypot(BETWEEN_RUNS), ..self }
    }
}

impl Prediction {
    /// Returns true if a rate lies in the interval.
    #[must_use]
    pub fn holds(&self, per_s: f64) -> bool {
        (self.low_per_s..=self.high_per_s).contains(&per_s)
    }

    /// Returns the width of the interval as a share of the rate.
    #[must_use]
    pub fn relative_width(&self) -> f64 {
        (self.high_per_s - self.low_per_s) / self.per_s
    }
}

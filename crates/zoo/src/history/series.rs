//! Figures of runs one after another: a level, noise, and at most one change.

use crate::draw::normal;
use plimsoll_core::rng::Rng;

/// Noise between runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Independent, normal, with this standard deviation of the logarithm.
    Normal(f64),
    /// Independent, Student's t with 3 degrees of freedom, with this standard deviation of the logarithm.
    Heavy(f64),
    /// Normal, and correlated from run to run.
    Correlated {
        /// Standard deviation of the logarithm.
        sd: f64,
        /// Correlation of neighbours.
        correlation: f64,
    },
}

/// A series of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Series {
    /// Number of runs.
    pub runs: usize,
    /// Noise between runs.
    pub noise: Noise,
    /// Index of the first run with another level, and the factor.
    pub step: Option<(usize, f64)>,
    /// Index of the first run with the old level again.
    pub undone: Option<usize>,
    /// Factor of one run at a random place; the others stay.
    pub spike: Option<f64>,
}

impl Series {
    /// Returns a series without a change.
    #[must_use]
    pub const fn of_noise(runs: usize, noise: Noise) -> Self {
        Self { runs, noise, step: None, undone: None, spike: None }
    }

    /// Returns figures with this seed, around 100.
    #[must_use]
    pub fn draw(&self, seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        let mut deviation = 0.0;
        let mut values = Vec::with_capacity(self.runs);
        for index in 0..self.runs {
            deviation = match self.noise {
                Noise::Normal(sd) => sd * normal(&mut rng),
                Noise::Heavy(sd) => sd / 3f64.sqrt() * student_3(&mut rng),
                Noise::Correlated { sd, correlation } => {
                    let fresh = sd * normal(&mut rng);
                    let share = (1.0 - correlation * correlation).sqrt();
                    // The first one has the variance of all others.
                    if index == 0 { fresh } else { correlation * deviation + share * fresh }
                }
            };
            values.push(100.0 * f64::exp(deviation));
        }
        if let Some((at, factor)) = self.step {
            let end = self.undone.unwrap_or(self.runs);
            values[at..end].iter_mut().for_each(|value| *value *= factor);
        }
        if let Some(factor) = self.spike {
            let at = rng.below(self.runs as u64) as usize;
            values[at] *= factor;
        }
        values
    }
}

/// Student's t with 3 degrees of freedom, whose variance is 3.
fn student_3(rng: &mut Rng) -> f64 {
    let squares: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
    normal(rng) / (squares / 3.0).sqrt()
}

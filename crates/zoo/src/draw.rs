//! Service times.

use plimsoll_core::rng::Rng;

/// A distribution of service times, s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    /// Always the same.
    Fixed(f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Gamma with this mean and coefficient of variation.
    Gamma {
        /// Mean, s.
        mean_s: f64,
        /// Coefficient of variation.
        cv: f64,
    },
    /// Two exponentials with balanced means: this mean and squared coefficient of variation above 1.
    Hyper {
        /// Mean, s.
        mean_s: f64,
        /// Squared coefficient of variation.
        cv2: f64,
    },
    /// Lomax (Pareto II) with this mean; the variance is finite above a shape of 2.
    Pareto {
        /// Mean, s.
        mean_s: f64,
        /// Shape, above 1.
        shape: f64,
    },
    /// Lognormal with this mean; `sigma` is the standard deviation of the logarithm.
    Lognormal {
        /// Mean, s.
        mean_s: f64,
        /// Above 0.
        sigma: f64,
    },
}

impl Draw {
    /// The mean, s.
    #[must_use]
    pub fn mean_s(self) -> f64 {
        match self {
            Self::Fixed(mean) | Self::Exponential(mean) => mean,
            Self::Gamma { mean_s, .. }
            | Self::Hyper { mean_s, .. }
            | Self::Pareto { mean_s, .. }
            | Self::Lognormal { mean_s, .. } => mean_s,
        }
    }

    /// The same with all times multiplied by a factor above 0.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        match self {
            Self::Fixed(mean) => Self::Fixed(by * mean),
            Self::Exponential(mean) => Self::Exponential(by * mean),
            Self::Gamma { mean_s, cv } => Self::Gamma { mean_s: by * mean_s, cv },
            Self::Hyper { mean_s, cv2 } => Self::Hyper { mean_s: by * mean_s, cv2 },
            Self::Pareto { mean_s, shape } => Self::Pareto { mean_s: by * mean_s, shape },
            Self::Lognormal { mean_s, sigma } => Self::Lognormal { mean_s: by * mean_s, sigma },
        }
    }

    /// One draw, s.
    pub fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Self::Fixed(value) => value,
            Self::Exponential(mean) => mean * rng.exponential(),
            Self::Gamma { mean_s, cv } => {
                let shape = 1.0 / (cv * cv);
                mean_s / shape * standard_gamma(shape, rng)
            }
            // Balanced means (Morse 1958): each branch carries half of the work.
            Self::Hyper { mean_s, cv2 } => {
                let share = 0.5 * (1.0 + ((cv2 - 1.0) / (cv2 + 1.0)).sqrt());
                let branch = if rng.uniform() < share { share } else { 1.0 - share };
                mean_s / (2.0 * branch) * rng.exponential()
            }
            Self::Pareto { mean_s, shape } => {
                mean_s * (shape - 1.0) * ((1.0 - rng.uniform()).powf(-1.0 / shape) - 1.0)
            }
            Self::Lognormal { mean_s, sigma } => {
                mean_s * (sigma * normal(rng) - 0.5 * sigma * sigma).exp()
            }
        }
    }
}

/// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000); shape at least 1.
fn standard_gamma(shape: f64, rng: &mut Rng) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && (1.0 - rng.uniform()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

/// One draw of the standard normal distribution: one of the pair of Box and Muller (1958).
pub fn normal(rng: &mut Rng) -> f64 {
    let radius = (2.0 * rng.exponential()).sqrt();
    radius * (2.0 * std::f64::consts::PI * rng.uniform()).cos()
}

//! Service times: their distributions, how they are drawn, and what is known about them exactly.

use super::special::{normal_quantile, regularized_gamma};
use plimsoll_core::clock::SECOND_NS;
use plimsoll_core::rng::Rng;
use plimsoll_core::units::{Span, UnitError};
use plimsoll_serving::draws::{normal, standard_gamma};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The longest service time in nanoseconds, one hour; longer draws are cut to it.
pub const SERVICE_NS_MAX: u64 = 3_600 * SECOND_NS;

/// Time that a server is busy with one request. All times are in nanoseconds.
///
/// As text (see [`FromStr`]): `fixed:5ms`, `exponential:MEAN`, `lognormal:MEDIAN,SIGMA`,
/// `gamma:SHAPE,MEAN`, `bimodal:SHARE,A,B`; times as [`Span`] reads them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ServiceTime {
    /// Always the same; 0 answers at once.
    Fixed {
        /// The time.
        ns: u64,
    },
    /// Exponential, drawn by inversion.
    Exponential {
        /// The mean.
        mean_ns: u64,
    },
    /// `median * exp(sigma * Z)` with a standard normal Z (Box and Muller 1958).
    Lognormal {
        /// The median.
        median_ns: u64,
        /// Standard deviation of the logarithm, 0 to 10.
        sigma: f64,
    },
    /// Gamma, drawn as Marsaglia and Tsang (2000) do.
    Gamma {
        /// The shape, 0.01 to 10,000; 1 is exponential, large is nearly fixed.
        shape: f64,
        /// The mean, shape times scale.
        mean_ns: u64,
    },
    /// Either of two times.
    Bimodal {
        /// The probability of `a_ns`, 0 to 1.
        a_share: f64,
        /// The one time.
        a_ns: u64,
        /// The other time.
        b_ns: u64,
    },
}

/// A service time that cannot be used.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ServiceTimeError {
    /// The text is none of the forms.
    #[error(
        "'{0}' is not a service time; write fixed:5ms, exponential:5ms, lognormal:5ms,1.0, \
         gamma:2.0,5ms or bimodal:0.9,1ms,50ms"
    )]
    Form(String),
    /// A time is not a number with a unit.
    #[error(transparent)]
    Time(#[from] UnitError),
    /// A number is out of its range.
    #[error("{name} of a service time is {value}, but must be between {least} and {most}")]
    Range {
        /// Name of the number.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The least that is allowed.
        least: f64,
        /// The most that is allowed.
        most: f64,
    },
}

impl ServiceTime {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first number that is out of its range.
    pub fn validate(&self) -> Result<(), ServiceTimeError> {
        let check = |name, value: f64, least: f64, most: f64| match value {
            value if (least..=most).contains(&value) => Ok(()),
            value => Err(ServiceTimeError::Range { name, value, least, most }),
        };
        let time = |name, ns: u64| check(name, ns as f64, 0.0, SERVICE_NS_MAX as f64);
        // Of no time there is no distribution; who wants none writes fixed:0s.
        let some = |name, ns: u64| check(name, ns as f64, 1.0, SERVICE_NS_MAX as f64);
        match *self {
            Self::Fixed { ns } => time("the time in ns", ns),
            Self::Exponential { mean_ns } => some("the mean in ns", mean_ns),
            Self::Lognormal { median_ns, sigma } => {
                some("the median in ns", median_ns)?;
                check("sigma", sigma, 0.0, 10.0)
            }
            Self::Gamma { shape, mean_ns } => {
                some("the mean in ns", mean_ns)?;
                check("the shape", shape, 0.01, 10_000.0)
            }
            Self::Bimodal { a_share, a_ns, b_ns } => {
                time("the first time in ns", a_ns)?;
                time("the second time in ns", b_ns)?;
                check("the share of the first time", a_share, 0.0, 1.0)
            }
        }
    }

    /// Draws one service time, rounded to a nanosecond and cut at [`SERVICE_NS_MAX`].
    #[inline]
    pub fn draw_ns(&self, rng: &mut Rng) -> u64 {
        let drawn_ns = match *self {
            Self::Fixed { ns } => return ns,
            Self::Bimodal { a_share, a_ns, b_ns } => {
                return if rng.uniform() < a_share { a_ns } else { b_ns };
            }
            Self::Exponential { mean_ns } => mean_ns as f64 * rng.exponential(),
            Self::Lognormal { median_ns, sigma } => median_ns as f64 * (sigma * normal(rng)).exp(),
            Self::Gamma { shape, mean_ns } => mean_ns as f64 * standard_gamma(shape, rng) / shape,
        };
        // The conversion saturates, so that an infinite draw is cut as well.
        (drawn_ns.round() as u64).min(SERVICE_NS_MAX)
    }

    /// The mean in nanoseconds.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        match *self {
            Self::Fixed { ns } => ns as f64,
            Self::Exponential { mean_ns } | Self::Gamma { mean_ns, .. } => mean_ns as f64,
            Self::Lognormal { median_ns, sigma } => median_ns as f64 * (sigma * sigma / 2.0).exp(),
            Self::Bimodal { a_share, a_ns, b_ns } => {
                a_share * a_ns as f64 + (1.0 - a_share) * b_ns as f64
            }
        }
    }

    /// The variance in square nanoseconds.
    #[must_use]
    pub fn variance_ns2(&self) -> f64 {
        let mean_ns = self.mean_ns();
        match *self {
            Self::Fixed { .. } => 0.0,
            Self::Exponential { .. } => mean_ns * mean_ns,
            Self::Gamma { shape, .. } => mean_ns * mean_ns / shape,
            Self::Lognormal { sigma, .. } => mean_ns * mean_ns * (sigma * sigma).exp_m1(),
            Self::Bimodal { a_share, a_ns, b_ns } => {
                let distance = a_ns as f64 - b_ns as f64;
                a_share * (1.0 - a_share) * distance * distance
            }
        }
    }

    /// The time in nanoseconds that a share `quantile` (0 to 1, exclusive) of draws does not
    /// exceed.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> f64 {
        match *self {
            Self::Fixed { ns } => ns as f64,
            Self::Exponential { mean_ns } => mean_ns as f64 * -(-quantile).ln_1p(),
            Self::Lognormal { median_ns, sigma } => {
                median_ns as f64 * (sigma * normal_quantile(quantile)).exp()
            }
            Self::Gamma { shape, mean_ns } => {
                let below = |x: f64| regularized_gamma(shape, x);
                mean_ns as f64 / shape * super::special::invert(below, quantile)
            }
            Self::Bimodal { a_share, a_ns, b_ns } => {
                let (low_ns, high_ns) = (a_ns.min(b_ns), a_ns.max(b_ns));
                let low_share = if a_ns <= b_ns { a_share } else { 1.0 - a_share };
                (if quantile <= low_share { low_ns } else { high_ns }) as f64
            }
        }
    }
}

impl fmt::Display for ServiceTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |ns: u64| Span { ns };
        match *self {
            Self::Fixed { ns } => write!(f, "fixed:{}", text(ns)),
            Self::Exponential { mean_ns } => write!(f, "exponential:{}", text(mean_ns)),
            Self::Lognormal { median_ns, sigma } => {
                write!(f, "lognormal:{},{sigma}", text(median_ns))
            }
            Self::Gamma { shape, mean_ns } => write!(f, "gamma:{shape},{}", text(mean_ns)),
            Self::Bimodal { a_share, a_ns, b_ns } => {
                write!(f, "bimodal:{a_share},{},{}", text(a_ns), text(b_ns))
            }
        }
    }
}

impl FromStr for ServiceTime {
    type Err = ServiceTimeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || ServiceTimeError::Form(text.to_owned());
        let parse_ns = |text: &str| text.parse::<Span>().map(|span| span.ns);
        let number = |text: &str| text.parse::<f64>().map_err(|_| form());
        let (kind, rest) = text.split_once(':').ok_or_else(form)?;
        let parts: Vec<&str> = rest.split(',').map(str::trim).collect();
        let parsed = match (kind, parts.as_slice()) {
            ("fixed", [time]) => Self::Fixed { ns: parse_ns(time)? },
            ("exponential" | "exp", [mean]) => Self::Exponential { mean_ns: parse_ns(mean)? },
            ("lognormal", [median, sigma]) => {
                Self::Lognormal { median_ns: parse_ns(median)?, sigma: number(sigma)? }
            }
            ("gamma", [shape, mean]) => {
                Self::Gamma { shape: number(shape)?, mean_ns: parse_ns(mean)? }
            }
            ("bimodal", [share, a, b]) => {
                Self::Bimodal { a_share: number(share)?, a_ns: parse_ns(a)?, b_ns: parse_ns(b)? }
            }
            _ => return Err(form()),
        };
        parsed.validate()?;
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    fn kinds() -> [ServiceTime; 8] {
        [
            "fixed:5ms",
            "exponential:5ms",
            "lognormal:5ms,0.5",
            "lognormal:2ms,1",
            "gamma:4,5ms",
            "gamma:0.5,5ms",
            "bimodal:0.9,1ms,50ms",
            "bimodal:0.3,50ms,1ms",
        ]
        .map(|text| text.parse().unwrap())
    }

    #[test]
    fn draws_have_the_mean_variance_and_quantiles_that_are_claimed() {
        for (seed, kind) in kinds().into_iter().enumerate() {
            let mut rng = Rng::new(seed as u64);
            let mut draws: Vec<f64> = (0..DRAWS).map(|_| kind.draw_ns(&mut rng) as f64).collect();
            let n = DRAWS as f64;
            let mean = draws.iter().sum::<f64>() / n;
            let squares = draws.iter().map(|x| (x - mean).powi(2));
            let variance = squares.clone().sum::<f64>() / (n - 1.0);
            // Five standard errors; that of the variance comes from the sample's fourth moment.
            let fourth = squares.map(|square| square * square).sum::<f64>() / n;
            let mean_error = (kind.variance_ns2() / n).sqrt() + 1.0;
            let variance_error = ((fourth - variance * variance).max(0.0) / n).sqrt() + 1.0;
            assert!((mean - kind.mean_ns()).abs() < 5.0 * mean_error, "{kind}: mean {mean}");
            let off = (variance - kind.variance_ns2()).abs();
            assert!(off < 5.0 * variance_error, "{kind}: variance {variance}");

            draws.sort_by(f64::total_cmp);
            for quantile in [0.1, 0.5, 0.95, 0.99] {
                let claimed = kind.quantile_ns(quantile);
                let below = draws.partition_point(|x| *x < claimed - 1.0) as f64 / n;
                let up_to = draws.partition_point(|x| *x <= claimed + 1.0) as f64 / n;
                let error = 5.0 * (quantile * (1.0 - quantile) / n).sqrt();
                let holds = below <= quantile + error && up_to >= quantile - error;
                assert!(holds, "{kind}: quantile {quantile} is {claimed}, {below} to {up_to}");
            }
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_times_for_ever() {
        let draw = |text: &str| -> Vec<u64> {
            let kind: ServiceTime = text.parse().unwrap();
            let mut rng = Rng::new(42);
            (0..3).map(|_| kind.draw_ns(&mut rng)).collect()
        };
        let drawn = ["exponential:5ms", "gamma:2,5ms", "lognormal:5ms,1"].map(draw);
        assert_eq!(drawn, PINNED);
    }

    const PINNED: [[u64; 3]; 3] = [
        [8_418_253, 1_919_651, 20_642_869],
        [2_144_929, 5_672_796, 2_981_871],
        [2_317_398, 2_098_015, 1_103_473],
    ];

    #[test]
    fn text_and_value_are_the_same_thing() {
        for kind in kinds() {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("fixed:0".parse(), Ok(ServiceTime::Fixed { ns: 0 }));
        assert_eq!("exp:1.5ms".parse(), Ok(ServiceTime::Exponential { mean_ns: 1_500_000 }));
    }

    #[test]
    fn bad_text_is_refused_with_what_to_write() {
        let error = |text: &str| text.parse::<ServiceTime>().unwrap_err().to_string();
        assert!(error("5ms").contains("write fixed:5ms"));
        assert!(error("gamma:5ms").contains("'gamma:5ms' is not a service time; write"));
        assert!(error("fixed:5x").contains("duration"));
        assert!(error("fixed:-5ms").contains("duration"));
        assert!(error("bimodal:1.5,1ms,2ms").contains("between 0 and 1"));
        assert!(error("gamma:0,1ms").contains("the shape"));
        assert!(error("fixed:2h").contains("3600000000000"));
        assert!(error("lognormal:1ms,NaN").contains("sigma"));
    }
}

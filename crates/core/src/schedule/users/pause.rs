//! The pause of a user between a reply and the next request: a think time drawn from its own seed.

use crate::normal::quantile;
use crate::rng::{Rng, splitmix64};
use crate::units::Span;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A think time: `2s`, `uniform 1s 3s`, `exponential 2s`, `normal 2s 500ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pause {
    /// None.
    #[default]
    None,
    /// Always the same.
    Fixed(Span),
    /// Evenly distributed between these two.
    Uniform(Span, Span),
    /// Exponential with this mean, cut at 20 times the mean.
    Exponential(Span),
    /// Normal with this mean and standard deviation; what would be negative is 0.
    Normal(Span, Span),
}

/// Number of means at which an exponential draw is cut: one in 5e8 is longer, and every wait has a limit.
const EXPONENTIAL_MAX: f64 = 20.0;
/// Parts over which the mean of a normal draw is taken: it comes out to three digits.
const NORMAL_PARTS: u32 = 1000;
/// Number of standard deviations from the mean at which a normal draw is cut.
const NORMAL_MAX: f64 = 6.0;

/// A think time that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "'{text}' is not a think time: {problem}; write 2s, uniform 1s 3s, exponential 2s or normal 2s 500ms"
)]
pub struct PauseError {
    text: String,
    problem: String,
}

impl Pause {
    /// The pause of user number `user` before its request number `step`, ns. It depends on nothing else, so it is the
    /// same however many threads and machines share the users.
    #[must_use]
    pub fn draw_ns(&self, seed: u64, user: u64, step: u32) -> u64 {
        let random = || Rng::new(splitmix64(splitmix64(seed ^ user).wrapping_add(u64::from(step))));
        let at_least_0 = |ns: f64| ns.max(0.0).round() as u64;
        match *self {
            Self::None => 0,
            Self::Fixed(span) => span.ns,
            Self::Uniform(least, most) => {
                at_least_0(least.ns as f64 + random().uniform() * (most.ns - least.ns) as f64)
            }
            Self::Exponential(mean) => {
                at_least_0(mean.ns as f64 * random().exponential().min(EXPONENTIAL_MAX))
            }
            Self::Normal(mean, deviation) => {
                let share = random().uniform().clamp(1e-12, 1.0 - 1e-12);
                let z = quantile(share).clamp(-NORMAL_MAX, NORMAL_MAX);
                at_least_0(mean.ns as f64 + z * deviation.ns as f64)
            }
        }
    }

    /// Time that it is on average, ns. That a normal draw is never below 0 makes it longer than its mean where that is within
    /// a few deviations of 0; what else is cut off makes no difference that matters.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Uniform(least, most) => (least.ns as f64 + most.ns as f64) / 2.0,
            Self::Fixed(mean) | Self::Exponential(mean) => mean.ns as f64,
            Self::Normal(mean, deviation) => {
                // The mean over the middles of equally likely parts.
                let part = |place: u32| (f64::from(place) + 0.5) / f64::from(NORMAL_PARTS);
                let draw = |share| mean.ns as f64 + quantile(share) * deviation.ns as f64;
                let sum: f64 = (0..NORMAL_PARTS).map(|place| draw(part(place)).max(0.0)).sum();
                sum / f64::from(NORMAL_PARTS)
            }
        }
    }

    /// The longest that it can be, ns.
    #[must_use]
    pub fn longest_ns(&self) -> u64 {
        match *self {
            Self::None => 0,
            Self::Fixed(span) => span.ns,
            Self::Uniform(_, most) => most.ns,
            Self::Exponential(mean) => (mean.ns as f64 * EXPONENTIAL_MAX) as u64,
            Self::Normal(mean, deviation) => {
                (mean.ns as f64 + NORMAL_MAX * deviation.ns as f64) as u64
            }
        }
    }
}

impl FromStr for Pause {
    type Err = PauseError;

    fn from_str(text: &str) -> Result<Self, PauseError> {
        let wrong = |problem: String| PauseError { text: text.to_owned(), problem };
        let words: Vec<&str> = text
            .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ','))
            .filter(|word| !word.is_empty())
            .collect();
        let span = |word: &str| {
            let span = word.parse::<Span>().map_err(|error| wrong(error.to_string()))?;
            let hour = Span::seconds(24 * 3600);
            if span > hour { Err(wrong(format!("{word} is over 24h"))) } else { Ok(span) }
        };
        match words[..] {
            ["none"] => Ok(Self::None),
            ["fixed", time] | [time] => Ok(Self::Fixed(span(time)?)),
            ["uniform", least, most] => {
                let (least, most) = (span(least)?, span(most)?);
                if least > most {
                    return Err(wrong("the shortest is longer than the longest".to_owned()));
                }
                Ok(Self::Uniform(least, most))
            }
            ["exponential", mean] => Ok(Self::Exponential(span(mean)?)),
            ["normal", mean, deviation] => Ok(Self::Normal(span(mean)?, span(deviation)?)),
            [] => Err(wrong("it is empty".to_owned())),
            [kind, ..] => Err(wrong(format!(
                "'{kind}' is not a distribution, or has another number of values"
            ))),
        }
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Fixed(span) => write!(f, "{span}"),
            Self::Uniform(least, most) => write!(f, "uniform {least} {most}"),
            Self::Exponential(mean) => write!(f, "exponential {mean}"),
            Self::Normal(mean, deviation) => write!(f, "normal {mean} {deviation}"),
        }
    }
}

impl Serialize for Pause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Pause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_read_and_shown_alike() {
        for text in ["none", "2s", "uniform 1s 3s", "exponential 2s", "normal 2s 500ms"] {
            assert_eq!(text.parse::<Pause>().unwrap().to_string(), text);
        }
        assert_eq!("uniform(1s, 3s)".parse::<Pause>(), "uniform 1s 3s".parse());
        for wrong in ["", "soon", "uniform 1s", "uniform 3s 1s", "normal 2s", "25h", "gamma 1s 2s"]
        {
            let message = wrong.parse::<Pause>().unwrap_err().to_string();
            assert!(message.contains("write 2s") && !message.contains('\n'), "{message}");
        }
    }

    #[test]
    fn draws_have_the_moments_of_their_distributions_and_stay_within_bounds() {
        let n = 40_000u64;
        for (text, mean_s, deviation_s) in [
            ("1500ms", 1.5, 0.0),
            ("uniform 1s 3s", 2.0, 2.0 / 12f64.sqrt()),
            ("exponential 2s", 2.0, 2.0),
            ("normal 2s 500ms", 2.0, 0.5),
            // Half of these would be below 0: half of the mean of the normal distribution's own size, and its deviation,
            // sqrt(2 / pi) / 2 and sqrt((1 - 1 / pi) / 2).
            ("normal 0s 1s", 0.398_942, 0.583_820),
            // By the formulas for a distribution cut at 0.
            ("normal 1s 2s", 1.395_593, 1.487_872),
        ] {
            let pause: Pause = text.parse().unwrap();
            let draws: Vec<f64> = (0..n)
                .map(|i| pause.draw_ns(7, i / 20, (i % 20) as u32))
                .inspect(|&ns| assert!(ns <= pause.longest_ns(), "{text}: {ns}"))
                .map(|ns| ns as f64 / 1e9)
                .collect();
            let mean = draws.iter().sum::<f64>() / n as f64;
            let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / n as f64;
            let error = 5.0 * (deviation_s + 1e-9) / (n as f64).sqrt();
            assert!((mean - mean_s).abs() <= error, "{text}: mean {mean}");
            assert!((variance.sqrt() - deviation_s).abs() <= 0.05, "{text}: {}", variance.sqrt());
            let told_s = pause.mean_ns() / 1e9;
            assert!((told_s - mean_s).abs() <= 1e-3 * mean_s, "{text}: {told_s} s");
        }
    }

    #[test]
    fn a_draw_is_the_same_for_a_seed_a_user_and_a_step() {
        let pause: Pause = "uniform 1s 3s".parse().unwrap();
        assert_eq!(pause.draw_ns(1, 5, 3), pause.draw_ns(1, 5, 3));
        let others = [pause.draw_ns(2, 5, 3), pause.draw_ns(1, 6, 3), pause.draw_ns(1, 5, 4)];
        assert!(others.iter().all(|&other| other != pause.draw_ns(1, 5, 3)));
    }
}

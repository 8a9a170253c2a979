//! Sizes of replies.

use plimsoll_core::rng::Rng;
use plimsoll_core::units::{Size, UnitError};
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The largest reply, bytes.
pub const REPLY_BYTES_MAX: u64 = 16 << 20;
/// The most points of a distribution.
const POINTS_MAX: usize = 256;

/// The distribution of a reply's payload size.
///
/// As text (see [`FromStr`]): `fixed:16310`, or `cdf:0.5=4kB,0.9=16kB,1=64kB`. A CDF is linear
/// between its points; the share of its first point has that size exactly.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplySize {
    /// Always this number of bytes.
    Fixed(u64),
    /// Shares of all replies, ascending up to 1, and the size in bytes that this share does not exceed.
    Cdf(Vec<(f64, u64)>),
}

/// A distribution that cannot be used.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ReplySizeError {
    /// The text is neither form.
    #[error("'{0}' is no reply size; write fixed:16310 or cdf:0.5=4kB,0.9=16kB,1=64kB")]
    Form(String),
    /// A size is not a number of bytes.
    #[error(transparent)]
    Size(#[from] UnitError),
    /// A size is too large.
    #[error("a reply of {0} bytes is too large; the most is {REPLY_BYTES_MAX}")]
    TooLarge(u64),
    /// The points are no distribution.
    #[error(
        "the points of a cdf (at most {POINTS_MAX}) must ascend, shares from above 0 to exactly 1, \
         and sizes too; point {0} does not"
    )]
    Points(usize),
}

impl ReplySize {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value that is out of its range.
    pub fn validate(&self) -> Result<(), ReplySizeError> {
        match self {
            Self::Fixed(bytes) if *bytes <= REPLY_BYTES_MAX => Ok(()),
            Self::Fixed(bytes) => Err(ReplySizeError::TooLarge(*bytes)),
            Self::Cdf(points) => {
                let mut before = (0.0, 0);
                for (number, &(share, bytes)) in points.iter().enumerate() {
                    let ascends = share > before.0 && share <= 1.0 && bytes >= before.1;
                    if !ascends || number >= POINTS_MAX {
                        return Err(ReplySizeError::Points(number + 1));
                    }
                    if bytes > REPLY_BYTES_MAX {
                        return Err(ReplySizeError::TooLarge(bytes));
                    }
                    before = (share, bytes);
                }
                if before.0 == 1.0 { Ok(()) } else { Err(ReplySizeError::Points(points.len())) }
            }
        }
    }

    /// Draws a size in bytes.
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Cdf(points) => {
                let drawn = rng.uniform();
                let at = points.partition_point(|(share, _)| *share < drawn);
                let (share, bytes) = points[at.min(points.len() - 1)];
                match at.checked_sub(1).map(|before| points[before]) {
                    None => bytes,
                    Some((share_before, bytes_before)) => {
                        let part = (drawn - share_before) / (share - share_before);
                        bytes_before + ((bytes - bytes_before) as f64 * part).round() as u64
                    }
                }
            }
        }
    }

    /// The largest size that can be drawn, bytes.
    #[must_use]
    pub fn largest_bytes(&self) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Cdf(points) => points.last().map_or(0, |(_, bytes)| *bytes),
        }
    }
}

impl fmt::Display for ReplySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(bytes) => write!(f, "fixed:{bytes}"),
            Self::Cdf(points) => {
                for (number, (share, bytes)) in points.iter().enumerate() {
                    let before = if number == 0 { "cdf:" } else { "," };
                    write!(f, "{before}{share}={bytes}")?;
                }
                Ok(())
            }
        }
    }
}

impl Serialize for ReplySize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for ReplySize {
    type Err = ReplySizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || ReplySizeError::Form(text.to_owned());
        let bytes = |text: &str| text.parse::<Size>().map(|size| size.bytes);
        let size = match text.split_once(':') {
            None => Self::Fixed(bytes(text).map_err(|_| form())?),
            Some(("fixed", size)) => Self::Fixed(bytes(size)?),
            Some(("cdf", points)) => {
                let point = |point: &str| {
                    let (share, size) = point.split_once('=').ok_or_else(form)?;
                    let share = share.trim().parse().map_err(|_| form())?;
                    Ok::<_, Self::Err>((share, bytes(size)?))
                };
                Self::Cdf(points.split(',').map(point).collect::<Result<_, _>>()?)
            }
            Some(_) => return Err(form()),
        };
        size.validate()?;
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_points() {
        let size: ReplySize = "cdf:0.5=1000,0.75=2000,1=10kB".parse().unwrap();
        let mut rng = Rng::new(1);
        let mut draws: Vec<u64> = (0..100_000).map(|_| size.draw(&mut rng)).collect();
        draws.sort_unstable();
        // Half of all are 1000 exactly; then straight lines to 2000 and to 10,000. The margins are
        // five standard errors of the share times the slope there.
        assert_eq!((draws[0], draws[49_000]), (1_000, 1_000));
        assert!(draws[62_500].abs_diff(1_500) < 32, "{}", draws[62_500]);
        assert!(draws[87_500].abs_diff(6_000) < 170, "{}", draws[87_500]);
        assert!(draws[99_999] <= 10_000 && draws[99_999] > 9_900);
        assert_eq!("fixed:7".parse::<ReplySize>().unwrap().draw(&mut rng), 7);
        assert_eq!(size.largest_bytes(), 10_000);
    }

    #[test]
    fn text_and_value_are_the_same_thing() {
        for text in ["fixed:16310", "cdf:0.5=1000,1=2000", "cdf:1=5"] {
            assert_eq!(text.parse::<ReplySize>().unwrap().to_string(), text);
        }
        assert_eq!("16kB".parse(), Ok(ReplySize::Fixed(16_000)));
    }

    #[test]
    fn bad_text_is_refused_with_the_reason() {
        for (text, reason) in [
            ("often", "write fixed:16310"),
            ("normal:3", "write fixed:16310"),
            ("cdf:0.5", "write fixed:16310"),
            ("cdf:0.5=x,1=2", "size"),
            ("cdf:0.5=10", "point 1"),
            ("cdf:0.5=10,0.4=20,1=30", "point 2"),
            ("cdf:0.5=10,1=5", "point 2"),
            ("cdf:NaN=10,1=20", "point 1"),
            ("cdf:1=10,1.5=20", "point 2"),
            ("fixed:1GB", "too large"),
            ("cdf:1=1GB", "too large"),
        ] {
            let error = text.parse::<ReplySize>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}

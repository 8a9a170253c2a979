//! Quantities as users write them: durations and sizes with their units.

use crate::clock::{MICROSECOND_NS, MILLISECOND_NS, SECOND_NS};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A duration in nanoseconds, written `500ms`, `1.5s`, `5m`, `2h`, `250us`, `80ns`; a bare number is seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Its length, ns.
    pub ns: u64,
}

/// A quantity that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{text}' is no {what}; write {example}")]
pub struct UnitError {
    text: String,
    what: &'static str,
    example: &'static str,
}

const SPAN_UNITS: [(&str, u64); 6] = [
    ("h", 3600 * SECOND_NS),
    ("m", 60 * SECOND_NS),
    ("s", SECOND_NS),
    ("ms", MILLISECOND_NS),
    ("us", MICROSECOND_NS),
    ("ns", 1),
];

/// Splits `1.5ms` into a number and a unit.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}

impl Span {
    /// A span of whole seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self { ns: seconds.saturating_mul(SECOND_NS) }
    }

    /// Its length, s.
    #[must_use]
    pub fn as_seconds(self) -> f64 {
        self.ns as f64 / SECOND_NS as f64
    }
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = || UnitError {
            text: text.to_owned(),
            what: "duration",
            example: "a number and a unit, such as 500ms, 10s or 5m",
        };
        let (number, unit) = number_and_unit(text).ok_or_else(wrong)?;
        let unit = if unit.is_empty() { "s" } else { unit };
        let (_, scale) = SPAN_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let ns = number * *scale as f64;
        // Half of u64 leaves room for sums with a clock's reading.
        if ns > (u64::MAX / 2) as f64 { Err(wrong()) } else { Ok(Self { ns: ns.round() as u64 }) }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact =
            SPAN_UNITS.iter().find(|(_, scale)| self.ns > 0 && self.ns.is_multiple_of(*scale));
        match exact {
            Some((unit, scale)) => write!(f, "{}{unit}", self.ns / scale),
            None => f.write_str("0s"),
        }
    }
}

/// As text with its unit.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for Span {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9.]+(ns|us|ms|s|m|h)" })
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A number of bytes, written `512`, `64kB`, `3MB`, `10GB` (powers of ten) or `64KiB`, `3MiB`, `10GiB`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// How many bytes.
    pub bytes: u64,
}

const SIZE_UNITS: [(&str, u64); 8] = [
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

impl FromStr for Size {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = || UnitError {
            text: text.to_owned(),
            what: "size",
            example: "a number and a unit, such as 500, 64kB, 3MB or 10GB",
        };
        let (number, unit) = number_and_unit(text).ok_or_else(wrong)?;
        let known = |(name, _): &&(&str, u64)| name.eq_ignore_ascii_case(unit);
        let (_, scale) = SIZE_UNITS.iter().find(known).ok_or_else(wrong)?;
        let bytes = number * *scale as f64;
        if bytes > 1e15 { Err(wrong()) } else { Ok(Self { bytes: bytes.round() as u64 }) }
    }
}

/// A share written in percent: `5%`, `0.1%`. A bare number is refused, because `1` might mean 1 % or all; only `0` is clear.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share(pub f64);

impl Share {
    /// Returns whether `part` of `all` is at most this share. What was written as a percentage may be a rounding error less in
    /// binary: 7 of 1,000 are 0.7 %.
    #[must_use]
    pub fn allows(self, part: u64, all: u64) -> bool {
        part as f64 <= self.0 * all as f64 * (1.0 + 1e-9)
    }
}

impl FromStr for Share {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = || UnitError {
            text: text.to_owned(),
            what: "share",
            example: "a number from 0% to 100%, such as 5%",
        };
        let (number, unit) = number_and_unit(text).ok_or_else(wrong)?;
        let is_share = unit == "%" || (unit.is_empty() && number == 0.0);
        if is_share && number <= 100.0 { Ok(Self(number / 100.0)) } else { Err(wrong()) }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounding away what the division by 100 added.
        write!(f, "{}%", (self.0 * 1e10).round() / 1e8)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_read_in_percent_only() {
        for (text, share) in [("5%", 0.05), ("0.1%", 0.001), ("100 %", 1.0), ("0", 0.0)] {
            assert_eq!(text.parse::<Share>().unwrap().0, share, "{text}");
        }
        assert_eq!(Share(0.07).to_string(), "7%");
        for wrong in ["1", "0.5", "101%", "-1%", "x", "", "5s"] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }

    use proptest::prelude::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        let ns = |text: &str| text.parse::<Span>().map(|span| span.ns);
        assert_eq!(ns("500ms"), Ok(500_000_000));
        assert_eq!(ns("1.5s"), Ok(1_500_000_000));
        assert_eq!(ns("10"), Ok(10_000_000_000));
        assert_eq!(ns("5 m"), Ok(300_000_000_000));
        assert_eq!(ns("250us"), Ok(250_000));
        for wrong in ["", "ms", "-1s", "5 parsecs", "1e99s", "1..2s", "NaN"] {
            assert!(ns(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_know_both_thousands() {
        let bytes = |text: &str| text.parse::<Size>().map(|size| size.bytes);
        assert_eq!(bytes("10GB"), Ok(10_000_000_000));
        assert_eq!(bytes("64kib"), Ok(65_536));
        assert_eq!(bytes("7"), Ok(7));
        assert!(bytes("7 apples").is_err());
    }

    proptest! {
        #[test]
        fn a_span_reads_back_what_it_shows(ns in 0u64..1 << 53) {
            let span = Span { ns };
            prop_assert_eq!(span.to_string().parse::<Span>(), Ok(span));
        }
    }
}

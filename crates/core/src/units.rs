//! Quantities as users write them: durations, sizes, shares, rates and counts, with their units.

use crate::clock::{MICROSECOND_NS, MILLISECOND_NS, SECOND_NS};
use serde::de::{Error as DeError, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use thiserror::Error;

/// A duration in nanoseconds, written `500ms`, `1.5s`, `5m`, `1m30s`, `2h`, `250us`, `80ns`, also with the words `2 min` or
/// `90 seconds`; a bare number is seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Its length, ns.
    pub ns: u64,
}

/// A quantity that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{text}' is not a {what}; expected {example}")]
pub struct UnitError {
    text: String,
    what: &'static str,
    example: &'static str,
}

/// Units of time, the largest first: the name that is printed, the names that are read as well, and the length in ns.
const SPAN_UNITS: [(&str, &[&str], u64); 7] = [
    ("d", &["day", "days"], 24 * 3600 * SECOND_NS),
    ("h", &["hr", "hrs", "hour", "hours"], 3600 * SECOND_NS),
    ("m", &["min", "mins", "minute", "minutes"], 60 * SECOND_NS),
    ("s", &["sec", "secs", "second", "seconds"], SECOND_NS),
    ("ms", &["msec", "millisecond", "milliseconds"], MILLISECOND_NS),
    ("us", &["\u{b5}s", "\u{3bc}s", "usec", "microsecond", "microseconds"], MICROSECOND_NS),
    ("ns", &["nanosecond", "nanoseconds"], 1),
];
/// Units that are printed begin here: 48 h stays 48 h.
const PRINTED_FROM: usize = 1;

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
        span_ns(text).map(|ns| Self { ns }).ok_or_else(|| UnitError {
            text: text.to_owned(),
            what: "duration",
            example: "a number and a unit, such as 500ms, 10s or 1m30s",
        })
    }
}

/// The sum of `1m30s`, ns: each unit is smaller than the one before it. A number without a unit stands alone and is seconds.
fn span_ns(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut total_ns = 0.0;
    let mut last_ns = u64::MAX;
    loop {
        let (number, behind) = number_and_unit(rest)?;
        let end = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let unit = behind[..end].trim_end();
        let is_whole = last_ns == u64::MAX && behind.is_empty();
        let unit = if is_whole { "s" } else { unit };
        let is_named =
            |(name, others, _): &&(&str, &[&str], u64)| *name == unit || others.contains(&unit);
        let (_, _, unit_ns) = SPAN_UNITS.iter().find(is_named)?;
        if *unit_ns >= last_ns {
            return None;
        }
        last_ns = *unit_ns;
        total_ns += number * *unit_ns as f64;
        rest = &behind[end..];
        if rest.is_empty() {
            break;
        }
    }
    // Half of u64 leaves room for sums with a clock's reading.
    (total_ns <= (u64::MAX / 2) as f64).then_some(total_ns.round() as u64)
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = SPAN_UNITS[PRINTED_FROM..]
            .iter()
            .find(|(_, _, scale)| self.ns > 0 && self.ns.is_multiple_of(*scale));
        match exact {
            Some((unit, _, scale)) => write!(f, "{}{unit}", self.ns / scale),
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
        read(
            deserializer,
            "a duration: a number and a unit, such as \"500ms\", \"10s\" or \"1m30s\"",
        )
    }
}

/// Reads a quantity that is a text with a unit, or a bare number as its text would be.
fn read<'de, T, D>(deserializer: D, expected: &'static str) -> Result<T, D::Error>
where
    T: FromStr<Err = UnitError>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(QuantityVisitor { expected, kind: PhantomData })
}

struct QuantityVisitor<T> {
    expected: &'static str,
    kind: PhantomData<T>,
}

impl<T: FromStr<Err = UnitError>> Visitor<'_> for QuantityVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: DeError>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: DeError>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: DeError>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: DeError>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

/// A number of bytes, written `512`, `64kB`, `3MB`, `10GB` (powers of ten) or `64KiB`, `3MiB`, `10GiB`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// Number of bytes.
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
    /// Returns whether `part` of `all` is at most this share. A percentage in binary may be a rounding error
    /// below its decimal: 7 of 1,000 are 0.7 %.
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
            example: "a percentage from 0% to 100%, such as 5%",
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
        read(deserializer, "a percentage, such as \"5%\"")
    }
}

/// Units of time in a rate, as in `/s`, `/min`, `/h`, and their length, s.
const RATE_PERIODS: [(&str, f64); 9] = [
    ("s", 1.0),
    ("sec", 1.0),
    ("second", 1.0),
    ("m", 60.0),
    ("min", 60.0),
    ("minute", 60.0),
    ("h", 3600.0),
    ("hr", 3600.0),
    ("hour", 3600.0),
];

/// Takes `k` or `M` from the end of a number: the number and its factor.
fn thousands(text: &str) -> (&str, f64) {
    let text = text.trim();
    match text.strip_suffix(['k', 'K']) {
        Some(number) => (number.trim_end(), 1e3),
        None => match text.strip_suffix('M') {
            Some(number) => (number.trim_end(), 1e6),
            None => (text, 1.0),
        },
    }
}

/// A decimal number of at least 0: digits, a point, an exponent; no `inf`, no sign.
fn decimal(text: &str) -> Option<f64> {
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    let number: Option<f64> = if is_plain { text.parse().ok() } else { None };
    number.filter(|number| number.is_finite())
}

/// Requests or other events per second, written `1000`, `1000/s`, `1.5k/s`, `60/min`; a bare number is per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Rate {
    /// Events per second, at least 0.
    pub per_s: f64,
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        rate_per_s(text).map(|per_s| Self { per_s }).ok_or_else(|| UnitError {
            text: text.to_owned(),
            what: "rate",
            example: "a number per second, such as 1000, 1.5k/s or 60/min",
        })
    }
}

fn rate_per_s(text: &str) -> Option<f64> {
    let (number, period) = text.split_once('/').unwrap_or((text, "s"));
    let (_, period_s) = RATE_PERIODS.iter().find(|(name, _)| *name == period.trim())?;
    let (number, factor) = thousands(number);
    let per_s = decimal(number)? * factor / period_s;
    per_s.is_finite().then_some(per_s)
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.per_s)
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer, "a rate: a number per second, such as 1000, \"1.5k/s\" or \"60/min\"")
    }
}

/// A whole number of things, written `500`, `10k` or `1.5M`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

/// Largest count that is read: above it not every whole number is exact.
const COUNT_MAX: f64 = (1u64 << 53) as f64;

impl FromStr for Count {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        count(text).map(Self).ok_or_else(|| UnitError {
            text: text.to_owned(),
            what: "number of things",
            example: "a whole number, such as 500, 10k or 2M",
        })
    }
}

fn count(text: &str) -> Option<u64> {
    if let Ok(number) = text.trim().parse() {
        return Some(number);
    }
    let (number, factor) = thousands(text);
    let number = decimal(number)? * factor;
    // `0.3k` is 300.00000000000006 in binary before it is rounded.
    let whole = number.round();
    let is_whole = (number - whole).abs() <= whole * 1e-12;
    (is_whole && whole <= COUNT_MAX).then_some(whole as u64)
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer, "a whole number, such as 500, \"10k\" or \"2M\"")
    }
}

#[cfg(test)]
mod tests;

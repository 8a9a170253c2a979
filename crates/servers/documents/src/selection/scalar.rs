//! Single values, how they compare, and the three truth values.

use super::pattern::{Pattern, has_wildcard};
use super::tree::Operator;
use crate::value::Value;
use plimsoll_wire::vespa::Bucket;
use std::borrow::Cow;
use std::cmp::Ordering;

/// The result of a condition for a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    False,
    True,
    /// The condition does not apply, for instance because it compares text with a number.
    Invalid,
}

impl From<bool> for Truth {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

impl Truth {
    pub(super) const ALL: [Self; 3] = [Self::False, Self::True, Self::Invalid];

    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::False, _) | (_, Self::False) => Self::False,
            (Self::Invalid, _) | (_, Self::Invalid) => Self::Invalid,
            _ => Self::True,
        }
    }

    pub(super) fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }

    pub(super) fn not(self) -> Self {
        match self {
            Self::False => Self::True,
            Self::True => Self::False,
            Self::Invalid => Self::Invalid,
        }
    }
}

/// The value of a variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound<'a> {
    Index(usize),
    Key(&'a Value),
}

/// Variables with what they stand for, each once. Empty ones take no memory.
pub(super) type Bindings<'a> = Vec<(&'a str, Bound<'a>)>;

/// A single value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar<'a> {
    Null,
    Invalid,
    Text(Cow<'a, str>),
    Integer(i64),
    Float(f64),
    /// `id.bucket`
    Bucket(u64),
    /// Bytes or a tensor, which can only be compared with null.
    Opaque,
}

impl<'a> Scalar<'a> {
    /// The value of a field that is no collection; truth values are the numbers 1 and 0.
    pub(super) fn of(value: &'a Value) -> Self {
        match value {
            Value::String(text) => Self::Text(Cow::Borrowed(text)),
            Value::Int(number) => Self::Integer((*number).into()),
            Value::Long(number) => Self::Integer(*number),
            Value::Byte(number) => Self::Integer((*number).into()),
            Value::Float(number) => Self::Float((*number).into()),
            Value::Double(number) => Self::Float(*number),
            Value::Bool(value) => Self::Integer((*value).into()),
            _ => Self::Opaque,
        }
    }

    pub(super) fn as_float(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }
}

/// Compares two values; `pattern` is the right one, if that was compiled beforehand.
pub(super) fn compare(
    left: &Scalar<'_>,
    operator: Operator,
    right: &Scalar<'_>,
    pattern: Option<&Pattern>,
) -> Truth {
    if let (Scalar::Bucket(_), _) | (_, Scalar::Bucket(_)) = (left, right) {
        return compare_bucket(left, operator, right);
    }
    match operator {
        Operator::Equal => equal(left, right),
        Operator::NotEqual => equal(left, right).not(),
        Operator::Glob => match (left, right) {
            (Scalar::Text(text), Scalar::Text(glob)) => match pattern {
                Some(pattern) => pattern.matches(text).into(),
                None if !has_wildcard(glob) => (text == glob).into(),
                None => matched(Pattern::glob(glob), text),
            },
            (_, Scalar::Text(_)) => Truth::Invalid,
            _ => equal(left, right),
        },
        Operator::Regex => match (left, right) {
            (Scalar::Text(text), Scalar::Text(regex)) => match pattern {
                Some(pattern) => pattern.matches(text).into(),
                None => matched(Pattern::regex(regex), text),
            },
            _ => Truth::Invalid,
        },
        Operator::Less => ordered(left, right, |order| order == Ordering::Less),
        Operator::LessOrEqual => ordered(left, right, |order| order != Ordering::Greater),
        Operator::Greater => ordered(left, right, |order| order == Ordering::Greater),
        Operator::GreaterOrEqual => ordered(left, right, |order| order != Ordering::Less),
    }
}

fn matched(pattern: Result<Pattern, String>, text: &str) -> Truth {
    pattern.map_or(Truth::Invalid, |pattern| pattern.matches(text).into())
}

/// `id.bucket == N` asks whether the bucket N contains the document.
fn compare_bucket(left: &Scalar<'_>, operator: Operator, right: &Scalar<'_>) -> Truth {
    let (raw, wanted) = match (left, right) {
        (Scalar::Bucket(raw), Scalar::Integer(wanted))
        | (Scalar::Integer(wanted), Scalar::Bucket(raw)) => (*raw, wanted.cast_unsigned()),
        _ => return Truth::Invalid,
    };
    let contains = match (Bucket::from_raw(wanted), Bucket::from_raw(raw)) {
        (Some(wanted), Some(bucket)) => wanted.contains(bucket),
        _ => false,
    };
    match operator {
        Operator::Equal | Operator::Glob => contains.into(),
        Operator::NotEqual => (!contains).into(),
        _ => Truth::Invalid,
    }
}

fn equal(left: &Scalar<'_>, right: &Scalar<'_>) -> Truth {
    match (left, right) {
        (Scalar::Invalid, _) | (_, Scalar::Invalid) => Truth::Invalid,
        (Scalar::Null, Scalar::Null) => Truth::True,
        (Scalar::Null, _) | (_, Scalar::Null) => Truth::False,
        _ => ordered(left, right, |order| order == Ordering::Equal),
    }
}

/// Texts in the order of their bytes, numbers by value; everything else has no order.
fn ordered(left: &Scalar<'_>, right: &Scalar<'_>, is_true: impl Fn(Ordering) -> bool) -> Truth {
    match (left, right) {
        (Scalar::Text(left), Scalar::Text(right)) => is_true(left.cmp(right)).into(),
        (Scalar::Integer(left), Scalar::Integer(right)) => is_true(left.cmp(right)).into(),
        _ => match (left.as_float(), right.as_float()) {
            // What is no number is neither less, equal nor greater.
            (Some(left), Some(right)) => left.partial_cmp(&right).is_some_and(is_true).into(),
            _ => Truth::Invalid,
        },
    }
}

//! Values, and tables of them, as procedures and statements return them.

use super::tables::State;
use std::borrow::Cow;
use std::cmp::Ordering;

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Datum<'a> {
    Null,
    Int(i64),
    Float(f64),
    State(State),
    Text(Cow<'a, str>),
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    SmallInt,
    Integer,
    BigInt,
    Float,
    Text,
    /// Nothing is known: NULL itself, or a parameter that was given as NULL.
    Null,
}

impl Type {
    pub(crate) fn is_whole(self) -> bool {
        matches!(self, Self::SmallInt | Self::Integer | Self::BigInt)
    }

    pub(crate) fn is_number(self) -> bool {
        self.is_whole() || self == Self::Float
    }
}

impl Datum<'_> {
    /// A text of its own.
    pub(crate) fn text(text: impl Into<String>) -> Datum<'static> {
        Datum::Text(Cow::Owned(text.into()))
    }

    pub(crate) fn into_owned(self) -> Datum<'static> {
        match self {
            Self::Null => Datum::Null,
            Self::Int(number) => Datum::Int(number),
            Self::Float(number) => Datum::Float(number),
            Self::State(state) => Datum::State(state),
            Self::Text(text) => Datum::Text(Cow::Owned(text.into_owned())),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The text, where it is one.
    pub(crate) fn with_text<R>(&self, take: impl FnOnce(&str) -> R) -> Option<R> {
        match self {
            Self::State(state) => Some(state.with(take)),
            Self::Text(text) => Some(take(text)),
            _ => None,
        }
    }

    /// Compares two values; nothing when one is NULL or they are of different kinds.
    #[inline]
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Float(b)) => (*a as f64).partial_cmp(b),
            (Self::Float(a), Self::Int(b)) => a.partial_cmp(&(*b as f64)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b),
            (Self::State(a), Self::State(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::State(a), Self::Text(b)) => Some(a.with(|a| a.cmp(b))),
            (Self::Text(a), Self::State(b)) => Some(b.with(|b| (**a).cmp(b))),
            _ => None,
        }
    }

    fn is_nan(&self) -> bool {
        matches!(self, Self::Float(number) if number.is_nan())
    }

    /// The order of a sort: NULL before everything, as VoltDB has it.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        match (self.is_null(), other.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            // NaN behind all numbers: a sort may panic on values without a total order.
            (false, false) => {
                self.compare(other).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
            }
        }
    }

    /// Bytes that it takes in a reply, about.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + 4,
            _ => 8,
        }
    }
}

/// A value that can be a key of a map.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Null,
    Int(i64),
    Float(u64),
    Text(String),
}

impl From<&Datum<'_>> for Key {
    fn from(datum: &Datum<'_>) -> Self {
        match datum {
            Datum::Null => Self::Null,
            Datum::Int(number) => Self::Int(*number),
            // Both zeros are one value.
            Datum::Float(number) => Self::Float((number + 0.0).to_bits()),
            Datum::State(state) => Self::Text(state.to_string()),
            Datum::Text(text) => Self::Text(text.clone().into_owned()),
        }
    }
}

/// The result of a statement or a procedure.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ResultTable {
    pub(crate) columns: Vec<(String, Type)>,
    pub(crate) rows: Vec<Vec<Datum<'static>>>,
}

impl ResultTable {
    /// An empty table with these columns.
    pub(crate) fn new(columns: &[(&str, Type)]) -> Self {
        let named = |(name, kind): &(&str, Type)| ((*name).to_owned(), *kind);
        Self { columns: columns.iter().map(named).collect(), rows: Vec::new() }
    }

    /// The result of a procedure that returns a `long`: one cell of a column without a name.
    pub(crate) fn long(value: i64) -> Self {
        Self { rows: vec![vec![Datum::Int(value)]], ..Self::new(&[("", Type::BigInt)]) }
    }

    /// The result of a statement that changes rows.
    pub(crate) fn modified(tuples: usize) -> Self {
        let columns = &[("modified_tuples", Type::BigInt)];
        Self { rows: vec![vec![Datum::Int(tuples as i64)]], ..Self::new(columns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `1e999 * 0` is NaN, which no comparison of numbers orders.
    #[test]
    fn a_sort_has_an_order_also_where_a_value_is_not_a_number() {
        let value = |at: i64| match at % 3 {
            0 => Datum::Float(f64::NAN),
            1 => Datum::Float((at * 7 % 100) as f64),
            _ => Datum::Int(at * 11 % 90),
        };
        let mut values: Vec<Datum<'_>> = (0..300).map(value).collect();
        values.sort_by(Datum::order);
        assert!(values[200..].iter().all(Datum::is_nan), "behind all numbers");
        assert!(values[..200].is_sorted_by(|a, b| a.order(b) != Ordering::Greater));
    }
}

//! Ranges of numbers as tantivy's queries.

use super::made::{Made, PlanError, any_value, flat};
use super::mapping::{FieldKind, Mapped};
use super::query::Number;
use super::words::WordQuery;
use std::ops::Bound;
use tantivy::Term;
use tantivy::query::{EmptyQuery, Query, RangeQuery};
use tantivy::schema::IndexRecordOption;

/// The documents with a number between two bounds.
///
/// # Errors
/// When the field has no numbers.
pub(crate) fn range(
    name: &str,
    mapped: &Mapped,
    lower: Bound<Number>,
    upper: Bound<Number>,
) -> Made {
    match mapped.kind {
        FieldKind::Long => Ok(long_range(mapped, lower, upper)),
        FieldKind::Real { single } => Ok(real_range(mapped, single, lower, upper)),
        FieldKind::Text | FieldKind::Keyword => {
            let message =
                format!("'{name}' is not a number: a comparison needs one, text has 'contains'");
            Err(PlanError(message))
        }
    }
}

fn long_range(mapped: &Mapped, lower: Bound<Number>, upper: Bound<Number>) -> Box<dyn Query> {
    let (Some(lower), Some(upper)) = (at_least(lower), at_most(upper)) else {
        return Box::new(EmptyQuery);
    };
    if lower > upper {
        return Box::new(EmptyQuery);
    }
    if (lower, upper) == (i64::MIN, i64::MAX) {
        return any_value(mapped);
    }
    let term = |value| Term::from_field_i64(mapped.field, value);
    if lower == upper && mapped.terms {
        return flat(WordQuery::new(term(lower), IndexRecordOption::Basic));
    }
    flat(RangeQuery::new(Bound::Included(term(lower)), Bound::Included(term(upper))))
}

fn real_range(
    mapped: &Mapped,
    single: bool,
    lower: Bound<Number>,
    upper: Bound<Number>,
) -> Box<dyn Query> {
    // A field of 32 bits is compared with the number as 32 bits have it, so that 0.1 finds 0.1.
    let value = |number| match number {
        Number::Whole(value) if single => f64::from(value as f32),
        Number::Whole(value) => value as f64,
        Number::Real(value) if single => f64::from(value as f32),
        Number::Real(value) => value,
    };
    let (lower, upper) = (lower.map(value), upper.map(value));
    let unbounded = |bound: &Bound<f64>, infinity: f64| match bound {
        Bound::Unbounded => true,
        Bound::Included(value) => *value == infinity,
        Bound::Excluded(_) => false,
    };
    if unbounded(&lower, f64::NEG_INFINITY) && unbounded(&upper, f64::INFINITY) {
        return any_value(mapped);
    }
    // Zero has two signs, which are one number and two terms.
    let below = |value: f64| if value == 0.0 { -0.0 } else { value };
    let above = |value: f64| if value == 0.0 { 0.0 } else { value };
    let term = |value| Term::from_field_f64(mapped.field, value);
    let lower = match lower {
        Bound::Included(value) => Bound::Included(term(below(value))),
        Bound::Excluded(value) => Bound::Excluded(term(above(value))),
        Bound::Unbounded => Bound::Unbounded,
    };
    let upper = match upper {
        Bound::Included(value) => Bound::Included(term(above(value))),
        Bound::Excluded(value) => Bound::Excluded(term(below(value))),
        Bound::Unbounded => Bound::Unbounded,
    };
    flat(RangeQuery::new(lower, upper))
}

/// The smallest whole number that the bound allows, if there is one.
pub(super) fn at_least(bound: Bound<Number>) -> Option<i64> {
    match bound {
        Bound::Unbounded => Some(i64::MIN),
        Bound::Included(Number::Whole(value)) => Some(value),
        Bound::Excluded(Number::Whole(value)) => value.checked_add(1),
        Bound::Included(Number::Real(value)) => whole(value.ceil()).or(below(value)),
        Bound::Excluded(Number::Real(value)) => match whole(value.floor()) {
            Some(value) => value.checked_add(1),
            None => below(value),
        },
    }
}

/// The largest whole number that the bound allows, if there is one.
pub(super) fn at_most(bound: Bound<Number>) -> Option<i64> {
    match bound {
        Bound::Unbounded => Some(i64::MAX),
        Bound::Included(Number::Whole(value)) => Some(value),
        Bound::Excluded(Number::Whole(value)) => value.checked_sub(1),
        Bound::Included(Number::Real(value)) => whole(value.floor()).or(above(value)),
        Bound::Excluded(Number::Real(value)) => match whole(value.ceil()) {
            Some(value) => value.checked_sub(1),
            None => above(value),
        },
    }
}

/// The number as an integer, when it is in the range of one. 2^63 is the first that is not.
fn whole(value: f64) -> Option<i64> {
    let limit = -(i64::MIN as f64);
    (value >= -limit && value < limit).then_some(value as i64)
}

fn below(value: f64) -> Option<i64> {
    (value < 0.0).then_some(i64::MIN)
}

fn above(value: f64) -> Option<i64> {
    (value > 0.0).then_some(i64::MAX)
}

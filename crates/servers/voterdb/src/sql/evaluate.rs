//! The value of an expression over a row, and the truth of a condition, in three values as SQL has it.

use super::SqlError;
use super::source::{Row, Source};
use super::syntax::{Compare, Expr, Function, Sum};
use crate::result::Datum;
use plimsoll_core::clock::now_ns;
use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;

/// Most steps for one text and one pattern: every `%` may look at all of the text.
const LIKE_STEPS_MAX: u32 = 10_000_000;
/// Work between two readings of the clock, in rows.
const WORK_A_LOOK: u64 = 4_096;
/// Bytes of a text, or steps over it, that are about as much work as a row.
const TEXT_A_ROW: u64 = 64;

/// The time that statements have.
pub(super) struct Time {
    deadline_ns: u64,
    /// Work since the clock was read, in rows.
    work: Cell<u64>,
}

impl Time {
    pub(super) fn until(deadline_ns: u64) -> Self {
        Self { deadline_ns, work: Cell::new(0) }
    }

    /// Counts work, in rows, and reads the clock now and then.
    #[inline]
    pub(super) fn spend(&self, rows: u64) -> Result<(), SqlError> {
        let work = self.work.get() + rows;
        if work < WORK_A_LOOK {
            self.work.set(work);
            return Ok(());
        }
        self.work.set(0);
        if now_ns() <= self.deadline_ns {
            return Ok(());
        }
        let text = "A SQL query was terminated because it exceeded the query timeout period.";
        Err(SqlError::Run(text.to_owned()))
    }

    /// Counts the work for a text of this many bytes, or for this many steps over one.
    fn spend_text(&self, bytes: usize) -> Result<(), SqlError> {
        self.spend(bytes as u64 / TEXT_A_ROW)
    }
}

/// The columns and parameters that expressions can refer to.
pub(super) struct Scope<'s> {
    pub(super) sources: &'s [Source<'s>],
    pub(super) params: &'s [Datum<'static>],
    /// The aggregates of the group at hand.
    pub(super) computed: &'s [Datum<'static>],
    pub(super) time: &'s Time,
}

impl<'s> Scope<'s> {
    /// The value over one row of each source. Rows of sources that the expression does not name are not looked at.
    pub(super) fn value(&self, expr: &'s Expr, rows: &[Row]) -> Result<Datum<'s>, SqlError> {
        Ok(match expr {
            Expr::Column(source, column) => self.sources[*source].value(rows[*source], *column),
            Expr::Int(number) => Datum::Int(*number),
            Expr::Float(number) => Datum::Float(*number),
            Expr::Text(text) => {
                self.time.spend_text(text.len())?;
                Datum::Text(Cow::Borrowed(text))
            }
            Expr::Param(place) => {
                let value = self.params.get(*place).unwrap_or(&Datum::Null);
                self.time.spend_text(value.bytes())?;
                value.clone()
            }
            Expr::Computed(place) => self.computed.get(*place).cloned().unwrap_or(Datum::Null),
            Expr::Sum(sum, a, b) => arithmetic(*sum, self.value(a, rows)?, self.value(b, rows)?)?,
            Expr::Negate(of) => arithmetic(Sum::Subtract, Datum::Int(0), self.value(of, rows)?)?,
            Expr::Call(function, values) => self.call(*function, values, rows)?,
            // The parser lets no condition stand for a value, and names and aggregates are replaced before.
            _ => Datum::Null,
        })
    }

    fn call(
        &self,
        function: Function,
        values: &'s [Expr],
        rows: &[Row],
    ) -> Result<Datum<'s>, SqlError> {
        let first = self.value(&values[0], rows)?;
        if first.is_null() {
            return Ok(Datum::Null);
        }
        // A text may be that of another function.
        self.time.spend_text(first.bytes())?;
        let text = |make: fn(&str) -> Datum<'static>| first.with_text(make).unwrap_or(Datum::Null);
        Ok(match function {
            Function::Mod => match (first, self.value(&values[1], rows)?) {
                (Datum::Int(_), Datum::Int(0)) => return Err(by_zero()),
                (Datum::Int(a), Datum::Int(b)) => Datum::Int(a.wrapping_rem(b)),
                _ => Datum::Null,
            },
            Function::Abs => match first {
                Datum::Int(number) => Datum::Int(number.checked_abs().ok_or_else(overflow)?),
                Datum::Float(number) => Datum::Float(number.abs()),
                _ => Datum::Null,
            },
            Function::Upper => text(|text| Datum::text(text.to_uppercase())),
            Function::Lower => text(|text| Datum::text(text.to_lowercase())),
            Function::CharLength => text(|text| Datum::Int(text.chars().count() as i64)),
        })
    }

    /// Returns true if a condition holds; nothing when that is unknown, because a value is NULL.
    pub(super) fn truth(&self, expr: &'s Expr, rows: &[Row]) -> Result<Option<bool>, SqlError> {
        Ok(match expr {
            Expr::Not(of) => self.truth(of, rows)?.map(|is_true| !is_true),
            Expr::And(all) => self.chain(all, rows, false)?,
            Expr::Or(all) => self.chain(all, rows, true)?,
            Expr::Compare(compare, a, b) => {
                let (a, b) = (self.value(a, rows)?, self.value(b, rows)?);
                a.compare(&b).map(|order| holds(*compare, order))
            }
            Expr::Between(of, low, high) => {
                let of = self.value(of, rows)?;
                let from = of.compare(&self.value(low, rows)?).map(Ordering::is_ge);
                let to = of.compare(&self.value(high, rows)?).map(Ordering::is_le);
                both(from, to)
            }
            Expr::In(of, list) => {
                let of = self.value(of, rows)?;
                let mut found = Some(false);
                for one in list {
                    match of.compare(&self.value(one, rows)?) {
                        Some(Ordering::Equal) => return Ok(Some(true)),
                        Some(_) => {}
                        None => found = None,
                    }
                }
                found
            }
            Expr::Like(of, pattern) => {
                let (of, pattern) = (self.value(of, rows)?, self.value(pattern, rows)?);
                let found = of.with_text(|text| pattern.with_text(|it| is_like(text, it)));
                match found.flatten().transpose()? {
                    Some((found, steps)) => {
                        self.time.spend_text(steps as usize)?;
                        Some(found)
                    }
                    None => None,
                }
            }
            Expr::IsNull(of) => Some(self.value(of, rows)?.is_null()),
            _ => None,
        })
    }

    /// AND ends at the first that is false, OR at the first that is true.
    fn chain(&self, all: &'s [Expr], rows: &[Row], end: bool) -> Result<Option<bool>, SqlError> {
        let mut found = Some(!end);
        for one in all {
            match self.truth(one, rows)? {
                Some(is_true) if is_true == end => return Ok(Some(end)),
                Some(_) => {}
                None => found = None,
            }
        }
        Ok(found)
    }
}

fn both(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn holds(compare: Compare, order: Ordering) -> bool {
    match compare {
        Compare::Equal => order.is_eq(),
        Compare::Unequal => order.is_ne(),
        Compare::Less => order.is_lt(),
        Compare::LessOrEqual => order.is_le(),
        Compare::Greater => order.is_gt(),
        Compare::GreaterOrEqual => order.is_ge(),
    }
}

fn by_zero() -> SqlError {
    SqlError::Run("attempted to divide by zero".to_owned())
}

pub(super) fn overflow() -> SqlError {
    SqlError::Run("a whole number does not fit into BIGINT".to_owned())
}

fn arithmetic<'s>(sum: Sum, a: Datum<'s>, b: Datum<'s>) -> Result<Datum<'s>, SqlError> {
    let (a, b) = match (a, b) {
        (Datum::Int(a), Datum::Int(b)) => {
            let done = match sum {
                Sum::Add => a.checked_add(b),
                Sum::Subtract => a.checked_sub(b),
                Sum::Multiply => a.checked_mul(b),
                Sum::Divide if b == 0 => return Err(by_zero()),
                Sum::Divide => a.checked_div(b),
            };
            return done.map(Datum::Int).ok_or_else(overflow);
        }
        (Datum::Int(a), Datum::Float(b)) => (a as f64, b),
        (Datum::Float(a), Datum::Int(b)) => (a, b as f64),
        (Datum::Float(a), Datum::Float(b)) => (a, b),
        _ => return Ok(Datum::Null),
    };
    let done = match sum {
        Sum::Add => a + b,
        Sum::Subtract => a - b,
        Sum::Multiply => a * b,
        Sum::Divide if b == 0.0 => return Err(by_zero()),
        Sum::Divide => a / b,
    };
    Ok(Datum::Float(done))
}

/// Returns true if a text fits a pattern in which `%` is any text and `_` any character; and the number of steps.
fn is_like(text: &str, pattern: &str) -> Result<(bool, u32), SqlError> {
    let mut steps = 0;
    let (text, pattern): (Vec<char>, Vec<char>) =
        (text.chars().collect(), pattern.chars().collect());
    let (mut t, mut p) = (0, 0);
    // Where the last `%` stands, and how far the text was when it was met: a miss goes back there, one further.
    let mut star = None;
    while t < text.len() {
        steps += 1;
        if steps > LIKE_STEPS_MAX {
            return Err(SqlError::Run("LIKE: the text and the pattern are too long".to_owned()));
        }
        match pattern.get(p) {
            Some('%') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '_' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((star_p, star_t)) = star else { return Ok((false, steps)) };
                star = Some((star_p, star_t + 1));
                (p, t) = (star_p + 1, star_t + 1);
            }
        }
    }
    Ok((pattern[p..].iter().all(|c| *c == '%'), steps))
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn patterns() {
        for (text, pattern, is) in [
            ("NY", "N%", true),
            ("NY", "N_", true),
            ("NY", "_", false),
            ("Edwina Burnam", "%wina%nam", true),
            ("Edwina Burnam", "%wina%nan", false),
            ("aaab", "%ab", true),
            ("", "%", true),
            ("", "_", false),
            ("abc", "abc%%", true),
            ("é", "_", true),
        ] {
            assert_eq!(is_like(text, pattern).unwrap().0, is, "{text} like {pattern}");
        }
    }
}

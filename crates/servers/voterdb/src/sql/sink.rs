//! Destinations of a select's rows: into groups, or straight into the result.

use super::SqlError;
use super::evaluate::{Scope, overflow};
use super::source::Row;
use super::syntax::{Aggregate, Expr};
use crate::result::{Datum, Key};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// Groups, and values that DISTINCT tells apart, at most.
const GROUPS_MAX: usize = 5_000_000;

/// One aggregate of a select.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Computation {
    pub(super) kind: Aggregate,
    pub(super) is_distinct: bool,
    pub(super) of: Option<Expr>,
}

/// An aggregate on its way.
#[derive(Clone, Debug, Default)]
struct Running {
    count: i64,
    /// Sum, least or greatest; NULL before the first value.
    value: Option<Datum<'static>>,
    seen: HashSet<Key>,
}

impl Running {
    fn take(&mut self, what: &Computation, value: &Datum<'_>) -> Result<(), SqlError> {
        if value.is_null() || (what.is_distinct && !self.seen.insert(Key::from(value))) {
            return Ok(());
        }
        if self.seen.len() > GROUPS_MAX {
            return Err(too_many("different values"));
        }
        self.count += 1;
        match what.kind {
            Aggregate::Count => {}
            Aggregate::Sum | Aggregate::Avg => {
                let sum = match (self.value.take(), value) {
                    (Some(Datum::Int(a)), Datum::Int(b)) => {
                        Datum::Int(a.checked_add(*b).ok_or_else(overflow)?)
                    }
                    (Some(Datum::Float(a)), Datum::Float(b)) => Datum::Float(a + b),
                    (_, first) => first.clone().into_owned(),
                };
                self.value = Some(sum);
            }
            Aggregate::Min | Aggregate::Max => {
                let wanted =
                    if what.kind == Aggregate::Min { Ordering::Less } else { Ordering::Greater };
                let is_better =
                    self.value.as_ref().is_none_or(|old| value.compare(old) == Some(wanted));
                if is_better {
                    self.value = Some(value.clone().into_owned());
                }
            }
        }
        Ok(())
    }

    fn end(self, what: &Computation) -> Datum<'static> {
        match (what.kind, self.value) {
            (Aggregate::Count, _) => Datum::Int(self.count),
            // The mean of whole numbers is one, as in VoltDB.
            (Aggregate::Avg, Some(Datum::Int(sum))) => Datum::Int(sum / self.count),
            (Aggregate::Avg, Some(Datum::Float(sum))) => Datum::Float(sum / self.count as f64),
            (_, value) => value.unwrap_or(Datum::Null),
        }
    }
}

/// A group: its first row, for the columns that are the same in all, and its aggregates.
struct Group {
    rows: Vec<Row>,
    running: Vec<Running>,
}

/// A select with aggregates or GROUP BY.
pub(super) struct Groups<'q> {
    by: &'q [Expr],
    computations: &'q [Computation],
    places: HashMap<Vec<Key>, usize>,
    groups: Vec<Group>,
}

impl<'q> Groups<'q> {
    pub(super) fn new(by: &'q [Expr], computations: &'q [Computation]) -> Self {
        Self { by, computations, places: HashMap::new(), groups: Vec::new() }
    }

    /// Takes one row in.
    pub(super) fn take(&mut self, scope: &Scope<'q>, rows: &[Row]) -> Result<(), SqlError> {
        let place = if self.by.is_empty() && !self.groups.is_empty() {
            0
        } else {
            let values = self.by.iter().map(|by| scope.value(by, rows));
            let key = values.map(|value| Ok(Key::from(&value?))).collect::<Result<Vec<_>, _>>()?;
            let next = self.groups.len();
            *self.places.entry(key).or_insert(next)
        };
        if place == self.groups.len() {
            if place == GROUPS_MAX {
                return Err(too_many("groups"));
            }
            let running = vec![Running::default(); self.computations.len()];
            self.groups.push(Group { rows: rows.to_vec(), running });
        }
        for (running, what) in self.groups[place].running.iter_mut().zip(self.computations) {
            match &what.of {
                None => running.count += 1,
                Some(of) => running.take(what, &scope.value(of, rows)?)?,
            }
        }
        Ok(())
    }

    /// Counts rows without reading them, for statements that only need their number.
    pub(super) fn count_all(&mut self, rows: Option<usize>) -> bool {
        let is_count = |what: &Computation| what.of.is_none();
        let Some(rows) = rows else { return false };
        if !self.by.is_empty() || !self.computations.iter().all(is_count) {
            return false;
        }
        let running = Running { count: rows as i64, ..Running::default() };
        self.groups
            .push(Group { rows: Vec::new(), running: vec![running; self.computations.len()] });
        true
    }

    /// Each group's first row and aggregates. Without GROUP BY there is always one group.
    pub(super) fn end(self) -> impl Iterator<Item = (Vec<Row>, Vec<Datum<'static>>)> {
        let mut groups = self.groups;
        if groups.is_empty() && self.by.is_empty() {
            let running = vec![Running::default(); self.computations.len()];
            groups.push(Group { rows: Vec::new(), running });
        }
        let computations = self.computations;
        groups.into_iter().map(move |group| {
            let ended = group.running.into_iter().zip(computations);
            (group.rows, ended.map(|(running, what)| running.end(what)).collect())
        })
    }
}

fn too_many(what: &str) -> SqlError {
    SqlError::Run(format!("more than {GROUPS_MAX} {what}; ask for less with WHERE"))
}

/// Bytes of a result, at most.
const RESULT_BYTES_MAX: usize = 40 << 20;

/// A row of the result with what it is sorted by.
struct Kept {
    values: Vec<Datum<'static>>,
    keys: Vec<Datum<'static>>,
}

/// The rows of a result: sorted, deduplicated and cut, in bounded memory.
pub(super) struct Output {
    rows: Vec<Kept>,
    bytes: usize,
    descending: Vec<bool>,
    seen: Option<HashSet<Vec<Key>>>,
    offset: usize,
    limit: Option<usize>,
}

impl Output {
    pub(super) fn new(
        descending: Vec<bool>,
        is_distinct: bool,
        offset: usize,
        limit: Option<usize>,
    ) -> Self {
        let seen = is_distinct.then(HashSet::new);
        Self { rows: Vec::new(), bytes: 0, descending, seen, offset, limit }
    }

    /// Takes a row in.
    pub(super) fn take(
        &mut self,
        values: Vec<Datum<'static>>,
        keys: Vec<Datum<'static>>,
    ) -> Result<(), SqlError> {
        let most = self.limit.map(|limit| self.offset.saturating_add(limit));
        if self.descending.is_empty() && most.is_some_and(|most| self.rows.len() >= most) {
            return Ok(());
        }
        if let Some(seen) = &mut self.seen {
            if !seen.insert(values.iter().map(Key::from).collect()) {
                return Ok(());
            }
            if seen.len() > GROUPS_MAX {
                return Err(too_many("different rows"));
            }
        }
        self.bytes += values.iter().chain(&keys).map(Datum::bytes).sum::<usize>();
        self.rows.push(Kept { values, keys });
        if self.bytes > RESULT_BYTES_MAX {
            self.cut(most);
            if self.bytes > RESULT_BYTES_MAX {
                let mib = RESULT_BYTES_MAX >> 20;
                let text = format!("the result has more than {mib} MiB; ask for less with LIMIT");
                return Err(SqlError::Run(text));
            }
        } else if most.is_some_and(|most| self.rows.len() / 4 > most.max(1024)) {
            self.cut(most);
        }
        Ok(())
    }

    /// Keeps the rows that may still be in the result.
    fn cut(&mut self, most: Option<usize>) {
        let Some(most) = most else { return };
        self.sort();
        self.rows.truncate(most);
        let bytes =
            |kept: &Kept| kept.values.iter().chain(&kept.keys).map(Datum::bytes).sum::<usize>();
        self.bytes = self.rows.iter().map(bytes).sum();
    }

    fn sort(&mut self) {
        let descending = &self.descending;
        self.rows.sort_by(|a, b| {
            for ((a, b), is_descending) in a.keys.iter().zip(&b.keys).zip(descending) {
                let order = if *is_descending { b.order(a) } else { a.order(b) };
                if order != Ordering::Equal {
                    return order;
                }
            }
            Ordering::Equal
        });
    }

    /// The rows that were asked for.
    pub(super) fn end(mut self) -> Vec<Vec<Datum<'static>>> {
        self.sort();
        let rows = self.rows.into_iter().skip(self.offset).take(self.limit.unwrap_or(usize::MAX));
        rows.map(|kept| kept.values).collect()
    }
}

//! Selects: what they mean, in which order their tables are walked, and the walk.

mod meaning;

use super::SqlError;
use super::evaluate::{Scope, Time};
use super::names::{Named, kind};
use super::sink::{Groups, Output};
use super::source::{Database, Row, Source};
use super::syntax::{Compare, Expr, Select};
use crate::result::{Datum, Key, ResultTable, Type};
use meaning::Meaning;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Checks that the select can be run.
pub(super) fn check(select: &Select, params: &[Datum<'static>]) -> Result<(), SqlError> {
    Meaning::of(select, params).map(|_| ()).map_err(SqlError::Compile)
}

/// Runs a select.
pub(super) fn run(
    select: &Select,
    params: &[Datum<'static>],
    database: &Database<'_>,
    deadline_ns: u64,
) -> Result<ResultTable, SqlError> {
    let meaning = Meaning::of(select, params).map_err(SqlError::Compile)?;
    let open = |named: &Named| Source::open(named.table, database.partitions);
    let sources: Vec<Source<'_>> = meaning.tables.iter().map(open).collect();
    let time = Time::until(deadline_ns);
    let scope = Scope { sources: &sources, params, computed: &[], time: &time };
    let walk = Walk::new(&meaning, &scope, params)?;
    let mut output = Output::new(
        meaning.order.iter().map(|order| order.is_descending).collect(),
        select.is_distinct,
        meaning.offset,
        meaning.limit,
    );
    let mut put = |scope: &Scope<'_>, rows: &[Row]| -> Result<(), SqlError> {
        let value = |expr: &Expr| scope_value(scope, expr, rows);
        let values =
            meaning.items.iter().map(|item| value(&item.expr)).collect::<Result<_, _>>()?;
        let keys = meaning.order.iter().map(|order| value(&order.by)).collect::<Result<_, _>>()?;
        output.take(values, keys)
    };
    if meaning.is_grouped {
        let mut groups = Groups::new(&meaning.groups, &meaning.computations);
        if !groups.count_all(walk.rows_if_unfiltered()) {
            walk.run(&mut |rows| groups.take(&scope, rows))?;
        }
        for (rows, computed) in groups.end() {
            time.spend(1)?;
            let scope = Scope { computed: &computed, ..scope };
            let is_wanted = match &meaning.having {
                Some(having) => scope_truth(&scope, having, &rows)?,
                None => true,
            };
            if is_wanted {
                put(&scope, &rows)?;
            }
        }
    } else {
        walk.run(&mut |rows| put(&scope, rows))?;
    }
    let columns = meaning.items.iter().map(|item| {
        let kind = if item.kind == Type::Null { Type::BigInt } else { item.kind };
        (item.name.clone(), kind)
    });
    Ok(ResultTable { columns: columns.collect(), rows: output.end() })
}

fn scope_value(scope: &Scope<'_>, expr: &Expr, rows: &[Row]) -> Result<Datum<'static>, SqlError> {
    // A scope of a shorter life, so that the expression need not live as long as the sources.
    let Scope { sources, params, computed, time } = *scope;
    let scope = Scope { sources, params, computed, time };
    scope.value(expr, rows).map(Datum::into_owned)
}

fn scope_truth(scope: &Scope<'_>, expr: &Expr, rows: &[Row]) -> Result<bool, SqlError> {
    let Scope { sources, params, computed, time } = *scope;
    let scope = Scope { sources, params, computed, time };
    Ok(scope.truth(expr, rows)? == Some(true))
}

/// One table on the walk.
struct Step<'q> {
    source: usize,
    /// Conditions that can be decided once a row of this table is taken.
    filters: Vec<&'q Expr>,
    /// A value of the rows before, and the rows of this table that have it.
    join: Option<(&'q Expr, HashMap<Key, Vec<Row>>)>,
}

/// The walk over all combinations of rows that hold.
struct Walk<'q> {
    scope: &'q Scope<'q>,
    steps: Vec<Step<'q>>,
}

impl<'q> Walk<'q> {
    /// The longest table is walked; the others are looked up in it where an equality says how.
    fn new(
        meaning: &'q Meaning,
        scope: &'q Scope<'q>,
        params: &[Datum<'static>],
    ) -> Result<Self, SqlError> {
        let mut order: Vec<usize> = (0..scope.sources.len()).collect();
        order.sort_by_key(|source| Reverse(scope.sources[*source].len()));
        let mut left: Vec<&Expr> = meaning.conditions.iter().collect();
        let mut walk = Self { scope, steps: Vec::new() };
        let mut taken = Vec::new();
        for source in order {
            let mut join = None;
            if let Some(place) = left.iter().position(|condition| {
                equality(condition, &taken, source, &meaning.tables, params).is_some()
            }) && let Some((before, own)) =
                equality(left[place], &taken, source, &meaning.tables, params)
            {
                left.remove(place);
                join = Some((before, walk.by_value(source, own)?));
            }
            taken.push(source);
            let (now, later) = left.into_iter().partition(|condition| within(condition, &taken));
            left = later;
            walk.steps.push(Step { source, filters: now, join });
        }
        Ok(walk)
    }

    /// The rows of a table by a value of theirs.
    fn by_value(&self, source: usize, own: &'q Expr) -> Result<HashMap<Key, Vec<Row>>, SqlError> {
        let mut found: HashMap<Key, Vec<Row>> = HashMap::new();
        let mut rows = vec![(0, 0); self.scope.sources.len()];
        self.scope.sources[source].each(|row| {
            self.scope.time.spend(1)?;
            rows[source] = row;
            let value = self.scope.value(own, &rows)?;
            // NULL equals nothing.
            if !value.is_null() {
                found.entry(Key::from(&value)).or_default().push(row);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Number of rows, where that needs no walk.
    fn rows_if_unfiltered(&self) -> Option<usize> {
        match &self.steps[..] {
            [step] if step.filters.is_empty() => Some(self.scope.sources[step.source].len()),
            _ => None,
        }
    }

    fn run(&self, take: &mut dyn FnMut(&[Row]) -> Result<(), SqlError>) -> Result<(), SqlError> {
        let mut rows = vec![(0, 0); self.scope.sources.len()];
        self.step(0, &mut rows, take)
    }

    fn step(
        &self,
        number: usize,
        rows: &mut Vec<Row>,
        take: &mut dyn FnMut(&[Row]) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let Some(step) = self.steps.get(number) else { return take(rows) };
        let mut one = |rows: &mut Vec<Row>, row: Row| {
            self.scope.time.spend(1)?;
            rows[step.source] = row;
            for filter in &step.filters {
                if self.scope.truth(filter, rows)? != Some(true) {
                    return Ok(());
                }
            }
            self.step(number + 1, rows, take)
        };
        match &step.join {
            None => self.scope.sources[step.source].each(|row| one(rows, row)),
            Some((before, by_value)) => {
                let key = Key::from(&self.scope.value(before, rows)?);
                let found = by_value.get(&key).map_or(&[][..], Vec::as_slice);
                found.iter().try_for_each(|row| one(rows, *row))
            }
        }
    }
}

/// Returns true if an expression speaks of these tables only.
fn within(expr: &Expr, sources: &[usize]) -> bool {
    !expr.any(&|part| matches!(part, Expr::Column(source, _) if !sources.contains(source)))
}

/// The two sides of an equality between the tables before and this one. Both are whole numbers or both texts: a float may
/// equal a whole number without looking like it.
fn equality<'e>(
    condition: &'e Expr,
    before: &[usize],
    own: usize,
    tables: &[Named],
    params: &[Datum<'static>],
) -> Option<(&'e Expr, &'e Expr)> {
    let Expr::Compare(Compare::Equal, a, b) = condition else { return None };
    let of = |expr: &Expr| kind(expr, tables, params).ok();
    let is_alike = match (of(a)?, of(b)?) {
        (a, b) if a.is_whole() && b.is_whole() => true,
        (a, b) => a == Type::Text && b == Type::Text,
    };
    let is_own =
        |expr: &Expr| within(expr, &[own]) && expr.any(&|part| matches!(part, Expr::Column(..)));
    let is_before =
        |expr: &Expr| within(expr, before) && expr.any(&|part| matches!(part, Expr::Column(..)));
    match is_alike {
        true if is_before(a) && is_own(b) => Some((a, b)),
        true if is_before(b) && is_own(a) => Some((b, a)),
        _ => None,
    }
}

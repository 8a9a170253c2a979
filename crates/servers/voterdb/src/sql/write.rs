//! INSERT, UPDATE, DELETE and TRUNCATE. A statement changes all its rows or none: everything is computed before anything
//! is changed.

use super::SqlError;
use super::evaluate::{Scope, Time};
use super::names::{Named, bind, kind, table};
use super::schema::{Column, Table};
use super::source::{Database, Row, Source};
use super::syntax::{Expr, Insert, Statement, Update};
use crate::result::{Datum, Type};
use crate::tables::{Greeting, Replicated, State, Vote, Votes};
use std::borrow::Cow;
use std::sync::Arc;

/// Checks that the statement can be run.
pub(super) fn check(statement: &Statement, params: &[Datum<'static>]) -> Result<(), SqlError> {
    Change::of(statement, params).map(|_| ()).map_err(SqlError::Compile)
}

/// Runs a change and says how many rows it touched.
pub(super) fn run(
    statement: &Statement,
    params: &[Datum<'static>],
    database: &mut Database<'_>,
    deadline_ns: u64,
) -> Result<usize, SqlError> {
    let change = Change::of(statement, params).map_err(SqlError::Compile)?;
    let time = Time::until(deadline_ns);
    match &change.kind {
        Kind::Insert(values) => {
            let scope = Scope { sources: &[], params, computed: &[], time: &time };
            let row = values
                .iter()
                .zip(change.table.columns())
                .map(|(value, column)| fit(column, scope.value(value, &[])?.into_owned()));
            insert(change.table, row.collect::<Result<_, _>>()?, database)?;
            Ok(1)
        }
        // What people type to start anew, with millions of rows.
        Kind::Delete if change.filter.is_none() && change.table == Table::Votes => {
            let parts = database.partitions.iter_mut();
            Ok(parts
                .map(|partition| {
                    let rows = partition.votes().len();
                    partition.replace_votes(Votes::default());
                    rows
                })
                .sum())
        }
        Kind::Update(_) | Kind::Delete => {
            let fates = change.fates(params, database, &time)?;
            Ok(apply(change.table, fates, database))
        }
    }
}

/// A change that can be run.
struct Change {
    table: Table,
    kind: Kind,
    filter: Option<Expr>,
}

enum Kind {
    /// A value for each column.
    Insert(Vec<Expr>),
    /// Columns and their new values.
    Update(Vec<(usize, Expr)>),
    Delete,
}

/// The change to a row.
enum Fate {
    Kept,
    Changed(Vec<Datum<'static>>),
    Gone,
}

impl Change {
    fn of(statement: &Statement, params: &[Datum<'static>]) -> Result<Self, String> {
        let (name, filter) = match statement {
            Statement::Select(_) => return Err("a select changes nothing".to_owned()),
            Statement::Insert(insert) => (&insert.table, None),
            Statement::Update(update) => (&update.table, update.filter.clone()),
            Statement::Delete(delete) => (&delete.table, delete.filter.clone()),
        };
        let table = table(name)?;
        if table.is_view() {
            return Err(format!("{} is a view: it cannot be changed", table.name()));
        }
        let named = [Named { table, name: table.name().to_owned() }];
        let ready = |mut expr: Expr| {
            bind(&mut expr, &named)?;
            kind(&expr, &named, params)?;
            let is_aggregate = |part: &Expr| matches!(part, Expr::Aggregate { .. });
            if expr.any(&is_aggregate) {
                Err("an aggregate cannot stand here".to_owned())
            } else {
                Ok(expr)
            }
        };
        let filter = filter.map(ready).transpose()?;
        let kind = match statement {
            Statement::Insert(insert) => Kind::Insert(inserted(table, insert, params)?),
            Statement::Update(update) => Kind::Update(updated(table, update, ready)?),
            _ => Kind::Delete,
        };
        Ok(Self { table, kind, filter })
    }

    /// The change to each row, part by part.
    fn fates(
        &self,
        params: &[Datum<'static>],
        database: &Database<'_>,
        time: &Time,
    ) -> Result<Vec<(Row, Fate)>, SqlError> {
        let sources = [Source::open(self.table, database.partitions)];
        let scope = Scope { sources: &sources, params, computed: &[], time };
        let mut fates = Vec::new();
        sources[0].each(|row| {
            time.spend(1)?;
            let is_meant = match &self.filter {
                Some(filter) => scope.truth(filter, &[row])? == Some(true),
                None => true,
            };
            let fate = match &self.kind {
                Kind::Update(sets) if is_meant => {
                    let columns = self.table.columns();
                    let old = (0..columns.len()).map(|place| sources[0].value(row, place));
                    let mut new: Vec<_> = old.map(Datum::into_owned).collect();
                    for (place, value) in sets {
                        let value = scope.value(value, &[row])?.into_owned();
                        new[*place] = fit(&columns[*place], value)?;
                    }
                    Fate::Changed(new)
                }
                Kind::Delete if is_meant => Fate::Gone,
                _ => Fate::Kept,
            };
            fates.push((row, fate));
            Ok(())
        })?;
        Ok(fates)
    }
}

/// A value for each column of the table, in order.
fn inserted(table: Table, insert: &Insert, params: &[Datum<'static>]) -> Result<Vec<Expr>, String> {
    let columns = table.columns();
    let places: Vec<usize> = match &insert.columns[..] {
        [] => (0..columns.len()).collect(),
        names => names.iter().map(|name| place(table, name)).collect::<Result<_, _>>()?,
    };
    if places.len() != insert.values.len() {
        return Err(format!(
            "row column count mismatch: {} columns and {} values",
            places.len(),
            insert.values.len()
        ));
    }
    let given = places.clone();
    let mut values = vec![Expr::Null; columns.len()];
    for (place, value) in places.into_iter().zip(&insert.values) {
        if value.any(&|part| matches!(part, Expr::Name(..) | Expr::Aggregate { .. })) {
            return Err(
                "only literals, parameters and functions of them can be inserted".to_owned()
            );
        }
        kind(value, &[], params)?;
        values[place] = value.clone();
    }
    let is_given = |place: &usize| insert.columns.is_empty() || given.contains(place);
    let mut places = 0..columns.len();
    if let Some(missing) = places.find(|place| !columns[*place].is_nullable && !is_given(place)) {
        let name = columns[missing].name;
        return Err(format!("Column {name} has no default and is not nullable."));
    }
    Ok(values)
}

fn updated(
    table: Table,
    update: &Update,
    ready: impl Fn(Expr) -> Result<Expr, String>,
) -> Result<Vec<(usize, Expr)>, String> {
    let one = |(name, value): &(String, Expr)| {
        if table.partition_column() == Some(name.as_str()) {
            return Err(format!("{name} is the partitioning column: it cannot be updated"));
        }
        if table.key().contains(&name.as_str()) {
            return Err(format!("{name} is the key: delete the row and insert it again"));
        }
        Ok((place(table, name)?, ready(value.clone())?))
    };
    update.sets.iter().map(one).collect()
}

fn place(table: Table, name: &str) -> Result<usize, String> {
    let found = table.columns().iter().position(|column| column.name == name);
    found.ok_or_else(|| format!("user lacks privilege or object not found: {name}"))
}

/// The value as the column holds it.
fn fit(column: &Column, value: Datum<'static>) -> Result<Datum<'static>, SqlError> {
    let refused = |why: String| Err(SqlError::Constraint(format!("column {}: {why}", column.name)));
    let whole = match &value {
        Datum::Null if column.is_nullable => return Ok(Datum::Null),
        Datum::Null => return refused("NULL is not allowed".to_owned()),
        Datum::Int(number) => Some(*number),
        Datum::Float(_) => None,
        Datum::State(_) | Datum::Text(_) if column.kind == Type::Text => {
            let chars = value.with_text(|text| text.chars().count()).unwrap_or(0);
            let has_nul = value.with_text(|text| text.contains('\0')).unwrap_or(false);
            if chars > column.chars_max || has_nul {
                let most = column.chars_max;
                let name = column.name;
                return Err(SqlError::Run(format!(
                    "column {name}: a text of at most {most} characters is expected"
                )));
            }
            return Ok(value);
        }
        Datum::State(_) | Datum::Text(_) => None,
    };
    // The least number of each type stands for NULL on the wire.
    let (low, high) = match column.kind {
        Type::SmallInt => (i64::from(i16::MIN) + 1, i64::from(i16::MAX)),
        Type::Integer => (i64::from(i32::MIN) + 1, i64::from(i32::MAX)),
        _ => (i64::MIN + 1, i64::MAX),
    };
    match whole {
        Some(number) if column.kind.is_whole() && (low..=high).contains(&number) => Ok(value),
        _ if column.kind.is_whole() => {
            refused(format!("a number from {low} to {high} is expected"))
        }
        _ => refused("a text is expected".to_owned()),
    }
}

fn int(value: &Datum<'_>) -> i64 {
    if let Datum::Int(number) = value { *number } else { 0 }
}

fn text(value: &Datum<'_>) -> String {
    value.with_text(str::to_owned).unwrap_or_default()
}

fn nullable(value: &Datum<'_>) -> Option<String> {
    value.with_text(str::to_owned)
}

/// Values that fit their columns, as a vote.
fn vote(row: &[Datum<'_>]) -> Vote {
    let state = row[1].with_text(State::new).flatten().unwrap_or(State::UNKNOWN);
    Vote { phone: int(&row[0]), state, contestant: int(&row[2]) as i32 }
}

fn insert(
    table: Table,
    row: Vec<Datum<'static>>,
    database: &mut Database<'_>,
) -> Result<(), SqlError> {
    let exists = |key: &dyn std::fmt::Display| {
        let name = table.name();
        Err(SqlError::Constraint(format!("{name} has a row with the key {key} already")))
    };
    match table {
        Table::Votes => {
            let vote = vote(&row);
            let place = database.routing.of_long(vote.phone);
            database.partitions[place].insert(vote);
        }
        Table::HelloWorld => {
            let dialect = text(&row[2]);
            let partition = &mut database.partitions[database.routing.of_text(&dialect)];
            if partition.greetings().contains_key(&dialect) {
                return exists(&dialect);
            }
            let greeting = Greeting { hello: nullable(&row[0]), world: nullable(&row[1]) };
            partition.greetings_mut().insert(dialect, greeting);
        }
        Table::Contestants | Table::AreaCodeState => {
            let replicated = &database.partitions[0].replicated;
            let key = int(&row[0]);
            let is_there = match table {
                Table::Contestants => replicated.contestants().contains_key(&(key as i32)),
                _ => replicated.area_codes().contains_key(&(key as i16)),
            };
            if is_there {
                return exists(&key);
            }
            replicate(database, |tables| set_row(table, &row, tables));
        }
        Table::VotesByPhone | Table::VotesByState => {}
    }
    Ok(())
}

/// Changes the replicated tables of all partitions.
pub(crate) fn replicate(database: &mut Database<'_>, change: impl FnOnce(&mut Replicated)) {
    let Some(first) = database.partitions.first() else { return };
    let mut tables = (*first.replicated).clone();
    change(&mut tables);
    let tables = Arc::new(tables);
    for partition in database.partitions.iter_mut() {
        partition.replicated = Arc::clone(&tables);
    }
}

/// Puts a row in by its key.
fn set_row(table: Table, row: &[Datum<'_>], tables: &mut Replicated) {
    match table {
        Table::Contestants => tables.set_contestant(int(&row[0]) as i32, text(&row[1])),
        _ => {
            let state = row[1].with_text(State::new).flatten().unwrap_or(State::UNKNOWN);
            tables.set_area_code(int(&row[0]) as i16, state);
        }
    }
}

/// Does what was computed; how many rows it touched.
fn apply(table: Table, fates: Vec<(Row, Fate)>, database: &mut Database<'_>) -> usize {
    let touched = fates.iter().filter(|(_, fate)| !matches!(fate, Fate::Kept)).count();
    if touched == 0 {
        return 0;
    }
    if table == Table::Votes {
        let mut parts: Vec<Votes> = database.partitions.iter().map(|_| Votes::default()).collect();
        for ((part, row), fate) in fates {
            let votes = database.partitions[part as usize].votes();
            match fate {
                Fate::Kept => parts[part as usize].push(votes.get(row as usize)),
                Fate::Changed(new) => parts[part as usize].push(vote(&new)),
                Fate::Gone => {}
            }
        }
        for (partition, votes) in database.partitions.iter_mut().zip(parts) {
            partition.replace_votes(votes);
        }
        return touched;
    }
    // Small tables: the keys in the order in which the rows were shown.
    let keys = keys(table, database);
    let with_keys = keys.into_iter().zip(fates);
    let changed = with_keys.filter(|(_, (_, fate))| !matches!(fate, Fate::Kept));
    let changed: Vec<(Datum<'static>, Fate)> =
        changed.map(|(key, (_, fate))| (key, fate)).collect();
    if table == Table::HelloWorld {
        for (key, fate) in changed {
            let dialect = text(&key);
            let place = database.routing.of_text(&dialect);
            let greetings = database.partitions[place].greetings_mut();
            match fate {
                Fate::Changed(new) => {
                    let greeting = Greeting { hello: nullable(&new[0]), world: nullable(&new[1]) };
                    greetings.insert(dialect, greeting);
                }
                _ => drop(greetings.remove(&dialect)),
            }
        }
        return touched;
    }
    replicate(database, |tables| {
        for (key, fate) in changed {
            match fate {
                Fate::Changed(new) => set_row(table, &new, tables),
                _ if table == Table::Contestants => tables.remove_contestant(int(&key) as i32),
                _ => tables.remove_area_code(int(&key) as i16),
            }
        }
    });
    touched
}

/// The keys of a small table's rows.
fn keys(table: Table, database: &Database<'_>) -> Vec<Datum<'static>> {
    let place = if table == Table::HelloWorld { 2 } else { 0 };
    let source = Source::open(table, database.partitions);
    let mut keys = Vec::with_capacity(source.len());
    let shown = source.each(|row| {
        keys.push(source.value(row, place).into_owned());
        Ok(())
    });
    debug_assert!(shown.is_ok());
    keys
}

/// Greetings as they are inserted by the procedure: the same limits as the statement has.
pub(crate) fn greeting(
    dialect: Option<&str>,
    hello: Option<&str>,
    world: Option<&str>,
) -> Result<(String, Greeting), SqlError> {
    let columns = Table::HelloWorld.columns();
    let given = |place: usize, text: Option<&str>| {
        let value = text.map_or(Datum::Null, |text| Datum::Text(Cow::Owned(text.to_owned())));
        fit(&columns[place], value)
    };
    let (hello, world) = (given(0, hello)?, given(1, world)?);
    let dialect = given(2, dialect)?;
    let greeting = Greeting { hello: nullable(&hello), world: nullable(&world) };
    Ok((text(&dialect), greeting))
}

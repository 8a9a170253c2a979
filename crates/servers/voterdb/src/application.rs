//! The voter application's procedures over all partitions.

use super::result::{Datum, ResultTable, Type};
use super::sql::{Database, replicate, votes_by_state};
use super::tables::InitializeError;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Makes contestants and area codes, unless there are contestants; how many there are.
pub(crate) fn initialize(
    most: i32,
    names: &str,
    database: &mut Database<'_>,
) -> Result<i64, InitializeError> {
    let mut tables = (*database.partitions[0].replicated).clone();
    let count = tables.initialize(most, names)?;
    replicate(database, |old| *old = tables);
    Ok(count)
}

/// Votes by contestant.
fn totals(database: &Database<'_>) -> BTreeMap<i32, i64> {
    let mut totals = BTreeMap::new();
    for ((contestant, _), count) in votes_by_state(database.partitions) {
        *totals.entry(contestant).or_insert(0) += count;
    }
    totals
}

/// The contestants who have votes, the winner first.
pub(crate) fn results(database: &Database<'_>) -> ResultTable {
    let names = database.partitions[0].replicated.contestants();
    let totals = totals(database).into_iter();
    let mut rows: Vec<_> = totals
        .filter_map(|(number, total)| Some((Reverse(total), number, names.get(&number)?)))
        .collect();
    rows.sort_unstable();
    let mut table = ResultTable::new(&[
        ("CONTESTANT_NAME", Type::Text),
        ("CONTESTANT_NUMBER", Type::Integer),
        ("TOTAL_VOTES", Type::BigInt),
    ]);
    table.rows.extend(rows.into_iter().map(|(Reverse(total), number, name)| {
        vec![Datum::text(name.as_str()), Datum::Int(number.into()), Datum::Int(total)]
    }));
    table
}

/// The winners of each state, all of those who share the first place, and the votes of each contestant.
pub(crate) fn heatmap(database: &Database<'_>) -> Vec<ResultTable> {
    let by_state = votes_by_state(database.partitions);
    let mut best = BTreeMap::new();
    for ((_, state), count) in &by_state {
        let most = best.entry(*state).or_insert(*count);
        *most = (*most).max(*count);
    }
    let mut winners: Vec<_> = by_state
        .into_iter()
        .filter(|((_, state), count)| best.get(state) == Some(count))
        .map(|((contestant, state), count)| (state, contestant, count))
        .collect();
    winners.sort_unstable();
    let mut states = ResultTable::new(&[
        ("STATE", Type::Text),
        ("CONTESTANT_NUMBER", Type::Integer),
        ("NUM_VOTES", Type::BigInt),
    ]);
    states.rows.extend(winners.into_iter().map(|(state, contestant, count)| {
        vec![Datum::State(state), Datum::Int(contestant.into()), Datum::Int(count)]
    }));
    let mut sums = ResultTable::new(&[("CONTESTANT_NUMBER", Type::Integer), ("C2", Type::BigInt)]);
    sums.rows.extend(
        totals(database)
            .into_iter()
            .map(|(contestant, total)| vec![Datum::Int(contestant.into()), Datum::Int(total)]),
    );
    vec![states, sums]
}

/// The states in which no contestant has more votes than this one, at most `most`, most votes first.
pub(crate) fn winning_states(contestant: i64, most: i64, database: &Database<'_>) -> ResultTable {
    let mut table = ResultTable::new(&[("STATE", Type::Text), ("NUM_VOTES", Type::BigInt)]);
    let Some(winners) = heatmap(database).into_iter().next() else { return table };
    let mut own: Vec<_> = winners
        .rows
        .into_iter()
        .filter(|row| row[1] == Datum::Int(contestant))
        .map(|row| vec![row[0].clone(), row[2].clone()])
        .collect();
    // By state already; the sort keeps that order among equals.
    own.sort_by(|a, b| b[1].order(&a[1]));
    own.truncate(usize::try_from(most).unwrap_or(0));
    table.rows = own;
    table
}

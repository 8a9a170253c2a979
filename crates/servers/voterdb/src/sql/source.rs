//! The rows that a statement reads.

use super::SqlError;
use super::schema::Table;
use crate::result::Datum;
use crate::routing::Routing;
use crate::tables::{Partition, State, Votes};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// All partitions, lent for one transaction.
pub(crate) struct Database<'d> {
    pub(crate) partitions: &'d mut [Partition],
    /// Routing that gives the partition of a row.
    pub(crate) routing: &'d Routing,
}

/// A row of a source: the part it is in, and its place there.
pub(super) type Row = (u32, u32);

/// One table or view.
pub(super) enum Source<'d> {
    /// The votes of all partitions.
    Votes(Vec<&'d Votes>),
    /// `v_votes_by_phone_number`: a phone number is in one partition only.
    ByPhone(Vec<(i64, i64)>),
    /// A small table, as it is.
    Rows(Vec<Vec<Datum<'d>>>),
}

impl<'d> Source<'d> {
    /// Opens a table over partitions that stand still.
    pub(super) fn open(table: Table, partitions: &'d [Partition]) -> Self {
        let replicated = partitions.first().map(|partition| &*partition.replicated);
        match table {
            Table::Votes => Self::Votes(partitions.iter().map(|part| part.votes()).collect()),
            Table::VotesByPhone => {
                let all = partitions.iter().flat_map(|part| part.by_phone());
                Self::ByPhone(all.map(|(phone, count)| (*phone, *count)).collect())
            }
            Table::VotesByState => {
                let row = |((contestant, state), count): (&(i32, State), &i64)| {
                    vec![int(*contestant), Datum::State(*state), Datum::Int(*count)]
                };
                Self::Rows(votes_by_state(partitions).iter().map(row).collect())
            }
            Table::Contestants => {
                let all = replicated.into_iter().flat_map(|tables| tables.contestants());
                let row = |(number, name): (&i32, &'d String)| vec![int(*number), borrowed(name)];
                Self::Rows(all.map(row).collect())
            }
            Table::AreaCodeState => {
                let all = replicated.into_iter().flat_map(|tables| tables.area_codes());
                let row = |(code, state): (&i16, &State)| vec![int(*code), Datum::State(*state)];
                Self::Rows(all.map(row).collect())
            }
            Table::HelloWorld => {
                let all = partitions.iter().flat_map(|part| part.greetings());
                let text = |text: &'d Option<String>| {
                    text.as_ref().map_or(Datum::Null, |text| borrowed(text))
                };
                let rows = all.map(|(dialect, greeting)| {
                    vec![text(&greeting.hello), text(&greeting.world), borrowed(dialect)]
                });
                Self::Rows(rows.collect())
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Votes(parts) => parts.iter().map(|votes| votes.len()).sum(),
            Self::ByPhone(rows) => rows.len(),
            Self::Rows(rows) => rows.len(),
        }
    }

    /// Shows all rows in turn, until the taker fails.
    pub(super) fn each(
        &self,
        mut take: impl FnMut(Row) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let mut part = |part: usize, length: usize| {
            (0..length).try_for_each(|row| take((part as u32, row as u32)))
        };
        match self {
            Self::Votes(parts) => {
                parts.iter().enumerate().try_for_each(|(place, votes)| part(place, votes.len()))
            }
            Self::ByPhone(rows) => part(0, rows.len()),
            Self::Rows(rows) => part(0, rows.len()),
        }
    }

    /// A value of a row.
    #[inline]
    pub(super) fn value(&self, (part, row): Row, column: usize) -> Datum<'_> {
        let (part, row) = (part as usize, row as usize);
        match self {
            Self::Votes(parts) => {
                let votes = parts[part];
                match column {
                    0 => Datum::Int(votes.phones[row]),
                    1 => Datum::State(votes.states[row]),
                    _ => int(votes.contestants[row]),
                }
            }
            Self::ByPhone(rows) => {
                let (phone, count) = rows[row];
                Datum::Int(if column == 0 { phone } else { count })
            }
            Self::Rows(rows) => rows[row][column].clone(),
        }
    }
}

/// `v_votes_by_contestant_number_state` over all partitions, in order.
pub(crate) fn votes_by_state(partitions: &[Partition]) -> BTreeMap<(i32, State), i64> {
    let mut sums = BTreeMap::new();
    for (key, count) in partitions.iter().flat_map(|partition| partition.by_state()) {
        *sums.entry(*key).or_insert(0) += count;
    }
    sums
}

fn int<'d>(number: impl Into<i64>) -> Datum<'d> {
    Datum::Int(number.into())
}

fn borrowed(text: &str) -> Datum<'_> {
    Datum::Text(Cow::Borrowed(text))
}

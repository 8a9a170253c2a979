//! The system procedures that clients ask when they connect, and those that people ask.

mod catalogue;
mod information;
mod statistics;
mod topology;

pub(crate) use statistics::{Baseline, statistics};

use super::message::Reply;
use super::procedures::Procedure;
use super::result::{Datum, ResultTable, Type};
use super::shared::Shared;
use plimsoll_wire::volt::Status;

/// Answers a procedure that touches no data.
pub(crate) fn answer(shared: &Shared, procedure: Procedure, params: &[Datum<'_>]) -> Reply {
    let selector = params.first().and_then(|first| first.with_text(str::to_ascii_uppercase));
    let selector = selector.unwrap_or_default();
    let table = match procedure {
        Procedure::Ping => {
            let mut table = ResultTable::new(&[("STATUS", Type::BigInt)]);
            table.rows.push(vec![Datum::Int(0)]);
            let text = Some("SUCCESS".to_owned());
            return Reply { text, ..Reply::tables(procedure, &[table]) };
        }
        // There is one host and its partitions stay: nothing will ever be told.
        Procedure::Subscribe => return Reply::tables(procedure, &[]),
        Procedure::SystemCatalog => catalogue::table(&selector),
        Procedure::GetPartitionKeys => topology::keys(shared, &selector),
        Procedure::SystemInformation => information::information(shared, &selector),
        _ => Err(format!("{} is not answered here", procedure.name())),
    };
    match table {
        Ok(table) => Reply::tables(procedure, &[table]),
        Err(text) => Reply::failed(procedure, Status::GRACEFUL_FAILURE, text),
    }
}

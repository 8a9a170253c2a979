//! Messages between the threads: calls in batches one way, the same batches with their answers the other way.

use super::procedures::Procedure;
use super::result::{Datum, ResultTable, Type};
use plimsoll_serving::tickets::Ticket;
use plimsoll_wire::volt::{Kind, MESSAGE_BYTES_MAX, Status, TableWriter, Value};

/// Calls for one partition, or the answers to them. The partition answers in place.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The network thread that it comes from and goes back to.
    pub(crate) network: usize,
    /// Time at which its first call had been received.
    pub(crate) arrived_ns: u64,
    /// Bytes of its calls, as they came.
    pub(crate) bytes: usize,
    pub(crate) items: Vec<Item>,
    /// True if it is one call over all partitions.
    pub(crate) is_ask: bool,
}

/// One call.
#[derive(Debug)]
pub(crate) struct Item {
    /// The connection.
    pub(crate) ticket: Ticket,
    /// The caller's name for it.
    pub(crate) handle: i64,
    pub(crate) work: Work,
}

/// A call, or its result.
#[derive(Debug)]
pub(crate) enum Work {
    Vote {
        phone: i64,
        contestant: i32,
        most: i64,
    },
    /// The result of `Vote`.
    Voted(i64),
    /// A call of `Insert` or `Select` and its texts.
    Hello(Box<Hello>),
    Done(Box<Reply>),
}

/// A call of the hello world pair.
#[derive(Debug)]
pub(crate) struct Hello {
    pub(crate) procedure: Procedure,
    /// Dialect, and for `Insert` the two words.
    pub(crate) texts: Vec<Option<String>>,
}

/// A call that needs all partitions.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) network: usize,
    pub(crate) arrived_ns: u64,
    pub(crate) bytes: usize,
    pub(crate) ticket: Ticket,
    pub(crate) handle: i64,
    pub(crate) procedure: Procedure,
    pub(crate) params: Vec<Datum<'static>>,
    /// Longest time that its statements may take, if the caller says so.
    pub(crate) timeout_ms: Option<i32>,
}

impl Ask {
    /// The way back of the answer.
    pub(crate) fn answered(self, reply: Reply) -> Batch {
        let work = Work::Done(Box::new(reply));
        let item = Item { ticket: self.ticket, handle: self.handle, work };
        Batch {
            network: self.network,
            arrived_ns: self.arrived_ns,
            bytes: self.bytes,
            items: vec![item],
            is_ask: true,
        }
    }
}

/// The way a call ended.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) procedure: Procedure,
    pub(crate) status: i8,
    pub(crate) text: Option<String>,
    /// Each with its length in front.
    pub(crate) tables: Vec<Vec<u8>>,
}

impl Reply {
    /// Success with these tables, unless they are too long for a message.
    pub(crate) fn tables(procedure: Procedure, tables: &[ResultTable]) -> Self {
        let mut written = Vec::with_capacity(tables.len());
        let mut bytes = 0;
        for table in tables {
            written.push(write_table(table));
            bytes += written.last().map_or(0, Vec::len);
            if bytes > (MESSAGE_BYTES_MAX - 1024) as usize {
                let text = "VOLTDB ERROR: SQL ERROR the results have more than 50 MiB together; ask for less with LIMIT";
                return Self::failed(procedure, Status::GRACEFUL_FAILURE, text);
            }
        }
        Self { procedure, status: Status::SUCCESS, text: None, tables: written }
    }

    pub(crate) fn failed(procedure: Procedure, status: i8, text: impl Into<String>) -> Self {
        Self { procedure, status, text: Some(text.into()), tables: Vec::new() }
    }
}

/// A table as it goes over the wire.
pub(crate) fn write_table(table: &ResultTable) -> Vec<u8> {
    let columns: Vec<(&str, Kind)> =
        table.columns.iter().map(|(name, kind)| (name.as_str(), wire_kind(*kind))).collect();
    let mut bytes = Vec::new();
    let mut writer = TableWriter::new(&mut bytes, &columns);
    let mut states = Vec::new();
    for row in &table.rows {
        // States are written out first, so that the values can borrow them.
        states.clear();
        states.extend(row.iter().map(|datum| match datum {
            Datum::State(state) => state.to_string(),
            _ => String::new(),
        }));
        let values: Vec<Value<'_>> =
            row.iter().zip(&states).map(|(datum, state)| wire_value(datum, state)).collect();
        writer.row(&values);
    }
    bytes
}

fn wire_value<'d>(datum: &'d Datum<'_>, state: &'d str) -> Value<'d> {
    match datum {
        Datum::Null => Value::Null,
        Datum::Int(number) => Value::BigInt(*number),
        Datum::Float(number) => Value::Float(*number),
        Datum::State(_) => Value::String(state),
        Datum::Text(text) => Value::String(text),
    }
}

/// The type of a column on the wire.
pub(crate) fn wire_kind(kind: Type) -> Kind {
    match kind {
        Type::SmallInt => Kind::SmallInt,
        Type::Integer => Kind::Integer,
        Type::BigInt | Type::Null => Kind::BigInt,
        Type::Float => Kind::Float,
        Type::Text => Kind::String,
    }
}

/// A message to a partition's thread.
#[derive(Debug)]
pub(crate) enum Letter {
    /// Calls.
    Batch(Batch),
    /// A transaction needs all partitions.
    Lend,
}

/// A message to the thread of transactions.
#[derive(Debug)]
pub(crate) enum Errand {
    Ask(Box<Ask>),
    /// The log is long: a snapshot must replace it.
    Snapshot,
}

//! The smaller benchmark: two rows, and selects that must bring the right one.

use super::desk::{Answer, Desk};
use super::shared::Voting;
use super::tally::VoterTally;
use super::{postgres, volt};
use plimsoll_core::outcome::Failure;
use plimsoll_core::recorder::Times;
use plimsoll_wire::postgres::{Postgres, Reply, RequestError, Statement, Transaction};
use plimsoll_wire::volt::{Response, Value, Volt};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// The rows: dialect, hello, world.
pub const GREETINGS: [(&str, &str, &str); 2] =
    [("English", "Hello", "World"), ("French", "Bonjour", "Monde")];

/// The calls of `Insert` that put the rows in, in their order. That one is there already is no trouble.
#[must_use]
pub fn hello_inserts() -> Vec<plimsoll_wire::volt::Request> {
    GREETINGS
        .iter()
        .map(|(dialect, hello, world)| {
            let mut request = plimsoll_wire::volt::Request::default();
            request.call("Insert", &[dialect, hello, world].map(|text| Value::String(text)));
            request
        })
        .collect()
}

/// The table and its rows in one request of PostgreSQL's simple protocol; changes nothing that is there.
#[must_use]
pub fn hello_table() -> String {
    let rows =
        GREETINGS.map(|(dialect, hello, world)| format!("('{hello}', '{world}', '{dialect}')"));
    format!(
        "{}\
         CREATE TABLE IF NOT EXISTS helloworld (\
         hello varchar(15), world varchar(15), dialect varchar(15) PRIMARY KEY);\n\
         INSERT INTO helloworld (hello, world, dialect) VALUES {} ON CONFLICT DO NOTHING",
        postgres::LOCK,
        rows.join(", ")
    )
}

/// Statements that connections to PostgreSQL prepare.
///
/// # Errors
/// None of these texts; the type says so because any text might.
pub fn hello_statements() -> Result<Vec<Statement>, RequestError> {
    Ok(vec![Statement::new("SELECT hello, world FROM helloworld WHERE dialect = $1")?])
}

/// Row that is asked for.
const fn greeting(item: u64) -> (&'static str, &'static str, &'static str) {
    GREETINGS[(item % GREETINGS.len() as u64) as usize]
}

/// The sessions of one shard over VoltDB's protocol: each client calls `Select`.
#[derive(Debug)]
pub struct VoltHello {
    desk: Desk,
    requests: Vec<plimsoll_wire::volt::Request>,
}

impl VoltHello {
    /// Those of shard `shard` of `shards`, which send their tally to `counted` at the end.
    #[must_use]
    pub fn new(voting: Arc<Voting>, shard: u32, shards: u32, counted: Sender<VoterTally>) -> Self {
        let select = |(dialect, _, _): &(&str, &str, &str)| {
            let mut request = plimsoll_wire::volt::Request::default();
            request.call("Select", &[Value::String(dialect)]);
            request
        };
        let requests = GREETINGS.iter().map(select).collect();
        Self { desk: Desk::new(voting, shard, shards, counted), requests }
    }
}

/// Returns true if a reply holds the row that was asked for, and no other.
fn is_right(item: u64, reply: &Response<'_>) -> bool {
    let (_, hello, world) = greeting(item);
    let Some(table) = reply.table(0).filter(|_| reply.is_success()) else { return false };
    let mut rows = table.rows();
    match (rows.next(), rows.next()) {
        (Some(Ok(row)), None) => row.text(0) == Some(hello) && row.text(1) == Some(world),
        _ => false,
    }
}

/// Error for a reply with another row.
const WRONG_ROW: &str = "not the requested row";

impl Sessions<Volt> for VoltHello {
    fn next(&mut self, _: u32, _: u32, request: &mut plimsoll_wire::volt::Request) -> Turn {
        let turn = self.desk.turn();
        if let Turn::Ask(what) = turn {
            request.copy_from(&self.requests[(what.item % GREETINGS.len() as u64) as usize]);
        }
        turn
    }

    fn judge(
        &mut self,
        _: u32,
        what: &Submission,
        reply: &Response<'_>,
        times: Times,
    ) -> Judgement {
        use plimsoll_core::outcome::Outcome;
        let outcome = if is_right(what.item, reply) {
            self.desk.answered(Answer::Accepted, Some(reply.round_trip_ms), times)
        } else if reply.is_success() {
            // Nothing was to be written, so that nothing is unknown.
            self.desk.refused(WRONG_ROW, times);
            Outcome::Failed(Failure::Check)
        } else {
            volt::failed(&mut self.desk, reply, times)
        };
        Judgement { outcome, status: 0, hits: None, body_bytes: reply.bytes as u64 }
    }

    fn lost(&mut self, _: u32, _: &Submission, failure: Failure, times: Times) {
        self.desk.lost(failure, false, times);
    }

    fn undone(&mut self, _: u32, _: &Submission, failure: Failure, times: Times) {
        self.desk.lost(failure, true, times);
    }

    fn finish(self: Box<Self>, _now_ns: u64) {
        self.desk.finish();
    }

    fn called(&mut self, _now_ns: u64) -> u32 {
        self.desk.called()
    }

    fn describe(&self, what: &Submission, _: &plimsoll_wire::volt::Request) -> String {
        format!("call {}: Select('{}')", what.item, greeting(what.item).0)
    }

    fn explain(&self, what: &Submission, reply: &Response<'_>) -> (String, String) {
        let wrong = reply.is_success() && !is_right(what.item, reply);
        let reason = if wrong { WRONG_ROW.to_owned() } else { volt::said(reply) };
        (reason, volt::told(reply))
    }
}

/// The sessions of one shard over PostgreSQL's protocol: each client selects. Connections must have the statements of
/// [`hello_statements`].
#[derive(Debug)]
pub struct PostgresHello {
    desk: Desk,
}

impl PostgresHello {
    /// Those of shard `shard` of `shards`, which send their tally to `counted` at the end.
    #[must_use]
    pub fn new(voting: Arc<Voting>, shard: u32, shards: u32, counted: Sender<VoterTally>) -> Self {
        Self { desk: Desk::new(voting, shard, shards, counted) }
    }
}

fn is_good(reply: &Reply<'_>) -> bool {
    reply.error.is_none() && reply.transaction == Transaction::None
}

fn is_right_row(item: u64, reply: &Reply<'_>) -> bool {
    let (_, hello, world) = greeting(item);
    let texts = (reply.value(0), reply.value(1));
    reply.rows == 1 && texts == (Some(hello.as_bytes()), Some(world.as_bytes()))
}

impl Sessions<Postgres> for PostgresHello {
    fn next(&mut self, _: u32, _: u32, request: &mut plimsoll_wire::postgres::Request) -> Turn {
        let turn = self.desk.turn();
        if let Turn::Ask(what) = turn {
            request.execute(0, &[Some(greeting(what.item).0.as_bytes())]);
        }
        turn
    }

    fn judge(&mut self, _: u32, what: &Submission, reply: &Reply<'_>, times: Times) -> Judgement {
        use plimsoll_core::outcome::Outcome;
        let outcome = if !is_good(reply) {
            postgres::failed(&mut self.desk, reply, times)
        } else if is_right_row(what.item, reply) {
            self.desk.answered(Answer::Accepted, None, times)
        } else {
            self.desk.refused(WRONG_ROW, times);
            Outcome::Failed(Failure::Check)
        };
        Judgement { outcome, status: 0, hits: None, body_bytes: reply.bytes }
    }

    fn lost(&mut self, _: u32, _: &Submission, failure: Failure, times: Times) {
        self.desk.lost(failure, false, times);
    }

    fn undone(&mut self, _: u32, _: &Submission, failure: Failure, times: Times) {
        self.desk.lost(failure, true, times);
    }

    fn finish(self: Box<Self>, _now_ns: u64) {
        self.desk.finish();
    }

    fn called(&mut self, _now_ns: u64) -> u32 {
        self.desk.called()
    }

    fn describe(&self, what: &Submission, _: &plimsoll_wire::postgres::Request) -> String {
        format!("call {}: SELECT ... WHERE dialect = '{}'", what.item, greeting(what.item).0)
    }

    fn explain(&self, what: &Submission, reply: &Reply<'_>) -> (String, String) {
        let (reason, text) = postgres::told(reply);
        let wrong = is_good(reply) && !is_right_row(what.item, reply);
        (if wrong { WRONG_ROW.to_owned() } else { reason }, text)
    }
}

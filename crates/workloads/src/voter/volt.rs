//! Votes over VoltDB's protocol.

use super::desk::{Answer, Desk};
use super::shared::Voting;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::voter::ContestantVotes;
use plimsoll_wire::volt::{Request, Response, Status, Value, Volt};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use std::sync::Arc;

/// The sessions of one shard: each client calls `Vote`.
#[derive(Debug)]
pub struct VoltVotes {
    desk: Desk,
}

impl VoltVotes {
    /// Those of shard `shard` of `shards`.
    #[must_use]
    pub fn new(voting: Arc<Voting>, shard: u32, shards: u32) -> Self {
        Self { desk: Desk::new(voting, shard, shards) }
    }
}

impl Sessions<Volt> for VoltVotes {
    fn next(&mut self, _client: u32, _target: u32, request: &mut Request) -> Turn {
        let turn = self.desk.turn();
        if let Turn::Ask(what) = turn {
            let ballot = self.desk.ballot(what.item);
            let contestant = Value::Integer(ballot.contestant);
            let most = Value::BigInt(self.desk.max_votes());
            request.call("Vote", &[Value::BigInt(ballot.phone), contestant, most]);
            request.partition(ballot.phone);
        }
        turn
    }

    fn judge(
        &mut self,
        _client: u32,
        _what: &Submission,
        reply: &Response<'_>,
        times: Times,
    ) -> Judgement {
        let outcome = match reply.long().and_then(Answer::of_code) {
            Some(answer) if reply.is_success() => {
                self.desk.answered(answer, Some(reply.round_trip_ms), times)
            }
            _ => failed(&mut self.desk, reply, times),
        };
        Judgement { outcome, status: 0, hits: None, body_bytes: reply.bytes as u64 }
    }

    fn lost(&mut self, _client: u32, _what: &Submission, failure: Failure, times: Times) {
        self.desk.lost(failure, false, times);
    }

    fn undone(&mut self, _client: u32, _what: &Submission, failure: Failure, times: Times) {
        self.desk.lost(failure, true, times);
    }

    fn called(&mut self, _now_ns: u64) -> u32 {
        self.desk.called()
    }

    fn describe(&self, what: &Submission, _request: &Request) -> String {
        let ballot = self.desk.ballot(what.item);
        format!(
            "vote {}: Vote({}, {}, {})",
            what.item,
            ballot.phone,
            ballot.contestant,
            self.desk.max_votes()
        )
    }

    fn explain(&self, _what: &Submission, reply: &Response<'_>) -> (String, String) {
        (said(reply), told(reply))
    }
}

/// Counts a reply that is no answer.
#[cold]
pub(super) fn failed(desk: &mut Desk, reply: &Response<'_>, times: Times) -> Outcome {
    if reply.is_success() {
        // The transaction is committed, whatever it has done.
        desk.unknown(times);
        Outcome::Failed(Failure::Check)
    } else if Status::is_unknown_outcome(reply.status) {
        desk.unknown(times)
    } else {
        desk.refused(&said(reply), times)
    }
}

/// Why a reply is no answer, in the server's own words.
pub(super) fn said(reply: &Response<'_>) -> String {
    if reply.is_success() {
        return "success with another result than was asked for".to_owned();
    }
    let name = Status::name(reply.status);
    match reply.status_text.map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => format!("{name}: {text}"),
        None => name.to_owned(),
    }
}

/// How a reply looked.
pub(super) fn told(reply: &Response<'_>) -> String {
    let (status, tables) = (reply.status, reply.tables.len());
    format!("status {status}, {tables} tables, {} bytes, {} ms", reply.bytes, reply.round_trip_ms)
}

/// The contestants and their votes, from the answer of the procedure `Results`; `None` when it is not in that form.
#[must_use]
pub fn results_of(reply: &Response<'_>) -> Option<Vec<ContestantVotes>> {
    let table = reply.table(0).filter(|_| reply.is_success())?;
    let [name, number, votes] =
        ["CONTESTANT_NAME", "CONTESTANT_NUMBER", "TOTAL_VOTES"].map(|column| table.column(column));
    let (name, number, votes) = (name?, number?, votes?);
    let mut all = Vec::new();
    for row in table.rows() {
        let row = row.ok()?;
        all.push(ContestantVotes {
            name: row.text(name)?.to_owned(),
            number: u32::try_from(row.long(number)?).ok()?,
            votes: u64::try_from(row.long(votes)?).ok()?,
        });
    }
    Some(all)
}

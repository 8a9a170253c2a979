//! Votes over VoltDB's protocol.

use super::ballots::Ballot;
use super::desk::{Answer, Desk};
use super::routes::{Dealer, Routes};
use super::shared::Voting;
use super::tally::VoterTally;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_record::voter::ContestantVotes;
use plimsoll_wire::volt::{ParamPlace, Request, Response, Status, Value, Volt};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
pub(crate) use plimsoll_workloads::volt_calls::{said, told};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// The sessions of one shard: each client calls `Vote`.
#[derive(Debug)]
pub struct VoltVotes {
    desk: Desk,
    form: Form,
    /// Deals votes out to the hosts that own them, where there are several.
    dealer: Option<Dealer>,
}

impl VoltVotes {
    /// Those of shard `shard` of `shards`, which send their tally to `counted` at the end.
    #[must_use]
    pub fn new(voting: Arc<Voting>, shard: u32, shards: u32, counted: Sender<VoterTally>) -> Self {
        let desk = Desk::new(voting, shard, shards, counted);
        Self { form: Form::new(desk.max_votes()), desk, dealer: None }
    }

    /// The same, with each vote sent to the host that owns it. Which votes are made then depends on which host has room.
    #[must_use]
    pub fn routed(mut self, routes: Arc<Routes>) -> Self {
        self.dealer = Some(Dealer::new(routes, self.desk.slice()));
        self
    }
}

/// A call of `Vote`, rendered except for the telephone and the contestant.
#[derive(Debug)]
struct Form {
    blank: Request,
    phone: ParamPlace,
    contestant: ParamPlace,
}

impl Form {
    fn new(max_votes: i64) -> Self {
        let mut blank = Request::default();
        blank.call("Vote", &[]);
        let phone = blank.next_place();
        blank.param(&Value::BigInt(0));
        let contestant = blank.next_place();
        blank.param(&Value::Integer(0)).param(&Value::BigInt(max_votes));
        Self { blank, phone, contestant }
    }

    #[inline]
    fn fill_in(&self, ballot: Ballot, request: &mut Request) {
        request.copy_from(&self.blank);
        request.replace(self.phone, &Value::BigInt(ballot.phone));
        request.replace(self.contestant, &Value::Integer(ballot.contestant));
        request.partition(ballot.phone);
    }
}

impl Sessions<Volt> for VoltVotes {
    fn next(&mut self, _client: u32, target: u32, request: &mut Request) -> Turn {
        let mut turn = self.desk.turn();
        if let Turn::Ask(what) = &mut turn {
            if let Some(dealer) = &mut self.dealer {
                let desk = &self.desk;
                what.item = dealer.deal(target, |item| desk.ballot(item));
            }
            self.form.fill_in(self.desk.ballot(what.item), request);
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

    fn finish(self: Box<Self>, _now_ns: u64) {
        self.desk.finish();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UNKNOWN_CONTESTANT;
    use plimsoll_wire::volt::{Kind, ResponseWriter};

    fn told(columns: &[(&str, Kind)], rows: &[[Value<'_>; 3]]) -> Option<Vec<ContestantVotes>> {
        let mut out = Vec::new();
        let mut response = ResponseWriter::success(&mut out, 7, 1);
        let mut table = response.table(columns);
        for row in rows {
            table.row(row);
        }
        results_of(&Response::read(&out[4..]).unwrap())
    }

    #[test]
    fn a_form_that_is_filled_in_is_the_call_written_out() {
        let form = Form::new(2);
        let (mut filled, mut written) = (Request::default(), Request::default());
        for (phone, contestant) in [(2_125_550_001, 6), (9_075_551_234, UNKNOWN_CONTESTANT)] {
            form.fill_in(Ballot { phone, contestant }, &mut filled);
            let params = [Value::BigInt(phone), Value::Integer(contestant), Value::BigInt(2)];
            written.call("Vote", &params);
            written.partition(phone);
            assert_eq!(filled.bytes(), written.bytes());
            assert_eq!(filled, written);
        }
    }

    #[test]
    fn results_are_read_by_the_names_of_their_columns() {
        let columns = [
            ("CONTESTANT_NAME", Kind::String),
            ("CONTESTANT_NUMBER", Kind::Integer),
            ("TOTAL_VOTES", Kind::BigInt),
        ];
        let row = |name, number, votes| {
            [Value::String(name), Value::Integer(number), Value::BigInt(votes)]
        };
        let all = told(&columns, &[row("B", 2, 9), row("A", 1, 3)]).unwrap();
        let read: Vec<_> = all.iter().map(|c| (c.name.as_str(), c.number, c.votes)).collect();
        assert_eq!(read, [("B", 2, 9), ("A", 1, 3)]);
        assert_eq!(told(&columns, &[]), Some(Vec::new()), "no votes yet");
        assert_eq!(told(&columns, &[row("A", 1, -3)]), None);
        let other = [("NAME", Kind::String), columns[1], columns[2]];
        assert_eq!(told(&other, &[row("A", 1, 3)]), None);
        let mut out = Vec::new();
        ResponseWriter::failure(&mut out, 7, Status::UNEXPECTED_FAILURE, "no such procedure", 0);
        assert_eq!(results_of(&Response::read(&out[4..]).unwrap()), None);
    }
}

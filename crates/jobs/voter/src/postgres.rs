//! Votes as SQL transactions over PostgreSQL's protocol.

use super::desk::{Answer, Desk};
use super::shared::Voting;
use super::tally::VoterTally;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::voter::areas::REGIONS;
use plimsoll_wire::postgres::{
    Postgres, Reply, Request, RequestError, ServerError, Statement, Transaction,
};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use plimsoll_workloads::sql::explained;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use thiserror::Error;

/// Number of times that a vote is repeated by default that PostgreSQL rolled back for others' sake.
pub const RETRIES_MAX: u8 = 10;
/// Digits of the longest number, with its sign.
const DIGITS_MAX: usize = 20;

/// The way a vote is one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SqlWay {
    /// By one call of the function `vote`.
    #[default]
    Function,
    /// By three selects and an insert, sent together: the insert looks at the rules itself, since no one waits for the
    /// selects.
    Statements,
}

/// Isolation level of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// PostgreSQL's own default.
    #[default]
    ReadCommitted,
    /// Each from one moment.
    RepeatableRead,
    /// As if one after the other.
    Serializable,
}

/// A word that is none of those there are.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{text}' is not one of {words}")]
pub struct WordError {
    text: String,
    words: &'static str,
}

impl FromStr for SqlWay {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match text {
            "function" => Ok(SqlWay::Function),
            "statements" => Ok(SqlWay::Statements),
            _ => Err(WordError { text: text.to_owned(), words: "function, statements" }),
        }
    }
}

impl FromStr for Isolation {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        let words = "read-committed, repeatable-read, serializable";
        match text {
            "read-committed" => Ok(Isolation::ReadCommitted),
            "repeatable-read" => Ok(Isolation::RepeatableRead),
            "serializable" => Ok(Isolation::Serializable),
            _ => Err(WordError { text: text.to_owned(), words }),
        }
    }
}

impl Isolation {
    /// The setting of each connection, for [`Login::new`](plimsoll_wire::postgres::Login::new).
    #[must_use]
    pub const fn setting(self) -> (&'static str, &'static str) {
        let level = match self {
            Isolation::ReadCommitted => "read committed",
            Isolation::RepeatableRead => "repeatable read",
            Isolation::Serializable => "serializable",
        };
        ("default_transaction_isolation", level)
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.setting().1)
    }
}

/// Tables, views, the function, and the area codes, in one request of the simple protocol: one transaction, which waits
/// for others that do the same, and changes nothing that is there.
#[must_use]
pub fn postgres_schema() -> String {
    let mut sql = format!("{LOCK}{SCHEMA}");
    sql.push_str("INSERT INTO area_code_state (area_code, state) VALUES ");
    let codes =
        REGIONS.iter().flat_map(|(region, codes)| codes.iter().map(move |code| (code, region)));
    let rows: Vec<String> = codes.map(|(code, region)| format!("({code}, '{region}')")).collect();
    sql.push_str(&rows.join(", "));
    sql.push_str(" ON CONFLICT DO NOTHING;\n");
    sql
}

/// Statement that does the work of `Initialize` in one request of the simple protocol: puts these contestants in
/// where there are none, and says in its only row how many there are.
#[must_use]
pub fn contestants_sql(names: &[String]) -> String {
    // As a text with escapes, which means the same whatever `standard_conforming_strings` says.
    let quoted = |name: &String| name.replace('\\', r"\\").replace('\'', "''");
    let rows: Vec<String> =
        (1..).zip(names).map(|(number, name)| format!("({number}, E'{}')", quoted(name))).collect();
    format!(
        "{LOCK}INSERT INTO contestants (contestant_number, contestant_name) \
         SELECT number, name FROM (VALUES {}) AS new (number, name) \
         WHERE NOT EXISTS (SELECT 1 FROM contestants);\n\
         SELECT count(*) FROM contestants",
        rows.join(", ")
    )
}

/// All contestants with their votes, most first, as a JSON text in the only cell of the only row: objects with `name`,
/// `number` and `votes`.
#[must_use]
pub const fn results_sql() -> &'static str {
    "SELECT coalesce(json_agg(r)::text, '[]') FROM (\
     SELECT c.contestant_name AS name, c.contestant_number AS number, count(*) AS votes \
     FROM votes v JOIN contestants c USING (contestant_number) GROUP BY 1, 2 ORDER BY 3 DESC, 2) r"
}

/// Statements that connections prepare for votes of this kind, in the order in which [`PostgresVotes`] names them.
///
/// # Errors
/// None of these texts; the type says so because any text might.
pub fn vote_statements(way: SqlWay) -> Result<Vec<Statement>, RequestError> {
    let texts: &[&str] = match way {
        SqlWay::Function => &["SELECT vote($1, $2, $3)"],
        SqlWay::Statements => &STATEMENTS,
    };
    texts.iter().map(|text| Statement::new(*text)).collect()
}

/// Keeps two clients from making the same tables at the same time; it has no row, so that the first row is what was asked
/// for.
pub(super) const LOCK: &str = "DO $$ BEGIN PERFORM pg_advisory_xact_lock(7023486553); END $$;\n";

const SCHEMA: &str = "\
CREATE TABLE IF NOT EXISTS contestants (
  contestant_number integer PRIMARY KEY, contestant_name varchar(50) NOT NULL);
CREATE TABLE IF NOT EXISTS area_code_state (
  area_code smallint PRIMARY KEY, state varchar(2) NOT NULL);
CREATE TABLE IF NOT EXISTS votes (
  phone_number bigint NOT NULL, state varchar(2) NOT NULL, contestant_number integer NOT NULL);
CREATE INDEX IF NOT EXISTS votes_by_phone_number ON votes (phone_number);
CREATE OR REPLACE VIEW v_votes_by_phone_number AS
  SELECT phone_number, count(*) AS num_votes FROM votes GROUP BY phone_number;
CREATE OR REPLACE VIEW v_votes_by_contestant_number_state AS
  SELECT contestant_number, state, count(*) AS num_votes FROM votes GROUP BY contestant_number, state;
CREATE OR REPLACE FUNCTION vote(phone bigint, contestant integer, max_votes bigint)
RETURNS integer LANGUAGE plpgsql AS $vote$
DECLARE
  had bigint;
  own_state varchar(2);
BEGIN
  PERFORM 1 FROM contestants c WHERE c.contestant_number = contestant;
  IF NOT FOUND THEN RETURN 1; END IF;
  SELECT count(*) INTO had FROM votes v WHERE v.phone_number = phone;
  IF had > 0 AND had >= max_votes THEN RETURN 2; END IF;
  SELECT a.state INTO own_state FROM area_code_state a WHERE a.area_code = phone / 10000000;
  INSERT INTO votes (phone_number, state, contestant_number)
    VALUES (phone, coalesce(own_state, 'XX'), contestant);
  RETURN 0;
END
$vote$;
";

/// The first always has a row, whose number says whether the contestant is known; the last says whether it was let in.
const STATEMENTS: [&str; 4] = [
    "SELECT count(*) FROM contestants WHERE contestant_number = $1::integer",
    "SELECT count(*) FROM votes WHERE phone_number = $1::bigint",
    "SELECT state FROM area_code_state WHERE area_code = $1::bigint / 10000000",
    "INSERT INTO votes (phone_number, state, contestant_number) \
     SELECT $1::bigint, coalesce((SELECT state FROM area_code_state WHERE area_code = $1::bigint / 10000000), 'XX'), \
     $2::integer WHERE EXISTS (SELECT 1 FROM contestants WHERE contestant_number = $2::integer) \
     AND (SELECT count(*) FROM votes WHERE phone_number = $1::bigint) < greatest($3::bigint, 1)",
];

/// The sessions of one shard: each client votes in one transaction after the other.
#[derive(Debug)]
pub struct PostgresVotes {
    desk: Desk,
    way: SqlWay,
}

impl PostgresVotes {
    /// Those of shard `shard` of `shards`, which send their tally to `counted` at the end. Connections must have the
    /// statements of [`vote_statements`].
    #[must_use]
    pub fn new(
        voting: Arc<Voting>,
        way: SqlWay,
        shard: u32,
        shards: u32,
        counted: Sender<VoterTally>,
    ) -> Self {
        Self { desk: Desk::new(voting, shard, shards, counted), way }
    }

    /// Answer of the database to a vote; `None` if it is unknown.
    fn answer(&self, reply: &Reply<'_>) -> Option<Answer> {
        if reply.error.is_some() || reply.transaction != Transaction::None {
            return None;
        }
        match (self.way, reply.value(0)?) {
            (SqlWay::Function, [code @ b'0'..=b'2']) => Answer::of_code(i64::from(code - b'0')),
            (SqlWay::Statements, b"0") => Some(Answer::Contestant),
            (SqlWay::Statements, b"1") => match reply.affected()? {
                0 => Some(Answer::Limit),
                1 => Some(Answer::Accepted),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Sessions<Postgres> for PostgresVotes {
    fn next(&mut self, _client: u32, _target: u32, request: &mut Request) -> Turn {
        let turn = self.desk.turn();
        if let Turn::Ask(what) = turn {
            let ballot = self.desk.ballot(what.item);
            let (phone, contestant) =
                (Digits::of(ballot.phone), Digits::of(ballot.contestant.into()));
            let most = Digits::of(self.desk.max_votes());
            let all = [Some(phone.text()), Some(contestant.text()), Some(most.text())];
            match self.way {
                SqlWay::Function => request.execute(0, &all),
                SqlWay::Statements => {
                    request.clear();
                    request.push_execute(0, &all[1..2]);
                    request.push_execute(1, &all[..1]);
                    request.push_execute(2, &all[..1]);
                    request.push_execute(3, &all);
                    request.sync();
                }
            }
        }
        turn
    }

    fn again(&mut self, _client: u32, _what: &Submission, reply: &Reply<'_>, tries: u8) -> bool {
        let others_sake = |error: ServerError<'_>| matches!(error.code(), b"40001" | b"40P01");
        reply.error.is_some_and(others_sake) && self.desk.again(tries)
    }

    fn judge(
        &mut self,
        _client: u32,
        _what: &Submission,
        reply: &Reply<'_>,
        times: Times,
    ) -> Judgement {
        let outcome = match self.answer(reply) {
            Some(answer) => self.desk.answered(answer, None, times),
            None => failed(&mut self.desk, reply, times),
        };
        Judgement { outcome, status: 0, hits: None, body_bytes: reply.bytes }
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
        let most = self.desk.max_votes();
        format!("vote {}: vote({}, {}, {most})", what.item, ballot.phone, ballot.contestant)
    }

    fn explain(&self, _what: &Submission, reply: &Reply<'_>) -> (String, String) {
        told(reply)
    }
}

/// Counts a reply that is no answer.
#[cold]
pub(super) fn failed(desk: &mut Desk, reply: &Reply<'_>, times: Times) -> Outcome {
    match reply.error {
        // Turned away before anything could be asked.
        Some(error) if !error.is_fatal() || is_turned_away(error.code()) => {
            desk.refused(&told(reply).0, times)
        }
        // A server that ends a connection may have committed before.
        Some(_) => desk.unknown(times),
        None => {
            desk.unknown(times);
            Outcome::Failed(Failure::Check)
        }
    }
}

fn is_turned_away(code: &[u8]) -> bool {
    code.starts_with(b"28") || matches!(code, b"3D000" | b"53300" | b"57P03")
}

/// Reason why a reply is no answer, and how it looked.
pub(super) fn told(reply: &Reply<'_>) -> (String, String) {
    let (reason, text) = explained(reply);
    let good = reply.error.is_none() && reply.transaction == Transaction::None;
    if good { ("success, but with an unexpected result".to_owned(), text) } else { (reason, text) }
}

/// A number in decimal digits, without asking the allocator.
struct Digits {
    bytes: [u8; DIGITS_MAX],
    from: usize,
}

impl Digits {
    fn of(number: i64) -> Self {
        let mut digits = Self { bytes: [0; DIGITS_MAX], from: DIGITS_MAX };
        let mut left = number.unsigned_abs();
        loop {
            digits.push(b'0' + (left % 10) as u8);
            left /= 10;
            if left == 0 {
                break;
            }
        }
        if number < 0 {
            digits.push(b'-');
        }
        digits
    }

    fn push(&mut self, byte: u8) {
        self.from -= 1;
        self.bytes[self.from] = byte;
    }

    fn text(&self) -> &[u8] {
        &self.bytes[self.from..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_everywhere() {
        for number in [0, 7, 10, -1, 2_125_550_001, i64::MAX, i64::MIN] {
            assert_eq!(Digits::of(number).text(), number.to_string().as_bytes());
        }
    }

    #[test]
    fn words_are_read_and_others_told() {
        assert_eq!("statements".parse(), Ok(SqlWay::Statements));
        assert_eq!("serializable".parse(), Ok(Isolation::Serializable));
        let told = "snapshot".parse::<Isolation>().unwrap_err().to_string();
        assert_eq!(told, "'snapshot' is not one of read-committed, repeatable-read, serializable");
        assert!("both".parse::<SqlWay>().is_err());
    }

    #[test]
    fn the_schema_has_all_area_codes_and_names() {
        let schema = postgres_schema();
        let codes: usize =
            REGIONS.iter().map(|(region, _)| schema.matches(&format!("'{region}')")).count()).sum();
        assert_eq!(codes, 305);
        assert!(schema.contains("(907, 'AK')") && schema.ends_with("ON CONFLICT DO NOTHING;\n"));
        let sql = contestants_sql(&["Mary O'Hara".to_owned(), r"\'); DROP".to_owned()]);
        assert!(sql.contains(r"(1, E'Mary O''Hara'), (2, E'\\''); DROP')) AS new"), "{sql}");
        assert_eq!(vote_statements(SqlWay::Function).unwrap().len(), 1);
        assert_eq!(vote_statements(SqlWay::Statements).unwrap().len(), 4);
        assert!(schema.starts_with(LOCK) && sql.starts_with(LOCK));
    }
}

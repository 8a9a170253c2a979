//! The users of a cell over PostgreSQL's protocol.

use super::{CellPlan, Outbox, Users};
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::UserTurn;
use plimsoll_wire::postgres::{Postgres, Reply, Request, RequestError};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use plimsoll_workloads::checks::{Checks, Seen};
use plimsoll_workloads::rows::RowFeed;
use plimsoll_workloads::sql::{explained, judged};
use std::sync::Arc;
use thiserror::Error;

/// The status that checks are shown for a reply without an error: PostgreSQL has none.
const FINE: u16 = 200;

/// Most bytes of all statements of a cell, which are held in memory: 256 MiB.
pub const SQL_BYTES_MAX: usize = 256 << 20;

/// Requests to PostgreSQL: statements that were written before the load, one for each row where rows fill them.
#[derive(Clone)]
pub struct SqlAsking {
    queries: Arc<Vec<SqlQuery>>,
    statements: Arc<Statements>,
    checks: Checks,
    feed: Option<RowFeed>,
}

/// A query on its way into the list.
#[derive(Clone, Copy, Debug)]
pub struct SqlQuery {
    /// Its index in the list.
    pub class: u16,
    /// True if the first column is the number of documents that match.
    pub tells_hits: bool,
    /// Its first statement.
    first: usize,
    /// True if it has a statement for each row.
    filled: bool,
}

/// Statements in one piece of memory.
#[derive(Clone, Debug, Default)]
pub struct Statements {
    text: String,
    ends: Vec<usize>,
    queries: Vec<SqlQuery>,
}

/// Reason why statements cannot be asked.
#[derive(Debug, Error)]
pub enum SqlError {
    /// They take more room than there is.
    #[error(
        "the SQL of all queries with all rows takes more than {} MiB; use fewer rows, or fewer queries that name a column",
        SQL_BYTES_MAX >> 20
    )]
    TooMany,
    /// One of them cannot be sent.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl Statements {
    /// Adds a query: one statement, or one for each row.
    ///
    /// # Errors
    /// A statement that cannot be sent, or too many of them.
    pub fn push(
        &mut self,
        class: u16,
        tells_hits: bool,
        texts: impl IntoIterator<Item = String>,
    ) -> Result<(), SqlError> {
        let first = self.ends.len();
        for text in texts {
            if self.text.len() + text.len() > SQL_BYTES_MAX {
                return Err(SqlError::TooMany);
            }
            Request::default().query(&text)?;
            self.text.push_str(&text);
            self.ends.push(self.text.len());
        }
        let filled = self.ends.len() > first + 1;
        self.queries.push(SqlQuery { class, tells_hits, first, filled });
        Ok(())
    }

    fn get(&self, index: usize) -> Option<&str> {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(start..*self.ends.get(index)?)
    }
}

impl SqlAsking {
    /// These statements, in this order.
    #[must_use]
    pub fn new(statements: Statements, checks: Checks, feed: Option<RowFeed>) -> Self {
        let queries = Arc::new(statements.queries.clone());
        Self { queries, statements: Arc::new(statements), checks, feed }
    }

    /// The statement that was asked.
    fn text(&self, what: &Submission) -> &str {
        self.statements.get((what.item >> QUERY_BITS) as usize).unwrap_or_default()
    }

    fn query(&self, what: &Submission) -> Option<&SqlQuery> {
        self.queries.get((what.item & ((1 << QUERY_BITS) - 1)) as usize)
    }
}

/// Bits of a request's number that say which query it is; the others say which statement.
const QUERY_BITS: u32 = 16;

/// The users of a cell, each with a connection to PostgreSQL.
pub struct SqlCellSessions {
    users: Users,
    asking: SqlAsking,
}

impl SqlCellSessions {
    /// The users of a cell. Their counts go to the outbox at the end.
    #[must_use]
    pub fn new(plan: CellPlan, asking: SqlAsking, outbox: Outbox) -> Self {
        Self { users: Users::new(plan, outbox), asking }
    }

    fn hits(&self, what: &Submission, reply: &Reply<'_>) -> u64 {
        let told = self.asking.query(what).filter(|own| own.tells_hits);
        let first = told.and_then(|_| reply.value(0));
        first.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()).unwrap_or(reply.rows)
    }
}

impl Sessions<Postgres> for SqlCellSessions {
    fn user(&mut self, _client: u32, turn: UserTurn) {
        self.users.turn = turn;
    }

    fn next(&mut self, client: u32, _target: u32, request: &mut Request) -> Turn {
        let Some(index) = self.users.next(client) else { return Turn::Exhausted };
        let row = match &mut self.asking.feed {
            None => 0,
            Some(feed) => match feed.next_row(self.users.turn) {
                Some(row) => row,
                None => {
                    self.users.tally.rows_used_up = true;
                    return Turn::Exhausted;
                }
            },
        };
        let own = self.asking.queries[index];
        let at = own.first + if own.filled { row } else { 0 };
        let text = self.asking.statements.get(at).unwrap_or_default();
        // It was asked for the same way when it was added, and can be sent.
        if request.query(text).is_err() {
            return Turn::Exhausted;
        }
        let item = (at as u64) << QUERY_BITS | index as u64;
        // What a user wrote may be anything; it is not asked a second time.
        Turn::Ask(Submission { class: own.class, item, idempotent: own.tells_hits })
    }

    fn judge(
        &mut self,
        client: u32,
        what: &Submission,
        reply: &Reply<'_>,
        times: Times,
    ) -> Judgement {
        let mut judgement = judged(reply);
        let mut hits = None;
        if judgement.outcome == Outcome::Ok {
            hits = Some(self.hits(what, reply));
            let service_ns = times.done_ns.saturating_sub(times.sent_ns);
            let seen = Seen { status: FINE, hits, service_ns, ..Seen::default() };
            if self.asking.checks.judge(&seen).is_err() {
                judgement.outcome = Outcome::Failed(Failure::Check);
                hits = None;
            }
        }
        judgement.hits = hits;
        self.users.answered(client, what.class, judgement.outcome == Outcome::Ok, hits, times);
        judgement
    }

    fn lost(&mut self, client: u32, what: &Submission, failure: Failure, times: Times) {
        self.users.lost(client, what.class, failure, times);
    }

    fn finish(self: Box<Self>, _now_ns: u64) {
        self.users.finish();
    }

    fn describe(&self, what: &Submission, _request: &Request) -> String {
        let text = self.asking.text(what);
        text.chars().take(400).map(|c| if c.is_control() { ' ' } else { c }).collect()
    }

    fn explain(&self, what: &Submission, reply: &Reply<'_>) -> (String, String) {
        if reply.error.is_some() {
            return explained(reply);
        }
        let (_, looked) = explained(reply);
        let hits = Some(self.hits(what, reply));
        let seen = Seen { status: FINE, hits, ..Seen::default() };
        match self.asking.checks.judge(&seen) {
            Err(failure) => (failure.to_string(), looked),
            Ok(()) => ("it took longer than a check allows".to_owned(), looked),
        }
    }
}

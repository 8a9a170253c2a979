//! The users of a cell over PostgreSQL's protocol.

use super::{CellPlan, Outbox, Users};
use crate::checks::{Checks, Seen};
use crate::sql::{explained, judged};
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::UserTurn;
use plimsoll_wire::postgres::{Postgres, Reply, Request, RequestError};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use std::sync::Arc;

/// The status that checks are shown for a reply without an error: PostgreSQL has none.
const FINE: u16 = 200;

/// What is asked of PostgreSQL.
#[derive(Clone)]
pub struct SqlAsking {
    requests: Arc<Vec<SqlRequest>>,
    checks: Checks,
}

struct SqlRequest {
    request: Request,
    text: String,
    class: u16,
    /// Whether its first column is the number of documents that match.
    tells_hits: bool,
}

/// A statement on its way into the list.
pub struct SqlQuery {
    /// Its text.
    pub text: String,
    /// Its query's index in the list.
    pub class: u16,
    /// Whether its first column is the number of documents that match.
    pub tells_hits: bool,
}

impl SqlAsking {
    /// These statements, in this order.
    ///
    /// # Errors
    /// A statement that cannot be sent.
    pub fn new(queries: Vec<SqlQuery>, checks: Checks) -> Result<Self, RequestError> {
        let mut requests = Vec::with_capacity(queries.len());
        for SqlQuery { text, class, tells_hits } in queries {
            let mut request = Request::default();
            request.query(&text)?;
            requests.push(SqlRequest { request, text, class, tells_hits });
        }
        Ok(Self { requests: Arc::new(requests), checks })
    }

    /// Whether there is nothing to ask.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}

/// The users of a cell, each with a connection to PostgreSQL.
pub struct SqlCellSessions {
    users: Users,
    asking: SqlAsking,
}

impl SqlCellSessions {
    /// The users of a cell. What they counted is in the outbox once they are dropped.
    #[must_use]
    pub fn new(plan: CellPlan, asking: SqlAsking, outbox: Outbox) -> Self {
        Self { users: Users::new(plan, outbox), asking }
    }

    fn hits(&self, what: &Submission, reply: &Reply<'_>) -> u64 {
        let told = self.asking.requests.get(what.item as usize).filter(|own| own.tells_hits);
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
        let own = &self.asking.requests[index];
        request.copy_from(&own.request);
        // What a user wrote may be anything; it is not asked a second time.
        Turn::Ask(Submission { class: own.class, item: index as u64, idempotent: own.tells_hits })
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
            let seen = Seen { status: FINE, body: b"", hits, service_ns };
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

    fn describe(&self, what: &Submission, _request: &Request) -> String {
        let text = self.asking.requests.get(what.item as usize).map_or("", |own| &own.text);
        text.chars().take(400).map(|c| if c.is_control() { ' ' } else { c }).collect()
    }

    fn explain(&self, what: &Submission, reply: &Reply<'_>) -> (String, String) {
        if reply.error.is_some() {
            return explained(reply);
        }
        let (_, looked) = explained(reply);
        let seen =
            Seen { status: FINE, body: b"", hits: Some(self.hits(what, reply)), service_ns: 0 };
        match self.asking.checks.judge(&seen) {
            Err(failure) => (failure.to_string(), looked),
            Ok(()) => ("it took longer than a check allows".to_owned(), looked),
        }
    }
}

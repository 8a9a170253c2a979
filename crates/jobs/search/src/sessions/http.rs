//! The users of a cell over HTTP.

use super::super::dialect::Dialect;
use super::{CellPlan, Outbox, Users};
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::UserTurn;
use plimsoll_wire::http::Http;
use plimsoll_wire::http1::{Keep, Reply, Request};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use plimsoll_workloads::checks::{
    CheckError, Checks, Failure as CheckFailure, HitCounter, Seen, Shown,
};
use plimsoll_workloads::http::plain_body;
use plimsoll_workloads::render::RenderedSet;
use plimsoll_workloads::rows::{RowFeed, TemplateSet};
use std::sync::Arc;

/// Rows, and the requests cut for them.
#[derive(Clone)]
pub struct Filling {
    /// The requests, cut.
    pub templates: Arc<TemplateSet>,
    /// Row that comes next.
    pub feed: RowFeed,
}

/// Requests over HTTP, and the check of answers.
#[derive(Clone)]
pub struct HttpAsking {
    /// The requests, rendered; the class of each is its query's index in the list.
    pub requests: Arc<RenderedSet>,
    /// Dialect whose replies are judged.
    pub dialect: Dialect,
    /// Checks of replies besides those of the dialect.
    pub checks: Checks,
    /// Rows that fill requests.
    pub filling: Option<Filling>,
}

impl HttpAsking {
    /// The checks of a dialect together with a user's own.
    ///
    /// # Errors
    /// The first one that cannot be read.
    pub fn checks(dialect: Dialect, own: &[String]) -> Result<Checks, CheckError> {
        let all: Vec<&str> =
            dialect.checks().into_iter().chain(own.iter().map(String::as_str)).collect();
        Checks::new(&all)
    }
}

/// The users of a cell over HTTP.
pub struct CellSessions {
    pub(super) users: Users,
    asking: HttpAsking,
    counter: HitCounter,
    scratch: Vec<u8>,
    body: Vec<u8>,
}

/// Largest body that is decoded, bytes.
const DECODED_MAX: usize = 64 << 20;

impl CellSessions {
    /// The users of a cell. Their counts go to the outbox at the end.
    #[must_use]
    pub fn new(plan: CellPlan, asking: HttpAsking, outbox: Outbox) -> Self {
        Self {
            users: Users::new(plan, outbox),
            asking,
            counter: HitCounter::default(),
            scratch: Vec::new(),
            body: Vec::new(),
        }
    }

    fn fill(&mut self, index: usize, request: &mut Request) -> bool {
        let bytes = self.asking.requests.bytes(index);
        let Some(filling) = &mut self.asking.filling else {
            request.bytes.extend_from_slice(bytes);
            return true;
        };
        let Some(row) = filling.feed.next_row(self.users.turn) else {
            self.users.tally.rows_used_up = true;
            return false;
        };
        let rows = filling.feed.rows();
        filling.templates.fill(bytes, index, rows, row, &mut self.body, &mut request.bytes);
        true
    }
}

impl Sessions<Http> for CellSessions {
    fn user(&mut self, _client: u32, turn: UserTurn) {
        self.users.turn = turn;
    }

    fn next(&mut self, client: u32, _target: u32, request: &mut Request) -> Turn {
        let Some(index) = self.users.next(client) else { return Turn::Exhausted };
        request.bytes.clear();
        if !self.fill(index, request) {
            return Turn::Exhausted;
        }
        request.head = false;
        request.keep = Keep { head: false, body: true, stream: false };
        let class = u16::from(self.asking.requests.class(index));
        // Searches change nothing, so they may be sent again on a new connection.
        Turn::Ask(Submission { class, item: u64::from(class), idempotent: true })
    }

    fn judge(
        &mut self,
        client: u32,
        what: &Submission,
        reply: &Reply<'_>,
        times: Times,
    ) -> Judgement {
        let (body, shown) = plain_part(reply, &mut self.scratch);
        let hits = self.counter.count(None, body);
        let service_ns = times.done_ns.saturating_sub(times.sent_ns);
        let seen = Seen { status: reply.status, body, shown, hits, service_ns };
        let failure = match self.asking.checks.judge(&seen) {
            Err(CheckFailure::Status(_)) => Some(Failure::Status),
            Err(CheckFailure::Check(_)) => Some(Failure::Check),
            Ok(()) => None,
        };
        let hits = hits.filter(|_| failure.is_none());
        self.users.answered(client, what.class, failure.is_none(), hits, times);
        Judgement {
            outcome: failure.map_or(Outcome::Ok, Outcome::Failed),
            status: reply.status,
            hits,
            body_bytes: reply.body_bytes,
        }
    }

    fn lost(&mut self, client: u32, what: &Submission, failure: Failure, times: Times) {
        self.users.lost(client, what.class, failure, times);
    }

    fn finish(self: Box<Self>, _now_ns: u64) {
        self.users.finish();
    }

    fn describe(&self, _what: &Submission, request: &Request) -> String {
        // A record keeps it, and headers may hold secrets of the environment: the request line and the body.
        let text = String::from_utf8_lossy(&request.bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let line = head.lines().next().unwrap_or_default();
        let shown = line.chars().chain([' ']).chain(body.chars()).take(400);
        shown.map(|c| if c.is_control() { ' ' } else { c }).collect()
    }

    fn explain(&self, _what: &Submission, reply: &Reply<'_>) -> (String, String) {
        let mut scratch = Vec::new();
        let (body, shown) = plain_part(reply, &mut scratch);
        let said = self.asking.dialect.message(reply.status, body);
        // How long it took is not told here: a reply that fails by nothing else failed by that.
        let hits = HitCounter::default().count(None, body);
        let seen = Seen { status: reply.status, body, shown, hits, service_ns: 0 };
        match self.asking.checks.judge(&seen) {
            Err(CheckFailure::Check(_)) => {
                (self.asking.checks.explain(&seen).unwrap_or_default(), said)
            }
            Err(CheckFailure::Status(_)) => (said.clone(), said),
            Ok(()) => ("it took longer than a check allows".to_owned(), said),
        }
    }
}

/// A reply's body without its coding; as it came where that cannot be undone.
pub(crate) fn plain<'a>(reply: &'a Reply<'a>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
    plain_part(reply, scratch).0
}

/// Does so, and says how much of the body that is.
fn plain_part<'a>(reply: &'a Reply<'a>, scratch: &'a mut Vec<u8>) -> (&'a [u8], Shown) {
    plain_body(reply, scratch, DECODED_MAX)
}

//! The requests of the simulated clients: each has a number that gives its client and its index, so
//! that the same request is asked again in the run with the ideal generator.

use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::UserTurn;
use plimsoll_wire::http1::{Http1, Keep, Reply, Request};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use std::io::Write as _;

/// The sessions of a scene.
#[derive(Default)]
pub struct Asker {
    /// Number of requests that each client has asked; in models without clients all are the first one's.
    asked: Vec<u64>,
    /// The request of the user that is asked for next.
    of_user: Option<u64>,
    /// Requests in a thousand that must not be repeated.
    posts: u64,
}

/// Requests that a client or a user may ask before its numbers become another's.
const OF_ONE: u64 = 1 << 24;

impl Asker {
    /// Sessions with this many of a thousand requests that are not idempotent.
    #[must_use]
    pub fn new(posts: u64) -> Self {
        Self { posts, ..Self::default() }
    }

    fn number(&mut self, client: u32) -> u64 {
        if let Some(number) = self.of_user.take() {
            return number;
        }
        let place = client as usize;
        if self.asked.len() <= place {
            self.asked.resize(place + 1, 0);
        }
        self.asked[place] += 1;
        u64::from(client) * OF_ONE + self.asked[place]
    }
}

impl Sessions<Http1> for Asker {
    fn next(&mut self, client: u32, _target: u32, request: &mut Request) -> Turn {
        let item = self.number(client);
        let idempotent = item.wrapping_mul(0x9e37_79b9) % 1000 >= self.posts;
        request.bytes.clear();
        request.head = false;
        request.keep = Keep { head: false, body: false, stream: false };
        let method = if idempotent { "GET" } else { "POST" };
        // Writing to memory cannot fail.
        let _ = write!(request.bytes, "{method} /{item} HTTP/1.1\r\nHost: simulated\r\n\r\n");
        Turn::Ask(Submission { class: 0, item, idempotent })
    }

    fn user(&mut self, _client: u32, turn: UserTurn) {
        self.of_user = Some(turn.user * OF_ONE + u64::from(turn.step));
    }

    fn judge(&mut self, _: u32, _: &Submission, reply: &Reply<'_>, _: Times) -> Judgement {
        let outcome =
            if reply.status < 300 { Outcome::Ok } else { Outcome::Failed(Failure::Status) };
        Judgement { outcome, status: reply.status, hits: None, body_bytes: reply.body_bytes }
    }

    fn lost(&mut self, _: u32, _: &Submission, _: Failure, _: Times) {}

    fn describe(&self, what: &Submission, _request: &Request) -> String {
        what.item.to_string()
    }

    fn explain(&self, _what: &Submission, reply: &Reply<'_>) -> (String, String) {
        (reply.status.to_string(), String::new())
    }
}

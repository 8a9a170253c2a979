//! Sessions that ask each of some requests once and keep what came back: indexes are made, counted and probed so.

use super::dialect::HttpCall;
use super::sessions::plain;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_wire::http::Http;
use plimsoll_wire::http1::{Keep, Reply, Request};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use plimsoll_workloads::render::{HttpForm, RenderedSet, RequestParts};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Reply to one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status; 0 where nothing came.
    pub status: u16,
    /// The body; of a refusal its first 512 bytes.
    pub body: Vec<u8>,
    /// From sending to the last byte, ns.
    pub service_ns: u64,
    /// Reason why nothing came.
    pub lost: Option<Failure>,
}

impl Answer {
    /// Returns true if the status is one of success.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Asks every request once.
pub struct AskingSessions {
    requests: RenderedSet,
    next: usize,
    /// By the requests' places.
    answers: Vec<Answer>,
    answered: Sender<Vec<Answer>>,
    scratch: Vec<u8>,
}

/// Renders a call.
pub fn render(form: &HttpForm, call: &HttpCall, out: &mut Vec<u8>) {
    let headers: Vec<(String, String)> = call
        .body
        .iter()
        .map(|(content_type, _)| ("Content-Type".to_owned(), (*content_type).to_owned()))
        .collect();
    let parts = RequestParts {
        method: call.method,
        target: call.path.as_bytes(),
        headers: &headers,
        body: call.body.as_ref().map(|(_, body)| body.as_bytes()),
    };
    form.render(&parts, out);
}

impl AskingSessions {
    /// Sessions for these requests, and where the answers arrive at their end, in the order of the requests.
    #[must_use]
    pub fn new(requests: RenderedSet) -> (Self, Receiver<Vec<Answer>>) {
        let (answered, received) = channel();
        let answers = vec![Answer::default(); requests.len()];
        (Self { requests, next: 0, answers, answered, scratch: Vec::new() }, received)
    }

    fn keep(&mut self, item: u64, answer: Answer) {
        if let Some(place) = self.answers.get_mut(item as usize) {
            *place = answer;
        }
    }
}

impl Sessions<Http> for AskingSessions {
    fn next(&mut self, _client: u32, _target: u32, request: &mut Request) -> Turn {
        if self.next == self.requests.len() {
            return Turn::Exhausted;
        }
        let item = self.next;
        self.next += 1;
        request.bytes.clear();
        request.bytes.extend_from_slice(self.requests.bytes(item));
        request.head = false;
        request.keep = Keep { head: false, body: true, stream: false };
        Turn::Ask(Submission { class: 0, item: item as u64, idempotent: true })
    }

    fn judge(
        &mut self,
        _client: u32,
        what: &Submission,
        reply: &Reply<'_>,
        times: Times,
    ) -> Judgement {
        let body = plain(reply, &mut self.scratch).to_vec();
        let service_ns = times.done_ns.saturating_sub(times.sent_ns);
        self.keep(what.item, Answer { status: reply.status, body, service_ns, lost: None });
        Judgement {
            outcome: Outcome::Ok,
            status: reply.status,
            hits: None,
            body_bytes: reply.body_bytes,
        }
    }

    fn lost(&mut self, _client: u32, what: &Submission, failure: Failure, times: Times) {
        let service_ns = times.done_ns.saturating_sub(times.sent_ns);
        self.keep(what.item, Answer { lost: Some(failure), service_ns, ..Answer::default() });
    }

    fn finish(self: Box<Self>, _now_ns: u64) {
        // Nobody waits for the answers of a run that failed to start.
        let _ = self.answered.send(self.answers);
    }

    fn describe(&self, _what: &Submission, _request: &Request) -> String {
        String::new()
    }

    fn explain(&self, _what: &Submission, _reply: &Reply<'_>) -> (String, String) {
        (String::new(), String::new())
    }
}

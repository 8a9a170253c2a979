//! What the simulated clients ask, and a diary of what became of each request.

use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::rng::Rng;
use plimsoll_wire::http1::{Http1, Keep, Reply, Request};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use std::cell::RefCell;
use std::rc::Rc;

pub const CLASSES: usize = 2;

/// One request from the client's side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub client: u32,
    pub target: u32,
    pub idempotent: bool,
    pub end: Option<(Outcome, Times)>,
}

/// All requests in the order in which they were asked; request i has item i.
#[derive(Default)]
pub struct Diary {
    pub asked: Vec<Asked>,
    in_flight: Vec<u32>,
    pub most_in_flight: u32,
    pub most_of_one_client: u32,
}

impl Diary {
    fn ended(&mut self, client: u32, what: &Submission, outcome: Outcome, times: Times) {
        self.in_flight[client as usize] -= 1;
        let asked = &mut self.asked[what.item as usize];
        assert_eq!(asked.client, client, "the answer went to another client");
        assert!(asked.end.is_none(), "request {} ended twice", what.item);
        asked.end = Some((outcome, times));
    }
}

pub struct Asker {
    pub diary: Rc<RefCell<Diary>>,
    pub rng: Rng,
    /// Requests before it has nothing left to ask.
    pub left: u64,
    /// How many of a thousand are POST.
    pub posts: u64,
    /// How long a client has nothing to ask after a request of its own was lost, ns.
    pub pause_ns: u64,
    /// When each client goes on that pauses, ns.
    pub pauses: Vec<Option<u64>>,
}

impl Sessions<Http1> for Asker {
    fn next(&mut self, client: u32, target: u32, request: &mut Request) -> Turn {
        if self.left == 0 {
            return Turn::Exhausted;
        }
        if let Some(until_ns) = self.pauses.get_mut(client as usize).and_then(Option::take) {
            return Turn::Rest { until_ns };
        }
        self.left -= 1;
        let mut diary = self.diary.borrow_mut();
        let item = diary.asked.len() as u64;
        let post = self.rng.below(1000) < self.posts;
        request.bytes.clear();
        request.head = false;
        request.keep = Keep { head: self.rng.below(2) == 0, body: true, stream: false };
        if post {
            let length = self.rng.below(3000) as usize;
            let head = format!("POST /{item} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n");
            request.bytes.extend_from_slice(head.as_bytes());
            request.bytes.resize(request.bytes.len() + length, b'b');
        } else {
            let head = format!("GET /{item} HTTP/1.1\r\nHost: simulated\r\n\r\n");
            request.bytes.extend_from_slice(head.as_bytes());
        }
        diary.asked.push(Asked { client, target, idempotent: !post, end: None });
        if diary.in_flight.len() <= client as usize {
            diary.in_flight.resize(client as usize + 1, 0);
        }
        diary.in_flight[client as usize] += 1;
        let (of_one, of_all) =
            (diary.in_flight[client as usize], diary.in_flight.iter().sum::<u32>());
        diary.most_of_one_client = diary.most_of_one_client.max(of_one);
        diary.most_in_flight = diary.most_in_flight.max(of_all);
        let class = (item % CLASSES as u64) as u16;
        Turn::Ask(Submission { class, item, idempotent: !post })
    }

    fn judge(
        &mut self,
        client: u32,
        what: &Submission,
        reply: &Reply<'_>,
        times: Times,
    ) -> Judgement {
        let method = if what.idempotent { "GET" } else { "POST" };
        let own = format!("{method} /{}", what.item);
        let body = std::str::from_utf8(reply.body).unwrap();
        assert_eq!(body.trim_end_matches('.'), own, "the reply belongs to another request");
        let outcome =
            if reply.status < 300 { Outcome::Ok } else { Outcome::Failed(Failure::Status) };
        self.diary.borrow_mut().ended(client, what, outcome, times);
        let (status, body_bytes) = (reply.status, reply.body_bytes);
        Judgement { outcome, status, hits: Some(what.item % 3), body_bytes }
    }

    fn lost(&mut self, client: u32, what: &Submission, failure: Failure, times: Times) {
        self.diary.borrow_mut().ended(client, what, Outcome::Failed(failure), times);
        if self.pause_ns > 0 {
            let clients = self.pauses.len().max(client as usize + 1);
            self.pauses.resize(clients, None);
            self.pauses[client as usize] = Some(times.done_ns + self.pause_ns);
        }
    }

    fn describe(&self, what: &Submission, _request: &Request) -> String {
        what.item.to_string()
    }

    fn explain(&self, _what: &Submission, reply: &Reply<'_>) -> (String, String) {
        (reply.status.to_string(), String::new())
    }
}

//! A made-up server that refuses, forgets, cuts and is away for a while.

use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::rng::Rng;
use plimsoll_engine::sim::{Act, Acts, Arrival, Peer};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

/// What the server does to requests, per mille, and when.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub busy: u64,
    pub unavailable: u64,
    pub failing: u64,
    /// The connection breaks: before the operation is done, or after.
    pub reset: u64,
    pub stalled: u64,
    /// Every request in this stretch is answered with the status; 0 resets the connections.
    pub away: Option<(u64, u64, u16)>,
    /// More than this at a time are answered with 429.
    pub room: Option<usize>,
    /// Answered with 200 by somebody else, who knows nothing of documents.
    pub foreign: u64,
    /// Done but for some fields.
    pub fields_ignored: u64,
    /// Answered with 200 and not done.
    pub ignored: u64,
}

/// What came of a request.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub status: u16,
}

pub struct Server {
    pub rng: Rng,
    pub faults: Faults,
    pub service_ns: u64,
    pub held: BTreeMap<u64, Vec<u8>>,
    pub inside: usize,
    pub most_inside: usize,
    /// By document: the numbers of the operations that were asked for, in the order of their requests.
    pub asked: BTreeMap<String, Vec<u64>>,
    /// By document: the number of the operation that was done last.
    pub done: BTreeMap<String, u64>,
    pub seen: Vec<Seen>,
    /// Answers to come.
    pub answers: BTreeMap<u64, Vec<u8>>,
    pub tokens: u64,
}

/// Status that stands for 200 replies that accept nothing, or not everything.
const FOREIGN: u16 = 1200;
const FIELDS_IGNORED: u16 = 1201;
const IGNORED: u16 = 1202;

/// A reply of the document API.
fn named(path: &str, more: &str) -> String {
    format!("{{\"pathId\":\"{path}\"{more}}}")
}

impl Server {
    pub fn new(seed: u64, faults: Faults) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            rng: Rng::new(seed),
            faults,
            service_ns: 2 * MILLISECOND_NS,
            held: BTreeMap::new(),
            inside: 0,
            most_inside: 0,
            asked: BTreeMap::new(),
            done: BTreeMap::new(),
            seen: Vec::new(),
            answers: BTreeMap::new(),
            tokens: 0,
        }))
    }

    pub fn answer(&mut self, (status, path): (u16, &str), after_ns: u64, acts: &mut Acts) {
        let (status, head, body) = match status {
            FOREIGN => (200, "", "{\"ok\":true}".to_owned()),
            FIELDS_IGNORED => (200, "X-Vespa-Ignored-Fields: true\r\n", named(path, "")),
            IGNORED => (200, "X-Vespa-Ignored-Operation: true\r\n", named(path, "")),
            200 => (200, "", named(path, "")),
            404 => (404, "", named(path, ",\"message\":\"no such type\"")),
            other => (other, "", named(path, ",\"message\":\"not now\"")),
        };
        let length = body.len();
        let text = format!("HTTP/1.1 {status} X\r\n{head}Content-Length: {length}\r\n\r\n{body}");
        self.tokens += 1;
        self.answers.insert(self.tokens, text.into_bytes());
        self.inside += 1;
        self.most_inside = self.most_inside.max(self.inside);
        acts.push((after_ns, Act::Wake(self.tokens)));
    }

    /// One whole request has come.
    pub fn request(&mut self, text: &str, now_ns: u64, acts: &mut Acts) {
        let path = text.split(' ').nth(1).unwrap();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let number = query.split('=').nth(1).map_or(0, |number| number.parse().unwrap());
        self.asked.entry(path.to_owned()).or_default().push(number);
        let away = self.faults.away.filter(|(from, to, _)| (*from..*to).contains(&now_ns));
        let faults = self.faults;
        let mut drawn = self.rng.below(1000);
        let mut share = |per_mille: u64| {
            let hit = drawn < per_mille;
            drawn = drawn.saturating_sub(per_mille);
            if hit {
                drawn = u64::MAX;
            }
            hit
        };
        let status = match away {
            Some((_, _, status)) => status,
            None if faults.room.is_some_and(|room| self.inside >= room) => 429,
            None if share(faults.busy) => 429,
            None if share(faults.unavailable) => 503,
            None if share(faults.failing) => 500,
            None if share(faults.reset) => 0,
            None if share(faults.stalled) => 1,
            None if share(faults.foreign) => FOREIGN,
            None if share(faults.fields_ignored) => FIELDS_IGNORED,
            None if share(faults.ignored) => IGNORED,
            None => 200,
        };
        self.seen.push(Seen { status });
        let lost_but_done = status < 100 && away.is_none() && self.rng.below(2) == 0;
        if status == 200 || lost_but_done {
            self.done.insert(path.to_owned(), number);
        }
        match status {
            0 => acts.push((MILLISECOND_NS, Act::Reset)),
            1 => {}
            200 if path.ends_with("nosuch") => self.answer((404, path), self.service_ns, acts),
            200 => {
                let after_ns = self.service_ns / 2 + self.rng.below(self.service_ns);
                self.answer((200, path), after_ns, acts);
            }
            other => self.answer((other, path), MILLISECOND_NS / 10, acts),
        }
    }
}

impl Peer for Server {
    fn connecting(&mut self, _: u64, _: SocketAddr, _: u64) -> Arrival {
        Arrival::Accepted { after_ns: MILLISECOND_NS }
    }

    fn received(&mut self, connection: u64, bytes: &[u8], now_ns: u64, acts: &mut Acts) {
        let mut held = self.held.remove(&connection).unwrap_or_default();
        held.extend_from_slice(bytes);
        loop {
            let text = String::from_utf8_lossy(&held).into_owned();
            let Some(head) = text.find("\r\n\r\n") else { break };
            let length = text[..head]
                .lines()
                .find_map(|line| line.strip_prefix("Content-Length: "))
                .map_or(0, |length| length.parse::<usize>().unwrap());
            if text.len() < head + 4 + length {
                break;
            }
            self.request(&text[..head], now_ns, acts);
            held.drain(..head + 4 + length);
        }
        self.held.insert(connection, held);
    }

    fn woken(&mut self, _: u64, token: u64, _: u64, acts: &mut Acts) {
        self.inside -= 1;
        acts.push((0, Act::Bytes(self.answers.remove(&token).unwrap())));
    }

    fn closed(&mut self, connection: u64) {
        self.held.remove(&connection);
    }
}

//! The embedded server beside the real OpenSearch: the same documents, the same requests, the same
//! answers.

mod hits;
mod packages;
mod planted;
mod shapes;
mod words;

use super::install;
use crate::process::{Place, Running};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::panic::resume_unwind;
use std::time::Duration;

/// Longest wait for one answer.
const LIMIT: Duration = Duration::from_secs(60);
/// As many hits as both give at once.
const WINDOW: u64 = 10_000;
pub const JSON: &str = "application/json";
pub const LINES: &str = "application/x-ndjson";

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    /// Its media type, without parameters.
    pub kind: String,
    pub text: String,
}

impl Reply {
    /// The body; a text that is no JSON becomes a string.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| self.text.clone().into())
    }
}

/// A connection that stays open.
pub struct Peer {
    pub name: &'static str,
    address: String,
    stream: BufReader<TcpStream>,
}

impl Peer {
    pub fn connect(name: &'static str, url: &str) -> Self {
        let address = url.strip_prefix("http://").unwrap().to_owned();
        let stream = TcpStream::connect(&address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        Self { name, address, stream: BufReader::new(stream) }
    }

    /// Asks with a body of a media type; none has a length of 0.
    pub fn send(&mut self, method: &str, path: &str, kind: &str, body: &str) -> Reply {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        if !body.is_empty() {
            head.push_str(&format!("Content-Type: {kind}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        let stream = self.stream.get_mut();
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("{}: {method} {path}: {line:?}", self.name));
        let (mut length, mut kind) = (0, String::new());
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap(),
                "content-type" => kind = value.split(';').next().unwrap().trim().to_owned(),
                _ => {}
            }
        }
        let mut body = vec![0; if method == "HEAD" { 0 } else { length }];
        self.stream.read_exact(&mut body).unwrap();
        Reply { status, kind, text: String::from_utf8(body).unwrap() }
    }

    /// Asks with JSON; the answer must be good.
    #[track_caller]
    pub fn ok(&mut self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let reply = self.send(method, path, JSON, &body);
        let (name, text) = (self.name, &reply.text);
        assert!((200..300).contains(&reply.status), "{name}: {method} {path} {body}: {text}");
        reply.json()
    }

    /// Writes documents, `_id` and source, and refreshes.
    #[track_caller]
    pub fn load(&mut self, index: &str, documents: &[(String, Value)]) {
        let mut body = String::new();
        for (id, source) in documents {
            body.push_str(&format!("{}\n{source}\n", json!({"index": {"_id": id}})));
        }
        let path = format!("/{index}/_bulk?refresh=true");
        let reply = self.send("POST", &path, LINES, &body).json();
        assert_eq!(reply["errors"], false, "{}: {index}", self.name);
    }

    /// Many searches in one request, for so many hits; an answer each.
    #[track_caller]
    pub fn all(&mut self, index: &str, queries: &[Value], hits: u64) -> Vec<Answer> {
        let mut answers = Vec::new();
        for some in queries.chunks(10) {
            let mut body = String::new();
            for query in some {
                let search = json!({"query": query, "size": hits, "_source": false, "track_total_hits": true});
                body.push_str(&format!("{{}}\n{search}\n"));
            }
            // Shorter replies: most of the time goes into them.
            let path = format!(
                "/{index}/_msearch?filter_path=responses.hits.total,responses.hits.hits._id,\
                 responses.hits.hits._score,responses.status,responses.timed_out,\
                 responses._shards.failed"
            );
            let reply = self.send("POST", &path, LINES, &body).json();
            let responses = reply["responses"].as_array();
            let responses = responses.unwrap_or_else(|| panic!("{}: {reply}", self.name));
            answers.extend(responses.iter().map(|one| Answer::read(one, hits)));
        }
        answers
    }
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub total: u64,
    pub ids: BTreeSet<String>,
    /// The best, in their order, with their scores.
    pub best: Vec<(String, f64)>,
}

impl Answer {
    fn read(response: &Value, asked: u64) -> Self {
        assert_eq!(response["status"], 200, "{response}");
        assert_eq!(response["_shards"]["failed"], 0, "{response}");
        assert_eq!(response["timed_out"], false, "{response}");
        // An empty list is left out.
        let none = Vec::new();
        let hits = response["hits"]["hits"].as_array().unwrap_or(&none);
        let id = |hit: &Value| hit["_id"].as_str().unwrap().to_owned();
        let scored = |hit: &Value| (id(hit), hit["_score"].as_f64().unwrap_or(0.0));
        let answer = Self {
            total: response["hits"]["total"]["value"].as_u64().unwrap(),
            ids: hits.iter().map(id).collect(),
            best: hits.iter().take(10).map(scored).collect(),
        };
        assert_eq!(answer.ids.len() as u64, answer.total.min(asked), "a document came twice");
        answer
    }
}

/// Both engines.
pub struct Pair {
    pub real: Peer,
    pub ours: Peer,
}

impl Pair {
    /// Asks both the same; the answers in their order.
    pub fn all(&mut self, index: &str, queries: &[Value], hits: u64) -> Vec<(Answer, Answer)> {
        let (real, ours) = std::thread::scope(|scope| {
            let real = scope.spawn(|| self.real.all(index, queries, hits));
            let ours = scope.spawn(|| self.ours.all(index, queries, hits));
            (real.join(), ours.join())
        });
        let real = real.unwrap_or_else(|panic| resume_unwind(panic));
        let ours = ours.unwrap_or_else(|panic| resume_unwind(panic));
        real.into_iter().zip(ours).collect()
    }
}

/// Numbers that are the same in each run.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }

    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Everything that needs OpenSearch, with one start of it. Each part tells what is wrong.
#[test]
fn the_embedded_server_answers_as_opensearch_does() {
    install("opensearch");
    let place = Place::busy();
    let documents = packages::read();
    let real = place.serve(&["opensearch"]);
    let ours = place.serve(&["search", "--fuzzy", "index", "--durability", "none"]);
    let pair = || Pair {
        real: Peer::connect("OpenSearch", &real.url),
        ours: Peer::connect("plimsoll", &ours.url),
    };
    std::thread::scope(|scope| {
        // First, as long as there is nothing else in either; the others say their part in any case.
        let shapes = scope.spawn(|| shapes::compare(&mut pair())).join();
        scope.spawn(|| words::compare(&mut pair()));
        hits::load(&place, &documents, &real.url, &ours.url);
        hits::compare(&mut pair(), &documents);
        shapes.unwrap_or_else(|panic| resume_unwind(panic));
    });
}

/// Runs plimsoll to its end.
fn run(place: &Place, args: &[&str], limit: Duration) -> crate::process::Ended {
    Running::start(place.plimsoll(args), b"").wait(limit)
}

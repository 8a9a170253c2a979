//! A small server that speaks enough of Elasticsearch's interface to be compared, and fails where it is told to.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// How it misbehaves; by default not at all.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Searches at most this distance and says nothing of it.
    pub clamp: Option<u64>,
    /// Refuses every distance above this one.
    pub refuse_above: Option<u64>,
    /// Refuses phrases.
    pub no_phrases: bool,
    /// The n-th search of a cell's kind (more than one user's) says `timed_out`.
    pub time_out_every: Option<u64>,
    /// Goes away for good at this search.
    pub die_at: Option<u64>,
    /// Goes away for good when it is asked how many documents of an index there are.
    pub die_at_count: bool,
    /// Turns away every second bulk request with 429.
    pub full: bool,
    /// Loses the first index of more than a few documents when it is searched.
    pub lose_index: bool,
    /// Refuses the document with this id.
    pub bad_document: Option<&'static str>,
}

type Documents = BTreeMap<String, Value>;

struct Shared {
    faults: Faults,
    indexes: Mutex<BTreeMap<String, Documents>>,
    searches: AtomicU64,
    lost: AtomicBool,
    bulks: AtomicU64,
    dead: AtomicBool,
    /// Paths of all requests, without their bodies.
    seen: Mutex<Vec<String>>,
    /// Bodies of all searches.
    bodies: Mutex<Vec<String>>,
}

/// The running server; its threads end with the test.
pub struct Engine {
    shared: Arc<Shared>,
    /// Its address.
    pub url: String,
}

impl Engine {
    pub fn start(faults: Faults) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            faults,
            indexes: Mutex::default(),
            searches: AtomicU64::new(0),
            lost: AtomicBool::new(false),
            bulks: AtomicU64::new(0),
            dead: AtomicBool::new(false),
            seen: Mutex::default(),
            bodies: Mutex::default(),
        });
        let own = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if own.dead.load(Ordering::SeqCst) {
                    // The listener goes with this thread: connections are refused from here on.
                    return;
                }
                let own = own.clone();
                std::thread::spawn(move || serve(&stream, &own));
            }
        });
        Self { shared, url }
    }

    /// How many requests began so.
    pub fn seen(&self, beginning: &str) -> usize {
        let seen = self.shared.seen.lock().unwrap();
        seen.iter().filter(|path| path.starts_with(beginning)).count()
    }

    /// Bodies of all searches.
    pub fn bodies(&self) -> Vec<String> {
        self.shared.bodies.lock().unwrap().clone()
    }

    /// Names of the indexes that are left.
    pub fn indexes(&self) -> Vec<String> {
        self.shared.indexes.lock().unwrap().keys().cloned().collect()
    }
}

fn serve(stream: &TcpStream, shared: &Shared) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream.try_clone().unwrap();
    loop {
        let mut head = String::new();
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
            if head.is_empty() {
                head = line;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() || shared.dead.load(Ordering::SeqCst) {
            return;
        }
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let path = target.split('?').next().unwrap();
        shared.seen.lock().unwrap().push(format!("{method} {path}"));
        if path.ends_with("/_search") {
            shared.bodies.lock().unwrap().push(String::from_utf8_lossy(&body).into_owned());
        }
        let Some((status, reply)) = shared.answer(method, path, &body) else {
            shared.dead.store(true, Ordering::SeqCst);
            // Wakes the listener, so that it sees that it is dead.
            let _ = TcpStream::connect(stream.local_addr().unwrap());
            return;
        };
        let text = reply.to_string();
        let head = format!(
            "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            text.len()
        );
        if writer.write_all(format!("{head}{text}").as_bytes()).is_err() {
            return;
        }
    }
}

fn error(status: u16, reason: &str) -> (u16, Value) {
    let cause = json!({ "type": "scripted", "reason": reason });
    (
        status,
        json!({ "error": { "root_cause": [cause.clone()], "reason": reason }, "status": status }),
    )
}

impl Shared {
    /// Status and body; none when it dies instead.
    fn answer(&self, method: &str, path: &str, body: &[u8]) -> Option<(u16, Value)> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let mut indexes = self.indexes.lock().unwrap();
        let missing = |index: &str| error(404, &format!("no such index [{index}]"));
        Some(match (method, parts.as_slice()) {
            ("GET", [""]) => (200, json!({ "version": { "number": "7.0.0-scripted" } })),
            ("PUT", [index]) => {
                indexes.insert((*index).to_owned(), Documents::new());
                (200, json!({ "acknowledged": true }))
            }
            ("DELETE", [index]) => match indexes.remove(*index) {
                Some(_) => (200, json!({ "acknowledged": true })),
                None => missing(index),
            },
            ("POST", [_, "_refresh"]) => (200, json!({ "_shards": { "failed": 0 } })),
            ("GET", [_, "_count"]) if self.faults.die_at_count => return None,
            ("GET", [index, "_count"]) => match indexes.get(*index) {
                Some(documents) => (200, json!({ "count": documents.len() })),
                None => missing(index),
            },
            ("GET", ["_cat", "indices", _]) => (200, json!([{ "store.size": "4321" }])),
            ("POST", [index, "_bulk"]) => match indexes.get_mut(*index) {
                Some(documents) => self.bulk(documents, body),
                None => missing(index),
            },
            ("POST", [index, "_search"]) => {
                let number = self.searches.fetch_add(1, Ordering::SeqCst) + 1;
                if self.faults.die_at.is_some_and(|at| number >= at) {
                    return None;
                }
                let is_large = indexes.get(*index).is_some_and(|documents| documents.len() > 50);
                if self.faults.lose_index && is_large && !self.lost.swap(true, Ordering::SeqCst) {
                    indexes.remove(*index);
                }
                match indexes.get(*index) {
                    Some(documents) => self.search(documents, body, number),
                    None => missing(index),
                }
            }
            _ => error(404, "no such path"),
        })
    }

    fn bulk(&self, documents: &mut Documents, body: &[u8]) -> (u16, Value) {
        if self.faults.full && self.bulks.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
            return error(429, "queue full");
        }
        let text = std::str::from_utf8(body).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let (mut items, mut errors) = (Vec::new(), false);
        for pair in lines.chunks(2) {
            let action: Value = serde_json::from_str(pair[0]).unwrap();
            let id = action["index"]["_id"].as_str().unwrap().to_owned();
            if self.faults.bad_document == Some(id.as_str()) {
                errors = true;
                items.push(json!({ "index": { "_id": id, "status": 400, "error": { "reason": "bad document" } } }));
                continue;
            }
            items.push(json!({ "index": { "_id": id, "status": 201 } }));
            documents.insert(id, serde_json::from_str(pair[1]).unwrap());
        }
        (200, json!({ "took": 1, "errors": errors, "items": items }))
    }

    fn search(&self, documents: &Documents, body: &[u8], number: u64) -> (u16, Value) {
        let body: Value = serde_json::from_slice(body).unwrap();
        let size = body["size"].as_u64().unwrap() as usize;
        let mut hits = Vec::new();
        for (id, document) in documents {
            match self.matches(&body["query"], id, document) {
                Ok(true) => hits.push(json!({ "_id": id, "_source": document })),
                Ok(false) => {}
                Err(reason) => return error(400, &reason),
            }
        }
        let late = self.faults.time_out_every.is_some_and(|every| number.is_multiple_of(every));
        let total = hits.len();
        hits.truncate(size);
        let reply = json!({
            "took": 1, "timed_out": late, "_shards": { "total": 1, "failed": 0 },
            "hits": { "total": { "value": total, "relation": "eq" }, "hits": hits },
        });
        (200, reply)
    }

    fn distance(&self, asked: &Value) -> Result<usize, String> {
        let asked = asked.as_u64().unwrap_or(0);
        match self.faults.refuse_above {
            Some(most) if asked > most => Err(format!("Valid edit distances are 0 to {most}")),
            _ => Ok(asked.min(self.faults.clamp.unwrap_or(u64::MAX)) as usize),
        }
    }

    fn matches(&self, query: &Value, id: &str, document: &Value) -> Result<bool, String> {
        let (kind, inner) = query.as_object().unwrap().iter().next().unwrap();
        let field = || inner.as_object().unwrap().iter().next().unwrap();
        let words = |field: &str| match field {
            "category" | "author" => vec![document[field].as_str().unwrap_or_default().to_owned()],
            _ => tokens(document[field].as_str().unwrap_or_default()),
        };
        Ok(match kind.as_str() {
            "match_all" => true,
            "ids" => inner["values"].as_array().unwrap().iter().any(|own| own == id),
            "term" => {
                let (name, value) = field();
                words(name).iter().any(|word| value["value"] == word.as_str())
            }
            "fuzzy" => {
                let (name, value) = field();
                let (word, edits) =
                    (value["value"].as_str().unwrap(), self.distance(&value["fuzziness"])?);
                words(name).iter().any(|own| near(own, word, edits))
            }
            "match" => {
                let (name, value) = field();
                let (own, edits) = (words(name), self.distance(&value["fuzziness"])?);
                let wanted = tokens(value["query"].as_str().unwrap());
                let mut found =
                    wanted.iter().map(|word| own.iter().any(|one| near(one, word, edits)));
                if value["operator"] == "and" { found.all(|one| one) } else { found.any(|one| one) }
            }
            "match_phrase" if self.faults.no_phrases => {
                return Err("phrases are not for us".to_owned());
            }
            "match_phrase" => {
                let (name, value) = field();
                let wanted = tokens(value["query"].as_str().unwrap());
                words(name).windows(wanted.len()).any(|window| *window == wanted[..])
            }
            "bool" => {
                let all = |part: &str| -> Result<Vec<bool>, String> {
                    let parts = inner[part].as_array().cloned().unwrap_or_default();
                    parts.iter().map(|one| self.matches(one, id, document)).collect()
                };
                let (must, should, must_not) = (all("must")?, all("should")?, all("must_not")?);
                let minimum = inner["minimum_should_match"].as_u64().unwrap_or(0) as usize;
                must.iter().all(|one| *one)
                    && !must_not.iter().any(|one| *one)
                    && should.iter().filter(|one| **one).count() >= minimum
            }
            other => return Err(format!("unknown query [{other}]")),
        })
    }
}

fn tokens(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn near(a: &str, b: &str, edits: usize) -> bool {
    if a.len().abs_diff(b.len()) > edits {
        return false;
    }
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()] <= edits
}

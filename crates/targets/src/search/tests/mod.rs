//! Tests that start the server on a free port and speak to it as any client would.

mod bench;
mod collection_tests;
mod combining;
mod dictionary_reads;
mod document_tests;
mod elastic_tests;
mod feed_bench;
mod front_tests;
mod http_tests;
mod lifecycle;
mod model_tests;
mod operation_tests;
mod schema_search;
mod schema_tests;
mod simple_tests;
mod truth;
mod two;
mod visit_tests;
mod yql_tests;

use super::{SearchConfig, SearchError, Server, run};
use plimsoll_serving::stop::Stop;
use serde_json::Value as Json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

/// A server on a thread, stopped when it is dropped.
pub(super) struct TestServer {
    pub(super) address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<Result<(), SearchError>>>,
}

impl TestServer {
    pub(super) fn start(folder: &Path) -> Self {
        Self::with(SearchConfig {
            refresh_interval: Duration::from_millis(20),
            ..SearchConfig::new(folder)
        })
    }

    /// A server with several containers; the address is that of the first.
    pub(super) fn containers(config: SearchConfig, count: usize) -> (Self, Vec<SocketAddr>) {
        let bind = |_| TcpListener::bind("127.0.0.1:0").unwrap();
        let listeners: Vec<_> = (0..count).map(bind).collect();
        let addresses: Vec<_> = listeners.iter().map(|l| l.local_addr().unwrap()).collect();
        let stop = Stop::new().unwrap();
        let asked = stop.clone();
        let thread =
            std::thread::spawn(move || Server::open(config, count)?.serve(listeners, &asked));
        (Self { address: addresses[0], stop, thread: Some(thread) }, addresses)
    }

    pub(super) fn with(config: SearchConfig) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Stop::new().unwrap();
        let asked = stop.clone();
        let thread = std::thread::spawn(move || run(listener, config, asked));
        Self { address, stop, thread: Some(thread) }
    }

    pub(super) fn client(&self) -> Client {
        Client::connect(self.address)
    }

    pub(super) fn stop(mut self) {
        self.stop.request();
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.request();
        let Some(thread) = self.thread.take() else { return };
        // What ended the server before its time explains the test that failed for it.
        if let Ok(Err(error)) = thread.join() {
            eprintln!("the server at {} ended: {error}", self.address);
        }
    }
}

/// One kept connection.
pub(super) struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

/// A reply with its header lines as they came.
#[derive(Debug)]
pub(super) struct TestReply {
    pub(super) status: u16,
    pub(super) head: String,
    /// As text; gzip is not unpacked.
    pub(super) body: String,
    pub(super) raw: Vec<u8>,
}

impl TestReply {
    pub(super) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    pub(super) fn total(&self) -> u64 {
        let json = self.json();
        json["root"]["fields"]["totalCount"].as_u64().unwrap_or_else(|| panic!("{json}"))
    }

    /// The names of the hits: what follows the last colon of their ids.
    pub(super) fn names(&self) -> Vec<String> {
        let json = self.json();
        let hits = json["root"]["children"].as_array().cloned().unwrap_or_default();
        let name = |hit: &Json| hit["id"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
        hits.iter().map(name).collect()
    }

    pub(super) fn error(&self) -> (u64, String) {
        let error = &self.json()["root"]["errors"][0];
        (error["code"].as_u64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    pub(super) fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or("").to_owned()
    }
}

impl Client {
    pub(super) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self { stream, received: Vec::new() }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(super) fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> TestReply {
        let length = body.len();
        let mut bytes = format!(
            "{method} {path} HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\n{headers}\r\n"
        )
        .into_bytes();
        bytes.extend_from_slice(body);
        self.send(&bytes);
        self.receive().unwrap()
    }

    /// Reads one reply; nothing when the connection was closed.
    pub(super) fn receive(&mut self) -> Option<TestReply> {
        let end = loop {
            let end = self.received.windows(4).position(|bytes| bytes == b"\r\n\r\n");
            match end {
                Some(end) => break end,
                None => self.more()?,
            }
        };
        let head = String::from_utf8(self.received[..end].to_vec()).unwrap();
        let field = |wanted: &str| {
            head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case(wanted).then(|| value.trim().to_owned())
            })
        };
        self.received.drain(..end + 4);
        let raw = if field("transfer-encoding").is_some() {
            self.chunks()?
        } else {
            let length = field("content-length").map_or(0, |length| length.parse().unwrap());
            while self.received.len() < length {
                self.more()?;
            }
            self.received.drain(..length).collect()
        };
        let body = String::from_utf8_lossy(&raw).into_owned();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Some(TestReply { status, head, body, raw })
    }

    /// A chunked body; nothing when the connection was closed before its end.
    fn chunks(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let end = loop {
                match self.received.windows(2).position(|bytes| bytes == b"\r\n") {
                    Some(end) => break end,
                    None => self.more()?,
                }
            };
            let size = std::str::from_utf8(&self.received[..end]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            while self.received.len() < end + 2 + size + 2 {
                self.more()?;
            }
            body.extend_from_slice(&self.received[end + 2..end + 2 + size]);
            self.received.drain(..end + 2 + size + 2);
            if size == 0 {
                return Some(body);
            }
        }
    }

    fn more(&mut self) -> Option<()> {
        let mut chunk = [0; 16 * 1024];
        let count = self.stream.read(&mut chunk).ok().filter(|count| *count > 0)?;
        self.received.extend_from_slice(&chunk[..count]);
        Some(())
    }

    pub(super) fn get(&mut self, path: &str) -> TestReply {
        self.request("GET", path, "", b"")
    }

    /// A request that must succeed; gives its JSON.
    pub(super) fn json(&mut self, method: &str, path: &str, body: &str) -> Json {
        let reply = self.request(method, path, "", body.as_bytes());
        assert_eq!(reply.status, 200, "{method} {path}: {}", reply.body);
        reply.json()
    }

    pub(super) fn put(&mut self, name: &str, fields: &str) -> TestReply {
        let body = format!("{{\"fields\":{fields}}}");
        self.request("POST", &document(name), JSON, body.as_bytes())
    }

    pub(super) fn refresh(&mut self) {
        let reply = self.request("POST", "/state/v1/refresh", "", b"");
        assert_eq!(reply.status, 200, "{}", reply.body);
    }

    /// Searches with the `where` part only, all hits in one page.
    pub(super) fn find(&mut self, filter: &str) -> TestReply {
        let yql = encode(&format!("select * from doc where {filter}"));
        self.get(&format!("/search/?hits=400&timeout=10s&yql={yql}"))
    }
}

pub(super) const JSON: &str = "Content-Type: application/json\r\n";

pub(super) fn document(name: &str) -> String {
    format!("/document/v1/test/doc/docid/{name}")
}

pub(super) fn encode(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// A small deterministic source of numbers (xorshift).
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

//! A client of the search servers, and their tests' servers: a kept connection, with shorthands for both APIs.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_serving::stop::Stop;
use serde_json::Value as Json;
use std::fmt::Display;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

/// A server on a thread, stopped when it is dropped.
pub struct TestServer {
    /// Address of its first port.
    pub address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<Result<(), String>>>,
}

impl TestServer {
    /// Starts a server on this many free ports, and returns it with their addresses.
    pub fn start<E: Display>(
        ports: usize,
        run: impl FnOnce(Vec<TcpListener>, Stop) -> Result<(), E> + Send + 'static,
    ) -> (Self, Vec<SocketAddr>) {
        let bind = |_| TcpListener::bind("127.0.0.1:0").unwrap();
        let listeners: Vec<_> = (0..ports).map(bind).collect();
        let addresses: Vec<_> = listeners.iter().map(|l| l.local_addr().unwrap()).collect();
        let stop = Stop::new().unwrap();
        let asked = stop.clone();
        let thread =
            std::thread::spawn(move || run(listeners, asked).map_err(|error| error.to_string()));
        (Self { address: addresses[0], stop, thread: Some(thread) }, addresses)
    }

    /// Opens a connection to the first port.
    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Stops it, and fails when it failed.
    pub fn stop(mut self) {
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
pub struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

/// A reply with its header lines as they came.
#[derive(Debug)]
pub struct TestReply {
    /// The status code.
    pub status: u16,
    /// Status line and header fields as received.
    pub head: String,
    /// As text; gzip is not unpacked.
    pub body: String,
    /// The body as received.
    pub raw: Vec<u8>,
}

impl TestReply {
    /// The body as JSON.
    pub fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    /// The total of a search over Vespa's API.
    pub fn total(&self) -> u64 {
        let json = self.json();
        json["root"]["fields"]["totalCount"].as_u64().unwrap_or_else(|| panic!("{json}"))
    }

    /// The names of the hits: what follows the last colon of their ids.
    pub fn names(&self) -> Vec<String> {
        let json = self.json();
        let hits = json["root"]["children"].as_array().cloned().unwrap_or_default();
        let name = |hit: &Json| hit["id"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
        hits.iter().map(name).collect()
    }

    /// Code and message of the first error of a search over Vespa's API.
    pub fn error(&self) -> (u64, String) {
        let error = &self.json()["root"]["errors"][0];
        (error["code"].as_u64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    /// The message of a document operation.
    pub fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or("").to_owned()
    }
}

impl Client {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self { stream, received: Vec::new() }
    }

    /// The socket.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Bytes that are not a whole reply yet.
    pub fn received(&self) -> &[u8] {
        &self.received
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: &[u8]) {
        assert!(self.try_send(bytes), "the server closed the connection");
    }

    /// Sends bytes, unless the server closed the connection.
    pub fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Sends a request and reads its reply.
    pub fn request(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> TestReply {
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
    pub fn receive(&mut self) -> Option<TestReply> {
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

    /// Reads once; nothing when the connection was closed.
    pub fn more(&mut self) -> Option<()> {
        let mut chunk = [0; 16 * 1024];
        let count = self.stream.read(&mut chunk).ok().filter(|count| *count > 0)?;
        self.received.extend_from_slice(&chunk[..count]);
        Some(())
    }

    /// Sends a GET.
    pub fn get(&mut self, path: &str) -> TestReply {
        self.request("GET", path, "", b"")
    }

    /// A request that must succeed; gives its JSON.
    pub fn json(&mut self, method: &str, path: &str, body: &str) -> Json {
        let reply = self.request(method, path, "", body.as_bytes());
        assert_eq!(reply.status, 200, "{method} {path}: {}", reply.body);
        reply.json()
    }

    /// Writes a document over Vespa's API.
    pub fn put(&mut self, name: &str, fields: &str) -> TestReply {
        let body = format!("{{\"fields\":{fields}}}");
        self.request("POST", &document(name), JSON, body.as_bytes())
    }

    /// Makes what was written searchable, over Vespa's API.
    pub fn refresh(&mut self) {
        let reply = self.request("POST", "/state/v1/refresh", "", b"");
        assert_eq!(reply.status, 200, "{}", reply.body);
    }

    /// Searches with the `where` part only, all hits in one page.
    pub fn find(&mut self, filter: &str) -> TestReply {
        let yql = encode(&format!("select * from doc where {filter}"));
        self.get(&format!("/search/?hits=400&timeout=10s&yql={yql}"))
    }
}

/// The header field of a JSON body.
pub const JSON: &str = "Content-Type: application/json\r\n";

/// The path of a document of the built-in type.
pub fn document(name: &str) -> String {
    format!("/document/v1/test/doc/docid/{name}")
}

/// A text as part of a query string.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// A small deterministic source of numbers (xorshift).
pub struct Numbers(pub u64);

impl Numbers {
    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

//! A small blocking client for the tests of the targets.

use plimsoll_serving::stop::Stop;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

/// A target on a port of its own, stopped when the test is over.
pub struct Running<T> {
    /// Its address.
    pub address: SocketAddr,
    stop: Stop,
    thread: JoinHandle<std::io::Result<T>>,
}

impl<T: Send + 'static> Running<T> {
    /// Starts it on a free port.
    pub fn start(
        run: impl FnOnce(TcpListener, Stop) -> std::io::Result<T> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Stop::new().unwrap();
        let theirs = stop.clone();
        Self { address, stop, thread: std::thread::spawn(move || run(listener, theirs)) }
    }

    /// Opens a connection to it.
    pub fn probe(&self) -> Probe {
        Probe::connect(self.address)
    }

    /// The target's JSON statistics.
    pub fn stats(&self, query: &str) -> serde_json::Value {
        let mut probe = self.probe();
        probe.send(&format!("GET /_stats{query} HTTP/1.1\r\n\r\n"));
        let reply = probe.reply();
        assert_eq!(reply.status, 200, "{}", reply.body);
        serde_json::from_str(&reply.body).unwrap()
    }

    /// Requests a stop and returns what `run` returned.
    pub fn stop(self) -> T {
        self.stop.request();
        self.thread.join().unwrap().unwrap()
    }
}

/// A reply.
#[derive(Debug)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// Status line and header fields as received.
    pub head: String,
    /// The body.
    pub body: String,
}

/// One connection; a read that takes 10 s fails the test instead of hanging it.
pub struct Probe {
    stream: BufReader<TcpStream>,
}

impl Probe {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// Sends bytes.
    pub fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// The socket.
    pub fn stream(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    /// Reads a reply with its body.
    pub fn reply(&mut self) -> Reply {
        self.read_reply(true)
    }

    /// Reads a reply that has no body.
    pub fn reply_to_head(&mut self) -> Reply {
        self.read_reply(false)
    }

    fn read_reply(&mut self, has_body: bool) -> Reply {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.stream.read_line(&mut head).unwrap() > 0, "closed after {head:?}");
        }
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = length.map_or(0, |text| text.parse().unwrap());
        let mut body = vec![0; if has_body { length } else { 0 }];
        self.stream.read_exact(&mut body).unwrap();
        let status = head["HTTP/1.1 ".len()..][..3].parse().unwrap();
        Reply { status, head, body: String::from_utf8(body).unwrap() }
    }

    /// Returns true if the peer closes now, having sent nothing more.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0))
    }
}

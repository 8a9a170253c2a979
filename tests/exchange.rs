//! One HTTP request after the other over a connection whose server may be killed at any moment.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longest wait for a reply.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection that breaks with its server.
pub struct Exchange(TcpStream);

impl Exchange {
    /// Nothing when nobody listens.
    pub fn connect(host: &str, port: u16) -> Option<Self> {
        let stream = TcpStream::connect((host, port)).ok()?;
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Some(Self(stream))
    }

    /// Status and body of the reply to `line`, such as `POST /path`; nothing when it does not come whole.
    pub fn ask(&mut self, line: &str, body: &str) -> Option<(u16, String)> {
        let head = format!(
            "{line} HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.0.write_all(&[head.as_bytes(), body.as_bytes()].concat()).ok()?;
        let mut bytes = Vec::new();
        let mut buffer = [0; 65_536];
        loop {
            let text = String::from_utf8_lossy(&bytes);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    let is_length = name.eq_ignore_ascii_case("content-length");
                    is_length.then(|| value.parse::<usize>().unwrap())
                });
                if body.len() >= length.unwrap() {
                    return Some((head[9..12].parse().unwrap(), body.to_owned()));
                }
            }
            let count = self.0.read(&mut buffer).ok().filter(|count| *count > 0)?;
            bytes.extend_from_slice(&buffer[..count]);
        }
    }
}

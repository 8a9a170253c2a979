//! A client of one connection for what a load generator does not measure: JSON goes, JSON comes.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The longest wait for a reply.
const PATIENCE: Duration = Duration::from_secs(60);

/// One connection. Buffers are kept from request to request.
pub struct Client {
    address: String,
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
    body: Vec<u8>,
}

impl Client {
    /// Connects to `host:port`.
    ///
    /// # Errors
    /// When nobody listens there.
    pub fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| address.to_owned())?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let stream = BufReader::with_capacity(1 << 16, stream);
        Ok(Self { address: address.to_owned(), stream, request: Vec::new(), body: Vec::new() })
    }

    /// Sends a request and waits for the whole reply: its status and its body.
    ///
    /// # Errors
    /// When the connection fails or the reply is not HTTP with a length.
    pub fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> Result<(u16, &[u8])> {
        self.request.clear();
        write!(
            self.request,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-ndjson\r\n\
             Content-Length: {}\r\n\r\n",
            self.address,
            body.len()
        )?;
        self.request.extend_from_slice(body);
        self.stream.get_mut().write_all(&self.request)?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status: u16 = status.with_context(|| format!("'{}' is no status", line.trim_end()))?;
        let mut length = None;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            if line.trim_end().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse::<usize>().ok();
            }
        }
        self.body.resize(length.context("a reply without a length")?, 0);
        self.stream.read_exact(&mut self.body)?;
        Ok((status, &self.body))
    }

    /// The same for a request that has to end well.
    ///
    /// # Errors
    /// Any other status, with the beginning of what the server said.
    pub fn done(&mut self, method: &str, path: &str, body: &[u8]) -> Result<&[u8]> {
        let (status, reply) = self.ask(method, path, body)?;
        if !(200..300).contains(&status) {
            let said = String::from_utf8_lossy(&reply[..reply.len().min(400)]);
            bail!("{method} {path}: status {status}: {said}");
        }
        Ok(&self.body)
    }
}

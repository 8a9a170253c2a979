//! One connection on which one asks and waits: for what is asked before a run and after it.
//!
//! The same codecs as in a run, over a blocking socket. Nothing here measures anything.

mod line;

use crate::target::Target;
use crate::tls::{Tls, TlsRefusal};
use line::Line;
use plimsoll_core::system_error::words;
use plimsoll_wire::{Event, Fault, Protocol};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use thiserror::Error;

/// Bytes read at a time.
const READ_BYTES: usize = 64 << 10;

/// A question without an answer.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// The name stands for no address.
    #[error("host name '{0}' cannot be resolved")]
    Unresolved(String),
    /// Nothing answers there.
    #[error("{address}: {}", words(error))]
    Connect {
        /// The last address that was tried.
        address: SocketAddr,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(std::io::Error),
    /// The peer said something else than a reply.
    #[error("{}", .0.text())]
    Fault(Fault),
    /// TLS was not agreed on, or broke.
    #[error(transparent)]
    Tls(#[from] TlsRefusal),
    /// No complete reply came in time.
    #[error("no complete reply within {0:?}")]
    TimedOut(Duration),
}

impl From<Fault> for ExchangeError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// A connection that is up.
pub struct Exchange<P: Protocol> {
    protocol: P,
    conn: P::Conn,
    line: Line,
    buffer: Box<[u8]>,
    /// Bytes that were read and not decoded.
    unread: std::ops::Range<usize>,
}

impl<P: Protocol> Exchange<P> {
    /// Connects to the first address of `target` that answers, in clear. `timeout` holds for connecting and for
    /// every question again; at least 1 ms.
    ///
    /// # Errors
    /// When no address answers.
    pub fn connect(protocol: P, target: &Target, timeout: Duration) -> Result<Self, ExchangeError> {
        Self::connect_secure(protocol, target, None, timeout)
    }

    /// The same over TLS where it is given, unless the protocol puts up with a server that has none. Agreeing on it
    /// has the same limit once more.
    ///
    /// # Errors
    /// When no address answers, or the first that does will not have TLS.
    pub fn connect_secure(
        protocol: P,
        target: &Target,
        tls: Option<&Tls>,
        timeout: Duration,
    ) -> Result<Self, ExchangeError> {
        let timeout = timeout.max(Duration::from_millis(1));
        let mut last = ExchangeError::Unresolved(target.host.clone());
        for &address in &target.addresses {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => {
                    let mut line = Line::new(stream, timeout)?;
                    if let Some(tls) = tls {
                        line.secure(&protocol, tls, &target.host)?;
                    }
                    return Self::open(protocol, line);
                }
                Err(error) => last = ExchangeError::Connect { address, error },
            }
        }
        Err(last)
    }

    fn open(protocol: P, mut line: Line) -> Result<Self, ExchangeError> {
        let mut hello = Vec::new();
        let conn = protocol.open(&mut hello);
        line.send(&hello)?;
        let buffer = vec![0; READ_BYTES].into_boxed_slice();
        Ok(Self { protocol, conn, line, buffer, unread: 0..0 })
    }

    /// The codec's state: the result of a login, for instance.
    #[must_use]
    pub const fn conn(&self) -> &P::Conn {
        &self.conn
    }

    /// Returns true if TLS is used.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.line.is_secure()
    }

    /// Sends a request, waits for its reply, and has `read` take from it what is wanted.
    ///
    /// # Errors
    /// Anything but a complete reply; the connection is of no more use then.
    pub fn ask<T>(
        &mut self,
        request: &P::Request,
        read: impl FnOnce(&P::Reply<'_>) -> T,
    ) -> Result<T, ExchangeError> {
        let until_ns = self.line.until_ns();
        let mut out = Vec::new();
        self.protocol.submit(&mut self.conn, request, 0, &mut out);
        let mut read = Some(read);
        loop {
            self.line.send(&out)?;
            out.clear();
            let Self { protocol, conn, buffer, unread, .. } = self;
            loop {
                match protocol.receive(conn, &buffer[unread.clone()], &mut out)? {
                    Event::More => {
                        *unread = 0..0;
                        break;
                    }
                    Event::Progress { consumed } | Event::Part { consumed, .. } => {
                        unread.start += consumed;
                    }
                    Event::GivenUp { fault, .. } => return Err(fault.into()),
                    Event::Reply { reply, consumed, .. } => {
                        unread.start += consumed;
                        if let Some(read) = read.take() {
                            return Ok(read(&reply));
                        }
                    }
                }
            }
            if out.is_empty() {
                self.receive(until_ns)?;
            }
        }
    }

    fn receive(&mut self, until_ns: u64) -> Result<(), ExchangeError> {
        match self.line.receive(&mut self.buffer, until_ns)? {
            0 => match self.protocol.end(&mut self.conn) {
                Err(fault) => Err(fault.into()),
                Ok(_) => Err(Fault::Closed { began: true }.into()),
            },
            read => {
                self.unread = 0..read;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_wire::rank::{Rank, Request, RequestHeader, ResponseHeader};
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Answers `replies` requests with their own ids, and then closes or keeps silent.
    fn server(replies: usize, closes: bool) -> (Target, std::thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for _ in 0..replies {
                let mut header = [0; plimsoll_wire::rank::REQUEST_HEADER_BYTES];
                stream.read_exact(&mut header).unwrap();
                let request_id = RequestHeader::decode(&header).request_id;
                let reply = ResponseHeader { request_id, payload_bytes: 3, ..Default::default() };
                stream.write_all(&[&reply.encode()[..], b"yes"].concat()).unwrap();
            }
            if !closes {
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest);
            }
        });
        (Target::resolve("127.0.0.1", port), thread)
    }

    #[test]
    fn one_asks_and_waits() {
        let (target, thread) = server(2, true);
        let patience = Duration::from_secs(20);
        let mut exchange = Exchange::connect(Rank::default(), &target, patience).unwrap();
        for request_id in [7, 8] {
            let request = Request { request_id, keep: true, ..Request::default() };
            let told =
                exchange.ask(&request, |reply| (reply.header.request_id, reply.payload.to_vec()));
            assert_eq!(told.unwrap(), (request_id, b"yes".to_vec()));
        }
        let ended = exchange.ask(&Request::default(), |_| ()).unwrap_err();
        assert!(matches!(ended, ExchangeError::Fault(_) | ExchangeError::Broken(_)), "{ended:?}");
        thread.join().unwrap();
    }

    #[test]
    fn every_wait_has_a_limit() {
        let (target, thread) = server(0, false);
        let patience = Duration::from_millis(30);
        let mut exchange = Exchange::connect(Rank::default(), &target, patience).unwrap();
        let told = exchange.ask(&Request::default(), |_| ()).unwrap_err();
        assert!(matches!(told, ExchangeError::TimedOut(_)), "{told:?}");
        drop(exchange);
        thread.join().unwrap();
        let told = Exchange::connect(Rank::default(), &target, patience).err().unwrap();
        assert!(matches!(told, ExchangeError::Connect { .. }), "{told:?}");
    }
}

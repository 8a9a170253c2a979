//! One connection on which one asks and waits: for what is asked before a run and after it.
//!
//! The same codecs as in a run, over a blocking socket. Nothing here measures anything.

use crate::target::Target;
use plimsoll_core::clock::now_ns;
use plimsoll_wire::{Event, Fault, Protocol};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use thiserror::Error;

/// Bytes read at a time.
const READ_BYTES: usize = 64 << 10;

/// A question without an answer.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// The name stands for no address.
    #[error("'{0}' does not resolve")]
    Unresolved(String),
    /// Nobody answers there.
    #[error("{address}: {error}")]
    Connect {
        /// The last address that was tried.
        address: SocketAddr,
        /// What the system said.
        error: std::io::Error,
    },
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(std::io::Error),
    /// The peer said something else than a reply.
    #[error("{}", .0.text())]
    Fault(Fault),
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
    stream: TcpStream,
    timeout: Duration,
    buffer: Box<[u8]>,
    /// What was read and not decoded.
    unread: std::ops::Range<usize>,
}

impl<P: Protocol> Exchange<P> {
    /// Connects to the first address of `target` that answers. `timeout` holds for connecting and for every
    /// question anew; at least 1 ms.
    ///
    /// # Errors
    /// When no address answers.
    pub fn connect(protocol: P, target: &Target, timeout: Duration) -> Result<Self, ExchangeError> {
        let timeout = timeout.max(Duration::from_millis(1));
        let mut last = ExchangeError::Unresolved(target.host.clone());
        for &address in &target.addresses {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => return Self::open(protocol, stream, timeout),
                Err(error) => last = ExchangeError::Connect { address, error },
            }
        }
        Err(last)
    }

    fn open(protocol: P, mut stream: TcpStream, timeout: Duration) -> Result<Self, ExchangeError> {
        stream.set_nodelay(true).map_err(ExchangeError::Broken)?;
        stream.set_write_timeout(Some(timeout)).map_err(ExchangeError::Broken)?;
        let mut hello = Vec::new();
        let conn = protocol.open(&mut hello);
        stream.write_all(&hello).map_err(ExchangeError::Broken)?;
        let buffer = vec![0; READ_BYTES].into_boxed_slice();
        Ok(Self { protocol, conn, stream, timeout, buffer, unread: 0..0 })
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
        let until_ns = now_ns().saturating_add(self.timeout.as_nanos() as u64);
        let mut out = Vec::new();
        self.protocol.submit(&mut self.conn, request, 0, &mut out);
        let mut read = Some(read);
        loop {
            self.stream.write_all(&out).map_err(ExchangeError::Broken)?;
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
        let left = Duration::from_nanos(until_ns.saturating_sub(now_ns()));
        if left.is_zero() {
            return Err(ExchangeError::TimedOut(self.timeout));
        }
        self.stream.set_read_timeout(Some(left)).map_err(ExchangeError::Broken)?;
        match self.stream.read(&mut self.buffer) {
            Ok(0) => match self.protocol.end(&mut self.conn) {
                Err(fault) => Err(fault.into()),
                Ok(_) => Err(Fault::Closed { began: true }.into()),
            },
            Ok(read) => {
                self.unread = 0..read;
                Ok(())
            }
            Err(error) => match error.kind() {
                std::io::ErrorKind::Interrupted => Ok(()),
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
                    Err(ExchangeError::TimedOut(self.timeout))
                }
                _ => Err(ExchangeError::Broken(error)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_wire::rank::{Rank, Request, RequestHeader, ResponseHeader};
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

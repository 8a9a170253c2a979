//! The line of an exchange: a blocking socket, with TLS on it or without.

use super::ExchangeError;
use crate::tls::{Tls, TlsRefusal, layer_of};
use plimsoll_core::clock::now_ns;
use plimsoll_wire::{Fault, Layer, Protocol};
use rustls::ClientConnection;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub(super) struct Line {
    stream: TcpStream,
    session: Option<Box<ClientConnection>>,
    /// TLS settings, for the error's text.
    tls: Option<Tls>,
    timeout: Duration,
}

impl Line {
    pub fn new(stream: TcpStream, timeout: Duration) -> Result<Self, ExchangeError> {
        stream.set_nodelay(true).map_err(ExchangeError::Broken)?;
        stream.set_write_timeout(Some(timeout)).map_err(ExchangeError::Broken)?;
        Ok(Self { stream, session: None, tls: None, timeout })
    }

    pub fn is_secure(&self) -> bool {
        self.session.is_some()
    }

    /// Deadline of something that begins now, ns.
    pub fn until_ns(&self) -> u64 {
        now_ns().saturating_add(self.timeout.as_nanos() as u64)
    }

    /// Asks for TLS in clear where the protocol does so, and agrees on it unless the answer is that there is none.
    pub fn secure<P: Protocol>(
        &mut self,
        protocol: &P,
        tls: &Tls,
        host: &str,
    ) -> Result<(), ExchangeError> {
        let until_ns = self.until_ns();
        let other = |text: String| ExchangeError::Tls(TlsRefusal::Other(text));
        let question = protocol.preamble();
        if !question.is_empty() {
            self.stream.write_all(question).map_err(|error| broken(error, self.timeout))?;
            // Room for more than the answer, to see what must not be there.
            let mut answer = [0; 2];
            let read = self.read_clear(&mut answer, until_ns)?;
            if read == 0 {
                return Err(Fault::Closed { began: false }.into());
            }
            let layer = layer_of(protocol, &answer[..read]);
            match layer? {
                Layer::Clear => return Ok(()),
                Layer::Tls => {}
            }
        }
        let name = tls.name(host).map_err(|error| other(error.to_string()))?;
        let session = tls.connection(name).map_err(|error| other(error.to_string()))?;
        self.session = Some(Box::new(session));
        self.tls = Some(tls.clone());
        self.flush()?;
        while self.session.as_ref().is_some_and(|session| session.is_handshaking()) {
            if !self.pull(until_ns)? {
                return Err(other("the peer closed during the TLS handshake".to_owned()));
            }
        }
        Ok(())
    }

    /// Sends plain bytes.
    pub fn send(&mut self, plain: &[u8]) -> Result<(), ExchangeError> {
        match &mut self.session {
            None => self.stream.write_all(plain).map_err(|error| broken(error, self.timeout)),
            Some(session) => {
                session.writer().write_all(plain).map_err(ExchangeError::Broken)?;
                self.flush()
            }
        }
    }

    /// Waits for plain bytes; none are the end.
    pub fn receive(&mut self, buffer: &mut [u8], until_ns: u64) -> Result<usize, ExchangeError> {
        loop {
            let Some(session) = &mut self.session else {
                return self.read_clear(buffer, until_ns);
            };
            match session.reader().read(buffer) {
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Closed without a word of TLS, which the codec judges: its replies say their own lengths.
                Err(_) => return Ok(0),
            }
            if !self.pull(until_ns)? {
                return Ok(0);
            }
        }
    }

    fn read_clear(&mut self, buffer: &mut [u8], until_ns: u64) -> Result<usize, ExchangeError> {
        loop {
            self.limit(until_ns)?;
            match self.stream.read(buffer) {
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(error, self.timeout)),
            }
        }
    }

    /// Has TLS take what comes next, and answers where it wants to; false at the end.
    fn pull(&mut self, until_ns: u64) -> Result<bool, ExchangeError> {
        self.limit(until_ns)?;
        let (Some(session), Some(tls)) = (&mut self.session, &self.tls) else { return Ok(false) };
        let is_handshaking = session.is_handshaking();
        match session.read_tls(&mut self.stream) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(broken(error, self.timeout)),
        }
        let taken = session.process_new_packets();
        let taken = taken.map_err(|error| ExchangeError::Tls(tls.refusal(&error, is_handshaking)));
        // The alert that says what is wrong goes out, too.
        let flushed = self.flush();
        taken?;
        flushed.map(|()| true)
    }

    fn flush(&mut self) -> Result<(), ExchangeError> {
        let Some(session) = &mut self.session else { return Ok(()) };
        while session.wants_write() {
            session.write_tls(&mut self.stream).map_err(|error| broken(error, self.timeout))?;
        }
        Ok(())
    }

    /// Has the next read end in time.
    fn limit(&self, until_ns: u64) -> Result<(), ExchangeError> {
        let left = Duration::from_nanos(until_ns.saturating_sub(now_ns()));
        if left.is_zero() {
            return Err(ExchangeError::TimedOut(self.timeout));
        }
        self.stream.set_read_timeout(Some(left)).map_err(ExchangeError::Broken)
    }
}

/// A connection that took or gave nothing within `timeout`, or broke.
fn broken(error: std::io::Error, timeout: Duration) -> ExchangeError {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => ExchangeError::TimedOut(timeout),
        _ => ExchangeError::Broken(error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Exchange;
    use super::*;
    use crate::target::Target;
    use crate::tls::{Speaks, TlsOptions, Trust};
    use plimsoll_wire::postgres::{Login, Postgres, Request};
    use std::net::TcpListener;

    /// Result of a question to a server that sends this and is then silent.
    fn ask(answer: &'static [u8], must: bool, limit: Duration) -> Result<bool, ExchangeError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target::resolve("127.0.0.1", listener.local_addr().unwrap().port());
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = [0; 8];
            stream.read_exact(&mut question).unwrap();
            stream.write_all(answer).unwrap();
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
            (question, rest)
        });
        let trust = Trust::Anything;
        let speaks = Speaks::Postgresql;
        let tls = Tls::new(&TlsOptions { trust, speaks, ..TlsOptions::default() }).unwrap();
        let login = Login::new("me", None, "db", &[]).unwrap();
        let protocol = Postgres::new(login).requiring_tls(must);
        let asked = Exchange::connect_secure(protocol, &target, Some(&tls), limit);
        let asked = asked.and_then(|mut exchange| {
            let mut request = Request::default();
            request.query("SELECT 1").unwrap();
            exchange.ask(&request, |_| ()).map(|()| exchange.is_secure())
        });
        let (question, rest) = thread.join().unwrap();
        assert_eq!(question, [0, 0, 0, 8, 4, 210, 22, 47]);
        let hello = rest.windows(2).any(|pair| pair == b"me");
        assert_eq!(hello, answer.first() == Some(&b'N') && !must, "a login in plain text");
        asked
    }

    #[test]
    fn the_question_for_tls_is_answered_in_every_way() {
        let long = Duration::from_secs(20);
        const CLEAR: &[u8] = b"N";
        for (answer, must, word) in [
            (CLEAR, true, "does not speak TLS"),
            (b"H", false, "not a PostgreSQL server"),
            (b"E\0\0\0\x08", false, "with an error"),
            (b"SZ\0\0\0\x05I", false, "unexpected plain text"),
        ] {
            let told = ask(answer, must, long).unwrap_err();
            assert!(matches!(told, ExchangeError::Tls(_)), "{told:?}");
            assert!(told.to_string().contains(word), "{told}");
        }
        // Nothing, a grant without TLS behind it, and a refusal without a login behind it all have their limit.
        for (answer, must, limit_ms) in
            [(&b""[..], false, 60), (b"S", true, 60), (CLEAR, false, 900)]
        {
            let told = ask(answer, must, Duration::from_millis(limit_ms)).unwrap_err();
            assert!(matches!(told, ExchangeError::TimedOut(_)), "{told:?}");
        }
    }

    /// The bytes fill both buffers of the connection, and stay there.
    #[test]
    fn a_peer_that_reads_nothing_is_a_timeout() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _peer = listener.accept().unwrap();
        let mut line = Line::new(stream, Duration::from_millis(50)).unwrap();
        let sent = line.send(&vec![0; 64 << 20]);
        assert!(matches!(sent, Err(ExchangeError::TimedOut(_))), "{sent:?}");
    }
}

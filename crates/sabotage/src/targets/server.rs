//! A server with a fixed service time and any concurrency, which misbehaves by count, and keeps a log.
//!
//! A thread a connection: the server's own work is so little that all of them together are idle nearly all the time.

use super::fate::Fate;
use super::leak::Leak;
use super::log::{Exchange, Log};
use super::postgres;
use crate::sabotages::cores;
use plimsoll_core::clock::now_ns;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// HTTP/1.1.
    #[default]
    Http,
    /// HTTP/1.1 over TLS.
    Https,
    /// PostgreSQL, simple and extended queries.
    Postgres,
}

/// The way the server behaves; a count of 0 is never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Script {
    /// The protocol.
    pub language: Language,
    /// Service time.
    pub service: Duration,
    /// Bytes of body.
    pub body_bytes: usize,
    /// Every so manieth request is never answered.
    pub hang_every: u64,
    /// Every so manieth request fails.
    pub fail_every: u64,
    /// Every so manieth body ends too early, with its connection.
    pub cut_every: u64,
    /// Every so manieth request is not answered, and its connection closed.
    pub drop_every: u64,
    /// Every so manieth request is not answered, and its connection reset.
    pub reset_every: u64,
    /// Every so manieth answer comes `late` later.
    pub late_every: u64,
    /// Delay.
    pub late: Duration,
    /// A connection is closed after this many replies, without notice.
    pub close_after: u64,
    /// The server closes and accepts no more connections at this age.
    pub dies_after: Option<Duration>,
    /// True if it keeps no log.
    pub is_unlogged: bool,
    /// Resources that it loses.
    pub leak: Leak,
}

/// A running server; it ends when dropped.
pub struct Server {
    /// Address on which it listens.
    pub address: SocketAddr,
    /// Its log.
    pub log: Log,
    over: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    script: Script,
    log: Log,
    requests: AtomicU64,
    over: Arc<AtomicBool>,
    tls: Option<Arc<ServerConfig>>,
    dies_ns: u64,
}

impl Server {
    /// Starts a server on a free port, on this core.
    ///
    /// # Errors
    /// When no port or thread is to be had.
    pub fn start(script: Script, core: usize) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let tls = (script.language == Language::Https).then(certificate).transpose()?;
        let log = if script.is_unlogged { Log::blank() } else { Log::default() };
        let over = Arc::new(AtomicBool::new(false));
        let dies_ns = script.dies_after.map_or(u64::MAX, |age| now_ns() + age.as_nanos() as u64);
        let requests = AtomicU64::new(0);
        let (kept, ended) = (log.clone(), over.clone());
        let shared = Arc::new(Shared { script, log: kept, requests, over: ended, tls, dies_ns });
        script.leak.descriptors_until(over.clone());
        let accept = move || {
            cores::bind_to(core);
            // The default slack of 50 us would be added to every service time.
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
            while let Ok((stream, _)) = listener.accept() {
                if shared.is_over() {
                    return;
                }
                let shared = shared.clone();
                // Threads of a server that dies or is dropped end with their connections.
                std::thread::spawn(move || shared.serve(stream));
            }
        };
        let acceptor = Some(std::thread::Builder::new().spawn(accept)?);
        Ok(Self { address, log, over, acceptor })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // The acceptor sees it when somebody comes.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// A self-signed certificate.
fn certificate() -> std::io::Result<Arc<ServerConfig>> {
    let other = std::io::Error::other::<String>;
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])
        .map_err(|error| other(error.to_string()))?;
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| {
            config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key)
        })
        .map_err(|error| other(error.to_string()))?;
    Ok(Arc::new(config))
}

impl Shared {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || now_ns() >= self.dies_ns
    }

    fn serve(&self, stream: TcpStream) {
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let _ = stream.set_nodelay(true);
        let closing = stream.try_clone();
        // A connection that breaks is the client's to notice.
        let ended = match (&self.tls, self.script.language) {
            (Some(config), _) => match ServerConnection::new(config.clone()) {
                Ok(session) => self.speak_http(StreamOwned::new(session, stream)),
                Err(_) => Ok(()),
            },
            (None, Language::Postgres) => postgres::speak(stream, |number| self.hold(number)),
            (None, _) => self.speak_http(stream),
        };
        let Ok(closing) = closing else { return };
        if ended.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset) {
            // Closed at once, without the usual farewell: the peer gets a reset.
            let _ = rustix::net::sockopt::set_socket_linger(&closing, Some(Duration::ZERO));
            return;
        }
        let _ = closing.shutdown(Shutdown::Both);
    }

    /// Serves one request, the so manieth of its connection: waits, writes it down, and says what comes of it.
    fn hold(&self, of_connection: u64) -> (Fate, bool) {
        let came_ns = now_ns();
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let script = &self.script;
        script.leak.bytes_of(number);
        let is = |every: u64| every > 0 && number.is_multiple_of(every);
        let fate = match () {
            () if is(script.hang_every) => Fate::Hangs,
            () if is(script.drop_every) => Fate::Dropped,
            () if is(script.reset_every) => Fate::Reset,
            () if is(script.cut_every) => Fate::Cut,
            () if is(script.fail_every) => Fate::Failed,
            () => Fate::Fine,
        };
        let service =
            script.service + if is(script.late_every) { script.late } else { Duration::ZERO };
        let until_ns = came_ns + service.as_nanos() as u64;
        std::thread::sleep(Duration::from_nanos(until_ns.saturating_sub(now_ns())));
        if self.is_over() {
            return (Fate::Dropped, true);
        }
        let ok = fate == Fate::Fine;
        self.log.keep(Exchange { came_ns, answered_ns: now_ns(), ok });
        (fate, script.close_after > 0 && of_connection >= script.close_after)
    }

    fn speak_http(&self, mut stream: impl Read + Write) -> std::io::Result<()> {
        let mut body = "plimsoll\n".repeat(self.script.body_bytes / 9 + 1);
        body.truncate(self.script.body_bytes);
        let head = |status: &str| {
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", self.script.body_bytes)
        };
        let fine = format!("{}{body}", head("200 OK"));
        let failed = format!("{}{body}", head("500 Internal Server Error"));
        let (mut buffer, mut request, mut number) = (vec![0; 16_384], Vec::new(), 0);
        loop {
            while !request.windows(4).any(|window| window == b"\r\n\r\n") {
                let read = stream.read(&mut buffer)?;
                if read == 0 {
                    return Ok(());
                }
                request.extend_from_slice(&buffer[..read]);
            }
            request.clear();
            number += 1;
            let (fate, last) = self.hold(number);
            match fate {
                Fate::Fine => stream.write_all(fine.as_bytes())?,
                Fate::Failed => stream.write_all(failed.as_bytes())?,
                Fate::Cut => return stream.write_all(&fine.as_bytes()[..fine.len() / 2]),
                Fate::Dropped => return Ok(()),
                Fate::Reset => return Err(std::io::ErrorKind::ConnectionReset.into()),
                Fate::Hangs => {
                    while stream.read(&mut buffer)? > 0 {}
                    return Ok(());
                }
            }
            stream.flush()?;
            if last {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(stream: &mut TcpStream) -> String {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).unwrap_or(0);
        String::from_utf8_lossy(&buffer[..read]).into_owned()
    }

    #[test]
    fn it_does_what_its_script_says_and_writes_it_down() {
        let script = Script {
            service: Duration::from_millis(5),
            body_bytes: 10,
            fail_every: 2,
            close_after: 3,
            ..Script::default()
        };
        let server = Server::start(script, 0).unwrap();
        let mut stream = TcpStream::connect(server.address).unwrap();
        let answers: Vec<String> = (0..3).map(|_| ask(&mut stream)).collect();
        assert!(
            answers[0].starts_with("HTTP/1.1 200 ") && answers[0].ends_with("\r\n\r\nplimsoll\np")
        );
        assert!(answers[1].starts_with("HTTP/1.1 500 ") && answers[2].starts_with("HTTP/1.1 200 "));
        assert_eq!(ask(&mut stream), "", "closed behind the third");
        assert_eq!(server.log.all().iter().map(|e| e.ok).collect::<Vec<_>>(), [true, false, true]);
        let [median_ms] = server.log.held_ms([0.5]);
        assert!(median_ms >= 5.0, "{median_ms}");
    }

    #[test]
    fn a_reset_is_seen_as_one_and_a_blank_log_stays_empty() {
        let script = Script { reset_every: 2, is_unlogged: true, ..Script::default() };
        let server = Server::start(script, 0).unwrap();
        let mut stream = TcpStream::connect(server.address).unwrap();
        assert!(ask(&mut stream).starts_with("HTTP/1.1 200 "));
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let kind = stream.read(&mut [0; 100]).map_err(|error| error.kind());
        assert_eq!(kind, Err(std::io::ErrorKind::ConnectionReset));
        assert!(server.log.all().is_empty());
    }

    #[test]
    fn bodies_are_cut_and_answers_left_out() {
        for (script, expected) in [
            (Script { cut_every: 1, body_bytes: 100, ..Script::default() }, true),
            (Script { drop_every: 1, ..Script::default() }, false),
        ] {
            let server = Server::start(script, 0).unwrap();
            let mut stream = TcpStream::connect(server.address).unwrap();
            let answer = ask(&mut stream);
            assert_eq!(answer.starts_with("HTTP/1.1 200 "), expected, "{answer}");
            assert!(answer.len() < 100 && ask(&mut stream).is_empty());
        }
    }
}

//! A server that does exactly what a test says, with or without TLS.

use crate::scene::{Cast, Outcome, address, target};
use plimsoll_core::clock::SECOND_NS;
use plimsoll_core::schedule::Limits;
use plimsoll_engine::shard::{ShardPlan, Timeouts};
use plimsoll_engine::sim::{self, Act, Acts, Arrival, Link, Peer};
use plimsoll_engine::tls::{Tls, TlsOptions, Trust};
use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// What the server does about a request, each so many ns after it came.
pub type Steps = Vec<(u64, Step)>;

#[derive(Clone, Debug)]
pub enum Step {
    Send(Vec<u8>),
    /// Says over TLS that nothing more will come.
    CloseNotify,
    /// Sends a record that cannot be decrypted, in one piece with what comes before it.
    BadRecord,
    /// Closes the socket in order.
    Close,
    Reset,
}

/// One request as the server saw it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Method and path: what the body of a reply must begin with.
    pub line: String,
    /// Number of its connection, from 0.
    pub connection: usize,
    /// How many requests that connection had carried before.
    pub prior: usize,
    pub at_ns: u64,
}

#[derive(Default)]
struct Line {
    number: usize,
    tls: Option<ServerConnection>,
    pending: Vec<u8>,
    requests: usize,
}

type Script = Box<dyn FnMut(&Asked) -> Steps>;

/// The scripted server.
pub struct Scripted {
    tls: Option<Arc<ServerConfig>>,
    script: Script,
    arrivals: Box<dyn FnMut(usize) -> Arrival>,
    /// Connections that are asked for at these times never open, ns.
    hangs_ns: Range<u64>,
    lines: BTreeMap<u64, Line>,
    pub asked: Vec<Asked>,
    /// When each connection was asked for, ns.
    pub knocked_ns: Vec<u64>,
}

impl Scripted {
    pub fn new(script: impl FnMut(&Asked) -> Steps + 'static) -> Self {
        Self {
            tls: None,
            script: Box::new(script),
            arrivals: Box::new(|_| Arrival::Accepted { after_ns: 0 }),
            hangs_ns: 0..0,
            lines: BTreeMap::new(),
            asked: Vec::new(),
            knocked_ns: Vec::new(),
        }
    }

    /// The same with TLS of one version.
    pub fn with_tls(mut self, version: &'static SupportedProtocolVersion) -> Self {
        self.tls = Some(server_tls(version));
        self
    }

    /// What comes of connecting, by the number of the connection.
    pub fn arriving(mut self, arrivals: impl FnMut(usize) -> Arrival + 'static) -> Self {
        self.arrivals = Box::new(arrivals);
        self
    }

    /// No connection opens that is asked for at these times on the clock, ns: over TLS the handshake is not answered.
    pub fn hanging(mut self, hangs_ns: Range<u64>) -> Self {
        self.hangs_ns = hangs_ns;
        self
    }
}

/// A server's side of TLS, with a certificate that nobody has signed.
pub fn server_tls(version: &'static SupportedProtocolVersion) -> Arc<ServerConfig> {
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["simulated".to_owned()];
    let certificate = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    Arc::new(config)
}

/// Whole requests at the front of `pending`, by their heads; GET and POST alike.
fn take_request(pending: &mut Vec<u8>) -> Option<String> {
    let head = pending.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&pending[..head]).into_owned();
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "))
        .map_or(0, |value| value.parse().unwrap());
    if pending.len() < head + length {
        return None;
    }
    pending.drain(..head + length);
    let line = text.lines().next().unwrap();
    Some(line.rsplit_once(' ').unwrap().0.to_owned())
}

/// What TLS has to send, behind everything that is planned for the same moment.
pub fn flush(tls: &mut ServerConnection, after_ns: u64, acts: &mut Acts) {
    let mut bytes = Vec::new();
    while tls.wants_write() {
        tls.write_tls(&mut bytes).unwrap();
    }
    if bytes.is_empty() {
        return;
    }
    match acts.last_mut() {
        Some((at_ns, Act::Bytes(before))) if *at_ns == after_ns => before.extend(bytes),
        _ => acts.push((after_ns, Act::Bytes(bytes))),
    }
}

fn enact(line: &mut Line, steps: Steps, acts: &mut Acts) {
    for (after_ns, step) in steps {
        match (step, &mut line.tls) {
            (Step::Send(bytes), Some(tls)) => {
                tls.writer().write_all(&bytes).unwrap();
                flush(tls, after_ns, acts);
            }
            (Step::Send(bytes), None) => acts.push((after_ns, Act::Bytes(bytes))),
            (Step::CloseNotify, Some(tls)) => {
                tls.send_close_notify();
                flush(tls, after_ns, acts);
            }
            (Step::BadRecord, _) => match acts.last_mut() {
                Some((_, Act::Bytes(before))) => {
                    before.extend(b"\x17\x03\x03\0\x20no record is made like this one.")
                }
                _ => panic!("nothing comes before the record"),
            },
            (Step::CloseNotify, None) => panic!("there is no TLS to close"),
            (Step::Close, _) => acts.push((after_ns, Act::Close)),
            (Step::Reset, _) => acts.push((after_ns, Act::Reset)),
        }
    }
}

impl Peer for Scripted {
    fn connecting(&mut self, connection: u64, _: SocketAddr, now_ns: u64) -> Arrival {
        let number = self.knocked_ns.len();
        self.knocked_ns.push(now_ns);
        if self.hangs_ns.contains(&now_ns) {
            let is_up = self.tls.is_some();
            return if is_up { Arrival::Accepted { after_ns: 0 } } else { Arrival::Silence };
        }
        let tls = self.tls.clone().map(|config| ServerConnection::new(config).unwrap());
        self.lines.insert(connection, Line { number, tls, ..Line::default() });
        (self.arrivals)(number)
    }

    fn received(&mut self, connection: u64, mut bytes: &[u8], now_ns: u64, acts: &mut Acts) {
        let Some(line) = self.lines.get_mut(&connection) else { return };
        match &mut line.tls {
            None => line.pending.extend_from_slice(bytes),
            Some(tls) => {
                while !bytes.is_empty() {
                    tls.read_tls(&mut bytes).unwrap();
                    // The client's alert of a failed handshake ends it; there is nothing to add.
                    let Ok(state) = tls.process_new_packets() else { return };
                    let mut plain = vec![0; state.plaintext_bytes_to_read()];
                    tls.reader().read_exact(&mut plain).unwrap();
                    line.pending.extend(plain);
                }
                flush(tls, 0, acts);
            }
        }
        while let Some(text) = take_request(&mut line.pending) {
            let (connection, prior) = (line.number, line.requests);
            line.requests += 1;
            let asked = Asked { line: text, connection, prior, at_ns: now_ns };
            enact(line, (self.script)(&asked), acts);
            self.asked.push(asked);
        }
    }

    fn woken(&mut self, _: u64, _: u64, _: u64, _: &mut Acts) {}

    fn closed(&mut self, connection: u64) {
        self.lines.remove(&connection);
    }
}

/// A reply with a length, whose body is what a client expects.
pub fn whole(asked: &Asked) -> Step {
    let body = &asked.line;
    Step::Send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into())
}

/// A reply that ends where the connection does.
pub fn to_the_end(asked: &Asked) -> Step {
    Step::Send(format!("HTTP/1.1 200 OK\r\n\r\n{}", asked.line).into())
}

/// A plan for `clients` that ask one after the other, without pauses, `requests` in all.
pub fn closed_plan(clients: u32, requests: u64, timeouts: Timeouts, tls: bool) -> ShardPlan {
    let insecure = TlsOptions { trust: Trust::Anything, ..TlsOptions::default() };
    ShardPlan {
        limits: Limits { duration_ns: 20 * SECOND_NS, requests: Some(requests) },
        timeouts,
        targets: Arc::new(vec![target(vec![address(0, 1)])]),
        tls: tls.then(|| Tls::new(&insecure).unwrap()),
        classes: crate::asker::CLASSES,
        ..sim::closed_plan(clients, 20 * SECOND_NS)
    }
}

/// Carries out a plan against a scripted server; `posts` of a thousand requests are POST.
pub fn play(
    plan: ShardPlan,
    link: Link,
    posts: u64,
    server: Scripted,
) -> (Outcome, Rc<RefCell<Scripted>>) {
    let server = Rc::new(RefCell::new(server));
    let cast =
        Cast { plan, link, seed: 1, source: None, stop_ns: None, posts, pause_ns: 0, late_ns: 0 };
    let outcome = cast.play(server.clone());
    outcome.totals().ledger.balance().unwrap();
    (outcome, server)
}

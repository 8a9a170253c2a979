//! A simulated HTTP/1.1 server: answers after a seeded time, in every framing, and fails on purpose.
//!
//! It writes down what it did with every request and every connection, so that a test can hold the
//! client's books against the server's.

use super::{Act, Acts, Arrival, Peer};
use crate::net::NetError;
use plimsoll_core::rng::{Rng, derive_seed};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The way a [`HttpPeer`] behaves. Shares are per mille; times are ns.
#[derive(Clone, Debug)]
pub struct HttpScript {
    /// Every choice comes from here.
    pub seed: u64,
    /// Shortest and longest service time, drawn uniformly.
    pub service_ns: (u64, u64),
    /// Shortest and longest time to accept a connection.
    pub accept_ns: (u64, u64),
    /// Longest body of a reply, bytes.
    pub body_max: u64,
    /// Faults of connections.
    pub connects: ConnectFaults,
    /// Faults of requests.
    pub requests: RequestFaults,
    /// Delay of a late reply.
    pub late_ns: u64,
    /// Kept connections are closed after this long without a request; 0: never.
    pub idle_close_ns: u64,
    /// Replies without a length, ended by closing.
    pub close_delimited: u64,
    /// Replies with `Connection: close`.
    pub connection_close: u64,
    /// Times when the server does nothing.
    pub freeze: Option<Freeze>,
}

/// Faults when connecting, per mille.
#[derive(Clone, Debug, Default)]
pub struct ConnectFaults {
    /// Addresses at which nothing listens, ever.
    pub dead: Vec<SocketAddr>,
    /// Refused.
    pub refused: u64,
    /// Never answered.
    pub silent: u64,
}

/// Faults of requests, per mille; at most one thing with each.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestFaults {
    /// Never answered.
    pub stalled: u64,
    /// Answered far too late.
    pub late: u64,
    /// The connection is reset before the reply.
    pub reset: u64,
    /// The connection is closed before the reply.
    pub closed: u64,
    /// The connection is reset inside the reply.
    pub reset_inside: u64,
    /// The connection is closed inside the reply.
    pub cut: u64,
    /// The server's machine is gone: whatever is sent on the connection, nothing comes.
    pub half_open: u64,
    /// Bytes that are not HTTP.
    pub garbage: u64,
    /// A status of 500 to 503.
    pub status: u64,
}

/// Frozen for `for_ns` at the beginning of every `every_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// Time at which the first period begins.
    pub from_ns: u64,
    /// Length of a period.
    pub every_ns: u64,
    /// Length of the frozen part at its beginning.
    pub for_ns: u64,
}

impl Freeze {
    /// Time at which something that arrives at `now_ns` can be looked at.
    #[must_use]
    pub fn thaw_ns(&self, now_ns: u64) -> u64 {
        let into_ns = now_ns.saturating_sub(self.from_ns) % self.every_ns;
        let frozen = now_ns >= self.from_ns && into_ns < self.for_ns;
        if frozen { now_ns + self.for_ns - into_ns } else { now_ns }
    }
}

/// Fate of a request at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Fate {
    /// Answered in full with this status.
    Answered(u16),
    Stalled,
    Late,
    Reset,
    Closed,
    ResetInside,
    Cut,
    HalfOpen,
    Garbage,
    /// It came on a connection that the server had closed.
    DeadOnArrival,
}

/// One request as the server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Method and path, as in the request line.
    pub request: String,
    /// Number of the connection that it came on.
    pub connection: u64,
    /// Number of requests that this connection had carried before.
    pub prior: u32,
    /// Time at which its first byte came.
    pub at_ns: u64,
    /// Fate of the request.
    pub fate: Fate,
}

/// One attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knock {
    /// Address of the server.
    pub address: SocketAddr,
    /// Time of the arrival, ns.
    pub at_ns: u64,
    /// Outcome of the attempt.
    pub arrival: Arrival,
}

#[derive(Default)]
struct Dialogue {
    /// Bytes of a request whose head is not complete.
    head: Vec<u8>,
    first_byte_ns: u64,
    /// Bytes of the request's body still to come.
    body_left: usize,
    /// The request being read: its place in the list.
    reading: Option<usize>,
    requests: u32,
    /// The server has closed or reset it, or will never answer again.
    over: bool,
    /// Grows with each request, so that an idle timer knows that it is out of date.
    turn: u64,
}

/// A server that follows a [`HttpScript`].
pub struct HttpPeer {
    script: HttpScript,
    rng: Rng,
    dialogues: BTreeMap<u64, Dialogue>,
    /// Every request, in the order of its request line.
    pub seen: Vec<Seen>,
    /// Every attempt to connect.
    pub knocks: Vec<Knock>,
    /// Connections that the server closed behind a reply, or because nothing came.
    pub closed: u64,
}

const GARBAGE: &[u8] = b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\nnot what you came for\r\n\r\n";

impl HttpPeer {
    /// A server that no one has contacted.
    #[must_use]
    pub fn new(script: HttpScript) -> Self {
        let rng = Rng::new(derive_seed(script.seed, "sim-http"));
        let (dialogues, seen, knocks) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { script, rng, dialogues, seen, knocks, closed: 0 }
    }

    fn between(&mut self, (least, most): (u64, u64)) -> u64 {
        least + self.rng.below(most.saturating_sub(least) + 1)
    }

    fn decide(&mut self) -> Fate {
        let faults = self.script.requests;
        let refusal = 500 + self.rng.below(4) as u16;
        let mut drawn = self.rng.below(1000);
        for (share, fate) in [
            (faults.stalled, Fate::Stalled),
            (faults.late, Fate::Late),
            (faults.reset, Fate::Reset),
            (faults.closed, Fate::Closed),
            (faults.reset_inside, Fate::ResetInside),
            (faults.cut, Fate::Cut),
            (faults.half_open, Fate::HalfOpen),
            (faults.garbage, Fate::Garbage),
            (faults.status, Fate::Answered(refusal)),
        ] {
            if drawn < share {
                return fate;
            }
            drawn -= share;
        }
        Fate::Answered(200)
    }

    /// The request line is there: the request is written down and its fate decided.
    fn begin(&mut self, connection: u64, line: &[u8]) {
        let request = String::from_utf8_lossy(line);
        let request = request.rsplit_once(' ').map_or("", |(front, _)| front).to_owned();
        let over = self.dialogues.get(&connection).is_none_or(|dialogue| dialogue.over);
        let fate = if over { Fate::DeadOnArrival } else { self.decide() };
        let Some(dialogue) = self.dialogues.get_mut(&connection) else { return };
        dialogue.reading = Some(self.seen.len());
        let (prior, at_ns) = (dialogue.requests, dialogue.first_byte_ns);
        dialogue.requests += 1;
        dialogue.turn += 1;
        self.seen.push(Seen { request, connection, prior, at_ns, fate });
    }

    /// The request is complete: the server does what was decided.
    fn act(&mut self, connection: u64, number: usize, now_ns: u64, acts: &mut Acts) {
        let start_ns = self.script.freeze.map_or(now_ns, |freeze| freeze.thaw_ns(now_ns));
        let mut after_ns = start_ns - now_ns + self.between(self.script.service_ns);
        let (request, fate) = (self.seen[number].request.clone(), self.seen[number].fate);
        let mut over = true;
        match fate {
            Fate::DeadOnArrival | Fate::Stalled | Fate::HalfOpen => {}
            Fate::Reset => acts.push((after_ns, Act::Reset)),
            Fate::Closed => acts.push((after_ns, Act::Close)),
            Fate::Garbage => acts.push((after_ns, Act::Bytes(GARBAGE.to_vec()))),
            Fate::ResetInside | Fate::Cut => {
                // What a close ends cannot be cut by a close.
                let closing = fate == Fate::ResetInside && self.draws(self.script.close_delimited);
                let (bytes, head) = self.reply(&request, 200, closing, false);
                let least = if closing { head } else { 1 };
                let cut = least + self.rng.below((bytes.len() - least) as u64) as usize;
                acts.push((after_ns, Act::Bytes(bytes[..cut].to_vec())));
                let end = if fate == Fate::Cut { Act::Close } else { Act::Reset };
                acts.push((after_ns + self.rng.below(2) * 1_000_000, end));
            }
            Fate::Late | Fate::Answered(_) => {
                let status = if let Fate::Answered(status) = fate { status } else { 200 };
                after_ns += if fate == Fate::Late { self.script.late_ns } else { 0 };
                let closing = self.draws(self.script.close_delimited);
                let last = closing || self.draws(self.script.connection_close);
                let (bytes, _) = self.reply(&request, status, closing, last);
                acts.push((after_ns, Act::Bytes(bytes)));
                if last {
                    self.closed += 1;
                    acts.push((after_ns, Act::Close));
                } else if self.script.idle_close_ns > 0 {
                    let turn = self.dialogues.get(&connection).map_or(0, |d| d.turn);
                    acts.push((after_ns + self.script.idle_close_ns, Act::Wake(turn)));
                }
                over = last;
            }
        }
        if let Some(dialogue) = self.dialogues.get_mut(&connection) {
            dialogue.over |= over;
        }
    }

    fn draws(&mut self, per_mille: u64) -> bool {
        self.rng.below(1000) < per_mille
    }

    /// A reply whose body begins with the request, and the length of its head. An interim reply goes before
    /// some of them.
    fn reply(
        &mut self,
        request: &str,
        status: u16,
        to_close: bool,
        last: bool,
    ) -> (Vec<u8>, usize) {
        let mut body = request.as_bytes().to_vec();
        let padding = self.rng.below(self.script.body_max + 1) as usize;
        body.resize(body.len() + padding, b'.');
        let mut out = Vec::with_capacity(body.len() + 256);
        if self.rng.below(20) == 0 {
            out.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
        }
        out.extend_from_slice(format!("HTTP/1.1 {status} Said\r\nServer: sim\r\n").as_bytes());
        if last {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        if to_close {
            out.extend_from_slice(b"\r\n");
            let head = out.len();
            out.extend_from_slice(&body);
            return (out, head);
        }
        if self.rng.below(2) == 0 {
            out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            let head = out.len();
            out.extend_from_slice(&body);
            return (out, head);
        }
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        let head = out.len();
        while !body.is_empty() {
            let size = 1 + self.rng.below(body.len() as u64) as usize;
            let rest = body.split_off(size);
            out.extend_from_slice(format!("{size:x}\r\n").as_bytes());
            out.extend_from_slice(&body);
            out.extend_from_slice(b"\r\n");
            body = rest;
        }
        out.extend_from_slice(b"0\r\n\r\n");
        (out, head)
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// The declared length of a request's body; requests without one have none.
fn body_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head);
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0)
}

impl Peer for HttpPeer {
    fn connecting(&mut self, connection: u64, address: SocketAddr, now_ns: u64) -> Arrival {
        let after_ns = self.between(self.script.accept_ns);
        let drawn = self.rng.below(1000);
        let (refused, silent) = (self.script.connects.refused, self.script.connects.silent);
        let arrival = if self.script.connects.dead.contains(&address) || drawn < refused {
            if self.rng.below(8) == 0 {
                Arrival::FailedAtOnce(NetError::Refused)
            } else {
                Arrival::Failed { after_ns, error: NetError::Refused }
            }
        } else if drawn < refused + silent {
            Arrival::Silence
        } else {
            self.dialogues.insert(connection, Dialogue::default());
            Arrival::Accepted { after_ns }
        };
        self.knocks.push(Knock { address, at_ns: now_ns, arrival });
        arrival
    }

    fn received(&mut self, connection: u64, mut bytes: &[u8], now_ns: u64, acts: &mut Acts) {
        while !bytes.is_empty() {
            let Some(dialogue) = self.dialogues.get_mut(&connection) else { return };
            if dialogue.body_left > 0 {
                let here = dialogue.body_left.min(bytes.len());
                dialogue.body_left -= here;
                bytes = &bytes[here..];
            } else {
                if dialogue.head.is_empty() {
                    dialogue.first_byte_ns = now_ns;
                }
                let before = dialogue.head.len();
                dialogue.head.extend_from_slice(bytes);
                let head = std::mem::take(&mut dialogue.head);
                if dialogue.reading.is_none()
                    && let Some(end) = find(&head, b"\r\n")
                {
                    self.begin(connection, &head[..end]);
                }
                let Some(dialogue) = self.dialogues.get_mut(&connection) else { return };
                let Some(end) = find(&head, b"\r\n\r\n") else {
                    dialogue.head = head;
                    return;
                };
                dialogue.body_left = body_length(&head[..end]);
                bytes = &bytes[end + 4 - before..];
            }
            let hasty = self.draws(500);
            let Some(dialogue) = self.dialogues.get_mut(&connection) else { return };
            // A server in a hurry says no, or goes away, before it has read the body.
            let soon = |number: usize| {
                matches!(self.seen[number].fate, Fate::Reset | Fate::Closed | Fate::Answered(500..))
                    && hasty
            };
            if (dialogue.body_left == 0 || dialogue.reading.is_some_and(soon))
                && let Some(number) = dialogue.reading.take()
            {
                self.act(connection, number, now_ns, acts);
            }
        }
    }

    fn woken(&mut self, connection: u64, token: u64, _now_ns: u64, acts: &mut Acts) {
        let Some(dialogue) = self.dialogues.get_mut(&connection) else { return };
        let between = dialogue.reading.is_none() && dialogue.body_left == 0;
        let resting = between && dialogue.head.is_empty() && !dialogue.over;
        if resting && dialogue.turn == token {
            dialogue.over = true;
            self.closed += 1;
            let reset = self.rng.below(3) == 0;
            acts.push((0, if reset { Act::Reset } else { Act::Close }));
        }
    }

    fn closed(&mut self, connection: u64) {
        self.dialogues.remove(&connection);
    }
}

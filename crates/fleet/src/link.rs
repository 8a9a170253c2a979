//! Messages that arrive once and in order, over a bus that may lose, repeat, delay and reorder packets.
//!
//! Each end numbers its packets and sends them again until the other end has acknowledged them. A message that is longer than a
//! packet is cut. Both ends send at least one packet a second, so that silence means something. The machine reads no clock and
//! opens nothing: packets and times are given to it.

mod clock;
mod packet;
mod patience;

pub use clock::ClockOffset;
use clock::Probes;
use packet::{BODY_MAX, Kind};
pub use packet::{Packet, PacketError};
use patience::Patience;
use plimsoll_core::clock::SECOND_NS;
use std::collections::{BTreeMap, VecDeque};
use thiserror::Error;

/// Packets that may be on their way without an acknowledgement.
const WINDOW: u64 = 64;
/// Longest time without a packet to the other end, ns.
const KEEP_ALIVE_NS: u64 = SECOND_NS;
/// Most bytes that wait to be acknowledged.
pub const BACKLOG_MAX: usize = 256 << 20;
/// Longest message.
pub const MESSAGE_MAX: usize = 64 << 20;

/// A link that cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LinkError {
    /// The other end does not acknowledge.
    #[error("{0} MB wait to be acknowledged; the other end does not read")]
    Full(usize),
    /// A message is too long.
    #[error("a message of {0} bytes is too long; at most {MESSAGE_MAX} can be sent")]
    TooLong(usize),
}

struct Outgoing {
    number: u64,
    packet: Packet,
    /// Number of times that it was sent.
    attempts: u32,
    /// Time at which it was sent last, ns.
    sent_ns: u64,
    /// Time at which it is sent again, ns.
    again_ns: u64,
}

/// One end of a link.
pub struct Link {
    own: u64,
    peer: u64,
    next_number: u64,
    backlog: usize,
    outgoing: VecDeque<Outgoing>,
    expected: u64,
    early: BTreeMap<u64, Packet>,
    partial: Vec<u8>,
    acknowledge: bool,
    heard_ns: u64,
    sent_ns: u64,
    probes: Probes,
    pongs: Vec<(u64, u64)>,
    patience: Patience,
}

impl Link {
    /// A link between two ends, each named by a number that no other process has ever used.
    #[must_use]
    pub fn new(own: u64, peer: u64, now_ns: u64) -> Self {
        Self {
            own,
            peer,
            next_number: 1,
            backlog: 0,
            outgoing: VecDeque::new(),
            expected: 1,
            early: BTreeMap::new(),
            partial: Vec::new(),
            acknowledge: false,
            heard_ns: now_ns,
            sent_ns: now_ns,
            probes: Probes::default(),
            pongs: Vec::new(),
            patience: Patience::default(),
        }
    }

    /// Queues a message, and returns the number to ask [`Link::has_acknowledged`] for.
    ///
    /// # Errors
    /// When it is too long, or when too much waits already.
    pub fn send(&mut self, message: &[u8]) -> Result<u64, LinkError> {
        if message.len() > MESSAGE_MAX {
            return Err(LinkError::TooLong(message.len()));
        }
        if self.backlog + message.len() > BACKLOG_MAX {
            return Err(LinkError::Full(self.backlog >> 20));
        }
        let mut pieces = message.chunks(BODY_MAX).peekable();
        let mut first = message.is_empty().then_some(&[][..]);
        while let Some(piece) = first.take().or_else(|| pieces.next()) {
            let packet = Packet {
                from: self.own,
                to: self.peer,
                kind: Kind::Data { number: self.next_number, has_more: pieces.peek().is_some() },
                acknowledged: 0,
                body: piece.to_vec(),
            };
            self.backlog += piece.len();
            let number = self.next_number;
            self.outgoing.push_back(Outgoing {
                number,
                packet,
                attempts: 0,
                sent_ns: 0,
                again_ns: 0,
            });
            self.next_number += 1;
        }
        Ok(self.next_number - 1)
    }

    /// Returns true if the other end has all packets up to this number.
    #[must_use]
    pub fn has_acknowledged(&self, number: u64) -> bool {
        self.outgoing.front().is_none_or(|first| first.number > number)
    }

    /// Returns true if nothing waits to be acknowledged.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Time since the last packet of the other end, ns.
    #[must_use]
    pub fn silent_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.heard_ns)
    }

    /// Measures the offset of the other end's clock from a time on, ns.
    pub fn measure_clock(&mut self, at_ns: u64) {
        self.probes.begin(at_ns);
    }

    /// Measures it once more, for a shorter round trip than the shortest one so far.
    pub fn measure_clock_again(&mut self, at_ns: u64) {
        self.probes.begin_again(at_ns);
    }

    /// The offset of the other end's clock, once it is measured.
    #[must_use]
    pub fn clock(&self) -> Option<ClockOffset> {
        self.probes.offset()
    }

    /// Takes a packet, and returns the messages that are whole with it. Packets for another end are ignored.
    pub fn receive(&mut self, packet: Packet, now_ns: u64) -> Vec<Vec<u8>> {
        if packet.to != self.own || packet.from != self.peer {
            return Vec::new();
        }
        self.heard_ns = self.heard_ns.max(now_ns);
        while let Some(first) = self.outgoing.front()
            && first.number <= packet.acknowledged
        {
            self.backlog -= first.packet.body.len();
            // Of one that was sent again it is not known which attempt is acknowledged (Karn and Partridge, 1987).
            if first.attempts == 1 {
                self.patience.answered(now_ns.saturating_sub(first.sent_ns));
            }
            self.outgoing.pop_front();
        }
        match packet.kind {
            Kind::Acknowledgement => Vec::new(),
            Kind::Ping { sent_ns } => {
                self.pongs.push((sent_ns, now_ns));
                Vec::new()
            }
            Kind::Pong { sent_ns, peer_ns } => {
                self.probes.answered(sent_ns, peer_ns, now_ns);
                Vec::new()
            }
            Kind::Data { number, .. } => {
                self.acknowledge = true;
                if number >= self.expected && number < self.expected + WINDOW {
                    self.early.insert(number, packet);
                }
                self.whole_messages()
            }
        }
    }

    fn whole_messages(&mut self) -> Vec<Vec<u8>> {
        let mut whole = Vec::new();
        while let Some(packet) = self.early.remove(&self.expected) {
            self.expected += 1;
            let Kind::Data { has_more, .. } = packet.kind else { continue };
            if !has_more && self.partial.is_empty() {
                whole.push(packet.body);
                continue;
            }
            if self.partial.len() + packet.body.len() <= MESSAGE_MAX {
                self.partial.extend_from_slice(&packet.body);
            }
            if !has_more {
                whole.push(std::mem::take(&mut self.partial));
            }
        }
        whole
    }

    /// The packets that are to be sent now.
    pub fn poll(&mut self, now_ns: u64) -> Vec<Packet> {
        let mut due = Vec::new();
        let acknowledged = self.expected - 1;
        let first = self.outgoing.front().map_or(0, |first| first.number);
        for one in self.outgoing.iter_mut().take_while(|one| one.number < first + WINDOW) {
            if one.again_ns > now_ns {
                continue;
            }
            // Of those that were sent together, one counts.
            if one.attempts > 0 && one.number == first {
                self.patience.missed();
            }
            one.attempts += 1;
            one.sent_ns = now_ns;
            one.again_ns = now_ns + self.patience.wait_ns();
            due.push(Packet { acknowledged, ..one.packet.clone() });
        }
        let bare =
            |kind| Packet { from: self.own, to: self.peer, kind, acknowledged, body: Vec::new() };
        let pongs = self.pongs.drain(..);
        due.extend(pongs.map(|(sent_ns, peer_ns)| bare(Kind::Pong { sent_ns, peer_ns })));
        due.extend(self.probes.next(now_ns).map(|sent_ns| bare(Kind::Ping { sent_ns })));
        let is_quiet = now_ns >= self.sent_ns.saturating_add(KEEP_ALIVE_NS);
        if due.is_empty() && (self.acknowledge || is_quiet) {
            due.push(bare(Kind::Acknowledgement));
        }
        if !due.is_empty() {
            self.acknowledge = false;
            self.sent_ns = now_ns;
        }
        due
    }

    /// Time until which [`Link::poll`] has nothing more to send if nothing arrives, ns.
    #[must_use]
    pub fn due_ns(&self) -> u64 {
        if self.acknowledge || !self.pongs.is_empty() {
            return 0;
        }
        let first = self.outgoing.front().map_or(0, |first| first.number);
        let window = self.outgoing.iter().take_while(|one| one.number < first + WINDOW);
        let again_ns = window.map(|one| one.again_ns).min().unwrap_or(u64::MAX);
        again_ns.min(self.sent_ns + KEEP_ALIVE_NS).min(self.probes.due_ns())
    }
}

#[cfg(test)]
mod tests;

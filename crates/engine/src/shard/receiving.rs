//! From received to decoded: what a completion means for its connection and for the requests on it.

use super::Shard;
use super::connections::State;
use crate::net::{Completion, Net, NetError};
use crate::tls::TlsRefusal;
use plimsoll_core::clock::Clock;
use plimsoll_core::outcome::Failure;
use plimsoll_wire::{Event, Fault, Protocol};

/// A target that is answered without end, and reads nothing, would take all memory.
const UNREAD_ANSWERS: &str = "the target asks for answers without end and does not read them";

/// Result of feeding bytes to the codec.
enum Fed {
    /// The connection goes on.
    GoesOn,
    /// It carried its last reply.
    LastReply,
    /// It is broken.
    Broken(Fault),
}

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Acts on one completion.
    pub(super) fn complete(&mut self, key: u32, completion: Completion, buffer: &[u8]) {
        match completion {
            Completion::Received(n) => self.received(key, &buffer[..n]),
            Completion::Connected => self.socket_is_up(key),
            Completion::Writable => {
                if let Err(error) = self.line.writable(key) {
                    self.read_unread(key);
                    self.broken(key, error);
                }
            }
            Completion::Closed => {
                // TLS that was closed in order has ended the connection before its socket is closed.
                let in_order = self.line.tls(key).is_none();
                self.peer_closed(key, in_order);
            }
            Completion::Failed(error) => self.broken(key, error),
        }
    }

    pub(super) fn received(&mut self, key: u32, bytes: &[u8]) {
        let now_ns = self.clock.now_ns();
        let measured = self.course.is_measuring(now_ns);
        self.books.counters(measured).bytes_received += bytes.len() as u64;
        if self.line.tls(key).is_none() {
            if self.has_asked(key) {
                self.answered(key, bytes);
            } else {
                self.feed(key, bytes, now_ns);
            }
            return;
        }
        let mut plain = self.line.take_decrypted();
        let result = self.line.decrypt(key, bytes, &mut plain);
        // Handshake flights, and the alert that says why a handshake failed, go out at once.
        let flushed = self.line.flush_tls(key);
        match (result, flushed) {
            (Err(error), _) => {
                // What was decrypted before the fault is whole.
                if !plain.is_empty() && self.connections.get(key).is_open() {
                    self.feed(key, &plain, now_ns);
                }
                if self.connections.get(key).state() != State::Closed {
                    self.tls_failed(key, &error);
                }
            }
            (Ok(_), Err(error)) => self.broken(key, error),
            (Ok(closed), Ok(())) => {
                let is_through = self.line.tls(key).is_none_or(|tls| !tls.is_handshaking());
                if self.connections.get(key).state() == State::Handshaking && is_through {
                    self.agreed(key);
                }
                if !plain.is_empty() {
                    self.feed(key, &plain, now_ns);
                }
                if closed && self.connections.get(key).state() != State::Closed {
                    self.peer_closed(key, true);
                }
            }
        }
        self.line.return_decrypted(plain);
    }

    /// The TLS handshake is through: the codec takes over, if it is the one that was agreed.
    fn agreed(&mut self, key: u32) {
        let agreed = match (&self.plan.tls, self.line.tls(key)) {
            (Some(tls), Some(session)) => tls.is_agreed(session),
            _ => true,
        };
        if agreed {
            self.opened(key);
        } else {
            self.open_failed(key, Failure::Tls, &TlsRefusal::NoHttp2);
        }
    }

    /// Feeds plain bytes to the codec and settles every reply in them.
    fn feed(&mut self, key: u32, input: &[u8], now_ns: u64) {
        let Some(mut codec) = self.connections.get_mut(key).take_codec() else { return };
        let mut acks = self.line.take_plain();
        let fed = self.decode(key, &mut codec, input, &mut acks, now_ns);
        self.connections.get_mut(key).return_codec(codec);
        match fed {
            Fed::GoesOn if !acks.is_empty() => {
                if !self.line.may_answer(key, acks.len()) {
                    self.lose(key, Failure::Protocol, UNREAD_ANSWERS);
                } else if self.line.write(key, &acks).is_err() {
                    self.sending_failed(key);
                } else {
                    self.connections.get_mut(key).all_handed_over();
                    self.line.return_plain(acks);
                    return self.serve_waiting(key);
                }
            }
            Fed::GoesOn => self.serve_waiting(key),
            Fed::LastReply => self.close_in_order(key),
            Fed::Broken(fault) => {
                // The peer gets the reason, if it still listens.
                let _ = self.line.write(key, &acks);
                self.lose(key, fault.failure(), fault);
                if let Fault::Refused(why) = fault {
                    self.turned_out(why);
                }
            }
        }
        self.line.return_plain(acks);
    }

    fn decode(
        &mut self,
        key: u32,
        codec: &mut P::Conn,
        mut input: &[u8],
        acks: &mut Vec<u8>,
        now_ns: u64,
    ) -> Fed {
        let was_full = self.protocol.capacity(codec) == 0;
        // Also behind the last byte: only then does the codec know that what it kept has been looked at.
        loop {
            match self.protocol.receive(codec, input, acks) {
                Ok(Event::More) => break,
                Ok(Event::Progress { consumed }) => input = &input[consumed..],
                Ok(Event::Part { tag, bytes, consumed }) => {
                    self.part(tag, bytes, now_ns);
                    input = &input[consumed..];
                }
                Ok(Event::GivenUp { tag, fault, unprocessed, consumed }) => {
                    self.given_up(key, tag, fault, unprocessed, now_ns);
                    input = &input[consumed..];
                }
                // By reference: a reply is big, and would be copied here just behind its making.
                Ok(Event::Reply { tag, ref reply, consumed, reusable }) => {
                    self.reply(key, tag, reply, now_ns);
                    if !reusable || !self.connections.keep_alive() {
                        self.connections.get_mut(key).set_free_since(now_ns);
                        return Fed::LastReply;
                    }
                    input = &input[consumed..];
                }
                Err(fault) => return Fed::Broken(fault),
            }
        }
        let connection = self.connections.get_mut(key);
        if connection.is_open() {
            // Not only a reply makes room: also a request that the peer gave up, or a limit that it raised.
            if was_full && self.protocol.capacity(codec) > 0 {
                connection.set_free_since(now_ns);
            }
            if self.connections.takes_more(key, codec, &self.protocol) {
                self.connections.give_back(key);
            }
        }
        // Its peer has given up the only request that it was opened for.
        let is_used_up = self.connections.get(key).is_used_up(self.connections.keep_alive());
        if is_used_up { Fed::LastReply } else { Fed::GoesOn }
    }

    /// Hands a piece of a reply to its session; as long as wanted pieces come, the request has not timed out.
    fn part(&mut self, tag: u32, bytes: &[u8], now_ns: u64) {
        let flight = self.flights.get_mut(tag);
        flight.times.done_ns = now_ns;
        if self.sessions.part(flight.client, &flight.what, bytes, flight.times) {
            self.flights.set_deadline(tag, self.course.reply_by_ns(now_ns));
        }
    }

    /// The peer closed its side; `in_order` unless TLS was left open, as it is when someone on the way cuts
    /// the connection.
    fn peer_closed(&mut self, key: u32, in_order: bool) {
        match self.connections.get(key).state() {
            State::Connecting => self.open_failed(key, Failure::Connect, "closed while connecting"),
            State::Handshaking => {
                self.open_failed(key, Failure::Tls, "the peer closed during the TLS handshake");
            }
            State::Open => self.ended_by_close(key, in_order),
            State::Closed | State::Resting => {}
        }
    }

    /// An open connection was closed: a reply may end here, unless the close may be forged (RFC 9112, 9.8).
    fn ended_by_close(&mut self, key: u32, in_order: bool) {
        let now_ns = self.clock.now_ns();
        let Some(mut codec) = self.connections.get_mut(key).take_codec() else { return };
        let fault = if self.connections.get(key).under_way().is_empty() {
            None
        } else {
            match self.protocol.end(&mut codec) {
                Ok(Event::Reply { tag, reply, .. }) if in_order => {
                    self.reply(key, tag, &reply, now_ns);
                    None
                }
                Ok(Event::Reply { .. }) => Some(Fault::Closed { began: true }),
                Ok(_) => Some(Fault::Closed { began: false }),
                Err(fault) => Some(fault),
            }
        };
        self.connections.get_mut(key).return_codec(codec);
        match fault {
            Some(fault) => self.lose(key, fault.failure(), fault),
            None => self.close_in_order(key),
        }
    }

    /// The connection broke.
    fn broken(&mut self, key: u32, error: NetError) {
        let reason = error.to_string();
        self.count_exhausted(Some(error));
        match self.connections.get(key).state() {
            State::Connecting => self.open_failed(key, Failure::Connect, &reason),
            State::Handshaking => self.open_failed(key, Failure::Tls, &reason),
            State::Open => {
                // A reset after the first bytes of a reply cut it short, also where an orderly close would
                // have completed it; before, it is a plain reset.
                let began = match self.connections.get_mut(key).codec_mut() {
                    Some(codec) => match self.protocol.end(codec) {
                        Ok(event) => matches!(event, Event::Reply { .. }),
                        Err(fault) => fault == Fault::Closed { began: true },
                    },
                    None => false,
                };
                let failure = if began { Failure::Short } else { Failure::Reset };
                self.lose(key, failure, &reason);
            }
            State::Closed | State::Resting => {}
        }
    }
}

//! From received to recorded.

use super::books::samples::{FAILURES_TOLD, Slow};
use super::connections::connection::State;
use super::{Message, Shard};
use crate::net::{Completion, Net, NetError};
use crate::tls::NO_HTTP2;
use crate::windows::EndedRequest;
use plimsoll_core::clock::Clock;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::record::FailureSample;
use plimsoll_core::recorder::{Ended, Times};
use plimsoll_wire::{Event, Fault, Judgement, Protocol};

/// What feeding bytes to the codec came to.
enum Fed {
    /// The connection goes on.
    GoesOn,
    /// It carried its last reply.
    LastReply,
    /// It is broken.
    Broken(Fault),
}

/// How often a request is sent again that its peers vouch not to have looked at.
const RESENT_MAX: u8 = 16;

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Acts on one completion.
    pub(super) fn complete(&mut self, key: u32, completion: Completion, buffer: &[u8]) {
        match completion {
            Completion::Received(n) => self.received(key, &buffer[..n]),
            Completion::Connected => self.socket_is_up(key),
            Completion::Writable => {
                if let Err(error) = self.connections[key as usize].writable(key, &mut self.net) {
                    self.broken(key, error);
                }
            }
            Completion::Closed => {
                // TLS that was closed in order has ended the connection before its socket is closed.
                let in_order = self.connections[key as usize].tls.is_none();
                self.peer_closed(key, in_order);
            }
            Completion::Failed(error) => self.broken(key, error),
        }
    }

    fn received(&mut self, key: u32, bytes: &[u8]) {
        let now_ns = self.clock.now_ns();
        let measured = self.is_measuring(now_ns);
        self.recorder_of(measured).interval_mut().counters.bytes_received += bytes.len() as u64;
        if self.connections[key as usize].tls.is_none() {
            if self.has_asked(key) {
                self.answered(key, bytes);
            } else {
                self.feed(key, bytes, now_ns);
            }
            return;
        }
        let mut plain = std::mem::take(&mut self.decrypted);
        plain.clear();
        let connection = &mut self.connections[key as usize];
        let result = connection.decrypt(bytes, &mut plain);
        // Handshake flights, and the alert that says why a handshake failed, go out at once.
        let flushed = connection.flush_tls(key, &mut self.net, &mut self.cipher);
        match (result, flushed) {
            (Err(error), _) => self.tls_failed(key, &error),
            (Ok(_), Err(error)) => self.broken(key, error),
            (Ok(closed), Ok(())) => {
                if self.connections[key as usize].state == State::Handshaking
                    && !self.connections[key as usize].is_handshaking()
                {
                    self.agreed(key);
                }
                if !plain.is_empty() {
                    self.feed(key, &plain, now_ns);
                }
                if closed && self.connections[key as usize].state != State::Closed {
                    self.peer_closed(key, true);
                }
            }
        }
        self.decrypted = plain;
    }

    /// The TLS handshake is through: the codec takes over, if it is the one that was agreed.
    fn agreed(&mut self, key: u32) {
        let session = self.connections[key as usize].tls.as_deref();
        let agreed = match (&self.plan.tls, session) {
            (Some(tls), Some(session)) => tls.is_agreed(session),
            _ => true,
        };
        if agreed {
            self.opened(key);
        } else {
            self.open_failed(key, Failure::Tls, NO_HTTP2);
        }
    }

    /// Feeds plain bytes to the codec and settles every reply in them.
    fn feed(&mut self, key: u32, input: &[u8], now_ns: u64) {
        let Some(mut codec) = self.connections[key as usize].codec.take() else { return };
        let mut acks = std::mem::take(&mut self.plain);
        acks.clear();
        let fed = self.decode(key, &mut codec, input, &mut acks, now_ns);
        self.connections[key as usize].codec = Some(codec);
        match fed {
            Fed::GoesOn if !acks.is_empty() => {
                let connection = &mut self.connections[key as usize];
                if connection.write(key, &mut self.net, &acks, &mut self.cipher).is_err() {
                    self.lose(key, Failure::Reset, "the connection broke while sending");
                } else {
                    self.plain = acks;
                    return self.serve_waiting(key);
                }
            }
            Fed::GoesOn => self.serve_waiting(key),
            Fed::LastReply => self.close_in_order(key),
            Fed::Broken(fault) => {
                // The peer is told why, if it still listens.
                let connection = &mut self.connections[key as usize];
                let _ = connection.write(key, &mut self.net, &acks, &mut self.cipher);
                self.lose(key, fault.failure(), fault_text(fault));
                if let Fault::Refused(why) = fault {
                    self.turned_out(why);
                }
            }
        }
        self.plain = acks;
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
        let mut replied = false;
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
                    replied = true;
                    if !reusable || !self.plan.keep_alive {
                        return Fed::LastReply;
                    }
                    input = &input[consumed..];
                }
                Err(fault) => return Fed::Broken(fault),
            }
        }
        let connection = &mut self.connections[key as usize];
        if connection.state == State::Open {
            if was_full && replied {
                connection.free_since_ns = now_ns;
            }
            let carried = connection.carried;
            if self.takes_more(codec, carried) {
                self.give_back(key);
            }
        }
        Fed::GoesOn
    }

    /// Hands a piece of a reply to its session; as long as pieces come, the request has not timed out.
    fn part(&mut self, tag: u32, bytes: &[u8], now_ns: u64) {
        let deadline_ns = self.deadline_ns(now_ns, self.plan.timeouts.request_ns);
        self.flights.set_deadline(tag, deadline_ns);
        let flight = self.flights.get_mut(tag);
        flight.times.done_ns = now_ns;
        self.sessions.part(flight.client, &flight.what, bytes, flight.times);
    }

    /// The peer gave up one request of a connection that goes on.
    fn given_up(&mut self, key: u32, tag: u32, fault: Fault, unprocessed: bool, now_ns: u64) {
        self.take_off(key, tag);
        let flight = self.flights.get_mut(tag);
        if unprocessed && flight.resent < RESENT_MAX {
            flight.may_be_done = false;
            return self.wait_to_go_again(tag);
        }
        self.give_up(tag, fault.failure(), fault_text(fault), now_ns);
    }

    /// Judges and records a complete reply.
    fn reply(&mut self, key: u32, tag: u32, reply: &P::Reply<'_>, now_ns: u64) {
        let flight = self.flights.get_mut(tag);
        let (what, client, resent) = (flight.what, flight.client, flight.resent);
        // Read before it is written: a wide load behind a narrow store waits for it, once for each reply.
        let times = Times { done_ns: now_ns, ..flight.times };
        flight.times.done_ns = now_ns;
        if self.sessions.again(client, &what, reply, resent) && resent < u8::MAX {
            self.take_off(key, tag);
            self.flights.get_mut(tag).may_be_done = false;
            return self.wait_to_go_again(tag);
        }
        let judgement = self.sessions.judge(client, &what, reply, times);
        if let Outcome::Failed(kind) = judgement.outcome
            && self.may_tell(kind)
        {
            let (reason, text) = self.sessions.explain(&what, reply);
            self.tell_failure(tag, kind, judgement.status, reason, text);
        }
        self.take_off(key, tag);
        let waited_ns = now_ns.saturating_sub(self.net.arrived_after_ns());
        let measured = self.flights.get(tag).measured;
        self.recorder_of(measured).received(waited_ns);
        self.settle(tag, judgement);
        self.client_goes_on(client, times.intended_ns, now_ns);
    }

    /// Tells the schedule that a client may go on, and since when.
    pub(super) fn client_goes_on(&mut self, client: u32, intended_ns: u64, now_ns: u64) {
        if let Some(free_since_ns) = self.client_free_since_ns.get_mut(client as usize) {
            *free_since_ns = now_ns;
        }
        self.schedule.ended(client, intended_ns, now_ns);
    }

    /// Whether the end of a request belongs to the measured stretch, and whether it came before that was over. Rates count
    /// ends by their own time, whatever they were due: a request of the warm-up that ends later was
    /// answered in the stretch. What a client's first requests came to is never counted.
    #[inline]
    fn ends_in_time(&self, done_ns: u64, measured: bool, client: usize) -> (bool, bool) {
        let is_first = self.plan.ignore_first > 0
            && self.client_ended.get(client).is_some_and(|&ended| ended < self.plan.ignore_first);
        (measured || (!is_first && self.is_measuring(done_ns)), done_ns <= self.end_ns)
    }

    /// Writes the end of a request down and gives its slot back. Its `done_ns` has been set.
    fn settle(&mut self, tag: u32, judgement: Judgement) {
        let flight = self.flights.get(tag);
        let (what, times, measured) = (flight.what, flight.times, flight.measured);
        let client = flight.client as usize;
        // A connection that its peer had closed before was not used again, even if it took the request.
        let reused = flight.on_kept_connection && is_answered(judgement.outcome);
        let response_ns = times.done_ns.saturating_sub(times.intended_ns);
        if measured && self.slowest.wants(response_ns) {
            let text = self.sessions.describe(&what, &flight.request);
            self.slowest.keep(Slow { times, what, outcome: judgement.outcome, text });
        }
        let late = self.plan.cycle_ns() > 0 && response_ns >= self.plan.cycle_ns();
        let (counts_by_time, in_time) = self.ends_in_time(times.done_ns, measured, client);
        if self.flights.len() >= self.slots {
            self.slot_free_since_ns = times.done_ns;
        }
        if let Some(windows) = self.plan.part.windows.first() {
            windows.ended(EndedRequest {
                due_ns: times.intended_ns.saturating_sub(self.start_ns),
                done_ns: times.done_ns.saturating_sub(self.start_ns),
                class: what.class,
                ok: judgement.outcome == Outcome::Ok,
            });
        }
        match judgement.outcome {
            Outcome::Ok => {
                self.standing.ok += 1;
                self.last_success = (times.done_ns, 0);
            }
            Outcome::Failed(_) => {
                self.standing.failed += 1;
                self.last_success.1 += 1;
            }
        }
        let recorder = self.recorder_of(measured);
        recorder.ended(&Ended {
            class: what.class,
            times,
            outcome: judgement.outcome,
            status: judgement.status,
            hits: judgement.hits,
            body_bytes: judgement.body_bytes,
        });
        let counters = &mut recorder.interval_mut().counters;
        counters.reused += u64::from(reused);
        counters.cycles_late += u64::from(late);
        let counters = &mut self.recorder_of(counts_by_time).interval_mut().counters;
        counters.ended_in_time += u64::from(in_time);
        counters.ok_in_time += u64::from(in_time && judgement.outcome == Outcome::Ok);
        self.last_ended_ns = self.last_ended_ns.max(times.done_ns);
        if let Some(to_ns) = self.client_to_ns.get_mut(client) {
            *to_ns = times.done_ns;
        }
        if self.plan.ignore_first > 0
            && let Some(ended) = self.client_ended.get_mut(client)
        {
            *ended = ended.saturating_add(1);
        }
        self.flights.release(tag);
    }

    /// Records a request that got no complete reply. The caller tells the schedule.
    pub(super) fn settle_lost(&mut self, tag: u32, failure: Failure, reason: &str, now_ns: u64) {
        let flight = self.flights.get_mut(tag);
        flight.times.done_ns = now_ns;
        let (what, times, client) = (flight.what, flight.times, flight.client);
        // Where there was no connection, nothing can have been done over it.
        if flight.may_be_done && failure != Failure::Connect {
            self.sessions.lost(client, &what, failure, times);
        } else {
            self.sessions.undone(client, &what, failure, times);
        }
        if self.may_tell(failure) {
            self.tell_failure(tag, failure, 0, reason.to_owned(), String::new());
        }
        let outcome = Outcome::Failed(failure);
        self.settle(tag, Judgement { outcome, status: 0, hits: None, body_bytes: 0 });
    }

    fn may_tell(&mut self, kind: Failure) -> bool {
        let told = &mut self.failures_told[kind as usize];
        *told += u32::from(*told < FAILURES_TOLD + 1);
        *told <= FAILURES_TOLD
    }

    fn tell_failure(
        &mut self,
        tag: u32,
        kind: Failure,
        status: u16,
        reason: String,
        reply: String,
    ) {
        let flight = self.flights.get(tag);
        let sample = FailureSample {
            at_s: flight.times.intended_ns.saturating_sub(self.start_ns) as f64 / 1e9,
            kind: kind.name().to_owned(),
            class: flight.what.class.to_string(),
            item: flight.what.item,
            status,
            reason,
            request: self.sessions.describe(&flight.what, &flight.request),
            reply,
        };
        // Whatever is told, an interval's memory may come back.
        let spare = (self.outbox)(Message::Failure(Box::new(sample)));
        self.spare = spare.or_else(|| self.spare.take());
    }

    /// The peer closed its side; `in_order` unless TLS was left open, as it is when somebody on the way cuts
    /// the connection.
    fn peer_closed(&mut self, key: u32, in_order: bool) {
        match self.connections[key as usize].state {
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
        let Some(mut codec) = self.connections[key as usize].codec.take() else { return };
        let fault = if self.connections[key as usize].under_way.is_empty() {
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
        self.connections[key as usize].codec = Some(codec);
        match fault {
            Some(fault) => self.lose(key, fault.failure(), fault_text(fault)),
            None => self.close_in_order(key),
        }
    }

    /// The connection broke.
    fn broken(&mut self, key: u32, error: NetError) {
        let reason = error.to_string();
        self.count_exhausted(Some(error));
        match self.connections[key as usize].state {
            State::Connecting => self.open_failed(key, Failure::Connect, &reason),
            State::Handshaking => self.open_failed(key, Failure::Tls, &reason),
            State::Open => {
                // A reset after the first bytes of a reply cut it short, also where an orderly close would
                // have completed it; before, it is a plain reset.
                let began = match self.connections[key as usize].codec.as_mut() {
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

/// Returns whether the target said anything in reply, be it cut or wrong.
const fn is_answered(outcome: Outcome) -> bool {
    !matches!(
        outcome,
        Outcome::Failed(Failure::Connect | Failure::Tls | Failure::Timeout | Failure::Reset)
    )
}

pub(super) const fn fault_text(fault: Fault) -> &'static str {
    fault.text()
}

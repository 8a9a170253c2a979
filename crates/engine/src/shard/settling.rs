//! From decoded to recorded: replies, failures and timeouts, each request's one end.

use super::Shard;
use super::books::{End, Message, Slow};
use super::connections::State;
use super::flight::NOWHERE;
use super::reason::Reason;
use crate::net::Net;
use plimsoll_core::clock::Clock;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::record::FailureSample;
use plimsoll_core::recorder::Times;
use plimsoll_core::secrets::without_remembered;
use plimsoll_wire::{Fault, Judgement, Protocol};

/// Number of times that a request is sent again that its peers vouch not to have looked at.
const RESENT_MAX: u8 = 16;

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Judges and records a complete reply.
    pub(super) fn reply(&mut self, key: u32, tag: u32, reply: &P::Reply<'_>, now_ns: u64) {
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
            && self.books.may_tell(kind)
        {
            let (reason, text) = self.sessions.explain(&what, reply);
            self.tell_failure(tag, kind, judgement.status, reason.into(), text);
        }
        if self.asks_server_time && judgement.outcome == Outcome::Ok {
            let measured = self.flights.get(tag).measured;
            self.books.server_time(measured, what.class, self.sessions.server_time(reply));
        }
        self.take_off(key, tag);
        let waited_ns = now_ns.saturating_sub(self.line.arrived_after_ns());
        let measured = self.flights.get(tag).measured;
        self.books.received(measured, waited_ns);
        self.settle(tag, judgement);
        self.agenda.client_goes_on(client, times.intended_ns, now_ns);
    }

    /// Writes the end of a request down and gives its slot back. Its `done_ns` has been set.
    fn settle(&mut self, tag: u32, judgement: Judgement) {
        let flight = self.flights.get(tag);
        let (what, times, measured) = (flight.what, flight.times, flight.measured);
        let response_ns = times.done_ns.saturating_sub(times.intended_ns);
        if measured && self.books.wants_slow(response_ns) {
            let text = without_remembered(self.sessions.describe(&what, &flight.request));
            let trace_id = self.sessions.trace_id(&flight.request);
            self.books.keep_slow(Slow { times, what, outcome: judgement.outcome, text, trace_id });
        }
        self.agenda.slot_is_freed(self.flights.len(), times.done_ns);
        self.books.ended(&End {
            client: flight.client,
            what,
            times,
            judgement,
            measured,
            on_kept_connection: flight.on_kept_connection,
            in_time: times.done_ns <= self.course.end_ns(),
        });
        self.flights.release(tag);
    }

    /// The peer gave up one request of a connection that goes on.
    pub(super) fn given_up(
        &mut self,
        key: u32,
        tag: u32,
        fault: Fault,
        unprocessed: bool,
        now_ns: u64,
    ) {
        self.take_off(key, tag);
        let flight = self.flights.get_mut(tag);
        if unprocessed && flight.resent < RESENT_MAX {
            flight.may_be_done = false;
            return self.wait_to_go_again(tag);
        }
        self.give_up(tag, fault.failure(), fault, now_ns);
    }

    /// Ends a request that has failed, and lets its client go on.
    pub(super) fn give_up<'r>(
        &mut self,
        tag: u32,
        failure: Failure,
        reason: impl Into<Reason<'r>>,
        now_ns: u64,
    ) {
        let flight = self.flights.get(tag);
        let (client, intended_ns) = (flight.client, flight.times.intended_ns);
        self.settle_lost(tag, failure, reason, now_ns);
        self.agenda.client_goes_on(client, intended_ns, now_ns);
    }

    /// Records a request that got no complete reply. The caller tells the schedule.
    pub(super) fn settle_lost<'r>(
        &mut self,
        tag: u32,
        failure: Failure,
        reason: impl Into<Reason<'r>>,
        now_ns: u64,
    ) {
        let flight = self.flights.get_mut(tag);
        flight.times.done_ns = now_ns;
        let (what, times, client) = (flight.what, flight.times, flight.client);
        // Where there was no connection, nothing can have been done over it, but perhaps over the one that it was lost with before.
        if flight.may_be_done && (failure != Failure::Connect || flight.retried) {
            self.sessions.lost(client, &what, failure, times);
        } else {
            self.sessions.undone(client, &what, failure, times);
        }
        if self.books.may_tell(failure) {
            self.tell_failure(tag, failure, 0, reason.into(), String::new());
        }
        let outcome = Outcome::Failed(failure);
        self.settle(tag, Judgement { outcome, status: 0, hits: None, body_bytes: 0 });
    }

    fn tell_failure(
        &mut self,
        tag: u32,
        kind: Failure,
        status: u16,
        reason: Reason<'_>,
        reply: String,
    ) {
        let flight = self.flights.get(tag);
        let sample = FailureSample {
            at_s: flight.times.intended_ns.saturating_sub(self.course.start_ns()) as f64 / 1e9,
            kind: kind.name().to_owned(),
            class: flight.what.class.to_string(),
            item: flight.what.item,
            status,
            reason: without_remembered(reason.text.into_owned()),
            cause: reason.cause,
            request: without_remembered(self.sessions.describe(&flight.what, &flight.request)),
            reply: without_remembered(reply),
        };
        self.books.tell(Message::Failure(Box::new(sample)));
    }

    /// Takes a request off its connection, wherever it stands there: thousands may be in flight on one.
    pub(super) fn take_off(&mut self, key: u32, tag: u32) {
        let place = self.flights.get(tag).place;
        if let Some(moved) = self.connections.get_mut(key).take_off(place, tag) {
            self.flights.get_mut(moved).place = place;
        }
    }

    /// Ends every request whose deadline has come.
    pub(super) fn expire(&mut self, now_ns: u64) {
        let mut from = 0;
        while let Some(tag) = self.flights.overdue(now_ns, from) {
            from = tag + 1;
            let key = self.flights.get(tag).connection;
            if key == NOWHERE {
                self.give_up_waiting(tag, now_ns);
                continue;
            }
            let connection = self.connections.get_mut(key);
            let waits = connection.opening_for() == Some(tag);
            if waits && connection.is_open() {
                connection.take_waiting();
                self.give_up(
                    tag,
                    Failure::Timeout,
                    "the connection took no request in time",
                    now_ns,
                );
            } else if waits {
                let handshaking = connection.state() == State::Handshaking;
                connection.stop_trying();
                let text = if handshaking { "no TLS in time" } else { "no connection in time" };
                self.open_failed(key, Failure::Timeout, text);
            } else {
                self.take_off(key, tag);
                self.give_up(tag, Failure::Timeout, "no complete reply in time", now_ns);
                self.cancel(key, tag);
            }
        }
        self.flights.scanned();
    }

    /// Ends a request that was to be sent again when its time is over.
    fn give_up_waiting(&mut self, tag: u32, now_ns: u64) {
        self.connections.again().remove(tag);
        self.give_up(tag, Failure::Timeout, "no connection took it again in time", now_ns);
    }

    /// Tells the peer that no one waits for a reply any more. Where the connection cannot go on without it,
    /// all that is in flight on it is lost.
    fn cancel(&mut self, key: u32, tag: u32) {
        let mut said = Vec::new();
        let codec = self.connections.get_mut(key).codec_mut();
        let was_full = codec.as_ref().is_some_and(|codec| self.protocol.capacity(codec) == 0);
        let goes_on = codec.is_some_and(|codec| self.protocol.cancel(codec, tag, &mut said));
        let written = goes_on && self.line.write(key, &said).is_ok();
        if goes_on && !written {
            return self.sending_failed(key);
        }
        if !goes_on {
            return self.lose(key, Failure::Reset, "closed after a timeout");
        }
        if self.connections.get(key).is_used_up(self.connections.keep_alive()) {
            return self.close_in_order(key);
        }
        if self.connections.has_room(key, &self.protocol) {
            if was_full {
                let now_ns = self.clock.now_ns();
                self.connections.get_mut(key).set_free_since(now_ns);
            }
            self.connections.give_back(key);
        }
    }
}

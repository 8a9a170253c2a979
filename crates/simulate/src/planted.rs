//! Defects that are planted in order to see that the judge finds them.

use crate::played::Played;
use plimsoll_core::clock::{Clock, VirtualClock};
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::{ClassPart, Interval};
use plimsoll_core::outcome::{Failure, Outcome, ServerTime};
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::UserTurn;
use plimsoll_wire::{Event, Fault, Judgement, Layer, Protocol, Sessions, Submission, Turn};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A defect of the kind that an engine, a codec or a workload can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planted {
    /// Everything is as it is.
    #[default]
    Nothing,
    /// The ledger counts an answer twice, in all their columns.
    CountedTwice,
    /// The ledger forgets a failed request, in all their columns.
    LostFailure,
    /// The ledger counts a failed request as a success.
    FailureAsSuccess,
    /// Response times are measured from the send and not from the intended start.
    FromTheSend,
    /// A failure's time is left out of its histogram.
    FailureWithoutTime,
    /// A reading of the clock is used for a millisecond.
    StaleClock,
    /// A reading of the clock is up to a tenth of a millisecond ahead.
    HastyClock,
    /// Sessions call every complete reply a success.
    Credulous,
    /// A codec gives an answer to another request in flight.
    SwappedAnswers,
    /// A codec sends some requests twice.
    SentTwice,
    /// An end is reported to the sessions twice.
    ToldTwice,
    /// The record differs from run to run.
    Irreproducible,
}

impl Planted {
    /// All defects.
    pub const ALL: [Planted; 12] = [
        Planted::CountedTwice,
        Planted::LostFailure,
        Planted::FailureAsSuccess,
        Planted::FromTheSend,
        Planted::FailureWithoutTime,
        Planted::StaleClock,
        Planted::HastyClock,
        Planted::Credulous,
        Planted::SwappedAnswers,
        Planted::SentTwice,
        Planted::ToldTwice,
        Planted::Irreproducible,
    ];

    /// The defect in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Planted::Nothing => "nothing",
            Planted::CountedTwice => "the ledger counts an answer twice, and balances",
            Planted::LostFailure => "the ledger forgets a failed request, and balances",
            Planted::FailureAsSuccess => "the ledger counts a failure as a success, and balances",
            Planted::FromTheSend => "response times are measured from the send",
            Planted::FailureWithoutTime => "the time of a failure is in no histogram",
            Planted::StaleClock => "a reading of the clock is used for a millisecond",
            Planted::HastyClock => "a reading of the clock is up to 0.1 ms ahead",
            Planted::Credulous => "every complete reply is a success",
            Planted::SwappedAnswers => "two answers on a connection are swapped",
            Planted::SentTwice => "some requests are sent twice",
            Planted::ToldTwice => "an end is reported to the sessions twice",
            Planted::Irreproducible => "the same seed gives another record",
        }
    }

    /// Changes what a run left behind, as an engine with this defect would.
    pub fn tamper(self, played: &mut Played) {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        match self {
            Planted::CountedTwice => change(played, |all, class, _| {
                let Some((value_ns, _)) = class.response.cells().next() else { return false };
                let service_ns = class.service.cells().next().map_or(value_ns, |(ns, _)| ns);
                class.record_ok(value_ns, service_ns);
                (class.ledger.sent, class.ledger.ok) = (class.ledger.sent + 1, class.ledger.ok + 1);
                all.ledger.scheduled += 1;
                (all.ledger.sent, all.ledger.ok) = (all.ledger.sent + 1, all.ledger.ok + 1);
                all.lag.record(0);
                true
            }),
            Planted::LostFailure => change(played, |all, class, kind| {
                class.failed = one_less(&class.failed);
                *class.ledger.failed.column(kind) -= 1;
                *all.ledger.failed.column(kind) -= 1;
                class.ledger.sent -= 1;
                (all.ledger.sent, all.ledger.scheduled) =
                    (all.ledger.sent - 1, all.ledger.scheduled - 1);
                all.lag = one_less(&all.lag);
                true
            }),
            Planted::FailureAsSuccess => change(played, |all, class, kind| {
                let Some((value_ns, _)) = class.failed.cells().next() else { return false };
                class.failed = one_less(&class.failed);
                class.record_ok(value_ns, value_ns);
                *class.ledger.failed.column(kind) -= 1;
                *all.ledger.failed.column(kind) -= 1;
                class.ledger.ok += 1;
                all.ledger.ok += 1;
                true
            }),
            Planted::FailureWithoutTime => change(played, |_, class, kind| {
                class.failed = one_less(&class.failed);
                class.ledger.failed.get(kind) > 0
            }),
            Planted::FromTheSend => {
                for interval in intervals(played) {
                    for class in &mut interval.classes {
                        class.response = class.service.clone();
                    }
                }
            }
            Planted::Irreproducible => played.over_ns += RUNS.fetch_add(1, Ordering::Relaxed) % 2,
            _ => {}
        }
    }
}

fn intervals(played: &mut Played) -> impl Iterator<Item = &mut Interval> {
    played.seconds.iter_mut().chain(std::iter::once(&mut played.end.rest))
}

/// Makes one change in the first interval in which it can be made: the counts as a whole, a class, and a kind of failure
/// that this class has (or any kind, if it needs none).
fn change(played: &mut Played, apply: impl Fn(&mut Interval, &mut ClassPart, Failure) -> bool) {
    for interval in intervals(played) {
        for number in 0..interval.classes.len() {
            let mut class = std::mem::take(&mut interval.classes[number]);
            let kinds = Failure::ALL.into_iter().find(|kind| class.ledger.failed.get(*kind) > 0);
            let changed = kinds.is_some_and(|kind| apply(interval, &mut class, kind));
            interval.classes[number] = class;
            if changed {
                return;
            }
        }
    }
}

fn one_less(histogram: &Histogram) -> Histogram {
    let mut less = Histogram::new();
    for (at, (value_ns, count)) in histogram.cells().enumerate() {
        less.record_many(value_ns, count - u64::from(at == 0));
    }
    less
}

/// The clock of a run; with [`Planted::StaleClock`] a reading is used for a millisecond, with [`Planted::HastyClock`] it is ahead.
#[derive(Clone, Debug)]
pub struct StageClock {
    clock: VirtualClock,
    stale: Option<Rc<Cell<u64>>>,
    is_hasty: bool,
}

/// By how much a clock is ahead at most, ns.
const AHEAD_NS: u64 = 100_000;

impl StageClock {
    /// A clock with the defect or without.
    #[must_use]
    pub fn new(clock: VirtualClock, planted: Planted) -> Self {
        let stale = (planted == Planted::StaleClock).then(Rc::default);
        Self { clock, stale, is_hasty: planted == Planted::HastyClock }
    }
}

impl Clock for StageClock {
    fn now_ns(&self) -> u64 {
        let now_ns = self.clock.now_ns();
        let now_ns = if self.is_hasty { now_ns.next_multiple_of(AHEAD_NS) } else { now_ns };
        let Some(stale) = &self.stale else { return now_ns };
        if now_ns >= stale.get() + 1_000_000 {
            stale.set(now_ns);
        }
        stale.get()
    }
}

/// A codec with a defect.
#[derive(Clone, Copy, Debug)]
pub struct Bent<P>(pub P, pub Planted);

/// The state of a connection of a [`Bent`] codec.
pub struct BentConn<C> {
    inner: C,
    /// The tag of a request in the engine, by its tag in the codec, where the two differ.
    swapped: BTreeMap<u32, u32>,
    in_flight: Vec<u32>,
    sent: u64,
}

impl<P: Protocol> Protocol for Bent<P> {
    type Conn = BentConn<P::Conn>;
    type Request = P::Request;
    type Reply<'a> = P::Reply<'a>;

    fn preamble(&self) -> &[u8] {
        self.0.preamble()
    }

    fn preamble_answered(&self, answer: u8) -> Result<Layer, &'static str> {
        self.0.preamble_answered(answer)
    }

    fn open(&self, out: &mut Vec<u8>) -> Self::Conn {
        let (swapped, in_flight) = (BTreeMap::new(), Vec::new());
        BentConn { inner: self.0.open(out), swapped, in_flight, sent: 0 }
    }

    fn is_ready(&self, conn: &Self::Conn) -> bool {
        self.0.is_ready(&conn.inner)
    }

    fn depth(&self) -> u32 {
        self.0.depth()
    }

    fn capacity(&self, conn: &Self::Conn) -> u32 {
        self.0.capacity(&conn.inner)
    }

    fn suits(&self, conn: &Self::Conn, request: &Self::Request) -> bool {
        self.0.suits(&conn.inner, request)
    }

    fn names_target(&self) -> bool {
        self.0.names_target()
    }

    fn submit(&self, conn: &mut Self::Conn, request: &Self::Request, tag: u32, out: &mut Vec<u8>) {
        let before = out.len();
        self.0.submit(&mut conn.inner, request, tag, out);
        if self.1 == Planted::SwappedAnswers {
            conn.in_flight.push(tag);
        }
        conn.sent += 1;
        if self.1 == Planted::SentTwice && conn.sent.is_multiple_of(7) {
            out.extend_from_within(before..);
        }
    }

    fn receive<'a>(
        &self,
        conn: &'a mut Self::Conn,
        input: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Event<'a, Self::Reply<'a>>, Fault> {
        let BentConn { inner, swapped, in_flight, .. } = conn;
        let swaps = self.1 == Planted::SwappedAnswers;
        Ok(match self.0.receive(inner, input, out)? {
            Event::Reply { tag, reply, consumed, reusable } => {
                let mut own = swapped.remove(&tag).unwrap_or(tag);
                let other = in_flight.iter().copied().find(|other| *other != own);
                if let Some(other) = other.filter(|_| swaps && !swapped.contains_key(&tag)) {
                    // What comes for the other one goes to this one.
                    swapped.insert(other, own);
                    own = other;
                }
                in_flight.retain(|tag| *tag != own);
                Event::Reply { tag: own, reply, consumed, reusable }
            }
            Event::GivenUp { tag, fault, unprocessed, consumed } => {
                let own = swapped.remove(&tag).unwrap_or(tag);
                in_flight.retain(|tag| *tag != own);
                Event::GivenUp { tag: own, fault, unprocessed, consumed }
            }
            Event::Part { tag, bytes, consumed } => {
                let own = swapped.get(&tag).copied().unwrap_or(tag);
                Event::Part { tag: own, bytes, consumed }
            }
            other => other,
        })
    }

    fn end<'a>(&self, conn: &'a mut Self::Conn) -> Result<Event<'a, Self::Reply<'a>>, Fault> {
        self.0.end(&mut conn.inner)
    }

    fn began(&self, conn: &Self::Conn, tag: u32) -> Option<bool> {
        self.0.began(&conn.inner, tag)
    }

    fn cancel(&self, conn: &mut Self::Conn, tag: u32, out: &mut Vec<u8>) -> bool {
        conn.in_flight.retain(|own| *own != tag);
        self.0.cancel(&mut conn.inner, tag, out)
    }
}

/// Sessions with a defect, around others.
pub struct Misled<S>(pub S, pub Planted);

impl<P: Protocol, S: Sessions<P>> Sessions<P> for Misled<S> {
    fn next(&mut self, client: u32, target: u32, request: &mut P::Request) -> Turn {
        self.0.next(client, target, request)
    }

    fn user(&mut self, client: u32, turn: UserTurn) {
        self.0.user(client, turn);
    }

    fn due_ns(&self) -> Option<u64> {
        self.0.due_ns()
    }

    fn judge(
        &mut self,
        client: u32,
        what: &Submission,
        reply: &P::Reply<'_>,
        times: Times,
    ) -> Judgement {
        let judgement = self.0.judge(client, what, reply, times);
        match self.1 {
            Planted::Credulous => Judgement { outcome: Outcome::Ok, ..judgement },
            Planted::ToldTwice if what.item % 50 == 49 => self.0.judge(client, what, reply, times),
            _ => judgement,
        }
    }

    fn asks_server_time(&self) -> bool {
        self.0.asks_server_time()
    }

    fn server_time(&self, reply: &P::Reply<'_>) -> ServerTime {
        self.0.server_time(reply)
    }

    fn lost(&mut self, client: u32, what: &Submission, failure: Failure, times: Times) {
        self.0.lost(client, what, failure, times);
    }

    fn undone(&mut self, client: u32, what: &Submission, failure: Failure, times: Times) {
        self.0.undone(client, what, failure, times);
    }

    fn again(&mut self, client: u32, what: &Submission, reply: &P::Reply<'_>, tries: u8) -> bool {
        self.0.again(client, what, reply, tries)
    }

    fn part(&mut self, client: u32, what: &Submission, bytes: &[u8], times: Times) -> bool {
        self.0.part(client, what, bytes, times)
    }

    fn is_full(&self) -> bool {
        self.0.is_full()
    }

    fn gather_ns(&self) -> u64 {
        self.0.gather_ns()
    }

    fn called(&mut self, now_ns: u64) -> u32 {
        self.0.called(now_ns)
    }

    fn wake_ns(&self) -> u64 {
        self.0.wake_ns()
    }

    fn finish(self: Box<Self>, now_ns: u64) {
        Box::new(self.0).finish(now_ns);
    }

    fn describe(&self, what: &Submission, request: &P::Request) -> String {
        self.0.describe(what, request)
    }

    fn explain(&self, what: &Submission, reply: &P::Reply<'_>) -> (String, String) {
        self.0.explain(what, reply)
    }
}

impl<P: crate::asker::Tongue> crate::asker::Tongue for Bent<P> {
    fn ask(request: &mut P::Request, serial: u64, rng: &mut plimsoll_core::rng::Rng) -> bool {
        P::ask(request, serial, rng)
    }

    fn said(reply: &P::Reply<'_>) -> (crate::asker::Said, u16) {
        P::said(reply)
    }
}

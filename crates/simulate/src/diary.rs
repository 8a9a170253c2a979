//! The client's diary: every request that sessions asked, and its one end.

use plimsoll_core::outcome::{Failure, Outcome, ServerTime};
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::UserTurn;
use plimsoll_wire::{Judgement, Protocol, Sessions, Submission, Turn};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The way the engine reported the end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A complete reply was judged.
    Judged,
    /// No complete reply: it may have been done.
    Lost,
    /// It was certainly not done.
    Undone,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The way it is counted.
    pub outcome: Outcome,
    /// Its times.
    pub times: Times,
    /// The way it was reported.
    pub way: Way,
}

/// One request from the client's side; its number is its place in the diary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its client.
    pub client: u32,
    /// Its target.
    pub target: u32,
    /// The submission of the sessions.
    pub what: Submission,
    /// Its user, in the model of users.
    pub turn: Option<UserTurn>,
    /// Its end; none if the run was cut off.
    pub end: Option<End>,
}

/// All requests in the order in which they were asked.
#[derive(Debug, Default)]
pub struct Diary {
    /// The requests.
    pub asked: Vec<Asked>,
    in_flight: BTreeMap<u32, u32>,
    all_in_flight: u32,
    /// Most requests in flight at a time.
    pub most_in_flight: u32,
    /// Most requests of one client in flight at a time.
    pub most_of_one_client: u32,
    /// Breaches of the contract between engine and sessions.
    pub offences: Vec<String>,
    /// Number of times that sessions were finished.
    pub finished: u32,
}

impl Diary {
    /// A diary that the sessions and the judge share.
    #[must_use]
    pub fn shared() -> Rc<RefCell<Self>> {
        Rc::default()
    }

    /// The number of the next request.
    #[must_use]
    pub fn next_serial(&self) -> u64 {
        self.asked.len() as u64
    }

    fn offence(&mut self, what: String) {
        if self.offences.len() < 5 {
            self.offences.push(what);
        }
    }

    fn begin(&mut self, client: u32, target: u32, what: Submission, turn: Option<UserTurn>) {
        self.asked.push(Asked { client, target, what, turn, end: None });
        let own = self.in_flight.entry(client).or_default();
        *own += 1;
        self.most_of_one_client = self.most_of_one_client.max(*own);
        self.all_in_flight += 1;
        self.most_in_flight = self.most_in_flight.max(self.all_in_flight);
    }

    fn end(&mut self, client: u32, serial: u64, end: End) {
        let Some(asked) = self.asked.get_mut(serial as usize) else {
            return self.offence(format!("request {serial} has ended and was never asked"));
        };
        let (owner, before) = (asked.client, asked.end);
        asked.end = Some(end);
        if owner != client {
            self.offence(format!(
                "the end of request {serial} was reported to client {client}, not {owner}"
            ));
        }
        if let Some(before) = before {
            return self
                .offence(format!("request {serial} has ended twice: {before:?} and {end:?}"));
        }
        self.all_in_flight -= 1;
        if let Some(own) = self.in_flight.get_mut(&owner) {
            *own -= 1;
        }
    }
}

/// Sessions whose every request and end is written into a diary.
pub struct Watched<S, R> {
    inner: Box<S>,
    diary: Rc<RefCell<Diary>>,
    /// Writes the number of a request into it, where the sessions do not.
    stamp: fn(&mut R, u64),
    turn: Option<UserTurn>,
}

impl<S, R> Watched<S, R> {
    /// Watches sessions. `stamp` writes the number of each request into it.
    pub fn new(inner: S, diary: Rc<RefCell<Diary>>, stamp: fn(&mut R, u64)) -> Self {
        Self { inner: Box::new(inner), diary, stamp, turn: None }
    }

    fn own(&self, what: &Submission) -> Submission {
        let diary = self.diary.borrow();
        diary.asked.get(what.item as usize).map_or(*what, |asked| asked.what)
    }

    fn ended(&mut self, client: u32, what: &Submission, end: End) {
        self.diary.borrow_mut().end(client, what.item, end);
    }
}

impl<P: Protocol, S: Sessions<P>> Sessions<P> for Watched<S, P::Request> {
    fn next(&mut self, client: u32, target: u32, request: &mut P::Request) -> Turn {
        let turn = self.turn.take();
        match self.inner.next(client, target, request) {
            Turn::Ask(what) => {
                let mut diary = self.diary.borrow_mut();
                let serial = diary.next_serial();
                (self.stamp)(request, serial);
                diary.begin(client, target, what, turn);
                Turn::Ask(Submission { item: serial, ..what })
            }
            other => other,
        }
    }

    fn user(&mut self, client: u32, turn: UserTurn) {
        self.turn = Some(turn);
        self.inner.user(client, turn);
    }

    fn due_ns(&self) -> Option<u64> {
        self.inner.due_ns()
    }

    fn judge(
        &mut self,
        client: u32,
        what: &Submission,
        reply: &P::Reply<'_>,
        times: Times,
    ) -> Judgement {
        let own = self.own(what);
        let judgement = self.inner.judge(client, &own, reply, times);
        self.ended(client, what, End { outcome: judgement.outcome, times, way: Way::Judged });
        judgement
    }

    fn asks_server_time(&self) -> bool {
        self.inner.asks_server_time()
    }

    fn server_time(&self, reply: &P::Reply<'_>) -> ServerTime {
        self.inner.server_time(reply)
    }

    fn trace_id(&self, request: &P::Request) -> Option<String> {
        self.inner.trace_id(request)
    }

    fn lost(&mut self, client: u32, what: &Submission, failure: Failure, times: Times) {
        let own = self.own(what);
        self.inner.lost(client, &own, failure, times);
        self.ended(client, what, End { outcome: Outcome::Failed(failure), times, way: Way::Lost });
    }

    fn undone(&mut self, client: u32, what: &Submission, failure: Failure, times: Times) {
        let own = self.own(what);
        self.inner.undone(client, &own, failure, times);
        self.ended(
            client,
            what,
            End { outcome: Outcome::Failed(failure), times, way: Way::Undone },
        );
    }

    fn again(&mut self, client: u32, what: &Submission, reply: &P::Reply<'_>, tries: u8) -> bool {
        let own = self.own(what);
        self.inner.again(client, &own, reply, tries)
    }

    fn part(&mut self, client: u32, what: &Submission, bytes: &[u8], times: Times) -> bool {
        let own = self.own(what);
        self.inner.part(client, &own, bytes, times)
    }

    fn is_full(&self) -> bool {
        self.inner.is_full()
    }

    fn gather_ns(&self) -> u64 {
        self.inner.gather_ns()
    }

    fn called(&mut self, now_ns: u64) -> u32 {
        self.inner.called(now_ns)
    }

    fn wake_ns(&self) -> u64 {
        self.inner.wake_ns()
    }

    fn finish(self: Box<Self>, now_ns: u64) {
        self.diary.borrow_mut().finished += 1;
        self.inner.finish(now_ns);
    }

    fn describe(&self, what: &Submission, request: &P::Request) -> String {
        self.inner.describe(&self.own(what), request)
    }

    fn explain(&self, what: &Submission, reply: &P::Reply<'_>) -> (String, String) {
        self.inner.explain(&self.own(what), reply)
    }
}

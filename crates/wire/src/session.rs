//! The contract between the engine and a workload: sessions that ask and judge.

use crate::protocol::{Protocol, Submission};
use plimsoll_core::outcome::{Failure, Outcome, ServerTime};
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::UserTurn;

/// The sessions of one shard: what its clients ask, and what they make of the answers.
///
/// Called on the hot walk: implementations write requests into the buffers they are given and do not
/// allocate, lock or format for an ordinary request.
pub trait Sessions<P: Protocol> {
    /// Writes the next request of `client` (0 in models without clients) to the target with this index.
    fn next(&mut self, client: u32, target: u32, request: &mut P::Request) -> Turn;

    /// Announces the user of the request that [`next`](Sessions::next) makes, and the index of the request within the user's
    /// session: called just before it in the users model. `client` is the user's slot, which another user takes after this one has
    /// left. Sessions that wrap others pass it on.
    fn user(&mut self, _client: u32, _turn: UserTurn) {}

    /// Returns the intended start of the request that [`next`](Sessions::next) has just written, ns, if it differs from the
    /// time at which its client became free: response times count from here.
    fn due_ns(&self) -> Option<u64> {
        None
    }

    /// Judges a complete reply: a good status is not yet a success.
    fn judge(
        &mut self,
        client: u32,
        what: &Submission,
        reply: &P::Reply<'_>,
        times: Times,
    ) -> Judgement;

    /// Returns true if replies are asked for the server's own time. It is read once, before the first request.
    fn asks_server_time(&self) -> bool {
        false
    }

    /// Returns the server's own time of a reply that was judged a success, where that was asked for.
    fn server_time(&self, _reply: &P::Reply<'_>) -> ServerTime {
        ServerTime::Missing
    }

    /// Returns the trace id of a request that has one: 32 hexadecimal digits.
    fn trace_id(&self, _request: &P::Request) -> Option<String> {
        None
    }

    /// Called when a request failed without a complete reply: the target may have done it.
    fn lost(&mut self, client: u32, what: &Submission, failure: Failure, times: Times);

    /// Called when a request failed that the target has certainly not done: no byte of it was passed to a connection, or the
    /// target itself confirmed it. The default implementation calls [`lost`](Sessions::lost).
    fn undone(&mut self, client: u32, what: &Submission, failure: Failure, times: Times) {
        self.lost(client, what, failure, times);
    }

    /// Returns whether a complete reply says that the target did nothing and the request must be sent again, as one request with
    /// one response time. Called before [`judge`](Sessions::judge), which is called for the last reply only; `tries` replies
    /// were returned this way before. The request's time continues.
    fn again(
        &mut self,
        _client: u32,
        _what: &Submission,
        _reply: &P::Reply<'_>,
        _tries: u8,
    ) -> bool {
        false
    }

    /// Receives a piece of a reply's body as it arrives, if the request asked for that; `times.done_ns` is now. Returns whether
    /// more of it is wanted: a piece of a reply that is known to be of no use does not extend the timeout.
    fn part(&mut self, _client: u32, _what: &Submission, _bytes: &[u8], _times: Times) -> bool {
        true
    }

    /// Returns whether nothing should be received now, because the output is full. The engine leaves it to the kernel,
    /// and so in the end to the target, until this says no; that time counts for no request.
    fn is_full(&self) -> bool {
        false
    }

    /// Returns how long more of the replies may gather before they are read, ns; 0 reads them as they come.
    fn gather_ns(&self) -> u64 {
        0
    }

    /// Returns the number of clients that may continue, of those that pause until they are called. Called after every batch of
    /// completions, and at [`wake_ns`](Sessions::wake_ns).
    fn called(&mut self, _now_ns: u64) -> u32 {
        0
    }

    /// Returns the time at which [`called`](Sessions::called) must be called although nothing arrives, ns.
    fn wake_ns(&self) -> u64 {
        u64::MAX
    }

    /// Ends the sessions of a shard: no request follows, and those in flight get no answer any more. The engine calls
    /// this exactly once for a shard that has begun, however that ends. The counts go to whoever made
    /// the sessions, over a channel of their own type.
    fn finish(self: Box<Self>, _now_ns: u64) {}

    /// The beginning of a request's text, for samples of slow and failed requests (at most 500 bytes).
    fn describe(&self, what: &Submission, request: &P::Request) -> String;

    /// Reason why the reply was refused and how it began, for samples of failures.
    fn explain(&self, what: &Submission, reply: &P::Reply<'_>) -> (String, String);
}

/// A pause that ends when [`Sessions::called`] says so.
pub const UNTIL_CALLED: u64 = u64::MAX;

/// The next step of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It sends this request.
    Ask(Submission),
    /// It has no request before this time, ns; [`UNTIL_CALLED`] pauses until the sessions call.
    Rest {
        /// The time of its next request.
        until_ns: u64,
    },
    /// It has no more requests.
    Exhausted,
}

/// A workload's judgement of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The way it is counted.
    pub outcome: Outcome,
    /// The reply's status code; 0 where the protocol has none.
    pub status: u16,
    /// The number of hits in the reply, if it has one.
    pub hits: Option<u64>,
    /// Body bytes as transferred.
    pub body_bytes: u64,
}

//! The contract between the engine and a workload: sessions that ask and judge.

use crate::protocol::{Protocol, Submission};
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::UserTurn;

/// The sessions of one shard: what its clients ask, and what they make of the answers.
///
/// Called on the hot walk: implementations write requests into the buffers they are given and do not
/// allocate, lock or format for an ordinary request.
pub trait Sessions<P: Protocol> {
    /// Writes the next request of `client` (0 in models without clients) to the target with this index.
    fn next(&mut self, client: u32, target: u32, request: &mut P::Request) -> Turn;

    /// Says whose request [`next`](Sessions::next) is asked for, and the how manieth of that user: called just before it
    /// in models of users. `client` is the user's place, which another user takes after this one has left. Sessions
    /// that wrap others hand it on.
    fn user(&mut self, _client: u32, _turn: UserTurn) {}

    /// When the request that [`next`](Sessions::next) has just written was due, ns, where that is not when its client
    /// could ask: response times count from here.
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

    /// Learns that a request failed without a complete reply: nobody knows whether the target has done it.
    fn lost(&mut self, client: u32, what: &Submission, failure: Failure, times: Times);

    /// Learns that a request failed which the target has surely not done: no byte of it was handed to a connection, or the
    /// target itself vouched for it. Who makes no difference hears of [`lost`](Sessions::lost).
    fn undone(&mut self, client: u32, what: &Submission, failure: Failure, times: Times) {
        self.lost(client, what, failure, times);
    }

    /// Whether a complete reply says that the target did nothing and shall be asked the same once more, as one request with
    /// one response time. Asked before [`judge`](Sessions::judge), which hears only of the last reply; `tries` replies
    /// were sent back so before. The request's time goes on.
    fn again(
        &mut self,
        _client: u32,
        _what: &Submission,
        _reply: &P::Reply<'_>,
        _tries: u8,
    ) -> bool {
        false
    }

    /// Takes a piece of a reply's body as it arrives, where the request asked for that; `times.done_ns` is now.
    fn part(&mut self, _client: u32, _what: &Submission, _bytes: &[u8], _times: Times) {}

    /// Returns whether nothing should be received now, because the output is full. The engine leaves it to the kernel,
    /// and so in the end to the target, until this says no; that time counts for no request.
    fn is_full(&self) -> bool {
        false
    }

    /// Returns how long more of the replies may gather before they are read, ns; 0 reads them as they come.
    fn gather_ns(&self) -> u64 {
        0
    }

    /// How many of the clients that rest until they are called may ask now. Asked after every batch of
    /// completions, and when [`wake_ns`](Sessions::wake_ns) has come.
    fn called(&mut self, _now_ns: u64) -> u32 {
        0
    }

    /// When [`called`](Sessions::called) may have another answer although nothing arrives, ns.
    fn wake_ns(&self) -> u64 {
        u64::MAX
    }

    /// Ends the sessions of a shard: no request follows, and those in flight get no answer any more. The engine calls
    /// this exactly once for a shard that has begun, however that ends. What was counted goes to whoever made
    /// the sessions, over a channel of their own type.
    fn finish(self: Box<Self>, _now_ns: u64) {}

    /// The beginning of a request's text, for samples of slow and failed requests (at most 500 bytes).
    fn describe(&self, what: &Submission, request: &P::Request) -> String;

    /// Why the reply was refused and how it began, for samples of failures.
    fn explain(&self, what: &Submission, reply: &P::Reply<'_>) -> (String, String);
}

/// A rest that ends when [`Sessions::called`] says so.
pub const UNTIL_CALLED: u64 = u64::MAX;

/// What a client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It asks.
    Ask(Submission),
    /// It has nothing to ask before this time, ns; [`UNTIL_CALLED`] rests until the sessions call for more.
    Rest {
        /// When it asks again.
        until_ns: u64,
    },
    /// It has nothing left to ask.
    Exhausted,
}

/// What a workload makes of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// How it is counted.
    pub outcome: Outcome,
    /// The reply's status code; 0 where the protocol has none.
    pub status: u16,
    /// How many hits the reply told of, if it did.
    pub hits: Option<u64>,
    /// Body bytes as transferred.
    pub body_bytes: u64,
}

//! The contract between the engine and a workload: sessions that ask and judge.

use crate::protocol::{Protocol, Submission};
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;

/// The sessions of one shard: what its clients ask, and what they make of the answers.
///
/// Called on the hot walk: implementations write requests into the buffers they are given and do not
/// allocate, lock or format for an ordinary request.
pub trait Sessions<P: Protocol> {
    /// Writes the next request of `client` (0 in models without clients) to the target with this index.
    fn next(&mut self, client: u32, target: u32, request: &mut P::Request) -> Turn;

    /// Judges a complete reply: a good status is not yet a success.
    fn judge(
        &mut self,
        client: u32,
        what: &Submission,
        reply: &P::Reply<'_>,
        times: Times,
    ) -> Judgement;

    /// Learns that a request failed without a complete reply.
    fn lost(&mut self, client: u32, what: &Submission, failure: Failure, times: Times);

    /// The beginning of a request's text, for samples of slow and failed requests (at most 500 bytes).
    fn describe(&self, what: &Submission, request: &P::Request) -> String;

    /// Why the reply was refused and how it began, for samples of failures.
    fn explain(&self, what: &Submission, reply: &P::Reply<'_>) -> (String, String);
}

/// What a client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It asks.
    Ask(Submission),
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

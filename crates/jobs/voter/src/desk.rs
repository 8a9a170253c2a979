//! Common parts of the sessions of all protocols: whose turn it is, and how answers are counted.

use super::ballots::Ballot;
use super::shared::{Seen, Voting, add, raise};
use super::tally::VoterTally;
use super::tune::{TunedLatency, Tuner};
use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::histogram::Run;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::Slice;
use plimsoll_wire::{Submission, Turn, UNTIL_CALLED};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// Answer of a database to a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is written; or a row is right, where no one votes.
    Accepted,
    /// The contestant is unknown.
    Contestant,
    /// That telephone has voted as often as it may.
    Limit,
}

impl Answer {
    /// From the code that `Vote` returns.
    pub(super) const fn of_code(code: i64) -> Option<Self> {
        match code {
            0 => Some(Answer::Accepted),
            1 => Some(Answer::Contestant),
            2 => Some(Answer::Limit),
            _ => None,
        }
    }
}

/// The ledger of one shard.
#[derive(Debug)]
pub(super) struct Desk {
    voting: Arc<Voting>,
    shard: u32,
    slice: Slice,
    /// Calls begun.
    asked: u64,
    under_way: u32,
    tuner: Option<Tuner>,
    tally: VoterTally,
    /// The last of the servers' times that are not in the tally yet.
    server_run: Run,
    /// Takes the tally at the end.
    counted: Sender<VoterTally>,
}

impl Desk {
    /// That of shard `shard` of `shards`, which sends its tally to `counted` at the end.
    pub(super) fn new(
        voting: Arc<Voting>,
        shard: u32,
        shards: u32,
        counted: Sender<VoterTally>,
    ) -> Self {
        let settings = &voting.settings;
        let most = settings.under_way_max;
        let tuner = settings.tune.clone().map(|goal| Tuner::new(goal, most, shards));
        let tuner = match settings.held {
            Some(under_way) => tuner.map(|tuner| tuner.held(under_way, shard, shards)),
            None => tuner,
        };
        let slice = settings.slice.cut(shard, shards.max(1));
        Self {
            shard,
            slice,
            asked: 0,
            under_way: 0,
            tuner,
            tally: VoterTally::default(),
            server_run: Run::default(),
            counted,
            voting,
        }
    }

    fn seen(&self) -> &Seen {
        &self.voting.seen[self.shard as usize]
    }

    /// Returns this shard's slice of all votes of the key range.
    pub(super) const fn slice(&self) -> Slice {
        self.slice
    }

    /// Returns the number of the next call, or the reason for none now.
    #[inline]
    pub(super) fn turn(&mut self) -> Turn {
        if self.voting.is_stopped() {
            return Turn::Exhausted;
        }
        if let Some(tuner) = &mut self.tuner
            && self.under_way >= tuner.allowed()
        {
            tuner.full();
            return Turn::Rest { until_ns: UNTIL_CALLED };
        }
        if self.asked == 0 {
            self.voting.shard_begins();
        }
        let item = self.slice.global(self.asked);
        self.asked += 1;
        self.under_way += 1;
        self.tally.sent += 1;
        add(&self.seen().sent, 1);
        // What is not known to be undone must not be done twice.
        Turn::Ask(Submission { class: 0, item, idempotent: false })
    }

    /// The vote with this number.
    #[inline]
    pub(super) fn ballot(&self, item: u64) -> Ballot {
        self.voting.ballots.ballot(item)
    }

    /// Number of times that a telephone may vote.
    pub(super) fn max_votes(&self) -> i64 {
        i64::from(self.voting.settings.game.max_votes)
    }

    /// Number of resting clients that may send again now.
    pub(super) fn called(&self) -> u32 {
        if self.voting.is_stopped() {
            return u32::MAX;
        }
        self.tuner.as_ref().map_or(0, |tuner| tuner.allowed().saturating_sub(self.under_way))
    }

    /// Returns true if a call that was rolled back is sent once more, after this many times; if so, it is counted.
    pub(super) fn again(&mut self, tries: u8) -> bool {
        let again = tries < self.voting.settings.retries && !self.voting.is_stopped();
        if again {
            self.tally.retries += 1;
            add(&self.seen().retries, 1);
        }
        again
    }

    /// The database has answered; `server_ms` is what it says of its own time.
    #[inline]
    pub(super) fn answered(
        &mut self,
        answer: Answer,
        server_ms: Option<i32>,
        times: Times,
    ) -> Outcome {
        let took_ns = times.done_ns.saturating_sub(times.intended_ns);
        let server_ms = server_ms.map(|ms| u64::try_from(ms).unwrap_or(0));
        let seen = &self.voting.seen[self.shard as usize];
        let (count, counter) = match answer {
            Answer::Accepted => (&mut self.tally.accepted, &seen.accepted),
            Answer::Contestant => (&mut self.tally.rejected.contestant, &seen.rejected_contestant),
            Answer::Limit => (&mut self.tally.rejected.limit, &seen.rejected_limit),
        };
        *count += 1;
        add(counter, 1);
        add(&seen.client_sum_ns, took_ns);
        raise(&seen.client_max_ns, took_ns);
        if let Some(ms) = server_ms {
            self.server_run.record(ms * MILLISECOND_NS, &mut self.tally.server);
            add(&seen.server_sum_ms, ms);
            raise(&seen.server_max_ms, ms);
        }
        self.ended(Some((took_ns, server_ms.unwrap_or(0) * MILLISECOND_NS)), times.done_ns);
        Outcome::Ok
    }

    /// The call was surely not done, for this reason.
    pub(super) fn refused(&mut self, reason: &str, times: Times) -> Outcome {
        self.tally.error(reason);
        self.failed(times)
    }

    /// It is unknown whether the call was done.
    pub(super) fn unknown(&mut self, times: Times) -> Outcome {
        self.tally.unknown += 1;
        add(&self.seen().unknown, 1);
        self.failed(times)
    }

    /// A call failed without a reply; it was surely not done where that is known.
    pub(super) fn lost(&mut self, failure: Failure, undone: bool, times: Times) {
        if undone {
            self.refused(undone_text(failure), times);
        } else {
            self.unknown(times);
        }
    }

    fn failed(&mut self, times: Times) -> Outcome {
        add(&self.seen().failed, 1);
        self.ended(None, times.done_ns);
        Outcome::Failed(Failure::App)
    }

    /// A call has ended, in these times where it was answered: ours and the server's.
    fn ended(&mut self, took_ns: Option<(u64, u64)>, now_ns: u64) {
        self.under_way -= 1;
        let Some(tuner) = &mut self.tuner else { return };
        let took_ns = took_ns.map(|(client_ns, server_ns)| match tuner.goal().latency {
            TunedLatency::Client => client_ns,
            TunedLatency::Server => server_ns,
        });
        let late = tuner.ended(took_ns, now_ns);
        let (allowed, settled) = (tuner.allowed(), tuner.retreats() > 0);
        self.tally.trace.ended(now_ns, late, allowed, settled);
        self.voting.seen[self.shard as usize]
            .allowed
            .store(u64::from(allowed), std::sync::atomic::Ordering::Relaxed);
    }

    /// Hands over the tally. Calls in flight when the run was cut off may have been done.
    pub(super) fn finish(mut self) {
        self.server_run.flush(&mut self.tally.server);
        self.tally.unknown += u64::from(self.under_way);
        add(&self.seen().unknown, u64::from(self.under_way));
        // The receiver is gone only if the benchmark failed to start.
        let _ = self.counted.send(self.tally);
    }
}

/// Text for a call that was never sent, by its failure.
const fn undone_text(failure: Failure) -> &'static str {
    match failure {
        Failure::Connect => "not sent: no connection",
        Failure::Tls => "not sent: no TLS",
        Failure::Timeout => "not sent: no connection in time",
        _ => "not sent: the connection broke before",
    }
}

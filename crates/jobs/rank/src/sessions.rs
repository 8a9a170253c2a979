//! Requests to a ranking server, in FeedSim's frames.

use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::rng::{Rng, derive_seed};
use plimsoll_core::schedule::Slice;
use plimsoll_wire::rank::{KIND_FAILED, KIND_RANK, KIND_REFUSED, Rank, Reply, Request};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use std::sync::Arc;

/// Bytes of FeedSim's request, which the server reads and does not look at.
pub const PAYLOAD_BYTES: usize = 3000;

/// The payload of every request of a run: random letters and digits, the same for the same seed.
#[must_use]
pub fn payload(seed: u64) -> Arc<Vec<u8>> {
    const SIGNS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut rng = Rng::new(derive_seed(seed, "rank payload"));
    Arc::new((0..PAYLOAD_BYTES).map(|_| SIGNS[rng.below(62) as usize]).collect())
}

/// The sessions of one shard. Each target is a class of its own, so that instances can be distinguished.
pub struct RankSessions {
    payload: Arc<Vec<u8>>,
    classes: u16,
    next_id: u64,
    step: u64,
}

impl RankSessions {
    /// Sessions of one shard, by its slice of all requests, that ask `targets` servers.
    #[must_use]
    pub fn new(payload: Arc<Vec<u8>>, targets: u16, slice: Slice) -> Self {
        let (next_id, step) = (slice.index.into(), slice.of.into());
        Self { payload, classes: targets.max(1), next_id, step }
    }
}

impl Sessions<Rank> for RankSessions {
    fn next(&mut self, _client: u32, target: u32, request: &mut Request) -> Turn {
        request.request_id = self.next_id;
        request.start_time_ns = 0;
        request.keep = false;
        request.payload.clone_from(&self.payload);
        self.next_id += self.step;
        let class = (target % u32::from(self.classes)) as u16;
        Turn::Ask(Submission { class, item: request.request_id, idempotent: true })
    }

    fn judge(&mut self, _: u32, _: &Submission, reply: &Reply<'_>, _: Times) -> Judgement {
        let good = reply.header.kind == KIND_RANK && reply.header.payload_bytes > 0;
        Judgement {
            outcome: if good { Outcome::Ok } else { Outcome::Failed(Failure::App) },
            status: 0,
            hits: None,
            body_bytes: u64::from(reply.header.payload_bytes),
        }
    }

    fn lost(&mut self, _: u32, _: &Submission, _: Failure, _: Times) {}

    fn describe(&self, what: &Submission, request: &Request) -> String {
        format!("rank request {} of {} bytes", what.item, request.payload.len())
    }

    fn explain(&self, _: &Submission, reply: &Reply<'_>) -> (String, String) {
        let why = match reply.header.kind {
            KIND_RANK => "the reply is empty",
            KIND_REFUSED => "the server rejected the request: too many are in flight",
            KIND_FAILED => "the server could not rank",
            _ => "the reply has an unknown kind",
        };
        let shown = format!("kind {}, {} bytes", reply.header.kind, reply.header.payload_bytes);
        (why.to_owned(), shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_engine::sim::parts::{any_scenario, asked, difference, in_parts};
    use plimsoll_job::prepare::plan_of;

    #[test]
    fn the_requests_of_all_parts_are_those_of_one_process() {
        for seed in 0..100 {
            let mut rng = Rng::new(seed);
            let scenario = any_scenario(seed);
            let (parts, threads) = (1 + rng.below(5) as u32, 1 + rng.below(3) as u32);
            let payload = payload(scenario.seed);
            let part = |own: plimsoll_core::scenario::Scenario| {
                let one = |slice| RankSessions::new(payload.clone(), 1, slice);
                let one = |slice| Box::new(one(slice)) as Box<dyn Sessions<Rank> + Send>;
                let plan = plan_of(&own, Vec::new(), None, 1);
                let sessions = own.shards().map(one).collect();
                asked(&plan, sessions, |request| request.request_id.to_string()).unwrap()
            };
            let union = |n, m| in_parts(&scenario, n, m).flat_map(part).collect();
            let difference = difference(union(parts, threads), union(1, parts * threads));
            assert_eq!(difference, None, "seed {seed}: {scenario:?}");
        }
    }
}

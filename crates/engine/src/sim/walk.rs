//! A shard's walk without a network: every request that its schedule makes due and its sessions write, on virtual time.
//!
//! Every request is answered after a time that follows from its intended start, whatever the number of connections. The walk shows
//! which requests a plan stands for, such as those of a run in parts beside those of the whole.

use crate::shard::ShardPlan;
use plimsoll_core::outcome::Failure;
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::{ModelError, Next, Schedule};
use plimsoll_wire::{Protocol, Sessions, Submission, Turn};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Requests in flight, that of the next answer first: the time of its answer, its place in the walk, and its client.
type UnderWay = BinaryHeap<Reverse<(u64, u64, u32)>>;

/// One walk.
pub struct Walk<'a, P: Protocol> {
    sessions: &'a mut dyn Sessions<P>,
    schedule: Schedule,
    plan: &'a ShardPlan,
    /// Response time of a request by its intended start.
    answer_ns: &'a dyn Fn(u64) -> u64,
    under_way: UnderWay,
    /// Submission and times of each request.
    asked: Vec<(Submission, Times)>,
}

impl<'a, P: Protocol> Walk<'a, P> {
    /// The walk of a plan that [`ShardPlan::cut`] made for one shard.
    ///
    /// # Errors
    /// A load model that cannot be run.
    pub fn new(
        plan: &'a ShardPlan,
        sessions: &'a mut dyn Sessions<P>,
        answer_ns: &'a dyn Fn(u64) -> u64,
    ) -> Result<Self, ModelError> {
        let schedule = Schedule::start(&plan.model, plan.slice, plan.limits, plan.seed, 0)?;
        let (under_way, asked) = (UnderWay::new(), Vec::new());
        Ok(Self { sessions, schedule, plan, answer_ns, under_way, asked })
    }

    /// Goes on until the end of the schedule, or until `most` requests were made. Each goes to `take`, with its intended
    /// start.
    pub fn run(mut self, most: usize, mut take: impl FnMut(u64, &P::Request)) {
        let (mut now_ns, mut request) = (0, P::Request::default());
        while self.asked.len() < most {
            self.answer(now_ns);
            self.schedule.see_backlog(self.under_way.len() as u64, now_ns);
            let answer_ns = self.under_way.peek().map(|Reverse(next)| next.0);
            now_ns = match self.schedule.next(now_ns) {
                Next::Send { intended_ns, client } => {
                    if self.send(client, (intended_ns, now_ns), &mut request) {
                        take(intended_ns, &request);
                    }
                    now_ns
                }
                Next::Wait { until_ns } => answer_ns.map_or(until_ns, |ns| ns.min(until_ns)),
                Next::Blocked => match answer_ns {
                    Some(answer_ns) => answer_ns,
                    None => return,
                },
                Next::Done => return,
            };
        }
    }

    /// Lets everything be answered that is due.
    fn answer(&mut self, now_ns: u64) {
        while let Some(&Reverse((done_ns, place, client))) = self.under_way.peek() {
            if done_ns > now_ns {
                return;
            }
            self.under_way.pop();
            let (what, times) = self.asked[place as usize];
            // The target is not part of the walk: no session learns a reply.
            self.sessions.lost(client, &what, Failure::Timeout, Times { done_ns, ..times });
            self.schedule.ended(client, times.intended_ns, done_ns);
        }
    }

    /// Has a request written; false if there is none.
    fn send(
        &mut self,
        client: u32,
        (intended_ns, now_ns): (u64, u64),
        request: &mut P::Request,
    ) -> bool {
        let targets = self.plan.targets.len().max(1) as u64;
        let target = self.plan.slice.global(client.into()) % targets;
        if let Some(turn) = self.schedule.user_turn(client) {
            self.sessions.user(client, turn);
        }
        match self.sessions.next(client, target as u32, request) {
            Turn::Ask(what) => {
                let done_ns = now_ns + (self.answer_ns)(intended_ns);
                self.under_way.push(Reverse((done_ns, self.asked.len() as u64, client)));
                self.asked.push((what, Times { intended_ns, sent_ns: now_ns, ..Times::default() }));
                true
            }
            Turn::Rest { .. } | Turn::Exhausted => {
                self.schedule.withdraw(client);
                false
            }
        }
    }
}

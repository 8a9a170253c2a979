//! The crew of a search: this process, or the agents of a run.
//!
//! Every process of a run follows the same search. The coordinator leads it: its orders go to all agents, and what they saw
//! together goes back to them, so that all take the next step from the same counts.

use super::Keeping;
use super::phase::{FromStart, load_of};
use anyhow::{Result, bail};
use plimsoll_core::clock::{MILLISECOND_NS, now_ns};
use plimsoll_core::interval::Interval;
use plimsoll_core::seek::plant::{Pace, Trial, Window};
use plimsoll_engine::plant::{Brief, Crew, Lookout, Shift, pace_of};
use plimsoll_engine::run::Driven;
use plimsoll_engine::shard::ShardPlan;
use plimsoll_engine::windows::sums_of;
use plimsoll_fleet::place::{AgentPost, Conducted, CoordinatorPost, Place, Refused, place};
use plimsoll_wire::Sessions;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Least time between two messages of an agent with windows, ns.
const WINDOWS_EVERY_NS: u64 = 250 * MILLISECOND_NS;

/// The crew of a search, for jobs that keep a record.
pub struct Staff<'a, 'p, F> {
    keeping: Keeping<'a>,
    protocol: F,
    progress: &'p mut (dyn FnMut(&Interval) + Send),
    /// True once load was on: what was measured is kept even if the run ends.
    has_begun: bool,
}

/// Message of the coordinator to all agents.
#[derive(Serialize, Deserialize)]
enum Lead {
    /// The next order.
    Order(Box<Brief>),
    /// The outcome of the order, of all agents together.
    Outcome(Trial),
    /// The search is over.
    Over,
}

/// The lag of an order, to which a start too late for a common one belongs: users are not due before they begin, and a few late requests
/// are less than the hundredth that the lag of an open load is about.
fn pace_from_start(Conducted { pace, late, .. }: &Conducted) -> Pace {
    let late_s = late.iter().map(|late| late.by_ns as f64 / 1e9);
    Pace { lag_p99_s: late_s.fold(pace.lag_p99_s, f64::max) }
}

type OwnSessions<P> = Vec<Box<dyn Sessions<P> + Send>>;

impl<'a, 'p, F> Staff<'a, 'p, F> {
    /// The crew of a job's search. `protocol` makes the codec of a connection, `progress` sees each finished second.
    pub fn new(
        keeping: Keeping<'a>,
        protocol: F,
        progress: &'p mut (dyn FnMut(&Interval) + Send),
    ) -> Self {
        Self { keeping, protocol, progress, has_begun: false }
    }

    /// The next message of the coordinator; the end of the run is the end of a search that has begun.
    fn hear(&self, post: &AgentPost) -> Result<Lead> {
        match post.shared() {
            Ok(value) => Ok(serde_json::from_value(value)?),
            Err(_) if self.has_begun => Ok(Lead::Over),
            Err(refused) => Err(refused.into()),
        }
    }

    fn of_agents(
        &mut self,
        post: &CoordinatorPost,
        plan: &ShardPlan,
        lookout: &Lookout<'_>,
    ) -> Result<Shift> {
        let mut look = |known: &[Window]| lookout.is_bad(known);
        let Keeping { sink, stop, .. } = &mut self.keeping;
        let mut sink = FromStart { inner: &mut **sink, plan };
        let conducted = post.conduct(load_of(plan), &mut sink, self.progress, &mut look, stop);
        let conducted = match conducted {
            Ok(conducted) => conducted,
            // What earlier orders measured is kept and shown.
            Err(refused) if self.has_begun => {
                if !stop.load(Ordering::Relaxed) {
                    post.is_not_whole(&refused.why);
                }
                return Ok(Shift::ended());
            }
            Err(refused) => return Err(refused.into()),
        };
        self.has_begun = true;
        let is_over = conducted.end.interrupted;
        let pace = pace_from_start(&conducted);
        let trial = lookout.trial(conducted.windows, conducted.aborted_at, is_over, pace);
        lead(post, &Lead::Outcome(trial.clone()))?;
        Ok(Shift { end: Some(conducted.end), trial })
    }
}

/// Orders that this process carries out: the whole of each, or its part.
impl<P: Driven, F: Fn() -> P + Sync> Staff<'_, '_, F> {
    fn here(
        &mut self,
        plan: &ShardPlan,
        sessions: OwnSessions<P>,
        lookout: &Lookout<'_>,
    ) -> Result<Shift> {
        let (keeping, progress) = (&mut self.keeping, &mut *self.progress);
        let (end, aborted_at) = lookout.during(
            plan.part.end_early.as_deref(),
            &mut |known| lookout.is_bad(known),
            || keeping.alone(plan, &self.protocol, sessions, progress),
        );
        let end = end?;
        let windows = sums_of(lookout.counts);
        let trial = lookout.trial(windows, aborted_at, end.interrupted, pace_of(&end));
        Ok(Shift { end: Some(end), trial })
    }

    fn as_part(
        &mut self,
        post: &Arc<AgentPost>,
        (plan, lookout): (&ShardPlan, &Lookout<'_>),
        sessions: OwnSessions<P>,
    ) -> Result<Shift> {
        let (keeping, progress) = (&mut self.keeping, &mut *self.progress);
        let (mut sent, mut sent_ns) = (0, now_ns());
        let mut send = |known: &[Window]| {
            if now_ns().saturating_sub(sent_ns) >= WINDOWS_EVERY_NS {
                post.windows(known[sent..].to_vec());
                (sent, sent_ns) = (known.len(), now_ns());
            }
            false
        };
        let (end, _) = lookout.during(plan.part.end_early.as_deref(), &mut send, || {
            keeping.as_agent(post, plan, &self.protocol, sessions, progress)
        });
        let end = match end {
            Ok(end) => end,
            Err(_) if self.has_begun && post.aborted().is_some() => return Ok(Shift::ended()),
            Err(error) => return Err(error),
        };
        self.has_begun = true;
        match self.hear(post)? {
            Lead::Outcome(trial) => Ok(Shift { end: Some(end), trial }),
            Lead::Over => Ok(Shift { end: Some(end), ..Shift::ended() }),
            Lead::Order(_) => bail!(ASTRAY),
        }
    }
}

/// The search of an agent took another course than that of its coordinator.
const ASTRAY: &str = "the search of this agent is not that of its coordinator; this is a defect in plimsoll, please report it";

fn lead(post: &CoordinatorPost, lead: &Lead) -> Result<(), Refused> {
    let value = serde_json::to_value(lead);
    let value = value.map_err(|error| Refused { why: error.to_string(), code: None })?;
    post.share(&value)
}

impl<P: Driven, F: Fn() -> P + Sync> Crew<P> for Staff<'_, '_, F> {
    type Error = anyhow::Error;

    fn brief(&mut self, own: Brief) -> Result<Option<Brief>> {
        match place() {
            Place::Alone => Ok(Some(own)),
            Place::Agent(post) => match self.hear(post)? {
                Lead::Order(brief) => Ok(Some(*brief)),
                Lead::Over => Ok(None),
                Lead::Outcome(_) => bail!(ASTRAY),
            },
            Place::Coordinator(post) if self.keeping.stop.load(Ordering::Relaxed) => {
                lead(post, &Lead::Over)?;
                Ok(None)
            }
            Place::Coordinator(post) => {
                lead(post, &Lead::Order(Box::new(own.clone())))?;
                Ok(Some(own))
            }
        }
    }

    fn carry_out(
        &mut self,
        plan: &ShardPlan,
        sessions: OwnSessions<P>,
        lookout: &Lookout<'_>,
    ) -> Result<Shift> {
        match place() {
            Place::Alone => self.here(plan, sessions, lookout),
            Place::Agent(post) => self.as_part(post, (plan, lookout), sessions),
            Place::Coordinator(post) => self.of_agents(post, plan, lookout),
        }
    }

    fn end(&mut self) -> Result<()> {
        match place() {
            Place::Alone => Ok(()),
            Place::Agent(post) => match self.hear(post)? {
                Lead::Over => Ok(()),
                Lead::Order(_) | Lead::Outcome(_) => bail!(ASTRAY),
            },
            Place::Coordinator(post) => Ok(lead(post, &Lead::Over)?),
        }
    }
}

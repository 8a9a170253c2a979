//! One phase of a run: carried out here, or by agents whose measurements come together here.

use super::Keeping;
use anyhow::Result;
use plimsoll_core::interval::{Fingerprint, Interval};
use plimsoll_core::record::{FailureSample, Sink};
use plimsoll_engine::run::{Driven, RunEnd, run};
use plimsoll_engine::shard::ShardPlan;
use plimsoll_engine::windows::sums_of;
use plimsoll_fleet::coordinator::{Late, Load};
use plimsoll_fleet::place::{AgentPost, AgentSink, Place, Refused, place};
use plimsoll_wire::Sessions;
use ring::digest::{SHA256, digest};
use std::fmt::Write as _;
use std::sync::Arc;

impl Keeping<'_> {
    /// Runs a plan: the whole of it, this agent's part of it, or as the coordinator all parts on their agents. Blocks until its
    /// end. `progress` sees each finished second.
    ///
    /// # Errors
    /// Nothing was measured.
    pub fn run<P, F>(
        &mut self,
        plan: &ShardPlan,
        protocol: F,
        sessions: Vec<Box<dyn Sessions<P> + Send>>,
        progress: &mut (dyn FnMut(&Interval) + Send),
    ) -> Result<RunEnd>
    where
        P: Driven,
        F: Fn() -> P + Sync,
    {
        let (mut end, late) = self.run_named(plan, protocol, sessions, progress)?;
        if let Place::Coordinator(post) = place() {
            // The run is not the one that was asked for.
            end.interrupted |= !late.is_empty();
            late.iter().for_each(|late| post.is_not_whole(&late.why));
        }
        Ok(end)
    }

    /// The same for a job that judges a late start itself: returns also the agents that began too late for a common start.
    ///
    /// # Errors
    /// Nothing was measured.
    pub fn run_named<P, F>(
        &mut self,
        plan: &ShardPlan,
        protocol: F,
        sessions: Vec<Box<dyn Sessions<P> + Send>>,
        progress: &mut (dyn FnMut(&Interval) + Send),
    ) -> Result<(RunEnd, Vec<Late>)>
    where
        P: Driven,
        F: Fn() -> P + Sync,
    {
        let end = match place() {
            Place::Alone => self.alone(plan, protocol, sessions, progress)?,
            Place::Agent(post) => self.as_agent(post, plan, protocol, sessions, progress)?,
            Place::Coordinator(post) => {
                drop(sessions);
                if let Some(start_ns) = plan.part.start_ns {
                    post.not_before(start_ns);
                }
                let mut sink = FromStart { inner: self.sink, plan };
                let (stop, load) = (&self.stop, load_of(plan));
                let conducted = post.conduct(load, &mut sink, progress, &mut |_| false, stop)?;
                return Ok((conducted.end, conducted.late));
            }
        };
        Ok((end, Vec::new()))
    }

    pub(super) fn alone<P: Driven, F: Fn() -> P + Sync>(
        &mut self,
        plan: &ShardPlan,
        protocol: F,
        sessions: Vec<Box<dyn Sessions<P> + Send>>,
        progress: &mut (dyn FnMut(&Interval) + Send),
    ) -> Result<RunEnd> {
        let mut proof = Proof { inner: self.sink, print: Fingerprint::default() };
        let end = run(plan, protocol, sessions, &mut proof, progress, &self.stop)?;
        proof.holds(&end)?;
        Ok(end)
    }

    pub(super) fn as_agent<P: Driven, F: Fn() -> P + Sync>(
        &mut self,
        post: &Arc<AgentPost>,
        plan: &ShardPlan,
        protocol: F,
        sessions: Vec<Box<dyn Sessions<P> + Send>>,
        progress: &mut (dyn FnMut(&Interval) + Send),
    ) -> Result<RunEnd> {
        let mut own = plan.clone();
        own.part.agreement = Some(post.agreement(key_of(plan)));
        post.begins(own.part.end_early.get_or_insert_default().clone());
        let before_ns = (plan.warmup_ns, plan.part.offset_ns);
        let mut sink = AgentSink { inner: self.sink, post, before_ns };
        let ended = run(&own, protocol, sessions, &mut sink, progress, &self.stop);
        match &ended {
            Ok(end) => post.ended(Ok(end), sums_of(&plan.part.windows)),
            Err(error) => post.ended(Err(error.to_string()), Vec::new()),
        }
        Ok(ended?)
    }
}

/// The load of a plan, as far as the coordinator of agents must know it.
pub(super) fn load_of(plan: &ShardPlan) -> Load {
    Load { key: key_of(plan), warmup_ns: plan.warmup_ns }
}

/// Everything in a plan on which its requests depend, and that is the same for all parts, in a few characters.
fn key_of(plan: &ShardPlan) -> String {
    let names: Vec<(&str, u16)> =
        plan.targets.iter().map(|target| (target.host.as_str(), target.port)).collect();
    let text = format!(
        "{:?} {:?} {:?} {:?}",
        (&plan.model, plan.seed, plan.limits, plan.warmup_ns, plan.ignore_first),
        (plan.timeouts, plan.classes, plan.spin_ns, plan.batching, plan.keep_alive),
        (plan.part.phase, plan.part.drop_backlog, plan.tls.is_some()),
        names
    );
    let hash = digest(&SHA256, text.as_bytes());
    hash.as_ref().iter().take(8).fold(String::new(), |mut text, byte| {
        // A string takes everything.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Moves the agreed start of a phase to that of the measured stretch, from which all seconds of the run count.
pub(super) struct FromStart<'a> {
    pub inner: &'a mut (dyn Sink + Send),
    pub plan: &'a ShardPlan,
}

impl Sink for FromStart<'_> {
    fn counts_from(&mut self, agreed_ns: u64) {
        let (warmup_ns, offset_ns) = (self.plan.warmup_ns, self.plan.part.offset_ns);
        self.inner.counts_from(agreed_ns.saturating_add(warmup_ns).saturating_sub(offset_ns));
    }

    fn interval(&mut self, interval: &Interval) -> std::io::Result<()> {
        self.inner.interval(interval)
    }

    fn failure(&mut self, sample: &FailureSample) -> std::io::Result<()> {
        self.inner.failure(sample)
    }
}

/// Counts along what passes, to prove that it is the whole.
struct Proof<'a> {
    inner: &'a mut (dyn Sink + Send),
    print: Fingerprint,
}

impl Proof<'_> {
    fn holds(&self, end: &RunEnd) -> Result<()> {
        if self.print == Fingerprint::of(&end.totals) {
            return Ok(());
        }
        Err(Refused {
            why: "the seconds of the run do not add up to its whole; this is a defect in plimsoll, please report it"
                .to_owned(),
            code: None,
        }
        .into())
    }
}

impl Sink for Proof<'_> {
    fn counts_from(&mut self, start_ns: u64) {
        self.inner.counts_from(start_ns);
    }

    fn interval(&mut self, interval: &Interval) -> std::io::Result<()> {
        self.print.add(Fingerprint::of(interval));
        self.inner.interval(interval)
    }

    fn failure(&mut self, sample: &FailureSample) -> std::io::Result<()> {
        self.inner.failure(sample)
    }
}

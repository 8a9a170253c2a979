//! The end of a run: every agent has reported everything, or is lost.

use super::{Agent, Coordinator, Event, State};
use crate::figures::Figures;
use crate::link::LinkError;
use crate::message::Down;
use plimsoll_core::record::Machine;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_record::fleet::Members;
use serde_json::Value;

/// An agent at the end of a run.
#[derive(Clone, Debug)]
pub struct AgentReport {
    /// Its name.
    pub name: String,
    /// Its machine.
    pub machine: Machine,
    /// State that it ended in.
    pub state: State,
    /// Reason why it was lost.
    pub trouble: Option<String>,
    /// Figures of its last phase; none if it was lost.
    pub figures: Option<Figures>,
    /// Its judgement of its own part.
    pub verdict: Option<Verdict>,
    /// Its clock ahead of the coordinator's, ns, and the shortest round trip, ns.
    pub clock: (i64, u64),
    /// Time by which it started late, ns.
    pub late_ns: u64,
}

/// The result of an agent's job.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentPart {
    /// Name of the agent.
    pub name: String,
    /// The result; none if the agent was lost before it had sent it.
    pub value: Option<Value>,
}

impl Coordinator {
    /// The job of the coordinator has no more phases: waits for what the agents still have to report.
    pub fn close(&mut self) {
        self.is_closing = true;
        self.watchers.send(&Down::Stop);
        self.is_stirred = true;
    }

    pub(super) fn settle(&mut self) {
        if !self.is_closing || self.is_settled {
            return;
        }
        let is_over = |agent: &Agent| agent.is_gone() || agent.state == State::Done;
        if self.agents.iter().all(is_over) && self.watchers.is_over() {
            self.is_settled = true;
            self.sweep_ns = 0;
            for agent in self.agents.iter_mut().filter(|agent| agent.state == State::Done) {
                // One that does not hear it any more ends by itself.
                let _ = agent.send(&Down::Bye);
            }
            self.watchers.bye();
            self.events.push_back(Event::Settled);
        }
    }

    /// Returns true if no agent has anything left to acknowledge.
    #[must_use]
    pub fn has_said_all(&self) -> bool {
        let agents = self.agents.iter().all(|agent| agent.is_gone() || agent.link.is_settled());
        agents && self.watchers.has_said_all()
    }

    /// Reasons why an agent was lost outside of a phase.
    #[must_use]
    pub fn lost_between(&self) -> &[String] {
        &self.lost_between
    }

    /// Reason and exit code of the first agent that is lost or aborted.
    #[must_use]
    pub fn first_gone(&self) -> Option<(String, Option<u8>)> {
        let gone = self.agents.iter().find(|agent| agent.is_gone())?;
        let why = gone.trouble.as_deref().unwrap_or_default();
        Some((format!("{}: {why}", self.members.title(gone.name())), gone.code))
    }

    /// Takes the next results of the agents' jobs, in the order of the slices, once each agent has sent one or is lost.
    pub fn take_parts(&mut self) -> Option<Vec<AgentPart>> {
        let is_there = |agent: &Agent| {
            !agent.parts.is_empty() || agent.is_gone() || agent.state == State::Done
        };
        if !self.agents.iter().all(is_there) {
            return None;
        }
        let take = |agent: &mut Agent| AgentPart {
            name: agent.here.name.clone(),
            value: agent.parts.pop_front(),
        };
        Some(self.agents.iter_mut().map(take).collect())
    }

    /// Gives all agents a finding of the coordinator's job.
    ///
    /// # Errors
    /// When it is too long for a message.
    pub fn share(&mut self, value: &Value) -> Result<(), LinkError> {
        self.sweep_ns = 0;
        let message = Down::Shared(value.clone());
        self.agents.iter_mut().try_for_each(|agent| agent.send(&message))
    }

    /// The agents as they are.
    #[must_use]
    pub fn reports(&self) -> Vec<AgentReport> {
        let report = |agent: &Agent| AgentReport {
            name: agent.here.name.clone(),
            machine: agent.ready.as_ref().map(|ready| ready.machine.clone()).unwrap_or_default(),
            state: agent.state,
            trouble: agent.trouble.clone(),
            figures: agent.figures.clone(),
            verdict: agent.verdict.clone(),
            clock: agent.ready.as_ref().map_or((0, 0), |ready| ready.clock),
            late_ns: agent.late_ns,
        };
        self.agents.iter().map(report).collect()
    }
}

/// The heavier verdict of the whole and of what the agents say of themselves, if it is one of theirs: an agent that is limited
/// makes the run so.
#[must_use]
pub fn of_agents(whole: VerdictKind, members: Members, agents: &[AgentReport]) -> Option<Verdict> {
    let reasons_of = |kind: VerdictKind| {
        let its = |agent: &AgentReport| {
            let verdict = agent.verdict.as_ref().filter(|verdict| verdict.kind == kind)?;
            Some(format!("{}: {}", members.title(&agent.name), verdict.reasons.join("; ")))
        };
        agents.iter().filter_map(its).collect::<Vec<_>>()
    };
    let outweighed: &[VerdictKind] = match whole {
        VerdictKind::Void => &[],
        VerdictKind::Partial | VerdictKind::TargetFailed | VerdictKind::GeneratorLimited => {
            &[VerdictKind::Void]
        }
        _ => &[VerdictKind::Void, VerdictKind::GeneratorLimited],
    };
    let mut found = outweighed.iter().map(|&kind| (kind, reasons_of(kind)));
    found
        .find(|(_, reasons)| !reasons.is_empty())
        .map(|(kind, reasons)| Verdict::new(kind, reasons))
}

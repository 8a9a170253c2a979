//! Result of a run on several machines: its agents.

use plimsoll_core::verdict::VerdictKind;
use serde::{Deserialize, Serialize};

/// Agents of a run, and how well they started together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetResult {
    /// Name of the run, the same in the records of all agents.
    pub run: String,
    /// Kind of its agents.
    #[serde(default, skip_serializing_if = "Members::are_agents")]
    pub members: Members,
    /// Agents, in the order of their parts, and behind them those that watch; in the record of an agent itself that one alone.
    pub agents: Vec<AgentResult>,
    /// Upper bound on the time between the agreed start and an agent's own, 99th percentile over the agents, ms: its delay, and
    /// half of the shortest round trip to it.
    pub start_skew_p99_ms: f64,
    /// The largest one, ms.
    pub start_skew_max_ms: f64,
    /// Bytes that the coordinator sent to the bus.
    pub bus_sent_bytes: u64,
    /// Bytes that came to the coordinator from the bus.
    pub bus_received_bytes: u64,
    /// Reasons why the run is not whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<String>,
}

/// Kind of the agents of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Members {
    /// Agents on a bus, which the user started.
    #[default]
    Agents,
    /// Processes that the coordinator started on its machine.
    Processes,
}

impl Members {
    /// Name of a process of a run, without its number.
    pub const PROCESS: &str = "process-";

    /// Returns true for agents that the user started.
    #[must_use]
    pub fn are_agents(&self) -> bool {
        *self == Self::Agents
    }

    /// The word for several of them.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Processes => "processes",
        }
    }

    /// The word for one of them.
    #[must_use]
    pub const fn word_for_one(self) -> &'static str {
        match self {
            Self::Agents => "agent",
            Self::Processes => "process",
        }
    }

    /// The name of one below such a word: `a`, or `2` for `process-2`.
    #[must_use]
    pub fn short(self, name: &str) -> &str {
        match self {
            Self::Agents => name,
            Self::Processes => name.strip_prefix(Self::PROCESS).unwrap_or(name),
        }
    }

    /// One of them in a sentence: `agent a`, or `process 2`.
    #[must_use]
    pub fn title(self, name: &str) -> String {
        format!("{} {}", self.word_for_one(), self.short(name))
    }

    /// One of them in a table of them: `a`, or `process 2`.
    #[must_use]
    pub fn label(self, name: &str) -> String {
        match self {
            Self::Agents => name.to_owned(),
            Self::Processes => self.title(name),
        }
    }
}

/// Work of an agent in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A part of the load.
    #[default]
    Load,
    /// The resources of its machine, and no load.
    Watch,
    /// A part of the feed of a mix, beside the load of others.
    Feed,
}

impl Role {
    /// Its name in flags, records and on pages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Watch => "watch",
            Self::Feed => "feed",
        }
    }
}

/// One agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentResult {
    /// Its name.
    pub name: String,
    /// Name of its machine.
    pub host: String,
    /// Its work.
    #[serde(default)]
    pub role: Role,
    /// Part of the run, from 1: `2/3`; empty for an agent that watches.
    pub part: String,
    /// Processors of its machine.
    pub cpus: u32,
    /// Figures of its part; `None` if the agent was lost, or watches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<AgentFigures>,
    /// Its clock (monotonic) ahead of the coordinator's, ms.
    pub clock_ahead_ms: f64,
    /// Shortest round trip between coordinator and agent, ms; the offset of the clock is wrong by at most half of it.
    pub round_trip_ms: f64,
    /// Delay of its start, ms.
    pub start_late_ms: f64,
    /// Reason why it was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Its judgement of its own part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictKind>,
}

/// Figures of an agent's part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentFigures {
    /// Requests that were sent.
    pub sent: u64,
    /// Requests that succeeded.
    pub ok: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Successful requests per second.
    pub ok_per_s: f64,
    /// 50th percentile of the response times, successful requests, ms.
    pub p50_ms: f64,
    /// 95th percentile, ms.
    pub p95_ms: f64,
    /// 99th percentile, ms.
    pub p99_ms: f64,
    /// 99th percentile of the lag, ms.
    pub lag_p99_ms: f64,
    /// CPU time of its generator, s.
    pub cpu_s: f64,
}

/// Difference from the middle agent from which an agent is pointed out.
pub const APART_FROM: f64 = 0.1;
/// Fewest requests of an agent whose rate is compared, and fewest successful ones of an agent whose p95 is: fewer differ by chance. An
/// agent whose requests fail is compared by the rate of its successes.
pub const COMPARED_FROM: u64 = 1000;

impl FleetResult {
    /// Names the agents whose rate or p95 differs from the middle agent's by more than a tenth, each with the difference.
    #[must_use]
    pub fn apart(&self) -> Vec<String> {
        let known: Vec<(&str, &AgentFigures)> = self
            .agents
            .iter()
            .filter(|agent| agent.role == Role::Load)
            .filter_map(|agent| Some((agent.name.as_str(), agent.figures.as_ref()?)))
            .collect();
        type Count = fn(&AgentFigures) -> u64;
        type Value = fn(&AgentFigures) -> f64;
        let compared: [(&str, Count, Value); 2] = [
            ("rate", |figures| figures.sent, |figures| figures.ok_per_s),
            ("p95", |figures| figures.ok, |figures| figures.p95_ms),
        ];
        let mut apart = Vec::new();
        for (what, count, value) in compared {
            let enough = |(_, figures): &&(&str, &AgentFigures)| count(figures) >= COMPARED_FROM;
            let known: Vec<_> = known.iter().filter(enough).collect();
            if known.len() < 2 {
                continue;
            }
            let mut values: Vec<f64> = known.iter().map(|(_, figures)| value(figures)).collect();
            values.sort_by(f64::total_cmp);
            let middle = values[values.len() / 2];
            for (name, figures) in known {
                let difference = value(figures) / middle - 1.0;
                if middle > 0.0 && difference.abs() > APART_FROM {
                    apart.push(format!(
                        "{}: its {what} is {:.0} % {} that of the middle {}",
                        self.members.title(name),
                        difference.abs() * 100.0,
                        if difference > 0.0 { "above" } else { "below" },
                        self.members.word_for_one()
                    ));
                }
            }
        }
        apart
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str, ok: u64, p95_ms: f64) -> AgentResult {
        let (sent, ok_per_s) = (ok, ok as f64);
        let figures = AgentFigures { sent, ok, ok_per_s, p95_ms, ..AgentFigures::default() };
        AgentResult { name: name.to_owned(), figures: Some(figures), ..AgentResult::default() }
    }

    #[test]
    fn agents_that_disagree_are_named() {
        let mut fleet = FleetResult {
            agents: vec![agent("a", 2000, 10.0), agent("b", 2010, 10.5), agent("c", 1700, 12.0)],
            ..FleetResult::default()
        };
        assert_eq!(
            fleet.apart(),
            [
                "agent c: its rate is 15 % below that of the middle agent",
                "agent c: its p95 is 14 % above that of the middle agent"
            ]
        );
        fleet.members = Members::Processes;
        fleet.agents[2].name = "process-3".to_owned();
        let slow = "process 3: its rate is 15 % below that of the middle process";
        assert_eq!(fleet.apart()[0], slow);
        // Few requests differ by chance.
        fleet.agents[2] = agent("c", 900, 12.0);
        assert!(fleet.apart().is_empty());
        // The requests of one agent fail: those of the others are no reason to be silent about it.
        fleet.agents[2] = agent("c", 0, 0.0);
        fleet.agents[2].figures.as_mut().unwrap().sent = 2000;
        let failing = "process c: its rate is 100 % below that of the middle process";
        assert_eq!(fleet.apart(), [failing]);
    }
}

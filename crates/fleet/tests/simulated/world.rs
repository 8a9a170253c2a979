//! The bus, the coordinator and the agents of one simulated run, and what must hold at its end.

use super::SECOND;
use super::agent::{Agent, own};
use super::scene::{Fate, Scene};
use plimsoll_core::interval::{Fingerprint, Interval};
use plimsoll_core::rng::Rng;
use plimsoll_core::schedule::Slice;
use plimsoll_fleet::coordinator::{AgentPart, Coordinator, Event, LATE_MAX_NS, Load};
use plimsoll_fleet::message::{Build, Here, Plan, Role};
use plimsoll_record::Tool;
use std::fmt;

/// Number of the coordinator.
pub const COORDINATOR: u64 = 1;
/// Time at which a run begins, ns; clocks may be behind by ten seconds.
pub const BEGIN_NS: u64 = 100 * SECOND;
/// Longest run, ns.
const LONGEST_NS: u64 = 600 * SECOND;

/// The end of a run.
pub enum Outcome {
    Valid(Box<Interval>),
    Partial(Box<Interval>, Vec<String>),
    Refused(String),
    CoordinatorDied,
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Valid(totals) => write!(f, "valid, {} ok", totals.ledger.ok),
            Self::Partial(totals, troubles) => {
                write!(f, "partial, {} ok, {troubles:?}", totals.ledger.ok)
            }
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::CoordinatorDied => write!(f, "the coordinator died"),
        }
    }
}

pub struct World {
    scene: Scene,
    rng: Rng,
    now_ns: u64,
    coordinator: Coordinator,
    agents: Vec<Agent>,
    /// Time of arrival, receiver (0 is the coordinator), bytes.
    flying: Vec<(u64, usize, Vec<u8>)>,
    seconds: Interval,
    has_stopped: bool,
    /// End of the phase, while the results of the agents are waited for.
    ended: Option<Outcome>,
    parts: Vec<AgentPart>,
}

impl World {
    pub fn of(scene: &Scene, seed: u64) -> Self {
        let agents: Vec<Agent> = (0..scene.agents)
            .map(|index| {
                let fates = scene.fates.iter().filter(|(agent, _)| *agent == index);
                let fates = fates.map(|(_, fate)| *fate).collect();
                Agent::new(
                    100 + index as u64,
                    index,
                    seed,
                    (scene.warmup_s, scene.duration_s),
                    scene.last_second_late_ns,
                    fates,
                )
            })
            .collect();
        let chosen = (0..).zip(&agents).map(|(index, agent)| {
            let of = scene.agents as u32;
            let plan = Plan {
                run: "run".to_owned(),
                words: Vec::new(),
                files: Vec::new(),
                slice: Slice { index, of },
            };
            (here(agent.number, index), plan)
        });
        let mut coordinator = Coordinator::new(COORDINATOR, chosen.collect(), BEGIN_NS).unwrap();
        let warmup_ns = scene.warmup_s * SECOND;
        coordinator.begin(Load { key: "key".to_owned(), warmup_ns }, BEGIN_NS);
        Self {
            scene: scene.clone(),
            rng: Rng::new(seed ^ 0xb05),
            now_ns: BEGIN_NS,
            coordinator,
            agents,
            flying: Vec::new(),
            seconds: Interval::default(),
            has_stopped: false,
            ended: None,
            parts: Vec::new(),
        }
    }

    fn since(&self) -> u64 {
        self.now_ns - BEGIN_NS
    }

    fn is_within(&self, from_ns: u64, for_ns: u64) -> bool {
        (from_ns..from_ns.saturating_add(for_ns)).contains(&self.since())
    }

    fn is_alive(&self, agent: usize) -> bool {
        !self.agents[agent].fates.iter().any(|fate| match fate {
            Fate::Dies(at_ns) => self.since() >= *at_ns,
            Fate::Freezes(at_ns, for_ns) => self.is_within(*at_ns, *for_ns),
            _ => false,
        })
    }

    fn is_connected(&self, agent: usize) -> bool {
        let is_cut = |fate: &Fate| matches!(fate, Fate::IsCut(at_ns, for_ns) if self.is_within(*at_ns, *for_ns));
        !self.agents[agent].fates.iter().any(is_cut)
            && !self.scene.away.is_some_and(|(at_ns, for_ns)| self.is_within(at_ns, for_ns))
    }

    fn coordinator_is_dead(&self) -> bool {
        self.scene.coordinator_dies_ns.is_some_and(|at_ns| self.since() >= at_ns)
    }

    fn carry(&mut self, agent: usize, receiver: usize, bytes: Vec<u8>) {
        if !self.is_connected(agent) {
            return;
        }
        let copies = 1 + u64::from(self.rng.below(100) < self.scene.repeated);
        for _ in 0..copies {
            if self.rng.below(100) >= self.scene.lost {
                let at_ns = self.now_ns + 1_000 + self.rng.below(self.scene.delay_ns);
                self.flying.push((at_ns, receiver, bytes.clone()));
            }
        }
    }

    /// Runs to the end.
    pub fn run(&mut self) -> Result<Outcome, String> {
        let mut outcome = None;
        while self.since() < LONGEST_NS {
            self.deliver();
            if !self.coordinator_is_dead()
                && let Some(found) = self.coordinate()
            {
                outcome = Some(found);
            }
            self.step_agents();
            let all_over = (0..self.agents.len()).all(|agent| {
                self.agents[agent].is_over
                    || self.agents[agent]
                        .fates
                        .iter()
                        .any(|fate| matches!(fate, Fate::Dies(at) if self.since() >= *at))
            });
            let is_dead = self.coordinator_is_dead();
            if all_over && (is_dead || outcome.is_some()) {
                return Ok(outcome.unwrap_or(Outcome::CoordinatorDied));
            }
            self.now_ns = self.next_ns();
        }
        Err(format!("it has not ended after {} s: {outcome:?}", LONGEST_NS / SECOND))
    }

    fn deliver(&mut self) {
        let now_ns = self.now_ns;
        let (due, later) =
            std::mem::take(&mut self.flying).into_iter().partition(|(at_ns, ..)| *at_ns <= now_ns);
        self.flying = later;
        let due: Vec<(u64, usize, Vec<u8>)> = due;
        for (_, receiver, bytes) in due {
            if receiver == 0 {
                if !self.coordinator_is_dead() {
                    self.coordinator.receive(&bytes, now_ns);
                }
            } else if self.is_alive(receiver - 1) {
                let agent = &mut self.agents[receiver - 1];
                let own_ns = own(now_ns, agent.ahead_ns);
                agent.member.receive(&bytes, own_ns);
                agent.heard_ns = now_ns;
            } else if self.agents[receiver - 1]
                .fates
                .iter()
                .any(|fate| matches!(fate, Fate::Freezes(..)))
            {
                // A frozen process finds what came meanwhile.
                self.flying.push((now_ns + SECOND / 100, receiver, bytes));
            }
        }
    }

    fn coordinate(&mut self) -> Option<Outcome> {
        if self.scene.stop_ns.is_some_and(|at_ns| self.since() >= at_ns) && !self.has_stopped {
            self.has_stopped = true;
            self.coordinator.stop();
        }
        for (number, bytes) in self.coordinator.poll(self.now_ns) {
            let index = self.agents.iter().position(|agent| agent.number == number).unwrap();
            self.carry(index, index + 1, bytes);
        }
        let mut outcome = None;
        while let Some(event) = self.coordinator.next_event() {
            match event {
                Event::Second(second) => self.seconds.merge(&second),
                Event::Refused { why, .. } => {
                    outcome = Some(Outcome::Refused(why));
                    self.coordinator.close();
                }
                Event::Ended(ended) => {
                    let totals = Box::new(ended.end.totals);
                    // An agent that began too late is as much a reason as one that is lost.
                    let late = ended.late.into_iter().map(|late| late.why);
                    let troubles: Vec<String> = ended.troubles.into_iter().chain(late).collect();
                    self.ended = Some(match troubles.is_empty() {
                        true => Outcome::Valid(totals),
                        false => Outcome::Partial(totals, troubles),
                    });
                }
                _ => {}
            }
        }
        if self.ended.is_some()
            && let Some(parts) = self.coordinator.take_parts()
        {
            self.parts = parts;
            self.coordinator.close();
            outcome = self.ended.take();
        }
        outcome
    }

    /// The results of the agents' jobs are in the order of the slices, and one that is missing is that of an agent that is named.
    fn check_parts(&self) -> Result<(), String> {
        let lost = self.coordinator.lost_between();
        for (agent, part) in self.agents.iter().zip(&self.parts) {
            let is_named = lost.iter().any(|why| why.starts_with(&format!("agent {}:", part.name)));
            match &part.value {
                Some(value) if value["agent"] == agent.number => {}
                None if is_named => {}
                other => {
                    let found = other.as_ref().map(|value| &value["agent"]);
                    return Err(format!("valid, but {} has the result of {found:?}", part.name));
                }
            }
        }
        match self.parts.len() == self.agents.len() {
            true => Ok(()),
            false => Err(format!("valid, with {} results", self.parts.len())),
        }
    }

    fn step_agents(&mut self) {
        for index in 0..self.agents.len() {
            if !self.is_alive(index) {
                continue;
            }
            let now_ns = self.now_ns;
            let agent = &mut self.agents[index];
            let own_ns = own(now_ns, agent.ahead_ns);
            // The thread of the link looks ten times a second, also after a freeze; the load sees what it found.
            let mut packets = agent.member.poll(own_ns);
            agent.step(now_ns);
            packets.extend(agent.member.poll(own_ns));
            agent.step(now_ns);
            let has_ghost = agent.fates.contains(&Fate::HasAGhost);
            for bytes in packets {
                if has_ghost {
                    let mut ghost = bytes.clone();
                    ghost[8] ^= 0x55;
                    self.carry(index, 0, ghost);
                }
                self.carry(index, 0, bytes);
            }
        }
    }

    fn next_ns(&self) -> u64 {
        let packets = self.flying.iter().map(|(at_ns, ..)| *at_ns);
        let agents = self.agents.iter().map(|agent| agent.due_ns(self.now_ns));
        let first = packets.chain(agents).min().unwrap_or(u64::MAX);
        first.min(self.coordinator.due_ns()).max(self.now_ns + 100_000)
    }

    /// Says what does not hold.
    pub fn check(&self, outcome: &Outcome) -> Result<(), String> {
        for agent in &self.agents {
            if let Some(fired_ns) = agent.fired_ns
                && fired_ns > agent.heard_ns + 10 * SECOND
            {
                return Err(format!(
                    "agent {} fired {} ms after it heard of the coordinator",
                    agent.number,
                    (fired_ns - agent.heard_ns) / 1_000_000
                ));
            }
        }
        let mut all = Interval::new(1);
        self.agents.iter().for_each(|agent| all.merge(&agent.done));
        match outcome {
            Outcome::Valid(totals) => {
                if Fingerprint::of(totals) != Fingerprint::of(&all) || totals.ledger != all.ledger {
                    return Err(format!("valid, but {:?} is not {:?}", totals.ledger, all.ledger));
                }
                self.check_parts()?;
                if Fingerprint::of(&self.seconds) != Fingerprint::of(&all) {
                    return Err("the seconds that were shown are not the whole".to_owned());
                }
                let starts = || self.agents.iter().filter_map(|agent| agent.started_ns);
                let skew_ns = starts().max().unwrap_or(0) - starts().min().unwrap_or(0);
                if starts().count() < self.agents.len() || skew_ns > 2 * LATE_MAX_NS {
                    return Err(format!("valid, with a skew of {} ms", skew_ns / 1_000_000));
                }
            }
            Outcome::Partial(totals, troubles) => {
                totals.ledger.balance().map_err(|error| error.to_string())?;
                if !troubles.iter().all(|trouble| trouble.starts_with("agent a")) {
                    return Err(format!("nobody is named: {troubles:?}"));
                }
                if totals.ledger.ok > all.ledger.ok {
                    return Err("more than was done".to_owned());
                }
            }
            Outcome::Refused(_) | Outcome::CoordinatorDied => {}
        }
        if self.scene.is_harmless() && !matches!(outcome, Outcome::Valid(_)) {
            return Err("nothing happened, and it is not valid".to_owned());
        }
        Ok(())
    }
}

fn here(agent: u64, index: u32) -> Here {
    Here {
        coordinator: COORDINATOR,
        agent,
        name: format!("a{index}"),
        host: "host".to_owned(),
        pid: index,
        role: Role::Load,
        build: Build { tool: Tool::default(), program_sha256: String::new() },
        is_busy: false,
    }
}

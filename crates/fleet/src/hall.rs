//! Coordinators call, and agents that are free answer.

use crate::link::Packet;
use crate::message::{Build, Call, Here, Role};
use plimsoll_bus::{Bus, BusError, Subscription};
use plimsoll_core::clock::now_ns;
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thiserror::Error;

/// Distance between two calls, and for each agent that has answered: all of them answer each call, and thousands would be asked
/// again before they were heard.
const CALL_EVERY: Duration = Duration::from_millis(200);
const CALL_EACH: Duration = Duration::from_micros(200);

/// Agents that could not be found.
#[derive(Debug, Error)]
pub enum HallError {
    /// The bus failed.
    #[error("{0}")]
    Bus(#[from] BusError),
    /// Not enough agents answered.
    #[error(
        "{found} of {wanted} agents answered on the bus within {within_s} s{names}; {busy}start more of them: plimsoll agent --bus ..."
    )]
    TooFew {
        /// Number that answered.
        found: usize,
        /// Number that was asked for.
        wanted: usize,
        /// Time that was waited, s.
        within_s: f64,
        /// Names of those that answered, behind a colon.
        names: String,
        /// Number and names of those that carry out another run, and that they could be waited for.
        busy: String,
    },
    /// Not enough agents that watch answered.
    #[error(
        "{found} of {wanted} agents that watch answered on the bus within {within_s} s{names}; {busy}start more of them: plimsoll \
         agent --role watch --bus ..."
    )]
    TooFewWatch {
        /// Number that answered.
        found: usize,
        /// Number that was asked for.
        wanted: usize,
        /// Time that was waited, s.
        within_s: f64,
        /// Names of those that answered, behind a colon.
        names: String,
        /// Number and names of those that carry out another run, and that they could be waited for.
        busy: String,
    },
    /// An agent runs another program.
    #[error(
        "agent {name} is another build: {agent}; this is {own}; install the same one on all machines"
    )]
    OtherBuild {
        /// Name of the agent.
        name: String,
        /// Its build.
        agent: String,
        /// Own build.
        own: String,
    },
    /// The user ended the wait.
    #[error("stopped while waiting for agents; nothing was measured")]
    Stopped,
}

/// Name of a fleet: agents and coordinators of one name find each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetName(String);

impl Default for FleetName {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl fmt::Display for FleetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for FleetName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_good = |sign: char| sign.is_ascii_alphanumeric() || sign == '-' || sign == '_';
        match (1..=64).contains(&text.len()) && text.chars().all(is_good) {
            true => Ok(Self(text.to_owned())),
            false => Err("use 1 to 64 letters, digits, '-' and '_'".to_owned()),
        }
    }
}

impl FleetName {
    /// Subject of what is for one process.
    #[must_use]
    pub fn inbox(&self, process: u64) -> String {
        format!("plimsoll.{}.to.{process:016x}", self.0)
    }

    fn calls(&self) -> String {
        format!("plimsoll.{}.call", self.0)
    }

    fn answers(&self, coordinator: u64) -> String {
        format!("plimsoll.{}.here.{coordinator:016x}", self.0)
    }
}

/// A number for a process that no other has: random, or from its id and the clock if the system has no random numbers.
#[must_use]
pub fn process_number() -> u64 {
    let mut bytes = [0; 8];
    // Without random numbers there is no TLS either.
    SystemRandom::new()
        .fill(&mut bytes)
        .map_or(u64::from(std::process::id()) ^ now_ns(), |()| u64::from_ne_bytes(bytes))
}

/// Agents that a coordinator wants.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Number of agents for the load.
    pub agents: usize,
    /// Least number of agents that watch; those that answer beyond it take part too.
    pub watchers: usize,
    /// Longest wait.
    pub within: Duration,
}

/// Calls until enough agents have answered, and returns them in the order of their names: those for the load, and behind them all
/// that watch and have answered. `note` is given what a user should know about an agent that is left out.
///
/// # Errors
/// [`HallError`].
pub fn find(
    bus: &dyn Bus,
    (fleet, own): (&FleetName, u64),
    build: &Build,
    wanted: Wanted,
    is_stopped: &dyn Fn() -> bool,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Here>, HallError> {
    let answers = bus.subscribe(&fleet.answers(own))?;
    let call = serde_json::to_vec(&Call { coordinator: own }).unwrap_or_default();
    let until_ns = now_ns() + wanted.within.as_nanos() as u64;
    let mut found = Found::default();
    // Agents that watch are not waited for, but they get the time to answer one call.
    let mut calls = 0;
    while calls < 1 || !found.is_enough(wanted) {
        if is_stopped() {
            return Err(HallError::Stopped);
        }
        if now_ns() > until_ns {
            return Err(found.too_few(wanted));
        }
        // A bus that is away for a moment comes back, or the time is over.
        let _ = bus.publish(&fleet.calls(), &call);
        let round = CALL_EVERY + CALL_EACH * found.agents.len() as u32;
        let round_ns = now_ns() + round.as_nanos() as u64;
        calls += 1;
        while now_ns() < round_ns && (calls == 1 || !found.is_enough(wanted)) {
            let left = Duration::from_nanos(round_ns.saturating_sub(now_ns()));
            let Some(message) = answers.next(left)? else { continue };
            let Ok(here) = serde_json::from_slice::<Here>(&message.payload) else { continue };
            let is_wanted = match here.role {
                Role::Load => found.load < wanted.agents,
                Role::Watch => true,
                // No agent is started for it.
                Role::Feed => false,
            };
            if here.coordinator != own {
                continue;
            }
            if here.is_busy {
                found.busy.insert(here.agent, here);
            } else if is_wanted {
                found.take(here, build, note)?;
            }
        }
    }
    let mut agents = found.agents;
    agents.sort_by_cached_key(|here| (here.role == Role::Watch, natural(&here.name)));
    Ok(agents)
}

/// Agents that have answered.
#[derive(Default)]
struct Found {
    agents: Vec<Here>,
    /// Number of those for the load, and of those that watch.
    load: usize,
    watch: usize,
    /// Numbers of all that are known, also of those that take no part.
    known: HashSet<u64>,
    /// Index of each by its name.
    names: HashMap<String, usize>,
    /// Agents that carry out another run, by their numbers; some of them may have become free since.
    busy: HashMap<u64, Here>,
}

impl Found {
    fn is_enough(&self, wanted: Wanted) -> bool {
        self.load >= wanted.agents && self.watch >= wanted.watchers
    }

    fn take(
        &mut self,
        here: Here,
        build: &Build,
        note: &mut dyn FnMut(&str),
    ) -> Result<(), HallError> {
        if !self.known.insert(here.agent) {
            return Ok(());
        }
        if let Some(&known) = self.names.get(&here.name) {
            let known = &self.agents[known];
            note(&format!(
                "two agents are named {}: process {} on {} takes part, process {} on {} does not; give each a --name of its own",
                here.name, known.pid, known.host, here.pid, here.host
            ));
            return Ok(());
        }
        let is_same = here.build.is_same(build);
        if !is_same && here.role == Role::Watch {
            note(&format!(
                "agent {} watches, and is another build: {}; this is {}; it takes no part",
                here.name,
                here.build.words(),
                build.words()
            ));
            return Ok(());
        }
        if !is_same {
            return Err(HallError::OtherBuild {
                name: here.name,
                agent: here.build.words(),
                own: build.words(),
            });
        }
        match here.role {
            Role::Watch => self.watch += 1,
            Role::Load | Role::Feed => self.load += 1,
        }
        self.names.insert(here.name.clone(), self.agents.len());
        self.agents.push(here);
        Ok(())
    }

    fn too_few(&self, wanted: Wanted) -> HallError {
        let role = if self.load < wanted.agents { Role::Load } else { Role::Watch };
        let free = names_of(self.agents.iter().filter(|here| here.role == role));
        let is_still = |here: &&Here| here.role == role && !self.known.contains(&here.agent);
        let busy = names_of(self.busy.values().filter(is_still));
        let (found, within_s) = (free.len(), wanted.within.as_secs_f64());
        let names = match free.is_empty() {
            true => String::new(),
            false => format!(": {}", few(free.into_iter())),
        };
        let busy = match busy.len() {
            0 => String::new(),
            1 => format!("agent {} carries out another run: wait for its end, or ", busy[0]),
            many => format!(
                "{many} agents carry out another run ({}): wait for its end, or ",
                few(busy.into_iter())
            ),
        };
        match role {
            Role::Load | Role::Feed => {
                HallError::TooFew { found, wanted: wanted.agents, within_s, names, busy }
            }
            Role::Watch => {
                HallError::TooFewWatch { found, wanted: wanted.watchers, within_s, names, busy }
            }
        }
    }
}

/// The names of agents, in their order.
fn names_of<'a>(agents: impl Iterator<Item = &'a Here>) -> Vec<&'a str> {
    let mut names: Vec<&str> = agents.map(|here| here.name.as_str()).collect();
    names.sort_by_cached_key(|name| natural(name));
    names
}

/// A list of names that stays short.
pub(crate) fn few<'a>(all: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 8;
    let all: Vec<&str> = all.collect();
    let mut text = all.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if all.len() > SHOWN {
        text += &format!(" and {} more", all.len() - SHOWN);
    }
    text
}

/// A name so that 'agent-10' comes after 'agent-9'.
fn natural(name: &str) -> (String, u64, String) {
    let digits = name.chars().rev().take_while(char::is_ascii_digit).count();
    let (front, number) = name.split_at(name.len() - digits);
    (front.to_owned(), number.parse().unwrap_or(0), name.to_owned())
}

/// An agent that waits for work.
pub struct Waiting {
    calls: Box<dyn Subscription>,
    inbox: Box<dyn Subscription>,
    answered: Vec<u64>,
}

/// The first packet of a coordinator, and the subscription on which more come.
pub struct Called {
    /// Number of the coordinator.
    pub coordinator: u64,
    /// The packet.
    pub first: Vec<u8>,
    /// Messages for this agent.
    pub inbox: Box<dyn Subscription>,
}

/// Calls of other coordinators while an agent carries out a run.
pub struct Calls(Box<dyn Subscription>);

/// Tells other coordinators that an agent carries out a run, until it is dropped.
#[derive(Debug)]
pub struct Engaged(Arc<AtomicBool>);

impl Calls {
    /// Answers calls of all coordinators but `own` as `here`, which is busy, in a thread of its own.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn answer_busy(
        self,
        bus: Arc<dyn Bus>,
        fleet: FleetName,
        here: Here,
        own: u64,
    ) -> io::Result<Engaged> {
        /// Interval at which the thread looks whether the run is over.
        const LOOK_EVERY: Duration = Duration::from_millis(500);
        let is_over = Arc::new(AtomicBool::new(false));
        let engaged = Engaged(is_over.clone());
        let answer = move || {
            while !is_over.load(Ordering::Relaxed) {
                match self.0.next(LOOK_EVERY) {
                    Ok(None) => {}
                    Ok(Some(message)) => match serde_json::from_slice(&message.payload) {
                        Ok(Call { coordinator }) if coordinator != own => {
                            let busy = Here { is_busy: true, ..here.clone() };
                            answer_call(&*bus, &fleet, &busy, coordinator);
                        }
                        _ => {}
                    },
                    // A bus that has ended has no more calls.
                    Err(_) => return,
                }
            }
        };
        std::thread::Builder::new().name("calls".to_owned()).spawn(answer)?;
        Ok(engaged)
    }
}

impl Drop for Engaged {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn answer_call(bus: &dyn Bus, fleet: &FleetName, here: &Here, coordinator: u64) {
    let answer = Here { coordinator, ..here.clone() };
    // A call that is not answered comes again.
    let _ =
        bus.publish(&fleet.answers(coordinator), &serde_json::to_vec(&answer).unwrap_or_default());
}

impl Waiting {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the bus does not let this agent listen.
    pub fn begin(bus: &dyn Bus, fleet: &FleetName, own: u64) -> Result<Self, BusError> {
        Ok(Self {
            calls: bus.subscribe(&fleet.calls())?,
            inbox: bus.subscribe(&fleet.inbox(own))?,
            answered: Vec::new(),
        })
    }

    /// Answers calls until a coordinator gives this agent work; `None` if it was stopped before.
    ///
    /// # Errors
    /// When the bus has ended.
    pub fn wait(
        mut self,
        bus: &dyn Bus,
        fleet: &FleetName,
        here: &Here,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<(Called, Calls)>, BusError> {
        /// Coordinators that are remembered.
        const REMEMBERED: usize = 1024;
        while !is_stopped() {
            while let Some(message) = self.inbox.next(Duration::ZERO)? {
                let Ok(packet) = Packet::decode(&message.payload) else { continue };
                if self.answered.contains(&packet.from()) {
                    let first = message.payload.to_vec();
                    let coordinator = packet.from();
                    let called = Called { coordinator, first, inbox: self.inbox };
                    return Ok(Some((called, Calls(self.calls))));
                }
            }
            let Some(message) = self.calls.next(Duration::from_millis(20))? else { continue };
            let Ok(Call { coordinator }) = serde_json::from_slice(&message.payload) else {
                continue;
            };
            if !self.answered.contains(&coordinator) {
                self.answered.push(coordinator);
                let excess = self.answered.len().saturating_sub(REMEMBERED);
                self.answered.drain(..excess);
            }
            answer_call(bus, fleet, here, coordinator);
        }
        Ok(None)
    }
}

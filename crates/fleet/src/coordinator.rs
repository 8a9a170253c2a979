//! The coordinator of a run: agents, their states, and the phases of the run, as a machine that reads no clock and opens nothing.

mod phase;
mod settled;
mod watchers;
mod windows;

use crate::figures::Figures;
use crate::hall::few;
use crate::link::{Link, LinkError, Packet};
use crate::message::{Down, Here, Plan, Ready, Up};
use phase::Phase;
pub use phase::{Late, Load, PhaseEnd, lead_ns};
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::interval::Interval;
use plimsoll_core::record::FailureSample;
use plimsoll_core::seek::plant::Window;
use plimsoll_core::verdict::Verdict;
use plimsoll_record::fleet::Members;
use serde_json::Value;
pub use settled::{AgentPart, AgentReport, of_agents};
use std::collections::{BTreeSet, HashMap, VecDeque};
use watchers::Watchers;
pub use watchers::{WATCHES_WITHIN_NS, WatcherReport};

/// Silence after which an agent is lost, ns.
pub const SILENT_NS: u64 = 10 * SECOND_NS;
/// Longest time from the plan to the start line, ns: files, checks, connections.
pub const READY_WITHIN_NS: u64 = 120 * SECOND_NS;
/// Longest time without a second from an agent that runs and whose link is alive, ns.
pub const STUCK_NS: u64 = 90 * SECOND_NS;
/// Time from the agreement to the start, ns; a part of it for each agent.
const LEAD_NS: u64 = 400 * MILLISECOND_NS;
const LEAD_EACH_NS: u64 = 2 * MILLISECOND_NS;
/// Time before the start at which every agent must have confirmed it, ns.
const CONFIRMED_NS: u64 = 50 * MILLISECOND_NS;
/// Longest time by which an agent may start late, its clock's error included, ns.
pub const LATE_MAX_NS: u64 = 50 * MILLISECOND_NS;

/// Interval at which all links and limits are looked at, ns.
const SWEEP_NS: u64 = 20 * MILLISECOND_NS;

/// State of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It has its plan.
    Joined,
    /// Its connections are open.
    Prepared,
    /// It knows the start.
    Armed,
    /// Its load is on.
    Running,
    /// Its load is over, and its record is being written.
    Draining,
    /// It has reported everything.
    Done,
    /// It went silent, or reported less than everything.
    Lost,
    /// It was ordered to end, or ended by itself.
    Aborted,
}

/// Something that the coordinator's process has to do or to show.
#[derive(Debug)]
pub enum Event {
    /// All agents know the start of the phase, ns on the coordinator's clock.
    Agreed {
        /// Time of the start.
        at_ns: u64,
    },
    /// A second of all agents.
    Second(Box<Interval>),
    /// All windows of the phase that are known of all agents.
    Windows(Vec<Window>),
    /// A request that failed somewhere.
    Failure(Box<FailureSample>),
    /// All are ready for a phase whose start is held back until [`Coordinator::release`].
    Ready,
    /// The phase is over.
    Ended(Box<PhaseEnd>),
    /// The run cannot begin.
    Refused {
        /// One line, with the name of the agent.
        why: String,
        /// Exit code, if an agent gave one.
        code: Option<u8>,
    },
    /// An agent wants a piece of a file.
    Wants {
        /// Index of the agent.
        agent: usize,
        /// SHA-256 of the file.
        sha256: String,
        /// First byte.
        offset: u64,
    },
    /// Every agent has reported everything, or is lost.
    Settled,
}

pub(crate) struct Agent {
    pub here: Here,
    link: Link,
    pub state: State,
    /// Reason why it is lost or aborted.
    pub trouble: Option<String>,
    /// Exit code that it gave with the reason.
    pub code: Option<u8>,
    pub ready: Option<Ready>,
    /// Phase whose start it has confirmed.
    pub armed: Option<u32>,
    pub late_ns: u64,
    /// Time of its last message, or of the end of its warm-up if that is later, ns.
    active_ns: u64,
    pub figures: Option<Figures>,
    pub verdict: Option<Verdict>,
    /// Results of its job that were not taken yet.
    parts: VecDeque<Value>,
}

impl Agent {
    /// Queues a message; an agent that does not read is found by its silence.
    fn send(&mut self, message: &Down) -> Result<(), LinkError> {
        let text = serde_json::to_vec(message).unwrap_or_default();
        self.link.send(&text).map(drop)
    }

    fn name(&self) -> &str {
        &self.here.name
    }

    fn is_ready(&self, phase: u32) -> bool {
        self.ready.as_ref().is_some_and(|ready| ready.phase == phase)
    }

    pub fn is_gone(&self) -> bool {
        matches!(self.state, State::Lost | State::Aborted)
    }
}

/// The coordinator of one run.
pub struct Coordinator {
    agents: Vec<Agent>,
    members: Members,
    /// Index of each agent by the number of its process.
    places: HashMap<u64, usize>,
    /// Agents whose link has something to send.
    touched: BTreeSet<usize>,
    /// True if a state may have changed.
    is_stirred: bool,
    /// Time at which all links and limits are looked at, ns.
    sweep_ns: u64,
    phase: Option<Phase>,
    phases: u32,
    /// Time before which no phase starts, ns.
    not_before_ns: u64,
    events: VecDeque<Event>,
    /// True once the job of the coordinator is done with its phases.
    is_closing: bool,
    is_settled: bool,
    lost_between: Vec<String>,
    watchers: Watchers,
    /// True if the start of phases is held back, since other agents start at the same time.
    is_held: bool,
}

impl Coordinator {
    /// A coordinator, whose process has the number `own`, with the agents that it chose; each gets its plan.
    ///
    /// # Errors
    /// When a plan is too long to be sent.
    pub fn new(own: u64, chosen: Vec<(Here, Plan)>, now_ns: u64) -> Result<Self, LinkError> {
        let mut agents = Vec::new();
        for (here, plan) in chosen {
            let mut agent = Agent {
                link: Link::new(own, here.agent, now_ns),
                here,
                state: State::Joined,
                trouble: None,
                code: None,
                ready: None,
                armed: None,
                late_ns: 0,
                active_ns: now_ns,
                figures: None,
                verdict: None,
                parts: VecDeque::new(),
            };
            agent.send(&Down::Plan(Box::new(plan)))?;
            agents.push(agent);
        }
        let places = (0..).zip(&agents).map(|(index, agent)| (agent.here.agent, index)).collect();
        Ok(Self {
            agents,
            members: Members::Agents,
            places,
            touched: BTreeSet::new(),
            is_stirred: true,
            sweep_ns: 0,
            phase: None,
            phases: 0,
            not_before_ns: 0,
            events: VecDeque::new(),
            is_closing: false,
            is_settled: false,
            lost_between: Vec::new(),
            watchers: Watchers::default(),
            is_held: false,
        })
    }

    /// The next thing to do or to show.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Takes bytes from the bus; what is no packet of an agent is ignored.
    pub fn receive(&mut self, bytes: &[u8], now_ns: u64) {
        let Ok(packet) = Packet::decode(bytes) else { return };
        let from = packet.from();
        let Some(&index) = self.places.get(&from) else {
            self.is_stirred |= self.watchers.receive(packet, now_ns);
            return;
        };
        self.touched.insert(index);
        let messages = self.agents[index].link.receive(packet, now_ns);
        for bytes in messages {
            let agent = &mut self.agents[index];
            agent.active_ns = agent.active_ns.max(now_ns);
            match Up::decode(&bytes) {
                Ok(message) => self.hear(index, message),
                Err(error) => self.lose(index, &format!("it sent something unknown ({error})")),
            }
        }
    }

    fn hear(&mut self, index: usize, message: Up) {
        if self.agents[index].is_gone() {
            return;
        }
        self.is_stirred = true;
        match message {
            Up::Wants { sha256, offset } => {
                self.events.push_back(Event::Wants { agent: index, sha256, offset });
            }
            Up::Ready(ready) => {
                self.agents[index].state = State::Prepared;
                self.agents[index].ready = Some(ready);
            }
            Up::Armed { phase } => {
                self.agents[index].state = State::Armed;
                self.agents[index].armed = Some(phase);
            }
            Up::Started { phase, late_ns } => self.started(index, phase, late_ns),
            Up::Second(line) => self.second(index, &line),
            Up::Failure(sample) => self.events.push_back(Event::Failure(sample)),
            Up::Windows { phase, windows } => self.windows(index, phase, &windows),
            Up::Ended(ended) => self.ended(index, *ended),
            Up::Part(value) => self.agents[index].parts.push_back(value),
            Up::Finished { verdict, figures } => {
                self.agents[index].verdict = Some(verdict);
                self.agents[index].figures = figures.map(|figures| *figures);
                self.agents[index].state = State::Done;
            }
            Up::Failed { why, code } => self.failed(index, &why, code),
            Up::Watches(_) | Up::Used(_) => self.lose(index, "it watches, and was to send load"),
        }
    }

    /// Sends a piece of a file.
    pub fn piece(&mut self, agent: usize, sha256: String, offset: u64, data: String) {
        self.touched.insert(agent);
        let sent = self.agents[agent].send(&Down::Piece { sha256, offset, data });
        if let Err(error) = sent {
            self.lose(agent, &error.to_string());
        }
    }

    /// Packets that are to be sent now, each with the number of its agent.
    pub fn poll(&mut self, now_ns: u64) -> Vec<(u64, Vec<u8>)> {
        let is_sweep = now_ns >= self.sweep_ns;
        if is_sweep {
            self.sweep_ns = now_ns + SWEEP_NS;
            self.watch(now_ns);
        }
        if std::mem::take(&mut self.is_stirred) || is_sweep {
            self.advance(now_ns);
            self.settle();
        }
        let mut due = self.watchers.poll(now_ns);
        let touched = std::mem::take(&mut self.touched);
        let all = if is_sweep { 0..self.agents.len() } else { 0..0 };
        for index in all.chain(touched) {
            let agent = &mut self.agents[index];
            // A lost agent still gets the order to end: if it comes back, it must not send load.
            let packets = agent.link.poll(now_ns);
            due.extend(packets.iter().map(|packet| (agent.here.agent, packet.encode())));
        }
        due
    }

    /// Time until which [`Coordinator::poll`] has nothing to do if nothing arrives, ns.
    #[must_use]
    pub fn due_ns(&self) -> u64 {
        if self.is_stirred || self.watchers.is_touched || !self.touched.is_empty() {
            0
        } else {
            self.sweep_ns
        }
    }

    /// Finds agents that went silent.
    fn watch(&mut self, now_ns: u64) {
        self.watchers.look(now_ns, self.is_settled);
        for index in 0..self.agents.len() {
            let agent = &self.agents[index];
            if agent.is_gone() || (agent.state == State::Done && self.is_settled) {
                continue;
            }
            let silent_ns = agent.link.silent_ns(now_ns);
            if silent_ns > SILENT_NS {
                let seconds = silent_ns / SECOND_NS;
                self.lose(index, &format!("it has been silent for {seconds} s"));
            } else if agent.state == State::Running
                && now_ns.saturating_sub(agent.active_ns) > STUCK_NS
            {
                let seconds = STUCK_NS / SECOND_NS;
                self.lose(index, &format!("it has sent no measurements for {seconds} s"));
            }
        }
    }

    /// Lets the next phases start at this time or later, ns on the coordinator's clock.
    pub fn not_before(&mut self, at_ns: u64) {
        self.not_before_ns = at_ns;
    }

    /// Ends the load in order.
    pub fn stop(&mut self) {
        self.is_stirred = true;
        if let Some(phase) = &mut self.phase {
            phase.is_stopping = true;
        }
        self.tell(&Down::Stop);
    }

    /// Ends the phase that runs, because it is decided.
    pub fn end_early(&mut self) {
        if let Some(phase) = &self.phase {
            let phase = phase.number();
            self.tell(&Down::EndEarly { phase });
        }
    }

    /// Ends the run at once.
    pub fn abort(&mut self, why: &str) {
        let message = Down::Abort { why: why.to_owned() };
        self.tell(&message);
        self.watchers.abort(&message);
        for agent in &mut self.agents {
            if !agent.is_gone() {
                agent.state = State::Aborted;
            }
        }
    }

    fn tell(&mut self, message: &Down) {
        self.sweep_ns = 0;
        for agent in self.agents.iter_mut().filter(|agent| agent.state != State::Done) {
            // One that does not read any more ends by itself.
            let _ = agent.send(message);
        }
    }

    /// The process of an agent has ended, which its coordinator learns from the system and not from its silence.
    pub fn gone(&mut self, process: u64, why: &str) {
        let Some(&index) = self.places.get(&process) else { return };
        if self.agents[index].state != State::Done {
            self.lose(index, why);
        }
    }

    /// Counts an agent as lost.
    fn lose(&mut self, index: usize, why: &str) {
        let agent = &mut self.agents[index];
        if agent.is_gone() {
            return;
        }
        self.touched.insert(index);
        self.is_stirred = true;
        let agent = &mut self.agents[index];
        agent.state = State::Lost;
        agent.trouble = Some(why.to_owned());
        let _ =
            agent.send(&Down::Abort { why: format!("the coordinator counts it as lost: {why}") });
        self.without(index, why, None);
    }

    /// An agent says that it cannot go on.
    fn failed(&mut self, index: usize, why: &str, code: u8) {
        let agent = &mut self.agents[index];
        agent.state = State::Aborted;
        agent.trouble = Some(why.to_owned());
        agent.code = Some(code);
        self.without(index, why, Some(code));
    }
}

impl Coordinator {
    /// Sets the kind of the agents.
    pub fn set_members(&mut self, members: Members) {
        self.members = members;
    }

    /// Names of the agents that are meant, in a line that stays short; empty for none.
    fn names_of(&self, is_meant: &dyn Fn(&Agent) -> bool) -> String {
        let meant = self.agents.iter().filter(|agent| is_meant(agent));
        let all = few(meant.map(|agent| self.members.short(agent.name())));
        if all.is_empty() { all } else { format!("{} {all}", self.members.word_for_one()) }
    }
}

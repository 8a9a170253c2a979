//! One phase of a run: a stretch of load that all agents start at the same time.

use super::watchers::Readiness;
use super::windows::{Windows, add_all};
use super::{
    CONFIRMED_NS, Coordinator, Event, LATE_MAX_NS, LEAD_EACH_NS, LEAD_NS, READY_WITHIN_NS, State,
};
use crate::figures::Figures;
use crate::gathering::Gathering;
use crate::message::{Down, Ended};
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::interval::{Compact, Interval};
use plimsoll_core::seek::plant::{Pace, Window};
use plimsoll_engine::run::RunEnd;

/// Exit code of a run with too few agents.
const TOO_FEW_CODE: u8 = 3;

/// The load of a phase, as far as its coordinator must know it.
#[derive(Clone, Debug)]
pub struct Load {
    /// Everything on which its requests depend.
    pub key: String,
    /// Time from the start in which no agent measures, ns.
    pub warmup_ns: u64,
}

/// A phase while it lasts.
pub(super) struct Phase {
    number: u32,
    load: Load,
    since_ns: u64,
    /// Start on the coordinator's clock, ns, once the agents were asked to confirm it.
    start_ns: Option<u64>,
    /// True once all have confirmed it.
    is_agreed: bool,
    /// True if all are ready, and the start is held back.
    is_held_back: bool,
    pub is_stopping: bool,
    gathering: Gathering,
    /// Windows of the parts while they last, and of those that have ended.
    known: Windows,
    ended: Vec<Window>,
    /// Reasons why the phase is not whole.
    troubles: Vec<String>,
    late: Vec<Late>,
}

impl Phase {
    pub fn number(&self) -> u32 {
        self.number
    }
}

/// A part that began a phase too late for a common start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// Name of its agent.
    pub agent: String,
    /// Longest time by which it may have begun late, with the error of its clock, ns.
    pub by_ns: u64,
    /// The reason in a line.
    pub why: String,
}

/// The end of a phase.
#[derive(Debug)]
pub struct PhaseEnd {
    /// All agents together.
    pub end: RunEnd,
    /// Requests by due time, of all agents together.
    pub windows: Vec<Window>,
    /// Largest 99th percentile of an agent's lag, of agents that sent enough requests to have one, ns.
    pub pace: Pace,
    /// Reasons why the run is not whole, each with the name of its agent.
    pub troubles: Vec<String>,
    /// The agents that began it too late; the job knows how much that matters.
    pub late: Vec<Late>,
}

/// Time from the order to start to the start, ns.
#[must_use]
pub const fn lead_ns(agents: usize) -> u64 {
    LEAD_NS + LEAD_EACH_NS * agents as u64
}

impl Coordinator {
    /// Begins a phase: waits until all agents are ready for the one with the same key, and lets them start.
    pub fn begin(&mut self, load: Load, now_ns: u64) {
        let mut gathering = Gathering::of(self.agents.len());
        for (index, _) in self.agents.iter().enumerate().filter(|(_, agent)| agent.is_gone()) {
            gathering.lost(index);
        }
        self.phase = Some(Phase {
            number: self.phases,
            load,
            since_ns: now_ns,
            start_ns: None,
            is_agreed: false,
            is_held_back: false,
            is_stopping: false,
            gathering,
            known: Windows::of(self.agents.len()),
            ended: Vec::new(),
            troubles: Vec::new(),
            late: Vec::new(),
        });
        self.phases += 1;
        self.is_stirred = true;
    }

    /// Moves the phase on.
    pub(super) fn advance(&mut self, now_ns: u64) {
        let Some(phase) = &self.phase else { return };
        if phase.is_agreed {
            self.look_for_laggard();
            self.end_phase();
            return;
        }
        if let Some((why, code)) = self.first_gone() {
            self.refuse(&why, code);
            return;
        }
        if phase.is_stopping {
            self.refuse("stopped before the load began", None);
            return;
        }
        let number = phase.number;
        let Some(at_ns) = phase.start_ns else {
            let not_ready = |agent: &super::Agent| !agent.is_ready(number);
            let missing = self.names_of(&not_ready);
            if missing.is_empty() {
                match self.watchers.readiness() {
                    // Later phases go on with those that are left.
                    Readiness::TooFew(why) if number == 0 => self.refuse(&why, Some(TOO_FEW_CODE)),
                    Readiness::Waits => {}
                    Readiness::Ready | Readiness::TooFew(_) => self.arm(now_ns),
                }
            } else if now_ns > phase.since_ns + READY_WITHIN_NS {
                let seconds = READY_WITHIN_NS / SECOND_NS;
                self.refuse(&format!("not ready within {seconds} s: {missing}"), None);
            }
            return;
        };
        let not_armed = |agent: &super::Agent| agent.armed != Some(number);
        let missing = self.names_of(&not_armed);
        if missing.is_empty() {
            self.agree(at_ns);
        } else if now_ns + CONFIRMED_NS > at_ns {
            let why = format!("the start was not confirmed in time by {missing}");
            self.refuse(&why, None);
        }
    }

    /// All are ready: they are asked to confirm a start, unless they were given different runs.
    fn arm(&mut self, now_ns: u64) {
        let Some(phase) = &self.phase else { return };
        let wrong = self.agents.iter().find_map(|agent| {
            let (name, ready) = (self.members.title(agent.name()), agent.ready.as_ref()?);
            if ready.key != phase.load.key {
                return Some(format!(
                    "{name} prepared another load than the coordinator ({} and {}); their files, addresses or \
                     settings differ",
                    ready.key, phase.load.key
                ));
            }
            let error_ns = ready.clock.1 / 2;
            (error_ns > LATE_MAX_NS).then(|| {
                format!(
                    "the clock of {name} is known to {} ms only (half of the shortest round trip to the coordinator); \
                     at most {} ms are accepted for a common start; use a faster network to the bus",
                    error_ns / MILLISECOND_NS,
                    LATE_MAX_NS / MILLISECOND_NS
                )
            })
        });
        if let Some(why) = wrong {
            self.refuse(&why, None);
            return;
        }
        if self.is_held {
            let phase = self.phase.as_mut().filter(|phase| !phase.is_held_back);
            if let Some(phase) = phase {
                phase.is_held_back = true;
                self.events.push_back(Event::Ready);
            }
            return;
        }
        self.order_start((now_ns + lead_ns(self.agents.len())).max(self.not_before_ns));
    }

    fn order_start(&mut self, at_ns: u64) {
        let Some(phase) = &mut self.phase else { return };
        phase.start_ns = Some(at_ns);
        let phase = phase.number;
        self.tell(&Down::Arm { phase, at_ns });
    }

    /// Holds the start of each phase back until [`Coordinator::release`].
    pub fn hold(&mut self) {
        self.is_held = true;
    }

    /// Lets the phase that is held back start at a time, ns.
    pub fn release(&mut self, at_ns: u64) {
        if self.phase.as_ref().is_some_and(|phase| phase.is_held_back && phase.start_ns.is_none()) {
            self.order_start(at_ns);
        }
    }

    fn agree(&mut self, at_ns: u64) {
        let Some(phase) = &mut self.phase else { return };
        phase.is_agreed = true;
        // No measurements come before that, however long it is.
        let measures_from_ns = at_ns.saturating_add(phase.load.warmup_ns);
        self.events.push_back(Event::Agreed { at_ns });
        for agent in &mut self.agents {
            agent.state = State::Running;
            agent.active_ns = agent.active_ns.max(measures_from_ns);
        }
    }

    /// The phase cannot begin.
    fn refuse(&mut self, why: &str, code: Option<u8>) {
        self.phase = None;
        self.events.push_back(Event::Refused { why: why.to_owned(), code });
        self.abort(why);
    }

    /// An agent takes no further part.
    pub(super) fn without(&mut self, index: usize, why: &str, code: Option<u8>) {
        let reason = format!("{}: {why}", self.members.title(self.agents[index].name()));
        let Some(phase) = &mut self.phase else {
            self.lost_between.push(reason);
            return;
        };
        if !phase.is_agreed {
            self.refuse(&reason, code);
            return;
        }
        phase.troubles.push(reason);
        let whole = phase.gathering.lost(index);
        phase.known.lost(index);
        // The result is not valid any more: the others end in order.
        let is_first = !std::mem::replace(&mut phase.is_stopping, true);
        self.show(whole);
        if is_first {
            self.tell(&Down::Stop);
        }
    }

    pub(super) fn started(&mut self, index: usize, number: u32, late_ns: u64) {
        let agent = &mut self.agents[index];
        agent.late_ns = agent.late_ns.max(late_ns);
        let error_ns = agent.ready.as_ref().map_or(0, |ready| ready.clock.1 / 2);
        let phase = self.phase.as_mut().filter(|phase| phase.number == number);
        if late_ns + error_ns > LATE_MAX_NS
            && let Some(phase) = phase
        {
            let agent = self.agents[index].name().to_owned();
            let milliseconds = late_ns / MILLISECOND_NS;
            let why = format!("{}: it started {milliseconds} ms late", self.members.title(&agent));
            phase.late.push(Late { agent, by_ns: late_ns + error_ns, why });
        }
    }

    pub(super) fn second(&mut self, index: usize, second: &Compact) {
        let Some(phase) = &mut self.phase else { return };
        match phase.gathering.second(index, second) {
            Ok(whole) => self.show(whole),
            Err(why) => self.lose(index, &why),
        }
    }

    pub(super) fn windows(&mut self, index: usize, number: u32, windows: &[Window]) {
        let Some(phase) = self.phase.as_mut().filter(|phase| phase.number == number) else {
            return;
        };
        if let Some(known) = phase.known.add(index, windows) {
            self.events.push_back(Event::Windows(known.to_vec()));
        }
    }

    pub(super) fn ended(&mut self, index: usize, mut ended: Ended) {
        let Some(phase) = &mut self.phase else { return };
        if let Ok(end) = &mut ended.end {
            end.name_error(|| self.members.title(self.agents[index].name()));
        }
        let start_ns = phase.start_ns.unwrap_or(0);
        add_all(&mut phase.ended, 0, &std::mem::take(&mut ended.windows));
        match phase.gathering.ended(index, ended, start_ns) {
            Ok(whole) => {
                self.agents[index].state = State::Draining;
                self.show(whole);
            }
            Err(why) => self.lose(index, &why),
        }
    }

    fn show(&mut self, whole: Vec<Interval>) {
        let seconds = whole.into_iter().map(|second| Event::Second(Box::new(second)));
        self.events.extend(seconds);
    }

    /// An agent for whose seconds the others' have waited for too long is lost.
    fn look_for_laggard(&mut self) {
        let laggard = self.phase.as_ref().and_then(|phase| phase.gathering.laggard());
        if let Some(index) = laggard {
            self.lose(index, "its seconds are more than two minutes late");
        }
    }

    fn end_phase(&mut self) {
        if !self.phase.as_ref().is_some_and(|phase| phase.gathering.is_over()) {
            return;
        }
        let Some(phase) = self.phase.take() else { return };
        let mut whole = phase.gathering.finish();
        whole.end.start_ns = phase.start_ns.unwrap_or(0);
        let lag = whole.parts.iter().flatten().map(Figures::pace).map(|pace| pace.lag_p99_s);
        let pace = Pace { lag_p99_s: lag.fold(0.0, f64::max) };
        for (agent, figures) in self.agents.iter_mut().zip(whole.parts) {
            agent.figures = figures;
        }
        let Phase { ended: windows, troubles, late, .. } = phase;
        let end = PhaseEnd { end: whole.end, windows, pace, troubles, late };
        self.events.push_back(Event::Ended(Box::new(end)));
    }
}

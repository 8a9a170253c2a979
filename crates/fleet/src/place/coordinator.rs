//! The coordinator's process: it lets the agents run the phases of its job.

mod groups;

use super::Refused;
use crate::coordinator::{
    AgentPart, AgentReport, Coordinator, Event, Late, Load, PhaseEnd, WatcherReport,
};
use crate::files::Outgoing;
use crate::hall::FleetName;
use crate::message::{Here, Plan, Role};
use crate::post::{Machine, Post};
use groups::Other;
pub use groups::start_together;
use plimsoll_bus::{Bus, Subscription};
use plimsoll_core::clock::now_ns;
use plimsoll_core::interval::Interval;
use plimsoll_core::record::Sink;
use plimsoll_core::schedule::Slice;
use plimsoll_core::seek::plant::{Pace, Window};
use plimsoll_engine::run::RunEnd;
use plimsoll_record::fleet::Members;
use plimsoll_record::resources::ResourceLine;
use serde_json::Value;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Interval at which a wait looks whether the user wants the end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Longest wait for the agents' last acknowledgements.
const LAST_WORDS: Duration = Duration::from_secs(3);

struct Seat {
    coordinator: Coordinator,
    fleet: FleetName,
}

impl Machine for Seat {
    fn receive(&mut self, bytes: &[u8], now_ns: u64) {
        self.coordinator.receive(bytes, now_ns);
    }

    fn poll(&mut self, now_ns: u64) -> Vec<(String, Vec<u8>)> {
        let packets = self.coordinator.poll(now_ns);
        packets.into_iter().map(|(agent, bytes)| (self.fleet.inbox(agent), bytes)).collect()
    }

    fn due_ns(&self, _now_ns: u64) -> u64 {
        self.coordinator.due_ns()
    }
}

/// Everything that a coordinator begins with.
pub struct Setting {
    /// The bus.
    pub bus: Arc<dyn Bus>,
    /// Name of the fleet.
    pub fleet: FleetName,
    /// Number of this process.
    pub own: u64,
    /// Messages for this process.
    pub inbox: Box<dyn Subscription>,
    /// Kind of the agents.
    pub members: Members,
    /// Agents that were chosen: those for the load in the order of their slices, and those that watch.
    pub agents: Vec<Here>,
    /// Number of agents that must watch when the load starts.
    pub watchers: usize,
    /// Name of the run.
    pub run: String,
    /// Words of the command, `{files}` for an agent's folder of files.
    pub words: Vec<String>,
    /// Files that the words name.
    pub files: Outgoing,
}

/// A phase that agents carried out.
pub struct Conducted {
    /// All agents together.
    pub end: RunEnd,
    /// Requests by due time, of all agents together.
    pub windows: Vec<Window>,
    /// The lag of the agent that was latest.
    pub pace: Pace,
    /// The agents that began it too late for a common start.
    pub late: Vec<Late>,
    /// Number of windows that were known when the phase was ended early.
    pub aborted_at: Option<usize>,
}

/// The coordinator's process.
pub struct CoordinatorPost {
    post: Post<Seat>,
    files: Outgoing,
    agents: usize,
    /// Name of each agent, and of its machine.
    hosts: Vec<(String, String)>,
    run: String,
    /// Reasons why the run is not whole.
    troubles: Mutex<Vec<String>>,
    finished: AtomicBool,
    members: Members,
    /// Other agents of the same run, with a load of their own.
    other: OnceLock<Other>,
}

impl fmt::Debug for CoordinatorPost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoordinatorPost").field("agents", &self.agents).finish_non_exhaustive()
    }
}

impl CoordinatorPost {
    /// Gives each agent its plan.
    ///
    /// # Errors
    /// When the thread cannot be started, or a plan is too long.
    pub fn start(setting: Setting) -> io::Result<Self> {
        let Setting { bus, fleet, own, inbox, members, agents, watchers, run, words, files } =
            setting;
        // One that watches is never given a part of the load.
        let (watching, agents): (Vec<Here>, Vec<Here>) =
            agents.into_iter().partition(|here| here.role == Role::Watch);
        let of = agents.len() as u32;
        let hosts = agents.iter().map(|here| (here.name.clone(), here.host.clone())).collect();
        let entries = files.entries();
        let plan = |index| Plan {
            run: run.clone(),
            words: words.clone(),
            files: entries.clone(),
            slice: Slice { index, of },
        };
        let chosen = (0..).zip(agents).map(|(index, here)| (here, plan(index))).collect();
        let mut coordinator = Coordinator::new(own, chosen, now_ns())
            .and_then(|own_one| own_one.with_watchers(own, (watching, watchers), &run, now_ns()))
            .map_err(io::Error::other)?;
        coordinator.set_members(members);
        let post = Post::start(Seat { coordinator, fleet }, bus, inbox)?;
        Ok(Self {
            post,
            files,
            agents: of as usize,
            hosts,
            run,
            troubles: Mutex::default(),
            finished: AtomicBool::new(false),
            members,
            other: OnceLock::new(),
        })
    }

    /// Number of agents.
    #[must_use]
    pub fn agents(&self) -> usize {
        self.agents
    }

    /// Names of the agents that are on another machine than this one.
    #[must_use]
    pub fn elsewhere(&self, host: &str) -> Vec<String> {
        let other = self.hosts.iter().filter(|(_, own)| own != host);
        other.map(|(name, _)| name.clone()).collect()
    }

    /// Name of the run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Lets the agents run a phase with this load, and returns what they measured together. Seconds go to `sink`
    /// and `progress`, windows that are known to `look`; once it returns true the agents end the phase early. If `stop` is set the
    /// agents end their load in order.
    ///
    /// # Errors
    /// When the phase did not begin.
    pub fn conduct(
        &self,
        load: Load,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(&Interval),
        look: &mut dyn FnMut(&[Window]) -> bool,
        stop: &AtomicBool,
    ) -> Result<Conducted, Refused> {
        self.post.with(|seat| seat.coordinator.begin(load, now_ns()));
        let mut is_stopping = false;
        let mut sink_error = None;
        let mut aborted_at = None;
        loop {
            if stop.load(Ordering::Relaxed) && !std::mem::replace(&mut is_stopping, true) {
                self.post.with(|seat| seat.coordinator.stop());
            }
            let Some(event) = self.next_event() else { continue };
            let kept = match event {
                Event::Agreed { at_ns } => {
                    sink.counts_from(at_ns);
                    Ok(())
                }
                Event::Second(second) => {
                    progress(&second);
                    sink.interval(&second)
                }
                Event::Windows(known) => {
                    if aborted_at.is_none() && look(&known) {
                        aborted_at = Some(known.len());
                        self.post.with(|seat| seat.coordinator.end_early());
                    }
                    Ok(())
                }
                Event::Failure(sample) => sink.failure(&sample),
                Event::Ended(ended) => {
                    let PhaseEnd { mut end, windows, pace, troubles, late } = *ended;
                    end.sink_error = end.sink_error.take().or(sink_error);
                    end.interrupted |= is_stopping || !troubles.is_empty();
                    self.troubles().extend(troubles);
                    return Ok(Conducted { end, windows, pace, late, aborted_at });
                }
                Event::Refused { why, code } => return Err(Refused { why, code }),
                Event::Ready => {
                    self.arrive();
                    Ok(())
                }
                Event::Wants { .. } | Event::Settled => Ok(()),
            };
            if let Err(error) = kept {
                sink_error.get_or_insert(error);
            }
        }
    }

    /// The next event; files are handed out here.
    fn next_event(&self) -> Option<Event> {
        let event = self.post.wait(LOOK_EVERY, |seat| seat.coordinator.next_event())?;
        self.hand_out(&event);
        Some(event)
    }

    /// Sends the piece of a file that an agent wants, if that is the event.
    fn hand_out(&self, event: &Event) {
        if let Event::Wants { agent, sha256, offset } = event {
            let data = self.files.piece(sha256, *offset);
            let (sha256, offset) = (sha256.clone(), *offset);
            self.post.with(|seat| seat.coordinator.piece(*agent, sha256, offset, data));
        }
    }

    /// Waits until every agent has reported everything or is lost, and returns their reports and the reasons why the run is not
    /// whole.
    #[must_use]
    pub fn finish(&self) -> (Vec<AgentReport>, Vec<String>) {
        self.post.with(|seat| seat.coordinator.close());
        // An agent that says nothing any more is lost after a while, so this ends.
        while !matches!(self.next_event(), Some(Event::Settled)) {}
        let said = |seat: &mut Seat| seat.coordinator.has_said_all().then_some(());
        // An agent that does not acknowledge the end ends by itself.
        let _ = self.post.wait(LAST_WORDS, said);
        self.finished.store(true, Ordering::Relaxed);
        let lost = self.post.with(|seat| seat.coordinator.lost_between().to_vec());
        let mut troubles = std::mem::take(&mut *self.troubles());
        let known = troubles.clone();
        // The next phase may have found it already.
        troubles.extend(lost.into_iter().filter(|one| !known.contains(one)));
        (self.post.with(|seat| seat.coordinator.reports()), troubles)
    }

    /// Ends the run at once.
    pub fn abort(&self, why: &str) {
        self.post.with(|seat| seat.coordinator.abort(why));
        let said = |seat: &mut Seat| seat.coordinator.has_said_all().then_some(());
        let _ = self.post.wait(LAST_WORDS, said);
    }

    /// Waits for the next results of the agents' jobs, and returns them in the order of the slices. If `is_stopped` the agents end
    /// their load in order. An agent that is lost has none.
    #[must_use]
    pub fn parts(&self, is_stopped: &dyn Fn() -> bool) -> Vec<AgentPart> {
        let mut is_stopping = false;
        loop {
            // Before the first phase, agents still fetch their files.
            let found = self.post.wait(LOOK_EVERY, |seat| match seat.coordinator.take_parts() {
                Some(parts) => Some(Ok(parts)),
                None => seat.coordinator.next_event().map(Err),
            });
            match found {
                Some(Ok(parts)) => return parts,
                Some(Err(event)) => self.hand_out(&event),
                None => {}
            }
            if is_stopped() && !std::mem::replace(&mut is_stopping, true) {
                self.post.with(|seat| seat.coordinator.stop());
            }
        }
    }

    /// Gives all agents a finding of the job.
    ///
    /// # Errors
    /// When it is too long for a message.
    pub fn share(&self, value: &Value) -> Result<(), Refused> {
        let sent = self.post.with(|seat| seat.coordinator.share(value));
        sent.map_err(|error| Refused { why: error.to_string(), code: None })
    }

    /// The start of the measured stretch is known, ns: lines of agents that watch count from it.
    pub fn watched_from(&self, at_ns: u64) {
        self.post.with(|seat| seat.coordinator.measured_from(at_ns));
    }

    /// Takes the lines of the agents that watch since the last call, in the order of the agents.
    #[must_use]
    pub fn take_watched(&self) -> Vec<Vec<ResourceLine>> {
        self.post.with(|seat| seat.coordinator.take_watched())
    }

    /// The agents that watch, as they are.
    #[must_use]
    pub fn watchers(&self) -> Vec<WatcherReport> {
        self.post.with(|seat| seat.coordinator.watcher_reports())
    }

    /// Returns true once the agents have reported everything.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Relaxed)
    }

    /// Kind of the agents.
    #[must_use]
    pub fn members(&self) -> Members {
        self.members
    }

    /// Counts the agent of a process that has ended as lost, unless it has reported everything.
    pub fn gone(&self, process: u64, why: &str) {
        self.post.with(|seat| seat.coordinator.gone(process, why));
    }

    /// Reason why this agent is lost, if it is.
    #[must_use]
    pub fn trouble_of(&self, agent: usize) -> Option<String> {
        let reports = self.post.with(|seat| seat.coordinator.reports());
        reports.into_iter().nth(agent)?.trouble
    }

    /// The first agent that takes no further part, as the reason why a run cannot go on.
    #[must_use]
    pub fn first_gone(&self) -> Option<Refused> {
        let gone = self.post.with(|seat| seat.coordinator.first_gone());
        gone.map(|(why, code)| Refused { why, code })
    }

    /// Lets the next phases start at this time or later, ns on this machine's clock.
    pub fn not_before(&self, at_ns: u64) {
        self.post.with(|seat| seat.coordinator.not_before(at_ns));
    }

    /// Bytes that this process has handed to the bus, and that came from it.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        self.post.bytes()
    }

    /// Adds a reason why the run is not whole.
    pub fn is_not_whole(&self, why: &str) {
        self.troubles().push(why.to_owned());
    }

    fn troubles(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! An agent's process in its run.

use super::Refused;
use crate::end::EndLine;
use crate::figures::Figures;
use crate::files::{FileError, Incoming};
use crate::hall::{Called, FleetName};
use crate::member::{Member, Order};
use crate::message::{FileEntry, Plan, Up};
use crate::post::{Machine, Post};
use plimsoll_bus::Bus;
use plimsoll_core::clock::now_ns;
use plimsoll_core::interval::{Compact, Interval};
use plimsoll_core::record::{FailureSample, Sink};
use plimsoll_core::schedule::Slice;
use plimsoll_core::seek::plant::Window;
use plimsoll_core::verdict::Verdict;
use plimsoll_engine::health::machine;
use plimsoll_engine::run::RunEnd;
use plimsoll_engine::shard::Agreement;
use serde_json::Value;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Longest wait for the coordinator to take the last messages.
const LAST_WORDS: Duration = Duration::from_secs(20);
/// Interval at which a wait looks whether the process was stopped.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(super) struct Desk {
    pub member: Member,
    to: String,
    pub stop: Arc<AtomicBool>,
    pub plan: Option<Plan>,
    pieces: VecDeque<(String, u64, String)>,
    /// Findings of the coordinator's job, in the order in which they were sent.
    shared: VecDeque<Value>,
    start_ns: Option<u64>,
    pub aborted: Option<String>,
    /// Ends the schedule of the phase that runs early.
    end_early: Option<Arc<AtomicBool>>,
    has_bye: bool,
    was_told_to_stop: bool,
    /// Name of a run to watch.
    pub watch: Option<String>,
    /// Start of the measured stretch of that run, ns; none once it was taken.
    pub measured_from: Option<u64>,
}

impl Machine for Desk {
    fn receive(&mut self, bytes: &[u8], now_ns: u64) {
        self.member.receive(bytes, now_ns);
    }

    fn poll(&mut self, now_ns: u64) -> Vec<(String, Vec<u8>)> {
        let packets = self.member.poll(now_ns);
        while let Some(order) = self.member.next_order() {
            match order {
                Order::Plan(plan) => self.plan = Some(*plan),
                Order::Piece { sha256, offset, data } => {
                    self.pieces.push_back((sha256, offset, data));
                }
                Order::Start { at_ns } => self.start_ns = Some(at_ns),
                Order::Watch { run } => self.watch = Some(run),
                Order::MeasuredFrom { at_ns } => self.measured_from = Some(at_ns),
                Order::Shared(value) => self.shared.push_back(value),
                Order::EndEarly => {
                    if let Some(flag) = &self.end_early {
                        flag.store(true, Ordering::Relaxed);
                    }
                }
                Order::Stop => self.end_load(),
                Order::Abort { why } => {
                    self.aborted.get_or_insert(why);
                    self.end_load();
                }
                Order::Bye => self.has_bye = true,
            }
        }
        packets.into_iter().map(|bytes| (self.to.clone(), bytes)).collect()
    }

    fn due_ns(&self, now_ns: u64) -> u64 {
        self.member.due_ns(now_ns)
    }

    /// A bus that does not come back is the end of the coordinator.
    fn closed(&mut self) {
        self.aborted.get_or_insert_with(|| "the coordinator has ended".to_owned());
        self.end_load();
    }
}

/// An agent's process in its run.
pub struct AgentPost {
    pub(super) post: Post<Desk>,
    name: String,
    part: OnceLock<(String, Slice)>,
    /// Results of the job itself.
    results: Mutex<Vec<Value>>,
}

impl fmt::Debug for AgentPost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentPost").field("part", &self.part).finish_non_exhaustive()
    }
}

impl AgentPost {
    /// An agent that was called. `stop` is set when its load must end.
    ///
    /// # Errors
    /// When its thread cannot be started.
    pub fn start(
        bus: Arc<dyn Bus>,
        fleet: &FleetName,
        (own, name): (u64, &str),
        called: Called,
        stop: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let now = now_ns();
        let mut member = Member::new(own, called.coordinator, now);
        member.receive(&called.first, now);
        let desk = Desk {
            member,
            to: fleet.inbox(called.coordinator),
            stop,
            plan: None,
            pieces: VecDeque::new(),
            shared: VecDeque::new(),
            start_ns: None,
            aborted: None,
            end_early: None,
            has_bye: false,
            was_told_to_stop: false,
            watch: None,
            measured_from: None,
        };
        let post = Post::start(desk, bus, called.inbox)?;
        let (part, results) = (OnceLock::new(), Mutex::default());
        Ok(Self { post, name: name.to_owned(), part, results })
    }

    /// Notes that the coordinator is on the same machine, and reads the same clock.
    pub fn share_clock(&self) {
        self.post.with(|desk| desk.member.share_clock());
    }

    /// Waits for the plan.
    ///
    /// # Errors
    /// When the run ends before.
    pub fn plan(&self) -> Result<Plan, Refused> {
        let look = |desk: &mut Desk| match desk.watch {
            None => desk.plan.take().map(Ok).or_else(|| desk.is_aborted()),
            Some(_) => Some(Err(other_role("it sends load, and does not watch"))),
        };
        let plan = self.wait(look)?;
        let _ = self.part.set((plan.run.clone(), plan.slice));
        Ok(plan)
    }

    /// Part of the run.
    #[must_use]
    pub fn slice(&self) -> Slice {
        self.part.get().map_or(Slice::WHOLE, |(_, slice)| *slice)
    }

    /// Name of the run; empty before the plan.
    #[must_use]
    pub fn run(&self) -> String {
        self.part.get().map(|(run, _)| run.clone()).unwrap_or_default()
    }

    /// Name of the agent.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn wait<T>(
        &self,
        mut look: impl FnMut(&mut Desk) -> Option<Result<T, Refused>>,
    ) -> Result<T, Refused> {
        loop {
            if let Some(found) = self.post.wait(LOOK_EVERY, &mut look) {
                return found;
            }
            if self.post.with(|desk| desk.stop.load(Ordering::Relaxed)) {
                return Err(Refused {
                    why: "stopped before the load began".to_owned(),
                    code: Some(3),
                });
            }
        }
    }

    /// Receives the files of a plan, and returns their places: below `kept` those that may stay, below `passing` secret ones.
    ///
    /// # Errors
    /// When a file cannot be kept, is not what was announced, or the run ends before.
    pub fn fetch(&self, plan: &Plan, kept: &Path, passing: &Path) -> Result<Vec<PathBuf>, Refused> {
        let folder_of = |entry: &FileEntry| if entry.is_secret { passing } else { kept };
        plan.files
            .iter()
            .map(|entry| {
                let refused = |error: FileError| Refused { why: error.to_string(), code: Some(1) };
                let mut incoming =
                    match Incoming::begin(folder_of(entry), entry).map_err(refused)? {
                        Ok(place) => return Ok(place),
                        Err(incoming) => incoming,
                    };
                loop {
                    let (sha256, offset) = (entry.sha256.clone(), incoming.offset());
                    self.say(&Up::Wants { sha256: sha256.clone(), offset });
                    let data = self.wait(|desk| {
                        let wanted =
                            |(own, at, _): &(String, u64, String)| *own == sha256 && *at == offset;
                        let place = desk.pieces.iter().position(wanted);
                        let found = place.and_then(|place| desk.pieces.remove(place));
                        found.map(|(_, _, data)| Ok(data)).or_else(|| desk.is_aborted())
                    })?;
                    if let Some(place) = incoming.piece(offset, &data).map_err(refused)? {
                        return Ok(place);
                    }
                }
            })
            .collect()
    }

    pub(super) fn say(&self, message: &Up) {
        self.post.with(|desk| {
            if let Err(error) = desk.member.say(message) {
                desk.aborted.get_or_insert(error.to_string());
                desk.stop.store(true, Ordering::Relaxed);
            }
        });
    }

    /// The start of the next phase, as its shards agree on it. `key` has everything on which the requests of the phase depend.
    #[must_use]
    pub fn agreement(self: &Arc<Self>, key: String) -> Arc<dyn Agreement> {
        Arc::new(Line { post: self.clone(), key })
    }

    /// A phase begins that `end_early` ends, if the coordinator wants it.
    pub fn begins(&self, end_early: Arc<AtomicBool>) {
        self.post.with(|desk| desk.end_early = Some(end_early));
    }

    /// Sends the next windows of a phase whose verdicts are known.
    pub fn windows(&self, windows: Vec<Window>) {
        let phase = self.post.with(|desk| desk.member.current_phase());
        self.say(&Up::Windows { phase, windows });
    }

    /// Sends the end of a phase, with its requests by due time.
    pub fn ended(&self, end: Result<&RunEnd, String>, windows: Vec<Window>) {
        let line = end.map(EndLine::from);
        self.post.with(|desk| {
            if let Err(error) = desk.member.ended(line, windows) {
                desk.aborted.get_or_insert(error.to_string());
            }
        });
    }

    /// Sends what the job itself has found.
    ///
    /// # Errors
    /// When it is too long for a message, or too much waits to be sent.
    pub fn part(&self, value: Value) -> Result<(), Refused> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).push(value.clone());
        let sent = self.post.with(|desk| desk.member.say(&Up::Part(value)));
        sent.map_err(|error| Refused {
            why: format!("the results of this part cannot be sent: {error}"),
            code: None,
        })
    }

    /// Results of the job itself, for the record of this part.
    #[must_use]
    pub fn results(&self) -> Vec<Value> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for the next finding of the coordinator's job.
    ///
    /// # Errors
    /// When the run ends before.
    pub fn shared(&self) -> Result<Value, Refused> {
        self.wait(|desk| desk.shared.pop_front().map(Ok).or_else(|| desk.is_aborted()))
    }

    /// Returns true if the coordinator ended the schedule of the last phase before its time.
    #[must_use]
    pub fn was_ended_early(&self) -> bool {
        let is_set = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
        self.post.with(|desk| desk.end_early.as_ref().is_some_and(is_set))
    }

    /// Returns true if it was the coordinator that ended the load, and not a signal.
    #[must_use]
    pub fn was_told_to_stop(&self) -> bool {
        self.post.with(|desk| desk.was_told_to_stop)
    }

    /// Reason why the run was ended from outside, if it was.
    #[must_use]
    pub fn aborted(&self) -> Option<String> {
        self.post.with(|desk| desk.aborted.clone())
    }

    /// Reports its judgement and the figures of its part, if it had one, and waits until the coordinator has everything.
    ///
    /// # Errors
    /// When the coordinator does not answer any more.
    pub fn finish(&self, verdict: Verdict, figures: Option<Figures>) -> Result<(), Refused> {
        self.say(&Up::Finished { verdict, figures: figures.map(Box::new) });
        self.last_words(|desk| desk.has_bye)
    }

    /// Reports that it cannot go on.
    pub fn fail(&self, why: &str, code: u8) {
        self.say(&Up::Failed { why: why.to_owned(), code });
        // Without an answer the coordinator finds the silence.
        let _ = self.last_words(|desk| desk.member.is_settled());
    }

    fn last_words(&self, is_done: impl Fn(&Desk) -> bool) -> Result<(), Refused> {
        let look = |desk: &mut Desk| match is_done(desk) {
            true => Some(Ok(())),
            false => desk.is_aborted(),
        };
        // The coordinator may wait for other agents; as long as it is heard, this one waits.
        let mut waited = Duration::ZERO;
        loop {
            if let Some(done) = self.post.wait(LOOK_EVERY, look) {
                // The acknowledgement of the last message is on its way.
                std::thread::sleep(Duration::from_millis(20));
                return done;
            }
            waited += LOOK_EVERY;
            let is_heard = self.post.with(|desk| desk.member.is_heard(now_ns()));
            if !is_heard && waited > LAST_WORDS {
                let why = "the coordinator does not answer; what it has of this agent is unknown";
                return Err(Refused { why: why.to_owned(), code: None });
            }
        }
    }
}

/// An order for an agent with another role.
pub(super) fn other_role(why: &str) -> Refused {
    Refused { why: format!("{why}; start an agent with the other --role"), code: Some(64) }
}

impl Desk {
    fn end_load(&mut self) {
        if !self.stop.swap(true, Ordering::Relaxed) {
            self.was_told_to_stop = true;
        }
    }

    pub fn is_aborted<T>(&self) -> Option<Result<T, Refused>> {
        let why = self.aborted.clone()?;
        Some(Err(Refused { why, code: Some(3) }))
    }
}

#[derive(Debug)]
struct Line {
    post: Arc<AgentPost>,
    key: String,
}

impl Agreement for Line {
    fn start_ns(&self) -> Option<u64> {
        let key = self.key.clone();
        self.post.post.with(|desk| {
            desk.start_ns = None;
            desk.member.at_line(key, machine(), now_ns());
        });
        self.post.wait(|desk| desk.start_ns.map(Ok).or_else(|| desk.is_aborted())).ok()
    }
}

/// Sends each second to the coordinator, and keeps it here.
pub struct AgentSink<'a> {
    /// Keeps what is sent.
    pub inner: &'a mut (dyn Sink + Send),
    /// Way to the coordinator.
    pub post: &'a AgentPost,
    /// Time from the start to the measured stretch, ns, and from the start of the run to this phase.
    pub before_ns: (u64, u64),
}

/// Time by which a phase began after the start that was agreed on, ns: `counts_from_ns` is the start of the run's measured stretch, if
/// the phase was on time.
fn late_ns(counts_from_ns: u64, (warmup_ns, offset_ns): (u64, u64), agreed_ns: u64) -> u64 {
    let began_ns = counts_from_ns.saturating_add(offset_ns).saturating_sub(warmup_ns);
    began_ns.saturating_sub(agreed_ns)
}

impl Sink for AgentSink<'_> {
    fn counts_from(&mut self, start_ns: u64) {
        self.post.post.with(|desk| {
            let agreed_ns = desk.start_ns.unwrap_or(start_ns);
            let late_ns = late_ns(start_ns, self.before_ns, agreed_ns);
            let phase = desk.member.current_phase();
            // If the link is full, the next second finds it out.
            let _ = desk.member.say(&Up::Started { phase, late_ns });
        });
        self.inner.counts_from(start_ns);
    }

    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        self.post.say(&Up::Second(Compact::from(interval)));
        self.inner.interval(interval)
    }

    fn failure(&mut self, sample: &FailureSample) -> io::Result<()> {
        self.post.say(&Up::Failure(Box::new(sample.clone())));
        self.inner.failure(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::clock::SECOND_NS;

    #[test]
    fn a_late_start_is_found_in_the_first_phase_and_in_later_ones() {
        let agreed_ns = 100 * SECOND_NS;
        for before_ns in [(0, 0), (3 * SECOND_NS, 0), (0, 40 * SECOND_NS), (SECOND_NS, SECOND_NS)] {
            // As the engine says it.
            let counts_from = |began_ns: u64| began_ns + before_ns.0 - before_ns.1;
            assert_eq!(late_ns(counts_from(agreed_ns), before_ns, agreed_ns), 0);
            assert_eq!(late_ns(counts_from(agreed_ns + 70), before_ns, agreed_ns), 70);
        }
    }
}

//! Agents that watch their machines: they have no part of the load, and one that is lost takes nothing from it.

use super::{Coordinator, SILENT_NS, State};
use crate::hall::few;
use crate::link::{Link, LinkError, Packet};
use crate::message::{Down, Here, Up, Watches};
use plimsoll_core::clock::SECOND_NS;
use plimsoll_record::resources::{ResourceLine, ResourcesResult};
use std::collections::VecDeque;

/// Longest time from the call to the first line, ns: an agent that takes longer is left out.
pub const WATCHES_WITHIN_NS: u64 = 30 * SECOND_NS;

struct Watcher {
    here: Here,
    link: Link,
    state: State,
    trouble: Option<String>,
    watches: Option<Watches>,
    /// Lines that were not taken yet.
    lines: VecDeque<ResourceLine>,
    until_s: Option<f64>,
}

impl Watcher {
    fn send(&mut self, message: &Down) {
        let text = serde_json::to_vec(message).unwrap_or_default();
        // One that does not read is found by its silence.
        let _ = self.link.send(&text);
    }

    fn is_gone(&self) -> bool {
        matches!(self.state, State::Lost | State::Aborted)
    }

    fn lose(&mut self, why: &str) {
        if self.is_gone() {
            return;
        }
        self.state = State::Lost;
        self.trouble = Some(why.to_owned());
        self.send(&Down::Abort { why: format!("the coordinator counts it as lost: {why}") });
    }

    fn hear(&mut self, message: Up) {
        if self.is_gone() {
            return;
        }
        match message {
            Up::Watches(watches) => {
                self.state = State::Running;
                self.watches = Some(*watches);
            }
            Up::Used(line) => {
                self.until_s = Some(line.at_s);
                self.lines.push_back(*line);
            }
            Up::Finished { .. } => self.state = State::Done,
            Up::Failed { why, .. } => {
                self.state = State::Aborted;
                self.trouble = Some(why);
            }
            _ => self.lose("it sent a part of a load, and was to watch only"),
        }
    }
}

/// The agents of a run that watch.
#[derive(Default)]
pub(super) struct Watchers {
    all: Vec<Watcher>,
    /// Number that must watch when the load starts.
    least: usize,
    since_ns: u64,
    /// True if a link may have something to send.
    pub is_touched: bool,
}

/// Readiness of the watchers for the start of a load.
pub(super) enum Readiness {
    /// All watch, or are given up.
    Ready,
    /// One is still preparing.
    Waits,
    /// Not enough of them watch.
    TooFew(String),
}

impl Watchers {
    /// Takes a packet, if it is one of theirs.
    pub fn receive(&mut self, packet: Packet, now_ns: u64) -> bool {
        let from = packet.from();
        let Some(one) = self.all.iter_mut().find(|one| one.here.agent == from) else {
            return false;
        };
        self.is_touched = true;
        for text in one.link.receive(packet, now_ns) {
            match Up::decode(&text) {
                Ok(message) => one.hear(message),
                Err(error) => one.lose(&format!("it sent something unknown ({error})")),
            }
        }
        true
    }

    pub fn poll(&mut self, now_ns: u64) -> Vec<(u64, Vec<u8>)> {
        self.is_touched = false;
        let each = |one: &mut Watcher| {
            let number = one.here.agent;
            let packets = one.link.poll(now_ns);
            packets.into_iter().map(|packet| (number, packet.encode())).collect::<Vec<_>>()
        };
        self.all.iter_mut().flat_map(each).collect()
    }

    /// Finds those that went silent, and those that do not come to the start.
    pub fn look(&mut self, now_ns: u64, is_settled: bool) {
        let is_late = now_ns.saturating_sub(self.since_ns) > WATCHES_WITHIN_NS;
        for one in &mut self.all {
            if one.state == State::Done && is_settled {
                continue;
            }
            let silent_ns = one.link.silent_ns(now_ns);
            if silent_ns > SILENT_NS {
                one.lose(&format!("it has been silent for {} s", silent_ns / SECOND_NS));
            } else if one.state == State::Joined && is_late {
                let seconds = WATCHES_WITHIN_NS / SECOND_NS;
                one.lose(&format!("it does not watch after {seconds} s"));
            }
        }
    }

    /// Returns whether they hold back the first phase.
    pub fn readiness(&self) -> Readiness {
        if self.all.iter().any(|one| one.state == State::Joined) {
            return Readiness::Waits;
        }
        let watching = self.all.iter().filter(|one| !one.is_gone()).count();
        if watching >= self.least {
            return Readiness::Ready;
        }
        let gone = self.all.iter().filter(|one| one.is_gone()).map(|one| {
            format!("agent {}: {}", one.here.name, one.trouble.as_deref().unwrap_or("lost"))
        });
        Readiness::TooFew(format!(
            "{watching} of {} agents watch; {}",
            self.least,
            gone.collect::<Vec<_>>().join("; ")
        ))
    }

    pub fn send(&mut self, message: &Down) {
        self.is_touched = true;
        let all = self.all.iter_mut().filter(|one| !one.is_gone() && one.state != State::Done);
        all.for_each(|one| one.send(message));
    }

    pub fn abort(&mut self, message: &Down) {
        self.send(message);
        for one in self.all.iter_mut().filter(|one| !one.is_gone()) {
            one.state = State::Aborted;
            one.trouble.get_or_insert_with(|| "the run was ended".to_owned());
        }
    }

    pub fn is_over(&self) -> bool {
        self.all.iter().all(|one| one.is_gone() || one.state == State::Done)
    }

    pub fn bye(&mut self) {
        self.is_touched = true;
        let done = self.all.iter_mut().filter(|one| one.state == State::Done);
        done.for_each(|one| one.send(&Down::Bye));
    }

    pub fn has_said_all(&self) -> bool {
        self.all.iter().all(|one| one.is_gone() || one.link.is_settled())
    }
}

/// An agent that watches, as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct WatcherReport {
    /// Its name.
    pub name: String,
    /// Name of its machine.
    pub host: String,
    /// Watched things and its clock; none if it was lost before it had reported them.
    pub watches: Option<Watches>,
    /// Reason why it did not watch to the end.
    pub trouble: Option<String>,
    /// End of its last line, s from the start of the measured stretch.
    pub until_s: Option<f64>,
}

impl WatcherReport {
    /// The watched things without figures; those of the lines if it was lost before it had said more.
    #[must_use]
    pub fn things(&self) -> ResourcesResult {
        self.watches.as_ref().map(|watches| watches.things.clone()).unwrap_or_default()
    }

    /// Line about an agent that did not watch to the end.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let why = self.trouble.as_ref()?;
        let (name, host) = (&self.name, &self.host);
        Some(match self.until_s {
            Some(until_s) => format!(
                "agent {name}, which watches {host}: {why}; the resources of {host} end at {until_s:.1} s"
            ),
            None => format!(
                "agent {name}, which was to watch {host}: {why}; there are no resources of {host}"
            ),
        })
    }
}

impl Coordinator {
    /// Adds agents that watch, of which at least `least` must do so when the load starts. `own` is the number of this process.
    ///
    /// # Errors
    /// When an order is too long to be sent.
    pub fn with_watchers(
        mut self,
        own: u64,
        (watchers, least): (Vec<Here>, usize),
        run: &str,
        now_ns: u64,
    ) -> Result<Self, LinkError> {
        let order = serde_json::to_vec(&Down::Watch { run: run.to_owned() }).unwrap_or_default();
        for here in watchers {
            let mut link = Link::new(own, here.agent, now_ns);
            link.send(&order)?;
            self.watchers.all.push(Watcher {
                here,
                link,
                state: State::Joined,
                trouble: None,
                watches: None,
                lines: VecDeque::new(),
                until_s: None,
            });
        }
        self.watchers.least = least;
        self.watchers.since_ns = now_ns;
        self.watchers.is_touched = true;
        Ok(self)
    }

    /// The start of the measured stretch is known, ns on the own clock: lines of watchers count from it.
    pub fn measured_from(&mut self, at_ns: u64) {
        self.watchers.send(&Down::MeasuredFrom { at_ns });
    }

    /// Takes the lines of the watchers since the last call, in the order of the watchers.
    pub fn take_watched(&mut self) -> Vec<Vec<ResourceLine>> {
        self.watchers.all.iter_mut().map(|one| one.lines.drain(..).collect()).collect()
    }

    /// The watchers as they are.
    #[must_use]
    pub fn watcher_reports(&self) -> Vec<WatcherReport> {
        let report = |one: &Watcher| WatcherReport {
            name: one.here.name.clone(),
            host: one.here.host.clone(),
            watches: one.watches.clone(),
            trouble: one.trouble.clone(),
            until_s: one.until_s,
        };
        self.watchers.all.iter().map(report).collect()
    }

    /// Names of the watchers, in a line that stays short.
    #[must_use]
    pub fn watcher_names(&self) -> String {
        few(self.watchers.all.iter().map(|one| one.here.name.as_str()))
    }
}

#[cfg(test)]
mod tests;

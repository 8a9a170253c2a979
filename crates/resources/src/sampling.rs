//! The thread that looks once a second, at the ends of the run's own seconds, and keeps the lines.

use crate::account::Account;
use crate::look::{Looking, Seen};
use crate::resolve::Resolved;
use plimsoll_core::clock::{SECOND_NS, now_ns};
use plimsoll_core::priority::{StepBack, step_back};
use plimsoll_record::resources::{MachineResult, ResourceLine, ResourcesResult, WatchedResult};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Shortest time between two looks, ns: CPU time is counted in ticks of 10 ms.
const GAP_MIN_NS: u64 = SECOND_NS / 10;
/// Shortest last line, ns.
const LAST_MIN_NS: u64 = SECOND_NS / 50;
/// Most lines that wait in memory for the start of the measured stretch.
const WAITING_MAX: usize = 3600;
/// Most remarks of a record.
const REMARKS_MAX: usize = 20;

/// Takes the lines of a sampler while they come.
pub trait Keep: Send {
    /// Takes what is watched, after the first look: names, processes and limits, without figures.
    fn begin(&mut self, things: &ResourcesResult) {
        let _ = things;
    }

    /// Takes the next line.
    ///
    /// # Errors
    /// When it cannot be kept; no further line comes then.
    fn line(&mut self, line: &ResourceLine) -> io::Result<()>;
}

impl Keep for File {
    fn line(&mut self, line: &ResourceLine) -> io::Result<()> {
        let mut text = serde_json::to_vec(line).map_err(io::Error::other)?;
        text.push(b'\n');
        self.write_all(&text)
    }
}

/// A sampler at work. It ends when this is dropped.
#[derive(Debug)]
pub struct Sampling {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<ResourcesResult>>,
}

/// State that the run and the sampler share.
#[derive(Debug, Default)]
struct Shared {
    times: Mutex<Times>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct Times {
    /// Start of the measured stretch, ns on the monotonic clock.
    origin_ns: Option<u64>,
    /// End of the last second of the run that is over, ns since the start of the measured stretch.
    reached_ns: u64,
    /// The run is over, with the length of the measured stretch, ns.
    end_ns: Option<u64>,
}

impl Shared {
    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sampling {
    /// Begins to look. Lines go to `file`, if there is one.
    ///
    /// # Errors
    /// When the file cannot be made, or the thread cannot be started.
    pub fn start(found: Resolved, file: Option<&Path>) -> io::Result<Self> {
        let file = file.map(File::create).transpose()?;
        Self::start_with(found, file.map(|file| Box::new(file) as Box<dyn Keep>))
    }

    /// The same with anything that keeps lines.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start_with(found: Resolved, keep: Option<Box<dyn Keep>>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = shared.clone();
        let thread = Builder::new().name("resources".to_owned()).spawn(move || {
            step_back(StepBack::Behind);
            Sampler::new(found, keep, own).run()
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Tells where the measured stretch starts, ns on the monotonic clock. A run of several parts tells it for each.
    pub fn measured_from(&self, origin_ns: u64) {
        self.shared.times().origin_ns = Some(origin_ns);
        self.shared.changed.notify_all();
    }

    /// True if the start of the measured stretch is known.
    #[must_use]
    pub fn knows_start(&self) -> bool {
        self.shared.times().origin_ns.is_some()
    }

    /// Tells that a second of the run is over, with its end in ns since the start of the measured stretch.
    pub fn reached(&self, to_ns: u64) {
        let mut times = self.shared.times();
        times.reached_ns = times.reached_ns.max(to_ns);
    }

    /// Ends with a last look. The measured stretch was `measured_ns` long.
    #[must_use]
    pub fn finish(mut self, measured_ns: u64) -> ResourcesResult {
        self.end(measured_ns).unwrap_or_default()
    }

    fn end(&mut self, measured_ns: u64) -> Option<ResourcesResult> {
        self.shared.times().end_ns = Some(measured_ns);
        self.shared.changed.notify_all();
        self.thread.take()?.join().ok()
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        let _ = self.end(0);
    }
}

/// A stretch between two looks, at times of the monotonic clock, ns.
struct Stretch {
    from_ns: u64,
    to_ns: u64,
    seen: Seen,
}

struct Sampler {
    looking: Looking,
    keep: Option<Box<dyn Keep>>,
    shared: Arc<Shared>,
    /// Time of the first look, which gives the beat until the run's own is known.
    began_ns: u64,
    looked_ns: u64,
    /// Lines before the start of the measured stretch was known.
    early: VecDeque<Stretch>,
    account: Account,
    events: Vec<(u64, String)>,
    remarks: Vec<String>,
}

impl Sampler {
    fn new(found: Resolved, keep: Option<Box<dyn Keep>>, shared: Arc<Shared>) -> Self {
        Self {
            looking: Looking::new(found.subjects),
            keep,
            shared,
            began_ns: 0,
            looked_ns: 0,
            early: VecDeque::new(),
            account: Account::default(),
            events: Vec::new(),
            remarks: found.remarks,
        }
    }

    fn run(mut self) -> ResourcesResult {
        self.began_ns = now_ns();
        self.looked_ns = self.began_ns;
        self.looking.look(0.0);
        let things = self.things();
        self.keep.iter_mut().for_each(|keep| keep.begin(&things));
        loop {
            let times = self.wait();
            let now_ns = now_ns();
            if let Some(measured_ns) = times.end_ns {
                let is_alone = self.early.is_empty() && self.account.is_empty();
                if now_ns >= self.looked_ns + LAST_MIN_NS || is_alone {
                    self.look(now_ns, &times);
                }
                return self.finish(&times, measured_ns);
            }
            self.look(now_ns, &times);
        }
    }

    /// Waits for the next look, or for the end.
    fn wait(&self) -> Times {
        let mut times = self.shared.times();
        loop {
            let due_ns = self.due_ns(times.origin_ns);
            let left_ns = due_ns.saturating_sub(now_ns());
            if times.end_ns.is_some() || left_ns == 0 {
                return *times;
            }
            let waited = self.shared.changed.wait_timeout(times, Duration::from_nanos(left_ns));
            times = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The next end of a second, a little after the last look at the earliest.
    fn due_ns(&self, origin_ns: Option<u64>) -> u64 {
        let beat_ns = origin_ns.unwrap_or(self.began_ns);
        let earliest_ns = self.looked_ns + GAP_MIN_NS;
        match earliest_ns.checked_sub(beat_ns) {
            Some(past_ns) => beat_ns + past_ns.div_ceil(SECOND_NS) * SECOND_NS,
            // Still in the warm-up: whole seconds before its end.
            None => beat_ns - (beat_ns - earliest_ns) / SECOND_NS * SECOND_NS,
        }
    }

    fn look(&mut self, now_ns: u64, times: &Times) {
        let from_ns = std::mem::replace(&mut self.looked_ns, now_ns);
        let span_ns = now_ns - from_ns;
        let mut seen = self.looking.look(span_ns as f64 / 1e9);
        for event in seen.events.drain(..) {
            if self.events.len() < REMARKS_MAX {
                self.events.push((now_ns, event));
            }
        }
        self.early.push_back(Stretch { from_ns, to_ns: now_ns, seen });
        match times.origin_ns {
            Some(origin_ns) => self.keep_early(origin_ns),
            None if self.early.len() > WAITING_MAX => drop(self.early.pop_front()),
            None => {}
        }
        self.account.reached(times.reached_ns as f64);
    }

    /// Writes the lines that waited for the start of the measured stretch.
    fn keep_early(&mut self, origin_ns: u64) {
        while let Some(Stretch { from_ns, to_ns, seen }) = self.early.pop_front() {
            let line = ResourceLine {
                at_s: (to_ns as f64 - origin_ns as f64) / 1e9,
                span_s: (to_ns - from_ns) as f64 / 1e9,
                watched: seen.watched,
                machine: seen.machine,
            };
            self.write(&line);
            self.account.take(line);
        }
    }

    fn write(&mut self, line: &ResourceLine) {
        let Some(keep) = &mut self.keep else { return };
        if let Err(error) = keep.line(line) {
            self.remarks.push(format!("resources.ndjson could not be written completely: {error}"));
            self.keep = None;
        }
    }

    fn finish(mut self, times: &Times, measured_ns: u64) -> ResourcesResult {
        let origin_ns = times.origin_ns.unwrap_or(self.began_ns);
        self.keep_early(origin_ns);
        let at_s = |at_ns: u64| (at_ns as f64 - origin_ns as f64) / 1e9;
        let events =
            self.events.iter().map(|(at_ns, event)| format!("{event}, at {:.1} s", at_s(*at_ns)));
        self.remarks.extend(events);
        let things = self.things();
        self.account.finish(measured_ns as f64, things, self.looking.memory_bytes())
    }

    /// The watched things and their limits, without figures.
    fn things(&self) -> ResourcesResult {
        let things = self.looking.subjects().count();
        let machine =
            MachineResult { unknown: self.looking.unknown(things), ..MachineResult::default() };
        let watched = self.looking.subjects().enumerate().map(|(index, (subject, pids))| {
            let (cpu_cores_allowed, memory_allowed_bytes) = self.looking.allowed(index);
            WatchedResult {
                name: subject.name.clone(),
                kind: subject.kind(),
                found_by: subject.found_by.clone(),
                pids: pids.to_vec(),
                program: subject.program.clone(),
                unknown: self.looking.unknown(index),
                cpu_cores_allowed,
                memory_allowed_bytes,
                ..WatchedResult::default()
            }
        });
        ResourcesResult {
            watched: watched.collect(),
            machine,
            remarks: self.remarks.clone(),
            ..ResourcesResult::default()
        }
    }
}

#[cfg(test)]
mod tests;

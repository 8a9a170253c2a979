//! The thread that looks once a second, at the ends of the run's own seconds, and keeps the lines.

use crate::limits;
use crate::look::{Looking, Seen};
use crate::resolve::Resolved;
use crate::summary::Summary;
use plimsoll_core::clock::{SECOND_NS, now_ns};
use plimsoll_record::resources::{ResourceLine, ResourcesResult, WatchedResult};
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
/// Most lines that wait in memory: for the start of the measured stretch, and for its end.
const WAITING_MAX: usize = 3600;
/// Most remarks of a record.
const REMARKS_MAX: usize = 20;

/// A sampler at work. It ends when this is dropped.
#[derive(Debug)]
pub struct Sampling {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<ResourcesResult>>,
}

/// State that the run and the sampler share.
#[derive(Debug, Default)]
struct Shared {
    told: Mutex<Told>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct Told {
    /// Start of the measured stretch, ns on the monotonic clock.
    origin_ns: Option<u64>,
    /// End of the last second of the run that is over, ns since the start of the measured stretch.
    reached_ns: u64,
    /// The run is over, with the length of the measured stretch, ns.
    end_ns: Option<u64>,
}

impl Shared {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sampling {
    /// Begins to look. Lines go to `file`, if there is one; `at_start` is called on the thread, to set its priority.
    ///
    /// # Errors
    /// When the file cannot be made, or the thread cannot be started.
    pub fn start(
        found: Resolved,
        file: Option<&Path>,
        at_start: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let file = file.map(File::create).transpose()?;
        let shared = Arc::new(Shared::default());
        let own = shared.clone();
        let thread = Builder::new().name("resources".to_owned()).spawn(move || {
            at_start();
            Sampler::new(found, file, own).run()
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Tells where the measured stretch starts, ns on the monotonic clock. A run of several parts tells it for each.
    pub fn measured_from(&self, origin_ns: u64) {
        self.shared.told().origin_ns = Some(origin_ns);
        self.shared.changed.notify_all();
    }

    /// True if the start of the measured stretch is known.
    #[must_use]
    pub fn knows_start(&self) -> bool {
        self.shared.told().origin_ns.is_some()
    }

    /// Tells that a second of the run is over, with its end in ns since the start of the measured stretch.
    pub fn reached(&self, to_ns: u64) {
        let mut told = self.shared.told();
        told.reached_ns = told.reached_ns.max(to_ns);
    }

    /// Ends with a last look. The measured stretch was `measured_ns` long.
    #[must_use]
    pub fn finish(mut self, measured_ns: u64) -> ResourcesResult {
        self.end(measured_ns).unwrap_or_default()
    }

    fn end(&mut self, measured_ns: u64) -> Option<ResourcesResult> {
        self.shared.told().end_ns = Some(measured_ns);
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
    file: Option<File>,
    shared: Arc<Shared>,
    /// Time of the first look, which gives the beat until the run's own is known.
    began_ns: u64,
    looked_ns: u64,
    /// Lines before the start of the measured stretch was known.
    early: VecDeque<Stretch>,
    /// Lines of which it is not known yet whether they lie in the measured stretch.
    open: VecDeque<ResourceLine>,
    /// A line outside of it, in case that no line lies in it.
    outside: Option<ResourceLine>,
    summary: Summary,
    events: Vec<(u64, String)>,
    remarks: Vec<String>,
}

impl Sampler {
    fn new(found: Resolved, file: Option<File>, shared: Arc<Shared>) -> Self {
        Self {
            looking: Looking::new(found.subjects),
            file,
            shared,
            began_ns: 0,
            looked_ns: 0,
            early: VecDeque::new(),
            open: VecDeque::new(),
            outside: None,
            summary: Summary::default(),
            events: Vec::new(),
            remarks: found.remarks,
        }
    }

    fn run(mut self) -> ResourcesResult {
        self.began_ns = now_ns();
        self.looked_ns = self.began_ns;
        self.looking.look(0.0);
        loop {
            let told = self.wait();
            let now_ns = now_ns();
            if let Some(measured_ns) = told.end_ns {
                let is_alone = self.early.is_empty() && self.open.is_empty();
                if now_ns >= self.looked_ns + LAST_MIN_NS
                    || (is_alone && self.summary.samples() == 0)
                {
                    self.look(now_ns, &told);
                }
                return self.finish(&told, measured_ns);
            }
            self.look(now_ns, &told);
        }
    }

    /// Waits for the next look, or for the end.
    fn wait(&self) -> Told {
        let mut told = self.shared.told();
        loop {
            let due_ns = self.due_ns(told.origin_ns);
            let left_ns = due_ns.saturating_sub(now_ns());
            if told.end_ns.is_some() || left_ns == 0 {
                return *told;
            }
            let waited = self.shared.changed.wait_timeout(told, Duration::from_nanos(left_ns));
            told = waited.unwrap_or_else(PoisonError::into_inner).0;
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

    fn look(&mut self, now_ns: u64, told: &Told) {
        let from_ns = std::mem::replace(&mut self.looked_ns, now_ns);
        let span_ns = now_ns - from_ns;
        let mut seen = self.looking.look(span_ns as f64 / 1e9);
        for event in seen.events.drain(..) {
            if self.events.len() < REMARKS_MAX {
                self.events.push((now_ns, event));
            }
        }
        self.early.push_back(Stretch { from_ns, to_ns: now_ns, seen });
        match told.origin_ns {
            Some(origin_ns) => self.keep_early(origin_ns),
            None if self.early.len() > WAITING_MAX => drop(self.early.pop_front()),
            None => {}
        }
        self.settle(|line| middle_ns(line) <= told.reached_ns as f64);
        while self.open.len() > WAITING_MAX {
            let line = self.open.pop_front();
            line.iter().for_each(|line| self.summary.add(line));
        }
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
            self.open.push_back(line);
        }
    }

    fn write(&mut self, line: &ResourceLine) {
        let Some(file) = &mut self.file else { return };
        let written = serde_json::to_vec(line).map_err(io::Error::other).and_then(|mut text| {
            text.push(b'\n');
            file.write_all(&text)
        });
        if let Err(error) = written {
            self.remarks.push(format!("resources.ndjson could not be written completely: {error}"));
            self.file = None;
        }
    }

    /// Adds lines to the summary as far as `is_settled` says, those outside the measured stretch left out.
    fn settle(&mut self, is_settled: impl Fn(&ResourceLine) -> bool) {
        while self.open.front().is_some_and(&is_settled) {
            let Some(line) = self.open.pop_front() else { break };
            if middle_ns(&line) >= 0.0 {
                self.summary.add(&line);
            } else {
                self.outside = Some(line);
            }
        }
    }

    fn finish(mut self, told: &Told, measured_ns: u64) -> ResourcesResult {
        let origin_ns = told.origin_ns.unwrap_or(self.began_ns);
        self.keep_early(origin_ns);
        self.settle(|line| middle_ns(line) <= measured_ns as f64);
        if self.summary.samples() == 0 {
            // A run that is much shorter than a line.
            let line = self.open.pop_front().or(self.outside.take());
            line.iter().for_each(|line| self.summary.add(line));
        }
        let at_s = |at_ns: u64| (at_ns as f64 - origin_ns as f64) / 1e9;
        let events =
            self.events.iter().map(|(at_ns, event)| format!("{event}, at {:.1} s", at_s(*at_ns)));
        self.remarks.extend(events);
        let mut machine = self.summary.machine();
        let online = machine.cores_busy.iter().flatten().count();
        let is_long_enough = self.summary.span_s() >= limits::SEEN_MIN_S;
        if is_long_enough {
            limits::tell_machine(&mut machine, self.looking.memory_bytes());
        }
        let things = self.looking.subjects().count();
        machine.unknown = self.looking.unknown(things);
        let watched = self.looking.subjects().enumerate().map(|(index, (subject, pids))| {
            let mut result = WatchedResult {
                name: subject.name.clone(),
                kind: subject.kind(),
                found_by: subject.found_by.clone(),
                pids: pids.to_vec(),
                program: subject.program.clone(),
                unknown: self.looking.unknown(index),
                ..WatchedResult::default()
            };
            self.summary.put(index, &mut result);
            (result.cpu_cores_allowed, result.memory_allowed_bytes) = self.looking.allowed(index);
            if is_long_enough {
                limits::tell(&mut result, online);
            }
            result
        });
        ResourcesResult {
            samples: self.summary.samples(),
            watched: watched.collect(),
            machine,
            remarks: self.remarks.clone(),
        }
    }
}

/// The middle of a line, ns since the start of the measured stretch.
fn middle_ns(line: &ResourceLine) -> f64 {
    (line.at_s - line.span_s / 2.0) * 1e9
}

#[cfg(test)]
mod tests;

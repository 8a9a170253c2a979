//! The rolling lines, and the watch over a target that goes away.

use crate::lap::Lap;
use crate::{Voting, VotingNow};
use plimsoll_core::clock::{MILLISECOND_NS, now_ns};
use plimsoll_core::moments::Moments;
use plimsoll_core::units::Span;
use plimsoll_engine::gauge::{Gauge, Reading};
use plimsoll_job::progress::{Lines, Voice};
use plimsoll_record::bench_shape::{Shape, Verbosity};
use plimsoll_record::voter::VoterLap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Pause between two looks at whether the run is over.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Returns the output of the lines of this run: none unless they were asked for; `stdout_is_taken` is true if stdout carries
/// JSON.
#[must_use]
pub fn lines_of(shape: &Shape, voice: Voice, stdout_is_taken: bool) -> Lines {
    match shape.verbosity {
        Verbosity::VeryVerbose if !stdout_is_taken => Lines::Result,
        Verbosity::Quiet => Lines::None,
        _ if voice == Voice::Verbose => Lines::Progress,
        _ => Lines::None,
    }
}

/// Observer of a running benchmark.
pub struct Watch<'a> {
    /// The run.
    pub voting: &'a Voting,
    /// Its parameters.
    pub shape: &'a Shape,
    /// True if the server reports times.
    pub server_reports: bool,
    /// Time without an answer after which a run whose target has gone is ended.
    pub give_up: Span,
    /// Output of lines.
    pub lines: Lines,
    /// True if calls may wait in a queue.
    pub has_queue: bool,
    /// State of each shard.
    pub gauges: &'a [Arc<Gauge>],
    /// Ends the schedule.
    pub end_early: &'a AtomicBool,
    /// Set when the run is over.
    pub done: &'a AtomicBool,
}

/// State at the last answer.
struct Answered {
    at_ns: u64,
    calls: u64,
    failed: u64,
}

impl Watch<'_> {
    /// Prints lines and looks after the target, until the run is over. Returns the laps; the last one may be shorter.
    pub fn run(&self) -> Vec<VoterLap> {
        let mut answered = Answered { at_ns: now_ns(), calls: 0, failed: 0 };
        let mut last = (0.0, VotingNow::default());
        let mut due_ns = self.shape.dump_interval.ns;
        let mut most_ns = 0;
        let mut most_ms = 0;
        let mut laps = Moments::default();
        while !self.done.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK_EVERY);
            let Some(first_ns) = self.voting.first_call_ns() else {
                answered.at_ns = now_ns();
                continue;
            };
            let mut now = self.voting.look();
            // Looks are more frequent than lines; the longest time is that since the last line.
            most_ns = now.client_max_ns.max(most_ns);
            most_ms = now.server_max_ms.max(most_ms);
            self.look_after(&mut answered, &now);
            let at_ns = now_ns().saturating_sub(first_ns);
            if at_ns < due_ns {
                continue;
            }
            while due_ns <= at_ns {
                due_ns += self.shape.dump_interval.ns;
            }
            (now.client_max_ns, now.server_max_ms) = (most_ns, most_ms);
            (most_ns, most_ms) = (0, 0);
            let lap = self.lap(at_ns, &now, last);
            laps.push(lap.record(last.0));
            last = (lap.at_s, now);
            self.lines.say(&lap.line(&self.shape.client));
        }
        if let Some(first_ns) = self.voting.first_call_ns() {
            let mut now = self.voting.look();
            now.client_max_ns = now.client_max_ns.max(most_ns);
            now.server_max_ms = now.server_max_ms.max(most_ms);
            let lap = self.lap(now_ns().saturating_sub(first_ns), &now, last);
            // Calls of the last moments belong to it; where there are none, the lap before was the last.
            if lap.success + lap.fails > last.1.answered() + last.1.failed {
                laps.push(lap.record(last.0));
            }
        }
        laps.into_kept()
    }

    fn lap(&self, at_ns: u64, now: &VotingNow, (last_s, last): (f64, VotingNow)) -> Lap {
        let at_s = at_ns as f64 / 1e9;
        let ended = |look: &VotingNow| (look.answered() + look.failed) as f64;
        let standing: Reading = Gauge::look_at_all(self.gauges);
        let server_ms =
            self.server_reports.then(|| (now.server_mean_ms(), now.server_max_ms as f64));
        Lap {
            at_s,
            lap_per_s: (ended(now) - ended(&last)) / (at_s - last_s).max(1e-3),
            total_per_s: ended(now) / at_s.max(1e-3),
            success: now.answered(),
            // Calls that were turned away were never sent.
            fails: now.failed + standing.refused(),
            pending: now.under_way(),
            client_ms: (now.client_mean_ms(), now.client_max_ns as f64 / MILLISECOND_NS as f64),
            server_ms,
            queue: self
                .has_queue
                .then_some((standing.queued, standing.longest_wait_ns as f64 / 1e6)),
        }
    }

    /// Ends the run when calls fail and none has been answered for a while: nothing more will be.
    fn look_after(&self, answered: &mut Answered, now: &VotingNow) {
        if now.answered() > answered.calls {
            *answered = Answered { at_ns: now_ns(), calls: now.answered(), failed: now.failed };
            return;
        }
        let silent_ns = now_ns().saturating_sub(answered.at_ns);
        if silent_ns > self.give_up.ns && now.failed > answered.failed {
            self.voting.stop(format!(
                "no call was answered for {} while calls failed: the target is gone",
                self.give_up
            ));
            self.end_early.store(true, Ordering::Relaxed);
        }
    }
}

//! Progress of a search for the load line.

use super::parts::Part;
use super::so_far::SoFar;
use super::{Far, Progress};
use crate::screen::Voice;
use plimsoll_core::interval::Interval;
use plimsoll_core::seek::finding::{Event, Measured, Phase};
use plimsoll_core::seek::goal::Goal;
use plimsoll_core::seek::watch::Watched;
use plimsoll_report::number::significant;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A line with the phase and what was found so far, and if the user wants them a line for each thing that was found.
pub struct SearchProgress {
    progress: Progress,
    seconds: f64,
    budget_s: f64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    so_far: SoFar,
    /// The phase in a word.
    phase: &'static str,
    /// Place of the line, as far as it is known.
    found: String,
}

impl SearchProgress {
    /// For a search with this goal.
    #[must_use]
    pub fn new(goal: &Goal, voice: Voice) -> Self {
        Self::lasting(goal.budget_s, goal.budget_s, voice)
    }

    /// For a whole of this many seconds, of which the search may take `budget_s`.
    #[must_use]
    pub fn lasting(seconds: f64, budget_s: f64, voice: Voice) -> Self {
        let state = Mutex::default();
        Self { progress: Progress::steady(voice), seconds, budget_s, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows one finished second.
    pub fn second(&self, second: &Interval) {
        if self.progress.is_quiet() {
            return;
        }
        let mut state = self.state();
        state.so_far.add(second);
        self.show(&state);
    }

    fn show(&self, state: &State) {
        if !self.progress.wants_figures() {
            return;
        }
        let mut parts = vec![Part::new(state.phase, 3).at_least(8)];
        parts.extend(state.so_far.parts(("p95", 0.95)));
        parts.push(Part::new(state.found.clone(), 2));
        // The seconds of each part of a search count from its own start.
        self.progress.show(Far::Clock(self.seconds), parts);
    }

    /// Shows what the search tells.
    pub fn event(&self, event: &Event) {
        let mut state = self.state();
        if let Event::Phase { phase, .. } = event {
            state.phase = name(*phase).0;
        }
        if let Some(found) = found(event) {
            state.found = found;
        }
        self.show(&state);
        drop(state);
        if let Some(line) = line(event, self.budget_s) {
            self.progress.part(&line);
        }
    }

    /// Takes the line away.
    pub fn done(&self) {
        self.progress.done();
    }
}

/// The place of the line as an event gives it, in a few words.
fn found(event: &Event) -> Option<String> {
    let between =
        |low: f64, high: f64| format!("line {} to {}/s", significant(low), significant(high));
    match event {
        Event::Bracket { low_per_s, high_per_s } => Some(between(*low_per_s, *high_per_s)),
        Event::Estimate { interval_per_s: (low, high), .. } => Some(between(*low, *high)),
        Event::Watched(Watched { interval_per_s: Some((low, high)), .. }) => {
            Some(between(*low, *high))
        }
        Event::Certified { seen, held: true } => {
            Some(format!("certified {}/s", significant(seen.rate_per_s)))
        }
        _ => None,
    }
}

/// A phase in a word, and what it does.
fn name(phase: Phase) -> (&'static str, &'static str) {
    match phase {
        Phase::WarmUp => ("warm-up", "low load until the response time is stable"),
        Phase::Ramp => ("ramp", "doubling the rate until a limit is missed"),
        Phase::Capacity => ("capacity", "completed requests per second under overload"),
        Phase::Bracket => ("bracket", "short probes on both sides of the line"),
        Phase::Pilot => ("pilot", "burstiness of late requests"),
        Phase::Focus => ("focus", "blocks on both sides of the line"),
        Phase::Certify => ("certify", "a contiguous run below the line"),
        Phase::Watch => ("watch", "the line over time"),
    }
}

/// One stretch of a target that is followed.
fn followed(one: &Watched) -> String {
    let line = one.line_per_s.map_or("no line".to_owned(), |line| format!("{line:.1}/s"));
    let interval = one
        .interval_per_s
        .map_or(String::new(), |(low, high)| format!(", between {low:.1} and {high:.1}"));
    let note = one.note.as_ref().map_or(String::new(), |note| format!(" ({note})"));
    format!("{:>5.0} s  {line}{interval}{note}", one.until_s)
}

fn line(event: &Event, budget_s: f64) -> Option<String> {
    let share = |seen: &Measured| {
        let worst = seen.late_share.iter().copied().fold(0.0, f64::max);
        format!("{:.1} % of {} late", 100.0 * worst, seen.scheduled)
    };
    let held = |held: bool| if held { "holds" } else { "breaks" };
    Some(match event {
        Event::Phase { phase, at_s } => {
            let (name, what) = name(*phase);
            format!("{at_s:>5.0} s  {name}: {what}")
        }
        Event::Probed { seen, held: ok } => {
            format!("         {:.1}/s {} ({})", seen.rate_per_s, held(*ok), share(seen))
        }
        Event::Bracket { low_per_s, high_per_s } => {
            format!("         the line is between {low_per_s:.1}/s and {high_per_s:.1}/s")
        }
        Event::Changed(change) => format!(
            "         the target changed: it completes {:.1}/s, before {:.1}/s; looking again",
            change.after_per_s, change.before_per_s
        ),
        Event::Capacity { per_s } => format!("         completes {per_s:.1}/s"),
        Event::Peak { per_s } => {
            format!("         completes {per_s:.1}/s for a while, more than under overload")
        }
        Event::Estimate { per_s, interval_per_s: (low, high), .. } => {
            format!("         {per_s:.1}/s, between {low:.1} and {high:.1}")
        }
        Event::Forecast(forecast) => {
            let fits = if forecast.total_s <= budget_s { "" } else { ", more than the budget" };
            let minutes = (forecast.total_s / 60.0).floor();
            let seconds = forecast.total_s - 60.0 * minutes;
            format!("         the wanted width needs about {minutes:.0}:{seconds:02.0}{fits}")
        }
        Event::Watched(one) => followed(one),
        Event::Certified { seen, held: ok } => {
            format!("         {:.1}/s {} ({})", seen.rate_per_s, held(*ok), share(seen))
        }
    })
}

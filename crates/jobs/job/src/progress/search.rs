//! Progress of a search for the load line.

use super::parts::parts_of;
use super::{Bar, Progress};
use plimsoll_core::clock::now_ns;
use plimsoll_core::interval::Interval;
use plimsoll_core::seek::finding::{Event, Measured, Phase};
use plimsoll_core::seek::goal::Goal;
use plimsoll_core::seek::watch::Watched;

/// A status line under the lines of what was found; hidden when stderr is not a terminal or `--quiet` was given.
pub struct SearchProgress {
    progress: Progress,
    budget_s: f64,
    began_ns: u64,
}

impl SearchProgress {
    /// For a search with this goal.
    #[must_use]
    pub fn new(goal: &Goal, quiet: bool) -> Self {
        Self::lasting(goal.budget_s, goal.budget_s, quiet)
    }

    /// For a whole of this many seconds, of which the search may take `budget_s`.
    #[must_use]
    pub fn lasting(seconds: f64, budget_s: f64, quiet: bool) -> Self {
        let progress = Progress::new(Bar::of(seconds.ceil() as u64), quiet);
        Self { progress, budget_s, began_ns: now_ns() }
    }

    /// Shows one finished second.
    pub fn second(&self, second: &Interval) {
        // The seconds of each part of a search begin anew.
        let elapsed_ns = now_ns().saturating_sub(self.began_ns);
        self.progress.show(elapsed_ns / 1_000_000_000, || parts_of(second, ("p95", 0.95)));
    }

    /// Shows what the search tells.
    pub fn event(&self, event: &Event) {
        if let Some(line) = line(event, self.budget_s) {
            self.progress.above(&line);
        }
    }

    /// Takes the status line away.
    pub fn done(&self) {
        self.progress.done();
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
            let name = match phase {
                Phase::WarmUp => "warm-up: low load until the response time is stable",
                Phase::Ramp => "ramp: doubling the rate until a limit is missed",
                Phase::Capacity => "capacity: completed requests per second under overload",
                Phase::Bracket => "bracket: short probes on both sides of the line",
                Phase::Pilot => "pilot: burstiness of late requests",
                Phase::Focus => "focus: blocks on both sides of the line",
                Phase::Certify => "certify: a contiguous run below the line",
                Phase::Watch => "watch: the line over time",
            };
            format!("{at_s:>5.0} s  {name}")
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

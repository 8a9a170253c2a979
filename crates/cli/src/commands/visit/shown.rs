//! The line on stderr that shows how far a visit has come.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_core::clock::now_ns;
use plimsoll_workloads::visit::{Visit, VisitTotals};
use std::sync::{Arc, Mutex, PoisonError};

/// Positions of the bar.
const STEPS: u64 = 1000;

/// A status line; hidden when stderr is not a terminal or `--quiet` was given.
pub struct VisitProgress {
    visit: Arc<Visit>,
    bar: ProgressBar,
    /// When it was looked at first and last, and what was seen then.
    seen: Mutex<[(u64, VisitTotals); 2]>,
}

impl VisitProgress {
    /// For a visit that begins now.
    #[must_use]
    pub fn new(visit: Arc<Visit>, quiet: bool) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(4)
        };
        let bar = ProgressBar::with_draw_target(Some(STEPS), target);
        if let Ok(style) = ProgressStyle::with_template("{elapsed:>4} [{bar:28}] {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message("connecting");
        let first = (now_ns(), visit.totals());
        Self { visit, bar, seen: Mutex::new([first.clone(), first]) }
    }

    /// Shows where it stands.
    pub fn show(&self) {
        if self.bar.is_hidden() {
            return;
        }
        let now = (now_ns(), self.visit.totals());
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let percent = now.1.percent;
        self.bar.set_position((percent / 100.0 * STEPS as f64) as u64);
        self.bar.set_message(line(&seen[0], &seen[1], &now));
        seen[1] = now;
    }

    /// Takes the status line away.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }
}

fn line(first: &(u64, VisitTotals), last: &(u64, VisitTotals), now: &(u64, VisitTotals)) -> String {
    let seconds = |from: u64| ((now.0 - from) as f64 / 1e9).max(1e-9);
    let entries = |totals: &VisitTotals| totals.documents + totals.removes;
    let come = now.1.percent - first.1.percent;
    let left = if come > 0.0 {
        let left_s = seconds(first.0) * (100.0 - now.1.percent) / come;
        format!("{:.0}:{:02.0} left", (left_s / 60.0).floor(), left_s % 60.0)
    } else {
        "time left unknown".to_owned()
    };
    format!(
        "{:>5.1} %  {:>9.0} docs/s  {:.2} Gbit/s  {}  {} docs",
        now.1.percent,
        (entries(&now.1) - entries(&last.1)) as f64 / seconds(last.0),
        (now.1.bytes - last.1.bytes) as f64 * 8.0 / 1e9 / seconds(last.0),
        left,
        entries(&now.1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_rate_and_time_left() {
        let at = |percent, documents, bytes| VisitTotals {
            percent,
            documents,
            bytes,
            ..VisitTotals::default()
        };
        let second = 1_000_000_000;
        let line = line(
            &(0, at(0.0, 0, 0)),
            &(9 * second, at(20.0, 900, 0)),
            &(10 * second, at(25.0, 1000, 125_000_000)),
        );
        assert_eq!(line, " 25.0 %        100 docs/s  1.00 Gbit/s  0:30 left  1000 docs");
    }
}

//! The line on stderr that shows a run going on.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_core::interval::Interval;
use plimsoll_core::units::Span;

/// A status line: hidden when stderr is not a terminal or `--quiet` was given.
pub struct Progress {
    bar: ProgressBar,
    seconds: u64,
}

impl Progress {
    /// For a run of this length.
    #[must_use]
    pub fn new(duration: Span, quiet: bool) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(4)
        };
        let seconds = duration.as_seconds().ceil() as u64;
        let bar = ProgressBar::with_draw_target(Some(seconds), target);
        let template = "{elapsed:>4} [{bar:28}] {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message("connecting");
        Self { bar, seconds }
    }

    /// Shows one finished second.
    pub fn show(&self, second: &Interval) {
        if self.bar.is_hidden() {
            return;
        }
        let done = (second.to_ns / 1_000_000_000).min(self.seconds);
        self.bar.set_position(done);
        let all = second.all_classes();
        let seconds = second.seconds().max(1e-9);
        let failed = second.ledger.failed.total();
        self.bar.set_message(format!(
            "{:>9.0}/s   p50 {:>8.2} ms   p99 {:>8.2} ms   failed {failed}",
            second.ledger.ok as f64 / seconds,
            all.response.quantile_ns(0.5) as f64 / 1e6,
            all.response.quantile_ns(0.99) as f64 / 1e6,
        ));
    }

    /// Takes the line away.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }
}

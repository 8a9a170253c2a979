//! The line on stderr that shows how far a feed has come.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_core::clock::now_ns;
use plimsoll_workloads::feed::{Feed, FeedNow};
use std::sync::{Arc, Mutex, PoisonError};

/// A status line; hidden when stderr is not a terminal or `--quiet` was given.
pub struct FeedProgress {
    feed: Arc<Feed>,
    bar: ProgressBar,
    /// When it was looked at last, and what was seen then.
    seen: Mutex<(u64, FeedNow)>,
}

impl FeedProgress {
    /// For a feed that begins now.
    #[must_use]
    pub fn new(feed: Arc<Feed>, quiet: bool) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(4)
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{elapsed:>4} {msg}") {
            bar.set_style(style);
        }
        bar.set_message("connecting");
        Self { feed, bar, seen: Mutex::new((now_ns(), FeedNow::default())) }
    }

    /// Shows where it stands.
    pub fn show(&self) {
        if self.bar.is_hidden() {
            return;
        }
        let now = (now_ns(), self.feed.now());
        let malformed = self.feed.input.position().malformed;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.bar.set_message(line(&seen, &now, malformed));
        self.bar.tick();
        *seen = now;
    }

    /// Takes the status line away.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }
}

fn line(last: &(u64, FeedNow), now: &(u64, FeedNow), malformed: u64) -> String {
    let seconds = ((now.0 - last.0) as f64 / 1e9).max(1e-9);
    let per_s = |to: u64, from: u64| to.saturating_sub(from) as f64 / seconds;
    format!(
        "{:>10} accepted  {:>8.0}/s  {:>6.1} MB/s  {} in flight  {} again  {} failed",
        now.1.accepted,
        per_s(now.1.accepted, last.1.accepted),
        per_s(now.1.body_bytes, last.1.body_bytes) / 1e6,
        now.1.under_way,
        now.1.retries,
        now.1.refused + malformed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_the_rate_of_the_last_second() {
        let at = |accepted, body_bytes| FeedNow {
            accepted,
            body_bytes,
            under_way: 64,
            retries: 3,
            refused: 1,
            ..FeedNow::default()
        };
        let second = 1_000_000_000;
        let line = line(&(second, at(1000, 0)), &(2 * second, at(3500, 2_500_000)), 2);
        assert_eq!(
            line,
            "      3500 accepted      2500/s     2.5 MB/s  64 in flight  3 again  3 failed"
        );
    }
}

//! The figures that show how far a feed has come.

use crate::{Feed, FeedNow};
use plimsoll_core::clock::now_ns;
use plimsoll_job::progress::{Far, Part, Progress, Voice};
use plimsoll_report::number::{bytes, count, significant};
use std::sync::{Arc, Mutex, PoisonError};

/// Progress of a feed.
pub struct FeedProgress {
    feed: Arc<Feed>,
    progress: Progress,
    /// Time at which it was looked at last, and what was seen then.
    seen: Mutex<(u64, FeedNow)>,
}

impl FeedProgress {
    /// For a feed that begins now.
    #[must_use]
    pub fn new(feed: Arc<Feed>, voice: Voice) -> Self {
        Self {
            feed,
            progress: Progress::steady(voice),
            seen: Mutex::new((now_ns(), FeedNow::default())),
        }
    }

    /// Shows where it stands.
    pub fn show(&self) {
        let now = (now_ns(), self.feed.now());
        let malformed = self.feed.input.position().malformed;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = parts(&seen, &now, malformed);
        *seen = now;
        self.progress.show(Far::Unknown, parts);
    }

    /// Takes the status line away.
    pub fn done(&self) {
        self.progress.done();
    }
}

fn parts(last: &(u64, FeedNow), now: &(u64, FeedNow), malformed: u64) -> Vec<Part> {
    let seconds = ((now.0 - last.0) as f64 / 1e9).max(1e-9);
    let per_s = |to: u64, from: u64| to.saturating_sub(from) as f64 / seconds;
    vec![
        Part::first(format!("{} accepted", count(now.1.accepted))).at_least(19),
        Part::new(format!("{}/s", significant(per_s(now.1.accepted, last.1.accepted))), 1)
            .at_least(9),
        Part::new(format!("failed {}", count(now.1.refused + malformed)), 2),
        Part::new(format!("{}/s", bytes(per_s(now.1.body_bytes, last.1.body_bytes))), 3)
            .at_least(9),
        Part::new(format!("{} in flight", count(now.1.under_way)), 4),
        Part::new(format!("{} sent again", count(now.1.retries)), 5),
    ]
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
        let parts = parts(&(second, at(1000, 0)), &(2 * second, at(3500, 2_500_000)), 2);
        let expected =
            ["3,500 accepted", "2,500/s", "failed 3", "2.50 MB/s", "64 in flight", "3 sent again"];
        assert_eq!(parts.iter().map(Part::text).collect::<Vec<_>>(), expected);
    }
}

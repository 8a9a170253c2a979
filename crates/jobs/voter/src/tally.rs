//! Outcomes of a shard's calls.

use super::trace::Trace;
use plimsoll_core::histogram::Histogram;
use plimsoll_record::voter::{Rejected, ServerTimes, VoterResult};
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

/// Different failures that are reported by their texts.
const ERRORS_MAX: usize = 20;
/// Part of a text that is kept, bytes.
const ERROR_BYTES_MAX: usize = 160;
/// Name of all other errors.
const OTHERS: &str = "other errors";

/// Counts of calls by how they ended, all of them, those of a warm-up too: their rows are in the database.
#[derive(Clone, Debug, Default)]
pub struct VoterTally {
    /// Calls sent.
    pub sent: u64,
    /// Votes acknowledged; right rows, where no one votes.
    pub accepted: u64,
    /// Votes rejected.
    pub rejected: Rejected,
    /// Calls of which no one knows whether they were done.
    pub unknown: u64,
    /// Calls that were surely not done, by what was said.
    pub errors: BTreeMap<String, u64>,
    /// Calls sent once more after the database had rolled them back.
    pub retries: u64,
    /// Times that servers reported for their answers, ns.
    pub server: Histogram,
    /// The way the load went that keeps a limit.
    pub trace: Trace,
}

impl VoterTally {
    /// Those of all shards that have ended, together.
    #[must_use]
    pub fn of_shards(counted: &Receiver<VoterTally>) -> Self {
        let mut all = Self::default();
        counted.try_iter().for_each(|own| all.merge(&own));
        all
    }

    /// Adds another shard's.
    pub fn merge(&mut self, other: &VoterTally) {
        self.sent += other.sent;
        self.accepted += other.accepted;
        self.rejected.contestant += other.rejected.contestant;
        self.rejected.limit += other.rejected.limit;
        self.unknown += other.unknown;
        self.retries += other.retries;
        for (text, count) in &other.errors {
            self.add_errors(text, *count);
        }
        self.server.merge(&other.server);
        self.trace.merge(&other.trace);
    }

    /// Counts a call that was surely not done.
    pub fn error(&mut self, text: &str) {
        self.add_errors(text, 1);
    }

    fn add_errors(&mut self, text: &str, count: u64) {
        let text = shown(text);
        if let Some(known) = self.errors.get_mut(text) {
            *known += count;
            return;
        }
        let text = if self.errors.len() < ERRORS_MAX { text } else { OTHERS };
        *self.errors.entry(text.to_owned()).or_default() += count;
    }

    /// Calls that the database answered: accepted and rejected.
    #[must_use]
    pub const fn answered(&self) -> u64 {
        self.accepted + self.rejected.total()
    }

    /// Calls that were surely not done.
    #[must_use]
    pub fn errors_total(&self) -> u64 {
        self.errors.values().sum()
    }

    /// The record's section, as far as the client alone can fill it.
    #[must_use]
    pub fn result(&self) -> VoterResult {
        VoterResult {
            accepted: self.accepted,
            rejected: self.rejected,
            unknown: self.unknown,
            errors: self.errors.clone(),
            retries: self.retries,
            server: ServerTimes::from(&self.server),
            ..VoterResult::default()
        }
    }
}

/// The first line of a text, as far as it is kept.
fn shown(text: &str) -> &str {
    let line = text.trim().lines().next().unwrap_or_default();
    let mut end = line.len().min(ERROR_BYTES_MAX);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_add_up_and_texts_are_bounded() {
        let mut all = VoterTally::default();
        for shard in 0..3u64 {
            let mut one =
                VoterTally { sent: 100, accepted: 70, unknown: shard, ..VoterTally::default() };
            one.rejected = Rejected { contestant: 5, limit: 2 };
            one.server.record(2_000_000);
            for n in 0..30 {
                one.error(&format!("number {n}\nand more"));
            }
            one.error(&"ä".repeat(200));
            all.merge(&one);
        }
        assert_eq!((all.sent, all.answered(), all.unknown), (300, 231, 3));
        assert_eq!(all.errors_total(), 93);
        assert!(all.errors.len() <= ERRORS_MAX + 1 && all.errors["number 3"] == 3);
        assert!(all.errors.keys().all(|text| text.len() <= ERROR_BYTES_MAX));
        let result = all.result();
        assert_eq!((result.accepted, result.server.ms.count), (210, 3));
    }
}

//! One scan: its turn, and the way through a column.

use super::column::Chunk;
use super::queue::Refused;
use super::row_set::RowSet;
use super::{LONGEST_NS, Limits, ShardScan};
use plimsoll_core::clock::now_ns;
use plimsoll_scan::{Found, Metric, Pattern};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// A pattern to look for in a field; done once, whoever asks for the rows.
pub(super) struct Job {
    field: String,
    pattern: Pattern,
    /// The pattern as it was written, where bytes alone do not tell.
    original: Option<Vec<char>>,
    scan: ShardScan,
    limits: Limits,
    rows: OnceLock<Result<Arc<RowSet>, Refused>>,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("field", &self.field).finish_non_exhaustive()
    }
}

impl Job {
    /// The time it has begins now.
    pub(super) fn new(
        field: &str,
        pattern: Pattern,
        original: Option<String>,
        scan: ShardScan,
    ) -> Self {
        let limits = scan.limits.clone().unwrap_or_else(|| Limits {
            deadline_ns: now_ns().saturating_add(LONGEST_NS),
            abandoned: Arc::new(AtomicBool::new(false)),
        });
        let original = original.map(|text| folded(&text));
        let field = field.to_owned();
        Self { field, pattern, original, scan, limits, rows: OnceLock::new() }
    }

    /// The rows with a match.
    ///
    /// # Errors
    /// When the queue is full, time is up, or the search is abandoned.
    pub(super) fn rows(&self) -> Result<Arc<RowSet>, Refused> {
        self.rows.get_or_init(|| self.run().map(Arc::new)).clone()
    }

    fn run(&self) -> Result<RowSet, Refused> {
        let queue = &self.scan.queue;
        let _turn = queue.enter(self.limits.deadline_ns, &self.limits.abandoned)?;
        let chunks = self.scan.columns.snapshot(&self.field);
        let next = AtomicUsize::new(0);
        if queue.threads() == 1 || chunks.len() < 2 {
            return self.take(&chunks, &next);
        }
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..queue.threads().min(chunks.len()))
                .map(|_| scope.spawn(|| self.take(&chunks, &next)))
                .collect();
            let mut rows = RowSet::default();
            let mut refused = None;
            for thread in threads {
                match thread.join() {
                    Ok(Ok(some)) => rows.add(&some),
                    Ok(Err(why)) => refused = Some(why),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            refused.map_or(Ok(rows), Err)
        })
    }

    /// Scans the next free chunk until there are none.
    fn take(&self, chunks: &[Arc<Chunk>], next: &AtomicUsize) -> Result<RowSet, Refused> {
        let mut rows = RowSet::default();
        let mut scan = self.pattern.scan();
        while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Some(corpus) = chunk.corpus() else { continue };
            let mut found = Found::new(corpus.documents());
            let mut at = 0;
            while at < corpus.documents() {
                self.check()?;
                at = scan.step(&corpus, at, &mut found);
            }
            for value in found.iter().filter(|value| self.really(chunk, *value)) {
                rows.insert(chunk.row(value));
            }
        }
        Ok(rows)
    }

    fn check(&self) -> Result<(), Refused> {
        if self.limits.abandoned.load(Ordering::Relaxed) {
            return Err(Refused::Abandoned);
        }
        if now_ns() >= self.limits.deadline_ns {
            return Err(Refused::Late);
        }
        Ok(())
    }

    /// Looks again where characters of both the pattern and the text may share a byte with others.
    fn really(&self, chunk: &Chunk, value: usize) -> bool {
        match (&self.original, chunk.original(value)) {
            (Some(pattern), Some(text)) => {
                matches(pattern, &folded(text), self.pattern.metric(), self.pattern.distance())
            }
            _ => true,
        }
    }
}

/// The characters of a text, A to Z as a to z.
fn folded(text: &str) -> Vec<char> {
    text.chars().map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Returns true if the text contains the pattern with at most `limit` errors, character by character.
fn matches(pattern: &[char], text: &[char], metric: Metric, limit: u32) -> bool {
    let limit = limit as usize;
    match metric {
        Metric::Hamming => text
            .windows(pattern.len())
            .any(|window| window.iter().zip(pattern).filter(|(a, b)| a != b).count() <= limit),
        Metric::Edits => {
            // A column of the table of distances for each character of the text.
            let mut column: Vec<usize> = (0..=pattern.len()).collect();
            pattern.len() <= limit
                || text.iter().any(|letter| {
                    let mut diagonal = 0;
                    for (row, wanted) in pattern.iter().enumerate() {
                        let best = (diagonal + usize::from(wanted != letter))
                            .min(column[row] + 1)
                            .min(column[row + 1] + 1);
                        diagonal = column[row + 1];
                        column[row + 1] = best;
                    }
                    column[pattern.len()] <= limit
                })
        }
    }
}

//! One piece of a visit, made on a thread of its own.

use crate::store::{Found, Start, Store, StoreError};
use plimsoll_core::clock::now_ns;
use plimsoll_documents::document::Values;
use plimsoll_documents::filter::Filter;
use plimsoll_documents::schema::Schemas;
use plimsoll_documents::selection::EvaluationError;
use std::ops::RangeInclusive;

/// A piece ends with the bucket in which it reaches this size.
const SOFT_BYTES: usize = 256 << 10;
/// A piece ends at once when it reaches this size.
const HARD_BYTES: usize = 1 << 20;
/// A piece ends with the bucket in which it took this long.
const SOFT_NS: u64 = 10_000_000;
/// A piece ends at once when it took this long, so that others get their turn on the thread.
const HARD_NS: u64 = 50_000_000;
/// Records between two readings of the clock.
const CLOCK_RECORDS: u32 = 64;

/// A visit cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VisitError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The selection has no answer for a document.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
    #[error("the server is stopping")]
    Stopping,
}

/// Documents that a visit is about.
#[derive(Default)]
pub(crate) struct Wanted {
    /// The common prefix of their ids.
    pub(crate) prefix: Option<String>,
    /// The only location that they can have, in the order of visits.
    pub(crate) place: Option<u64>,
    pub(crate) filter: Option<Filter>,
    /// Time at which they were written, in microseconds: from, and up to but not with.
    pub(crate) from_us: u64,
    pub(crate) to_us: Option<u64>,
    /// True if removed documents count.
    pub(crate) removes: bool,
    /// True if the collector needs decoded values, and not only the stored bytes.
    pub(crate) values: bool,
}

impl Wanted {
    /// Returns the values of a matching document, read only on demand; `None` if it does
    /// not match.
    fn examine(
        &self,
        schemas: &Schemas,
        found: &Found<'_>,
    ) -> Result<Option<Option<Values>>, VisitError> {
        let in_time = found.timestamp_us >= self.from_us
            && self.to_us.is_none_or(|to| found.timestamp_us < to);
        let in_place = self.prefix.as_ref().is_none_or(|prefix| found.id.starts_with(prefix));
        if !in_time || !in_place || (found.removed && !self.removes) {
            return Ok(None);
        }
        let needed = !found.removed && (self.values || self.filter.is_some());
        let values = needed.then(|| Values::decode(schemas, found.content)).transpose();
        let values = values.map_err(StoreError::from)?;
        let matches = match &self.filter {
            None => true,
            Some(filter) => filter.matches(schemas, found.id, values.as_ref())?,
        };
        Ok(matches.then_some(values))
    }
}

/// Makes something of the documents of a piece.
pub(crate) trait Collect: Send + 'static {
    /// The result.
    type Output: Send + 'static;

    /// Takes a document.
    ///
    /// # Errors
    /// When its stored form cannot be read.
    fn take(&mut self, found: &Found<'_>, values: Option<Values>) -> Result<(), StoreError>;
    /// The approximate size of the result so far, in bytes.
    fn bytes(&self) -> usize;
    fn finish(self) -> Self::Output;
}

/// The work of a thread: positions in the order of visits, by bucket.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) buckets: Vec<RangeInclusive<u64>>,
    /// Key after which the first bucket continues.
    pub(super) after: Option<Vec<u8>>,
    /// Number of documents after which the piece ends with its bucket.
    pub(super) limit: u64,
}

/// The outcome of a job.
pub(super) struct Scanned<O> {
    pub(super) output: O,
    /// Documents and removals that were taken.
    pub(super) documents: u64,
    /// Buckets that were read to their end.
    pub(super) finished: usize,
    /// The remainder of the job.
    pub(super) rest: Option<Job>,
}

/// Scans until the job is done or the piece is full. `gone` says whether the client has left.
pub(super) fn scan<C: Collect>(
    store: &Store,
    wanted: &Wanted,
    job: &Job,
    mut collector: C,
    gone: impl Fn() -> bool,
) -> Result<Scanned<C::Output>, VisitError> {
    let start_ns = now_ns();
    let mut documents = 0;
    let mut finished = 0;
    let mut records = 0u32;
    let mut elapsed_ns = 0;
    let mut stopped_after = None;
    let mut latest = 0;
    let start = match &job.after {
        Some(key) => Start::After(key.clone()),
        None => Start::At(job.buckets.first().map_or(0, |bucket| *bucket.start())),
    };
    let complete = store.scan(&job.buckets, start, |bucket, found| {
        if bucket > latest {
            // With enough documents the piece ends with their bucket, and not with the empty ones
            // behind it.
            let enough = documents >= job.limit;
            finished = if enough { latest + 1 } else { bucket };
            elapsed_ns = now_ns() - start_ns;
            if enough || collector.bytes() >= SOFT_BYTES || elapsed_ns >= SOFT_NS {
                return Ok::<_, VisitError>(false);
            }
            latest = bucket;
        }
        if let Some(values) = wanted.examine(&store.schemas, found)? {
            collector.take(found, values)?;
            documents += 1;
        }
        records += 1;
        if records.is_multiple_of(CLOCK_RECORDS) {
            elapsed_ns = now_ns() - start_ns;
        }
        let nobody = records.is_multiple_of(CLOCK_RECORDS) && gone();
        if collector.bytes() >= HARD_BYTES || elapsed_ns >= HARD_NS || nobody {
            stopped_after = Some(found.key.to_vec());
            return Ok(false);
        }
        Ok(true)
    })?;
    if complete {
        let enough = documents >= job.limit;
        finished = if enough { latest + 1 } else { job.buckets.len() };
    }
    let rest = (finished < job.buckets.len()).then(|| Job {
        buckets: job.buckets[finished..].to_vec(),
        after: stopped_after,
        limit: job.limit.saturating_sub(documents),
    });
    Ok(Scanned { output: collector.finish(), documents, finished, rest })
}

//! A visit in progress: pieces in the order of the buckets.

use super::scan::{Collect, Job, Scanned, VisitError, Wanted, scan};
use crate::App;
use plimsoll_wire::vespa::ProgressToken;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Spans that one visit scans at a time, however many the client would like.
pub(crate) const MAX_AHEAD: usize = 8;
/// Buckets in one span.
const MAX_WIDTH: usize = 4096;

/// The documents of some buckets, or of a part of one.
pub(crate) struct Piece<O> {
    pub(crate) output: O,
    pub(crate) documents: u64,
    /// True if the token now stands behind everything in this piece.
    pub(crate) whole: bool,
}

type Answer<O> = oneshot::Receiver<Result<Scanned<O>, VisitError>>;

/// Gives out the pieces of a visit.
pub(crate) struct Reader<C: Collect> {
    app: Arc<App>,
    wanted: Arc<Wanted>,
    make: Arc<dyn Fn() -> C + Send + Sync>,
    /// Gives out buckets.
    given: ProgressToken,
    /// The buckets that were read to their end, in order: never any that was not pending at the start.
    done: ProgressToken,
    /// A bucket that was given out and belongs to the next job.
    held: Option<RangeInclusive<u64>>,
    spans: VecDeque<Answer<C::Output>>,
    ahead: usize,
    width: usize,
    /// Documents still wanted.
    left: u64,
    /// Shared with the jobs: those of a visit that was given up take room in the queue until a thread has passed over them.
    visit: Arc<OwnedSemaphorePermit>,
}

impl<C: Collect> Reader<C> {
    /// Begins a visit at a token. After about `limit` documents it ends with the bucket.
    pub(crate) fn new(
        app: &Arc<App>,
        visit: OwnedSemaphorePermit,
        wanted: Wanted,
        token: ProgressToken,
        (concurrency, limit): (usize, Option<u64>),
        make: impl Fn() -> C + Send + Sync + 'static,
    ) -> Self {
        Self {
            app: Arc::clone(app),
            wanted: Arc::new(wanted),
            make: Arc::new(make),
            given: token.clone(),
            done: token,
            held: None,
            spans: VecDeque::new(),
            ahead: concurrency.clamp(1, MAX_AHEAD),
            width: 1,
            left: limit.unwrap_or(u64::MAX),
            visit: Arc::new(visit),
        }
    }

    /// Progress of the visit.
    pub(crate) fn token(&self) -> &ProgressToken {
        &self.done
    }

    /// Returns true if as many documents as wanted were given out.
    pub(crate) fn has_enough(&self) -> bool {
        self.left == 0
    }

    /// The next piece; nothing when everything was visited.
    pub(crate) async fn next(&mut self) -> Result<Option<Piece<C::Output>>, VisitError> {
        while self.spans.len() < self.ahead && !self.has_enough() {
            let Some(job) = self.next_job() else { break };
            let answer = self.submit(job)?;
            self.spans.push_back(answer);
        }
        // Awaited where it is, so that nothing is lost when the caller stops waiting.
        let Some(answer) = self.spans.front_mut() else { return Ok(None) };
        let scanned = answer.await.map_err(|_| VisitError::Stopping)??;
        self.spans.pop_front();
        self.adapt(&scanned);
        // The same steps as those that made the span, so that the token moves alike.
        for _ in 0..scanned.finished {
            if let Some(step) = self.done.next_bucket() {
                self.done.finish_bucket(step.bucket);
            }
        }
        self.left = self.left.saturating_sub(scanned.documents);
        let mut whole = true;
        if let Some(mut job) = scanned.rest {
            whole = job.after.is_none();
            job.limit = job.limit.min(self.left);
            // Nobody may want the rest of the span; the rest of a bucket is always wanted.
            if !whole || !self.has_enough() {
                let answer = self.submit(job)?;
                self.spans.push_front(answer);
            }
        }
        Ok(Some(Piece { output: scanned.output, documents: scanned.documents, whole }))
    }

    fn next_job(&mut self) -> Option<Job> {
        let mut buckets: Vec<RangeInclusive<u64>> = Vec::with_capacity(self.width);
        let mut end = None;
        while buckets.len() < self.width {
            let next = self.held.take().or_else(|| Some(self.given.next_bucket()?.keys()));
            let Some(keys) = next else { break };
            if !keys.is_empty() {
                // Ranges of a job are in order; buckets that another server left over may not be.
                if end.is_some_and(|end| end >= *keys.start()) {
                    self.held = Some(keys);
                    break;
                }
                end = Some(*keys.end());
            }
            buckets.push(narrowed(keys, self.wanted.place));
        }
        let job = Job { buckets, after: None, limit: self.left };
        Some(job).filter(|job| !job.buckets.is_empty())
    }

    /// Wide enough that a span is worth a thread's while, narrow enough that it is soon done.
    fn adapt<O>(&mut self, scanned: &Scanned<O>) {
        match scanned.rest {
            None => self.width = (self.width * 2).min(MAX_WIDTH),
            Some(_) => self.width = scanned.finished.clamp(1, MAX_WIDTH),
        }
        if self.left != u64::MAX && self.ahead > 1 {
            // Spans that were begun in vain would be read again by the next request.
            let each = scanned.documents / scanned.finished.max(1) as u64 + 1;
            let most = self.left / each / self.ahead as u64;
            self.width = self.width.min(usize::try_from(most).unwrap_or(MAX_WIDTH)).max(1);
        }
    }

    fn submit(&self, job: Job) -> Result<Answer<C::Output>, VisitError> {
        let (done, answer) = oneshot::channel();
        let (app, wanted, make) =
            (Arc::clone(&self.app), Arc::clone(&self.wanted), Arc::clone(&self.make));
        let visit = Arc::clone(&self.visit);
        let run = move || {
            if !done.is_closed() {
                let scanned = scan(&app.store, &wanted, &job, make(), || done.is_closed());
                // Before the client knows: it may ask for another visit at once.
                drop(visit);
                let _ = done.send(scanned);
            }
        };
        // The queue has room for all spans of all visits: it refuses only when it is closed.
        self.app.scans.submit(run).map_err(|_| VisitError::Stopping)?;
        Ok(answer)
    }
}

/// The part of a bucket that can hold what is wanted.
fn narrowed(keys: RangeInclusive<u64>, place: Option<u64>) -> RangeInclusive<u64> {
    match place {
        None => keys,
        Some(place) if keys.contains(&place) => place..=place,
        Some(_) => RangeInclusive::new(1, 0),
    }
}

//! A search on all shards at once: each is a job of the query pool, or several where there are very many, and the last to
//! end merges.

mod reply;

use super::super::App;
use super::super::dialect::Context;
use super::super::error::ElasticError;
use super::super::index::Index;
use super::super::mapping::View;
use super::super::shard::{Log, Shard};
use super::{SearchRequest, order};
use crate::memory::{Growing, Replies};

use plimsoll_core::clock::{now_ns, wall_us};
use plimsoll_index::execute::{self, ExecuteError, Found, Limits, SortValue, Wanted, compare};
use plimsoll_index::plan::{Plan, SortColumn, plan_filter};
use plimsoll_index::query::{Node, Ranking};
use plimsoll_index::row_text::Scan;
use plimsoll_index::scan;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Time beyond its timeout for which a search is waited for, so that it can say so itself.
const GRACE: Duration = Duration::from_millis(500);

/// The result of a search.
pub(crate) struct Ran {
    pub(crate) body: Vec<u8>,
    /// Its memory.
    pub(crate) growing: Growing,
}

/// The result of one shard.
type Part = Result<(Found, Arc<Log>), ShardFailure>;

/// Reason why a shard found nothing.
#[derive(Clone, Debug)]
pub(super) enum ShardFailure {
    TimedOut,
    Failed(Box<ElasticError>),
}

/// A shard with the query for it.
pub(super) struct Target {
    pub(super) index: Arc<Index>,
    pub(super) shard: Arc<Shard>,
    node: Arc<Node>,
    pub(super) order: Arc<Vec<SortColumn>>,
}

/// A search in progress.
pub(super) struct Gather {
    pub(super) request: SearchRequest,
    pub(super) targets: Vec<Target>,
    parts: Mutex<Vec<Option<Part>>>,
    remaining: AtomicUsize,
    pub(super) start_ns: u64,
    deadline_ns: u64,
    abandoned: Arc<AtomicBool>,
    /// Only the number is wanted.
    counts: bool,
    answer: Mutex<Option<oneshot::Sender<Result<Ran, ElasticError>>>>,
    pub(super) replies: Arc<Replies>,
}

/// A hit and where it is from.
pub(super) struct Merged {
    pub(super) target: usize,
    pub(super) at: u64,
    pub(super) score: f32,
    pub(super) sorted_by: Vec<SortValue>,
}

/// The results of all shards together.
#[derive(Default)]
pub(super) struct Results {
    pub(super) total: u64,
    pub(super) hits: Vec<Merged>,
    /// Positions of each target's hits.
    pub(super) logs: Vec<Option<Arc<Log>>>,
    pub(super) timed_out: bool,
    /// The number of the target, and why.
    pub(super) failures: Vec<(usize, ElasticError)>,
    pub(super) max_score: Option<f32>,
}

/// Tells the jobs that the search is abandoned.
struct AbandonOnDrop(Arc<AtomicBool>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A job's share of a search. Dropped before its end, as when the job panics or the server stops,
/// the share counts as failed.
struct Share {
    gather: Arc<Gather>,
    number: usize,
    done: bool,
}

impl Share {
    fn finish(mut self, part: Part) {
        self.done = true;
        self.gather.finish(self.number, part);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if !self.done {
            let error = ElasticError::internal("the search was broken off");
            let part = Err(ShardFailure::Failed(Box::new(error)));
            self.gather.finish(self.number, part);
        }
    }
}

impl Gather {
    fn finish(&self, number: usize, part: Part) {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(part);
        if self.remaining.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let parts = std::mem::take(&mut *self.parts.lock().unwrap_or_else(PoisonError::into_inner));
        let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(answer) = answer {
            let results = self.merge(parts.into_iter().flatten());
            // Whoever asked may have gone away.
            let _ = answer.send(reply::render(self, &results, self.counts));
        }
    }

    /// The hits of all shards in their order, cut to the page.
    fn merge(&self, parts: impl Iterator<Item = Part>) -> Results {
        let logs = vec![None; self.targets.len()];
        let mut results = Results { logs, ..Results::default() };
        let mut order: &[SortColumn] = &[];
        for (target, part) in parts.enumerate() {
            match part {
                Ok((found, log)) => {
                    results.logs[target] = Some(log);
                    results.total += found.total;
                    order = &self.targets[target].order;
                    let mut values = found.sorted_by.into_iter();
                    results.hits.extend(found.hits.iter().map(|hit| Merged {
                        target,
                        at: hit.lid,
                        score: hit.relevance,
                        sorted_by: values.next().unwrap_or_default(),
                    }));
                }
                Err(ShardFailure::TimedOut) => results.timed_out = true,
                Err(ShardFailure::Failed(error)) => results.failures.push((target, *error)),
            }
        }
        // Stable: what is equal stays in the order of the shards.
        if self.targets.len() > 1 {
            if order.is_empty() {
                results.hits.sort_by(|left, right| right.score.total_cmp(&left.score));
            } else {
                results.hits.sort_by(|l, r| compare(order, &l.sorted_by, &r.sorted_by));
            }
        }
        if order.is_empty() {
            results.max_score = results.hits.first().map(|hit| hit.score);
        }
        let from = self.request.from.min(results.hits.len());
        results.hits.drain(..from);
        results.hits.truncate(self.request.size);
        results
    }

    /// Runs on a query thread.
    fn run(&self, number: usize) -> Part {
        let target = &self.targets[number];
        let limits = Limits { deadline_ns: self.deadline_ns, abandoned: &self.abandoned };
        let (searcher, lids, blocks, log) = target.shard.searcher();
        target.shard.counters.searches.fetch_add(1, Ordering::Relaxed);
        let scan = target.shard.scan.as_ref().map(|scan| {
            let limited = scan.within(self.deadline_ns, Arc::clone(&self.abandoned));
            Arc::new(limited) as Arc<dyn Scan>
        });
        let view = View { mapping: target.index.state.mapping(), blocks, scan };
        let failed = |error: ElasticError| Err(ShardFailure::Failed(Box::new(error)));
        let plan: Plan = match plan_filter(&target.node, target.order.to_vec(), &view) {
            Ok(plan) => plan,
            Err(error) => return failed(ElasticError::argument(error.0)),
        };
        let wanted = Wanted {
            ranking: if self.counts { Ranking::Unranked } else { Ranking::Bm25 },
            hits: self.request.from + self.request.size,
            offset: 0,
            min_relevance: self.request.min_score,
        };
        match execute::execute(&searcher, &lids, &plan, &wanted, &limits) {
            Ok(found) => Ok((found, log)),
            Err(ExecuteError::Abandoned) => Err(ShardFailure::TimedOut),
            // A scan of the text ends so when its time is over.
            Err(ExecuteError::Index(_)) if now_ns() >= self.deadline_ns => {
                Err(ShardFailure::TimedOut)
            }
            Err(ExecuteError::Index(error)) => failed(match scan::refused(&error) {
                Some(why) => ElasticError::rejected(why.to_string()),
                None => ElasticError::internal(error.to_string()),
            }),
        }
    }
}

/// Searches indices; the reply is rendered.
///
/// # Errors
/// When the query does not go with an index, or there is no room for the search.
pub(crate) async fn search(
    app: &Arc<App>,
    indices: Vec<Arc<Index>>,
    request: SearchRequest,
    body: &[u8],
) -> Result<Ran, ElasticError> {
    run(app, indices, request, body, false).await
}

/// Counts matches; the reply is rendered.
///
/// # Errors
/// As [`search`].
pub(crate) async fn count(
    app: &Arc<App>,
    indices: Vec<Arc<Index>>,
    request: SearchRequest,
    body: &[u8],
) -> Result<Ran, ElasticError> {
    run(app, indices, request, body, true).await
}

async fn run(
    app: &Arc<App>,
    indices: Vec<Arc<Index>>,
    request: SearchRequest,
    body: &[u8],
    counts: bool,
) -> Result<Ran, ElasticError> {
    let start_ns = now_ns();
    for index in &indices {
        index.looked_at().await;
    }
    let targets = targets(app, indices, &request).map_err(|e| e.located(body))?;
    let timeout = request.timeout;
    let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX / 2);
    let abandoned = AbandonOnDrop(Arc::new(AtomicBool::new(false)));
    let (sender, answer) = oneshot::channel();
    let shards = targets.len();
    let gather = Gather {
        request,
        targets,
        parts: Mutex::new((0..shards).map(|_| None).collect()),
        remaining: AtomicUsize::new(shards),
        start_ns,
        deadline_ns: start_ns.saturating_add(timeout_ns),
        abandoned: Arc::clone(&abandoned.0),
        counts,
        answer: Mutex::new(None),
        replies: Arc::clone(&app.replies),
    };
    if shards == 0 {
        return reply::render(&gather, &Results::default(), counts);
    }
    let gather = Arc::new(gather);
    *gather.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
    // One search of very many shards leaves room for others in the queue, and finds room itself.
    let jobs = shards.min((app.pools.queries.limit() / 4).max(1));
    for first in 0..jobs {
        let share = |number| Share { gather: Arc::clone(&gather), number, done: false };
        let shares: Vec<Share> = (first..shards).step_by(jobs).map(share).collect();
        let job = move || {
            for share in shares {
                let part = share.gather.run(share.number);
                share.finish(part);
            }
        };
        if let Err(full) = app.pools.queries.submit(job) {
            let reason = format!(
                "rejected execution of a search on the query pool: {} searches already wait",
                full.limit
            );
            return Err(ElasticError::rejected(reason));
        }
    }
    match tokio::time::timeout(timeout + GRACE, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(ElasticError::internal("the search thread failed")),
        // No shard has looked at the clock: it is all too much.
        Err(_) => {
            let results = Results { timed_out: true, ..Results::default() };
            reply::render(&gather, &results, counts)
        }
    }
}

fn targets(
    elastic: &App,
    indices: Vec<Arc<Index>>,
    request: &SearchRequest,
) -> Result<Vec<Target>, ElasticError> {
    let now_ms = i64::try_from(wall_us() / 1000).unwrap_or(i64::MAX);
    let mut targets = Vec::new();
    for index in indices {
        let mapping = index.state.mapping();
        let context = Context {
            index: index.name(),
            uuid: &index.state.uuid,
            mapping: &mapping,
            mode: elastic.mode,
            now_ms,
            depth: 0,
        };
        let checked = request.check(index.name(), index.state.window());
        let node = checked.and_then(|()| request.node(context));
        let node = node.map_err(|error| error.of_search(index.name()))?;
        let node = Arc::new(node);
        let order = Arc::new(order::columns(&request.sort, &context)?);
        let only = request.routing.as_deref().map(|routing| index.shard("", routing).number);
        for shard in &index.shards {
            if only.is_none_or(|only| only == shard.number) {
                let (node, order) = (Arc::clone(&node), Arc::clone(&order));
                let (index, shard) = (Arc::clone(&index), Arc::clone(shard));
                targets.push(Target { index, shard, node, order });
            }
        }
    }
    Ok(targets)
}

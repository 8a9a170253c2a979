//! Runs a plan on a snapshot of the index: the true total, and the best hits.

mod pruned;

use super::lids::Lids;
use super::plan::{Plan, Shape, SortBy, SortColumn};
use super::query::Ranking;
use super::sort::SortKeys;
pub use super::sort::{SortValue, compare};
use super::words::Statistics;
use plimsoll_core::clock::now_ns;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering as Atomic};
use tantivy::query::{EnableScoring, Scorer, Weight};
use tantivy::{
    COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, Score, Searcher, SegmentReader, TERMINATED,
    TantivyError,
};

/// Number of documents between two checks of the deadline.
const DOCUMENTS_PER_LOOK: u32 = 2048;

/// Reason why a search gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// The deadline passed, or the client has left.
    #[error("the search was abandoned")]
    Abandoned,
    /// The index cannot be read.
    #[error("the index failed: {0}")]
    Index(#[from] TantivyError),
}

/// One document found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The number of the document in the store.
    pub lid: u64,
    /// Its relevance.
    pub relevance: f32,
}

/// The answer to a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Number of documents that match, however many are shown.
    pub total: u64,
    /// Number of documents that the snapshot holds.
    pub documents: u64,
    /// The hits from `offset`, at most as many as were asked for, best first.
    pub hits: Vec<Hit>,
    /// The values that the hits were ordered by, hit by hit; empty without an order.
    pub sorted_by: Vec<Vec<SortValue>>,
}

/// The part of the matches that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Score of matches.
    pub ranking: Ranking,
    /// The most hits.
    pub hits: usize,
    /// Hits left out at the beginning.
    pub offset: usize,
    /// Matches of a lower relevance are none.
    pub min_relevance: Option<f32>,
}

/// Conditions that end a search early.
pub struct Limits<'a> {
    /// On the scale of [`now_ns`].
    pub deadline_ns: u64,
    /// Set when the search is abandoned.
    pub abandoned: &'a AtomicBool,
}

impl Limits<'_> {
    fn check(&self) -> Result<(), ExecuteError> {
        if self.abandoned.load(Atomic::Relaxed) || now_ns() >= self.deadline_ns {
            return Err(ExecuteError::Abandoned);
        }
        Ok(())
    }
}

/// Runs a plan.
///
/// # Errors
/// When the deadline passes first, or the index cannot be read.
pub fn execute(
    searcher: &Searcher,
    lids: &Lids,
    plan: &Plan,
    wanted: &Wanted,
    limits: &Limits<'_>,
) -> Result<Found, ExecuteError> {
    limits.check()?;
    let by_score = plan.order.iter().any(|column| column.by == SortBy::Score);
    // Nobody sees the relevance of no hits.
    let some = wanted.hits + wanted.offset > 0;
    let ranked = wanted.ranking == Ranking::Bm25 && plan.order.is_empty() && some;
    let scored = ranked || by_score || wanted.min_relevance.is_some();
    let statistics = Statistics::of(searcher);
    let scoring = if scored {
        EnableScoring::enabled_from_statistics_provider(&statistics, searcher)
    } else {
        EnableScoring::disabled_from_searcher(searcher)
    };
    let weight = plan.query.weight(scoring)?;
    let weight = weight.as_ref();
    let (hits, offset) = (wanted.hits, wanted.offset);
    let minimum = wanted.min_relevance.unwrap_or(f32::NEG_INFINITY);
    let shape = match plan.shape {
        _ if wanted.min_relevance.is_some() => Shape::General,
        // Of few documents none can be passed over: to walk over them once is less than to count them apart.
        Shape::ScoredTerms if scored && !statistics.is_any_frequent() => Shape::General,
        shape => shape,
    };
    let run = Run { searcher, lids, weight, shape, limits, wanted: hits + offset, scored, minimum };
    let mut sorted_by = Vec::new();
    let (total, found) = match shape {
        _ if !plan.order.is_empty() => {
            let (total, ordered) = run.ordered(&plan.order)?;
            let page = ordered.into_iter().skip(offset).take(hits);
            let (values, found): (Vec<_>, Vec<_>) = page.unzip();
            sorted_by = values;
            (total, found)
        }
        _ => {
            let (total, mut found) = match shape {
                Shape::ScoredTerm if ranked => run.pruned()?,
                Shape::ScoredTerms if ranked => run.pruned_union(&plan.terms)?,
                Shape::General | Shape::ScoredTerms if scored => run.scored()?,
                _ => run.first(ranked)?,
            };
            found.drain(..offset.min(found.len()));
            (total, found)
        }
    };
    let hits = run.hits(found.into_iter().take(hits))?;
    Ok(Found { total, documents: searcher.num_docs(), hits, sorted_by })
}

/// A match that has not been looked up yet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidate {
    relevance: Score,
    segment: usize,
    doc: DocId,
}

/// Orders by relevance, then by position in the index, so that pages do not overlap.
impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.relevance
            .total_cmp(&other.relevance)
            .then_with(|| other.segment.cmp(&self.segment))
            .then_with(|| other.doc.cmp(&self.doc))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Candidate {}

struct Run<'a> {
    searcher: &'a Searcher,
    lids: &'a Lids,
    weight: &'a dyn Weight,
    shape: Shape,
    limits: &'a Limits<'a>,
    /// Hits and offset together.
    wanted: usize,
    /// Scorers give a relevance.
    scored: bool,
    /// Matches of a lower relevance are none.
    minimum: f32,
}

type Outcome = Result<(u64, Vec<Candidate>), ExecuteError>;
type Ordered = Vec<(Vec<SortValue>, Candidate)>;

impl Run<'_> {
    /// The first matches in index order; the rest is only counted.
    fn first(&self, ranked: bool) -> Outcome {
        let mut total = 0;
        let mut found = Vec::new();
        for (segment, reader) in self.searcher.segment_readers().iter().enumerate() {
            self.limits.check()?;
            let counted = self.known_count(reader)?;
            let missing = self.wanted - found.len();
            if let Some(count) = counted {
                total += u64::from(count);
                if missing == 0 {
                    continue;
                }
            }
            let mut scorer = self.weight.scorer(reader, 1.0)?;
            let mut doc = scorer.doc();
            while doc != TERMINATED && found.len() < self.wanted {
                if alive(reader, doc) {
                    let relevance = if ranked { scorer.score() } else { 0.0 };
                    found.push(Candidate { relevance, segment, doc });
                }
                doc = scorer.advance();
            }
            if counted.is_none() {
                let taken = missing - (self.wanted - found.len());
                total += taken as u64 + self.count_rest(reader, scorer.as_mut())?;
            }
        }
        Ok((total, found))
    }

    /// The number of matches of a segment, where its statistics tell it.
    fn known_count(&self, reader: &SegmentReader) -> Result<Option<u32>, ExecuteError> {
        Ok(match self.shape {
            Shape::Everything => Some(reader.num_docs()),
            Shape::ScoredTerm | Shape::FlatTerm if reader.alive_bitset().is_none() => {
                Some(self.weight.count(reader)?)
            }
            _ => None,
        })
    }

    /// Counts the living matches from where the scorer stands.
    fn count_rest(
        &self,
        reader: &SegmentReader,
        scorer: &mut dyn Scorer,
    ) -> Result<u64, ExecuteError> {
        let mut buffer = [0; COLLECT_BLOCK_BUFFER_LEN];
        let mut total = 0;
        let mut since_look = 0;
        loop {
            let filled = scorer.fill_buffer(&mut buffer);
            let live = buffer.iter().take(filled).filter(|doc| alive(reader, **doc)).count();
            total += live as u64;
            since_look += filled as u32;
            if filled < buffer.len() {
                return Ok(total);
            }
            if since_look >= DOCUMENTS_PER_LOOK {
                since_look = 0;
                self.limits.check()?;
            }
        }
    }

    /// The best matches of any query.
    fn scored(&self) -> Outcome {
        let mut total = 0;
        let mut best = BinaryHeap::with_capacity(self.wanted + 1);
        for (segment, reader) in self.searcher.segment_readers().iter().enumerate() {
            let mut scorer = self.weight.scorer(reader, 1.0)?;
            self.each(reader, scorer.as_mut(), |scorer, doc| {
                let relevance = scorer.score();
                if relevance < self.minimum {
                    return;
                }
                total += 1;
                keep(&mut best, self.wanted, Candidate { relevance, segment, doc });
            })?;
        }
        Ok((total, in_order(best)))
    }

    /// Walks over the living matches of a segment, looking at the deadline now and then.
    fn each<S: DocSet + ?Sized>(
        &self,
        reader: &SegmentReader,
        docs: &mut S,
        mut visit: impl FnMut(&mut S, DocId),
    ) -> Result<(), ExecuteError> {
        self.limits.check()?;
        let mut since_look = 0;
        let mut doc = docs.doc();
        while doc != TERMINATED {
            if alive(reader, doc) {
                visit(docs, doc);
            }
            since_look += 1;
            if since_look == DOCUMENTS_PER_LOOK {
                since_look = 0;
                self.limits.check()?;
            }
            doc = docs.advance();
        }
        Ok(())
    }

    /// The first matches in the order asked for.
    fn ordered(&self, order: &[SortColumn]) -> Result<(u64, Ordered), ExecuteError> {
        let mut total = 0;
        let mut found: Ordered = Vec::new();
        for (segment, reader) in self.searcher.segment_readers().iter().enumerate() {
            let columns =
                order.iter().map(|by| SortKeys::open(reader, by)).collect::<Result<Vec<_>, _>>()?;
            let mut best: BinaryHeap<([u64; 4], DocId)> =
                BinaryHeap::with_capacity(self.wanted + 1);
            let mut scorer = self.weight.scorer(reader, 1.0)?;
            let position = (segment as i64) << 32;
            self.each(reader, scorer.as_mut(), |scorer, doc| {
                let relevance = if self.scored { scorer.score() } else { 0.0 };
                if relevance < self.minimum {
                    return;
                }
                total += 1;
                let mut keys = [0; 4];
                for (key, column) in keys.iter_mut().zip(&columns) {
                    *key = column.key(doc, relevance);
                }
                if best.len() < self.wanted {
                    best.push((keys, doc));
                } else if best.peek().is_some_and(|worst| (keys, doc) < *worst) {
                    best.pop();
                    best.push((keys, doc));
                }
            })?;
            for (keys, doc) in best {
                let value = |(column, key): (&SortKeys, u64)| column.value(doc, key, position);
                let values: Vec<SortValue> =
                    columns.iter().zip(keys).map(value).collect::<Result<_, _>>()?;
                let relevance = relevance(order, &values);
                found.push((values, Candidate { relevance, segment, doc }));
            }
        }
        found.sort_by(|(left, a), (right, b)| {
            compare(order, left, right).then_with(|| (a.segment, a.doc).cmp(&(b.segment, b.doc)))
        });
        found.truncate(self.wanted);
        Ok((total, found))
    }

    /// Finds the store's numbers of the candidates.
    fn hits(&self, candidates: impl Iterator<Item = Candidate>) -> Result<Vec<Hit>, ExecuteError> {
        let documents = self.lids.of(self.searcher);
        let mut hits = Vec::new();
        for candidate in candidates {
            let lid = documents.lid(candidate.segment, candidate.doc)?;
            if let Some(lid) = lid {
                hits.push(Hit { lid, relevance: candidate.relevance });
            }
        }
        Ok(hits)
    }
}

/// The relevance of a hit, where it was ordered by it.
fn relevance(order: &[SortColumn], values: &[SortValue]) -> f32 {
    let by_score = order.iter().position(|column| column.by == SortBy::Score);
    match by_score.and_then(|number| values.get(number)) {
        Some(SortValue::Real(score)) => tantivy::u64_to_f64(*score) as f32,
        _ => 0.0,
    }
}

fn alive(reader: &SegmentReader, doc: DocId) -> bool {
    reader.alive_bitset().is_none_or(|alive| alive.is_alive(doc))
}

/// Keeps the best `wanted` candidates; the top of the heap is the worst of them.
fn keep(best: &mut BinaryHeap<Reverse<Candidate>>, wanted: usize, candidate: Candidate) {
    if best.len() < wanted {
        best.push(Reverse(candidate));
    } else if let Some(mut worst) = best.peek_mut()
        && worst.0 < candidate
    {
        *worst = Reverse(candidate);
    }
}

/// The relevance that a further candidate must exceed.
fn threshold(best: &BinaryHeap<Reverse<Candidate>>, wanted: usize) -> Score {
    match best.peek() {
        Some(worst) if best.len() >= wanted => worst.0.relevance,
        _ => f32::MIN,
    }
}

fn in_order(best: BinaryHeap<Reverse<Candidate>>) -> Vec<Candidate> {
    best.into_sorted_vec().into_iter().map(|Reverse(candidate)| candidate).collect()
}

//! The best matches of terms, without a look at most of the matches.

use super::super::words::Statistics;
use super::{Candidate, ExecuteError, Outcome, Run, alive, in_order, keep, threshold};
use std::collections::BinaryHeap;
use tantivy::query::{EnableScoring, Query};
use tantivy::{DocId, Score, SegmentReader, TERMINATED};

/// Sums of the same numbers in another order differ by less than this share.
const ROUNDING: Score = 1e-5;

impl Run<'_> {
    /// The best matches of one term, skipping what cannot be among them.
    pub(super) fn pruned(&self) -> Outcome {
        let mut total = 0;
        let mut best = BinaryHeap::with_capacity(self.wanted + 1);
        for (segment, reader) in self.searcher.segment_readers().iter().enumerate() {
            self.limits.check()?;
            total += match self.known_count(reader)? {
                Some(count) => u64::from(count),
                None => self.count_rest(reader, self.weight.scorer(reader, 1.0)?.as_mut())?,
            };
            if self.wanted == 0 {
                continue;
            }
            let mut visit = |doc, relevance| {
                if alive(reader, doc) {
                    keep(&mut best, self.wanted, Candidate { relevance, segment, doc });
                }
                threshold(&best, self.wanted)
            };
            self.weight.for_each_pruning(f32::MIN, reader, &mut visit)?;
        }
        Ok((total, in_order(best)))
    }

    /// As [`Run::pruned`] for any of several terms. The matches are counted by a walk over each term
    /// without relevances.
    ///
    /// The skipped documents depend on the number of hits that is wanted, and so does the order in which the terms'
    /// relevances are added. So that pages agree to the last bit, the walk adds up those near enough to
    /// the best once more, in the order of the query. (The sum of two has no order.)
    pub(super) fn pruned_union(&self, terms: &[Box<dyn Query>]) -> Outcome {
        let mut best = BinaryHeap::with_capacity(self.wanted + 1);
        let mut near: Vec<Candidate> = Vec::new();
        let mut looked_through = 4 * self.wanted + 1024;
        for (segment, reader) in self.searcher.segment_readers().iter().enumerate() {
            self.limits.check()?;
            let mut visit = |doc, relevance| {
                let candidate = Candidate { relevance, segment, doc };
                if alive(reader, doc) {
                    keep(&mut best, self.wanted, candidate);
                    near.push(candidate);
                }
                let enough = nearly(threshold(&best, self.wanted));
                if near.len() > looked_through {
                    near.retain(|candidate| candidate.relevance >= enough);
                    looked_through = looked_through.max(2 * near.len());
                }
                enough
            };
            self.weight.for_each_pruning(f32::MIN, reader, &mut visit)?;
        }
        let enough = nearly(threshold(&best, self.wanted));
        near.retain(|candidate| candidate.relevance >= enough);
        let total = self.walk(terms, &mut near)?;
        near.sort_unstable_by(|left, right| right.cmp(left));
        near.truncate(self.wanted);
        Ok((total, near))
    }

    /// Counts the documents with any of the terms, and adds up the relevance of candidates, which come
    /// segment by segment in the order of documents.
    fn walk(
        &self,
        terms: &[Box<dyn Query>],
        mut candidates: &mut [Candidate],
    ) -> Result<u64, ExecuteError> {
        let adds = terms.len() > 2;
        let statistics = Statistics::of(self.searcher);
        let scoring = if adds {
            EnableScoring::enabled_from_statistics_provider(&statistics, self.searcher)
        } else {
            EnableScoring::disabled_from_searcher(self.searcher)
        };
        let weights = terms.iter().map(|term| term.weight(scoring));
        let weights = weights.collect::<Result<Vec<_>, _>>()?;
        let mut total = 0;
        for (segment, reader) in self.searcher.segment_readers().iter().enumerate() {
            self.limits.check()?;
            let here = candidates.partition_point(|candidate| candidate.segment <= segment);
            let (group, rest) = std::mem::take(&mut candidates).split_at_mut(here);
            candidates = rest;
            let group: &mut [Candidate] = if adds { group } else { &mut [] };
            group.iter_mut().for_each(|candidate| candidate.relevance = 0.0);
            let mut found = vec![0u64; (reader.max_doc() as usize).div_ceil(64)];
            for weight in &weights {
                self.limits.check()?;
                let mut scorer = weight.scorer(reader, 1.0)?;
                let mut waiting = group.iter_mut();
                let mut next = waiting.next();
                let mut doc = scorer.doc();
                while doc != TERMINATED {
                    found[doc as usize / 64] |= 1 << (doc % 64);
                    while next.as_ref().is_some_and(|candidate| candidate.doc < doc) {
                        next = waiting.next();
                    }
                    if let Some(candidate) = next.as_mut()
                        && candidate.doc == doc
                    {
                        candidate.relevance += scorer.score();
                    }
                    doc = scorer.advance();
                }
            }
            total += living(reader, &found);
        }
        Ok(total)
    }
}

/// Documents among these, a bit for each, that are not removed.
fn living(reader: &SegmentReader, found: &[u64]) -> u64 {
    let Some(alive) = reader.alive_bitset() else {
        return found.iter().map(|word| u64::from(word.count_ones())).sum();
    };
    let bits = found.iter().enumerate().flat_map(|(number, word)| {
        let first = number as DocId * 64;
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first + bit)
    });
    bits.filter(|doc| alive.is_alive(*doc)).count() as u64
}

/// A little less than a relevance.
fn nearly(relevance: Score) -> Score {
    if relevance > 0.0 { relevance * (1.0 - ROUNDING) } else { relevance }
}

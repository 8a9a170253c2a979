//! Words that follow one another.

use super::{explain, look_up, norms};
use std::fmt;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::query::{Bm25Weight, EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, Term};

/// Documents that hold two words or more of a field side by side, in this order.
#[derive(Clone)]
pub(crate) struct PhraseQuery {
    terms: Vec<Term>,
}

impl PhraseQuery {
    pub(crate) fn new(terms: Vec<Term>) -> Self {
        Self { terms }
    }
}

impl fmt::Debug for PhraseQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PhraseQuery({:?})", self.terms)
    }
}

impl Query for PhraseQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let scores = match scoring {
            EnableScoring::Enabled { statistics_provider, .. } => {
                Some(Bm25Weight::for_terms(statistics_provider, &self.terms)?)
            }
            EnableScoring::Disabled { .. } => None,
        };
        Ok(Box::new(PhraseWeight { terms: self.terms.clone(), scores }))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.terms.iter().for_each(|term| visitor(term, true));
    }
}

struct PhraseWeight {
    terms: Vec<Term>,
    scores: Option<Bm25Weight>,
}

impl Weight for PhraseWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let Some(first) = self.terms.first() else { return Ok(Box::new(EmptyScorer)) };
        let mut infos = Vec::with_capacity(self.terms.len());
        for term in &self.terms {
            // Nothing is read before all words are known to be there.
            let Some(info) = look_up(reader, term)? else { return Ok(Box::new(EmptyScorer)) };
            infos.push(info);
        }
        let inverted = reader.inverted_index(first.field())?;
        let mut words = Vec::with_capacity(infos.len());
        for (info, at) in infos.iter().zip(0..) {
            let option = IndexRecordOption::WithFreqsAndPositions;
            words
                .push(Placed { at, postings: inverted.read_postings_from_terminfo(info, option)? });
        }
        words.sort_by_key(|word| word.postings.doc_freq());
        let norms = norms(reader, first.field(), self.scores.is_some())?;
        let scores = self.scores.as_ref().map(|scores| scores.boost_by(boost));
        let (starts, other) = (Vec::new(), Vec::new());
        let mut scorer = PhraseScorer { words, norms, scores, starts, other };
        scorer.meet(0);
        Ok(Box::new(scorer))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        explain(self.scorer(reader, 1.0)?, doc)
    }
}

/// A word and its place in the phrase.
struct Placed {
    at: u32,
    postings: SegmentPostings,
}

struct PhraseScorer {
    /// The rarest first.
    words: Vec<Placed>,
    norms: FieldNormReader,
    scores: Option<Bm25Weight>,
    /// Place where the phrase ends in the document, counted from the same place for each word.
    starts: Vec<u32>,
    other: Vec<u32>,
}

impl PhraseScorer {
    /// Moves to the first document from `target` on that holds the phrase.
    fn meet(&mut self, mut target: DocId) -> DocId {
        'next: loop {
            for Placed { postings, .. } in &mut self.words {
                let doc =
                    if postings.doc() < target { postings.seek(target) } else { postings.doc() };
                if doc > target {
                    target = doc;
                    continue 'next;
                }
            }
            if target == TERMINATED || self.is_here() {
                return target;
            }
            target += 1;
        }
    }

    /// Returns whether the document that all words are at holds the phrase; finds all its places.
    fn is_here(&mut self) -> bool {
        let last = self.words.len() as u32 - 1;
        let Some((first, rest)) = self.words.split_first_mut() else { return false };
        // Counted from behind, so that no place lies before the beginning.
        first.postings.positions_with_offset(last - first.at, &mut self.starts);
        for word in rest {
            if self.starts.is_empty() {
                return false;
            }
            word.postings.positions_with_offset(last - word.at, &mut self.other);
            retain_common(&mut self.starts, &self.other);
        }
        !self.starts.is_empty()
    }
}

/// Keeps the numbers that are also in `other`; both are rising.
fn retain_common(numbers: &mut Vec<u32>, other: &[u32]) {
    let mut rest = other.iter().copied().peekable();
    numbers.retain(|number| {
        while rest.next_if(|next| next < number).is_some() {}
        rest.peek() == Some(number)
    });
}

impl DocSet for PhraseScorer {
    fn advance(&mut self) -> DocId {
        let next = self.words[0].postings.advance();
        self.meet(next)
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if target <= self.doc() { self.doc() } else { self.meet(target) }
    }

    fn doc(&self) -> DocId {
        self.words[0].postings.doc()
    }

    fn size_hint(&self) -> u32 {
        self.words[0].postings.size_hint() / (10 * self.words.len() as u32)
    }

    fn cost(&self) -> u64 {
        // A document that has all words is cheap to find, and dear to look into.
        u64::from(self.words[0].postings.size_hint()) * 10 * self.words.len() as u64
    }
}

impl Scorer for PhraseScorer {
    fn score(&mut self) -> Score {
        match &self.scores {
            Some(scores) => {
                scores.score(self.norms.fieldnorm_id(self.doc()), self.starts.len() as u32)
            }
            None => 1.0,
        }
    }
}

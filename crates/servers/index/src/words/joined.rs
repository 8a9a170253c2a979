//! Several words at once: any of them, the best of them, or all.
//!
//! A general join calls each query through a table of functions, document by document. Words are of
//! one kind.

use super::window::Gathered;
use super::{WordQuery, WordScorer, WordWeight, explain};
use std::fmt;
use tantivy::query::{
    AllScorer, BooleanQuery, DisjunctionMaxQuery, EmptyScorer, EnableScoring, Explanation, Occur,
    Query, Scorer, Weight,
};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, Term};

/// Of more words, documents are gathered by the window: comparing all words at each document would cost more.
const FEW_WORDS: usize = 2;
/// Of fewer documents, a window would cost more.
const FEW_DOCUMENTS: u32 = 1024;

/// Ways in which the words of a document count.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Join {
    /// Any word; the scores of those that are there are added.
    Any,
    /// Any word; the highest score counts, and a share of the others.
    Best(Score),
    /// All words; their scores are added.
    All,
}

/// Documents that match any of the queries; the scores are added.
pub(crate) fn any(queries: Vec<Box<dyn Query>>) -> Box<dyn Query> {
    joined(Join::Any, queries, |queries| {
        Box::new(BooleanQuery::new(clauses(Occur::Should, queries)))
    })
}

/// Documents that match any of the queries; the highest score counts, and a share of the others.
pub(crate) fn best(queries: Vec<Box<dyn Query>>, tie_breaker: Score) -> Box<dyn Query> {
    joined(Join::Best(tie_breaker), queries, |queries| {
        Box::new(DisjunctionMaxQuery::with_tie_breaker(queries, tie_breaker))
    })
}

/// Documents that match all of the queries; the scores are added.
pub(crate) fn all(queries: Vec<Box<dyn Query>>) -> Box<dyn Query> {
    joined(Join::All, queries, |queries| Box::new(BooleanQuery::new(clauses(Occur::Must, queries))))
}

fn clauses(occur: Occur, queries: Vec<Box<dyn Query>>) -> Vec<(Occur, Box<dyn Query>)> {
    queries.into_iter().map(|query| (occur, query)).collect()
}

fn joined(
    join: Join,
    queries: Vec<Box<dyn Query>>,
    other: impl FnOnce(Vec<Box<dyn Query>>) -> Box<dyn Query>,
) -> Box<dyn Query> {
    let words = || queries.iter().map(|query| query.downcast_ref::<WordQuery>().cloned()).collect();
    match if queries.len() > 1 { words() } else { None } {
        Some(words) => Box::new(JoinedQuery { join, words }),
        None => other(queries),
    }
}

#[derive(Clone)]
struct JoinedQuery {
    join: Join,
    words: Vec<WordQuery>,
}

impl fmt::Debug for JoinedQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({:?})", self.join, self.words)
    }
}

impl Query for JoinedQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let words = self.words.iter().map(|word| word.word_weight(scoring));
        Ok(Box::new(JoinedWeight { join: self.join, words: words.collect::<Result<_, _>>()? }))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.words.iter().for_each(|word| word.query_terms(visitor));
    }
}

struct JoinedWeight {
    join: Join,
    words: Vec<WordWeight>,
}

impl Weight for JoinedWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut found = Vec::with_capacity(self.words.len());
        for word in &self.words {
            match word.word_scorer(reader, boost)? {
                Some(scorer) => found.push(scorer),
                None if self.join == Join::All => return Ok(Box::new(EmptyScorer)),
                None => {}
            }
        }
        if self.join == Join::All {
            return Ok(Box::new(AllOf::new(found)));
        }
        if found.iter().any(|scorer| scorer.is_everywhere(reader)) {
            return Ok(Box::new(AllScorer::new(reader.max_doc())));
        }
        match (found.len(), found.pop()) {
            (_, None) => Ok(Box::new(EmptyScorer)),
            (1, Some(only)) => Ok(Box::new(only)),
            (_, Some(last)) => {
                found.push(last);
                let tie_breaker = match self.join {
                    Join::Best(tie_breaker) => Some(tie_breaker),
                    _ => None,
                };
                let documents = found.iter().map(DocSet::size_hint).fold(0, u32::saturating_add);
                if found.len() <= FEW_WORDS || documents <= FEW_DOCUMENTS {
                    return Ok(Box::new(AnyOf::new(found, tie_breaker)));
                }
                Ok(Box::new(Gathered::new(found, tie_breaker)))
            }
        }
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        explain(self.scorer(reader, 1.0)?, doc)
    }
}

/// Walks the documents of any of some words.
struct AnyOf {
    words: Vec<WordScorer>,
    doc: DocId,
    /// Without one the scores are added.
    tie_breaker: Option<Score>,
}

impl AnyOf {
    fn new(words: Vec<WordScorer>, tie_breaker: Option<Score>) -> Self {
        let mut any = Self { words, doc: 0, tie_breaker };
        any.doc = any.nearest();
        any
    }

    fn nearest(&self) -> DocId {
        self.words.iter().map(DocSet::doc).min().unwrap_or(TERMINATED)
    }
}

impl DocSet for AnyOf {
    fn advance(&mut self) -> DocId {
        let (here, mut next) = (self.doc, TERMINATED);
        for word in &mut self.words {
            let doc = word.doc();
            next = next.min(if doc == here { word.advance() } else { doc });
        }
        self.doc = next;
        next
    }

    fn seek(&mut self, target: DocId) -> DocId {
        for word in &mut self.words {
            if word.doc() < target {
                word.seek(target);
            }
        }
        self.doc = self.nearest();
        self.doc
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.words.iter().map(DocSet::size_hint).fold(0, u32::saturating_add)
    }
}

impl Scorer for AnyOf {
    fn score(&mut self) -> Score {
        let (mut sum, mut most) = (0.0, 0.0_f32);
        for word in self.words.iter_mut().filter(|word| word.doc() == self.doc) {
            let score = word.score();
            sum += score;
            most = most.max(score);
        }
        self.tie_breaker.map_or(sum, |tie_breaker| most + (sum - most) * tie_breaker)
    }
}

/// Walks the documents that hold all of some words.
struct AllOf {
    /// The rarest first.
    words: Vec<WordScorer>,
}

impl AllOf {
    fn new(mut words: Vec<WordScorer>) -> Self {
        words.sort_by_key(WordScorer::size_hint);
        let mut all = Self { words };
        all.meet(0);
        all
    }

    /// Moves all words to the first document from `target` on that has them all.
    fn meet(&mut self, mut target: DocId) -> DocId {
        'next: loop {
            for word in &mut self.words {
                let doc = if word.doc() < target { word.seek(target) } else { word.doc() };
                if doc > target {
                    target = doc;
                    continue 'next;
                }
            }
            return target;
        }
    }
}

impl DocSet for AllOf {
    fn advance(&mut self) -> DocId {
        let next = self.words[0].advance();
        self.meet(next)
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.meet(target)
    }

    fn doc(&self) -> DocId {
        self.words[0].doc()
    }

    fn size_hint(&self) -> u32 {
        self.words[0].size_hint()
    }
}

impl Scorer for AllOf {
    fn score(&mut self) -> Score {
        self.words.iter_mut().map(Scorer::score).sum()
    }
}

//! Every document that a query does not match.
//!
//! tantivy's own exclusion moves phrases in a way that they do not allow (a debug assertion of 0.27
//! fails when a phrase has no match); this one only uses plain seeking.

use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError};

/// The documents that the inner query does not match, all with relevance 0.
#[derive(Debug)]
pub(crate) struct ComplementQuery {
    pub(crate) inner: Box<dyn Query>,
}

impl Clone for ComplementQuery {
    fn clone(&self) -> Self {
        Self { inner: self.inner.box_clone() }
    }
}

impl Query for ComplementQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let searcher_opt = scoring.searcher();
        let unscored = EnableScoring::Disabled { schema: scoring.schema(), searcher_opt };
        Ok(Box::new(ComplementWeight { inner: self.inner.weight(unscored)? }))
    }
}

struct ComplementWeight {
    inner: Box<dyn Weight>,
}

impl Weight for ComplementWeight {
    fn scorer(&self, reader: &SegmentReader, _: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let inner = self.inner.scorer(reader, 1.0)?;
        Ok(Box::new(ComplementScorer::new(inner, reader.max_doc())))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() <= doc && scorer.seek(doc) == doc {
            return Ok(Explanation::new("Complement", 0.0));
        }
        let message = format!("document {doc} does not match");
        Err(TantivyError::InvalidArgument(message))
    }
}

struct ComplementScorer<S> {
    /// Stands at the first match that is not before `doc`.
    inner: S,
    doc: DocId,
    max_doc: DocId,
}

impl<S: DocSet> ComplementScorer<S> {
    fn new(inner: S, max_doc: DocId) -> Self {
        let mut scorer = Self { inner, doc: 0, max_doc };
        scorer.settle();
        scorer
    }

    /// Moves on to the first document from `doc` that the inner query leaves over.
    fn settle(&mut self) -> DocId {
        while self.doc < self.max_doc && self.doc == self.inner.doc() {
            self.doc += 1;
            self.inner.advance();
        }
        if self.doc >= self.max_doc {
            self.doc = TERMINATED;
        }
        self.doc
    }
}

impl<S: DocSet> DocSet for ComplementScorer<S> {
    fn advance(&mut self) -> DocId {
        if self.doc == TERMINATED {
            return TERMINATED;
        }
        let next = self.doc + 1;
        self.seek(next)
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.doc == TERMINATED || target >= self.max_doc {
            self.doc = TERMINATED;
            return TERMINATED;
        }
        if target > self.doc {
            self.doc = target;
        }
        if self.inner.doc() < self.doc {
            self.inner.seek(self.doc);
        }
        self.settle()
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.max_doc.saturating_sub(self.inner.size_hint())
    }
}

impl<S: DocSet + 'static> Scorer for ComplementScorer<S> {
    fn score(&mut self) -> Score {
        0.0
    }
}

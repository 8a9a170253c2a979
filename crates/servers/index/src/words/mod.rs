//! Documents that hold a word, found through the vocabulary of a segment.
//!
//! tantivy's own queries for terms look into the dictionary on the disk for each term, field and segment, twice and more. These give
//! the same documents with the same scores.

mod joined;
mod phrase;
#[cfg(test)]
mod tests;
mod window;

use super::vocabulary::find;
pub(crate) use joined::{all, any, best};
pub(crate) use phrase::PhraseQuery;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings, TermInfo};
use tantivy::query::{
    AllScorer, Bm25StatisticsProvider, Bm25Weight, EmptyScorer, EnableScoring, Explanation, Query,
    Scorer, TermQuery, Weight,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, Score, Searcher, SegmentReader, TERMINATED, TantivyError, Term};

/// Words in at least as many documents are walked by tantivy, which passes over blocks without unpacking them.
/// The small corpora of tests have frequent words too, so that both ways are tested.
const FREQUENT: u64 = if cfg!(test) { 16 } else { 4096 };

/// The number of documents that have a term, from the vocabularies.
pub(crate) struct Statistics<'a> {
    searcher: &'a Searcher,
    /// Number of documents of the most frequent of all terms that were asked for.
    most: AtomicU64,
}

impl<'a> Statistics<'a> {
    pub(crate) fn of(searcher: &'a Searcher) -> Self {
        Self { searcher, most: AtomicU64::new(0) }
    }

    /// Returns true if documents of a term that was asked for can be passed over by blocks.
    pub(crate) fn is_any_frequent(&self) -> bool {
        self.most.load(Ordering::Relaxed) >= FREQUENT
    }
}

impl Bm25StatisticsProvider for Statistics<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.searcher.total_num_tokens(field)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        self.searcher.total_num_docs()
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let mut documents = 0;
        for reader in self.searcher.segment_readers() {
            documents += look_up(reader, term)?.map_or(0, |info| u64::from(info.doc_freq));
        }
        self.most.fetch_max(documents, Ordering::Relaxed);
        Ok(documents)
    }
}

fn look_up(reader: &SegmentReader, term: &Term) -> tantivy::Result<Option<TermInfo>> {
    let inverted = reader.inverted_index(term.field())?;
    find(reader, &inverted, term.field(), term.serialized_value_bytes())
}

/// The lengths of the documents in a field, where they count.
fn norms(reader: &SegmentReader, field: Field, scored: bool) -> tantivy::Result<FieldNormReader> {
    let norms = if scored { reader.fieldnorms_readers().get_field(field)? } else { None };
    Ok(norms.unwrap_or_else(|| FieldNormReader::constant(reader.max_doc(), 1)))
}

fn explain(mut scorer: Box<dyn Scorer>, doc: DocId) -> tantivy::Result<Explanation> {
    if scorer.doc() <= doc && scorer.seek(doc) == doc {
        return Ok(Explanation::new("Words", scorer.score()));
    }
    let message = format!("document {doc} does not match");
    Err(TantivyError::InvalidArgument(message))
}

/// Documents that hold a word.
#[derive(Clone)]
pub(crate) struct WordQuery {
    term: Term,
    option: IndexRecordOption,
}

impl WordQuery {
    /// `option` is what a score needs; without scores documents alone are read.
    pub(crate) fn new(term: Term, option: IndexRecordOption) -> Self {
        Self { term, option }
    }

    fn word_weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<WordWeight> {
        let EnableScoring::Enabled { statistics_provider: statistics, .. } = scoring else {
            let (term, option) = (self.term.clone(), IndexRecordOption::Basic);
            return Ok(WordWeight { term, option, scores: None, pruning: None });
        };
        let documents = statistics.total_num_docs()?;
        let length = statistics.total_num_tokens(self.term.field())? as Score / documents as Score;
        let with_word = statistics.doc_freq(&self.term)?;
        let scores = Bm25Weight::for_one_term_without_explain(with_word, documents, length);
        let pruning = if with_word < FREQUENT {
            None
        } else {
            Some(TermQuery::new(self.term.clone(), self.option).weight(scoring)?)
        };
        let (term, option) = (self.term.clone(), self.option);
        Ok(WordWeight { term, option, scores: Some(scores), pruning })
    }
}

impl fmt::Debug for WordQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WordQuery({:?})", self.term)
    }
}

impl Query for WordQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.word_weight(scoring)?))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        visitor(&self.term, false);
    }
}

struct WordWeight {
    term: Term,
    option: IndexRecordOption,
    scores: Option<Bm25Weight>,
    /// Finds the best documents of a frequent word.
    pruning: Option<Box<dyn Weight>>,
}

impl WordWeight {
    /// `None` if no document of the segment holds the word.
    fn word_scorer(
        &self,
        reader: &SegmentReader,
        boost: Score,
    ) -> tantivy::Result<Option<WordScorer>> {
        let Some(info) = look_up(reader, &self.term)? else { return Ok(None) };
        let inverted = reader.inverted_index(self.term.field())?;
        let postings = inverted.read_postings_from_terminfo(&info, self.option)?;
        let norms = norms(reader, self.term.field(), self.scores.is_some())?;
        let scores = self.scores.as_ref().map(|scores| scores.boost_by(boost));
        Ok(Some(WordScorer { postings, norms, scores }))
    }
}

impl Weight for WordWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let Some(scorer) = self.word_scorer(reader, boost)? else {
            return Ok(Box::new(EmptyScorer));
        };
        if scorer.is_everywhere(reader) {
            return Ok(Box::new(AllScorer::new(reader.max_doc())));
        }
        Ok(Box::new(scorer))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        explain(self.scorer(reader, 1.0)?, doc)
    }

    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        match reader.alive_bitset() {
            Some(alive) => Ok(self.scorer(reader, 1.0)?.count(alive)),
            None => Ok(look_up(reader, &self.term)?.map_or(0, |info| info.doc_freq)),
        }
    }

    fn for_each_pruning(
        &self,
        mut threshold: Score,
        reader: &SegmentReader,
        callback: &mut dyn FnMut(DocId, Score) -> Score,
    ) -> tantivy::Result<()> {
        if let Some(pruning) = &self.pruning {
            return pruning.for_each_pruning(threshold, reader, callback);
        }
        let Some(mut scorer) = self.word_scorer(reader, 1.0)? else { return Ok(()) };
        while scorer.doc() != TERMINATED {
            let score = scorer.score();
            if score > threshold {
                threshold = callback(scorer.doc(), score);
            }
            scorer.advance();
        }
        Ok(())
    }
}

/// Walks the documents of a word.
struct WordScorer {
    postings: SegmentPostings,
    norms: FieldNormReader,
    scores: Option<Bm25Weight>,
}

impl WordScorer {
    /// All documents of the segment match, and no scores are needed.
    fn is_everywhere(&self, reader: &SegmentReader) -> bool {
        self.scores.is_none() && self.postings.doc_freq() == reader.max_doc()
    }
}

impl DocSet for WordScorer {
    #[inline]
    fn advance(&mut self) -> DocId {
        self.postings.advance()
    }

    #[inline]
    fn seek(&mut self, target: DocId) -> DocId {
        self.postings.seek(target)
    }

    #[inline]
    fn doc(&self) -> DocId {
        self.postings.doc()
    }

    fn size_hint(&self) -> u32 {
        self.postings.size_hint()
    }
}

impl Scorer for WordScorer {
    #[inline]
    fn score(&mut self) -> Score {
        match &self.scores {
            Some(scores) => {
                scores.score(self.norms.fieldnorm_id(self.doc()), self.postings.term_freq())
            }
            None => 1.0,
        }
    }
}

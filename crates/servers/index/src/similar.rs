//! Documents that hold any word near a word, any word that begins with a text, or any of some terms.

use super::automaton::TermAutomaton;
use super::vocabulary::{each_beginning, each_near, find};
use std::fmt;
use std::sync::Arc;
use tantivy::query::{ConstScorer, EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError, Term};

/// The words of a field that are searched.
#[derive(Clone)]
pub(crate) enum Words {
    /// All that the automaton of a term accepts, which are as many edits away at most.
    Near { term: Arc<str>, edits: u64, automaton: Arc<TermAutomaton> },
    /// All that begin so.
    Beginning(Arc<str>),
    /// These.
    These(Arc<[Term]>),
}

/// All such words of a field are looked for.
#[derive(Clone)]
pub(crate) struct SimilarQuery {
    pub(crate) field: Field,
    pub(crate) words: Words,
}

impl fmt::Debug for SimilarQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = f.debug_struct("SimilarQuery");
        match &self.words {
            Words::Near { term: text, .. } | Words::Beginning(text) => told.field("text", text),
            Words::These(terms) => told.field("terms", terms),
        };
        told.finish_non_exhaustive()
    }
}

impl Query for SimilarQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(SimilarWeight(self.clone())))
    }
}

struct SimilarWeight(SimilarQuery);

impl Weight for SimilarWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let SimilarQuery { field, words } = &self.0;
        let field = *field;
        let mut terms = Vec::new();
        match words {
            Words::Near { term, edits, automaton } => {
                each_near(reader, field, term, *edits, automaton, |_, term, _| {
                    terms.push(term.clone());
                })?;
            }
            Words::Beginning(text) => {
                each_beginning(reader, field, text, |term| terms.push(term.clone()))?;
            }
            Words::These(these) => {
                let inverted = reader.inverted_index(field)?;
                for term in these.iter() {
                    terms.extend(find(reader, &inverted, field, term.serialized_value_bytes())?);
                }
            }
        }
        if terms.is_empty() {
            return Ok(Box::new(EmptyScorer));
        }
        // From the beginning of the file to its end.
        terms.sort_unstable_by_key(|term| term.postings_range.start);
        let inverted = reader.inverted_index(field)?;
        let mut documents = Documents::new(reader.max_doc());
        for term in terms {
            let mut postings =
                inverted.read_block_postings_from_terminfo(&term, IndexRecordOption::Basic)?;
            while !postings.docs().is_empty() {
                postings.docs().iter().for_each(|document| documents.insert(*document));
                postings.advance();
            }
        }
        documents.seek(0);
        Ok(Box::new(ConstScorer::new(documents, boost)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() <= doc && scorer.seek(doc) == doc {
            return Ok(Explanation::new("Similar", 1.0));
        }
        let message = format!("document {doc} does not match");
        Err(TantivyError::InvalidArgument(message))
    }
}

/// A set of documents, a bit for each.
struct Documents {
    words: Vec<u64>,
    count: u32,
    doc: DocId,
}

impl Documents {
    fn new(max_doc: DocId) -> Self {
        Self { words: vec![0; (max_doc as usize).div_ceil(64)], count: 0, doc: 0 }
    }

    fn insert(&mut self, doc: DocId) {
        let word = &mut self.words[doc as usize / 64];
        let bit = 1 << (doc % 64);
        self.count += u32::from(*word & bit == 0);
        *word |= bit;
    }
}

impl DocSet for Documents {
    fn advance(&mut self) -> DocId {
        if self.doc == TERMINATED {
            return TERMINATED;
        }
        self.seek(self.doc + 1)
    }

    fn seek(&mut self, target: DocId) -> DocId {
        let mut at = target as usize / 64;
        self.doc = TERMINATED;
        let mut rest = self.words.get(at).map_or(0, |word| word & u64::MAX << (target % 64));
        while at < self.words.len() {
            if rest != 0 {
                self.doc = (at * 64) as DocId + rest.trailing_zeros();
                break;
            }
            at += 1;
            rest = self.words.get(at).copied().unwrap_or(0);
        }
        self.doc
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.count
    }
}

//! Words that resemble a word: found through the term dictionary by an automaton, or by a scan of
//! the text.

use super::automaton::TermAutomaton;
use super::mapping::{FieldKind, Mapped};
use super::query::{Expansion, MAX_AUTOMATON_EDITS, Similar};
use super::row_text::Scan;
use super::similar::{SimilarQuery, Words};
use super::vocabulary::each_near;
use super::words::WordQuery;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;
use tantivy::query::{
    Bm25StatisticsProvider, BooleanQuery, BoostQuery, ConstScoreQuery, EmptyQuery, EnableScoring,
    Occur, Query, Weight,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Score, Searcher, TantivyError, Term};

/// The way approximate words of Elasticsearch's queries are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FuzzyMode {
    /// As Lucene: at most 2 edits, and the nearest words of the term dictionary only, 50 unless the
    /// query says otherwise.
    #[default]
    Index,
    /// At most 4 edits, and every word of the term dictionary that is as near.
    Automaton,
    /// The text itself is read, for any number of edits, one search at a time.
    Scan,
}

impl FuzzyMode {
    /// The largest edit distance that a query may ask for.
    #[must_use]
    pub fn max_edits(self) -> u64 {
        match self {
            Self::Index => 2,
            Self::Automaton => MAX_AUTOMATON_EDITS,
            Self::Scan => u64::MAX,
        }
    }
}

/// The query for similar words of one field.
///
/// # Errors
/// The message for the client.
pub(crate) fn query(
    similar: &Similar,
    mapped: &Mapped,
    scan: Option<&dyn Scan>,
) -> Result<Box<dyn Query>, String> {
    if !matches!(mapped.kind, FieldKind::Text | FieldKind::Keyword) {
        return Ok(Box::new(EmptyQuery));
    }
    if let Expansion::Scan(metric) = similar.expansion {
        let scan = scan.ok_or("the server was not started with --fuzzy scan")?;
        return scan.query(&similar.field, &similar.term, metric, similar.max_edits);
    }
    let field = mapped.field;
    let transpositions = similar.transpositions;
    let automaton = TermAutomaton::similar(
        &similar.term,
        similar.max_edits,
        similar.prefix_length,
        transpositions,
    );
    let automaton = Arc::new(automaton.ok_or_else(|| {
        let edits = similar.max_edits;
        format!("{edits} edits are too many: the automata go to {MAX_AUTOMATON_EDITS}")
    })?);
    let (term, edits): (Arc<str>, u64) = (similar.term.as_str().into(), similar.max_edits);
    Ok(match similar.expansion {
        Expansion::Nearest(limit) => {
            let length = term.chars().count();
            Box::new(NearestQuery { field, term, edits, automaton, length, limit })
        }
        // How near each word is does not count: the matches may be a tenth of all documents.
        _ => Box::new(ConstScoreQuery::new(
            Box::new(SimilarQuery { field, words: Words::Near { term, edits, automaton } }),
            1.0,
        )),
    })
}

/// Lucene's way to score approximate words: those of the highest boost are kept, where the boost is
/// one less the edits as a share of the shorter word's length; all of them are scored with the
/// highest of their document frequencies, times the boost.
#[derive(Clone)]
struct NearestQuery {
    field: Field,
    term: Arc<str>,
    edits: u64,
    automaton: Arc<TermAutomaton>,
    /// Characters of the term.
    length: usize,
    limit: usize,
}

impl fmt::Debug for NearestQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NearestQuery").field("field", &self.field).finish_non_exhaustive()
    }
}

/// A word in the order in which words are kept: by boost, then the smaller term.
#[derive(Clone, Debug)]
struct Kept {
    boost: Score,
    term: Reverse<Vec<u8>>,
    /// Number of documents that have it, in the segments so far.
    documents: Cell<u64>,
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Kept {}

impl Ord for Kept {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.boost.total_cmp(&other.boost).then_with(|| self.term.cmp(&other.term))
    }
}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl NearestQuery {
    /// The words that are kept, over all segments.
    fn nearest(&self, searcher: &Searcher) -> Result<Vec<Kept>, TantivyError> {
        // The top is the worst.
        let mut best: BinaryHeap<Reverse<Kept>> = BinaryHeap::new();
        for reader in searcher.segment_readers() {
            each_near(
                reader,
                self.field,
                &self.term,
                self.edits,
                &self.automaton,
                |term, info, edits| {
                    let boost = self.boost(term, edits);
                    let documents = u64::from(info.doc_freq);
                    if best.len() == self.limit
                        && best.peek().is_some_and(|Reverse(worst)| {
                            boost < worst.boost || boost == worst.boost && term > &*worst.term.0
                        })
                    {
                        return;
                    }
                    // A heap of fifty at most: a look at each is cheaper than a set.
                    if let Some(Reverse(kept)) = best.iter().find(|kept| kept.0.term.0 == term) {
                        // What was not kept in one segment is not in another: so none is missed.
                        kept.documents.update(|before| before + documents);
                        return;
                    }
                    if best.len() == self.limit {
                        best.pop();
                    }
                    let (term, documents) = (Reverse(term.to_vec()), Cell::new(documents));
                    best.push(Reverse(Kept { boost, term, documents }));
                },
            )?;
        }
        Ok(best.into_iter().map(|Reverse(kept)| kept).collect())
    }

    fn boost(&self, term: &[u8], edits: u8) -> Score {
        if edits == 0 {
            return 1.0;
        }
        let characters = term.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        1.0 - f32::from(edits) / characters.min(self.length) as f32
    }

    fn term(&self, kept: &Kept) -> Option<Term> {
        Some(Term::from_field_text(self.field, std::str::from_utf8(&kept.term.0).ok()?))
    }
}

impl Query for NearestQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let Some(searcher) = scoring.searcher() else {
            return EmptyQuery.weight(scoring);
        };
        let kept = self.nearest(searcher)?;
        let terms: Vec<(Term, Score)> =
            kept.iter().filter_map(|kept| Some((self.term(kept)?, kept.boost.max(0.0)))).collect();
        // A look into the dictionaries for each would cost more than the search.
        let documents = kept.iter().map(|kept| kept.documents.get()).max().unwrap_or(0);
        let clauses = terms.into_iter().map(|(term, boost)| {
            let query: Box<dyn Query> =
                Box::new(WordQuery::new(term, IndexRecordOption::WithFreqs));
            let boosted =
                if boost == 1.0 { query } else { Box::new(BoostQuery::new(query, boost)) };
            (Occur::Should, boosted)
        });
        let union = BooleanQuery::with_minimum_required_clauses(clauses.collect(), 1);
        if !scoring.is_scoring_enabled() {
            return union.weight(scoring);
        }
        let blended = Blended { searcher, documents };
        union.weight(EnableScoring::enabled_from_statistics_provider(&blended, searcher))
    }
}

/// Statistics in which every term is in as many documents.
struct Blended<'a> {
    searcher: &'a Searcher,
    documents: u64,
}

impl Bm25StatisticsProvider for Blended<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.searcher.total_num_tokens(field)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        self.searcher.total_num_docs()
    }

    fn doc_freq(&self, _: &Term) -> tantivy::Result<u64> {
        Ok(self.documents)
    }
}

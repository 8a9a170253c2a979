//! Versions that were replaced or removed, taken out of the index many at a time.
//!
//! tantivy takes documents away by queries, each of which opens columns and dictionaries of every segment. So all that
//! a refresh is going to hide is one query, which opens them once.

use super::super::mapping::id_field;
use plimsoll_index::row_text::ROW;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;
use tantivy::columnar::Column;
use tantivy::index::InvertedIndexReader;
use tantivy::postings::TermInfo;
use tantivy::query::{
    BitSetDocSet, ConstScorer, EnableScoring, Explanation, Query, Scorer, Weight,
};
use tantivy::schema::IndexRecordOption;
use tantivy::{BitSet, DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError, Term};

/// If at least one in this many words of a segment is wanted, all of them are read in order instead of each being looked
/// up: a lookup unpacks a block of them.
const READ_ALL_FROM: usize = 50;

/// The versions to remove: those of each id before a row.
///
/// A segment that was made after the deletion is affected by it too; its row shows that it is not meant.
#[derive(Debug, Default)]
pub(super) struct Replaced {
    ids: Vec<(Box<str>, u64)>,
}

impl Replaced {
    pub(super) fn push(&mut self, id: &str, before: u64) {
        self.ids.push((id.into(), before));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Bytes of memory.
    pub(super) fn size(&self) -> usize {
        // An id is short, and has its place on the heap.
        self.ids.len() * (size_of::<(Box<str>, u64)>() + 32)
    }

    /// The query for all of them; there are none afterwards.
    pub(super) fn take_query(&mut self) -> ReplacedQuery {
        let mut ids = std::mem::take(&mut self.ids);
        // Of several deletions of an id the last one includes the others.
        ids.sort_unstable_by(|(a, one), (b, other)| a.cmp(b).then(other.cmp(one)));
        ids.dedup_by(|later, kept| later.0 == kept.0);
        ReplacedQuery { ids: ids.into() }
    }
}

/// The documents of these ids whose row is before theirs. In the order of the ids, each of them once.
#[derive(Clone)]
pub(super) struct ReplacedQuery {
    ids: Arc<[(Box<str>, u64)]>,
}

impl fmt::Debug for ReplacedQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplacedQuery").field("ids", &self.ids.len()).finish()
    }
}

impl Query for ReplacedQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl ReplacedQuery {
    /// Calls `visit` with every id that the segment has, and where its documents stand.
    fn each(
        &self,
        words: &InvertedIndexReader,
        mut visit: impl FnMut(u64, &TermInfo) -> tantivy::Result<()>,
    ) -> tantivy::Result<()> {
        if words.terms().num_terms() > self.ids.len() * READ_ALL_FROM {
            for (id, before) in self.ids.iter() {
                if let Some(info) = words.get_term_info(&Term::from_field_text(id_field(), id))? {
                    visit(*before, &info)?;
                }
            }
            return Ok(());
        }
        let mut ids = self.ids.iter().peekable();
        let mut all = words.terms().stream()?;
        while all.advance() {
            while let Some((id, before)) = ids.peek() {
                match id.as_bytes().cmp(all.key()) {
                    Ordering::Less => {
                        ids.next();
                    }
                    Ordering::Equal => {
                        visit(*before, all.value())?;
                        break;
                    }
                    Ordering::Greater => break,
                }
            }
        }
        Ok(())
    }
}

impl Weight for ReplacedQuery {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut found = BitSet::with_max_value(reader.max_doc());
        let words = reader.inverted_index(id_field())?;
        let rows: Column<u64> = reader.fast_fields().u64(ROW)?;
        self.each(&words, |before, info| {
            let mut documents =
                words.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
            while documents.doc() != TERMINATED {
                if rows.first(documents.doc()).is_some_and(|row| row < before) {
                    found.insert(documents.doc());
                }
                documents.advance();
            }
            Ok(())
        })?;
        Ok(Box::new(ConstScorer::new(BitSetDocSet::from(found), boost)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() <= doc && scorer.seek(doc) == doc {
            return Ok(Explanation::new("Replaced", 1.0));
        }
        Err(TantivyError::InvalidArgument(format!("document {doc} does not match")))
    }
}

//! Documents that have one of many numbers, in one walk over their column.
//!
//! A range for each number would be a walk for each.

use super::mapping::{FieldKind, Mapped};
use super::query::{Literal, Number};
use super::range::{at_least, at_most};
use std::ops::Bound;
use std::sync::Arc;
use tantivy::query::{
    BitSetDocSet, ConstScorer, EnableScoring, Explanation, Query, Scorer, Weight,
};
use tantivy::{BitSet, DocId, DocSet, Score, SegmentReader, TantivyError};

/// The documents whose column has one of the numbers.
#[derive(Clone, Debug)]
pub(crate) struct NumbersQuery {
    column: String,
    real: bool,
    /// In the form that sorts as the numbers do, rising.
    wanted: Arc<[u64]>,
}

impl NumbersQuery {
    /// Values that are no numbers are left out, and those that the column cannot have.
    pub(crate) fn new(mapped: &Mapped, values: &[Literal]) -> Self {
        let numbers = values.iter().filter_map(|value| match value {
            Literal::Number(number) => Some(*number),
            Literal::Text(_) => None,
        });
        let mut wanted: Vec<u64> = match mapped.kind {
            FieldKind::Real { single } => numbers.map(|number| real(number, single)).collect(),
            _ => numbers.filter_map(whole).map(tantivy::i64_to_u64).collect(),
        };
        wanted.sort_unstable();
        wanted.dedup();
        let real = matches!(mapped.kind, FieldKind::Real { .. });
        Self { column: mapped.column.clone().unwrap_or_default(), real, wanted: wanted.into() }
    }

    fn has(&self, value: u64) -> bool {
        self.wanted.binary_search(&value).is_ok()
    }
}

/// A whole number that is as large, if there is one.
fn whole(number: Number) -> Option<i64> {
    let bound = Bound::Included(number);
    at_least(bound).filter(|least| at_most(bound) == Some(*least))
}

fn real(number: Number, single: bool) -> u64 {
    let number = match number {
        Number::Whole(value) if single => f64::from(value as f32),
        Number::Whole(value) => value as f64,
        Number::Real(value) if single => f64::from(value as f32),
        Number::Real(value) => value,
    };
    sortable(number)
}

/// Zero has two signs and is one number.
fn sortable(number: f64) -> u64 {
    tantivy::f64_to_u64(if number == 0.0 { 0.0 } else { number })
}

impl Query for NumbersQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for NumbersQuery {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut found = BitSet::with_max_value(reader.max_doc());
        let (columns, name) = (reader.fast_fields(), self.column.as_str());
        if self.real {
            if let Some(column) = columns.column_opt::<f64>(name)? {
                let has = |doc: &DocId| column.values_for_doc(*doc).any(|v| self.has(sortable(v)));
                for doc in (0..reader.max_doc()).filter(has) {
                    found.insert(doc);
                }
            }
        } else if let Some(column) = columns.column_opt::<i64>(name)? {
            let has =
                |doc: &DocId| column.values_for_doc(*doc).any(|v| self.has(tantivy::i64_to_u64(v)));
            for doc in (0..reader.max_doc()).filter(has) {
                found.insert(doc);
            }
        }
        Ok(Box::new(ConstScorer::new(BitSetDocSet::from(found), boost)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() <= doc && scorer.seek(doc) == doc {
            return Ok(Explanation::new("Numbers", 1.0));
        }
        Err(TantivyError::InvalidArgument(format!("document {doc} does not match")))
    }
}

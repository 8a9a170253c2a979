//! Ordering by the values of columns, within a segment by numbers and across segments by values.

use super::mapping::FieldKind;
use super::plan::{SortBy, SortColumn};
use std::cmp::Ordering;
use tantivy::columnar::{Column, StrColumn};
use tantivy::{DocId, SegmentReader, TantivyError};

/// A value that a hit was ordered by, comparable across segments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortValue {
    /// The document has no value.
    Missing,
    /// A whole number.
    Long(i64),
    /// In the form that sorts as the number does.
    Real(u64),
    /// A text.
    Text(String),
}

impl SortValue {
    /// A real number as a value.
    pub(crate) fn real(value: f64) -> Self {
        Self::Real(tantivy::f64_to_u64(value))
    }
}

/// The order of two hits by their values.
pub fn compare(order: &[SortColumn], left: &[SortValue], right: &[SortValue]) -> Ordering {
    for ((by, left), right) in order.iter().zip(left).zip(right) {
        let missing = |value: &SortValue| *value == SortValue::Missing;
        let ordering = match (missing(left), missing(right)) {
            (true, true) => Ordering::Equal,
            (true, false) if by.missing_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if by.missing_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) if by.descending => right.cmp(left),
            (false, false) => left.cmp(right),
        };
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    Ordering::Equal
}

/// The sort keys of one segment: numbers that sort as the values do.
pub(crate) struct SortKeys {
    column: KeyColumn,
    descending: bool,
    missing_first: bool,
}

enum KeyColumn {
    Long(Column<i64>),
    Real(Column<f64>),
    Text(StrColumn),
    Score,
    Position,
    /// No document of the segment has the field.
    Empty,
}

impl SortKeys {
    pub(crate) fn open(reader: &SegmentReader, by: &SortColumn) -> Result<Self, TantivyError> {
        let column = match &by.by {
            SortBy::Nothing => KeyColumn::Empty,
            SortBy::Score => KeyColumn::Score,
            SortBy::Position => KeyColumn::Position,
            SortBy::Column { name, kind } => match kind {
                FieldKind::Long => {
                    let column = reader.fast_fields().column_opt::<i64>(name)?;
                    column.map_or(KeyColumn::Empty, KeyColumn::Long)
                }
                FieldKind::Real { .. } => {
                    let column = reader.fast_fields().column_opt::<f64>(name)?;
                    column.map_or(KeyColumn::Empty, KeyColumn::Real)
                }
                FieldKind::Keyword | FieldKind::Text => {
                    reader.fast_fields().str(name)?.map_or(KeyColumn::Empty, KeyColumn::Text)
                }
            },
        };
        Ok(Self { column, descending: by.descending, missing_first: by.missing_first })
    }

    /// Smaller is earlier, also where the order is descending. The smallest and the largest value
    /// share their keys with their neighbours to make room for missing values;
    /// [`SortKeys::value`] tells them apart.
    pub(crate) fn key(&self, doc: DocId, relevance: f32) -> u64 {
        let key = match &self.column {
            KeyColumn::Long(column) => self.pick(column, doc).map(tantivy::i64_to_u64),
            KeyColumn::Real(column) => self.pick(column, doc).map(tantivy::f64_to_u64),
            KeyColumn::Text(column) => {
                self.pick(column.ords(), doc).map(|ord| ord.saturating_add(1))
            }
            KeyColumn::Score => Some(tantivy::f64_to_u64(f64::from(relevance))),
            KeyColumn::Position => Some(u64::from(doc) + 1),
            KeyColumn::Empty => None,
        };
        match key {
            None if self.missing_first => 0,
            None => u64::MAX,
            Some(key) => {
                let key = key.clamp(1, u64::MAX - 1);
                if self.descending { u64::MAX - key } else { key }
            }
        }
    }

    /// Of several values the one that counts: the smallest, or in descending order the largest.
    fn pick<T: Copy + PartialOrd + std::fmt::Debug + Send + Sync + 'static>(
        &self,
        column: &Column<T>,
        doc: DocId,
    ) -> Option<T> {
        let better = |a: T, b: T| if (b < a) != self.descending { b } else { a };
        column.values_for_doc(doc).reduce(better)
    }

    /// The value behind a key of a document. Positions of the segment begin at `position`.
    pub(crate) fn value(
        &self,
        doc: DocId,
        key: u64,
        position: i64,
    ) -> Result<SortValue, TantivyError> {
        Ok(match &self.column {
            KeyColumn::Long(column) => {
                self.pick(column, doc).map_or(SortValue::Missing, SortValue::Long)
            }
            KeyColumn::Real(column) => {
                self.pick(column, doc).map_or(SortValue::Missing, SortValue::real)
            }
            KeyColumn::Text(column) => match self.pick(column.ords(), doc) {
                Some(ord) => {
                    let mut text = String::new();
                    column.ord_to_str(ord, &mut text)?;
                    SortValue::Text(text)
                }
                None => SortValue::Missing,
            },
            KeyColumn::Score => SortValue::Real(if self.descending { u64::MAX - key } else { key }),
            KeyColumn::Position => SortValue::Long(position + i64::from(doc)),
            KeyColumn::Empty => SortValue::Missing,
        })
    }
}

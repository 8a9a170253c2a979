//! The columns of a text index: a few of its own, then blocks of spare ones.

use plimsoll_index::mapping::{FieldKind, LID, Mapped};
use plimsoll_index::row_text::ROW;
use plimsoll_index::text::{Analysis, RAW, STANDARD};
use std::sync::LazyLock;
use tantivy::schema::{
    FAST, Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};

/// The field of document ids.
pub(crate) const ID: &str = "_id";
const FIELD_NAMES: &str = "_field_names";
/// Columns of the index itself: id, position in the log, row, names of text fields.
const OWN: usize = 4;
/// Columns of a block: text, keyword, whole numbers, real numbers. Each column of text takes a byte
/// a document, used or not; the others take nothing.
const BLOCK: [usize; 4] = [8, 16, 12, 4];
const BLOCK_TOTAL: usize = BLOCK[0] + BLOCK[1] + BLOCK[2] + BLOCK[3];
const LETTERS: [char; 4] = ['t', 'k', 'n', 'd'];

/// The row of a kind in [`BLOCK`].
pub(super) fn row(kind: FieldKind) -> usize {
    match kind {
        FieldKind::Text => 0,
        FieldKind::Keyword => 1,
        FieldKind::Long => 2,
        FieldKind::Real { .. } => 3,
    }
}

/// Number of blocks for these columns of each kind; always one.
pub(super) fn blocks(used: &[usize; 4]) -> usize {
    let needed = used.iter().zip(BLOCK).map(|(used, size)| used.div_ceil(size));
    needed.max().unwrap_or(1).max(1)
}

pub(crate) fn id_field() -> Field {
    Field::from_field_id(0)
}

pub(crate) fn lid_field() -> Field {
    Field::from_field_id(1)
}

/// The column [`ROW`].
pub(crate) fn row_field() -> Field {
    Field::from_field_id(2)
}

/// Lists the text fields that a document has.
pub(crate) fn field_names() -> Field {
    Field::from_field_id(3)
}

fn keyword() -> TextOptions {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(RAW)
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::Basic);
    TextOptions::default().set_indexing_options(indexing)
}

/// The columns of an index with this many blocks; one with more begins with the same columns.
pub(crate) fn columns(blocks: usize) -> Schema {
    let mut builder = Schema::builder();
    builder.add_text_field(ID, keyword());
    builder.add_u64_field(LID, FAST);
    builder.add_u64_field(ROW, FAST);
    builder.add_text_field(FIELD_NAMES, keyword());
    let words = TextFieldIndexing::default()
        .set_tokenizer(STANDARD)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let text = TextOptions::default().set_indexing_options(words);
    let numeric = NumericOptions::default().set_fast();
    for block in 0..blocks {
        for (kind, size) in BLOCK.into_iter().enumerate() {
            for number in block * size..(block + 1) * size {
                let name = column_name(kind, number);
                match kind {
                    0 => builder.add_text_field(&name, text.clone()),
                    1 => builder.add_text_field(&name, keyword().set_fast(RAW)),
                    2 => builder.add_i64_field(&name, numeric.clone()),
                    _ => builder.add_f64_field(&name, numeric.clone()),
                };
            }
        }
    }
    builder.build()
}

fn column_name(row: usize, number: usize) -> String {
    format!("{}{number}", LETTERS[row])
}

/// The column with this number of its kind, for the field of this path, and its block.
pub(super) fn mapped(path: &str, kind: FieldKind, number: usize) -> (Mapped, usize) {
    let row = row(kind);
    let block = number / BLOCK[row];
    let before: usize = BLOCK[..row].iter().sum();
    let id = OWN + block * BLOCK_TOTAL + before + number % BLOCK[row];
    let text = kind == FieldKind::Text;
    let mapped = Mapped {
        kind,
        field: Field::from_field_id(id as u32), // A thousand fields at most.
        analysis: if text { Analysis::Standard } else { Analysis::Raw },
        terms: false,
        listed: text.then(|| (field_names(), path.to_owned())),
        column: (!text).then(|| column_name(row, number)),
        single: false,
        extra: None,
    };
    (mapped, block)
}

pub(crate) static ID_MAPPED: LazyLock<Mapped> = LazyLock::new(|| Mapped {
    kind: FieldKind::Keyword,
    field: id_field(),
    analysis: Analysis::Raw,
    terms: true,
    listed: None,
    column: None,
    single: true,
    extra: None,
});

/// The field of document ids, as the planner sees it.
pub(super) fn id_mapped() -> &'static Mapped {
    &ID_MAPPED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_keep_their_numbers_when_blocks_are_added() {
        let (small, large) = (columns(1), columns(3));
        let names = |schema: &Schema| {
            schema.fields().map(|(_, entry)| entry.name().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&small), names(&large)[..OWN + BLOCK_TOTAL]);
        for kind in [FieldKind::Text, FieldKind::Keyword, FieldKind::Long] {
            for number in 0..24 {
                let (mapped, block) = mapped("f", kind, number);
                let name = large.get_field_entry(mapped.field).name();
                assert_eq!(name, column_name(row(kind), number));
                assert_eq!(block, number / BLOCK[row(kind)]);
            }
        }
        for (field, name) in
            [(id_field(), ID), (lid_field(), LID), (row_field(), ROW), (field_names(), FIELD_NAMES)]
        {
            assert_eq!(small.get_field_entry(field).name(), name);
        }
    }
}

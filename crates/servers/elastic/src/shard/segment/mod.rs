//! A segment of the text index in the making.
//!
//! tantivy's own writer takes documents of any form, and keeps a list in memory for each word, to which every
//! occurrence goes by way of two or three cold places in memory. Here the words of a
//! field are stored one after the other as numbers, four bytes each, in the order of the text; they are grouped by
//! word when the segment is written. A version that is replaced before that is not written at all. The result is a
//! segment like any other.

mod postings;
mod terms;
#[cfg(test)]
mod tests;

use super::super::mapping::{id_field, lid_field, row_field};
use plimsoll_index::standard::each_word;
use postings::{GONE, Values};
use tantivy::columnar::{ColumnType, ColumnarWriter, NumericalValue};
use tantivy::directory::TerminatingWrite;
use tantivy::fieldnorm::{FieldNormReaders, FieldNormsSerializer};
use tantivy::index::SegmentComponent::{FastFields, FieldNorms, Store};
use tantivy::postings::InvertedIndexSerializer;
use tantivy::schema::{Field, FieldType, Schema, Value as _};
use tantivy::store::StoreWriter;
use tantivy::{DocId, Segment, TantivyDocument, TantivyError};

/// A version of a document.
struct Version {
    /// Its position in the log.
    at: u64,
    row: u64,
    /// It was replaced or removed.
    gone: bool,
}

/// The treatment of the values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Words, with positions.
    Words,
    /// The whole text is a word; whether it is in a column besides.
    Whole {
        column: bool,
    },
    Number(ColumnType),
}

/// Documents that are no segment yet.
pub(super) struct Draft {
    schema: Schema,
    /// By field, as are `values`.
    uses: Vec<Use>,
    /// Of the fields that had one.
    values: Vec<Option<Values>>,
    numbers: Vec<(DocId, Field, NumericalValue)>,
    versions: Vec<Version>,
    /// The last version of each id, by its number among the words of the ids.
    latest: Vec<DocId>,
    /// The text in lower case.
    lower: String,
}

fn use_of(kind: &FieldType) -> Use {
    match kind {
        FieldType::Str(text) => {
            let words =
                text.get_indexing_options().is_some_and(|o| o.index_option().has_positions());
            if words { Use::Words } else { Use::Whole { column: text.is_fast() } }
        }
        FieldType::F64(_) => Use::Number(ColumnType::F64),
        FieldType::I64(_) => Use::Number(ColumnType::I64),
        // The index has no other kinds.
        _ => Use::Number(ColumnType::U64),
    }
}

impl Draft {
    pub(super) fn new(schema: Schema) -> Self {
        let uses: Vec<Use> = schema.fields().map(|(_, entry)| use_of(entry.field_type())).collect();
        let mut values = Vec::new();
        values.resize_with(uses.len(), || None);
        Self {
            schema,
            uses,
            values,
            numbers: Vec::new(),
            versions: Vec::new(),
            latest: Vec::new(),
            lower: String::new(),
        }
    }

    /// Bytes of memory, with those that it takes to write the segment.
    pub(super) fn size(&self) -> usize {
        let values: usize = self.values.iter().flatten().map(Values::size).sum();
        let of_versions = size_of::<Version>() + 2 * size_of::<DocId>();
        values + 48 * self.numbers.len() + of_versions * self.versions.len()
    }

    /// Adds a version of a document.
    pub(super) fn add(&mut self, id: &str, at: u64, row: u64, document: &TantivyDocument) {
        let number = self.versions.len() as DocId;
        self.versions.push(Version { at, row, gone: false });
        let term = self.add_whole(id_field(), number, id) as usize;
        if term == self.latest.len() {
            self.latest.push(number);
        } else {
            self.latest[term] = number;
        }
        for (field, value) in document.field_values() {
            match self.uses[field.field_id() as usize] {
                Use::Words => {
                    if let Some(text) = value.as_str() {
                        self.add_words(field, number, text);
                    }
                }
                Use::Whole { .. } => {
                    if let Some(text) = value.as_str() {
                        self.add_whole(field, number, text);
                    }
                }
                Use::Number(kind) => {
                    let value = match kind {
                        ColumnType::F64 => value.as_f64().map(NumericalValue::from),
                        _ => value.as_i64().map(NumericalValue::from),
                    };
                    self.numbers.extend(value.map(|value| (number, field, value)));
                }
            }
        }
    }

    fn add_words(&mut self, field: Field, number: DocId, text: &str) {
        let slot = &mut self.values[field.field_id() as usize];
        let values = slot.get_or_insert_with(|| Values::new(true));
        values.begin(number);
        each_word(text, &mut self.lower, |word| {
            values.add(word.as_bytes());
        });
        values.end();
    }

    fn add_whole(&mut self, field: Field, number: DocId, text: &str) -> u32 {
        let slot = &mut self.values[field.field_id() as usize];
        let values = slot.get_or_insert_with(|| Values::new(false));
        values.begin(number);
        values.add(text.as_bytes())
    }

    /// Takes the version of a document away again. Tells whether there was one.
    pub(super) fn remove(&mut self, id: &str) -> bool {
        let ids = self.values[id_field().field_id() as usize].as_ref();
        let Some(term) = ids.and_then(|ids| ids.terms.find(id.as_bytes())) else { return false };
        let version = &mut self.versions[self.latest[term as usize] as usize];
        !std::mem::replace(&mut version.gone, true)
    }

    /// Positions of the documents in the segment, and their number.
    fn places(&self) -> (Vec<DocId>, DocId) {
        let mut next = 0;
        let place = |version: &Version| {
            if version.gone {
                return GONE;
            }
            next += 1;
            next - 1
        };
        let places = self.versions.iter().map(place).collect();
        (places, next)
    }

    /// Writes the files of a segment. Gives the number of its documents; when there are none, nothing is written.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(super) fn write(&self, segment: &mut Segment) -> Result<DocId, TantivyError> {
        let (places, documents) = self.places();
        if documents > 0 {
            self.write_words(segment, &places, documents)?;
            self.write_columns(segment, &places, documents)?;
            self.write_store(segment, documents)?;
        }
        Ok(documents)
    }

    fn write_words(
        &self,
        segment: &mut Segment,
        places: &[DocId],
        documents: DocId,
    ) -> Result<(), TantivyError> {
        let mut norms = FieldNormsSerializer::from_write(segment.open_write(FieldNorms)?)?;
        let mut totals = vec![0; self.values.len()];
        for (field, entry) in self.schema.fields() {
            let at = field.field_id() as usize;
            let of_field = self.values[at].as_ref().map(|v| v.norms(places, documents as usize));
            let (lengths, total) = of_field.unwrap_or_else(|| (vec![0; documents as usize], 0));
            totals[at] = total;
            if entry.is_indexed() && entry.has_fieldnorms() {
                norms.serialize_field(field, &lengths)?;
            }
        }
        norms.close()?;
        let norms = FieldNormReaders::open(segment.open_read(FieldNorms)?)?;
        let mut serializer = InvertedIndexSerializer::open(segment)?;
        for (field, _) in self.schema.fields() {
            let at = field.field_id() as usize;
            if let Some(values) = &self.values[at] {
                let of_field = serializer.new_field(field, totals[at], norms.get_field(field)?)?;
                values.write(places, of_field)?;
            }
        }
        Ok(serializer.close()?)
    }

    fn write_columns(
        &self,
        segment: &mut Segment,
        places: &[DocId],
        documents: DocId,
    ) -> Result<(), TantivyError> {
        let mut columns = ColumnarWriter::default();
        let name = |field: Field| self.schema.get_field_name(field);
        for ((field, entry), of_field) in self.schema.fields().zip(&self.uses) {
            let kind = match of_field {
                Use::Number(kind) => *kind,
                Use::Whole { column: true } => ColumnType::Str,
                _ => continue,
            };
            // A column without values is one too: merges look for it.
            columns.record_column_type(entry.name(), kind, false);
            let values = self.values[field.field_id() as usize].as_ref();
            let Some(values) = values.filter(|_| kind == ColumnType::Str) else { continue };
            for (place, _, words) in values.each(places) {
                let text = words.first().map(|word| values.terms.word(*word)).unwrap_or_default();
                let text = std::str::from_utf8(text).map_err(std::io::Error::other)?;
                columns.record_str(place, entry.name(), text);
            }
        }
        for (version, place) in self.versions.iter().zip(places).filter(|(_, p)| **p != GONE) {
            columns.record_numerical(*place, name(lid_field()), version.at);
            columns.record_numerical(*place, name(row_field()), version.row);
        }
        for (number, field, value) in &self.numbers {
            let place = places[*number as usize];
            if place != GONE {
                columns.record_numerical(place, name(*field), *value);
            }
        }
        let mut file = segment.open_write(FastFields)?;
        columns.serialize(documents, None, &mut file)?;
        Ok(file.terminate()?)
    }

    /// Sources are in the log: the index keeps nothing but that there are documents.
    fn write_store(&self, segment: &mut Segment, documents: DocId) -> Result<(), TantivyError> {
        let file = segment.open_write(Store)?;
        let index = segment.index();
        let (compressor, block) =
            (index.settings().docstore_compression, index.settings().docstore_blocksize);
        let mut store = StoreWriter::new(file, compressor, block, false)?;
        let nothing = TantivyDocument::default();
        for _ in 0..documents {
            store.store(&nothing, &self.schema)?;
        }
        Ok(store.close()?)
    }
}

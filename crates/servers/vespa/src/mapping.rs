//! The way the fields of the document types stand in the text index.

use plimsoll_documents::document::Values;
use plimsoll_documents::schema::{DEFAULT_FIELD, FieldDef, Matching, Schema, Schemas};
use plimsoll_documents::value::{FieldType, Value};
use plimsoll_index::mapping::{FieldKind, Fields, LID, Mapped};
use plimsoll_index::text::{Analysis, EXACT, WORDS};
use std::sync::Arc;
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, NumericOptions, Schema as Columns, SchemaBuilder,
    TextFieldIndexing, TextOptions,
};
use tantivy::{TantivyDocument, Term};

/// The field that holds the number of the document type, when there are several.
const TYPE: &str = "_type";

/// The index side of the schemas.
#[derive(Clone)]
pub(crate) struct IndexSchema {
    pub(crate) schemas: Arc<Schemas>,
    pub(crate) columns: Columns,
    /// The number of the document in the store, by which the index refers to it.
    pub(crate) lid: Field,
    /// The number of the document type; absent when there is one.
    pub(crate) document_type: Option<Field>,
    /// By type and field.
    mapped: Vec<Vec<Option<Mapped>>>,
}

impl IndexSchema {
    pub(crate) fn new(schemas: Arc<Schemas>) -> Self {
        let mut builder = Columns::builder();
        let lid = builder.add_u64_field(LID, INDEXED | FAST);
        let several = schemas.types().len() > 1;
        let document_type = several.then(|| builder.add_u64_field(TYPE, INDEXED));
        let of_type = |builder: &mut SchemaBuilder, schema: &Schema| {
            let fields = schema.fields().iter();
            fields.map(|field| map(builder, &column_name(schema, field, several), field)).collect()
        };
        let mapped = schemas.types().iter().map(|schema| of_type(&mut builder, schema)).collect();
        Self { schemas, columns: builder.build(), lid, document_type, mapped }
    }

    /// The index document of stored values.
    pub(crate) fn document(&self, lid: u64, values: &Values) -> TantivyDocument {
        let mut document = TantivyDocument::new();
        document.add_u64(self.lid, lid);
        if let Some(field) = self.document_type {
            document.add_u64(field, u64::from(values.document_type()));
        }
        let Some(fields) = self.mapped.get(usize::from(values.document_type())) else {
            return document;
        };
        for (number, value) in values.iter() {
            if let Some(Some(mapped)) = fields.get(number) {
                add(&mut document, mapped, value);
            }
        }
        document
    }
}

impl Fields for IndexSchema {
    fn named(&self, name: &str, types: &[u16]) -> (Vec<&Mapped>, bool) {
        let mut found = Vec::new();
        let mut known = name == DEFAULT_FIELD;
        for schema in self.schemas.types() {
            if !types.is_empty() && !types.contains(&schema.number()) {
                continue;
            }
            let numbers = schema.searched_as(name);
            known |= !numbers.is_empty();
            let fields = &self.mapped[usize::from(schema.number())];
            found.extend(numbers.iter().filter_map(|number| fields[*number].as_ref()));
        }
        (found, known)
    }

    fn unknown(&self, name: &str) -> Option<String> {
        let names = self.schemas.field_names();
        Some(format!("Field '{name}' does not exist. The fields are {names}"))
    }

    fn type_term(&self, number: u16) -> Option<Term> {
        Some(Term::from_field_u64(self.document_type?, u64::from(number)))
    }

    fn type_number(&self, name: &str) -> Option<u16> {
        self.schemas.by_name(name).map(plimsoll_documents::schema::Schema::number)
    }
}

/// A name that is the field's alone; the names of one type are those of its fields.
fn column_name(schema: &Schema, field: &FieldDef, several: bool) -> String {
    match (several, field.name.starts_with('_')) {
        (true, _) => format!("{}/{}", schema.name(), field.name),
        // The names of our own columns begin so.
        (false, true) => format!("/{}", field.name),
        (false, false) => field.name.clone(),
    }
}

fn map(builder: &mut SchemaBuilder, name: &str, field: &FieldDef) -> Option<Mapped> {
    if !field.index && !field.attribute {
        return None;
    }
    let (element, single) = match &field.kind {
        FieldType::Array(inner) | FieldType::WeightedSet(inner) => (&**inner, false),
        kind => (kind, true),
    };
    let kind = match element {
        FieldType::String if field.matching == Matching::Words => FieldKind::Text,
        FieldType::String => FieldKind::Keyword,
        FieldType::Int | FieldType::Long | FieldType::Byte | FieldType::Bool => FieldKind::Long,
        FieldType::Float => FieldKind::Real { single: true },
        FieldType::Double => FieldKind::Real { single: false },
        FieldType::Raw
        | FieldType::Array(_)
        | FieldType::WeightedSet(_)
        | FieldType::Map(..)
        | FieldType::Tensor { .. } => return None,
    };
    let numeric = NumericOptions::default().set_indexed().set_fast();
    let mut column = Some(name.to_owned());
    let mut extra = None;
    let indexed = match kind {
        FieldKind::Text => {
            let indexing = TextFieldIndexing::default()
                .set_tokenizer(WORDS)
                .set_index_option(IndexRecordOption::WithFreqsAndPositions);
            let options = TextOptions::default().set_indexing_options(indexing);
            column = field.attribute.then(|| format!("{name}/whole"));
            extra = column.as_ref().map(|column| {
                builder.add_text_field(column, TextOptions::default().set_fast(EXACT))
            });
            builder.add_text_field(name, options)
        }
        FieldKind::Keyword => {
            let indexing = TextFieldIndexing::default()
                .set_tokenizer(EXACT)
                .set_fieldnorms(false)
                .set_index_option(IndexRecordOption::Basic);
            let options = TextOptions::default().set_indexing_options(indexing).set_fast(EXACT);
            builder.add_text_field(name, options)
        }
        FieldKind::Long => builder.add_i64_field(name, numeric),
        FieldKind::Real { .. } => builder.add_f64_field(name, numeric),
    };
    let analysis = if kind == FieldKind::Text { Analysis::Words } else { Analysis::Folded };
    Some(Mapped {
        kind,
        field: indexed,
        analysis,
        terms: true,
        listed: None,
        column,
        single,
        extra,
    })
}

fn add(document: &mut TantivyDocument, mapped: &Mapped, value: &Value) {
    let field = mapped.field;
    match value {
        Value::String(text) => {
            document.add_text(field, text);
            if let Some(extra) = mapped.extra {
                document.add_text(extra, text);
            }
        }
        Value::Int(value) => document.add_i64(field, i64::from(*value)),
        Value::Long(value) => document.add_i64(field, *value),
        Value::Byte(value) => document.add_i64(field, i64::from(*value)),
        Value::Bool(value) => document.add_i64(field, i64::from(*value)),
        // What is no number is not found by comparing numbers.
        Value::Float(value) if !value.is_nan() => document.add_f64(field, f64::from(*value)),
        Value::Double(value) if !value.is_nan() => document.add_f64(field, *value),
        Value::Array(items) => items.iter().for_each(|item| add(document, mapped, item)),
        Value::WeightedSet(items) => items.iter().for_each(|(key, _)| add(document, mapped, key)),
        Value::Float(_) | Value::Double(_) | Value::Raw(_) | Value::Map(_) | Value::Tensor(_) => {}
    }
}

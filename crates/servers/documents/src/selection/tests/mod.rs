//! The language against what Vespa's implementations do, and against itself.

mod evaluating;
mod parsing;
mod properties;

use super::{EvaluationError, Selection, SelectionError, Subject, Truth, Types};
use crate::value::{FieldType, Value};
use plimsoll_wire::vespa::DocumentId;
use std::collections::BTreeMap;

/// What `now()` is in all tests.
const NOW_S: i64 = 1_700_000_000;

/// The types `music` and `book`, the latter with a title only.
struct Schema(Vec<(&'static str, FieldType)>);

fn schema() -> Schema {
    use FieldType::*;
    let of = |kind: FieldType| Box::new(kind);
    Schema(vec![
        ("title", String),
        ("artist", String),
        ("year", Int),
        ("plays", Long),
        ("small", Byte),
        ("rating", Float),
        ("score", Double),
        ("flag", Bool),
        ("cover", Raw),
        ("tags", Array(of(String))),
        ("years", Array(of(Int))),
        ("weights", WeightedSet(of(String))),
        ("counts", WeightedSet(of(Int))),
        ("props", Map(of(String), of(String))),
        ("numbered", Map(of(Int), of(String))),
        ("lists", Map(of(String), of(Array(of(Int))))),
        ("vector", Tensor { dimension: "x".to_owned(), cells: 2 }),
    ])
}

impl Types for Schema {
    fn has_type(&self, document_type: &str) -> bool {
        matches!(document_type, "music" | "book" | "type" | "user")
    }

    fn field_type(&self, document_type: &str, field: &str) -> Option<&FieldType> {
        let fields = if document_type == "music" { &self.0[..] } else { &self.0[..1] };
        fields.iter().find(|(name, _)| *name == field).map(|(_, kind)| kind)
    }
}

#[derive(Debug)]
struct Document {
    pub id: DocumentId,
    fields: BTreeMap<&'static str, Value>,
}

impl Subject for Document {
    fn id(&self) -> &DocumentId {
        &self.id
    }

    fn document_type(&self) -> &str {
        self.id.document_type()
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }
}

fn document<const N: usize>(id: &str, fields: [(&'static str, Value); N]) -> Document {
    Document { id: DocumentId::parse(id).unwrap(), fields: fields.into() }
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn parse(selection: &str) -> Result<Selection, SelectionError> {
    Selection::parse(selection, &schema())
}

#[track_caller]
fn parsed(selection: &str) -> Selection {
    parse(selection).unwrap_or_else(|error| panic!("{selection}: {error}"))
}

#[track_caller]
fn evaluate(selection: &str, document: &Document) -> Result<Truth, EvaluationError> {
    parsed(selection).evaluate(document, NOW_S)
}

/// Checks a table of selections for a document; the second word of a row is the result.
#[track_caller]
fn check(document: &Document, table: &[(&str, Truth)]) {
    for (selection, expected) in table {
        assert_eq!(evaluate(selection, document), Ok(*expected), "{selection}");
    }
}

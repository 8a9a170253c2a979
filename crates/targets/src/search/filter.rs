//! What visits and conditions ask of a document.

use super::document::{Value as Stored, Values};
use super::schema::{DOCUMENT_TYPE, FIELDS, FieldKind, field_number};
use super::selection::{EvaluationError, Selection, Subject, Types};
use super::value::{FieldType, Value};
use plimsoll_core::clock::wall_us;
use plimsoll_wire::vespa::DocumentId;

/// A selection or a condition, ready to be asked.
pub(crate) struct Filter {
    selection: Selection,
    /// What `now()` is, in seconds since 1970: the same for all documents.
    now_s: i64,
}

/// The document type that there is.
struct OneType;

impl Types for OneType {
    fn has_type(&self, document_type: &str) -> bool {
        document_type == DOCUMENT_TYPE
    }

    fn field_type(&self, document_type: &str, field: &str) -> Option<&FieldType> {
        let number = field_number(field).filter(|_| self.has_type(document_type))?;
        Some(match FIELDS[number].kind {
            FieldKind::Text | FieldKind::Keyword => &FieldType::String,
            FieldKind::Long => &FieldType::Long,
        })
    }
}

/// A document as a selection sees it.
struct Seen {
    id: DocumentId,
    fields: Vec<Option<Value>>,
}

impl Subject for Seen {
    fn id(&self) -> &DocumentId {
        &self.id
    }

    fn document_type(&self) -> &str {
        self.id.document_type()
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.fields.get(field_number(name)?)?.as_ref()
    }
}

impl Filter {
    /// Reads a selection.
    ///
    /// # Errors
    /// What is wrong with it, in words for the client.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let selection = Selection::parse(text, &OneType)
            .map_err(|error| format!("Exception parsing document selector '{text}': {error}"))?;
        let now_s = i64::try_from(wall_us() / 1_000_000).unwrap_or(i64::MAX);
        Ok(Self { selection, now_s })
    }

    /// Whether every document passes.
    pub(crate) fn passes_all(&self) -> bool {
        self.selection == Selection::everything()
    }

    /// The location of all documents that pass, if they have one in common.
    pub(crate) fn location(&self) -> Option<u64> {
        self.selection.pinned().map(|pin| pin.location())
    }

    /// Whether a document passes. Of one that was removed nothing but the id is left.
    ///
    /// # Errors
    /// When the selection divides by zero for this document.
    pub(crate) fn matches(
        &self,
        id: &str,
        values: Option<&Values>,
    ) -> Result<bool, EvaluationError> {
        // Only ids that could be parsed were stored.
        let Ok(id) = DocumentId::parse(id) else { return Ok(false) };
        let seen = |value: &Option<Stored>| {
            value.as_ref().map(|value| match value {
                Stored::Text(text) => Value::String(text.clone()),
                Stored::Long(number) => Value::Long(*number),
            })
        };
        let fields = values.into_iter().flatten().map(seen).collect();
        self.selection.matches(&Seen { id, fields }, self.now_s)
    }
}

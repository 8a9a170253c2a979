//! The filter of visits and conditions.

use super::document::Values;
use super::schema::{Schema, Schemas};
use super::selection::{EvaluationError, Selection, Subject, Types};
use super::value::{FieldType, Value};
use plimsoll_core::clock::wall_us;
use plimsoll_wire::vespa::DocumentId;

/// A selection or a condition, ready to be asked.
pub struct Filter {
    selection: Selection,
    /// The value of `now()`, in seconds since 1970: the same for all documents.
    now_s: i64,
}

impl Types for Schemas {
    fn has_type(&self, document_type: &str) -> bool {
        self.by_name(document_type).is_some()
    }

    fn field_type(&self, document_type: &str, field: &str) -> Option<&FieldType> {
        let schema = self.by_name(document_type)?;
        Some(&schema.fields()[schema.field_number(field)?].kind)
    }
}

/// A document as a selection sees it.
struct Seen<'a> {
    id: DocumentId,
    /// Nothing of a document that was removed.
    content: Option<(&'a Schema, &'a Values)>,
}

impl Subject for Seen<'_> {
    fn id(&self) -> &DocumentId {
        &self.id
    }

    fn document_type(&self) -> &str {
        self.id.document_type()
    }

    fn field(&self, name: &str) -> Option<&Value> {
        let (schema, values) = self.content?;
        values.get(schema.field_number(name)?)
    }
}

impl Filter {
    /// Reads a selection.
    ///
    /// # Errors
    /// The error, as a message for the client.
    pub fn parse(text: &str, schemas: &Schemas) -> Result<Self, String> {
        let selection = Selection::parse(text, schemas)
            .map_err(|error| format!("Exception parsing document selector '{text}': {error}"))?;
        let now_s = i64::try_from(wall_us() / 1_000_000).unwrap_or(i64::MAX);
        Ok(Self { selection, now_s })
    }

    /// Returns true if every document passes.
    pub fn passes_all(&self) -> bool {
        self.selection == Selection::everything()
    }

    /// The location of all documents that pass, if they have one in common.
    pub fn location(&self) -> Option<u64> {
        self.selection.pinned().map(|pin| pin.location())
    }

    /// Returns true if a document passes. Of one that was removed nothing but the id is left.
    ///
    /// # Errors
    /// When the selection divides by zero for this document.
    pub fn matches(
        &self,
        schemas: &Schemas,
        id: &str,
        values: Option<&Values>,
    ) -> Result<bool, EvaluationError> {
        // Only ids that could be parsed were stored.
        let Ok(id) = DocumentId::parse(id) else { return Ok(false) };
        let content =
            values.and_then(|values| Some((schemas.get(values.document_type())?, values)));
        self.selection.matches(&Seen { id, content }, self.now_s)
    }
}

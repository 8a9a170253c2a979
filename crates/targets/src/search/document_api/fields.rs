//! Which fields of a document a reply has, and how they look.

use crate::search::document::Values;
use crate::search::schema::{DOCUMENT_TYPE, FIELDS, field_number};
use crate::search::search_reply::{push_name, push_value};

/// The fields that a client asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FieldSet {
    All,
    /// By number.
    Some(Vec<usize>),
}

impl FieldSet {
    /// Whether no field is wanted at all, so that values need not be read.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Some(numbers) if numbers.is_empty())
    }

    /// Reads `type:a,b`, `[all]`, `[id]` and their like.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "[all]" | "[document]" => return Ok(Self::All),
            "[id]" | "[none]" => return Ok(Self::Some(Vec::new())),
            _ => {}
        }
        let (document_type, names) = text.split_once(':').ok_or(
            "The field set list must consist of a document type, then a colon (:), \
             then a comma-separated list of field names",
        )?;
        if document_type != DOCUMENT_TYPE {
            return Err(format!("Document type {document_type} does not exist"));
        }
        let mut numbers = Vec::new();
        for name in names.split(',').map(str::trim) {
            match name {
                "[document]" | "[all]" => return Ok(Self::All),
                "[id]" | "[none]" => {}
                name => numbers.push(field_number(name).ok_or(format!("No such field {name}"))?),
            }
        }
        Ok(Self::Some(numbers))
    }
}

/// Appends the fields as a JSON object.
pub(crate) fn push_fields(out: &mut Vec<u8>, values: &Values, wanted: &FieldSet) {
    out.push(b'{');
    let start = out.len();
    for (number, (field, value)) in FIELDS.iter().zip(values).enumerate() {
        let shown = match wanted {
            FieldSet::All => true,
            FieldSet::Some(numbers) => numbers.contains(&number),
        };
        if let Some(value) = value.as_ref().filter(|_| shown) {
            push_name(out, start, field.name);
            push_value(out, value);
        }
    }
    out.push(b'}');
}

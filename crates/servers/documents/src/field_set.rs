//! `fieldSet`: which fields of a document a reply shows.

use super::schema::{Schema, Schemas};

/// The fields that are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldSet {
    /// Every field of every type.
    Every,
    /// No field, only the id.
    Nothing,
    /// Fields of one type, by number; documents of other types show none.
    Of {
        /// The number of the type.
        document_type: u16,
        /// For each field of the type, whether it is shown.
        shown: Vec<bool>,
    },
}

const MALFORMED: &str = "The field set list must consist of a document type, then a colon (:), \
     then a comma-separated list of field names";
const SPECIAL: &str =
    "The only special names (enclosed in '[]') allowed are id, all, document, none";

impl FieldSet {
    /// Reads `[all]`, `[document]`, `[id]`, `[none]`, `type:field,field` and `type:[document]`.
    /// Names of field sets of the schema stand for their fields.
    ///
    /// # Errors
    /// With Vespa's text for the client.
    pub fn parse(text: &str, schemas: &Schemas) -> Result<Self, String> {
        let text = text.trim();
        match text {
            "[all]" | "[document]" => return Ok(Self::Every),
            "[id]" | "[docid]" | "[none]" => return Ok(Self::Nothing),
            _ if text.starts_with('[') => return Err(SPECIAL.to_owned()),
            _ => {}
        }
        let (name, fields) = text.split_once(':').ok_or(MALFORMED)?;
        let unknown = || format!("Unknown document type {name}");
        let schema = schemas.by_name(name).ok_or_else(unknown)?;
        Self::of(schema, fields)
    }

    fn of(schema: &Schema, fields: &str) -> Result<Self, String> {
        let mut shown = vec![false; schema.fields().len()];
        for name in fields.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "[document]" | "[all]" => shown.fill(true),
                "[id]" | "[docid]" | "[none]" => {}
                name => match (schema.field_number(name), schema.searched_as(name)) {
                    (Some(number), _) => shown[number] = true,
                    (None, []) => return Err(format!("No such field {name}")),
                    (None, numbers) => numbers.iter().for_each(|number| shown[*number] = true),
                },
            }
        }
        Ok(Self::Of { document_type: schema.number(), shown })
    }

    /// Shows this field of this type.
    pub(crate) fn shows(&self, document_type: u16, field: usize) -> bool {
        match self {
            Self::Every => true,
            Self::Nothing => false,
            Self::Of { document_type: one, shown } => {
                *one == document_type && shown.get(field).copied().unwrap_or(false)
            }
        }
    }
}

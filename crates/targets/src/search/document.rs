//! A document: its id, its values, and the bytes that the store keeps of it.

use super::schema::{DOCUMENT_TYPE, FIELD_COUNT, FIELDS, FieldKind};

/// The value of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Long(i64),
}

/// The values of a document, in the order of the schema. Empty text is no value.
pub(crate) type Values = [Option<Value>; FIELD_COUNT];

/// A whole document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    /// `id:namespace:doc:[n=number|g=group]:name`
    pub(crate) id: String,
    pub(crate) values: Values,
}

/// The stored bytes are not those of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stored document is damaged")]
pub(crate) struct Damaged;

/// The first byte of a stored document: the form of the rest.
const FORM: u8 = 1;

impl Document {
    /// The bytes that the store keeps.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![FORM];
        push_text(&mut bytes, &self.id);
        for (number, value) in self.values.iter().enumerate() {
            match value {
                None => {}
                Some(Value::Text(text)) => {
                    bytes.push(number as u8);
                    push_text(&mut bytes, text);
                }
                Some(Value::Long(value)) => {
                    bytes.push(number as u8);
                    bytes.extend_from_slice(&value.to_le_bytes());
                }
            }
        }
        bytes
    }

    /// Reads what [`Document::encode`] wrote.
    ///
    /// # Errors
    /// When the bytes are something else.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut rest = bytes.strip_prefix(&[FORM]).ok_or(Damaged)?;
        let id = take_text(&mut rest)?;
        let mut values = Values::default();
        while let Some((number, after)) = rest.split_first() {
            rest = after;
            let number = usize::from(*number);
            let field = FIELDS.get(number).ok_or(Damaged)?;
            values[number] = Some(match field.kind {
                FieldKind::Text | FieldKind::Keyword => Value::Text(take_text(&mut rest)?),
                FieldKind::Long => {
                    let (value, after) = rest.split_first_chunk().ok_or(Damaged)?;
                    rest = after;
                    Value::Long(i64::from_le_bytes(*value))
                }
            });
        }
        Ok(Self { id, values })
    }
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    // Request bodies are far below 4 GiB.
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

fn take_text(rest: &mut &[u8]) -> Result<String, Damaged> {
    let (length, after) = rest.split_first_chunk().ok_or(Damaged)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| Damaged)?;
    let (text, after) = after.split_at_checked(length).ok_or(Damaged)?;
    *rest = after;
    String::from_utf8(text.to_vec()).map_err(|_| Damaged)
}

/// The third part of a document id: how its location is derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Free,
    Number(u64),
    Group(String),
}

/// The id of a document of this server.
pub(crate) fn document_id(namespace: &str, location: &Location, name: &str) -> String {
    match location {
        Location::Free => format!("id:{namespace}:{DOCUMENT_TYPE}::{name}"),
        Location::Number(number) => format!("id:{namespace}:{DOCUMENT_TYPE}:n={number}:{name}"),
        Location::Group(group) => format!("id:{namespace}:{DOCUMENT_TYPE}:g={group}:{name}"),
    }
}

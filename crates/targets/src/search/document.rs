//! A document: its id, its values, and the bytes that the store keeps of it.

use super::schema::{FIELD_COUNT, FIELDS, FieldKind};

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

impl Document {
    /// Appends the bytes that the store keeps of the values.
    pub(crate) fn encode_values(values: &Values, bytes: &mut Vec<u8>) {
        for (number, value) in values.iter().enumerate() {
            match value {
                None => {}
                Some(Value::Text(text)) => {
                    bytes.push(number as u8);
                    push_text(bytes, text);
                }
                Some(Value::Long(value)) => {
                    bytes.push(number as u8);
                    bytes.extend_from_slice(&value.to_le_bytes());
                }
            }
        }
    }

    /// Reads what [`Document::encode_values`] wrote.
    ///
    /// # Errors
    /// When the bytes are something else.
    pub(crate) fn decode_values(mut rest: &[u8]) -> Result<Values, Damaged> {
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
        Ok(values)
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

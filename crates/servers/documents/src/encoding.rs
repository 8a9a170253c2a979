//! Values as bytes: compact, and readable after the schema has changed.
//!
//! A document is the name of its type, then for each value the mark of the field (a hash of its
//! name and type), the length of the value, and the value as its type has it. A field that the
//! schema does not have any more, or has with another type, is passed over; one that was added is
//! missing. Lengths are little-endian groups of seven bits; numbers are little-endian.

use super::document::Values;
use super::schema::{Schema, Schemas};
use super::value::{FieldType, Value};

/// The stored bytes cannot be read as a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// They are not what was written.
    #[error("a stored document is damaged")]
    Damaged,
    /// Its schema was taken away.
    #[error("a stored document is of type '{0}': start the server with its schema too")]
    UnknownType(String),
}

type Outcome<T> = Result<T, DecodeError>;

impl Values {
    /// Appends the bytes of the values.
    pub fn encode(&self, schemas: &Schemas, out: &mut Vec<u8>) {
        let Some(schema) = schemas.get(self.document_type()) else { return };
        push_bytes(out, schema.name().as_bytes());
        let mut scratch = Vec::new();
        for (number, value) in self.iter() {
            out.extend_from_slice(&schema.stored_id(number).to_le_bytes());
            scratch.clear();
            push_value(&mut scratch, value);
            push_bytes(out, &scratch);
        }
    }

    /// Reads what [`Values::encode`] wrote.
    ///
    /// # Errors
    /// When the bytes are something else, or no schema describes the document's type.
    pub fn decode(schemas: &Schemas, bytes: &[u8]) -> Outcome<Self> {
        Self::decode_some(schemas, bytes, |_, _| true)
    }

    /// Reads only the fields that are `wanted`, called with the type and the field's number.
    ///
    /// # Errors
    /// As [`Values::decode`].
    pub(crate) fn decode_some(
        schemas: &Schemas,
        bytes: &[u8],
        wanted: impl Fn(&Schema, usize) -> bool,
    ) -> Outcome<Self> {
        let stored = Stored::open(schemas, bytes)?;
        let schema = stored.schema;
        let mut values = Self::new(schema);
        stored.each(|number, bytes| {
            if wanted(schema, number) {
                let mut bytes = bytes;
                let value = take_value(&schema.fields()[number].kind, &mut bytes)?;
                if !bytes.is_empty() {
                    return Err(DecodeError::Damaged);
                }
                values.set(number, Some(value));
            }
            Ok(())
        })?;
        Ok(values)
    }
}

/// A stored document whose values have not been looked at yet.
pub struct Stored<'s, 'b> {
    /// The type of the document.
    pub schema: &'s Schema,
    fields: &'b [u8],
}

impl<'s, 'b> Stored<'s, 'b> {
    /// Reads the type.
    pub fn open(schemas: &'s Schemas, bytes: &'b [u8]) -> Outcome<Self> {
        let mut fields = bytes;
        let name = take_text(&mut fields)?;
        let unknown = || DecodeError::UnknownType(name.to_owned());
        let schema = schemas.by_name(name).ok_or_else(unknown)?;
        Ok(Self { schema, fields })
    }

    /// Calls `visit` with the number and the bytes of each value whose field the schema has.
    pub(crate) fn each(
        &self,
        mut visit: impl FnMut(usize, &'b [u8]) -> Outcome<()>,
    ) -> Outcome<()> {
        let mut rest = self.fields;
        let mut expected = 0;
        while !rest.is_empty() {
            let id = u32::from_le_bytes(take_chunk(&mut rest)?);
            let value = take_bytes(&mut rest)?;
            if let Some(number) = self.field(id, &mut expected) {
                visit(number, value)?;
            }
        }
        Ok(())
    }

    fn field(&self, id: u32, expected: &mut usize) -> Option<usize> {
        // Values that are missing make gaps of a few fields.
        let near = *expected..(*expected + 3).min(self.schema.fields().len());
        let number = near.into_iter().find(|number| self.schema.stored_id(*number) == id);
        let number = number.or_else(|| self.schema.by_stored_id(id));
        if let Some(number) = number {
            *expected = number + 1;
        }
        number
    }
}

/// The bytes of one value, which are the same for equal values only.
pub(crate) fn value_bytes(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_value(&mut bytes, value);
    bytes
}

fn push_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(text) => push_bytes(out, text.as_bytes()),
        Value::Raw(bytes) => push_bytes(out, bytes),
        Value::Int(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::Long(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::Byte(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::Float(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::Bool(value) => out.push(u8::from(*value)),
        Value::Array(items) => {
            push_length(out, items.len());
            items.iter().for_each(|item| push_value(out, item));
        }
        Value::WeightedSet(items) => {
            push_length(out, items.len());
            for (key, weight) in items {
                push_value(out, key);
                out.extend_from_slice(&weight.to_le_bytes());
            }
        }
        Value::Map(items) => {
            push_length(out, items.len());
            for (key, value) in items {
                push_value(out, key);
                push_value(out, value);
            }
        }
        Value::Tensor(cells) => {
            for cell in cells {
                out.extend_from_slice(&cell.to_le_bytes());
            }
        }
    }
}

fn take_value(kind: &FieldType, rest: &mut &[u8]) -> Outcome<Value> {
    Ok(match kind {
        FieldType::String => Value::String(take_text(rest)?.to_owned()),
        FieldType::Raw => Value::Raw(take_bytes(rest)?.to_vec()),
        FieldType::Int => Value::Int(i32::from_le_bytes(take_chunk(rest)?)),
        FieldType::Long => Value::Long(i64::from_le_bytes(take_chunk(rest)?)),
        FieldType::Byte => Value::Byte(i8::from_le_bytes(take_chunk(rest)?)),
        FieldType::Float => Value::Float(f32::from_le_bytes(take_chunk(rest)?)),
        FieldType::Double => Value::Double(f64::from_le_bytes(take_chunk(rest)?)),
        FieldType::Bool => Value::Bool(take_bool(rest)?),
        FieldType::Array(inner) => {
            let count = take_count(rest)?;
            let mut items = Vec::new();
            for _ in 0..count {
                items.push(take_value(inner, rest)?);
            }
            Value::Array(items)
        }
        FieldType::WeightedSet(inner) => {
            let count = take_count(rest)?;
            let mut items = Vec::new();
            for _ in 0..count {
                let key = take_value(inner, rest)?;
                items.push((key, i32::from_le_bytes(take_chunk(rest)?)));
            }
            Value::WeightedSet(items)
        }
        FieldType::Map(key, value) => {
            let count = take_count(rest)?;
            let mut items = Vec::new();
            for _ in 0..count {
                items.push((take_value(key, rest)?, take_value(value, rest)?));
            }
            Value::Map(items)
        }
        FieldType::Tensor { cells, .. } => {
            let (bytes, after) = rest.split_at_checked(cells * 4).ok_or(DecodeError::Damaged)?;
            *rest = after;
            let cell = |bytes: &[u8; 4]| f32::from_le_bytes(*bytes);
            Value::Tensor(bytes.as_chunks().0.iter().map(cell).collect())
        }
    })
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn push_length(out: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// Reads a length; nothing that a request can hold has more than 35 bits.
pub(crate) fn take_length(rest: &mut &[u8]) -> Outcome<usize> {
    let mut length = 0;
    for shift in [0, 7, 14, 21, 28] {
        let [byte] = take_chunk(rest)?;
        length |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(length);
        }
    }
    Err(DecodeError::Damaged)
}

/// Reads a number of elements, each of which has a byte at least, so that damaged bytes cannot
/// ask for memory that they do not back.
pub(crate) fn take_count(rest: &mut &[u8]) -> Outcome<usize> {
    let count = take_length(rest)?;
    if count > rest.len() { Err(DecodeError::Damaged) } else { Ok(count) }
}

pub(crate) fn take_bytes<'b>(rest: &mut &'b [u8]) -> Outcome<&'b [u8]> {
    let length = take_length(rest)?;
    let (bytes, after) = rest.split_at_checked(length).ok_or(DecodeError::Damaged)?;
    *rest = after;
    Ok(bytes)
}

pub(crate) fn take_text<'b>(rest: &mut &'b [u8]) -> Outcome<&'b str> {
    std::str::from_utf8(take_bytes(rest)?).map_err(|_| DecodeError::Damaged)
}

pub(crate) fn take_chunk<const N: usize>(rest: &mut &[u8]) -> Outcome<[u8; N]> {
    let (chunk, after) = rest.split_first_chunk().ok_or(DecodeError::Damaged)?;
    *rest = after;
    Ok(*chunk)
}

pub(crate) fn take_bool(rest: &mut &[u8]) -> Outcome<bool> {
    match take_chunk(rest)? {
        [0] => Ok(false),
        [1] => Ok(true),
        _ => Err(DecodeError::Damaged),
    }
}

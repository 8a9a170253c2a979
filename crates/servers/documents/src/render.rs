//! Documents as JSON, straight from their stored bytes: no value is made on the way.

use super::document::Values;
use super::encoding::{
    DecodeError, Stored, take_bool, take_bytes, take_chunk, take_count, take_text,
};
use super::field_set::FieldSet;
use super::schema::{Schema, Schemas};
use super::value::FieldType;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plimsoll_serving::json::{push_json, push_text};

/// The parameter `format.tensors`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tensors {
    /// `{"type":"tensor<float>(x[2])","values":[1.0,2.0]}`
    #[default]
    Short,
    /// `{"type":"tensor<float>(x[2])","cells":[{"address":{"x":"0"},"value":1.0},...]}`
    Long,
    /// `[1.0,2.0]`
    ShortValue,
    /// `[{"address":{"x":"0"},"value":1.0},...]`
    LongValue,
    /// `{"type":"tensor<float>(x[2])","values":"3F80000040000000"}`
    Hex,
    /// `"3F80000040000000"`
    HexValue,
}

impl Tensors {
    /// Reads the value of the parameter.
    ///
    /// # Errors
    /// With what to tell the client.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "short" => Self::Short,
            "long" => Self::Long,
            "short-value" => Self::ShortValue,
            "long-value" => Self::LongValue,
            "hex" => Self::Hex,
            "hex-value" => Self::HexValue,
            other => {
                let all = "'short', 'long', 'short-value', 'long-value', 'hex', or 'hex-value'";
                return Err(format!("Value of format.tensors must be {all}, not '{other}'"));
            }
        })
    }
}

type Outcome<T> = Result<T, DecodeError>;

/// Appends the object with the fields of stored values that the set shows.
///
/// # Errors
/// When the bytes are not those of a document, or no schema describes its type. The caller then cuts off the
/// appended bytes.
pub fn push_stored(
    out: &mut Vec<u8>,
    schemas: &Schemas,
    bytes: &[u8],
    set: &FieldSet,
    tensors: Tensors,
) -> Outcome<()> {
    out.push(b'{');
    let start = out.len();
    if *set != FieldSet::Nothing {
        let stored = Stored::open(schemas, bytes)?;
        let schema = stored.schema;
        stored.each(|number, bytes| {
            if !set.shows(schema.number(), number) {
                return Ok(());
            }
            push_field(out, start, schema, number, bytes, tensors)
        })?;
    }
    out.push(b'}');
    Ok(())
}

/// Appends the object with the fields of values that the set shows.
pub fn push_values(
    out: &mut Vec<u8>,
    schemas: &Schemas,
    values: &Values,
    set: &FieldSet,
    tensors: Tensors,
) {
    let start = out.len();
    let mut bytes = Vec::new();
    values.encode(schemas, &mut bytes);
    if push_stored(out, schemas, &bytes, set, tensors).is_err() {
        // Values of a type that the schemas do not have: nothing can be said of them.
        out.truncate(start);
        out.extend_from_slice(b"{}");
    }
}

/// Appends the fields with `summary` of stored values, as a search result shows them: those whose
/// names are `shown`, each behind a comma unless it is the first since `start`.
///
/// # Errors
/// As [`push_stored`].
pub fn push_summary(
    out: &mut Vec<u8>,
    start: usize,
    stored: &Stored<'_, '_>,
    shown: impl Fn(&str) -> bool,
) -> Outcome<()> {
    stored.each(|number, bytes| {
        let field = &stored.schema.fields()[number];
        if !field.summary || !shown(&field.name) {
            return Ok(());
        }
        push_field(out, start, stored.schema, number, bytes, Tensors::Short)
    })
}

fn push_field(
    out: &mut Vec<u8>,
    start: usize,
    schema: &Schema,
    number: usize,
    bytes: &[u8],
    tensors: Tensors,
) -> Outcome<()> {
    let field = &schema.fields()[number];
    push_name(out, start, &field.name);
    let mut rest = bytes;
    push_value(out, &field.kind, &mut rest, tensors)?;
    if rest.is_empty() { Ok(()) } else { Err(DecodeError::Damaged) }
}

fn push_value(
    out: &mut Vec<u8>,
    kind: &FieldType,
    rest: &mut &[u8],
    tensors: Tensors,
) -> Outcome<()> {
    match kind {
        FieldType::String => push_text(out, take_text(rest)?),
        FieldType::Raw => {
            out.push(b'"');
            out.extend_from_slice(STANDARD.encode(take_bytes(rest)?).as_bytes());
            out.push(b'"');
        }
        FieldType::Array(inner) => {
            out.push(b'[');
            for number in 0..take_count(rest)? {
                if number > 0 {
                    out.push(b',');
                }
                push_value(out, inner, rest, tensors)?;
            }
            out.push(b']');
        }
        FieldType::WeightedSet(inner) => push_object(out, inner, &FieldType::Int, rest, tensors)?,
        FieldType::Map(key, value) => push_object(out, key, value, rest, tensors)?,
        FieldType::Tensor { dimension, cells } => {
            let (bytes, after) = rest.split_at_checked(cells * 4).ok_or(DecodeError::Damaged)?;
            *rest = after;
            push_tensor(out, kind, dimension, bytes.as_chunks().0, tensors);
        }
        scalar => push_scalar(out, scalar, rest)?,
    }
    Ok(())
}

fn push_object(
    out: &mut Vec<u8>,
    key: &FieldType,
    value: &FieldType,
    rest: &mut &[u8],
    tensors: Tensors,
) -> Outcome<()> {
    out.push(b'{');
    for number in 0..take_count(rest)? {
        if number > 0 {
            out.push(b',');
        }
        if *key == FieldType::String {
            push_text(out, take_text(rest)?);
        } else {
            // Keys of objects are text; a number that is text already has its quotes.
            let before = out.len();
            push_scalar(out, key, rest)?;
            if out.get(before) != Some(&b'"') {
                out.insert(before, b'"');
                out.push(b'"');
            }
        }
        out.push(b':');
        push_value(out, value, rest, tensors)?;
    }
    out.push(b'}');
    Ok(())
}

fn push_scalar(out: &mut Vec<u8>, kind: &FieldType, rest: &mut &[u8]) -> Outcome<()> {
    match kind {
        FieldType::Int => push_json(out, i32::from_le_bytes(take_chunk(rest)?)),
        FieldType::Long => push_json(out, i64::from_le_bytes(take_chunk(rest)?)),
        FieldType::Byte => push_json(out, i8::from_le_bytes(take_chunk(rest)?)),
        FieldType::Float => push_float(out, f32::from_le_bytes(take_chunk(rest)?)),
        FieldType::Double => push_double(out, f64::from_le_bytes(take_chunk(rest)?)),
        FieldType::Bool => out.extend_from_slice(if take_bool(rest)? { b"true" } else { b"false" }),
        _ => return Err(DecodeError::Damaged),
    }
    Ok(())
}

fn push_float(out: &mut Vec<u8>, value: f32) {
    if value.is_finite() {
        push_json(out, value);
    } else {
        push_infinite(out, f64::from(value));
    }
}

fn push_double(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        push_json(out, value);
    } else {
        push_infinite(out, value);
    }
}

/// JSON has no infinities: they are text, as Vespa writes them and reads them back.
fn push_infinite(out: &mut Vec<u8>, value: f64) {
    let text: &[u8] = match value {
        value if value.is_nan() => b"\"NaN\"",
        value if value > 0.0 => b"\"Infinity\"",
        _ => b"\"-Infinity\"",
    };
    out.extend_from_slice(text);
}

fn push_tensor(
    out: &mut Vec<u8>,
    kind: &FieldType,
    dimension: &str,
    cells: &[[u8; 4]],
    tensors: Tensors,
) {
    let typed = matches!(tensors, Tensors::Short | Tensors::Long | Tensors::Hex);
    if typed {
        out.extend_from_slice(b"{\"type\":");
        push_text(out, &kind.to_string());
        let name: &[u8] = if tensors == Tensors::Long { b",\"cells\":" } else { b",\"values\":" };
        out.extend_from_slice(name);
    }
    match tensors {
        Tensors::Hex | Tensors::HexValue => {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            out.push(b'"');
            for byte in cells.iter().flat_map(|cell| cell.iter().rev()) {
                out.push(DIGITS[usize::from(byte >> 4)]);
                out.push(DIGITS[usize::from(byte & 15)]);
            }
            out.push(b'"');
        }
        Tensors::Short | Tensors::ShortValue | Tensors::Long | Tensors::LongValue => {
            let long = matches!(tensors, Tensors::Long | Tensors::LongValue);
            out.push(b'[');
            for (number, cell) in cells.iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                if long {
                    out.extend_from_slice(b"{\"address\":{");
                    push_text(out, dimension);
                    out.extend_from_slice(format!(":\"{number}\"}},\"value\":").as_bytes());
                }
                // A cell is printed with all the digits of its 32 bits, as Vespa prints it.
                push_double(out, f64::from(f32::from_le_bytes(*cell)));
                if long {
                    out.push(b'}');
                }
            }
            out.push(b']');
        }
    }
    if typed {
        out.push(b'}');
    }
}

/// Appends a name, with a comma unless it is the first since `start`.
pub fn push_name(out: &mut Vec<u8>, start: usize, name: &str) {
    if out.len() > start {
        out.push(b',');
    }
    push_text(out, name);
    out.push(b':');
}

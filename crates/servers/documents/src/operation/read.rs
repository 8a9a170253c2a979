//! Values from JSON, by the type that the schema says.

use super::super::document::Values;
use super::super::encoding::value_bytes;
use super::super::schema::Schema;
use super::super::value::{FieldType, Value};
use super::text::Text;
use super::{MARK, number, refused, tensor, wrong};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use plimsoll_serving::parameters::is_true;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;

/// The object `fields` of a put.
#[derive(Clone, Copy)]
pub(super) struct FieldsSeed<'s> {
    pub(super) schema: &'s Schema,
}

impl<'de> DeserializeSeed<'de> for FieldsSeed<'_> {
    type Value = Values;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Values, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FieldsSeed<'_> {
    type Value = Values;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}\"fields\" must be an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
        let mut values = Values::new(self.schema);
        while let Some(name) = map.next_key_seed(Text("a name"))? {
            let number = known(self.schema, &name)?;
            let field = &self.schema.fields()[number];
            let seed = ValueSeed { label: &field.name, kind: &field.kind };
            values.set(number, map.next_value_seed(seed)?);
        }
        Ok(values)
    }
}

/// The number of a field.
pub(super) fn known<E: Error>(schema: &Schema, name: &str) -> Result<usize, E> {
    schema.field_number(name).ok_or_else(|| {
        refused(format_args!(
            "No field '{name}' in the structure of type '{}', which has the fields: [{}]",
            schema.name(),
            schema.field_names()
        ))
    })
}

/// A value of a type; nothing for `null`.
#[derive(Clone, Copy)]
pub(super) struct ValueSeed<'a> {
    /// The name of the value in messages.
    pub(super) label: &'a str,
    pub(super) kind: &'a FieldType,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        if matches!(self.kind, FieldType::Float | FieldType::Double) {
            return self.real(<&RawValue>::deserialize(json)?.get());
        }
        json.deserialize_any(self)
    }
}

impl ValueSeed<'_> {
    /// A real number from its text: the JSON reader's own is sometimes the neighbour of the
    /// nearest one, and documents would not come back as they were fed.
    fn real<E: Error>(&self, text: &str) -> Result<Option<Value>, E> {
        let number = match text.as_bytes().first() {
            Some(b'n') => return Ok(None),
            Some(b'-' | b'0'..=b'9') => text,
            Some(b'"') => text.trim_matches('"'),
            _ => return Err(self.mismatch()),
        };
        scalar(self.kind, number).map(Some).map_err(|message| wrong(self.label, message))
    }

    fn mismatch<E: Error>(&self) -> E {
        wrong(self.label, expected(self.kind))
    }

    fn whole<E: Error>(&self, number: i128) -> Result<Option<Value>, E> {
        let value = match self.kind {
            FieldType::Int => i32::try_from(number).ok().map(Value::Int),
            FieldType::Long => i64::try_from(number).ok().map(Value::Long),
            FieldType::Byte => i8::try_from(number).ok().map(Value::Byte),
            // As in Vespa, whatever is not the word "true" is false.
            FieldType::Bool => Some(Value::Bool(false)),
            _ => None,
        };
        value.map(Some).ok_or_else(|| self.mismatch())
    }

    /// A key of an object.
    fn key<E: Error>(&self, text: &str) -> Result<Value, E> {
        scalar(self.kind, text).map_err(|message| wrong(self.label, message))
    }

    /// `[{"key": k, "value": v}, ...]`
    fn pairs<'de, A: SeqAccess<'de>>(
        &self,
        mut seq: A,
        key: &FieldType,
        value: &FieldType,
    ) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        let seed = PairSeed { label: self.label, key, value };
        while let Some(pair) = seq.next_element_seed(seed)? {
            items.push(pair);
        }
        Ok(Value::Map(last_of_each_key(items)))
    }
}

/// The kind of value that is expected.
fn expected(kind: &FieldType) -> &'static str {
    match kind {
        FieldType::String => "expected a string",
        FieldType::Int => "expected a whole number of 32 bits",
        FieldType::Long => "expected a whole number of 64 bits",
        FieldType::Byte => "expected a whole number of 8 bits",
        FieldType::Float | FieldType::Double => "expected a number",
        FieldType::Bool => "expected true or false",
        FieldType::Raw => "expected a string in base64",
        FieldType::Array(_) => "expected an array",
        FieldType::WeightedSet(_) => "expected an object of keys and whole weights",
        FieldType::Map(..) => "expected an object, or an array of objects with 'key' and 'value'",
        FieldType::Tensor { .. } => {
            "expected a tensor: an array of its cells, or an object with 'values' or 'cells'"
        }
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}Error in '{}': {}", self.label, expected(self.kind))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        match self.kind {
            FieldType::Bool => Ok(Some(Value::Bool(value))),
            _ => Err(self.mismatch()),
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        self.whole(i128::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        self.whole(i128::from(value))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        match self.kind {
            FieldType::Bool => Ok(Some(Value::Bool(false))),
            _ => Err(self.mismatch()),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        match self.kind {
            FieldType::Tensor { cells, .. } => {
                let cells = tensor::from_hex(text, *cells);
                cells.map(|cells| Some(Value::Tensor(cells))).map_err(|m| wrong(self.label, m))
            }
            kind => scalar(kind, text).map(Some).map_err(|message| wrong(self.label, message)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        match self.kind {
            FieldType::Array(inner) => {
                let seed = ValueSeed { label: self.label, kind: inner };
                let mut items = Vec::new();
                while let Some(item) = seq.next_element_seed(seed)? {
                    let null = || wrong(self.label, "Illegal null value for array entry");
                    items.push(item.ok_or_else(null)?);
                }
                Ok(Some(Value::Array(items)))
            }
            FieldType::Map(key, value) => self.pairs(seq, key, value).map(Some),
            FieldType::Tensor { dimension, cells } => {
                tensor::from_array(seq, self.label, dimension, *cells).map(Some)
            }
            _ => Err(self.mismatch()),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        match self.kind {
            FieldType::Map(key, value) => {
                let key = ValueSeed { label: self.label, kind: key };
                let value = ValueSeed { label: self.label, kind: value };
                let mut items = Vec::new();
                while let Some(text) = map.next_key_seed(Text("a key"))? {
                    let null = || wrong(self.label, "Illegal null value for map entry");
                    let key = key.key(&text)?;
                    items.push((key, map.next_value_seed(value)?.ok_or_else(null)?));
                }
                Ok(Some(Value::Map(last_of_each_key(items))))
            }
            FieldType::WeightedSet(key) => {
                let key = ValueSeed { label: self.label, kind: key };
                let weight = ValueSeed { label: self.label, kind: &FieldType::Int };
                let mut items = Vec::new();
                while let Some(text) = map.next_key_seed(Text("a key"))? {
                    let key = key.key(&text)?;
                    match map.next_value_seed(weight)? {
                        Some(Value::Int(weight)) => items.push((key, weight)),
                        _ => return Err(weight.mismatch()),
                    }
                }
                Ok(Some(Value::WeightedSet(last_of_each_key(items))))
            }
            FieldType::Tensor { dimension, cells } => {
                tensor::from_object(map, self.label, dimension, *cells).map(Some)
            }
            _ => Err(self.mismatch()),
        }
    }
}

/// Reads text as a value that is not a collection.
pub(super) fn scalar(kind: &FieldType, text: &str) -> Result<Value, String> {
    let value = match kind {
        FieldType::String => {
            if let Some(c) = illegal(text) {
                let code = u32::from(c);
                return Err(format!(
                    "The string field value contains illegal code point 0x{code:X}"
                ));
            }
            Some(Value::String(text.to_owned()))
        }
        FieldType::Int => text.parse().ok().map(Value::Int),
        FieldType::Long => text.parse().ok().map(Value::Long),
        FieldType::Byte => text.parse().ok().map(Value::Byte),
        FieldType::Float => number::single(text).map(Value::Float),
        FieldType::Double => number::real(text).map(Value::Double),
        FieldType::Bool => Some(Value::Bool(is_true(text))),
        FieldType::Raw => bytes(text).map(Value::Raw),
        FieldType::Array(_)
        | FieldType::WeightedSet(_)
        | FieldType::Map(..)
        | FieldType::Tensor { .. } => None,
    };
    value.ok_or_else(|| expected(kind).to_owned())
}

/// Base64 as in MIME: whatever is not of the alphabet is left out.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let of_alphabet = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let letters: Vec<u8> = text.bytes().filter(of_alphabet).collect();
    let engine = base64::engine::GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        // The last letter may have bits that belong to no byte; encoders differ.
        STANDARD_NO_PAD.config().with_decode_allow_trailing_bits(true),
    );
    engine.decode(letters).ok()
}

/// The first character that Vespa does not take as text.
fn illegal(text: &str) -> Option<char> {
    // Nearly all text is plain, and is seen to be in one pass without branches.
    let plain = |byte: &u8| (0x20..0x80).contains(byte);
    if text.as_bytes().chunks(64).all(|chunk| chunk.iter().filter(|b| !plain(b)).count() == 0) {
        return None;
    }
    text.chars().find(|c| match u32::from(*c) {
        0x9 | 0xA | 0xD => false,
        code if code < 0x20 => true,
        0xFDD0..=0xFDDF => true,
        code => code & 0xFFFE == 0xFFFE,
    })
}

/// Keeps the last value of each key, at the place of the first.
pub(crate) fn last_of_each_key<V>(items: Vec<(Value, V)>) -> Vec<(Value, V)> {
    let mut kept: Vec<(Value, V)> = Vec::with_capacity(items.len());
    if items.len() <= 16 {
        for (key, value) in items {
            match kept.iter_mut().find(|(other, _)| *other == key) {
                Some(slot) => slot.1 = value,
                None => kept.push((key, value)),
            }
        }
        return kept;
    }
    let mut places: HashMap<Vec<u8>, usize> = HashMap::with_capacity(items.len());
    for (key, value) in items {
        let place = *places.entry(value_bytes(&key)).or_insert(kept.len());
        match kept.get_mut(place) {
            Some(slot) => slot.1 = value,
            None => kept.push((key, value)),
        }
    }
    kept
}

/// One object of a map that is written as an array.
#[derive(Clone, Copy)]
struct PairSeed<'a> {
    label: &'a str,
    key: &'a FieldType,
    value: &'a FieldType,
}

impl<'de> DeserializeSeed<'de> for PairSeed<'_> {
    type Value = (Value, Value);

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PairSeed<'_> {
    type Value = (Value, Value);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}Error in '{}': expected objects with 'key' and 'value'", self.label)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let label = self.label;
        let (mut key, mut value) = (None, None);
        while let Some(name) = map.next_key_seed(Text("a name"))? {
            match name.as_ref() {
                "key" => key = map.next_value_seed(ValueSeed { label, kind: self.key })?,
                "value" => value = map.next_value_seed(ValueSeed { label, kind: self.value })?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let missing = || wrong(label, "Missing key or value for map entry.");
        key.zip(value).ok_or_else(missing)
    }
}

/// The result of another seed, or `None` for `null`, which Vespa treats as missing.
#[derive(Clone, Copy)]
pub(super) struct Maybe<S>(pub(super) S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Maybe<S> {
    type Value = Option<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_option(self)
    }
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for Maybe<S> {
    type Value = Option<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        self.0.deserialize(json).map(Some)
    }
}

/// `true` or `false`; the name is for the message.
#[derive(Clone, Copy)]
pub(super) struct Flag(pub(super) &'static str);

impl<'de> DeserializeSeed<'de> for Flag {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<bool, D::Error> {
        json.deserialize_any(self)
    }
}

impl Visitor<'_> for Flag {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}'{}' must be true or false", self.0)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<bool, E> {
        Ok(value)
    }
}

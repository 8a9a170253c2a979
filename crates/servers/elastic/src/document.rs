//! The source of a document becomes the fields of the text index, in one pass over its bytes.

use super::error::ElasticError;
use super::mapping::date::{Formats, detected};
use super::mapping::{
    Child, Dynamic, Field, Kind, MAX_FIELDS, MAX_PATH_BYTES, Mapping, Missing, Object, check_path,
    field_names,
};
use super::values::{Leaf, boolean, date, kept, whole};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::fmt;
use tantivy::TantivyDocument;

/// The longest keyword, in bytes.
const MAX_KEYWORD_BYTES: usize = 32_766;

/// A source that was read.
pub(crate) struct Read {
    pub(crate) document: TantivyDocument,
    /// Fields that the mapping lacks: when there are any, the source is to be read again with them.
    pub(crate) missing: Vec<Missing>,
}

/// Reads the source of the document with this id.
///
/// # Errors
/// When it is not a JSON object, or a value does not fit the mapping.
pub(crate) fn read(mapping: &Mapping, source: &[u8], id: &str) -> Result<Read, ElasticError> {
    read_as(mapping, source, id, false)
}

/// Reads a source that was taken before, by the mapping of that time. A value that does not go with the present one is
/// left out: what is kept must stay readable, whatever the mapping becomes.
///
/// # Errors
/// When it is not a JSON object.
pub(crate) fn read_again(mapping: &Mapping, source: &[u8], id: &str) -> Result<Read, ElasticError> {
    read_as(mapping, source, id, true)
}

fn read_as(mapping: &Mapping, source: &[u8], id: &str, again: bool) -> Result<Read, ElasticError> {
    let mut reader = Reader {
        mapping,
        id,
        again,
        read: Read { document: TantivyDocument::new(), missing: Vec::new() },
        path: String::new(),
        error: None,
        named: Vec::new(),
    };
    // What is not looked at must be text as well: it is shown again.
    let text = std::str::from_utf8(source).map_err(|error| {
        let cause =
            ElasticError::new(400, "json_parse_exception", format!("Invalid UTF-8: {error}"));
        ElasticError::mapper("failed to parse").caused_by(cause)
    })?;
    let mut json = serde_json::Deserializer::from_str(text);
    let dynamic = mapping.root.dynamic.unwrap_or_default();
    let seed = ObjectSeed { reader: &mut reader, object: Some(&mapping.root), dynamic };
    let result = seed.deserialize(&mut json).and_then(|()| json.end());
    if let Some(error) = reader.error {
        return Err(error);
    }
    if let Err(error) = result {
        let cause = ElasticError::json(&error);
        let error = if source.first().is_some_and(|byte| *byte == b'{') {
            ElasticError::mapper("failed to parse").caused_by(cause)
        } else {
            let cause = "Compressor detection can only be called on some xcontent bytes or \
                         compressed xcontent bytes";
            let cause = ElasticError::new(400, "not_x_content_exception", cause);
            ElasticError::mapper("failed to parse").caused_by(cause)
        };
        return Err(error);
    }
    Ok(reader.read)
}

struct Reader<'m> {
    mapping: &'m Mapping,
    id: &'m str,
    /// The source was taken before.
    again: bool,
    read: Read,
    /// Of the object that is being read.
    path: String,
    /// Reason why the reading was broken off.
    error: Option<ElasticError>,
    /// Text fields that are known to have a value.
    named: Vec<usize>,
}

impl Reader<'_> {
    fn parse_error(&self, field: &Field, shown: &str, cause: ElasticError) -> ElasticError {
        let reason = format!(
            "failed to parse field [{}] of type [{}] in document with id '{}'. Preview of field's \
             value: '{shown}'",
            field.path,
            field.kind.name(),
            self.id
        );
        ElasticError::mapper(reason).caused_by(cause)
    }

    /// Adds a value to a field and to its multi-fields.
    fn add(&mut self, number: usize, leaf: &Leaf<'_>) -> Result<(), ElasticError> {
        let mapping = self.mapping;
        let field = &mapping.fields[number];
        if field.is_kept() {
            self.add_one(number, field, leaf)?;
        }
        for (_, sub) in &field.subs {
            self.add(*sub, leaf)?;
        }
        Ok(())
    }

    fn add_one(
        &mut self,
        number: usize,
        field: &Field,
        leaf: &Leaf<'_>,
    ) -> Result<(), ElasticError> {
        let column = field.mapped.field;
        match field.kind {
            Kind::Text => {
                if !self.named.contains(&number) {
                    self.named.push(number);
                    self.read.document.add_text(field_names(), &field.path);
                }
                match leaf {
                    Leaf::Text(text) => self.read.document.add_text(column, text),
                    other => self.read.document.add_text(column, other.shown()),
                }
            }
            Kind::Keyword => {
                let shown;
                let text: &str = match leaf {
                    Leaf::Text(text) => text,
                    other => {
                        shown = other.shown();
                        &shown
                    }
                };
                if text.len() > field.ignore_above && text.chars().count() > field.ignore_above {
                    return Ok(());
                }
                if text.len() > MAX_KEYWORD_BYTES {
                    let reason = format!(
                        "Document contains at least one immense term in field=\"{}\" (whose UTF8 \
                         encoding is longer than the max length {MAX_KEYWORD_BYTES})",
                        field.path
                    );
                    return Err(ElasticError::argument(reason));
                }
                self.read.document.add_text(column, text);
            }
            Kind::Double | Kind::Float | Kind::HalfFloat => {
                let number = kept(leaf, field.kind)
                    .map_err(|e| self.parse_error(field, &leaf.shown(), e))?;
                self.read.document.add_f64(column, number);
            }
            Kind::Boolean => {
                let value = boolean(leaf).map_err(|e| self.parse_error(field, &leaf.shown(), e))?;
                self.read.document.add_i64(column, i64::from(value));
            }
            Kind::Date => {
                let at = date(leaf, field.formats);
                // Fields without a format took more forms once.
                let at = if self.again { at.or_else(|_| date(leaf, Formats::ANY)) } else { at };
                let at = at.map_err(|e| self.parse_error(field, &leaf.shown(), e))?;
                self.read.document.add_i64(column, at);
            }
            Kind::Long | Kind::Integer | Kind::Short | Kind::Byte => {
                let number = whole(leaf, field.kind)
                    .map_err(|e| self.parse_error(field, &leaf.shown(), e))?;
                self.read.document.add_i64(column, number);
            }
        }
        Ok(())
    }

    /// The type that dynamic mapping gives a value, by what it looks like, and the format of a date.
    fn guess(&self, leaf: &Leaf<'_>) -> (Kind, Option<&'static str>) {
        match leaf {
            Leaf::Text(text) => match detected(text).filter(|_| !self.mapping.dates_are_texts) {
                Some(format) => (Kind::Date, Some(format)),
                None => (Kind::Text, None),
            },
            Leaf::Whole(_) => (Kind::Long, None),
            Leaf::Real(_) => (Kind::Float, None),
            Leaf::Bool(_) => (Kind::Boolean, None),
        }
    }

    /// Takes down that the mapping lacks a field.
    fn miss(&mut self, path: String, leaf: &Leaf<'_>) -> Result<(), ElasticError> {
        if self.again || self.read.missing.iter().any(|known| known.path == path) {
            return Ok(());
        }
        if self.read.missing.len() >= MAX_FIELDS {
            let message = format!("Limit of total fields [{MAX_FIELDS}] has been exceeded");
            return Err(ElasticError::argument(message));
        }
        // One long path has a better error later; many that repeat a long name take memory before.
        let missing_bytes: usize = self.read.missing.iter().map(|one| one.path.len()).sum();
        if missing_bytes > MAX_FIELDS * MAX_PATH_BYTES {
            check_path(&path)?;
        }
        let (kind, format) = self.guess(leaf);
        self.read.missing.push(Missing { path, kind, format });
        Ok(())
    }
}

/// A name, borrowed where it has no escapes.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// Reads an object: with fields of the mapping, or of one that the mapping lacks.
struct ObjectSeed<'r, 'm> {
    reader: &'r mut Reader<'m>,
    object: Option<&'m Object>,
    dynamic: Dynamic,
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ObjectSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { reader, object, dynamic } = self;
        while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
            let (object, dynamic, name, cut) = enter(reader, object, dynamic, &key);
            let reader = &mut *reader;
            let child = object.and_then(|object| object.children.get(name));
            match child {
                Some(Child::Field(number)) => {
                    let target = Target::Field(*number);
                    map.next_value_seed(ValueSeed { reader: &mut *reader, target, name })?;
                }
                Some(Child::Object(inner)) if inner.disabled => {
                    map.next_value::<IgnoredAny>()?;
                }
                Some(Child::Object(inner)) => {
                    let target = Target::Object(Some(inner), inner.dynamic.unwrap_or(dynamic));
                    map.next_value_seed(ValueSeed { reader: &mut *reader, target, name })?;
                }
                None if dynamic == Dynamic::Ignore => {
                    map.next_value::<IgnoredAny>()?;
                }
                None => {
                    let target = Target::Object(None, dynamic);
                    map.next_value_seed(ValueSeed { reader: &mut *reader, target, name })?;
                }
            }
            reader.path.truncate(cut);
        }
        Ok(())
    }
}

/// Follows a dotted key to the object that its last part is in. Gives the length of the path before.
fn enter<'m, 'k>(
    reader: &mut Reader<'m>,
    mut object: Option<&'m Object>,
    mut dynamic: Dynamic,
    key: &'k str,
) -> (Option<&'m Object>, Dynamic, &'k str, usize) {
    let cut = reader.path.len();
    let mut name = key;
    // A field of that very name wins: multi-fields are not in objects.
    while let Some((first, rest)) = name.split_once('.') {
        if first.is_empty() || rest.is_empty() {
            break;
        }
        object = match object.and_then(|object| object.children.get(first)) {
            Some(Child::Object(inner)) => {
                dynamic = inner.dynamic.unwrap_or(dynamic);
                Some(inner)
            }
            _ => None,
        };
        push_path(&mut reader.path, first);
        name = rest;
    }
    (object, dynamic, name, cut)
}

fn push_path(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

#[derive(Clone, Copy)]
enum Target<'m> {
    Field(usize),
    /// An object, or whatever it turns out to be when the mapping has none.
    Object(Option<&'m Object>, Dynamic),
}

/// Reads what stands behind a key.
struct ValueSeed<'r, 'm, 'k> {
    reader: &'r mut Reader<'m>,
    target: Target<'m>,
    name: &'k str,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl ValueSeed<'_, '_, '_> {
    fn leaf<E: serde::de::Error>(self, leaf: &Leaf<'_>) -> Result<(), E> {
        let Self { reader, target, name } = self;
        let result = match target {
            Target::Field(number) => reader.add(number, leaf),
            Target::Object(Some(_), _) => {
                let mut path = reader.path.clone();
                push_path(&mut path, name);
                Err(ElasticError::mapper(format!(
                    "object mapping for [{path}] tried to parse field [{name}] as object, but \
                     found a concrete value"
                )))
            }
            Target::Object(None, Dynamic::Refuse) => {
                let within = if reader.path.is_empty() { "_doc" } else { reader.path.as_str() };
                Err(ElasticError::new(
                    400,
                    "strict_dynamic_mapping_exception",
                    format!(
                        "mapping set to strict, dynamic introduction of [{name}] within [{within}] \
                         is not allowed"
                    ),
                ))
            }
            Target::Object(None, _) => {
                let mut path = reader.path.clone();
                push_path(&mut path, name);
                reader.miss(path, leaf)
            }
        };
        if reader.again {
            return Ok(());
        }
        result.map_err(|error| {
            reader.error = Some(error);
            E::custom("broken off")
        })
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<(), E> {
        self.leaf(&Leaf::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.leaf(&Leaf::Text(Cow::Borrowed(text)))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<(), E> {
        self.leaf(&Leaf::Whole(number))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        match i64::try_from(number) {
            Ok(number) => self.leaf(&Leaf::Whole(number)),
            Err(_) => self.leaf(&Leaf::Real(number as f64)),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<(), E> {
        self.leaf(&Leaf::Real(number))
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.leaf(&Leaf::Bool(value))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { reader, target, name } = self;
        while items.next_element_seed(ValueSeed { reader: &mut *reader, target, name })?.is_some() {
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let Self { reader, target, name } = self;
        match target {
            Target::Object(object, dynamic) => {
                let cut = reader.path.len();
                push_path(&mut reader.path, name);
                let seed = ObjectSeed { reader: &mut *reader, object, dynamic };
                seed.visit_map(map)?;
                reader.path.truncate(cut);
                Ok(())
            }
            Target::Field(_) if reader.again => {
                IgnoredAny.visit_map(map)?;
                Ok(())
            }
            Target::Field(number) => {
                let mut map = map;
                let mut value = serde_json::Map::new();
                while let Some((key, item)) = map.next_entry::<String, Json>()? {
                    value.insert(key, item);
                }
                let field = &reader.mapping.fields[number];
                let shown = Json::Object(value).to_string();
                let cause = "Can't get text on a START_OBJECT";
                let cause = ElasticError::new(400, "illegal_state_exception", cause);
                reader.error = Some(reader.parse_error(field, &shown, cause));
                Err(serde::de::Error::custom("broken off"))
            }
        }
    }
}

#[cfg(test)]
mod tests;

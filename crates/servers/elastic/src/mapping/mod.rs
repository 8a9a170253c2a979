//! Mappings: the fields of an index, and where each stands in the text index.
//!
//! A text index cannot take a new field once it is made, and mappings grow as documents come. So it
//! is made with blocks of spare columns of each kind, and a field takes the next free one of its
//! kind; when a block is full the shards are made again, from their logs, with one block more.

pub(crate) mod date;
mod parameters;
mod read;
mod slots;

pub(crate) use slots::{ID, columns, field_names, id_field, lid_field, row_field};

use super::error::ElasticError;
use date::Formats;
use plimsoll_index::mapping::{FieldKind, Fields, Mapped};
use plimsoll_index::row_text::Scan;
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tantivy::Term;

/// The most fields of one index, counting objects' fields and multi-fields.
pub(crate) const MAX_FIELDS: usize = 1000;
/// The longest path of a field, bytes. Each field inside an object repeats the name of the object: without a bound, a body of
/// 100 MB may have paths of 50 GB.
pub(crate) const MAX_PATH_BYTES: usize = 8192;
/// Deepest nesting of objects.
pub(crate) const MAX_DEPTH: usize = 20;

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Keyword,
    Long,
    Integer,
    Short,
    Byte,
    Double,
    Float,
    HalfFloat,
    Boolean,
    Date,
}

const KINDS: [(Kind, &str); 11] = [
    (Kind::Text, "text"),
    (Kind::Keyword, "keyword"),
    (Kind::Long, "long"),
    (Kind::Integer, "integer"),
    (Kind::Short, "short"),
    (Kind::Byte, "byte"),
    (Kind::Double, "double"),
    (Kind::Float, "float"),
    (Kind::HalfFloat, "half_float"),
    (Kind::Boolean, "boolean"),
    (Kind::Date, "date"),
];

impl Kind {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    pub(crate) fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    pub(crate) fn column(self) -> FieldKind {
        match self {
            Self::Text => FieldKind::Text,
            Self::Keyword => FieldKind::Keyword,
            Self::Double => FieldKind::Real { single: false },
            Self::Float | Self::HalfFloat => FieldKind::Real { single: true },
            _ => FieldKind::Long,
        }
    }
}

/// The treatment of fields that the mapping does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dynamic {
    #[default]
    Add,
    Ignore,
    Refuse,
}

/// One field.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) path: String,
    pub(crate) kind: Kind,
    pub(crate) mapped: Mapped,
    /// The block of columns that the field's is in.
    pub(crate) block: usize,
    /// Values can be searched.
    pub(crate) index: bool,
    /// Longer values of a keyword are not indexed, in characters.
    pub(crate) ignore_above: usize,
    pub(crate) formats: Formats,
    /// Multi-fields: name and number.
    pub(crate) subs: Vec<(String, usize)>,
    /// The parameters as they were given, without type and fields.
    options: Map<String, Json>,
}

impl Field {
    /// Returns true if values go into the field's column: those that cannot be searched can still be sorted by.
    pub(crate) fn is_kept(&self) -> bool {
        let off = |value: &Json| *value == false || *value == "false";
        self.index || self.kind != Kind::Text && !self.options.get("doc_values").is_some_and(off)
    }
}

/// The meaning of a name in a document.
#[derive(Clone, Debug)]
pub(crate) enum Child {
    Object(Object),
    /// The number of a field.
    Field(usize),
}

/// An object, or the document as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object {
    /// As the object around it unless it says otherwise.
    pub(crate) dynamic: Option<Dynamic>,
    /// Its content is not read.
    pub(crate) disabled: bool,
    pub(crate) children: BTreeMap<String, Child>,
}

/// A field that a document has and the mapping has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) path: String,
    pub(crate) kind: Kind,
    /// Of a date.
    pub(crate) format: Option<&'static str>,
}

/// The mapping of one index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mapping {
    pub(crate) root: Object,
    /// Texts that look like dates are only texts.
    pub(crate) dates_are_texts: bool,
    pub(crate) fields: Vec<Field>,
    by_path: HashMap<String, usize>,
    /// Columns in use, by kind of column.
    used: [usize; 4],
}

/// Rejects a path that is too long.
///
/// # Errors
/// With the beginning of the path.
pub(crate) fn check_path(path: &str) -> Result<(), ElasticError> {
    if path.len() <= MAX_PATH_BYTES {
        return Ok(());
    }
    let shown: String = path.chars().take(50).collect();
    let message =
        format!("Field name [{shown}...] is longer than the limit of [{MAX_PATH_BYTES}] bytes");
    Err(ElasticError::argument(message))
}

impl Mapping {
    /// The field of this path.
    pub(crate) fn field(&self, path: &str) -> Option<&Field> {
        self.by_path.get(path).map(|number| &self.fields[*number])
    }

    /// Blocks of columns that the fields need.
    pub(crate) fn blocks(&self) -> usize {
        slots::blocks(&self.used)
    }

    /// The field of a name, or those that can be searched and whose paths match a pattern with `*`.
    pub(crate) fn matching(&self, pattern: &str) -> Vec<&Field> {
        if !pattern.contains('*') {
            return self.field(pattern).into_iter().collect();
        }
        let fields = self.fields.iter().filter(|field| field.index);
        fields.filter(|field| super::names::matches(pattern, &field.path)).collect()
    }

    fn take_column(&mut self, path: &str, kind: Kind) -> (Mapped, usize) {
        let column = kind.column();
        let used = &mut self.used[slots::row(column)];
        let number = *used;
        *used += 1;
        slots::mapped(path, column, number)
    }

    /// Adds the fields of a mapping as clients write it.
    ///
    /// # Errors
    /// When it is not understood, or a field has another type already; then nothing has changed.
    pub(crate) fn merge(&mut self, json: &Json) -> Result<(), ElasticError> {
        parameters::check(json)?;
        let mut merged = self.clone();
        read::merge(&mut merged, json)?;
        *self = merged;
        Ok(())
    }

    /// Adds a field that a document brought.
    ///
    /// # Errors
    /// When there are too many fields, or a part of the path is a field already.
    pub(crate) fn add_dynamic(&mut self, missing: &Missing) -> Result<(), ElasticError> {
        read::add_dynamic(self, missing)
    }

    /// Paths and types in the order of their columns, from which [`Mapping::restore`] gives every
    /// field its own again.
    pub(crate) fn columns(&self) -> Vec<(&str, &'static str)> {
        self.fields.iter().map(|field| (field.path.as_str(), field.kind.name())).collect()
    }

    /// The mapping as it was when it was kept.
    ///
    /// # Errors
    /// When it cannot have been kept so.
    pub(crate) fn restore(columns: &[(String, String)], json: &Json) -> Result<Self, ElasticError> {
        let mut mapping = Self::default();
        for (path, kind) in columns {
            let kind = Kind::parse(kind)
                .ok_or_else(|| ElasticError::internal(format!("no type [{kind}]")))?;
            read::add(&mut mapping, path, kind)?;
        }
        // What was taken once is not looked at again.
        read::merge(&mut mapping, json)?;
        Ok(mapping)
    }

    /// The mapping as clients read it.
    pub(crate) fn to_json(&self) -> Json {
        let mut json = self.object_json(&self.root);
        if self.dates_are_texts {
            json["date_detection"] = false.into();
        }
        json
    }

    fn object_json(&self, object: &Object) -> Json {
        let mut json = Map::new();
        let dynamic = object.dynamic.map(|dynamic| match dynamic {
            Dynamic::Add => "true",
            Dynamic::Ignore => "false",
            Dynamic::Refuse => "strict",
        });
        if let Some(dynamic) = dynamic {
            json.insert("dynamic".to_owned(), dynamic.into());
        }
        if object.disabled {
            json.insert("enabled".to_owned(), false.into());
            json.insert("type".to_owned(), "object".into());
        }
        if !object.children.is_empty() {
            let properties = object.children.iter().map(|(name, child)| {
                let json = match child {
                    Child::Object(object) => self.object_json(object),
                    Child::Field(number) => self.field_json(*number),
                };
                (name.clone(), json)
            });
            json.insert("properties".to_owned(), Json::Object(properties.collect()));
        }
        Json::Object(json)
    }

    fn field_json(&self, number: usize) -> Json {
        let field = &self.fields[number];
        let mut json = Map::new();
        json.insert("type".to_owned(), field.kind.name().into());
        json.extend(field.options.clone());
        if !field.subs.is_empty() {
            let subs = field.subs.iter();
            let subs = subs.map(|(name, number)| (name.clone(), self.field_json(*number)));
            json.insert("fields".to_owned(), Json::Object(subs.collect()));
        }
        Json::Object(json)
    }
}

/// The fields of a mapping as one shard has them.
pub(crate) struct View {
    pub(crate) mapping: Arc<Mapping>,
    /// Blocks of columns that the shard's text index has.
    pub(crate) blocks: usize,
    pub(crate) scan: Option<Arc<dyn Scan>>,
}

impl Fields for View {
    fn named(&self, name: &str, _: &[u16]) -> (Vec<&Mapped>, bool) {
        if name == ID {
            return (vec![slots::id_mapped()], true);
        }
        let field = self.mapping.field(name).filter(|field| field.block < self.blocks);
        (field.map(|field| &field.mapped).into_iter().collect(), field.is_some())
    }

    fn unknown(&self, _: &str) -> Option<String> {
        None
    }

    fn type_term(&self, _: u16) -> Option<Term> {
        None
    }

    fn type_number(&self, _: &str) -> Option<u16> {
        None
    }

    fn scan(&self) -> Option<&dyn Scan> {
        self.scan.as_deref()
    }
}

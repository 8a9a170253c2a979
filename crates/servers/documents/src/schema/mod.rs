//! Document types: their fields, what may be done with each, and the names that queries use.
//!
//! They come from schema files (`parse` reads them), or are the built-in type `doc`.

mod lexer;
mod parse;

use super::value::FieldType;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub(crate) use parse::parse;

/// The name of the built-in document type.
pub(crate) const BUILT_IN: &str = "doc";
/// The name of the content cluster unless another one is asked for.
pub const DEFAULT_CLUSTER: &str = "plimsoll";
/// The name by which a query addresses the default field set.
pub const DEFAULT_FIELD: &str = "default";
/// The most fields of one document type.
pub(crate) const MAX_FIELDS: usize = 1000;
/// The most document types of one server.
pub(crate) const MAX_TYPES: usize = 1000;
/// The largest schema file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The way the text of a field is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// Cut into lower-cased words.
    Words,
    /// As a whole, ignoring case.
    Exact,
}

/// One field of a document type.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDef {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub kind: FieldType,
    /// `indexing: index`
    pub index: bool,
    /// `indexing: attribute`
    pub attribute: bool,
    /// `indexing: summary`
    pub(crate) summary: bool,
    /// Matching of its text.
    pub matching: Matching,
    /// `weightedset: create-if-nonexistent`: arithmetic on a missing key begins at 0.
    pub(crate) create_missing: bool,
    /// `weightedset: remove-if-zero`: a weight that arithmetic brings to 0 takes its key away.
    pub(crate) remove_zero: bool,
}

impl FieldDef {
    /// A field that is stored and nothing else.
    pub(crate) fn new(name: impl Into<String>, kind: FieldType) -> Self {
        Self {
            name: name.into(),
            kind,
            index: false,
            attribute: false,
            summary: false,
            matching: Matching::Words,
            create_missing: false,
            remove_zero: false,
        }
    }

    /// Tells the field in stored documents: the same for the same name and type (FNV-1a).
    pub(crate) fn stored_id(&self) -> u32 {
        let name = format!("{}|{}", self.name, self.kind);
        name.bytes()
            .fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }
}

/// A name for several fields, which queries use like a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedFields {
    pub(crate) name: String,
    /// Numbers of fields.
    pub(crate) fields: Vec<usize>,
}

/// One document type.
#[derive(Clone, Debug)]
pub struct Schema {
    name: String,
    number: u16,
    fields: Vec<FieldDef>,
    sets: Vec<NamedFields>,
    by_name: HashMap<String, usize>,
    by_stored_id: HashMap<u32, usize>,
    stored_ids: Vec<u32>,
}

/// Reason why a schema cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text of a schema is not understood, or says what this server does not support.
    #[error("{file}:{line}:{column}: {message}")]
    Text {
        /// The file's name.
        file: String,
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in characters.
        column: usize,
        /// The error, and how to fix it.
        message: String,
    },
    /// A file cannot be read.
    #[error("cannot read the schema {file}: {message}")]
    File {
        /// The file's name.
        file: String,
        /// The message of the system.
        message: String,
    },
    /// The schemas do not go together.
    #[error("{0}")]
    Types(String),
}

impl Schema {
    /// A document type of these fields.
    ///
    /// # Errors
    /// When there are too many fields, or two of the same name.
    pub(crate) fn new(
        name: impl Into<String>,
        fields: Vec<FieldDef>,
        mut sets: Vec<NamedFields>,
    ) -> Result<Self, String> {
        let name = name.into();
        if fields.len() > MAX_FIELDS {
            return Err(format!("type '{name}' has {} fields, at most {MAX_FIELDS}", fields.len()));
        }
        let mut by_name = HashMap::new();
        let mut by_stored_id = HashMap::new();
        for (number, field) in fields.iter().enumerate() {
            if by_name.insert(field.name.clone(), number).is_some() {
                return Err(format!("type '{name}' has two fields '{}'", field.name));
            }
            if let Some(other) = by_stored_id.insert(field.stored_id(), number) {
                let other = &fields[other].name;
                return Err(format!("rename '{}': its hash is that of '{other}'", field.name));
            }
        }
        if !sets.iter().any(|set| set.name == DEFAULT_FIELD) {
            // Without a set of its own, the default is all text that can be searched by words.
            let words = |field: &FieldDef| field.index && field.matching == Matching::Words;
            let numbers = 0..fields.len();
            let numbers = numbers.filter(|number| words(&fields[*number])).collect();
            sets.push(NamedFields { name: DEFAULT_FIELD.to_owned(), fields: numbers });
        }
        let stored_ids = fields.iter().map(FieldDef::stored_id).collect();
        Ok(Self { name, number: 0, fields, sets, by_name, by_stored_id, stored_ids })
    }

    /// The name of the document type.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The position among the types of the server.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// The fields in the order of the file, which is the order of replies.
    pub fn fields(&self) -> &[FieldDef] {
        &self.fields
    }

    /// The position of a field, by name.
    pub(crate) fn field_number(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The fields behind a name: one field, or those of a field set.
    pub fn searched_as(&self, name: &str) -> &[usize] {
        if let Some(set) = self.sets.iter().find(|set| set.name == name) {
            return &set.fields;
        }
        self.by_name.get(name).map_or(&[], std::slice::from_ref)
    }

    /// The names of all fields, for messages.
    pub(crate) fn field_names(&self) -> String {
        let names: Vec<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
        names.join(", ")
    }

    /// The number of the field with this mark in stored documents.
    pub(crate) fn by_stored_id(&self, id: u32) -> Option<usize> {
        self.by_stored_id.get(&id).copied()
    }

    /// The mark of a field in stored documents.
    pub(crate) fn stored_id(&self, number: usize) -> u32 {
        self.stored_ids[number]
    }
}

/// All document types of a server, and the name of its content cluster.
#[derive(Clone, Debug)]
pub struct Schemas {
    types: Vec<Schema>,
    cluster: String,
}

impl Schemas {
    /// The types of a server.
    ///
    /// # Errors
    /// When two have the same name.
    pub(crate) fn new(mut types: Vec<Schema>, cluster: &str) -> Result<Self, SchemaError> {
        let few = u16::try_from(types.len()).ok().filter(|n| usize::from(*n) <= MAX_TYPES);
        let count = few.ok_or_else(|| {
            let message = format!("{} document types, at most {MAX_TYPES}", types.len());
            SchemaError::Types(message)
        })?;
        for (schema, number) in types.iter_mut().zip(0..count) {
            schema.number = number;
        }
        for (number, schema) in types.iter().enumerate() {
            if types[..number].iter().any(|other| other.name == schema.name) {
                let name = &schema.name;
                let message = format!("two schemas describe the document type '{name}'");
                return Err(SchemaError::Types(message));
            }
        }
        Ok(Self { types, cluster: cluster.to_owned() })
    }

    /// The built-in type `doc` of the bundled corpora.
    pub fn built_in(cluster: &str) -> Self {
        let text = |name: &str| FieldDef {
            index: true,
            summary: true,
            ..FieldDef::new(name, FieldType::String)
        };
        let keyword = |name: &str| FieldDef {
            attribute: true,
            summary: true,
            matching: Matching::Exact,
            ..FieldDef::new(name, FieldType::String)
        };
        let score =
            FieldDef { attribute: true, summary: true, ..FieldDef::new("score", FieldType::Long) };
        let fields =
            vec![text("title"), text("body"), keyword("category"), keyword("author"), score];
        let by_name =
            fields.iter().enumerate().map(|(number, f)| (f.name.clone(), number)).collect();
        let stored_ids: Vec<u32> = fields.iter().map(FieldDef::stored_id).collect();
        let by_stored_id = stored_ids.iter().enumerate().map(|(number, id)| (*id, number));
        let by_stored_id = by_stored_id.collect();
        let sets = vec![NamedFields { name: DEFAULT_FIELD.to_owned(), fields: vec![0, 1] }];
        let name = BUILT_IN.to_owned();
        let schema = Schema { name, number: 0, fields, sets, by_name, by_stored_id, stored_ids };
        Self { types: vec![schema], cluster: cluster.to_owned() }
    }

    /// Reads schema files; without any, the built-in type.
    ///
    /// # Errors
    /// When a file cannot be read or understood, or two describe the same type.
    pub fn read(files: &[PathBuf], cluster: &str) -> Result<Self, SchemaError> {
        if files.is_empty() {
            return Ok(Self::built_in(cluster));
        }
        let types = files.iter().map(|file| read_file(file)).collect::<Result<Vec<_>, _>>()?;
        Self::new(types, cluster)
    }

    /// The name of the content cluster.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// Every document type, in the order of the files.
    pub fn types(&self) -> &[Schema] {
        &self.types
    }

    /// A document type by its number.
    pub fn get(&self, number: u16) -> Option<&Schema> {
        self.types.get(usize::from(number))
    }

    /// A document type by its name.
    pub fn by_name(&self, name: &str) -> Option<&Schema> {
        self.types.iter().find(|schema| schema.name == name)
    }

    /// The names of all types, for messages.
    pub fn type_names(&self) -> String {
        let names: Vec<&str> = self.types.iter().map(|schema| schema.name.as_str()).collect();
        names.join(", ")
    }

    /// The names of the fields of all types, each once, for messages.
    pub fn field_names(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for field in self.types.iter().flat_map(|schema| &schema.fields) {
            if !names.contains(&field.name.as_str()) {
                names.push(&field.name);
            }
        }
        names.join(", ")
    }

    /// Some type has a field or a field set of this name.
    pub fn can_search(&self, name: &str) -> bool {
        name == DEFAULT_FIELD || self.types.iter().any(|s| !s.searched_as(name).is_empty())
    }

    /// Some type has a field of this name.
    pub fn has_field(&self, name: &str) -> bool {
        self.types.iter().any(|schema| schema.field_number(name).is_some())
    }
}

fn read_file(path: &Path) -> Result<Schema, SchemaError> {
    let file = path.display().to_string();
    let failed = |message: String| SchemaError::File { file: file.clone(), message };
    let size = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
    if size > MAX_FILE_BYTES {
        return Err(failed(format!("it has {size} bytes, at most {MAX_FILE_BYTES} are read")));
    }
    let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    parse(&bytes, &file)
}

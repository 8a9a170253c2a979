//! The functions of the fuzz targets in `fuzz/`: each takes any bytes, and must neither panic nor take memory without bound.

use super::document::Values;
use super::operation::{apply, parse_put, parse_update};
use super::schema::{self, Schema, Schemas};
use super::selection::Selection;
use std::sync::OnceLock;

/// A type with a field of every kind.
const SCHEMA: &str = "schema music { document music {
    field artist type string { indexing: summary | index }
    field year type int { indexing: attribute | summary }
    field plays type long { indexing: attribute }
    field price type double { indexing: attribute }
    field live type bool { indexing: attribute }
    field cover type raw { indexing: summary }
    field tags type array<string> { indexing: attribute }
    field moods type weightedset<string> { indexing: attribute }
    field props type map<string, string> { indexing: summary }
    field embedding type tensor<float>(x[3]) { indexing: attribute }
} }";

/// A schema with a field of every kind.
pub fn schemas() -> &'static Schemas {
    static SCHEMAS: OnceLock<Schemas> = OnceLock::new();
    SCHEMAS.get_or_init(|| {
        let parsed = schema::parse(SCHEMA.as_bytes(), "music.sd").into_iter().collect();
        // The built-in type would do as well, should the text above ever be wrong.
        Schemas::new(parsed, "c").unwrap_or_else(|_| Schemas::built_in("c"))
    })
}

fn music() -> &'static Schema {
    &schemas().types()[0]
}

/// A document selection; the message if it is rejected.
pub fn selection(bytes: &[u8]) -> Option<String> {
    Selection::parse_bytes(bytes, schemas()).err().map(|error| error.to_string())
}

/// The body of a put, and an update of what it says: the two are divided by a byte 0. Returns the message if they are
/// rejected.
///
/// # Panics
/// When the document is stored and read as another.
pub fn bodies(bytes: &[u8]) -> Option<String> {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let put = parse_put(parts.next().unwrap_or_default(), music());
    let update = parse_update(parts.next().unwrap_or_default(), music());
    let refused = put.as_ref().err().or(update.as_ref().err()).map(ToString::to_string);
    let Ok(mut put) = put else { return refused };
    if let Ok(update) = update {
        apply(&mut put.values, music(), &update.edits);
    }
    let (mut stored, mut again) = (Vec::new(), Vec::new());
    put.values.encode(schemas(), &mut stored);
    match Values::decode(schemas(), &stored) {
        Ok(values) => values.encode(schemas(), &mut again),
        Err(error) => panic!("a stored document cannot be read: {error}"),
    }
    assert!(stored == again, "a document is stored as another");
    refused
}

/// A schema file; the message if it is rejected.
pub fn schema_file(bytes: &[u8]) -> Option<String> {
    schema::parse(bytes, "fuzzed.sd").err().map(|error| error.to_string())
}

//! The functions of the fuzz targets in `fuzz/`: each takes any bytes, and must neither panic nor take memory without bound.

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

fn schemas() -> &'static Schemas {
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

/// A document selection.
pub fn selection(bytes: &[u8]) {
    let _ = Selection::parse_bytes(bytes, schemas());
}

/// The body of a put, and an update of what it says: the two are divided by a byte 0.
pub fn bodies(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let put = parse_put(parts.next().unwrap_or_default(), music());
    let update = parse_update(parts.next().unwrap_or_default(), music());
    if let (Ok(mut put), Ok(update)) = (put, update) {
        apply(&mut put.values, music(), &update.edits);
    }
}

/// A schema file.
pub fn schema_file(bytes: &[u8]) {
    let _ = schema::parse(bytes, "fuzzed.sd");
}

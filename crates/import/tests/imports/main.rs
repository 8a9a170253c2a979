//! Every importer against files: of the real tools, of their documented form, and damaged.
//!
//! Expected values are read in the text of the files by a person. The files, with tool, version and command, are listed in
//! `tests/files/README.md`.
#![allow(clippy::unwrap_used, missing_docs)]

mod documented;
mod histograms;
mod real;
mod records;
mod sheets;
mod torn;

use plimsoll_import::{Format, ImportError, Imported, Options, read};
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files"))
}

fn bytes(file: &str) -> Vec<u8> {
    std::fs::read(folder().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// All files, with their names.
fn all_files() -> Vec<(String, Vec<u8>)> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    names.sort();
    names.into_iter().map(|name| (name.clone(), bytes(&name))).collect()
}

fn import_bytes(bytes: &[u8]) -> Result<(Format, Imported), ImportError> {
    read(&mut &bytes[..], None, &Options::default())
}

/// Reads a file whose format must be recognised as this one.
#[track_caller]
fn import(file: &str, format: &str) -> Imported {
    let (found, imported) = import_bytes(&bytes(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    assert_eq!(found.name(), format, "{file}");
    imported
}

/// True if a figure is this one, to four digits.
#[track_caller]
fn near(found: Option<f64>, expected: f64) {
    let found = found.expect("the figure is unknown");
    assert!((found - expected).abs() <= expected.abs() * 6e-4 + 1e-9, "{found}, not {expected}");
}

/// True if a percentile of a histogram is this one: to three digits, and to half a microsecond.
#[track_caller]
fn near_cell(found: Option<f64>, expected: f64) {
    let found = found.expect("the figure is unknown");
    assert!((found - expected).abs() <= expected.abs() * 1.1e-3 + 6e-4, "{found}, not {expected}");
}

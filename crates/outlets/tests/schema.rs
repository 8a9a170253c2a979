//! The schema of the stream that users have is that of the types, and the lines hold it.
#![allow(clippy::unwrap_used, missing_docs)]

use plimsoll_core::interval::Interval;
use plimsoll_outlets::facts::Facts;
use plimsoll_outlets::stream::{Line, Model, Stream};
use schemars::generate::SchemaSettings;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Line>().to_value();
    schema["$id"] = "plimsoll.second/1".into();
    schema["title"] = "A line of --stream".into();
    schema
}

/// Written by `make schema`.
#[test]
fn the_committed_schema_is_that_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stream.schema.json");
    let made = format!("{:#}\n", schema());
    if std::env::var("INSTA_UPDATE").is_ok_and(|how| how == "always") {
        fs::write(&path, &made).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(made == committed, "docs/stream.schema.json differs from the types; run make schema");
}

#[test]
fn every_line_holds_the_schema_and_reads_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seconds.ndjson");
    let facts = Facts { classes: vec!["a".to_owned(), "b".to_owned()], ..Facts::default() };
    let mut stream = Stream::open(&path, Model::default()).unwrap();
    stream.begin(&facts);
    for ok in [0, 5] {
        let mut second = Interval::new(2);
        second.to_ns = 1_000_000_000;
        second.ledger.scheduled = 5;
        second.ledger.sent = 5;
        second.ledger.ok = ok;
        (0..ok).for_each(|_| second.classes[0].record_ok(4_000_000, 3_000_000));
        stream.second(&facts, &second, 1_795_600_000_000_000);
    }
    let record = include_bytes!("load.json");
    let tally = stream.end(&facts, &plimsoll_record::read(record).unwrap());
    assert_eq!(tally.lost(), 0);
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 4);
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{line}\n{errors:?}");
        let read: Line = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), value);
    }
}

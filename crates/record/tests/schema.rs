//! The schema that users have is that of the types, and it holds the records that programs have written.
#![allow(clippy::unwrap_used, missing_docs)]

use plimsoll_record::schema::run_schema;
use plimsoll_record::{JobResult, RunRecord, read};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// The records of version 0.1.0 as of commit c648f2b, one or more for every job; `load-watched` is of a later one, with
/// resources, the server's own time and traces.
const RECORDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records");

fn records() -> Vec<(String, Vec<u8>)> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(RECORDS).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    paths.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

fn record(name: &str) -> Value {
    let found = records().into_iter().find(|(one, _)| one == name);
    serde_json::from_slice(&found.unwrap_or_else(|| panic!("no record of {name}")).1).unwrap()
}

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&run_schema()).unwrap()
}

/// Written by `make schema`.
#[test]
fn the_committed_schema_is_that_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run.schema.json");
    let made = format!("{:#}\n", run_schema());
    if std::env::var("INSTA_UPDATE").is_ok_and(|how| how == "always") {
        fs::write(&path, &made).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap();
    let differs = made.lines().zip(committed.lines()).position(|(made, kept)| made != kept);
    assert!(
        made == committed,
        "docs/run.schema.json differs from the types, first in line {:?}; run make schema",
        differs.map_or(committed.lines().count(), |line| line + 1)
    );
}

#[test]
fn records_of_the_version_before_are_read_and_lose_nothing() {
    let mut sections = Vec::new();
    for (name, text) in records() {
        let record = read(&text).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert_eq!(record.job_results.unknown().count(), 0, "{name}");
        sections.extend(record.job_results.iter().map(|one| one.key().to_owned()));
        let written = serde_json::to_value(&record).unwrap();
        let before: Value = serde_json::from_slice(&text).unwrap();
        let fields =
            |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
        assert_eq!(fields(&written), fields(&before), "{name}");
        for field in fields(&before) {
            assert_eq!(written[&field], before[&field], "{name}: {field}");
        }
    }
    for key in [
        "fbench",
        "seek",
        "rival",
        "rank",
        "voter",
        "visit",
        "feed",
        "mix",
        "search",
        "catalogue",
        "hooks",
        "resources",
    ] {
        assert!(sections.iter().any(|section| section == key), "no record has {key}");
    }
}

#[test]
fn records_of_the_version_before_fit_the_schema() {
    let validator = validator();
    for (name, text) in records() {
        let value: Value = serde_json::from_slice(&text).unwrap();
        let complaints: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(complaints, Vec::<String>::new(), "{name}");
    }
}

/// Pointers of all objects of a value whose keys are names of fields and not data.
fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    /// Free forms, and maps from names to values.
    const DATA: [&str; 17] = [
        "/scenario",
        "/schedule",
        "/classes",
        "/slo",
        "/statuses",
        "/histograms",
        "/caches",
        "/vars",
        "/hooks",
        "/averages",
        "/samples_measured",
        "/errors",
        "/retries",
        "/codes",
        "/lost",
        "/rhythm",
        "/unknown",
    ];
    match value {
        Value::Object(fields) => {
            if !DATA.iter().any(|data| at.ends_with(data)) {
                found.push(at.to_owned());
            }
            let is_free = at.ends_with("/scenario") || at.ends_with("/schedule");
            for (name, field) in fields.iter().filter(|_| !is_free) {
                let name = name.replace('~', "~0").replace('/', "~1");
                objects(field, &format!("{at}/{name}"), found);
            }
        }
        // One entry of a list has the form of all.
        Value::Array(items) => {
            if let Some(item) = items.first() {
                objects(item, &format!("{at}/0"), found);
            }
        }
        _ => {}
    }
}

/// A field that is renamed, missing where it must be there, or new is a complaint, wherever it stands.
#[test]
fn a_renamed_field_does_not_fit_the_schema() {
    let validator = validator();
    let mut tried = 0;
    for (name, text) in records() {
        let good: Value = serde_json::from_slice(&text).unwrap();
        let mut places = Vec::new();
        objects(&good, "", &mut places);
        for place in places {
            let fields = good.pointer(&place).unwrap().as_object().unwrap();
            for field in fields.keys() {
                let mut renamed = good.clone();
                let object = renamed.pointer_mut(&place).unwrap().as_object_mut().unwrap();
                let value = object.shift_remove(field).unwrap();
                object.insert(format!("{field}_"), value);
                assert!(!validator.is_valid(&renamed), "{name}: {place}/{field} was renamed");
                tried += 1;
            }
        }
    }
    assert!(tried > 1000, "{tried} fields were tried");
}

/// A field that a reader needs is an error with its name, and no section that vanishes.
#[test]
fn a_renamed_field_of_a_result_is_an_error_that_names_it() {
    for (name, section, field) in [
        ("fbench", "fbench", "rate_per_s"),
        ("seek", "seek", "curve"),
        ("rival", "rival", "trials"),
        ("rank", "rank", "runs"),
        ("voter", "voter", "accepted"),
        ("visit", "visit", "documents"),
        ("feed", "feed", "accepted_per_s"),
        ("mix", "mix", "without"),
        ("search", "search", "cells"),
        ("catalogue", "catalogue", "name"),
        ("load-watched", "resources", "watched"),
    ] {
        let good = record(name);
        let mut renamed = good.clone();
        let object = renamed[section].as_object_mut().unwrap();
        let value = object.shift_remove(field).unwrap();
        object.insert("other".to_owned(), value);
        let problem = read(renamed.to_string().as_bytes()).unwrap_err();
        assert!(problem.contains(section) && problem.contains(field), "{problem}");
        let mut wrong = good;
        wrong[section][field] = json!({"not": ["this"]});
        let problem = read(wrong.to_string().as_bytes()).unwrap_err();
        assert!(problem.contains(section) && problem.contains(field), "{problem}");
    }
}

#[test]
fn what_is_inside_a_list_is_named_by_its_place() {
    let mut wrong = record("rank");
    wrong["rank"]["runs"][1]["50p_ms"] = json!("fast");
    let problem = read(wrong.to_string().as_bytes()).unwrap_err();
    assert!(problem.contains("rank.runs[1].50p_ms: invalid type"), "{problem}");
    let mut wrong = record("load");
    wrong["ledger"]["sent"] = json!(-1);
    let problem = read(wrong.to_string().as_bytes()).unwrap_err();
    assert!(problem.contains("ledger.sent: "), "{problem}");
}

/// Walks through all properties: each says what it is.
#[test]
fn every_field_of_the_schema_is_described() {
    fn walk(value: &Value, at: &str, missing: &mut Vec<String>) {
        if let Some(Value::Object(properties)) = value.get("properties") {
            for (name, property) in properties {
                let says = property.get("description").and_then(Value::as_str).unwrap_or_default();
                // The tag and the content of an enum are described by its variants.
                if says.is_empty() && !at.ends_with("/oneOf") {
                    missing.push(format!("{at}/{name}"));
                }
            }
        }
        match value {
            Value::Object(fields) => {
                fields
                    .iter()
                    .for_each(|(name, field)| walk(field, &format!("{at}/{name}"), missing));
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, at, missing)),
            _ => {}
        }
    }
    let mut missing = Vec::new();
    walk(&run_schema(), "", &mut missing);
    assert!(missing.is_empty(), "no description: {missing:#?}");
}

/// A record that some later plimsoll wrote keeps its own sections when it is written again.
#[test]
fn a_section_of_a_later_version_is_kept() {
    let mut later = record("load");
    later["later"] = json!({"figure": 1});
    let record: RunRecord = read(later.to_string().as_bytes()).unwrap();
    let unknown = record.job_results.iter().find(|one| matches!(one, JobResult::Unknown(_)));
    assert_eq!(unknown.map(JobResult::key), Some("later"));
    assert_eq!(serde_json::to_value(&record).unwrap()["later"], json!({"figure": 1}));
}

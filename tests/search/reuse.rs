//! Indexes that are there from before, in engines at an address.

use super::{cells, list, record, search};
use crate::process::Place;
use serde_json::Value;

const ALL: &str = "[[query]]\nname = \"all\"\nkind = \"match\"\ntext = \"sea\"\nsize = 1\n";
const CELL: [&str; 8] =
    ["--queries", "q.toml", "--duration", "200ms", "--warmup", "0s", "--users", "1"];

/// Runs a matrix that leaves its indexes; says whether they were there before, and the hits of its query.
fn run(place: &Place, engine: &str, more: &[&str]) -> (bool, Value) {
    let asked = ["--engine", engine, "--keep-indexes"];
    search(place, &[&asked[..], &CELL, more].concat()).expect(0);
    let record = record(place);
    let cell = &cells(&record)[0];
    assert!(cell["ok_per_s"].is_number(), "{cell}");
    (list(&record, "loads")[0]["reused"] == true, list(&record, "answers")[0]["hits"].clone())
}

#[test]
fn documents_in_vespa_are_used_again_where_they_are_the_same() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    place.file("q.toml", ALL);
    let text = |word: &str| {
        let line = |n: u32| format!("{{\"id\":\"d{n}\",\"body\":\"the {word} {n}\"}}\n");
        (0..50).map(line).collect::<String>()
    };
    place.file("sea.ndjson", text("sea"));
    place.file("land.ndjson", text("land"));
    let engine = format!("v={},vespa", target.url);
    let (sea, land) = (["--corpus", "ndjson:sea.ndjson"], ["--corpus", "ndjson:land.ndjson"]);
    assert_eq!(run(&place, &engine, &sea), (false, 50.into()));
    assert_eq!(run(&place, &engine, &sea), (true, 50.into()), "the probe left them alone");
    // As many documents under the same names, and none of them the same.
    assert_eq!(run(&place, &engine, &land), (false, 0.into()));
}

/// Has PostgreSQL do something.
fn sql(place: &Place, url: &str, text: &str) {
    let load = ["load", url, "--body", text, "--requests", "1", "--clients", "1"];
    place.run([&load[..], &["--no-record", "--quiet", "--slo", "errors=0%"]].concat()).expect(0);
}

#[test]
fn tables_of_postgresql_are_used_again_once_they_are_whole() {
    let place = Place::new();
    let target = place.serve(&["postgresql", "--durability", "none"]);
    place.file("q.toml", ALL);
    let (engine, size) = (format!("p={}", target.url), ["--sizes", "100kB"]);
    let (reused, hits) = run(&place, &engine, &size);
    assert!(!reused);
    assert_eq!(run(&place, &engine, &size), (true, hits.clone()));
    // As a process leaves them that is killed between the documents and what is made of them.
    let texts = std::fs::read_dir(place.path().join(".plimsoll/search")).unwrap().flatten();
    let text = texts.map(|entry| entry.file_name().into_string().unwrap());
    let mark = text.filter_map(|name| {
        Some(name.strip_prefix("synthetic-100kb-")?.strip_suffix(".ndjson")?.to_owned())
    });
    let table = format!("plimsoll_{}_100kb_1", mark.last().unwrap());
    sql(&place, &target.url, &format!("COMMENT ON TABLE {table} IS NULL"));
    sql(&place, &target.url, &format!("DROP TABLE {table}_vocabulary"));
    assert_eq!(run(&place, &engine, &size), (false, hits));
}

#[test]
fn a_server_without_room_for_all_users_says_so() {
    let place = Place::new();
    let target = place.serve(&["postgresql", "--durability", "none"]);
    place.file("q.toml", ALL);
    sql(&place, &target.url, "ALTER DATABASE plimsoll CONNECTION LIMIT 3");
    let engine = format!("few={}", target.url);
    let cell = ["--queries", "q.toml", "--sizes", "100kB", "--duration", "200ms", "--warmup", "0s"];
    let asked = ["--engine", &engine, "--loaders", "1", "--users", "1,9"];
    search(&place, &[&asked[..], &cell].concat()).expect(0);
    let record = record(&place);
    assert!(cells(&record)[0]["ok_per_s"].is_number(), "{}", cells(&record)[0]);
    let reason = cells(&record)[1]["reason"].as_str().unwrap();
    assert!(reason.contains("refused a connection: PostgreSQL has no connection left"), "{reason}");
    assert!(record.has_warning("share this machine"), "{:#}", record.0["warnings"]);
}

//! Real engines, started by the matrix itself, beside the embedded ones.

use super::{cells, list, reasons, record, search};
use crate::engines::install;
use crate::process::Place;
use serde_json::Value;

#[test]
fn opensearch_is_measured_beside_the_embedded_engine_and_marked_as_clamped() {
    install("opensearch");
    let place = Place::busy();
    let engines = ["--engine", "automaton", "--engine", "opensearch", "--groups", "2x2,4x2"];
    let cell = ["--sizes", "500kB", "--duration", "1s", "--warmup", "500ms", "--users", "2"];
    let ended = search(&place, &[&engines[..], &cell, &["--verbose"]].concat()).expect(0);
    assert!(ended.stderr.contains("opensearch: started in "), "{}", ended.stderr);
    let record = record(&place);
    record.expect_schema();
    for one in cells(&record) {
        assert!(one["ok_per_s"].as_f64().unwrap() > 0.0, "{one}");
        assert!(one["server_cpu_s"].as_f64().unwrap() > 0.0, "{one}");
        let clamped = one["engine"] == "opensearch" && one["distance"] == 4;
        assert_eq!(one["marks"].to_string().contains("clamped to 2"), clamped, "{one}");
    }
    assert_eq!(list(&record, "engines")[1]["version"], "opensearch 2.19.1");
    // To distance 2 both find what was planted; beyond it, only one of them.
    let differ = list(&record, "disagreements");
    assert!(!differ.is_empty() && differ.iter().all(|one| one["distance"] == 4), "{differ:?}");
    for one in list(&record, "recall") {
        let exact = one["found"] == one["expected"];
        assert!(exact || (one["engine"] == "opensearch" && one["distance"] == 4), "{one}");
    }
}

#[test]
fn postgresql_loads_finds_what_was_planted_and_is_measured() {
    let place = Place::new();
    let engines = ["--engine", "postgresql", "--engine", "automaton", "--groups", "2x1,4x1,2x5"];
    let cell = ["--sizes", "500kB", "--duration", "700ms", "--warmup", "200ms", "--users", "1,4"];
    search(&place, &[&engines[..], &cell].concat()).expect(0);
    let record = record(&place);
    record.expect_schema();
    for one in cells(&record) {
        let beyond = one["engine"] == "postgresql" && one["shards"] == 5;
        assert_eq!(one["ok_per_s"].is_null(), beyond, "{one}");
        assert!(beyond || one["server_cpu_s"].as_f64().unwrap() > 0.0, "{one}");
        assert!(!one["marks"].to_string().contains("clamped"), "{one}");
    }
    let told = "postgresql has a fixed number of shards";
    assert!(reasons(&record).iter().all(|reason| reason.contains(told)));
    let version = list(&record, "engines")[0]["version"].as_str().unwrap();
    assert!(version.starts_with("postgresql 1"), "{version}");
    let load = list(&record, "loads").iter().find(|load| load["engine"] == "postgresql").unwrap();
    assert!(load["failed"] == 0 && load["index_bytes"].as_u64() > Some(500_000), "{load}");
    let of_postgresql = |one: &&Value| one["engine"] == "postgresql";
    let recall: Vec<&Value> = list(&record, "recall").iter().filter(of_postgresql).collect();
    assert_eq!(recall.len(), 20, "ten queries at two distances");
    assert!(recall.iter().all(|one| one["found"] == one["expected"]), "{recall:?}");
    let differ = list(&record, "disagreements");
    assert!(differ.is_empty(), "{differ:?}");
}

#[test]
fn rows_fill_sql_as_they_fill_json_and_stay_values() {
    let place = Place::busy();
    place.file(
        "q.toml",
        "[[query]]\nname = \"some\"\nkind = \"match\"\ntext = \"{{words}}\"\n\
         [[query]]\nname = \"near\"\nkind = \"match\"\ntext = \"{{words}}\"\ndistance = 1\noperator = \"and\"\n",
    );
    place.file(
        "own.toml",
        "[[query]]\nname = \"own\"\nkind = \"raw\"\npostgresql = \"SELECT id FROM {table} WHERE body_words @@ \
         plainto_tsquery('simple', {{words}}) OR body = 'x{{words}}' OR title = E'{{words}}' LIMIT 5\"\n",
    );
    // The first row is the one that engines are compared by; the others want to leave their literals.
    let rows = "words\nof the\n'); DROP TABLE plimsoll; --\nback\\\n\"two \"\"quoted\"\" ones\"\n\\'; SELECT 1; --\nnone\n";
    place.file("rows.csv", rows);
    let asked = ["--corpus", "bundled", "--sizes", "100kB", "--rows", "rows.csv", "--users", "1,3"];
    let cell = ["--duration", "500ms", "--warmup", "0s"];
    let both = ["--engine", "postgresql", "--engine", "automaton", "--queries", "q.toml"];
    search(&place, &[&both[..], &asked, &cell].concat()).expect(0);
    let compared = record(&place);
    assert!(reasons(&compared).is_empty(), "{:?}", reasons(&compared));
    assert!(list(&compared, "answers").iter().all(|one| one["hits"].as_u64() > Some(0)));
    assert!(list(&compared, "disagreements").is_empty(), "{:?}", list(&compared, "disagreements"));
    let own = ["--engine", "postgresql", "--queries", "own.toml"];
    search(&place, &[&own[..], &asked, &cell].concat()).expect(0);
    assert!(reasons(&record(&place)).is_empty(), "{:?}", reasons(&record(&place)));
    // Where nothing can be made safe, nothing is asked.
    place.file(
        "own.toml",
        "[[query]]\nname = \"own\"\nkind = \"raw\"\npostgresql = \"SELECT $$ {{words}} $$\"\n",
    );
    let told = search(&place, &[&own[..], &asked].concat()).expect(64).stderr;
    let parts = ["query 'own'", "rows.csv:2", "where no value is safe"];
    assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    assert_eq!(told.trim().lines().count(), 1, "{told}");
}

/// PostgreSQL counts no edits of words of more than 255 characters, and ends a query that asks it to.
#[test]
fn a_long_word_in_the_text_ends_no_query_of_postgresql() {
    let place = Place::new();
    let long = "x".repeat(300);
    let lines: String = (0..200)
        .map(|id| {
            let body = if id % 50 == 0 { long.as_str() } else { "an old harbour by the sea" };
            let text = serde_json::json!({"id": id.to_string(), "title": "t", "body": body});
            format!("{text}\n")
        })
        .collect();
    place.file("text.ndjson", lines);
    let near = "[[query]]\nname = \"near\"\nkind = \"fuzzy\"\ntext = \"harbor\"\n";
    place.file("q.toml", near);
    let engines = ["--engine", "postgresql", "--engine", "automaton", "--queries", "q.toml"];
    let text = ["--corpus", "ndjson:text.ndjson", "--sizes", "all", "--users", "1"];
    let cell = ["--duration", "300ms", "--warmup", "0s"];
    search(&place, &[&engines[..], &text, &cell].concat()).expect(0);
    let record = record(&place);
    assert!(reasons(&record).is_empty(), "{:?}", reasons(&record));
    let answers = list(&record, "answers");
    assert!(answers.iter().all(|one| one["hits"] == 196), "{answers:?}");
}

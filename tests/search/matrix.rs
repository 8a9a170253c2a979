//! What a matrix measures, marks and withholds.

use super::engine::{Engine, Faults};
use super::{cells, list, mine, reasons, record, records, search, small};
use crate::process::Place;
use serde_json::Value;

#[test]
fn a_whole_matrix_is_measured_marked_and_compared_with_the_truth() {
    let (place, honest) = (Place::new(), Engine::start(Faults::default()));
    let clamped = Engine::start(Faults { clamp: Some(2), full: true, ..Faults::default() });
    let (first, second) = (format!("honest={}", honest.url), format!("clamped={}", clamped.url));
    let asked = ["--engine", &first, "--engine", &second, "--groups", "2x5,4x1", "--repeat", "2"];
    let ended = small(&place, &asked).expect(0);
    let shown = &ended.stdout;
    assert!(shown.contains("### honest: edit distance 2, index of 5 shards"), "{shown}");
    assert!(
        shown.contains("### clamped: edit distance 4, index of 1 shard (clamped to 2)"),
        "{shown}"
    );
    assert!(shown.contains("4 -> 0,1,2 CLAMPED"), "{shown}");
    let told = &ended.stderr;
    assert!(told.contains("clamped: accepts edit distance 4 but searches with 2"), "{told}");
    let record = record(&place);
    record.expect_schema();
    assert_eq!(cells(&record).len(), 8);
    for cell in cells(&record) {
        assert!(cell["ok_per_s"].as_f64() > Some(0.0), "{cell}");
        assert_eq!(cell["repeats"].as_array().unwrap().len(), 2);
        assert!(cell["interval_per_s"][1].as_f64() >= cell["ok_per_s"].as_f64());
        assert!(cell["server_cpu_s"].is_number(), "the server is on this machine");
        let mark = cell["engine"] == "clamped" && cell["distance"] == 4;
        assert_eq!(cell["marks"][0] == "clamped to 2", mark, "{cell}");
    }
    // The same words, two answers: the clamped engine misses what is planted beyond two edits.
    let differ = list(&record, "disagreements");
    assert!(!differ.is_empty() && differ.iter().all(|one| one["distance"] == 4), "{differ:?}");
    let recall = list(&record, "recall");
    assert_eq!(recall.len(), 40, "ten queries, two engines, two distances, each with its truth");
    for one in recall {
        let exact = one["found"] == one["expected"];
        assert!(exact || (one["engine"] == "clamped" && one["distance"] == 4), "{one}");
    }
    assert!(recall.iter().any(|one| one["found"] != one["expected"]));
    // What was turned away came in the end, all indexes are gone, and the probe's too.
    let loads = list(&record, "loads");
    assert!(loads.iter().any(|load| load["retried"].as_u64() > Some(0)), "{loads:?}");
    assert!(loads.iter().all(|load| load["failed"] == 0 && load["index_bytes"] == 4321));
    assert!(honest.indexes().is_empty(), "{:?}", honest.indexes());
    // The same from the record, and as CSV and JUnit.
    let folder = records(&place).pop().unwrap().display().to_string();
    let report = |format: &str| place.run(["report", &folder, "--format", format]).stdout;
    let tables = |page: &str| page.split("Record").next().unwrap().to_owned();
    assert_eq!(tables(&report("text")), tables(shown));
    assert_eq!(report("csv").lines().filter(|line| line.starts_with("cell,")).count(), 8);
    assert_eq!(report("junit").matches("classname=\"search.cell.").count(), 8);
}

#[test]
fn failures_withhold_a_cell_with_their_reason_and_stop_no_other() {
    let place = Place::new();
    let late = Engine::start(Faults { time_out_every: Some(7), ..Faults::default() });
    let strict =
        Engine::start(Faults { refuse_above: Some(2), no_phrases: true, ..Faults::default() });
    let (late, strict) = (format!("late={}", late.url), format!("strict={}", strict.url));
    let engines = ["--engine", &late, "--engine", &strict, "--engine", "nobody=http://127.0.0.1:9"];
    // No cell has a number.
    let ended = small(&place, &[&engines[..], &["--distance", "4"]].concat()).expect(4);
    assert!(ended.stderr.contains("nobody: nothing answers at"), "{}", ended.stderr);
    let record = record(&place);
    record.expect_schema();
    let reasons = reasons(&record);
    assert_eq!(reasons.len(), 6);
    for reason in &reasons[..2] {
        let parts = ["requests failed (check", "in time"];
        assert!(parts.iter().all(|part| reason.contains(part)), "{reason}");
    }
    for reason in &reasons[2..4] {
        let part = "query 'one word' not answered: 400: Valid edit distances";
        assert!(reason.contains(part), "{reason}");
    }
    for reason in &reasons[4..] {
        assert!(reason.contains("nothing answers at http://127.0.0.1:9"), "{reason}");
    }
    assert_eq!(cells(&record)[0]["ok_per_s"], Value::Null);
    assert!(cells(&record)[0]["raw_ok_per_s"].as_f64().unwrap() > 0.0, "the raw data are kept");
    // What can only be withheld is not measured.
    assert_eq!(cells(&record)[2]["elapsed_s"], 0.0);
}

#[test]
fn an_index_that_does_not_exist_any_more_withholds_its_cells_only() {
    let place = Place::new();
    let engine = Engine::start(Faults { lose_index: true, ..Faults::default() });
    let asked = ["--engine", &mine(&engine), "--sizes", "100kB,200kB", "--users", "1"];
    let cell = ["--duration", "200ms", "--warmup", "0s"];
    search(&place, &[&asked[..], &cell].concat()).expect(0);
    let record = record(&place);
    assert_eq!(cells(&record).len(), 2);
    let reason = &reasons(&record)[0];
    assert!(reason.contains("query 'one word' not answered: 404: no such index ["), "{reason}");
    assert!(cells(&record)[1]["ok_per_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn refused_queries_can_be_left_out_and_are_told() {
    let place = Place::new();
    let strict = Engine::start(Faults { no_phrases: true, ..Faults::default() });
    small(&place, &["--engine", &mine(&strict), "--skip-refused"]).expect(0);
    let record = record(&place);
    for cell in cells(&record) {
        assert!(cell["ok_per_s"].is_number());
        assert_eq!(cell["marks"][0], "8 of 10 queries");
        let queries = cell["queries"].as_array().unwrap();
        let phrase = queries.iter().find(|query| query["name"] == "phrase").unwrap();
        assert_eq!(phrase["refused"], "400: phrases are not for us");
        assert_eq!(phrase["ok"], 0);
    }
}

#[test]
fn documents_that_are_refused_are_told_in_the_engines_words() {
    let place = Place::new();
    let picky = Engine::start(Faults { bad_document: Some("s7"), ..Faults::default() });
    small(&place, &["--engine", &mine(&picky)]).expect(4);
    let record = record(&place);
    let reason = &reasons(&record)[0];
    assert!(reason.contains("1 of") && reason.contains("bad document"), "{reason}");
    assert_eq!(list(&record, "loads")[0]["failed"], 1);
    assert!(picky.indexes().is_empty(), "half an index was left: {:?}", picky.indexes());
}

#[test]
fn little_time_goes_by_outside_cells_and_where_it_went_is_told() {
    // Alone: what other tests take of the machine would look like waste.
    let (place, engine) = (Place::alone(), Engine::start(Faults::default()));
    let cell = ["--sizes", "100kB", "--duration", "2s", "--warmup", "500ms", "--users", "1,2"];
    let ended = search(&place, &[&["--engine", &mine(&engine)], &cell[..]].concat()).expect(0);
    let record = record(&place);
    let of = |name: &str| record.number(&format!("/search/time/{name}"));
    let outside = 1.0 - of("cells_s") / (of("total_s") - of("loading_s"));
    assert!(outside < 0.15, "{:.1} % outside cells: {}", outside * 100.0, ended.stdout);
    assert!((of("warming_s") - 1.0).abs() < 0.01 && of("waiting_s") <= of("loading_s"));
    let page = place.run(["report", "--verbose"]).expect(0).stdout;
    assert!(page.contains("warming up 1.0 s"), "{page}");
}

#[test]
fn the_embedded_server_is_started_probed_loaded_and_measured() {
    let place = Place::new();
    small(&place, &["--engine", "vespa-api", "--query-hits", "100", "--distance", "2"]).expect(0);
    let record = record(&place);
    record.expect_schema();
    for cell in cells(&record) {
        assert!(cell["ok_per_s"].as_f64().unwrap() > 0.0, "{cell}");
        assert!(cell["server_cpu_s"].as_f64().unwrap() >= 0.0);
    }
    let recall = list(&record, "recall");
    assert!(recall.iter().all(|one| one["found"] == one["expected"]), "{recall:?}");
    // It was left alone until it was done with what it had been given.
    assert!(list(&record, "loads")[0]["at_rest_s"].as_f64() >= Some(0.25));
    assert_eq!(list(&record, "loads")[0]["busy"], false);
    assert!(records(&place).pop().unwrap().join("engine-vespa-api.log").exists());
}

#[test]
fn the_embedded_ways_to_search_misspelt_words_are_told_apart() {
    let place = Place::new();
    let engines = ["--engine", "index", "--engine", "automaton", "--engine", "scan"];
    small(&place, &[&engines[..], &["--groups", "2x2,4x2"]].concat()).expect(0);
    let record = record(&place);
    record.expect_schema();
    for cell in cells(&record) {
        let beyond = cell["engine"] == "index" && cell["distance"] == 4;
        assert_eq!(cell["ok_per_s"].is_null(), beyond, "{cell}");
        let reason = cell["reason"].as_str().unwrap_or_default();
        assert_eq!(reason.contains("Valid edit distances are [0, 1, 2]"), beyond, "{reason}");
    }
    let recall = list(&record, "recall");
    let of = |engine: &str| {
        let own = recall.iter().filter(|one| one["engine"] == engine);
        own.map(|one| (one["found"].as_u64().unwrap(), one["expected"].as_u64().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("automaton").len(), 20);
    assert!(of("automaton").iter().all(|(found, expected)| found == expected), "{recall:?}");
    assert!(of("index").iter().all(|(found, expected)| found == expected), "{recall:?}");
    let loads = list(&record, "loads");
    assert!(loads.iter().all(|load| load["failed"] == 0 && load["shards"] == 2), "{loads:?}");
}

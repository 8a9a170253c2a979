//! What is known of an engine before its cells: how far it really searches, and what it answers.

use super::engine::{Engine, Faults};
use super::{cells, list, mine, record, search, small};
use crate::process::Place;

#[test]
fn a_distance_that_the_list_says_itself_is_probed_and_marked_too() {
    let (place, honest) = (Place::new(), Engine::start(Faults::default()));
    let clamped = Engine::start(Faults { clamp: Some(2), ..Faults::default() });
    place.file(
        "q.toml",
        "[[query]]\nname = \"far\"\nkind = \"fuzzy\"\ntext = \"harbour\"\ndistance = 7\nsize = 1\n\
         [[query]]\nname = \"near\"\nkind = \"fuzzy\"\ntext = \"harbour\"\nsize = 1\n",
    );
    let (honest, clamped) = (format!("honest={}", honest.url), format!("clamped={}", clamped.url));
    let engines = ["--engine", &honest, "--engine", &clamped, "--queries", "q.toml"];
    let cell = ["--sizes", "100kB", "--duration", "200ms", "--warmup", "0s", "--users", "1"];
    let distances = ["--distance", "1,8"];
    search(&place, &[&engines[..], &cell, &distances].concat()).expect(0);
    let record = record(&place);
    let clamps = |at: usize| {
        let marks = cells(&record)[at]["marks"].as_array().unwrap();
        let clamps =
            marks.iter().filter_map(|mark| mark.as_str()).filter(|m| m.contains("clamped"));
        clamps.map(str::to_owned).collect::<Vec<_>>()
    };
    // An engine that searches to 8 is not clamped, however far the probe's own words are.
    assert_eq!((clamps(0), clamps(1)), (vec![], vec![]));
    assert_eq!(clamps(2), ["clamped to 2 where 7 is asked"]);
    assert_eq!(clamps(3), ["clamped to 2 where 7 is asked", "clamped to 2"]);
}

#[test]
fn a_probe_that_came_to_nothing_marks_nothing_as_clamped() {
    let place = Place::new();
    // One of the planted words is not taken, and the reply is a 200.
    let picky = Engine::start(Faults { bad_document: Some("probe-4"), ..Faults::default() });
    let cell = ["--sizes", "100kB", "--duration", "200ms", "--warmup", "0s", "--users", "1"];
    let asked = ["--engine", &mine(&picky), "--distance", "4"];
    let ended = search(&place, &[&asked[..], &cell].concat()).expect(0);
    assert!(ended.stderr.contains("the probe's words could not be ingested"), "{}", ended.stderr);
    let record = record(&place);
    assert_eq!(cells(&record)[0]["marks"][0], "distance not probed");
    assert!(!ended.stdout.contains("clamped"), "{}", ended.stdout);
    assert!(picky.indexes().is_empty(), "{:?}", picky.indexes());
}

#[test]
fn half_an_answer_is_none_to_compare_by() {
    let place = Place::new();
    let late = Engine::start(Faults { time_out_every: Some(1), ..Faults::default() });
    small(&place, &["--engine", &mine(&late), "--distance", "2"]).expect(4);
    let record = record(&place);
    assert_eq!(list(&record, "answers").len(), 10);
    assert!(list(&record, "answers").iter().all(|answer| answer["hits"].is_null()));
    assert!(list(&record, "recall").is_empty(), "{:?}", list(&record, "recall"));
}

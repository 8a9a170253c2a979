//! `vespa visit` in all its forms, and how it compares with `plimsoll visit`.

use super::clients::{vespa, vespa_feed};
use super::sets::{Documents, add, dump, expect_equal, puts, read, some, visited};
use crate::process::{Ended, Place, Target, until};
use plimsoll_core::clock::wall_us;
use serde_json::{Value, json};
use std::time::Duration;

fn visit(place: &Place, target: &Target, flags: &[&str]) -> Ended {
    vespa(place, target, ["visit"].into_iter().chain(flags.iter().copied()))
}

/// A server with documents.
fn filled(place: &Place, count: usize) -> (Target, Documents) {
    let target = place.serve(&["search", "--durability", "async"]);
    let documents = some(count);
    place.file("feed.jsonl", puts(&documents));
    vespa_feed(place, &target, "feed.jsonl").expect_ok(count);
    (target, documents)
}

#[test]
fn every_form_of_visit_prints_every_document_once() {
    let place = Place::new();
    // Over 7 MB: many chunks, and more of each than one piece of a reply.
    let (target, documents) = filled(&place, 6000);
    let forms: [&[&str]; 7] = [
        &[],
        &["--stream"],
        // The command line gives a streamed visit up after five replies that end with a token; this server's
        // lines do not end before everything was said.
        &["--stream", "--chunk-count", "10"],
        &["--stream", "--header", "Accept: application/json"],
        &["--chunk-count", "77"],
        &["--chunk-count", "100000", "--content-cluster", "plimsoll"],
        &["--bucket-space", "default", "--content-cluster", "*", "--wait", "5"],
    ];
    for form in forms {
        expect_equal(&visited(&visit(&place, &target, form).expect(0)), &documents);
    }
    let ids: Documents = documents.keys().map(|id| (id.clone(), json!({}))).collect();
    let flags = ["--field-set", "[id]", "--stream"];
    expect_equal(&visited(&visit(&place, &target, &flags).expect(0)), &ids);
    let scores = documents.iter().map(|(id, fields)| (id, json!({"score": fields["score"]})));
    let scores: Documents = scores.map(|(id, fields)| (id.clone(), fields)).collect();
    let flags = ["--field-set", "doc:score", "--chunk-count", "2000"];
    expect_equal(&visited(&visit(&place, &target, &flags).expect(0)), &scores);
    let ended = visit(&place, &target, &["--bucket-space", "global"]).expect(0);
    assert_eq!(ended.stdout, "");
}

#[test]
fn slices_are_disjoint_and_together_what_plimsoll_visits() {
    let place = Place::new();
    let (target, documents) = filled(&place, 2500);
    for (slices, form) in [("2", &["--chunk-count", "200"][..]), ("5", &["--stream"])] {
        let mut union = Documents::new();
        for slice in 0..slices.parse().unwrap() {
            let id = slice.to_string();
            let flags = [&["--slices", slices, "--slice-id", &id][..], form].concat();
            let part = visited(&visit(&place, &target, &flags).expect(0));
            assert!(!part.is_empty());
            for (id, fields) in part {
                add(&mut union, Value::String(id), fields);
            }
        }
        expect_equal(&union, &documents);
        let (whole, record) = dump(&place, &target, &["--slices", slices]);
        expect_equal(&whole, &union);
        assert_eq!(record.count("/visit/duplicates"), 0);
    }
    // More slices than there are buckets leave some without documents, which is no error.
    let flags = ["--slices", "300", "--slice-id", "299"];
    assert_eq!(visit(&place, &target, &flags).expect(0).stdout, "");
    let wrong = visit(&place, &target, &["--slices", "2", "--slice-id", "2"]).expect(1);
    assert!(wrong.stderr.to_lowercase().contains("slice"), "{}", wrong.stderr);
}

#[test]
fn selections_choose_the_same_documents_in_both() {
    let place = Place::new();
    let (target, documents) = filled(&place, 600);
    let score = |fields: &Value| fields["score"].as_u64().unwrap();
    type Choice = fn(&str, u64, &Value) -> bool;
    let table: [(&str, Choice); 8] = [
        ("doc.score < 100 and not doc.score % 3 == 1", |_, n, _| n < 100 && n % 3 != 1),
        ("id.user == 6", |id, _, _| id.contains(":n=6:")),
        ("id.group == \"nobody\" or id.namespace == 'other'", |id, _, _| {
            id.starts_with("id:other:")
        }),
        ("doc.body == null", |_, _, fields| fields.get("body").is_none()),
        ("doc.title = \"document 1?? *\"", |_, n, _| (100..200).contains(&n)),
        ("doc.title =~ \"^document [45]\\\\d+ \"", |_, n, _| {
            n > 39 && n < 600 && ['4', '5'].contains(&n.to_string().chars().next().unwrap())
        }),
        ("id.specific == \"500\" or doc.score == 501", |id, n, _| n == 501 || id.ends_with(":500")),
        ("false", |_, _, _| false),
    ];
    for (selection, choice) in table {
        let expected: Documents = documents
            .iter()
            .filter(|(id, fields)| choice(id, score(fields), fields))
            .map(|(id, fields)| (id.clone(), fields.clone()))
            .collect();
        assert_eq!(expected.is_empty(), selection == "false", "{selection}");
        for form in ["--stream", "--json-lines"] {
            let ended = visit(&place, &target, &["--selection", selection, form]).expect(0);
            expect_equal(&visited(&ended), &expected);
        }
        let flags = ["--slices", "1", "--selection", selection];
        expect_equal(&dump(&place, &target, &flags).0, &expected);
    }
    for form in ["--stream", "--json-lines"] {
        let wrong = visit(&place, &target, &["--selection", "doc.score >", form]).expect(1);
        assert!(wrong.stderr.contains("400"), "{}", wrong.stderr);
    }
    let wrong = visit(&place, &target, &["--content-cluster", "other"]).expect(1);
    assert!(wrong.stderr.contains("no content cluster"), "{}", wrong.stderr);
    let wrong = visit(&place, &target, &["--field-set", "doc:nosuch"]).expect(1);
    assert!(wrong.stderr.contains("No such field nosuch"), "{}", wrong.stderr);
}

fn now_s() -> u64 {
    wall_us() / 1_000_000
}

#[test]
fn times_of_writing_cut_where_they_should() {
    let place = Place::new();
    let (target, early) = filled(&place, 200);
    let second = now_s() + 1;
    until("the next second", Duration::from_secs(5), || now_s() >= second);
    let late: Documents =
        (0..50).map(|n| (format!("id:plimsoll:doc::late {n}"), json!({"title": "late"}))).collect();
    place.file("late.jsonl", puts(&late));
    vespa_feed(&place, &target, "late.jsonl").expect_ok(50);
    let second = second.to_string();
    for form in ["--stream", "--json-lines"] {
        let from = visit(&place, &target, &["--from", &second, form]).expect(0);
        expect_equal(&visited(&from), &late);
        let to = visit(&place, &target, &["--to", &second, form]).expect(0);
        expect_equal(&visited(&to), &early);
        let neither = ["--from", &second, "--to", &second, form];
        assert_eq!(visit(&place, &target, &neither).expect(0).stdout, "");
    }
    expect_equal(&dump(&place, &target, &["--from", &second, "--slices", "2"]).0, &late);
}

#[test]
fn what_visit_makes_can_be_fed() {
    let place = Place::new();
    let (target, documents) = filled(&place, 900);
    for form in ["--stream", "--json-lines"] {
        let made = visit(&place, &target, &["--make-feed", form]).expect(0);
        place.file("made.json", &made.stdout);
        let other = place.serve(&["search", "--durability", "none"]);
        vespa_feed(&place, &other, "made.json").expect_ok(900);
        expect_equal(&dump(&place, &other, &["--slices", "4"]).0, &documents);
    }
    let pretty = visit(&place, &target, &["--pretty-json", "--chunk-count", "50"]).expect(0);
    let parsed = serde_json::Deserializer::from_str(&pretty.stdout).into_iter::<Value>();
    let lines: Vec<String> = parsed.map(|one| one.unwrap().to_string()).collect();
    expect_equal(&read(lines.iter().map(String::as_str), "id"), &documents);
}

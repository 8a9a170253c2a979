//! Real documents there and back, fifty thousand of them: fed by one program, dumped by another, and the same.

use super::clients::{Fed, vespa};
use super::sets::{Documents, add, dump, expect_equal, puts, visited};
use crate::process::{Place, Target};
use serde_json::Value;

const COUNT: usize = 50_000;

/// The first documents of the bundled corpus, as those of `plimsoll corpus write --format feed`.
fn corpus(place: &Place, count: usize) -> Documents {
    let count = count.to_string();
    let args = ["corpus", "write", "--format", "feed", "--limit", &count, "--out", "corpus.ndjson"];
    place.run(args).expect(0);
    let mut documents = Documents::new();
    for line in place.read("corpus.ndjson").lines() {
        let mut request: Value = serde_json::from_str(line).unwrap();
        let path = request["path"].as_str().unwrap();
        let name = path.strip_prefix("/document/v1/plimsoll/doc/docid/").unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{name} has to be decoded");
        let id = format!("id:plimsoll:doc::{name}");
        add(&mut documents, Value::String(id), request["body"]["fields"].take());
    }
    assert_eq!(documents.len().to_string(), count);
    documents
}

/// Feeds with `feed` and dumps with `plimsoll visit`, then feeds the dump into an empty server.
fn there_and_back(count: usize, feed: impl Fn(&Place, &Target, &str)) {
    let place = Place::new();
    let documents = corpus(&place, count);
    place.file("corpus.jsonl", puts(&documents));
    let target = place.serve(&["search", "--durability", "async"]);
    feed(&place, &target, "corpus.jsonl");
    let (dumped, record) = dump(&place, &target, &["--slices", "8"]);
    expect_equal(&dumped, &documents);
    let digest = record.text("/visit/id_digest");
    // What the other program reads, as a whole and in its own slices.
    expect_equal(&visited(&vespa(&place, &target, ["visit"]).expect(0)), &documents);
    let mut union = Documents::new();
    for slice in ["0", "1", "2"] {
        let form = if slice == "1" { "--json-lines" } else { "--stream" };
        let args = ["visit", "--slices", "3", "--slice-id", slice, form];
        for (id, fields) in visited(&vespa(&place, &target, args).expect(0)) {
            add(&mut union, Value::String(id), fields);
        }
    }
    expect_equal(&union, &documents);
    let args = ["visit", &target.url, "--slices", "8", "--format", "vespa-feed", "--no-record"];
    let out = ["--cluster", "plimsoll", "--quiet", "--out", "dump.jsonl"];
    place.run(args.into_iter().chain(out)).expect(0);
    drop(target);
    let second = place.serve(&["search", "--durability", "async"]);
    feed(&place, &second, "dump.jsonl");
    let (again, record) = dump(&place, &second, &["--slices", "8"]);
    expect_equal(&again, &documents);
    assert_eq!(record.text("/visit/id_digest"), digest);
}

#[test]
fn fed_by_vespa_dumped_by_plimsoll_and_the_other_way_round() {
    there_and_back(COUNT, |place, target, file| {
        // Left to itself it takes seconds to find out how much it may have under way.
        let ended = vespa(place, target, ["feed", "--inflight", "1000", file]).expect(0);
        Fed::of(&ended).expect_ok(COUNT);
    });
}

#[test]
fn fed_by_plimsoll_it_is_the_same() {
    there_and_back(5000, |place, target, file| {
        let ended = place.run(["feed", &target.url, file, "--no-record"]).expect(0);
        assert!(ended.stdout.contains("all 5,000 operations"), "{}", ended.stdout);
    });
}

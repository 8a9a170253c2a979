//! What survives which end.

use super::*;
use std::fs;

/// The files as a killed process leaves them: a copy made while the server runs.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else if fs::copy(entry.path(), &target).is_err() {
            // Merged segments go while they are copied; the index is made anew without them.
            continue;
        }
    }
}

/// The folders of the shards.
fn logs(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for index in fs::read_dir(folder.join("elastic")).unwrap() {
        for shard in fs::read_dir(index.unwrap().path()).unwrap() {
            let log = shard.unwrap().path().join("documents.log");
            if log.exists() {
                found.push(log);
            }
        }
    }
    found
}

fn check(es: &mut Elastic, documents: usize) {
    es.ok("POST", "/k/_refresh", &Json::Null);
    let expected: Vec<String> = (0..documents).map(|i| format!("{i:04}")).collect();
    let everything = es.ids("k", &json!({"match_all": {}}));
    assert_eq!(everything, expected);
    assert_eq!(es.ids("k", &json!({"match": {"t": "old"}})), Vec::<String>::new());
    assert_eq!(es.ids("k", &json!({"match": {"t": "new"}})), expected);
    assert_eq!(es.ok("GET", "/k/_doc/0007", &Json::Null)["_version"], 2);
    assert_eq!(es.ask("GET", "/k/_doc/gone", &Json::Null).0, 404);
    assert_eq!(es.ids("k", &json!({"term": {"extra.keyword": "late"}})), ["0001"]);
}

#[test]
fn nothing_acknowledged_is_lost_with_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let killed = folder.path().join("killed");
    let live = folder.path().join("live");
    let running = server(&live, FuzzyMode::Index);
    let mut es = Elastic::new(&running);
    let settings = json!({"settings": {"number_of_shards": 3, "refresh_interval": "-1"}});
    es.ok("PUT", "/k", &settings);
    let documents: Vec<_> = (0..300).map(|i| json!({"t": format!("old {i}"), "i": i})).collect();
    es.load("k", documents.iter().enumerate().map(|(i, d)| (format!("{i:04}"), d)));
    // From here on nothing is in the text index.
    for i in 0..300 {
        let document = json!({"t": format!("new {i}"), "i": i});
        es.ok("PUT", &format!("/k/_doc/{i:04}"), &document);
    }
    es.ok("PUT", "/k/_doc/gone", &json!({"t": "new"}));
    es.ok("DELETE", "/k/_doc/gone", &Json::Null);
    es.ok("POST", "/k/_update/0001", &json!({"doc": {"extra": "late"}}));
    copy(&live, &killed);
    check(&mut es, 300);
    running.stop();
    // An orderly end, and a start from it.
    let again = server(&live, FuzzyMode::Index);
    check(&mut Elastic::new(&again), 300);
    drop(again);
    // What was being written at the moment of the end is cut off.
    for log in logs(&killed) {
        let mut bytes = fs::read(&log).unwrap();
        bytes.extend_from_slice(&[9; 70]);
        fs::write(&log, bytes).unwrap();
    }
    let after = server(&killed, FuzzyMode::Index);
    let mut es = Elastic::new(&after);
    check(&mut es, 300);
    let version = es.ok("PUT", "/k/_doc/0001", &json!({"t": "new", "extra": "late"}));
    assert_eq!(version["_version"], 4);
}

#[test]
fn fields_beyond_the_first_block_of_columns_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..60).map(|i| format!("f{i}")).collect();
    let mut expected = Vec::new();
    {
        let server = server(folder.path(), FuzzyMode::Index);
        let mut es = Elastic::new(&server);
        es.ok("PUT", "/w", &json!({"settings": {"number_of_shards": 2}}));
        for (i, name) in names.iter().enumerate() {
            let id = format!("{i:02}");
            es.load("w", [(id.clone(), &json!({name: format!("word{i} common"), "n": {name: i}}))]);
            expected.push(id);
        }
    }
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    for (i, name) in names.iter().enumerate() {
        assert_eq!(es.ids("w", &json!({"match": {name: format!("word{i}")}})), [format!("{i:02}")]);
        let range = json!({"range": {format!("n.{name}"): {"gte": i, "lte": i}}});
        assert_eq!(es.ids("w", &range), [format!("{i:02}")]);
        assert_eq!(es.ids("w", &json!({"exists": {"field": name}})), [format!("{i:02}")]);
    }
    let all = es.ids("w", &json!({"multi_match": {"query": "common", "fields": ["f*"]}}));
    assert_eq!(all, expected);
}

#[test]
fn a_text_index_that_is_not_whole_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let documents: Vec<_> = (0..20).map(|i| json!({"t": format!("word{i}")})).collect();
    let running = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&running);
    es.load("w", documents.iter().enumerate().map(|(i, d)| (format!("{i:02}"), d)));
    running.stop();
    // The end came while the folder was taken away, whose list of segments goes last.
    let mut gone = 0;
    for log in logs(folder.path()) {
        for file in fs::read_dir(log.with_file_name("text")).unwrap() {
            let file = file.unwrap().path();
            if file.file_stem().is_some_and(|stem| stem.len() == 32) {
                fs::remove_file(file).unwrap();
                gone += 1;
            }
        }
    }
    assert!(gone > 0);
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    for i in 0..20 {
        assert_eq!(es.ids("w", &json!({"match": {"t": format!("word{i}")}})), [format!("{i:02}")]);
    }
}

#[test]
fn a_text_index_of_an_older_form_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let running = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&running);
    es.load("w", [("1".to_owned(), &json!({"t": "word"}))]);
    running.stop();
    for log in logs(folder.path()) {
        // What is said of the form is cut off, and the words are gone: nothing of it can be used.
        let text = log.with_file_name("text");
        let meta = fs::read_to_string(text.join("meta.json")).unwrap();
        let mut meta: Json = serde_json::from_str(&meta).unwrap();
        let payload = meta["payload"].as_str().unwrap();
        meta["payload"] = payload.rsplit_once(':').unwrap().0.into();
        fs::write(text.join("meta.json"), meta.to_string()).unwrap();
        for file in fs::read_dir(&text).unwrap() {
            let file = file.unwrap().path();
            if file.extension().is_some_and(|extension| extension == "term") {
                fs::write(file, b"of another form").unwrap();
            }
        }
    }
    let server = server(folder.path(), FuzzyMode::Index);
    assert_eq!(Elastic::new(&server).ids("w", &json!({"match": {"t": "word"}})), ["1"]);
}

#[test]
fn a_version_stays_that_came_with_the_end_of_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let settings = json!({"settings": {"number_of_shards": 1, "refresh_interval": "-1"}});
    es.ok("PUT", "/v", &settings);
    let all = json!({"match_all": {}});
    for round in 0..4 {
        // Both are replaced within what one refresh shows and across them; one is gone in between.
        for text in ["first", "second"] {
            es.ok("PUT", "/v/_doc/a", &json!({"t": format!("{text} {round}")}));
            es.ok("PUT", "/v/_doc/b", &json!({"t": text}));
            es.ok("DELETE", "/v/_doc/b", &Json::Null);
            es.ok("PUT", "/v/_doc/c", &json!({"t": text}));
            if text == "first" && round % 2 == 0 {
                es.ok("POST", "/v/_refresh", &Json::Null);
                assert_eq!(es.ids("v", &all), ["a", "c"]);
            }
        }
        es.ok("DELETE", "/v/_doc/c", &Json::Null);
        es.ok("POST", "/v/_refresh", &Json::Null);
        assert_eq!(es.ids("v", &all), ["a"]);
        assert_eq!(es.ids("v", &json!({"match": {"t": "first"}})), Vec::<String>::new());
        assert_eq!(es.ids("v", &json!({"match": {"t": format!("second {round}")}})), ["a"]);
        assert_eq!(es.ids("v", &json!({"ids": {"values": ["b", "c"]}})), Vec::<String>::new());
    }
}

#[test]
fn all_are_replaced_at_once_or_a_few_of_many() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    es.ok("PUT", "/r", &json!({"settings": {"number_of_shards": 1, "refresh_interval": "-1"}}));
    let of = |round: usize| json!({"t": format!("round{round}")});
    let mut newest = vec![0; 400];
    let rounds = [(0..400), (0..400), (7..9), (399..400), (0..200), (100..400)];
    for (round, changed) in rounds.into_iter().enumerate() {
        let document = of(round);
        es.load("r", changed.clone().map(|n| (format!("id{n}"), &document)));
        // Some of them once more before anybody sees them.
        es.load("r", changed.clone().step_by(3).map(|n| (format!("id{n}"), &document)));
        newest[changed].fill(round);
        es.ok("POST", "/r/_refresh", &Json::Null);
        for seen in 0..=round {
            let expected = newest.iter().filter(|newest| **newest == seen).count();
            let query = json!({"query": {"match": {"t": format!("round{seen}")}}});
            let reply = es.ok("POST", "/r/_count", &query);
            assert_eq!(reply["count"], expected, "round {seen} after {round}");
        }
        let reply = es.ok("POST", "/r/_count", &Json::Null);
        assert_eq!(reply["count"], 400, "after {round}");
    }
}

/// Documents of which nothing is indexed, 20 KB each.
fn large(round: usize) -> Vec<(String, Json)> {
    let text = "x".repeat(20_000);
    let document = |i: usize| (format!("{i:04}"), json!({"round": round, "text": text, "i": i}));
    (0..100).map(document).collect()
}

fn log_bytes(folder: &Path) -> u64 {
    logs(folder).iter().map(|log| fs::metadata(log).unwrap().len()).sum()
}

/// All documents are there once, as they were written in this round; by search, by id and by number.
fn check_large(es: &mut Elastic, round: usize) {
    es.ok("POST", "/b/_refresh", &Json::Null);
    let found = es.ok("POST", "/b/_search", &json!({"size": 200, "sort": ["_doc"]}));
    let hits = found["hits"]["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 99);
    for hit in hits {
        assert_eq!(hit["_source"]["round"], round, "{}", hit["_id"]);
        assert_eq!(hit["_source"]["i"], hit["_id"].as_str().unwrap().parse::<usize>().unwrap());
    }
    for i in [0, 57, 99] {
        let got = es.ok("GET", &format!("/b/_doc/{i:04}"), &Json::Null);
        assert_eq!(
            (&got["_source"]["round"], &got["_version"]),
            (&json!(round), &json!(round + 1))
        );
    }
    assert_eq!(es.ask("GET", "/b/_doc/0042", &Json::Null).0, 404);
    assert_eq!(es.ok("GET", "/b/_count", &Json::Null)["count"], 99);
}

#[test]
fn the_log_stays_a_multiple_of_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (live, killed) = (folder.path().join("live"), folder.path().join("killed"));
    let running = server(&live, FuzzyMode::Index);
    let mut es = Elastic::new(&running);
    let settings =
        json!({"settings": {"refresh_interval": "100ms"}, "mappings": {"dynamic": false}});
    es.ok("PUT", "/b", &settings);
    let mut most = 0;
    for round in 0..30 {
        let documents = large(round);
        es.load("b", documents.iter().map(|(id, document)| (id.clone(), document)));
        es.ok("DELETE", "/b/_doc/0042", &Json::Null);
        most = most.max(log_bytes(&live));
        if round % 7 == 3 {
            // As a process leaves the files that is killed now, in the middle of whatever it does.
            let _ = fs::remove_dir_all(&killed);
            copy(&live, &killed);
            let after = server(&killed, FuzzyMode::Index);
            check_large(&mut Elastic::new(&after), round);
        }
        check_large(&mut es, round);
    }
    // 60 MB were written; 2 MB are there.
    assert!(most < 36 << 20, "{most}");
    running.stop();
    let again = server(&live, FuzzyMode::Index);
    check_large(&mut Elastic::new(&again), 29);
    assert!(log_bytes(&live) < 20 << 20);
}

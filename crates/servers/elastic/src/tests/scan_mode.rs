//! Scans of the text: substrings with errors, through the API.

use super::*;

fn phrase(field: &str, text: &str, fuzziness: u64) -> Json {
    json!({"match_phrase": {field: {"query": text, "fuzziness": fuzziness}}})
}

fn load(es: &mut Elastic) {
    es.ok("PUT", "/r", &json!({"settings": {"number_of_shards": 2}}));
    let documents = [
        json!({"body": "Let us Make America Great Again!", "subreddit": "politics"}),
        json!({"body": "make amerca grate again", "subreddit": "politics"}),
        json!({"body": ["one value: make america", "great again is another"]}),
        json!({"body": "unrelated café talk", "subreddit": "coffee"}),
        json!({"body": "hypergovernmental words", "subreddit": "words"}),
    ];
    es.load("r", documents.iter().enumerate().map(|(at, one)| (at.to_string(), one)));
}

/// What the loaded documents must give, in whatever server they are.
fn check(es: &mut Elastic) {
    let wanted = "make america great again";
    assert_eq!(es.ids("r", &phrase("body", wanted, 1)), ["0"]);
    assert_eq!(es.ids("r", &phrase("body", wanted, 2)), ["0"]);
    assert_eq!(es.ids("r", &phrase("body", wanted, 4)), ["0", "1"]);
    // Without errors the index answers: word after word.
    assert_eq!(es.ids("r", &phrase("body", "great again", 0)), ["0", "2"]);
    // Each word is a substring of its own.
    let words = json!({"match": {"body": {"query": "gavernment wrds", "fuzziness": 1,
        "operator": "and"}}});
    assert_eq!(es.ids("r", &words), ["4"]);
    let fuzzy = |metric: &str, value: &str| json!({"fuzzy": {"body": {"value": value, "fuzziness": 1, "metric": metric}}});
    assert_eq!(es.ids("r", &fuzzy("edits", "cafe tlk")), Vec::<String>::new());
    assert_eq!(es.ids("r", &fuzzy("edits", "cafe talk")), ["3"]);
    assert_eq!(es.ids("r", &fuzzy("hamming", "cafe talk")), ["3"]);
    assert_eq!(es.ids("r", &fuzzy("edits", "amerca ")), ["0", "1"]);
    assert_eq!(es.ids("r", &fuzzy("hamming", "amerca ")), ["1"]);
    let both = json!({"bool": {
        "must": [phrase("body", "america", 1)],
        "must_not": [phrase("body", "let us", 1)],
        "filter": [{"term": {"subreddit.keyword": "politics"}}],
    }});
    assert_eq!(es.ids("r", &both), ["1"]);
}

#[test]
fn scans_find_substrings_with_errors_and_combine_with_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Scan);
    let mut es = Elastic::new(&server);
    load(&mut es);
    check(&mut es);
    // A new version takes the place of the old one, also where the old text is still read.
    es.load("r", [("1".to_owned(), &json!({"body": "nothing of the kind"}))]);
    assert_eq!(es.ids("r", &phrase("body", "make america great again", 4)), ["0"]);
    assert_eq!(es.ids("r", &phrase("body", "nothng of teh kind", 3)), ["1"]);
    es.ok("DELETE", "/r/_doc/0?refresh=true", &Json::Null);
    assert_eq!(es.ids("r", &phrase("body", "make america great", 1)), Vec::<String>::new());
    // Of many edits nearly everything is a match.
    assert_eq!(es.ids("r", &phrase("body", "xyz", 3)), ["1", "2", "3", "4"]);
}

#[test]
fn the_text_is_read_again_when_the_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    for mode in [FuzzyMode::Index, FuzzyMode::Scan, FuzzyMode::Scan] {
        let server = server(folder.path(), mode);
        let mut es = Elastic::new(&server);
        if mode == FuzzyMode::Index {
            load(&mut es);
        } else {
            check(&mut es);
        }
        drop(es);
        drop(server);
    }
}

#[test]
fn an_index_that_is_made_anew_keeps_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Scan);
    let mut es = Elastic::new(&server);
    load(&mut es);
    let fields: serde_json::Map<String, Json> =
        (0..200).map(|at| (format!("field{at}"), json!(format!("value {at}")))).collect();
    es.load("r", [("9".to_owned(), &Json::Object(fields))]);
    check(&mut es);
    assert_eq!(es.ids("r", &phrase("field150", "valeu 150", 2)), ["9"]);
}

#[test]
fn what_is_no_metric_is_refused_and_only_scans_have_one() {
    for (mode, metric, reason) in [
        (FuzzyMode::Scan, "cosine", "[metric] is \"edits\" or \"hamming\", not [\"cosine\"]"),
        (FuzzyMode::Index, "hamming", "[match] query does not support [metric]"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let server = server(folder.path(), mode);
        let mut es = Elastic::new(&server);
        load(&mut es);
        let query = json!({"match": {"body": {"query": "x", "fuzziness": 1, "metric": metric}}});
        let (status, json) = es.ask("POST", "/r/_search", &json!({"query": query}));
        assert_eq!(status, 400, "{json}");
        assert_eq!(json["error"]["reason"], reason);
    }
}

#[test]
fn a_scan_that_is_not_done_in_time_is_timed_out() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Scan);
    let mut es = Elastic::new(&server);
    let text = "all work and no play makes a dull text. ".repeat(25_000);
    let document = json!({ "t": text });
    for _ in 0..2 {
        es.load("big", (0..8).map(|at| (at.to_string(), &document)));
    }
    let body = json!({"query": phrase("t", "not a word of this is there", 9), "timeout": "1ms"});
    let json = es.ok("POST", "/big/_search", &body);
    assert_eq!(json["timed_out"], true, "{json}");
    let body = json!({"query": phrase("t", "not a word of this is there", 9), "timeout": "50s"});
    let json = es.ok("POST", "/big/_search", &body);
    assert_eq!((&json["timed_out"], &json["hits"]["total"]["value"]), (&json!(false), &json!(0)));
}

#[test]
fn what_cannot_be_looked_for_is_the_request_s_fault() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Scan);
    let mut es = Elastic::new(&server);
    load(&mut es);
    for value in [String::new(), "x".repeat(5000)] {
        let query = json!({"fuzzy": {"body": {"value": value, "fuzziness": 1}}});
        let (status, json) = es.ask("POST", "/r/_search", &json!({"query": query}));
        assert_eq!(status, 400, "{json}");
        let reason = json["error"]["root_cause"][0]["reason"].as_str().unwrap();
        assert!(reason.starts_with("field [body]: the pattern "), "{reason}");
    }
    assert_eq!(es.ids("r", &phrase("body", "", 1)), Vec::<String>::new());
}

//! Mappings: what may change, and what must not come of it.

use super::*;

fn mapping(es: &mut Elastic, index: &str) -> Json {
    es.ok("GET", &format!("/{index}/_mapping"), &Json::Null)[index]["mappings"].clone()
}

#[test]
fn documents_stay_readable_whatever_the_mapping_becomes() {
    let folder = tempfile::tempdir().unwrap();
    for mode in [FuzzyMode::Index, FuzzyMode::Scan] {
        let folder = folder.path().join(format!("{mode:?}"));
        let running = server(&folder, mode);
        let mut es = Elastic::new(&running);
        es.ok(
            "PUT",
            "/m",
            &json!({"mappings": {"dynamic": false,
            "properties": {"t": {"type": "text"}}}}),
        );
        let document = json!({"t": "kept", "later": {"an": "object"}, "unknown": 1});
        es.load("m", [("0".to_owned(), &document)]);
        // What the old document has goes with none of this.
        es.ok(
            "PUT",
            "/m/_mapping",
            &json!({"dynamic": "strict", "properties": {
            "later": {"type": "long"}}}),
        );
        // More columns than there are: the text index is made anew from the log.
        let more: serde_json::Map<String, Json> =
            (0..30).map(|at| (format!("n{at}"), json!({"type": "long"}))).collect();
        es.ok("PUT", "/m/_mapping", &json!({ "properties": more }));
        es.load("m", [("1".to_owned(), &json!({"t": "kept", "n29": 5}))]);
        assert_eq!(es.ids("m", &json!({"match": {"t": "kept"}})), ["0", "1"]);
        running.stop();
        let running = server(&folder, mode);
        let mut es = Elastic::new(&running);
        assert_eq!(es.ids("m", &json!({"match": {"t": "kept"}})), ["0", "1"]);
        assert_eq!(es.ok("GET", "/m/_doc/0", &Json::Null)["_source"], document);
        let (status, error) = es.ask("PUT", "/m/_doc/2", &json!({"unknown": 1}));
        assert_eq!(
            (status, &error["error"]["type"]),
            (400, &json!("strict_dynamic_mapping_exception"))
        );
    }
}

#[test]
fn what_is_fixed_about_a_field_stays() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let properties = json!({"properties": {
        "d": {"type": "date", "format": "epoch_second"}, "k": {"type": "keyword"}}});
    es.ok("PUT", "/f", &json!({ "mappings": properties }));
    es.ok("PUT", "/f/_mapping", &properties);
    es.ok(
        "PUT",
        "/f/_mapping",
        &json!({"properties": {"k": {"type": "keyword", "ignore_above": 9}}}),
    );
    for (field, options, told) in [
        (
            "d",
            json!({"type": "date"}),
            "[format] from [epoch_second] to [strict_date_optional_time||epoch_millis]",
        ),
        ("k", json!({"type": "keyword", "index": false}), "[index] from [true] to [false]"),
        (
            "k",
            json!({"type": "keyword", "doc_values": false}),
            "[doc_values] from [true] to [false]",
        ),
    ] {
        let (status, error) =
            es.ask("PUT", "/f/_mapping", &json!({"properties": {field: options}}));
        assert_eq!(status, 400);
        let wanted = format!(
            "Mapper for [{field}] conflicts with existing mapper:\n\tCannot update parameter {told}"
        );
        assert_eq!(error["error"]["reason"], wanted);
    }
    assert_eq!(mapping(&mut es, "f")["properties"]["d"]["format"], "epoch_second");
}

#[test]
fn a_document_that_is_refused_leaves_no_field() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let (status, _) = es.ask("PUT", "/p/_doc/1", &json!({"a": [1, "word"], "b": "c"}));
    assert_eq!(status, 400);
    assert!(mapping(&mut es, "p").get("properties").is_none());
    es.ok("PUT", "/p/_doc/1?refresh=true", &json!({"a": "word"}));
    assert_eq!(es.ids("p", &json!({"match": {"a": "word"}})), ["1"]);
}

#[test]
fn a_name_of_many_dots_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let name = vec!["a"; 400_000].join(".");
    let (status, error) = es.ask("PUT", "/n/_doc/1", &json!({ &name: 1 }));
    assert_eq!(status, 400);
    let reason = error["error"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("Limit of mapping depth [20] has been exceeded"), "{reason}");
    let properties = json!({"mappings": {"properties": { &name: {"type": "long"} }}});
    assert_eq!(es.ask("PUT", "/n2", &properties).0, 400);
    es.load("n", [("1".to_owned(), &json!({"a.b": 1}))]);
    assert_eq!(es.ids("n", &json!({"term": {"a.b": 1}})), ["1"]);
}

#[test]
fn keywords_that_are_numbers_are_found_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    es.ok("PUT", "/k", &json!({"mappings": {"properties": {"version": {"type": "keyword"}}}}));
    es.load(
        "k",
        [("1".to_owned(), &json!({"version": 2.0})), ("2".to_owned(), &json!({"version": 2}))],
    );
    assert_eq!(es.ids("k", &json!({"term": {"version": 2.0}})), ["1"]);
    assert_eq!(es.ids("k", &json!({"term": {"version": "2"}})), ["2"]);
}

#[test]
fn texts_that_look_like_dates_are_dates_only_where_they_may() {
    let folder = tempfile::tempdir().unwrap();
    let running = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&running);
    let document = json!({"iso": "2020-01-02T03:04:05Z", "spaced": "2020-01-02 03:04:05"});
    es.load("d", [("1".to_owned(), &document)]);
    let properties = &mapping(&mut es, "d")["properties"];
    assert_eq!(
        (&properties["iso"]["type"], &properties["spaced"]["type"]),
        (&json!("date"), &json!("text"))
    );
    assert_eq!(es.ids("d", &json!({"term": {"spaced.keyword": "2020-01-02 03:04:05"}})), ["1"]);
    es.ok("PUT", "/off", &json!({"mappings": {"date_detection": false}}));
    running.stop();
    let running = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&running);
    es.load("off", [("1".to_owned(), &document)]);
    let shown = mapping(&mut es, "off");
    assert_eq!(shown["properties"]["iso"]["type"], "text");
    assert_eq!(shown["date_detection"], false);
}

//! Sources by mappings.

use super::*;
use serde_json::json;
use tantivy::schema::Value;

fn texts(mapping: &Mapping, read: &Read, path: &str) -> Vec<String> {
    let field = mapping.field(path).unwrap().mapped.field;
    let values = read.document.get_all(field);
    values
        .map(|value| {
            let text = value.as_str().map(ToOwned::to_owned);
            let text = text.or_else(|| value.as_i64().map(|v| v.to_string()));
            text.or_else(|| value.as_f64().map(|v| v.to_string())).unwrap()
        })
        .collect()
}

#[test]
fn unknown_fields_are_told_and_then_read() {
    let source = br#"{"a":"x","b":{"c":[1,2],"d":1.5},"e.f":true,"g":null,"h":"2020-01-02"}"#;
    let mut mapping = Mapping::default();
    let first = read(&mapping, source, "1").unwrap();
    for missing in &first.missing {
        mapping.add_dynamic(missing).unwrap();
    }
    let second = read(&mapping, source, "1").unwrap();
    assert!(second.missing.is_empty());
    assert_eq!(texts(&mapping, &second, "a"), ["x"]);
    assert_eq!(texts(&mapping, &second, "a.keyword"), ["x"]);
    assert_eq!(texts(&mapping, &second, "b.c"), ["1", "2"]);
    assert_eq!(texts(&mapping, &second, "b.d"), ["1.5"]);
    assert_eq!(texts(&mapping, &second, "e.f"), ["1"]);
    let kinds: Vec<_> = first.missing.iter().map(|one| (&*one.path, one.kind)).collect();
    assert!(kinds.contains(&("h", Kind::Date)), "{kinds:?}");
}

#[test]
fn paths_of_fields_are_bounded() {
    let inner: serde_json::Map<_, _> = (0..900).map(|n| (n.to_string(), json!(1))).collect();
    let long = json!({ "x".repeat(100_000): inner }).to_string();
    let error = read(&Mapping::default(), long.as_bytes(), "1").err().unwrap();
    assert!(error.reason.contains("longer than the limit of [8192]"), "{}", error.reason);
    let mapped = json!({ "properties": { "x".repeat(9000): { "type": "long" } } });
    let error = Mapping::default().merge(&mapped).unwrap_err();
    assert!(error.reason.contains("longer than the limit of [8192]"), "{}", error.reason);
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut mapping = Mapping::default();
    let properties = json!({"properties": {
        "n": {"type": "byte"}, "t": {"type": "text"}, "o": {"properties": {
            "k": {"type": "keyword", "ignore_above": 3}}}}, "dynamic": "strict"});
    mapping.merge(&properties).unwrap();
    for bad in [
        r#"{"n":128}"#,
        r#"{"n":"x"}"#,
        r#"{"n":true}"#,
        r#"{"t":{"x":1}}"#,
        r#"{"o":1}"#,
        r#"{"new":1}"#,
        r#"{"t":"#,
        "[]",
        "",
    ] {
        assert!(read(&mapping, bad.as_bytes(), "1").is_err(), "{bad}");
    }
    let good = read(&mapping, br#"{"n":"7","o":{"k":["abcd","abc"]},"t":5}"#, "1").unwrap();
    assert_eq!(texts(&mapping, &good, "o.k"), ["abc"]);
    assert_eq!(texts(&mapping, &good, "n"), ["7"]);
    assert_eq!(texts(&mapping, &good, "t"), ["5"]);
}

#[test]
fn a_real_number_is_a_keyword_as_it_is_written() {
    let mut mapping = Mapping::default();
    mapping.merge(&json!({"properties": {"k": {"type": "keyword"}}})).unwrap();
    let good = read(&mapping, br#"{"k":[1.0, 2, 2.5, -3.0]}"#, "1").unwrap();
    assert_eq!(texts(&mapping, &good, "k"), ["1.0", "2", "2.5", "-3.0"]);
}

#[test]
fn what_cannot_be_searched_is_in_its_column_all_the_same() {
    let mut mapping = Mapping::default();
    let off = |kind: &str| json!({"type": kind, "index": false});
    let nowhere = json!({"type": "long", "index": false, "doc_values": false});
    let properties =
        json!({"t": off("text"), "k": off("keyword"), "n": off("long"), "nowhere": nowhere});
    mapping.merge(&json!({ "properties": properties })).unwrap();
    let read = read(&mapping, br#"{"t":"x","k":"y","n":1,"nowhere":1}"#, "1").unwrap();
    for (path, wanted) in [("t", vec![]), ("k", vec!["y"]), ("n", vec!["1"]), ("nowhere", vec![])] {
        assert_eq!(texts(&mapping, &read, path), wanted, "{path}");
    }
}

#[test]
fn numbers_must_have_room_in_their_field() {
    let mut mapping = Mapping::default();
    let properties = json!({"properties": {"f": {"type": "float"}, "h": {"type": "half_float"}}});
    mapping.merge(&properties).unwrap();
    assert!(read(&mapping, br#"{"f":3e38,"h":65504}"#, "1").is_ok());
    for bad in [&br#"{"f":1e39}"#[..], br#"{"f":"-1e39"}"#, br#"{"h":65520}"#] {
        assert!(read(&mapping, bad, "1").is_err());
    }
}

#[test]
fn what_is_not_text_is_refused_also_where_nobody_looks() {
    let mut mapping = Mapping::default();
    mapping.merge(&json!({"dynamic": false})).unwrap();
    assert!(read(&mapping, b"{\"a\":\"ok\"}", "1").is_ok());
    assert!(read(&mapping, b"{\"a\":\"\xff\"}", "1").is_err());
}

#[test]
fn dates_are_found_in_the_forms_that_elasticsearch_takes_for_dates() {
    let source = br#"{"a":"2020-01","b":"2020/01/02","c":"2020-01-02 10:00:00","d":"2020"}"#;
    let mut mapping = Mapping::default();
    for missing in &read(&mapping, source, "1").unwrap().missing {
        mapping.add_dynamic(missing).unwrap();
    }
    let kind = |mapping: &Mapping, path: &str| mapping.field(path).unwrap().kind;
    assert_eq!(
        ["a", "b", "c", "d"].map(|path| kind(&mapping, path)),
        [Kind::Date, Kind::Date, Kind::Text, Kind::Text]
    );
    let shown = mapping.to_json();
    let format = "yyyy/MM/dd HH:mm:ss||yyyy/MM/dd||epoch_millis";
    assert_eq!(shown["properties"]["b"], json!({"type": "date", "format": format}));
    assert_eq!(shown["properties"]["a"], json!({"type": "date"}));
    assert!(read(&mapping, source, "1").unwrap().missing.is_empty());
    let mut mapping = Mapping::default();
    mapping.merge(&json!({"date_detection": false})).unwrap();
    assert!(read(&mapping, source, "1").unwrap().missing.iter().all(|one| one.kind == Kind::Text));
    assert_eq!(mapping.to_json(), json!({"date_detection": false}));
}

#[test]
fn what_was_taken_once_can_be_read_by_any_mapping() {
    let mut mapping = Mapping::default();
    let properties = json!({"a": {"type": "long"}, "b": {"type": "date"}, "c": {"type": "text"}});
    mapping.merge(&json!({"dynamic": "strict", "properties": properties})).unwrap();
    let source = br#"{"a":{"x":1},"new":[{"y":2}],"b":"2020/01/02","c":["x",{"z":1}]}"#;
    assert!(read(&mapping, source, "1").is_err());
    let again = read_again(&mapping, source, "1").unwrap();
    assert!(again.missing.is_empty());
    assert_eq!(texts(&mapping, &again, "b"), ["1577923200000"]);
    assert_eq!(texts(&mapping, &again, "c"), ["x"]);
    assert!(read_again(&mapping, b"{", "1").is_err());
}

#[test]
fn a_name_is_no_deeper_than_objects_may_be() {
    let mut mapping = Mapping::default();
    let add = |mapping: &mut Mapping, path: &str| {
        let source = json!({path: 1}).to_string();
        let missing = read(mapping, source.as_bytes(), "1").unwrap().missing;
        missing.iter().try_for_each(|one| mapping.add_dynamic(one))
    };
    add(&mut mapping, &vec!["a"; 20].join(".")).unwrap();
    for bad in [vec!["b"; 21].join("."), vec!["c"; 300_000].join("."), "a..b".to_owned()] {
        let error = add(&mut mapping, &bad).unwrap_err().reason;
        assert!(error.len() < 200, "{error}");
    }
    assert_eq!(mapping.fields.len(), 1);
    // A thousand names are too many, and it does not take long to say so.
    let many: serde_json::Map<String, Json> =
        (0..5000).map(|n| (n.to_string(), n.into())).collect();
    let source = Json::Object(many).to_string();
    let error = read(&mapping, source.as_bytes(), "1").err().unwrap().reason;
    assert_eq!(error, "Limit of total fields [1000] has been exceeded");
}

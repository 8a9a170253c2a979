//! Bodies of writes: what they mean, and what is said of those that mean nothing.

use super::model_tests::{full, put};
use super::schema_tests::{music, schemas};
use crate::document::Values;
use crate::field_set::FieldSet;
use crate::operation::{apply, parse_put, parse_update};
use crate::render::{Tensors, push_values};
use crate::schema::Schemas;
use serde_json::{Value as Json, json};

fn fields(schemas: &Schemas, values: &Values) -> Json {
    let mut out = Vec::new();
    push_values(&mut out, schemas, values, &FieldSet::Every, Tensors::ShortValue);
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn cells_are_printed_with_all_digits_of_their_32_bits() {
    let schemas = schemas();
    let body = br#"{"fields":{"embedding":[0.3,16777216,1e-30],"price":0.3}}"#;
    let put = parse_put(body, &schemas.types()[0]).unwrap();
    let mut out = Vec::new();
    push_values(&mut out, &schemas, &put.values, &FieldSet::Every, Tensors::ShortValue);
    let cells = "[0.30000001192092896,16777216.0,1.0000000031710769e-30]";
    let expected = format!("{{\"price\":0.3,\"embedding\":{cells}}}");
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn puts_take_every_form_that_clients_send() {
    let schemas = schemas();
    let schema = &schemas.types()[0];
    for (given, expected) in [
        (
            r#""year":"7","plays":"-9","stars":"-128""#,
            json!({"year": 7, "plays": -9, "stars": -128}),
        ),
        (r#""price":1,"weight":"1e300""#, json!({"price": 1.0, "weight": 1e300})),
        (r#""weight":"NaN","price":"-Infinity""#, json!({"weight": "NaN", "price": "-Infinity"})),
        (r#""live":"true""#, json!({"live": true})),
        // Whatever is not the word "true" is false, as in Vespa.
        (r#""live":"TRUE""#, json!({"live": true})),
        (r#""live":"True""#, json!({"live": true})),
        (r#""live":" true ""#, json!({"live": false})),
        (r#""live":"yes""#, json!({"live": false})),
        (r#""live":1"#, json!({"live": false})),
        (r#""live":1.5"#, json!({"live": false})),
        (r#""year":"+5""#, json!({"year": 5})),
        (r#""price":" 5 ","weight":"5d""#, json!({"price": 5.0, "weight": 5.0})),
        (r#""price":1e400"#, json!({"price": "Infinity"})),
        (r#""cover":"AAEC\n/w""#, json!({"cover": "AAEC/w=="})),
        (r#""artist":"","tags":[],"moods":{},"props":{},"cover":"","year":null"#, json!({})),
        (
            r#""props":[{"key":"a","value":"1"},{"value":"2","key":"b"}]"#,
            json!({"props": {"a": "1", "b": "2"}}),
        ),
        (r#""props":{"a":"1","b":"2","a":"3"}"#, json!({"props": {"a": "3", "b": "2"}})),
        (r#""moods":{"a":"4"}"#, json!({"moods": {"a": 4}})),
        (r#""embedding":[1,"2",3.5]"#, json!({"embedding": [1.0, 2.0, 3.5]})),
        (r#""price":0.3"#, json!({"price": 0.3})),
        (r#""embedding":{"values":[[1,2],[3]]}"#, json!({"embedding": [1.0, 2.0, 3.0]})),
        (r#""embedding":{"cells":{"2":4}}"#, json!({"embedding": [0.0, 0.0, 4.0]})),
        (
            r#""embedding":{"cells":[{"address":{"x":1},"value":"2"}],"type":"any"}"#,
            json!({"embedding": [0.0, 2.0, 0.0]}),
        ),
        (r#""embedding":[{"address":{"x":"0"},"value":2}]"#, json!({"embedding": [2.0, 0.0, 0.0]})),
        (r#""embedding":{}"#, json!({"embedding": [0.0, 0.0, 0.0]})),
        (r#""year":1,"year":2"#, json!({"year": 2})),
        (r#""artist":"tab\t\u00e6 \ud83d\ude00""#, json!({"artist": "tab\tæ 😀"})),
    ] {
        let body = format!("{{\"put\":\"id:x\",\"extra\":[{{}}],\"fields\":{{{given}}}}}");
        let put = parse_put(body.as_bytes(), schema).unwrap_or_else(|e| panic!("{given}: {e}"));
        assert_eq!(fields(&schemas, &put.values), expected, "{given}");
        assert_eq!((put.condition, put.create), (None, false));
    }
    // Null is not there, as on the real handler.
    let body = br#"{"condition":null,"create":null,"fields":{}}"#;
    let put = parse_put(body, schema).unwrap();
    assert_eq!((put.condition, put.create), (None, false));
    let body = b"\xef\xbb\xbf {\"condition\":\"music.year > 1\",\"create\":true,\"fields\":{}}";
    let put = parse_put(body, schema).unwrap();
    assert_eq!((put.condition.as_deref(), put.create), (Some("music.year > 1"), true));
    // Keys beyond the few that are compared one by one.
    let many: Vec<String> = (0..100).map(|n| format!("\"k{}\":{n}", n % 50)).collect();
    let body = format!("{{\"fields\":{{\"moods\":{{{}}}}}}}", many.join(","));
    let put = parse_put(body.as_bytes(), schema).unwrap();
    let moods = fields(&schemas, &put.values)["moods"].clone();
    assert_eq!((moods.as_object().unwrap().len(), &moods["k7"]), (50, &json!(57)));
}

#[test]
fn bad_puts_are_refused_with_the_reason() {
    let schema = music();
    let of_field = |field: &str| format!("{{\"fields\":{{{field}}}}}");
    for (body, message) in [
        (String::new(), "expected start of root object, got null"),
        ("[]".into(), "expected start of root object"),
        ("{}".into(), "document is missing the required \"fields\" field"),
        (r#"{"fields":7}"#.into(), "\"fields\" must be an object"),
        (r#"{"fields":{},"create":1}"#.into(), "'create' must be true or false"),
        (r#"{"fields":{},"condition":1}"#.into(), "'condition' must be a string"),
        (r#"{"fields":{}} x"#.into(), "the body is not JSON: trailing characters at line 1"),
        (r#"{"fields":{"#.into(), "the body is not JSON: EOF while parsing"),
        (
            of_field(r#""no":1"#),
            "No field 'no' in the structure of type 'music', which has the fie",
        ),
        (of_field(r#""year":2147483648"#), "Error in 'year': expected a whole number of 32 bits"),
        (of_field(r#""year":1.5"#), "Error in 'year': expected a whole number of 32 bits"),
        (of_field(r#""year":"x""#), "Error in 'year': expected a whole number of 32 bits"),
        (of_field(r#""year":[1]"#), "Error in 'year': expected a whole number of 32 bits"),
        (of_field(r#""stars":128"#), "Error in 'stars': expected a whole number of 8 bits"),
        (
            of_field(r#""plays":9223372036854775808"#),
            "Error in 'plays': expected a whole number of",
        ),
        (of_field(r#""price":true"#), "Error in 'price': expected a number"),
        (of_field(r#""live":[true]"#), "Error in 'live': expected true or false"),
        (of_field(r#""cover":"A""#), "Error in 'cover': expected a string in base64"),
        (of_field(r#""tags":"a""#), "Error in 'tags': expected an array"),
        (of_field(r#""tags":["a",1]"#), "Error in 'tags': expected a string"),
        (of_field(r#""tags":[null]"#), "Error in 'tags': Illegal null value for array entry"),
        (
            of_field(r#""moods":[["a",1]]"#),
            "Error in 'moods': expected an object of keys and whole",
        ),
        (of_field(r#""moods":{"a":1.5}"#), "Error in 'moods': expected a whole number of 32 bits"),
        (of_field(r#""props":[{"key":"a"}]"#), "Error in 'props': Missing key or value for map en"),
        (of_field(r#""props":{"a":null}"#), "Error in 'props': Illegal null value for map entry"),
        (of_field(r#""embedding":[1,2]"#), "Error in 'embedding': Expected 3 values, but got 2"),
        (
            of_field(r#""embedding":[1,2,3,4]"#),
            "Error in 'embedding': Expected 3 values, but got 4",
        ),
        (
            of_field(r#""embedding":[]"#),
            "Error in 'embedding': The 'values' array does not contain",
        ),
        (of_field(r#""embedding":"3F80""#), "Error in 'embedding': expected 24 hexadecimal digits"),
        (
            of_field(r#""embedding":{"cells":{"3":1}}"#),
            "Error in 'embedding': there is no cell '3'",
        ),
        (of_field(r#""embedding":{"blocks":[]}"#), "Error in 'embedding': 'blocks' is not known"),
        (
            of_field(r#""embedding":{"cells":[{"value":1}]}"#),
            "Error in 'embedding': Expected an object in a tensor 'cells' array to contain an 'addr",
        ),
        (
            of_field(r#""artist":"a\u0001""#),
            "Error in 'artist': The string field value contains illegal code point 0x1",
        ),
        (of_field(r#""tags":["\uFDD0"]"#), "Error in 'tags': The string field value contains ill"),
        (of_field(r#""artist":"\ud83f\udffe""#), "Error in 'artist': The string field value cont"),
        (of_field("\"artist\":\"a\u{1}\""), "the body is not JSON: control character"),
        (of_field(r#""artist":"\ud800""#), "the body is not JSON: "),
        (of_field(r#""a\u0001b":1"#), "No field 'a\u{1}b' in the structure"),
    ] {
        let error = parse_put(body.as_bytes(), &schema).unwrap_err();
        assert!(error.starts_with(message), "{body}\n{error}");
        assert!(!error.contains(" at line") || error.contains("not JSON"), "{error}");
    }
}

#[test]
fn texts_that_are_no_values_in_vespa_are_refused() {
    let schema = music();
    for (field, message) in [
        (r#""year":" 5 ""#, "Error in 'year': expected a whole number of 32 bits"),
        (r#""plays":"5 ""#, "Error in 'plays': expected a whole number of 64 bits"),
        (r#""price":"inf""#, "Error in 'price': expected a number"),
        (r#""weight":"nan""#, "Error in 'weight': expected a number"),
        (r#""price":"infinity""#, "Error in 'price': expected a number"),
        (
            "\"artist\":\"a\u{ffff}\"",
            "Error in 'artist': The string field value contains illegal co",
        ),
        (r#""artist":"a\uFFFE""#, "Error in 'artist': The string field value contains illegal co"),
        (
            "\"tags\":[\"\u{fdd0}\"]",
            "Error in 'tags': The string field value contains illegal code ",
        ),
        ("\"props\":{\"\u{ffff}\":\"a\"}", "Error in 'props': The string field value contains ill"),
    ] {
        let body = format!("{{\"fields\":{{{field}}}}}");
        let error = parse_put(body.as_bytes(), &schema).unwrap_err();
        assert!(error.starts_with(message), "{body}\n{error}");
    }
    let error = parse_put(br#"{"fields":{},"create":"true"}"#, &schema).unwrap_err();
    assert_eq!(error, "'create' must be true or false");
}

/// Makes updates of one field of the full document, and compares what becomes of the field.
fn check_updates(table: &[(&str, &str, Json)]) {
    let schemas = schemas();
    let schema = &schemas.types()[0];
    for (edit, field, expected) in table {
        let mut values = put(schema, &full());
        let body = format!("{{\"fields\":{{{edit}}}}}");
        let update = parse_update(body.as_bytes(), schema);
        let update = update.unwrap_or_else(|error| panic!("{edit}: {error}"));
        apply(&mut values, schema, &update.edits);
        let after = fields(&schemas, &values);
        assert_eq!(after.get(field).unwrap_or(&Json::Null), expected, "{edit}");
        // Nothing else has changed.
        let mut before = fields(&schemas, &put(schema, &full()));
        let mut after = after;
        for json in [&mut before, &mut after] {
            json.as_object_mut().unwrap().remove(*field);
        }
        assert_eq!(before, after, "{edit}");
    }
}

#[test]
fn updates_of_numbers_and_arrays_mean_what_vespa_means() {
    check_updates(&[
        (r#""year":{"assign":7}"#, "year", json!(7)),
        (r#""year":{"assign":null}"#, "year", Json::Null),
        (r#""artist":{"assign":""}"#, "artist", Json::Null),
        (r#""year":{"increment":5}"#, "year", json!(1970)),
        (r#""year":{"decrement":"5.5"}"#, "year", json!(1959)),
        (r#""year":{"multiply":2.0,"increment":1}"#, "year", json!(3931)),
        (r#""year":{"divide":2}"#, "year", json!(982)),
        (r#""year":{"multiply":100000000}"#, "year", json!(i32::MAX)),
        (r#""stars":{"decrement":200}"#, "stars", json!(-128)),
        (r#""plays":{"increment":9223372036854775807}"#, "plays", json!(i64::MAX)),
        (r#""weight":{"multiply":2}"#, "weight", json!(3e-7)),
        (r#""tags":{"add":["x","long"]}"#, "tags", json!(["long", "piano", "", "x", "long"])),
        (r#""tags":{"remove":["long","no"]}"#, "tags", json!(["piano", ""])),
        (
            r#""tags":{"match":{"element":1,"assign":"organ"}}"#,
            "tags",
            json!(["long", "organ", ""]),
        ),
        (
            r#""tags":{"match":{"assign":"organ","element":9}}"#,
            "tags",
            json!(["long", "piano", ""]),
        ),
        (r#""tags":{"match":{"element":0,"assign":null}}"#, "tags", json!(["piano", ""])),
        (r#""years":{"match":{"element":1,"increment":5}}"#, "years", json!([1956, 1970])),
    ]);
}

#[test]
fn updates_of_weighted_sets_mean_what_vespa_means() {
    check_updates(&[
        (
            r#""moods":{"add":{"new":1,"dark":9}}"#,
            "moods",
            json!({"dark": 9, "fast": -1, "new": 1}),
        ),
        (r#""moods":{"remove":{"dark":0}}"#, "moods", json!({"fast": -1})),
        (
            r#""moods":{"match":{"element":"dark","increment":2}}"#,
            "moods",
            json!({"dark": 5, "fast": -1}),
        ),
        (r#""moods":{"match":{"element":"dark","decrement":3}}"#, "moods", json!({"fast": -1})),
        (
            r#""moods":{"match":{"element":"dark","assign":0}}"#,
            "moods",
            json!({"dark": 0, "fast": -1}),
        ),
        (
            r#""moods":{"match":{"element":"new","increment":2}}"#,
            "moods",
            json!({"dark": 3, "fast": -1, "new": 2}),
        ),
        (
            r#""moods":{"match":{"element":"new","assign":2}}"#,
            "moods",
            json!({"dark": 3, "fast": -1}),
        ),
    ]);
}

#[test]
fn updates_of_elements_and_tensors_mean_what_vespa_means() {
    check_updates(&[
        (r#""moods{dark}":{"assign":1}"#, "moods", json!({"dark": 1, "fast": -1})),
        (r#""moods{new}":{"assign":1}"#, "moods", json!({"dark": 3, "fast": -1, "new": 1})),
        (r#""props{c}":{"assign":"y"}"#, "props", json!({"a b": "x", "c": "y"})),
        (r#""props{a b}":{"remove":0}"#, "props", json!({"c": ""})),
        (
            r#""props{\"q\\\"}\"}":{"assign":"z"}"#,
            "props",
            json!({"a b": "x", "c": "", "q\"}": "z"}),
        ),
        (
            r#""props":{"match":{"element":"no","assign":"y"}}"#,
            "props",
            json!({"a b": "x", "c": ""}),
        ),
        (r#""counts{n}":{"increment":4}"#, "counts", json!({"n": 5})),
        (r#""counts{m}":{"INCREMENT":4}"#, "counts", json!({"n": 1, "m": 4})),
        (r#""tags[0]":{"assign":"short"}"#, "tags", json!(["short", "piano", ""])),
        (r#""tags[7]":{"assign":"short"}"#, "tags", json!(["long", "piano", ""])),
        (r#""tags[1]":{"remove":0}"#, "tags", json!(["long", ""])),
        (r#""embedding":{"assign":[4,5,6]}"#, "embedding", json!([4.0, 5.0, 6.0])),
        (
            r#""embedding":{"modify":{"operation":"add","cells":[{"address":{"x":"1"},"value":1}]}}"#,
            "embedding",
            json!([1.0, -1.5, 0.0]),
        ),
        (
            r#""embedding":{"modify":{"cells":{"0":3,"2":9},"operation":"multiply"}}"#,
            "embedding",
            json!([3.0, -2.5, 0.0]),
        ),
        (
            r#""embedding":{"modify":{"operation":"replace","cells":{"2":9}}}"#,
            "embedding",
            json!([1.0, -2.5, 9.0]),
        ),
    ]);
}

#[test]
fn updates_of_what_is_missing() {
    let schemas = schemas();
    let schema = &schemas.types()[0];
    for (edit, expected) in [
        (r#""year":{"increment":5}"#, json!({})),
        (r#""tags":{"add":["x"]}"#, json!({"tags": ["x"]})),
        (r#""tags":{"remove":["x"]}"#, json!({})),
        (r#""tags[0]":{"assign":"x"}"#, json!({})),
        (r#""tags":{"match":{"element":0,"assign":"x"}}"#, json!({})),
        (r#""moods":{"add":{"a":1}}"#, json!({"moods": {"a": 1}})),
        (r#""moods":{"match":{"element":"a","increment":1}}"#, json!({"moods": {"a": 1}})),
        (r#""props{a}":{"assign":"x"}"#, json!({"props": {"a": "x"}})),
        (r#""props{a}":{"remove":0}"#, json!({})),
        (r#""counts{a}":{"decrement":2}"#, json!({"counts": {"a": -2}})),
        (r#""counts":{"match":{"element":"a","increment":1}}"#, json!({})),
        (r#""embedding":{"modify":{"operation":"add","cells":{"0":1}}}"#, json!({})),
    ] {
        let mut values = Values::new(schema);
        let body = format!("{{\"condition\":\"c\",\"fields\":{{{edit}}}}}");
        let update = parse_update(body.as_bytes(), schema).unwrap();
        assert_eq!(update.condition.as_deref(), Some("c"));
        apply(&mut values, schema, &update.edits);
        assert_eq!(fields(&schemas, &values), expected, "{edit}");
    }
}

#[test]
fn bad_updates_are_refused_with_the_reason() {
    let schema = music();
    for (edit, message) in [
        (r#""year":{"bogus":1}"#, "Error in 'year': Operation 'bogus' not implemented."),
        (
            r#""artist":{"increment":1}"#,
            "Error in 'artist': Operation 'increment' not implemented.",
        ),
        (r#""year":7"#, r#"Error in 'year': expected an object such as {"assign": value}"#),
        (r#""year":{"increment":"x"}"#, "Error in 'year': 'increment' needs a number"),
        (r#""year":{"divide":0}"#, "Error in 'year': division by zero"),
        (r#""no":{"assign":1}"#, "No field 'no' in the structure of type 'music'"),
        (r#""no{a}":{"assign":1}"#, "No field 'no' in the structure of type 'music'"),
        (r#""props{a":{"assign":1}"#, "Error in 'props{a': expected '}'"),
        (r#""tags[x]":{"assign":"a"}"#, "Error in 'tags[x]': 'x' is no position in an array"),
        (r#""tags[$i]":{"assign":"a"}"#, "Error in 'tags[$i]': variables in paths are not sup"),
        (r#""tags{a}":{"assign":"a"}"#, "Error in 'tags{a}': a value of type array<string> has no"),
        (r#""year.x":{"assign":1}"#, "Error in 'year.x': there is no 'x' in it: structs"),
        (
            r#""props{a}":{"bogus":1}"#,
            "Error in 'props{a}': Field path update type 'bogus' not sup",
        ),
        (r#""props{a}":{"assign":1}"#, "Error in 'props{a}': expected a string"),
        (
            r#""year":{"add":[1]}"#,
            "Error in 'year': Trying to add or remove from a field of a type",
        ),
        (r#""tags":{"add":"x"}"#, "Error in 'tags': expected an array"),
        (r#""tags":{"add":null}"#, "Error in 'tags': Expected start of composite, got VALUE_NULL"),
        (r#""embedding":{"add":{"cells":[]}}"#, "Error in 'embedding': An add update can only be"),
        (
            r#""tags":{"match":{"element":"x","assign":"y"}}"#,
            "Error in 'tags': For input string: \"x\"",
        ),
        (
            r#""tags":{"match":{"assign":"y"}}"#,
            "Error in 'tags': a match update needs an 'element'",
        ),
        (r#""tags":{"match":7}"#, "Error in 'tags': Expected object for match update"),
        (r#""year":{"match":{"element":1,"assign":1}}"#, "Error in 'year': Container type int not"),
        (
            r#""year":{"modify":{}}"#,
            "Error in 'year': A modify update can only be applied to tensor",
        ),
        (
            r#""embedding":{"modify":{"operation":"bogus"}}"#,
            "Error in 'embedding': Unknown operation 'bogus' in modify update for field 'embedding'",
        ),
        (
            r#""embedding":{"modify":{"cells":{}}}"#,
            "Error in 'embedding': Modify update for field 'embedding' does not contain an operation",
        ),
        (
            r#""embedding":{"modify":{"operation":"add"}}"#,
            "Error in 'embedding': Modify update for field 'embedding' does not contain tensor cells",
        ),
    ] {
        let body = format!("{{\"fields\":{{{edit}}}}}");
        let error = parse_update(body.as_bytes(), &schema).unwrap_err();
        assert!(error.starts_with(message), "{edit}\n{error}");
    }
}

//! Every type of field through Vespa's command line: fed, changed, visited, and fed again from what was visited.

use super::clients::{Fed, vespa, vespa_feed};
use super::sets::{Documents, dump, expect_equal, visited};
use crate::process::Place;
use serde_json::json;

const SCHEMA: &str = "schema record {
    document record {
        field title type string { indexing: summary | index }
        field year type int { indexing: attribute | summary }
        field length type long { indexing: attribute | summary }
        field small type byte { indexing: attribute | summary }
        field price type float { indexing: attribute | summary }
        field exact type double { indexing: attribute | summary }
        field live type bool { indexing: attribute | summary }
        field cover type raw { indexing: summary }
        field tags type array<string> { indexing: attribute | summary }
        field marks type array<int> { indexing: attribute | summary }
        field moods type weightedset<string> { indexing: attribute | summary
            weightedset { create-if-nonexistent remove-if-zero } }
        field props type map<string, string> { indexing: summary }
        field counts type map<string, int> { indexing: summary }
        field embedding type tensor<float>(x[3]) { indexing: attribute | summary }
    }
}
";

/// Changes of document `a`, each of which needs those before it.
const CHANGES: &str = r#"
{"update":"id:shop:record::a","fields":{"tags":{"add":["new","new"]},"marks":{"remove":[2]}}}
{"update":"id:shop:record::a","fields":{"moods":{"add":{"calm":7}},"props{colour}":{"assign":"red"}}}
{"update":"id:shop:record::a","fields":{"moods":{"match":{"element":"loud","increment":3}}}}
{"update":"id:shop:record::a","fields":{"tags[0]":{"assign":"first"},"counts{k}":{"increment":2}}}
{"update":"id:shop:record::a","fields":{"year":{"multiply":2},"price":{"assign":0.25},"props{gone}":{"remove":0}}}
{"update":"id:shop:record::a","condition":"record.moods{calm} == 7 and record.props{colour} == \"red\"","fields":{"embedding":{"modify":{"operation":"add","cells":[{"address":{"x":"1"},"value":0.5}]}}}}
{"update":"id:shop:record::a","condition":"record.tags == \"nowhere\"","fields":{"title":{"assign":"never"}}}
{"update":"id:shop:record::b","fields":{"live":{"assign":null},"title":{"assign":""},"length":{"assign":"-9223372036854775808"}}}
"#;

#[test]
fn fields_of_every_type_there_and_back() {
    let place = Place::new();
    place.file("record.sd", SCHEMA);
    let serve = ["search", "--schema", "record.sd", "--durability", "async"];
    let target = place.serve(&serve);
    let full = json!({
        "title": "t", "year": 1001, "length": i64::MAX, "small": -128, "price": 1.5, "exact": 1e300,
        "live": true, "cover": "AAH/", "tags": ["old", "", "æ"], "marks": [1, 2, 3, 2],
        "moods": {"loud": -3, "soft": 1}, "props": {"gone": "x", "a}b\"": "y"}, "counts": {"k": 40},
        "embedding": {"type": "tensor<float>(x[3])", "values": [1.0, 2.0, -0.5]}
    });
    let mut feed = format!("{}\n", json!({"put": "id:shop:record::a", "fields": full}));
    feed += "{\"put\":\"id:shop:record::b\",\"fields\":{\"title\":\"b\",\"live\":false,\"embedding\":[1,2,3]}}\n";
    feed += "{\"put\":\"id:shop:record::empty\",\"fields\":{}}";
    feed += CHANGES;
    place.file("feed.jsonl", feed);
    let fed = Fed::of(&vespa(&place, &target, ["feed", "feed.jsonl"]).expect(0));
    assert_eq!((fed.status(200), fed.status(412)), (10, 1));
    let mut changed = full;
    changed["tags"] = json!(["first", "", "æ", "new", "new"]);
    changed["marks"] = json!([1, 3]);
    // Three more than minus three is zero, and a weight of zero is gone.
    changed["moods"] = json!({"soft": 1, "calm": 7});
    changed["props"] = json!({"a}b\"": "y", "colour": "red"});
    changed["counts"] = json!({"k": 42});
    changed["year"] = json!(2002);
    changed["price"] = json!(0.25);
    changed["embedding"]["values"] = json!([1.0, 2.5, -0.5]);
    let tensor = json!({"type": "tensor<float>(x[3])", "values": [1.0, 2.0, 3.0]});
    let expected: Documents = [
        ("id:shop:record::a", changed),
        ("id:shop:record::b", json!({"length": i64::MIN, "embedding": tensor})),
        ("id:shop:record::empty", json!({})),
    ]
    .map(|(id, fields)| (id.to_owned(), fields))
    .into();
    expect_equal(&dump(&place, &target, &["--slices", "2"]).0, &expected);
    for form in ["--stream", "--json-lines"] {
        expect_equal(&visited(&vespa(&place, &target, ["visit", form]).expect(0)), &expected);
    }
    let selection =
        "record.moods{calm} == 7 and record.counts{k} > 41 and record.tags[3] == \"new\"";
    let ended = vespa(&place, &target, ["visit", "--selection", selection]).expect(0);
    assert_eq!(visited(&ended).into_keys().collect::<Vec<_>>(), ["id:shop:record::a"]);
    // What either of the two dumps is taken back.
    let made = vespa(&place, &target, ["visit", "--make-feed"]).expect(0);
    place.file("made.json", made.stdout);
    let args = ["visit", &target.url, "--slices", "2", "--format", "vespa-feed", "--no-record"];
    let out = ["--cluster", "plimsoll", "--quiet", "--out", "dump.jsonl"];
    place.run(args.into_iter().chain(out)).expect(0);
    for file in ["made.json", "dump.jsonl"] {
        let other = place.serve(&serve);
        vespa_feed(&place, &other, file).expect_ok(3);
        expect_equal(&dump(&place, &other, &["--slices", "2"]).0, &expected);
    }
}

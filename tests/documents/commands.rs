//! `vespa feed`, `document`, `query` and `status`.

use super::clients::{Fed, LONG, vespa, vespa_command, vespa_feed};
use super::sets::{Documents, dump, expect_equal, puts, some};
use crate::process::{Place, Running, curl};
use serde_json::{Value, json};

/// Operations that build on each other, as each client must keep their order for one document.
const OPERATIONS: &str = r#"[
{"put":"id:plimsoll:doc::a","fields":{"title":"one","score":1}},
{"put":"id:plimsoll:doc:n=77:u/1 x","fields":{"title":"two"}},
{"id":"id:plimsoll:doc:g=grp a:u%æ","fields":{"title":"three"}},
{"update":"id:plimsoll:doc::a","fields":{"score":{"increment":4},"author":{"assign":"Æ \"漢\" \\ \u00fc"}}},
{"update":"id:plimsoll:doc::made","create":true,"fields":{"score":{"assign":4}}},
{"update":"id:plimsoll:doc::a","condition":"doc.score == 5","fields":{"score":{"multiply":2}}},
{"put":"id:plimsoll:doc::a","condition":"doc.score == 99","fields":{"title":"never"}},
{"remove":"id:plimsoll:doc::a","condition":"doc.title == \"never\""},
{"put":"id:plimsoll:doc::gone","fields":{"title":"gone"}},
{"remove":"id:plimsoll:doc::gone"},
{"remove":"id:plimsoll:doc::none"},
{"update":"id:plimsoll:doc::none","fields":{"score":{"assign":4}}},
{"put":"id:plimsoll:doc::bad","fields":{"nosuch":4}}
]"#;

#[test]
fn feed_does_what_the_operations_say() {
    let operations: Vec<Value> = serde_json::from_str(OPERATIONS).unwrap();
    let lines: String = operations.iter().map(|one| format!("{one}\n")).collect();
    let expected: Documents = [
        ("id:plimsoll:doc::a", json!({"title": "one", "score": 10, "author": "Æ \"漢\" \\ ü"})),
        ("id:plimsoll:doc:n=77:u/1 x", json!({"title": "two"})),
        ("id:plimsoll:doc:g=grp a:u%æ", json!({"title": "three"})),
        ("id:plimsoll:doc::made", json!({"score": 4})),
    ]
    .map(|(id, fields)| (id.to_owned(), fields))
    .into();
    // An array, lines, lines from stdin; packed, plain and as it likes.
    for (name, content, flags) in [
        ("array.json", OPERATIONS, &["--compression", "none"][..]),
        ("lines.jsonl", &lines, &["--compression", "gzip", "--connections", "1"]),
        ("-", &lines, &["--timeout", "30", "--trace", "1"]),
    ] {
        let place = Place::new();
        let target = place.serve(&["search"]);
        if name != "-" {
            place.file(name, content);
        }
        let args = ["feed", name].into_iter().chain(flags.iter().copied());
        let input = if name == "-" { content.as_bytes() } else { b"" };
        let ended = Running::start(vespa_command(&place, &target.url, args), input).wait(LONG);
        let fed = Fed::of(&ended.expect(0));
        // Missing documents are no event; two conditions failed, and one document has a field too many.
        let statuses = [200, 412, 400].map(|status| fed.status(status));
        assert_eq!(statuses, [10, 2, 1], "{name}");
        assert_eq!(fed.count("feeder.operation.count"), 13);
        assert_eq!(fed.count("http.exception.count"), 0);
        expect_equal(&dump(&place, &target, &["--slices", "2"]).0, &expected);
    }
}

#[test]
fn feed_and_its_speed_test_leave_nothing_undone() {
    let place = Place::new();
    let target = place.serve(&["search", "--durability", "async"]);
    let documents = some(1500);
    place.file("feed.jsonl", puts(&documents));
    let fed = vespa_feed(&place, &target, "feed.jsonl");
    fed.expect_ok(1500);
    assert!(fed.count("http.response.count") >= 1500);
    let args = ["feed", "--speedtest", "700", "--speedtest-duration", "1"];
    let speed = Fed::of(&vespa(&place, &target, args).expect(0));
    assert_eq!(speed.status(200), speed.count("http.response.count"));
    assert!(speed.count("feeder.ok.count") > 20);
    // A dry run wrote nothing.
    expect_equal(&dump(&place, &target, &["--slices", "4"]).0, &documents);
}

/// Ids, and what becomes of them on the way: the command line leaves `+` as it is, which is a space in a path.
const IDS: [(&str, &str); 9] = [
    ("id:plimsoll:doc::plain", "id:plimsoll:doc::plain"),
    ("id:plimsoll:doc::with space", "id:plimsoll:doc::with space"),
    ("id:plimsoll:doc::a/b//c", "id:plimsoll:doc::a/b//c"),
    ("id:plimsoll:doc::50%2F50", "id:plimsoll:doc::50%2F50"),
    ("id:plimsoll:doc::p+q", "id:plimsoll:doc::p q"),
    ("id:plimsoll:doc::Ærø 漢字 \u{1f6a2}", "id:plimsoll:doc::Ærø 漢字 \u{1f6a2}"),
    ("id:plimsoll:doc::?a=b&c#d:e;f,g", "id:plimsoll:doc::?a=b&c#d:e;f,g"),
    ("id:my-ns:doc:n=9223372036854775807:x", "id:my-ns:doc:n=9223372036854775807:x"),
    ("id:plimsoll:doc:g=a group/of:y\"z", "id:plimsoll:doc:g=a group/of:y\"z"),
];

#[test]
fn documents_with_odd_names_one_by_one() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    place.file("put.json", r#"{"put":"id:x:y::z","fields":{"title":"t","score":1}}"#);
    place.file("update.json", r#"{"fields":{"score":{"increment":41}}}"#);
    let document = |args: &[&str]| {
        vespa(&place, &target, ["document"].into_iter().chain(args.iter().copied()))
    };
    let mut expected = Documents::new();
    for (asked, stored) in IDS {
        let missing = document(&["get", asked]).expect(1);
        assert!(missing.stderr.contains("Status 404"), "{}", missing.stderr);
        // These two say nothing of a document that is not there.
        document(&["update", asked, "update.json"]).expect(0);
        document(&["remove", asked]).expect(0);
        let put = document(&["put", asked, "put.json"]).expect(0);
        assert_eq!(put.stdout, format!("Success: put {asked}\n"));
        let updated = document(&["update", asked, "update.json"]).expect(0);
        assert_eq!(updated.stdout, format!("Success: update {asked}\n"));
        let got: Value = serde_json::from_str(&document(&["get", asked]).expect(0).stdout).unwrap();
        assert_eq!(got["id"], stored);
        assert_eq!(got["fields"], json!({"title": "t", "score": 42}));
        let path = got["pathId"].as_str().unwrap();
        let (status, again) = curl(&[&format!("{}{path}", target.url)]);
        assert_eq!(status, 200, "{path}");
        assert_eq!(serde_json::from_str::<Value>(&again).unwrap(), got);
        let got = document(&["get", "--field-set", "doc:score", asked]).expect(0);
        let got: Value = serde_json::from_str(&got.stdout).unwrap();
        assert_eq!(got["fields"], json!({"score": 42}));
        expected.insert(stored.to_owned(), json!({"title": "t", "score": 42}));
    }
    expect_equal(&dump(&place, &target, &["--slices", "3"]).0, &expected);
    for (asked, _) in IDS {
        let removed = document(&["remove", asked]).expect(0);
        assert_eq!(removed.stdout, format!("Success: remove {asked}\n"));
    }
    expect_equal(&dump(&place, &target, &["--slices", "3"]).0, &Documents::new());
}

#[test]
fn document_reads_what_to_do_from_a_file() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let document = |content: &str, code: i32| {
        place.file("operation.json", content);
        vespa(&place, &target, ["document", "operation.json"]).expect(code)
    };
    document(r#"{"put":"id:plimsoll:doc::f","fields":{"title":"t","score":1}}"#, 0);
    let update = r#"{"update":"id:plimsoll:doc::f","condition":"doc.score == 1","fields":{"score":{"assign":2}}}"#;
    document(update, 0);
    let refused = document(update, 1);
    assert!(refused.stderr.contains("Status 412"), "{}", refused.stderr);
    let refused = document(r#"{"put":"id:plimsoll:nosuch::f","fields":{}}"#, 1);
    assert!(refused.stderr.contains("Document type nosuch does not exist"), "{}", refused.stderr);
    let refused = document(r#"{"put":"id:plimsoll:doc::f","fields":{"score":"x"}}"#, 1);
    assert!(refused.stderr.contains("score"), "{}", refused.stderr);
    let only = Documents::from([("id:plimsoll:doc::f".into(), json!({"title": "t", "score": 2}))]);
    expect_equal(&dump(&place, &target, &[]).0, &only);
    document(r#"{"remove":"id:plimsoll:doc::f"}"#, 0);
    expect_equal(&dump(&place, &target, &[]).0, &Documents::new());
}

#[test]
fn queries_see_what_was_fed_and_status_says_ready() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let ready = vespa(&place, &target, ["status", "--wait", "5"]).expect(0);
    assert_eq!(ready.stdout, format!("Container at {} is ready\n", target.url));
    place.file("feed.jsonl", puts(&some(300)));
    vespa_feed(&place, &target, "feed.jsonl").expect_ok(300);
    let (status, _) = curl(&["-X", "POST", &format!("{}/state/v1/refresh", target.url)]);
    assert_eq!(status, 200);
    let ask = |args: &[&str]| {
        let args = ["query", "--wait", "5"].into_iter().chain(args.iter().copied());
        serde_json::from_str::<Value>(&vespa(&place, &target, args).expect(0).stdout).unwrap()
    };
    let few = ask(&["select * from doc where score < 12 order by score", "hits=5", "offset=2"]);
    assert_eq!(few["root"]["fields"]["totalCount"], 12);
    let scores: Vec<_> = few["root"]["children"].as_array().unwrap().iter().collect();
    let scores: Vec<u64> =
        scores.iter().map(|hit| hit["fields"]["score"].as_u64().unwrap()).collect();
    assert_eq!(scores, [2, 3, 4, 5, 6]);
    place.file("query.json", r#"{"yql":"select * from doc where title contains 'document'"}"#);
    let all = ask(&["--file", "query.json", "hits=3", "ranking=unranked"]);
    assert_eq!(all["root"]["fields"]["totalCount"], 300);
    assert_eq!(all["root"]["children"].as_array().unwrap().len(), 3);
    let total = |args: &[&str]| ask(args)["root"]["fields"]["totalCount"].as_u64().unwrap();
    assert_eq!(total(&["select * from doc where userQuery()", "query=document absent"]), 300);
    assert_eq!(total(&["query=document absent"]), 300);
    assert_eq!(total(&["query=document absent", "type=all"]), 0);
    assert_eq!(total(&["select * from doc where {grammar: 'all'}userInput('document absent')"]), 0);
    assert_eq!(
        total(&["select * from doc where weakAnd(title contains 'document', score < 0)"]),
        300
    );
    let wand = vespa(&place, &target, ["query", "select * from doc where wand(title, {'a': 1})"]);
    assert!(wand.expect(1).stderr.contains("400"));
    let bad = vespa(&place, &target, ["query", "select nonsense"]).expect(1);
    assert!(bad.stderr.contains("400"), "{}", bad.stderr);
    let url = target.url.clone();
    drop(target);
    let gone = Running::start(vespa_command(&place, &url, ["status"]), b"").wait(LONG).expect(1);
    assert!(gone.stderr.contains("services not ready"), "{}", gone.stderr);
}

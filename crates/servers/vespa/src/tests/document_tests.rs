//! `/document/v1/`, one document at a time.

use super::{Client, JSON, document, start};
use serde_json::json;

fn put(client: &mut Client, path: &str, body: &str) -> super::TestReply {
    client.request("POST", path, JSON, body.as_bytes())
}

#[test]
fn documents_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = server.client();
    let path = document("a");
    let missing = client.get(&path);
    assert_eq!(missing.status, 404);
    assert_eq!(missing.body, r#"{"pathId":"/document/v1/test/doc/docid/a","id":"id:test:doc::a"}"#);
    let stored = client.put("a", r#"{"title":"T","score":"7","body":"","author":null}"#);
    assert_eq!(stored.status, 200);
    assert_eq!(stored.body, missing.body);
    let found = client.get(&path);
    assert_eq!(found.status, 200);
    let id = r#"{"pathId":"/document/v1/test/doc/docid/a","id":"id:test:doc::a","#;
    assert_eq!(found.body, format!("{id}\"fields\":{{\"title\":\"T\",\"score\":7}}}}"));
    // A put replaces the whole document.
    assert_eq!(client.put("a", r#"{"body":"B"}"#).status, 200);
    assert_eq!(client.get(&path).json()["fields"], json!({"body": "B"}));
    client.refresh();
    assert_eq!(client.find("true").total(), 1);
    for _ in 0..2 {
        assert_eq!(client.request("DELETE", &path, "", b"").status, 200);
    }
    assert_eq!(client.get(&path).status, 404);
    client.refresh();
    assert_eq!(client.find("true").total(), 0);
    assert_eq!(client.find("true").json()["root"]["coverage"]["documents"], 0);
}

#[test]
fn ids_are_decoded_as_clients_send_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = server.client();
    let base = "/document/v1/my+ns/doc";
    for (path, id) in [
        ("docid/a%2Fb%20c", "id:my ns:doc::a/b c"),
        ("docid/p+q", "id:my ns:doc::p q"),
        ("docid/a//b/", "id:my ns:doc::a//b/"),
        ("docid/%C3%A6:1", "id:my ns:doc::æ:1"),
        ("number/77/u%2F1", "id:my ns:doc:n=77:u/1"),
        ("number/18446744073709551615/x", "id:my ns:doc:n=18446744073709551615:x"),
        ("group/grp%20a/u%25", "id:my ns:doc:g=grp a:u%"),
    ] {
        let path = format!("{base}/{path}");
        let reply = put(&mut client, &path, r#"{"put":"id:x:y::z","fields":{"title":"t"}}"#);
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(reply.json(), json!({"pathId": path, "id": id}));
        assert_eq!(client.get(&path).json()["id"], id);
    }
    let same = client.get(&format!("{base}/docid/a/b%20c"));
    assert_eq!(same.json()["id"], "id:my ns:doc::a/b c");
    assert_eq!(same.status, 200);
    client.refresh();
    assert_eq!(client.find("true").total(), 7);
    let bad = client.get(&format!("{base}/number/abc/x"));
    assert_eq!(bad.status, 400);
    assert_eq!(bad.message(), "Failed parsing 'abc': For input string: \"abc\"");
    for path in ["docid//", "nosuch/x", "number", "group/"] {
        let path = format!("{base}/{path}");
        let reply = client.get(&path);
        assert_eq!(reply.status, 404, "{path}");
        assert!(reply.message().starts_with(&format!("Nothing at '{path}'. Available paths")));
    }
}

#[test]
fn updates_change_single_fields() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = server.client();
    let path = document("u");
    let mut update = |path: &str, body: &str| client.request("PUT", path, JSON, body.as_bytes());
    let first = r#"{"fields":{"title":{"assign":"new"},"score":{"increment":3}}}"#;
    assert_eq!(update(&path, first).status, 200);
    assert_eq!(update(&format!("{path}?create=true"), first).status, 200);
    for (operation, expected) in [
        (r#"{"increment":3}"#, json!({"title": "new"})),
        (r#"{"assign":10}"#, json!({"title": "new", "score": 10})),
        (r#"{"increment":3}"#, json!({"title": "new", "score": 13})),
        (r#"{"decrement":23}"#, json!({"title": "new", "score": -10})),
        (r#"{"multiply":2.5}"#, json!({"title": "new", "score": -25})),
        (r#"{"divide":10}"#, json!({"title": "new", "score": -2})),
        (
            r#"{"assign":9223372036854775807,"increment":1}"#,
            json!({"title": "new", "score": i64::MAX}),
        ),
        (r#"{"assign":null}"#, json!({"title": "new"})),
    ] {
        let body = format!(r#"{{"fields":{{"score":{operation}}}}}"#);
        let reply = client.request("PUT", &path, JSON, body.as_bytes());
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(client.get(&path).json()["fields"], expected, "{operation}");
    }
    let created = document("created");
    let body = r#"{"create":true,"fields":{"category":{"assign":"c"}}}"#;
    assert_eq!(client.request("PUT", &created, JSON, body.as_bytes()).status, 200);
    assert_eq!(client.get(&created).json()["fields"], json!({"category": "c"}));
    client.refresh();
    assert_eq!(client.find("category contains 'C'").names(), ["created"]);
    // An update without create of a document that is missing does nothing.
    let body = r#"{"fields":{"title":{"assign":"x"}}}"#;
    assert_eq!(client.request("PUT", &document("no"), JSON, body.as_bytes()).status, 200);
    assert_eq!(client.get(&document("no")).status, 404);
}

#[test]
fn bad_writes_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = server.client();
    let table = [
        ("POST", "", "expected start of root object, got null"),
        ("POST", "null", "expected start of root object, got null"),
        ("POST", "[]", "expected start of root object"),
        ("POST", "{}", "document is missing the required \"fields\" field"),
        ("POST", r#"{"fields":[]}"#, "\"fields\" must be an object"),
        ("POST", r#"{"fields":{"nosuch":1}}"#, "No field 'nosuch' in the structure of type 'doc'"),
        ("POST", r#"{"fields":{"title":1}}"#, "Error in 'title': expected a string"),
        ("POST", "{\"fields\":{\"title\":\"a\u{1}\"}}", "not JSON"),
        ("POST", r#"{"fields":{"title":"a\u0001"}}"#, "illegal code point 0x1"),
        ("POST", r#"{"fields":{"score":1.5}}"#, "expected a whole number of 64 bits"),
        ("POST", r#"{"fields":{"score":9223372036854775808}}"#, "expected a whole number"),
        ("POST", r#"{"fields":{"score":true}}"#, "expected a whole number"),
        ("POST", r#"{"condition":true,"fields":{}}"#, "'condition' must be a string"),
        ("POST", r#"{"condition":"doc.","fields":{}}"#, "document selector"),
        (
            "PUT",
            r#"{"fields":{"score":{"bogus":1}}}"#,
            "Error in 'score': Operation 'bogus' not implemented.",
        ),
        (
            "PUT",
            r#"{"fields":{"title":{"increment":1}}}"#,
            "Operation 'increment' not implemented.",
        ),
        ("PUT", r#"{"fields":{"score":{"divide":0}}}"#, "division by zero"),
        ("PUT", r#"{"fields":{"score":7}}"#, "Error in 'score': expected an object"),
        ("PUT", r#"{"create":1,"fields":{}}"#, "'create' must be true or false"),
    ];
    let path = document("bad");
    for (method, body, message) in table {
        let reply = client.request(method, &path, JSON, body.as_bytes());
        assert_eq!(reply.status, 400, "{body}: {}", reply.body);
        assert!(reply.message().contains(message), "{body}: {}", reply.body);
        let json = reply.json();
        assert_eq!(json["pathId"], path.as_str());
        assert!(json.get("id").is_none(), "{}", reply.body);
    }
    let good = br#"{"fields":{"title":"t"}}"#;
    let mut post = |path: &str| client.request("POST", path, JSON, good);
    let reply = post("/document/v1/test/music/docid/1");
    assert_eq!((reply.status, reply.message()), (400, "Document type music does not exist".into()));
    let reply = post(&format!("{path}?timeout="));
    let empty = "Expected non-empty value for request property 'timeout'";
    assert_eq!((reply.status, reply.message().as_str()), (400, empty));
    assert_eq!(post(&format!("{path}?timeout=-1")).status, 400);
    let reply = post(&format!("{path}?timeout=0"));
    assert_eq!((reply.status, reply.message().as_str()), (504, "Timeout after 0ms"));
    assert_eq!(post(&format!("{path}?condition=true")).status, 412);
    assert_eq!(post(&format!("{path}?timeout=0&timeout=60000ms&route=default")).status, 200);
    assert_eq!(client.request("DELETE", &path, "", b"").status, 200);
    // Nothing of all this was kept.
    assert_eq!(client.get(&path).status, 404);
}

#[test]
fn dry_runs_field_sets_and_other_methods() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = server.client();
    let handshake = "/document/v1/feeder/handshake/docid/dummy?dryRun=true&timeout=29992ms";
    assert_eq!(client.request("POST", handshake, JSON, b"not parsed").status, 200);
    let path = document("f");
    assert_eq!(client.get(&format!("{path}?dryRun=true")).status, 400);
    client.put("f", r#"{"title":"t","score":1,"author":"a"}"#);
    for (set, expected) in [
        ("[all]", json!({"title": "t", "author": "a", "score": 1})),
        ("doc:[document]", json!({"title": "t", "author": "a", "score": 1})),
        ("doc:score,title", json!({"title": "t", "score": 1})),
        ("[id]", json!({})),
    ] {
        let reply = client.get(&format!("{path}?fieldSet={}", super::encode(set)));
        assert_eq!(reply.json()["fields"], expected, "{set}");
    }
    assert_eq!(client.get(&format!("{path}?fieldSet=doc:no")).message(), "No such field no");
    assert!(client.get(&format!("{path}?fieldSet=no")).message().contains("then a colon (:)"));
    let reply = client.request("OPTIONS", &path, "", b"");
    assert_eq!(reply.status, 204);
    assert!(reply.head.contains("allow: GET,POST,PUT,DELETE"), "{}", reply.head);
    assert_eq!(client.request("PATCH", &path, "", b"").status, 405);
}

#[test]
fn very_long_values_are_kept_and_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = server.client();
    let long = "x".repeat(200_000);
    let text = "word ".repeat(200_000);
    let fields = format!(
        "{{\"title\":\"{long} short\",\"body\":\"{text}\",\"category\":\"{long}\",\"author\":\"a\"}}"
    );
    assert_eq!(client.put("long", &fields).status, 200);
    assert_eq!(client.put("other", r#"{"title":"short","category":"z"}"#).status, 200);
    client.refresh();
    assert_eq!(client.find("title contains 'short'").total(), 2);
    assert_eq!(client.find("body contains phrase('word', 'word')").total(), 1);
    assert_eq!(client.find("true order by category desc").names(), ["other", "long"]);
    assert_eq!(client.get(&document("long")).json()["fields"]["category"], long.as_str());
    let yql = format!("yql=select * from doc where category contains '{}'", "x".repeat(60_000));
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let reply = client.request("POST", "/search/", form, yql.as_bytes());
    assert_eq!((reply.status, reply.total()), (200, 0));
    assert_eq!(client.get("/state/v1/health").status, 200);
}

#[test]
fn documents_of_too_many_values_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = server.client();
    let many = format!("[{}\"x\"]", "\"x\",".repeat(1_000_000));
    for (method, body) in [
        ("POST", format!("{{\"fields\":{{\"title\":{many}}}}}")),
        ("PUT", format!("{{\"fields\":{{\"title\":{{\"assign\":{many}}}}}}}")),
    ] {
        let reply = client.request(method, "/document/v1/doc/doc/docid/1", JSON, body.as_bytes());
        assert_eq!(reply.status, 413, "{}", reply.body);
        assert!(reply.body.contains("send it in several requests"), "{}", reply.body);
    }
}

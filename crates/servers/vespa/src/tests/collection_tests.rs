//! Requests on collections: what is refused, and operations on selections.

use super::two::Two;
use super::{Client, JSON, document, start};
use serde_json::json;

const ROOT: &str = "/document/v1/";
const DOCS: &str = "/document/v1/test/doc/docid/";

/// Method, path with query, status, and what the message contains.
const REFUSED: &[(&str, &str, u16, &str)] = &[
    (
        "GET",
        "",
        400,
        "Must set 'cluster' parameter to a valid content cluster id when visiting at a root /document/v1/ level",
    ),
    ("GET", "?cluster=*", 400, "Your Vespa deployment has no content cluster '*', only 'plimsoll'"),
    ("GET", "?cluster=", 400, "Expected non-empty value for request property 'cluster'"),
    ("GET", "?cluster=plimsoll&bucketSpace=other", 400, "bucketSpace must be"),
    ("GET", "?cluster=plimsoll&dryRun=true", 400, "May not specify 'dryRun' at '/document/v1/'"),
    ("GET", "?cluster=plimsoll&dryRun=FALSE", 400, "May not specify 'dryRun' at '/document/v1/'"),
    ("GET", "?cluster=plimsoll&wantedDocumentCount=0", 400, "wantedDocumentCount must be positive"),
    ("GET", "?cluster=plimsoll&wantedDocumentCount=x", 400, "For input string: \"x\""),
    ("GET", "?cluster=plimsoll&concurrency=0", 400, "concurrency must be positive"),
    ("GET", "?cluster=plimsoll&slices=2", 400, "sliceId"),
    ("GET", "?cluster=plimsoll&sliceId=0", 400, "slices"),
    ("GET", "?cluster=plimsoll&slices=0&sliceId=0", 400, "slices must be positive"),
    ("GET", "?cluster=plimsoll&slices=2&sliceId=2", 400, "sliceId must be in [0, 2), but was 2"),
    ("GET", "?cluster=plimsoll&slices=2&sliceId=-1", 400, "Failed parsing '-1'"),
    ("GET", "?cluster=plimsoll&continuation=zzz", 400, "Failed parsing 'zzz': "),
    ("GET", "?cluster=plimsoll&fromTimestamp=2&toTimestamp=1", 400, "toTimestamp must be greater"),
    ("GET", "?cluster=plimsoll&fieldSet=doc:nofield", 400, "No such field nofield"),
    ("GET", "?cluster=plimsoll&fieldSet=nofield", 400, "The field set list must consist of"),
    ("GET", "?cluster=plimsoll&timeout=-1", 400, "Failed parsing '-1'"),
    ("GET", "?cluster=plimsoll&timeout=0", 504, "Timeout after 0ms"),
    ("GET", "?cluster=plimsoll&selection=doc.", 400, "document selector"),
    ("GET", "?cluster=plimsoll&stream=true&selection=doc.", 400, "document selector"),
    ("GET", "?cluster=plimsoll&stream=true&slices=2&sliceId=2", 400, "sliceId must be in [0, 2)"),
    ("PUT", "?cluster=plimsoll&selection=true", 405, "'PUT' not allowed at '/document/v1/'"),
    ("PATCH", "", 405, "'PATCH' not allowed"),
    (
        "POST",
        "?cluster=plimsoll&selection=true",
        400,
        "Must specify 'destinationCluster' at '/document/v1/'",
    ),
    (
        "POST",
        "?cluster=plimsoll&selection=true&destinationCluster=b",
        400,
        "no content cluster 'b', only",
    ),
    ("DELETE", "?selection=true", 400, "Must specify 'cluster' at '/document/v1/'"),
    ("DELETE", "?cluster=plimsoll", 400, "Must specify 'selection' at '/document/v1/'"),
    (
        "DELETE",
        "?cluster=plimsoll&selection=true&concurrency=2",
        400,
        "May not specify 'concurrency' at '/document/v1/'",
    ),
    ("DELETE", "?cluster=plimsoll&selection=true&fieldSet=[id]", 400, "May not specify 'fieldSet'"),
    ("DELETE", "?cluster=plimsoll&selection=true&route=x", 400, "May not specify 'route'"),
    (
        "DELETE",
        "?cluster=plimsoll&selection=true&wantedDocumentCount=2",
        400,
        "May not specify 'wantedDocumentCount'",
    ),
    ("DELETE", "?cluster=plimsoll&selection=true&dryRun=true", 400, "May not specify 'dryRun'"),
    ("GET", "a/b", 404, "Nothing at '/document/v1/a/b'. Available paths are:\n/document/v1/\n"),
    ("GET", "test/music/docid/", 400, "Document type music does not exist"),
    ("GET", "test/doc/number/abc/", 400, "Failed parsing 'abc': For input string: \"abc\""),
];

#[test]
fn bad_requests_are_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let (mut one, mut two) = (server.client(), Two::connect(server.address));
    for (method, rest, status, message) in REFUSED {
        let path =
            format!("{ROOT}{}", rest.replace('[', "%5B").replace(']', "%5D").replace('*', "%2A"));
        let first = one.request(method, &path, "", b"");
        let second = two.request(method, &path, "", b"");
        assert_eq!(first.status, *status, "{method} {path}: {}", first.body);
        assert!(first.message().contains(message), "{method} {path}: {}", first.body);
        assert_eq!((second.status, second.body), (first.status, first.body));
    }
    let lines = "Accept: nonsense\r\n";
    let reply = one.request("GET", "/document/v1/?cluster=plimsoll&stream=true", lines, b"");
    assert_eq!(reply.status, 400, "{}", reply.body);
    assert_eq!(one.get("/document/v1").status, 404);
    let reply = one.request("OPTIONS", ROOT, "", b"");
    assert_eq!(reply.status, 204);
    assert!(reply.head.contains("allow: GET,POST,PUT,DELETE"), "{}", reply.head);
}

#[test]
fn the_forms_of_replies_are_those_of_vespa() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let (mut one, mut two) = (server.client(), Two::connect(server.address));
    let empty = r#"{"pathId":"/document/v1/","documents":[],"documentCount":0}"#;
    assert_eq!(one.get("/document/v1/?cluster=plimsoll").body, empty);
    one.put("gz", r#"{"title":"t","score":1}"#);
    let full = r#"{"pathId":"/document/v1/","documents":[{"id":"id:test:doc::gz","fields":{"title":"t","score":1}}],"documentCount":1"#;
    // One document is enough unless more are asked for; the rest of the space is left.
    let reply = one.get("/document/v1/?cluster=plimsoll");
    let token = "AAAACAAAAAAAAACUAAAAAAAAAJQAAAAAAAABAAAAAAA=";
    assert_eq!(reply.body, format!("{full},\"continuation\":\"{token}\"}}"));
    let rest = one.get(&format!("/document/v1/?cluster=plimsoll&continuation={token}"));
    assert_eq!(rest.body, empty);
    for query in ["cluster=plimsoll&stream=true", "cluster=plimsoll&wantedDocumentCount=9"] {
        let path = format!("/document/v1/?{query}");
        for reply in [one.get(&path), two.request("GET", &path, "", b"")] {
            assert_eq!(reply.body, format!("{full}}}"), "{query}");
            assert!(reply.head.contains("content-type: application/json"), "{}", reply.head);
            assert!(reply.head.contains("vary: accept-encoding"), "{}", reply.head);
        }
    }
    let lines = concat!(
        "{\"put\":\"id:test:doc::gz\",\"fields\":{\"title\":\"t\",\"score\":1}}\n",
        "TOKEN{\"sessionStats\":{\"documentCount\":1}}\n",
        "{\"continuation\":{\"percentFinished\":100.0}}\n",
    );
    let accept = "Accept: application/json, application/jsonl\r\n";
    let path = "/document/v1/?cluster=plimsoll&stream=true&wantedDocumentCount=1";
    for reply in [one.request("GET", path, accept, b""), two.request("GET", path, accept, b"")] {
        assert!(reply.head.contains("content-type: application/jsonl; charset=UTF-8"));
        let without: String = reply
            .body
            .split_inclusive('\n')
            .filter(|line| !line.starts_with("{\"continuation\":{\"token\""))
            .collect();
        assert_eq!(without, lines.replace("TOKEN", ""));
    }
    // Other collections have other paths and prefixes.
    one.request("POST", "/document/v1/test/doc/number/7/n", JSON, br#"{"fields":{}}"#);
    one.request("POST", "/document/v1/test/doc/group/a+b/g", JSON, br#"{"fields":{}}"#);
    for (path, id) in [
        ("/document/v1/test/doc/number/7/", "id:test:doc:n=7:n"),
        ("/document/v1/test/doc/number/7", "id:test:doc:n=7:n"),
        ("/document/v1/test/doc/group/a%20b/", "id:test:doc:g=a b:g"),
    ] {
        let expected =
            json!({"pathId": path, "documents": [{"id": id, "fields": {}}], "documentCount": 1});
        assert_eq!(one.get(path).json(), expected);
    }
    for (path, count) in [
        ("/document/v1/test/doc/docid?wantedDocumentCount=99", 3),
        ("/document/v1/other/doc/docid/?wantedDocumentCount=99", 0),
        (
            "/document/v1/test/doc/docid/?wantedDocumentCount=99&cluster=plimsoll&bucketSpace=global",
            0,
        ),
        ("/document/v1/test/doc/number/8/", 0),
        ("/document/v1/?cluster=plimsoll&stream=true&selection=false", 0),
        ("/document/v1/?cluster=plimsoll&stream=true&selection=true", 3),
    ] {
        let reply = one.get(path).json();
        assert_eq!(reply["documentCount"], count, "{path}: {reply}");
        assert_eq!(reply["documents"].as_array().unwrap().len(), count);
        assert!(reply.get("continuation").is_none(), "{path}: {reply}");
    }
}

fn count(client: &mut Client) -> u64 {
    client.json("GET", "/document/v1/?cluster=plimsoll&stream=true", "")["documentCount"]
        .as_u64()
        .unwrap()
}

#[test]
fn conditions_and_creation_decide_in_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = server.client();
    let put = r#"{"fields":{"title":"t"}}"#;
    let update = r#"{"fields":{"score":{"assign":1}}}"#;
    let failed = "TEST_AND_SET_CONDITION_FAILED";
    for (method, rest, body, status) in [
        ("POST", "a?condition=true", put, 412),
        ("PUT", "a?condition=true", update, 412),
        ("DELETE", "a?condition=true", "", 412),
        ("POST", "a?condition=false&create=true", put, 200),
        ("POST", "a?condition=false&create=true", put, 412),
        ("POST", "a?condition=true", put, 200),
        ("PUT", "a?condition=false", update, 412),
        ("PUT", "a", r#"{"condition":"false","fields":{"score":{"assign":2}}}"#, 412),
        ("POST", "a", r#"{"condition":"false","fields":{}}"#, 412),
        ("PUT", "a", r#"{"condition":"true","fields":{"score":{"assign":2}}}"#, 200),
        ("DELETE", "a?condition=false", "", 412),
        ("PUT", "b?condition=false&create=true", update, 200),
        ("PUT", "c", r#"{"condition":"false","create":true,"fields":{"score":{"assign":3}}}"#, 200),
        ("PUT", "a?condition=doc.score%3D%3D2", update, 200),
        ("PUT", "a?condition=doc.score%3D%3D2", update, 412),
        ("PUT", "a?condition=doc.score/0%3E1", update, 400),
        ("POST", "a?condition=doc.", put, 400),
    ] {
        let path = document(rest);
        let reply = client.request(method, &path, JSON, body.as_bytes());
        assert_eq!(reply.status, status, "{method} {rest} {body}: {}", reply.body);
        if status == 412 {
            assert!(reply.message().contains(failed), "{}", reply.body);
            assert_eq!(reply.json()["id"], "id:test:doc::a");
        }
    }
    let fields =
        |client: &mut Client, name: &str| client.get(&document(name)).json()["fields"].clone();
    assert_eq!(fields(&mut client, "a"), json!({"title": "t", "score": 1}));
    assert_eq!(fields(&mut client, "b"), json!({"score": 1}));
    assert_eq!(fields(&mut client, "c"), json!({"score": 3}));
    assert_eq!(client.request("DELETE", &document("a?condition=true"), "", b"").status, 200);
    assert_eq!(client.get(&document("a")).status, 404);
}

#[test]
fn operations_on_selections_change_what_they_match() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = server.client();
    for number in 0..300 {
        client.put(&number.to_string(), &format!("{{\"score\":{number}}}"));
    }
    let other = "/document/v1/other/doc/docid/x";
    client.request("POST", other, JSON, br#"{"fields":{"score":1000}}"#);
    let query = "?cluster=plimsoll&selection=true";
    let body = r#"{"fields":{"score":{"increment":1000}}}"#;
    let reply = client.json("PUT", &format!("{DOCS}{query}"), body);
    assert_eq!(reply, json!({"pathId": DOCS, "documentCount": 300}));
    assert_eq!(client.get(&document("7")).json()["fields"]["score"], 1007);
    assert_eq!(client.get(other).json()["fields"]["score"], 1000);
    let copy = format!("{ROOT}{query}&destinationCluster=plimsoll");
    assert_eq!(client.json("POST", &copy, "")["documentCount"], 301);
    assert_eq!(count(&mut client), 301);
    // Slices and pieces of time add up.
    let mut removed = 0;
    for slice in 0..3 {
        let mut continuation = String::new();
        let mut requests = 0;
        loop {
            let path =
                format!("{DOCS}{query}&slices=3&sliceId={slice}&timeChunk=1us{continuation}");
            let reply = client.json("DELETE", &path, "");
            removed += reply["documentCount"].as_u64().unwrap();
            assert!(reply.get("documents").is_none());
            requests += 1;
            let Some(token) = reply["continuation"].as_str() else { break };
            continuation = format!("&continuation={token}");
        }
        assert!(requests > 2, "{requests}");
    }
    assert_eq!(removed, 300);
    assert_eq!(count(&mut client), 1);
    client.refresh();
    assert_eq!(client.find("true").total(), 1);
    let bad = client.request(
        "PUT",
        &format!("{DOCS}{query}"),
        JSON,
        br#"{"fields":{"no":{"assign":1}}}"#,
    );
    assert_eq!(bad.status, 400);
}

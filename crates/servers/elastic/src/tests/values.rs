//! Requests whose values take many times as much memory as their text.

use super::{Elastic, NDJSON, server};
use crate::memory::alone;
use plimsoll_core::clock::now_ns;
use plimsoll_index::fuzzy::FuzzyMode;
use plimsoll_probe::TestServer;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::TcpStream;

/// A list of this many values.
fn list(value: &str, count: usize) -> String {
    format!("[{}1]", format!("{value},").repeat(count))
}

#[test]
fn bodies_that_would_take_gigabytes_as_a_tree_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    es.ok("PUT", "/m", &Json::Null);
    let objects = list("{\"\":1}", 1_000_000);
    let terms = format!("{{\"query\":{{\"terms\":{{\"k\":{objects}}}}}}}");
    for (method, path, body) in [
        ("POST", "/m/_search", terms.clone()),
        ("POST", "/m/_count", terms.clone()),
        ("POST", "/m/_mget", format!("{{\"docs\":{objects}}}")),
        ("POST", "/m/_msearch", format!("{{}}\n{terms}\n")),
        ("POST", "/m/_update/1", format!("{{\"doc_as_upsert\":true,\"doc\":{{\"n\":{objects}}}}}")),
        ("POST", "/m/_update/_doc", format!("{{\"doc\":{{\"n\":{objects}}}}}")),
        ("PUT", "/m/_settings", format!("{{\"index\":{objects}}}")),
        ("PUT", "/m/_mapping", format!("{{\"properties\":{objects}}}")),
        ("PUT", "/n", format!("{{\"mappings\":{objects}}}")),
    ] {
        let reply = es.raw(method, path, &body);
        assert_eq!(reply.status, 413, "{method} {path}: {}", reply.body);
        assert_eq!(reply.json()["error"]["type"], "content_too_long_exception", "{path}");
    }
    // As many values as a query may have are no such body.
    let terms = json!({"query": {"terms": {"k": (0..65_536).collect::<Vec<_>>()}}});
    assert_eq!(es.ask("POST", "/m/_search", &terms).0, 200);
}

#[test]
fn a_document_of_too_many_values_is_refused_and_its_neighbours_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let long = format!("{{\"n\":{}}}", list("1", 2_000_000));
    assert_eq!(es.raw("PUT", "/m/_doc/long", &long).status, 413);
    let lines = format!(
        "{{\"index\":{{\"_id\":\"a\"}}}}\n{{\"n\":1}}\n{{\"index\":{{\"_id\":\"long\"}}}}\n{long}\n{{\"index\":{{\"_id\":\"b\"}}}}\n{{\"n\":2}}\n"
    );
    let reply = es.client.request("POST", "/m/_bulk?refresh=true", NDJSON, lines.as_bytes()).json();
    let status = |at: usize| reply["items"][at]["index"]["status"].as_u64();
    assert_eq!([status(0), status(1), status(2)], [Some(201), Some(413), Some(201)]);
    assert_eq!(es.ok("GET", "/m/_count", &Json::Null)["count"], 2);
    // A document does not become one by updates either.
    let half = json!({"doc": {"a": vec![1; 500_000]}});
    es.ok("POST", "/m/_update/a", &half);
    es.ok("POST", "/m/_update/a", &json!({"doc": {"b": vec![1; 500_000]}}));
    es.ok("POST", "/m/_update/a", &json!({"doc": {"c": vec![1; 500_000]}}));
    assert_eq!(es.ask("POST", "/m/_update/a", &json!({"doc": {"d": vec![1; 500_000]}})).0, 413);
}

#[test]
fn a_large_bulk_request_does_what_many_small_ones_do() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    // Values of 40 bytes each: beyond the room of one request, so that they are read when it is their turn.
    let many = list("7", 100_000);
    let mut lines = String::new();
    for id in 0..20 {
        let _ = write!(
            lines,
            "{{\"index\":{{\"_id\":\"{id}\"}}}}\n{{\"word\":\"w{id}\",\"n\":{many}}}\n"
        );
    }
    lines += "{\"create\":{\"_id\":\"3\"}}\n{\"word\":\"again\"}\n";
    lines += "{\"delete\":{\"_id\":\"4\"}}\n";
    lines += "{\"update\":{\"_id\":\"5\"}}\n{\"doc\":{\"word\":\"changed\"},\"_source\":true}\n";
    lines += "{\"update\":{\"_id\":\"missing\"}}\n{\"doc\":{\"word\":\"x\"}}\n";
    lines += "{\"update\":{\"_id\":\"6\"}}\n{\"document\":{}}\n";
    lines += "{\"index\":{\"_id\":\"7\"}}\n{\"n\":{\"an\":\"object\"}}\n";
    let reply = es.client.request("POST", "/m/_bulk?refresh=true", NDJSON, lines.as_bytes()).json();
    let items = reply["items"].as_array().unwrap();
    let status: Vec<u64> = items[20..]
        .iter()
        .map(|item| item.as_object().unwrap().values().next().unwrap()["status"].as_u64().unwrap())
        .collect();
    assert_eq!(status, [409, 200, 200, 404, 400, 400]);
    assert!(items[..20].iter().all(|item| item["index"]["status"] == 201));
    assert!(items[22]["update"]["get"].is_null());
    assert_eq!(es.ok("GET", "/m/_count", &Json::Null)["count"], 19);
    for (word, ids) in [
        ("w3", vec!["3"]),
        ("w4", vec![]),
        ("w5", vec![]),
        ("changed", vec!["5"]),
        ("again", vec![]),
    ] {
        let found = es.search("m", &json!({"query": {"match": {"word": word}}, "_source": false}));
        let hits = found["hits"]["hits"].as_array().unwrap();
        let found: Vec<&str> = hits.iter().filter_map(|hit| hit["_id"].as_str()).collect();
        assert_eq!(found, ids, "{word}");
    }
    let found = es.search("m", &json!({"query": {"term": {"n": 7}}, "_source": false}));
    assert_eq!(found["hits"]["total"]["value"], 19);
}

#[test]
fn many_updates_of_a_long_document_are_written_as_they_come() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    es.ok("PUT", "/m/_doc/1", &json!({"t": "a".repeat(1_000_000), "n": 0}));
    // 50 MB of documents, of which the log takes 16 MB at a time.
    let lines: String = (1..=50)
        .map(|n| format!("{{\"update\":{{\"_id\":\"1\"}}}}\n{{\"doc\":{{\"n\":{n}}}}}\n"))
        .collect();
    let reply = es.client.request("POST", "/m/_bulk?refresh=true", NDJSON, lines.as_bytes()).json();
    assert_eq!(reply["errors"], false);
    assert_eq!(reply["items"][49]["update"]["_version"], 51);
    let document = es.ok("GET", "/m/_doc/1?_source_includes=n", &Json::Null);
    assert_eq!(document["_source"], json!({"n": 50}));
    for (n, count) in [(50, 1), (49, 0)] {
        let counted = es.ok("GET", "/m/_count", &json!({"query": {"term": {"n": n}}}));
        assert_eq!(counted["count"], count, "{n}");
    }
}

#[test]
fn replies_longer_than_a_hundred_megabytes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let long = "a".repeat(30_000_000);
    for id in 0..4 {
        es.ok("PUT", &format!("/m/_doc/{id}?refresh=true"), &json!({"t": long}));
    }
    assert_eq!(es.raw("GET", "/m/_search?size=3", "").status, 200);
    let three = json!({"ids": ["0", "1", "2"]}).to_string();
    assert_eq!(es.raw("POST", "/m/_mget", &three).status, 200);
    let searches = "{}\n{\"size\":3}\n{}\n{\"size\":3}\n{}\n{}\n";
    let ids = json!({"ids": vec!["1"; 1_000]}).to_string();
    for (path, body) in
        [("/m/_search", "{}"), ("/m/_mget", ids.as_str()), ("/m/_msearch", searches)]
    {
        let reply = es.raw("POST", path, body);
        assert_eq!(reply.status, 400, "{path}: {}", &reply.body[..reply.body.len().min(300)]);
        let reason = reply.json()["error"]["reason"].as_str().unwrap_or_default().to_owned();
        assert!(reason.contains("ask for fewer documents"), "{path}: {reason}");
    }
    let shown =
        es.ok("GET", "/m/_search?_source_excludes=t&filter_path=hits.hits._source", &Json::Null);
    assert_eq!(shown["hits"]["hits"].as_array().map(Vec::len), Some(4));
    // Values that would take too much memory in another shape.
    es.ok("PUT", "/n/_doc/1?refresh=true", &json!({"n": vec![1; 1_500_000]}));
    es.ok("PUT", "/n/_doc/2?refresh=true", &json!({"n": vec![1; 1_500_000]}));
    assert_eq!(es.raw("GET", "/n/_search", "").status, 200);
    assert_eq!(es.raw("GET", "/n/_search?pretty", "").status, 400);
}

/// Sends a request, and leaves its reply for later.
fn send(server: &TestServer, method: &str, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    stream
}

#[test]
fn replies_count_together_until_they_have_their_shape() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let long = "a".repeat(31_000_000);
    for id in 0..3 {
        es.ok("PUT", &format!("/m/_doc/{id}?refresh=true"), &json!({"t": long}));
    }
    let three = json!({"ids": ["0", "1", "2"]}).to_string();
    // While this thread has the room for long trees, no other can bring a reply into its shape.
    let room = alone(usize::MAX);
    let replies = [
        send(&server, "POST", "/m/_mget?filter_path=docs._id", &three),
        send(&server, "GET", "/m/_search?size=3&filter_path=hits.hits._id", ""),
    ];
    let is_full = || es.raw("GET", "/m/_search?size=3", "").status == 429;
    let until_ns = now_ns() + 60_000_000_000;
    let mut is_full = std::iter::repeat_with(is_full).take_while(|_| now_ns() < until_ns);
    assert!(is_full.any(|is_full| is_full), "a third reply of 93 MB has no room");
    drop(is_full);
    let several = es.client.request("POST", "/m/_msearch", NDJSON, b"{}\n{\"size\":3}\n").json();
    assert_eq!(several["responses"][0]["status"], 429);
    assert_eq!(several["responses"][0]["error"]["type"], "circuit_breaking_exception");
    assert_eq!(es.raw("GET", "/m/_search?size=0", "").status, 200, "short replies have room");
    drop(room);
    for mut reply in replies {
        let mut text = String::new();
        reply.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200") && text.matches("\"_id\"").count() == 3, "{text}");
    }
    assert_eq!(es.raw("POST", "/m/_mget", &three).status, 200);
}

/// A search for each name among those before it would take longer than the client waits.
#[test]
fn a_bulk_request_may_name_a_hundred_thousand_indices() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let delete = |n: usize| format!("{{\"delete\":{{\"_index\":\"_{n}\",\"_id\":\"1\"}}}}\n");
    let body: String = (0..100_000).map(delete).collect();
    let reply = es.client.request("POST", "/_bulk", NDJSON, body.as_bytes());
    assert_eq!(reply.status, 200, "{}", &reply.body[..reply.body.len().min(2000)]);
    assert_eq!(reply.body.matches("invalid_index_name_exception").count(), 100_000);
}

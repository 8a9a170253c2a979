//! Visits: every document once, whatever the slices, pauses and forms.

use super::two::Two;
use super::{Client, JSON, Numbers, TestServer, document, start_with};
use crate::VespaConfig;
use flate2::read::GzDecoder;
use plimsoll_front::Durability;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

const LINES: &str = "Accept: application/jsonl\r\n";

fn server(folder: &Path, distribution_bits: u8) -> TestServer {
    start_with(VespaConfig {
        durability: Durability::None,
        distribution_bits,
        ..VespaConfig::new(folder)
    })
}

/// Some documents with names, some of numbers and groups; gives their ids.
fn feed(server: &TestServer, count: usize) -> BTreeSet<String> {
    let mut two = Two::connect(server.address);
    let mut ids = BTreeSet::new();
    let mut requests = Vec::new();
    for n in 0..count {
        let (place, spec) = match n % 5 {
            0 => (format!("number/{}", n % 15), format!("n={}", n % 15)),
            1 => (format!("group/g{}", n % 3), format!("g=g{}", n % 3)),
            _ => ("docid".to_owned(), String::new()),
        };
        ids.insert(format!("id:test:doc:{spec}:{n}"));
        let body = format!("{{\"fields\":{{\"title\":\"document {n}\",\"score\":{n}}}}}");
        requests.push(("POST", format!("/document/v1/test/doc/{place}/{n}"), body.into_bytes()));
    }
    for part in requests.chunks(500) {
        assert!(two.all(part).iter().all(|reply| reply.status == 200));
    }
    ids
}

/// The ids in a reply, checked against its count.
fn ids(reply: &Json) -> Vec<String> {
    let documents = reply["documents"].as_array().unwrap();
    assert_eq!(reply["documentCount"], documents.len());
    let id = |document: &Json| {
        let id = document.get("id").or(document.get("remove")).unwrap();
        id.as_str().unwrap().to_owned()
    };
    documents.iter().map(id).collect()
}

/// Follows the tokens to the end; gives all ids in order and the number of replies.
fn follow(client: &mut Client, path: &str) -> (Vec<String>, usize) {
    let mut all = Vec::new();
    let mut continuation = String::new();
    for replies in 1.. {
        let reply = client.json("GET", &format!("{path}{continuation}"), "");
        all.extend(ids(&reply));
        let Some(token) = reply["continuation"].as_str() else { return (all, replies) };
        continuation = format!("&continuation={token}");
    }
    unreachable!()
}

fn set(ids: &[String]) -> BTreeSet<String> {
    let set: BTreeSet<String> = ids.iter().cloned().collect();
    assert_eq!(set.len(), ids.len(), "a document came twice");
    set
}

#[test]
fn following_tokens_gives_every_document_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), 8);
    let expected = feed(&server, 1000);
    let mut client = server.client();
    let root = "/document/v1/?cluster=plimsoll";
    let (one_by_one, replies) = follow(&mut client, root);
    assert_eq!(set(&one_by_one), expected);
    // At most one bucket a reply, and none without documents but perhaps the last.
    assert!((200..=257).contains(&replies), "{replies}");
    for query in [
        "&wantedDocumentCount=100",
        "&wantedDocumentCount=100&concurrency=8",
        "&wantedDocumentCount=100000",
        "&stream=true",
        "&stream=true&wantedDocumentCount=70",
        "&stream=true&concurrency=100",
        "&concurrency=5",
    ] {
        let (all, replies) = follow(&mut client, &format!("{root}{query}"));
        assert_eq!(all, one_by_one, "{query}: the order is that of the buckets");
        if query.contains("100") && !query.contains("concurrency") && !query.contains("stream") {
            assert!(replies <= 11, "{query}: {replies}");
        }
    }
    assert_eq!(set(&follow(&mut client, "/document/v1/test/doc/docid/?a=b").0), expected);
    let (some, _) = follow(&mut client, "/document/v1/test/doc/number/10/?stream=true");
    let of_ten: BTreeSet<_> = expected.iter().filter(|id| id.contains(":n=10:")).cloned().collect();
    assert_eq!(set(&some), of_ten);
}

#[test]
fn slices_are_a_partition() {
    let mut numbers = Numbers(77);
    for bits in [3, 8, 16] {
        let folder = tempfile::tempdir().unwrap();
        let server = server(folder.path(), bits);
        let expected = feed(&server, 250);
        let mut client = server.client();
        let of = |part: &str| -> BTreeSet<String> {
            expected.iter().filter(|id| id.contains(part)).cloned().collect()
        };
        for (path, expected) in [
            ("/document/v1/?cluster=plimsoll", expected.clone()),
            ("/document/v1/test/doc/number/5/?cluster=plimsoll", of(":n=5:")),
            ("/document/v1/test/doc/group/g1/?cluster=plimsoll", of(":g=g1:")),
        ] {
            assert!(!expected.is_empty());
            let many = if bits == 8 { 300 } else { 5 };
            for slices in [1, 2, 2 + numbers.below(20), many] {
                let form = [
                    "&stream=true",
                    "&wantedDocumentCount=17",
                    "&wantedDocumentCount=17&concurrency=3",
                ][numbers.below(3)];
                let mut all = Vec::new();
                for slice in 0..slices {
                    let path = format!("{path}{form}&slices={slices}&sliceId={slice}");
                    all.extend(follow(&mut client, &path).0);
                }
                assert_eq!(set(&all), expected, "{path}, {slices} slices, {bits} bits");
            }
        }
    }
}

/// A streamed reply by its lines: ids with, before which line, the tokens.
fn lines(body: &str) -> (Vec<String>, Vec<(usize, String, f64)>, bool) {
    let (mut ids, mut tokens, mut finished) = (Vec::new(), Vec::new(), false);
    let mut counted = None;
    for line in body.lines() {
        let json: Json = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(!finished, "nothing follows the end");
        if let Some(id) = json.get("put").or(json.get("remove")) {
            ids.push(id.as_str().unwrap().to_owned());
        } else if let Some(stats) = json.get("sessionStats") {
            counted = stats["documentCount"].as_u64();
        } else {
            let percent = json["continuation"]["percentFinished"].as_f64().unwrap();
            match json["continuation"]["token"].as_str() {
                Some(token) => tokens.push((ids.len(), token.to_owned(), percent)),
                None => finished = true,
            }
        }
    }
    assert_eq!(counted, Some(ids.len() as u64));
    (ids, tokens, finished)
}

#[test]
fn a_token_between_lines_resumes_exactly_there() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), 8);
    let expected = feed(&server, 1500);
    let mut client = server.client();
    for slicing in ["", "&slices=3&sliceId=1"] {
        let path = format!("/document/v1/?cluster=plimsoll&stream=true{slicing}");
        let reply = client.request("GET", &format!("{path}&concurrency=3"), LINES, b"");
        let (all, tokens, finished) = lines(&reply.body);
        assert!(finished);
        if slicing.is_empty() {
            assert_eq!(set(&all), expected);
        }
        assert!(tokens.len() > 5, "{}", tokens.len());
        assert!(tokens.windows(2).all(|pair| pair[0].2 < pair[1].2), "percentages grow");
        for (position, token, _) in &tokens {
            let reply = client.request("GET", &format!("{path}&continuation={token}"), LINES, b"");
            assert_eq!(lines(&reply.body).0, all[*position..], "{token}");
            // The forms share their tokens.
            let path = format!("{path}&wantedDocumentCount=50&continuation={token}");
            assert_eq!(follow(&mut client, &path).0, all[*position..]);
        }
    }
}

#[test]
fn a_visit_that_runs_out_of_time_gives_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), 8);
    let expected = feed(&server, 1000);
    let mut client = server.client();
    // One millisecond is over after the first buckets, or before them.
    let mut all = Vec::new();
    let mut continuation = String::new();
    let (mut paused, mut refused) = (0, 0);
    loop {
        let path = format!(
            "/document/v1/?cluster=plimsoll&wantedDocumentCount=9999&timeout=1ms{continuation}"
        );
        let reply = client.get(&path);
        if reply.status == 504 {
            refused += 1;
            let text = "No buckets visited within timeout of 1ms (request timeout -5s)";
            assert_eq!(reply.message(), text);
            assert!(refused < 10_000);
            continue;
        }
        assert_eq!(reply.status, 200, "{}", reply.body);
        let json = reply.json();
        all.extend(ids(&json));
        let Some(token) = json["continuation"].as_str() else { break };
        continuation = format!("&continuation={token}");
        paused += 1;
    }
    assert_eq!(set(&all), expected);
    assert!(paused + refused > 0, "a millisecond was enough for everything");
    // Lines end with a token, so that the client knows that there is more.
    let reply =
        client.request("GET", "/document/v1/?cluster=plimsoll&stream=true&timeout=1ms", LINES, b"");
    let (some, tokens, finished) = lines(&reply.body);
    assert!(finished || (!tokens.is_empty() && some.len() < 1000));
}

#[test]
fn times_removals_and_field_sets() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), 8);
    let mut client = server.client();
    let before = plimsoll_core::clock::wall_us();
    for name in ["a", "b", "c"] {
        client.put(name, r#"{"title":"t","score":1}"#);
    }
    std::thread::sleep(std::time::Duration::from_millis(5));
    let between = plimsoll_core::clock::wall_us();
    client.request("DELETE", &document("b"), "", b"");
    client.put("c", r#"{"title":"new"}"#);
    client.put("d", r#"{"title":"new"}"#);
    let mut found = |query: &str| {
        let path = format!("/document/v1/?cluster=plimsoll&wantedDocumentCount=99{query}");
        let json = client.json("GET", &path, "");
        let mut ids = ids(&json);
        ids.sort();
        ids.iter().map(|id| id.rsplit(':').next().unwrap()).collect::<String>()
    };
    assert_eq!(found(""), "acd");
    assert_eq!(found(&format!("&fromTimestamp={before}")), "acd");
    assert_eq!(found(&format!("&fromTimestamp={between}")), "cd");
    assert_eq!(found(&format!("&toTimestamp={between}")), "a");
    assert_eq!(found(&format!("&fromTimestamp={between}&includeRemoves=true")), "bcd");
    assert_eq!(found("&includeRemoves=true"), "abcd");
    assert_eq!(found("&includeRemoves=true&stream=true"), "abcd");
    assert_eq!(found(&format!("&fromTimestamp={}", u64::MAX)), "");
    let removal = |client: &mut Client, headers: &str| {
        let path =
            "/document/v1/test/doc/docid/?stream=true&includeRemoves=true&fieldSet=doc:score";
        client.request("GET", path, headers, b"").body
    };
    let body = removal(&mut client, "");
    assert!(body.contains(r#"{"remove":"id:test:doc::b"}"#), "{body}");
    assert!(body.contains(r#"{"id":"id:test:doc::a","fields":{"score":1}}"#), "{body}");
    assert!(body.contains(r#"{"id":"id:test:doc::c","fields":{}}"#), "{body}");
    let body = removal(&mut client, LINES);
    assert!(body.contains("{\"remove\":\"id:test:doc::b\"}\n"), "{body}");
    // Fed again, the document is no removal any more.
    client.put("b", r#"{"title":"again"}"#);
    assert!(!removal(&mut client, "").contains("remove\":"));
    let body = client.get("/document/v1/test/doc/docid/?stream=true&fieldSet=%5Bid%5D").body;
    assert!(body.contains(r#"{"id":"id:test:doc::a","fields":{}}"#), "{body}");
}

#[test]
fn packed_replies_are_the_plain_ones() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), 8);
    feed(&server, 2000);
    let (mut one, mut two) = (server.client(), Two::connect(server.address));
    for (path, accept) in [
        ("/document/v1/?cluster=plimsoll&wantedDocumentCount=99999", ""),
        ("/document/v1/?cluster=plimsoll&stream=true", ""),
        ("/document/v1/?cluster=plimsoll&stream=true&selection=false", ""),
        ("/document/v1/?cluster=plimsoll&wantedDocumentCount=1", ""),
    ] {
        let plain = one.request("GET", path, accept, b"");
        let headers = format!("{accept}Accept-Encoding: gzip\r\n");
        for packed in
            [one.request("GET", path, &headers, b""), two.request("GET", path, &headers, b"")]
        {
            assert!(packed.head.contains("content-encoding: gzip"), "{}", packed.head);
            let mut text = String::new();
            let mut decoder = GzDecoder::new(packed.raw.as_slice());
            decoder.read_to_string(&mut text).unwrap();
            assert_eq!(text, plain.body);
            assert!(decoder.into_inner().is_empty());
            if plain.raw.len() > 100_000 {
                assert!(packed.raw.len() * 2 < plain.raw.len());
            }
        }
    }
    let accept = format!("{LINES}Accept-Encoding: gzip\r\n");
    let reply = one.request("GET", "/document/v1/?cluster=plimsoll&stream=true", &accept, b"");
    let mut text = String::new();
    GzDecoder::new(reply.raw.as_slice()).read_to_string(&mut text).unwrap();
    assert_eq!(lines(&text).0.len(), 2000);
    // Refusals are plain or packed, but never marked as what they are not.
    let reply = one.request("GET", "/document/v1/?cluster=x", "Accept-Encoding: gzip\r\n", b"");
    assert!(!reply.head.contains("content-encoding"), "{}", reply.head);
    assert!(reply.json()["message"].as_str().unwrap().contains("no content cluster"));
}

#[test]
fn each_document_is_seen_at_its_buckets_turn() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), 8);
    let mut client = server.client();
    // Bytes that do not fit into buffers on the way, so that the visit waits for its reader.
    let filler = "word ".repeat(40_000);
    for number in 0..256 {
        let body = format!("{{\"title\":\"old\",\"body\":\"{filler}\"}}");
        assert_eq!(client.put(&number.to_string(), &body).status, 200);
    }
    let (order, _) =
        follow(&mut client, "/document/v1/?cluster=plimsoll&stream=true&fieldSet=%5Bid%5D");
    let mut visitor = server.client();
    visitor.send(b"GET /document/v1/?cluster=plimsoll&stream=true&fieldSet=doc:title,body&concurrency=2 HTTP/1.1\r\nHost: t\r\n\r\n");
    // The reply has begun: the first bucket was visited and the last one is far away.
    while !String::from_utf8_lossy(visitor.received()).contains("\"title\":\"old\"") {
        visitor.more().unwrap();
    }
    let name = |id: &String| id.rsplit(':').next().unwrap().to_owned();
    let (first, last) = (name(&order[0]), name(&order[255]));
    for name in [&first, &last] {
        let body = br#"{"fields":{"title":{"assign":"new"}}}"#;
        assert_eq!(client.request("PUT", &document(name), JSON, body).status, 200);
    }
    let reply = visitor.receive().unwrap().json();
    assert_eq!(ids(&reply), order);
    let documents = reply["documents"].as_array().unwrap();
    assert_eq!(documents[0]["fields"]["title"], "old", "it was visited before the change");
    assert_eq!(documents[255]["fields"]["title"], "new", "its turn came after the change");
}

#[test]
fn selections_are_honoured_and_say_where_to_look() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), 8);
    let expected = feed(&server, 300);
    let mut client = server.client();
    let number = |id: &String| id.rsplit(':').next().unwrap().parse::<u64>().unwrap();
    let mut check = |selection: &str, wanted: &dyn Fn(&String) -> bool| {
        let wanted: BTreeSet<String> = expected.iter().filter(|id| wanted(id)).cloned().collect();
        let selection = super::encode(selection);
        for slices in [1, 4] {
            let mut all = Vec::new();
            for slice in 0..slices {
                let path = format!(
                    "/document/v1/?cluster=plimsoll&wantedDocumentCount=40&slices={slices}\
                     &sliceId={slice}&selection={selection}"
                );
                all.extend(follow(&mut client, &path).0);
            }
            assert_eq!(set(&all), wanted, "{selection}");
        }
    };
    check("doc", &|_| true);
    check("doc.score % 7 == 3", &|id| number(id) % 7 == 3);
    check("doc.score >= 290 or doc.title == 'document 5'", &|id| {
        number(id) >= 290 || number(id) == 5
    });
    check("id.user == 10", &|id| id.contains(":n=10:"));
    check("id.group == 'g1' and doc.score < 100", &|id| id.contains(":g=g1:") && number(id) < 100);
    check("id == 'id:test:doc::2'", &|id| id.ends_with("::2"));
    check("not doc.score > 3", &|id| number(id) <= 3);
    let path = "/document/v1/?cluster=plimsoll&wantedDocumentCount=900&selection=";
    let reply = client.get(&format!("{path}{}", super::encode("doc.score / (doc.score - 9) > 1")));
    assert_eq!(reply.status, 400, "{}", reply.body);
    assert!(reply.message().contains("divides by zero"), "{}", reply.body);
    let reply = client.get(&format!("{path}{}", super::encode("year == 2015")));
    assert!(reply.message().starts_with("Exception parsing document selector 'year == 2015': "));
    // A path and a selection that pin different places have nothing in common.
    let reply = client.get("/document/v1/test/doc/number/5/?selection=id.user%3D%3D10").json();
    assert_eq!((&reply["documentCount"], reply.get("continuation")), (&Json::from(0), None));
}

const SCHEMA: &str = "schema music { document music { \
    field artist type string { indexing: summary | index } \
    field year type int { indexing: summary | attribute } \
    field tags type array<string> { indexing: summary | attribute } \
    field vector type tensor<float>(x[3]) { indexing: attribute } } }";

#[test]
fn types_of_schema_files_are_visited_in_their_own_forms() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("music.sd");
    std::fs::write(&file, SCHEMA).unwrap();
    let server = start_with(VespaConfig {
        schemas: vec![file],
        cluster: "library".to_owned(),
        ..VespaConfig::new(folder.path().join("data"))
    });
    let mut client = server.client();
    for (name, body) in [
        ("a", r#"{"artist":"Ann","year":2015,"tags":["x","y"],"vector":[1,2,3]}"#),
        ("b", r#"{"artist":"Bob","year":1999,"tags":["y"]}"#),
    ] {
        let body = format!("{{\"fields\":{body}}}");
        client.json("POST", &format!("/document/v1/ns/music/docid/{name}"), &body);
    }
    let mut visit = |query: &str| {
        let path = format!("/document/v1/?cluster=library&stream=true{query}");
        let reply = client.json("GET", &path, "");
        let mut documents = reply["documents"].as_array().unwrap().clone();
        documents.sort_by_key(|document| document["id"].to_string());
        documents.into_iter().map(|document| document["fields"].clone()).collect::<Vec<_>>()
    };
    let full = serde_json::json!({"artist": "Ann", "year": 2015, "tags": ["x", "y"],
        "vector": {"type": "tensor<float>(x[3])", "values": [1.0, 2.0, 3.0]}});
    assert_eq!(visit("")[0], full);
    let selection = super::encode("music.tags == 'x' and music.year > 2000");
    assert_eq!(visit(&format!("&selection={selection}")), [full]);
    let shown = visit("&fieldSet=music:vector,year&format.tensors=short-value");
    assert_eq!(shown[0], serde_json::json!({"year": 2015, "vector": [1.0, 2.0, 3.0]}));
    assert_eq!(shown[1], serde_json::json!({"year": 1999}));
    let update = "/document/v1/ns/music/docid/?cluster=library&selection=music.year%3C2000";
    let body = r#"{"fields":{"tags":{"add":["old"]}}}"#;
    assert_eq!(client.json("PUT", update, body)["documentCount"], 1);
    let found = client.json("GET", "/document/v1/ns/music/docid/b", "");
    assert_eq!(found["fields"]["tags"], serde_json::json!(["y", "old"]));
    let copy = "/document/v1/?cluster=library&selection=true&destinationCluster=library";
    assert_eq!(client.json("POST", copy, "")["documentCount"], 2);
    let reply = client.get("/document/v1/?cluster=library&format.tensors=odd");
    assert_eq!(reply.status, 400, "{}", reply.body);
    let reply = client.get("/document/v1/?cluster=plimsoll");
    assert!(reply.message().ends_with("no content cluster 'plimsoll', only 'library'"));
}

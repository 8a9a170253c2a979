//! Bulk loads of 60,000 documents and searches of them, in each mode: rates and times.
//! `cargo bench -p plimsoll-elastic --bench loading`

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use plimsoll_core::clock::now_ns;
use plimsoll_elastic::{ElasticConfig, FuzzyMode, run};
use plimsoll_front::Durability;
use plimsoll_probe::{Client, JSON, Numbers, TestServer};
use serde_json::{Value as Json, json};
use std::net::TcpListener;
use std::path::Path;

const NDJSON: &str = "Content-Type: application/x-ndjson\r\n";

/// A server whose writes are not synchronised.
fn server(folder: &Path, fuzzy: FuzzyMode) -> TestServer {
    let config =
        ElasticConfig { fuzzy, durability: Durability::Async, ..ElasticConfig::new(folder) };
    let serve =
        move |mut listeners: Vec<TcpListener>, stop| run(listeners.remove(0), &config, &stop);
    TestServer::start(1, serve).0
}

/// A request that must succeed.
fn ok(client: &mut Client, method: &str, path: &str, body: &str) {
    let reply = client.request(method, path, JSON, body.as_bytes());
    assert!(reply.status < 300, "{method} {path}: {} {}", reply.status, reply.body);
}

/// Text of about 430 bytes a document: a Zipf-like choice of words.
fn corpus(documents: usize) -> Vec<String> {
    let mut numbers = Numbers(99);
    let words: Vec<String> = (0..80_000)
        .map(|i| {
            let length = 3 + numbers.below(8);
            let letters: String =
                (0..length).map(|_| char::from(b'a' + numbers.below(26) as u8)).collect();
            if i < 400 { letters[..3].to_owned() } else { letters }
        })
        .collect();
    (0..documents)
        .map(|i| {
            let mut body = String::new();
            for _ in 0..60 {
                // The product of two uniform numbers falls off about as word frequencies do.
                let at = numbers.below(1000) * numbers.below(1000) * words.len() / 1_000_000;
                let at = at * numbers.below(1000) / 1000;
                body.push_str(&words[at]);
                body.push(' ');
            }
            json!({"body": body, "author": words[i % 5000], "subreddit": words[i % 50],
                "score": numbers.below(1000)})
            .to_string()
        })
        .collect()
}

fn main() {
    let documents = corpus(60_000);
    let bytes: usize = documents.iter().map(String::len).sum();
    for (mode, shards) in [(FuzzyMode::Index, 1), (FuzzyMode::Index, 5), (FuzzyMode::Automaton, 1)]
    {
        let folder = tempfile::tempdir().unwrap();
        let server = server(folder.path(), mode);
        let mut client = server.client();
        let index = json!({"settings": {"number_of_shards": shards}, "mappings": {"properties": {
            "body": {"type": "text"}, "author": {"type": "keyword"},
            "subreddit": {"type": "keyword"}, "score": {"type": "long"}}}});
        ok(&mut client, "PUT", "/l", &index.to_string());
        let start = now_ns();
        for (number, chunk) in documents.chunks(500).enumerate() {
            let mut body = String::new();
            for (i, document) in chunk.iter().enumerate() {
                body.push_str(&format!("{{\"index\":{{\"_id\":\"{}\"}}}}\n", number * 500 + i));
                body.push_str(document);
                body.push('\n');
            }
            let reply = client.request("POST", "/l/_bulk", NDJSON, body.as_bytes());
            assert!(reply.body.contains("\"errors\":false"));
        }
        let acknowledged = now_ns() - start;
        ok(&mut client, "POST", "/l/_refresh", "");
        let searchable = now_ns() - start;
        let rate = |ns: u64| 60_000.0 / (ns as f64 / 1e9);
        println!(
            "{mode:?}, {shards} shards: {} MB, {:.0} documents/s acknowledged, {:.0} searchable",
            bytes / 1_000_000,
            rate(acknowledged),
            rate(searchable)
        );
        std::thread::sleep(std::time::Duration::from_secs(4));
        let word = |i: usize| {
            let document: Json = serde_json::from_str(&documents[i]).unwrap();
            let body = document["body"].as_str().unwrap().to_owned();
            body.split(' ').find(|word| word.len() > 6).unwrap_or("abcdefgh").to_owned()
        };
        let edits = mode.max_edits();
        let queries: [(&str, Json); 5] = [
            ("fuzzy", json!({"fuzzy": {"body": {"value": word(1), "fuzziness": edits}}})),
            (
                "match and fuzzy",
                json!({"match": {"body": {"query": format!("{} {}", word(2), word(3)),
                "operator": "and", "fuzziness": edits}}}),
            ),
            (
                "match or fuzzy",
                json!({"match": {"body": {"query": format!("{} {}", word(2), word(3)),
                "fuzziness": edits}}}),
            ),
            ("match", json!({"match": {"body": format!("{} {}", word(5), word(6))}})),
            ("phrase", json!({"match_phrase": {"body": format!("{} {}", word(5), word(6))}})),
        ];
        for (name, query) in queries {
            let body = json!({"query": query, "size": 1000});
            let mut took = Vec::new();
            let mut hits = 0;
            for _ in 0..30 {
                let start = now_ns();
                let json = client.request("POST", "/l/_search", JSON, body.to_string().as_bytes());
                took.push(now_ns() - start);
                hits = json.json()["hits"]["total"]["value"].as_u64().unwrap();
            }
            took.sort_unstable();
            println!("  {name}: median {:.2} ms, {hits} hits", took[15] as f64 / 1e6);
        }
    }
}

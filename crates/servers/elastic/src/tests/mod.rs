//! Tests of Elasticsearch's API, through real connections.

mod analysis_truth;
mod api_tests;
mod durability;
mod errors;
mod fuzzy_modes;
mod lying_disk;
mod mappings;
mod refreshing;
mod scan_mode;
mod semantics;
mod states;
mod values;

use crate::{ElasticConfig, run};
use plimsoll_front::{Durability, FrontConfig};
use plimsoll_index::fuzzy::FuzzyMode;
use plimsoll_probe::{Client, JSON, TestReply, TestServer};
use serde_json::{Value as Json, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

pub(super) const NDJSON: &str = "Content-Type: application/x-ndjson\r\n";

/// A server whose writes are not synchronised, in one of the modes.
pub(super) fn server(folder: &Path, fuzzy: FuzzyMode) -> TestServer {
    start(ElasticConfig { fuzzy, durability: Durability::Async, ..ElasticConfig::new(folder) })
}

/// A server with a front of its own, and its usual settings otherwise.
pub(super) fn with_front(folder: &Path, front: FrontConfig) -> TestServer {
    start(ElasticConfig { front, ..ElasticConfig::new(folder) })
}

fn start(config: ElasticConfig) -> TestServer {
    let serve =
        move |mut listeners: Vec<TcpListener>, stop| run(listeners.remove(0), &config, &stop);
    TestServer::start(1, serve).0
}

/// Requests of the tests.
pub(super) struct Elastic {
    pub(super) client: Client,
    address: SocketAddr,
}

impl Elastic {
    pub(super) fn new(server: &TestServer) -> Self {
        Self { client: server.client(), address: server.address }
    }

    pub(super) fn raw(&mut self, method: &str, path: &str, body: &str) -> TestReply {
        self.client.request(method, path, JSON, body.as_bytes())
    }

    /// The status of a `HEAD`, whose reply says the length of a body that does not come.
    pub(super) fn head(&mut self, path: &str) -> u16 {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let request = format!("HEAD {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.ends_with("\r\n\r\n"), "{reply}");
        reply.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Status and body.
    pub(super) fn ask(&mut self, method: &str, path: &str, body: &Json) -> (u16, Json) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let reply = self.raw(method, path, &body);
        let json = if reply.body.is_empty() { Json::Null } else { reply.json() };
        (reply.status, json)
    }

    /// A request that must succeed.
    pub(super) fn ok(&mut self, method: &str, path: &str, body: &Json) -> Json {
        let (status, json) = self.ask(method, path, body);
        assert!(status < 300, "{method} {path} {body}: {status} {json}");
        json
    }

    /// Writes documents with ids in one request, searchable when it comes back.
    pub(super) fn load<'a>(
        &mut self,
        index: &str,
        documents: impl IntoIterator<Item = (String, &'a Json)>,
    ) {
        let mut body = String::new();
        for (id, document) in documents {
            body.push_str(&json!({"index": {"_id": id}}).to_string());
            body.push('\n');
            body.push_str(&document.to_string());
            body.push('\n');
        }
        let path = format!("/{index}/_bulk?refresh=true");
        let reply = self.client.request("POST", &path, NDJSON, body.as_bytes());
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(reply.json()["errors"], false, "{}", &reply.body[..reply.body.len().min(2000)]);
    }

    pub(super) fn search(&mut self, index: &str, body: &Json) -> Json {
        let json = self.ok("POST", &format!("/{index}/_search"), body);
        assert_eq!(json["timed_out"], false);
        assert_eq!(json["_shards"]["failed"], 0, "{json}");
        json
    }

    /// The ids that a query finds, sorted, after checking that the total says the same.
    pub(super) fn ids(&mut self, index: &str, query: &Json) -> Vec<String> {
        let json = self.search(index, &json!({"query": query, "size": 10_000, "_source": false}));
        let mut ids = ids(&json);
        assert_eq!(json["hits"]["total"]["value"], ids.len(), "{query}");
        let counted = self.ok("POST", &format!("/{index}/_count"), &json!({"query": query}));
        assert_eq!(counted["count"], ids.len(), "{query}");
        ids.sort();
        ids
    }
}

/// The ids of a reply in their order.
pub(super) fn ids(json: &Json) -> Vec<String> {
    let hits = json["hits"]["hits"].as_array().unwrap_or_else(|| panic!("{json}"));
    hits.iter().map(|hit| hit["_id"].as_str().unwrap().to_owned()).collect()
}

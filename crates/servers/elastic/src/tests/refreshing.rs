//! When what was written is found, and for whom it is made so.

use super::*;
use plimsoll_core::clock::now_ns;
use std::time::Duration;

fn write(es: &mut Elastic, index: &str, from: usize, to: usize) {
    let lines: String = (from..to)
        .map(|i| format!("{{\"index\":{{\"_id\":\"{i}\"}}}}\n{{\"body\":\"word {i}\"}}\n"))
        .collect();
    let reply = es.client.request("POST", &format!("/{index}/_bulk"), NDJSON, lines.as_bytes());
    assert!(reply.body.contains("\"errors\":false"), "{}", reply.body);
}

/// Segments that a search would look into; asking for them is no look.
fn segments(es: &mut Elastic, index: &str) -> u64 {
    let stats = es.ok("GET", &format!("/{index}/_stats"), &Json::Null);
    stats["indices"][index]["primaries"]["segments"]["count"].as_u64().unwrap()
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun_ns = now_ns();
    while !condition() {
        assert!(now_ns() - begun_ns < 30_000_000_000, "{what} never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn nothing_is_refreshed_for_nobody_and_who_looks_sees_it_all() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    es.ok(
        "PUT",
        "/seen",
        &json!({"settings": {"number_of_shards": 3, "refresh_interval": "50ms"}}),
    );
    es.ok("PUT", "/unseen", &json!({"settings": {"number_of_shards": 3}}));
    write(&mut es, "seen", 0, 30);
    write(&mut es, "unseen", 0, 30);
    until("a refresh of an interval that was asked for", || segments(&mut es, "seen") > 0);
    // Longer than the second after which it would be refreshed for somebody.
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(segments(&mut es, "unseen"), 0);
    // All that look at the same time wait for it.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut own = Elastic::new(&server);
            scope.spawn(move || {
                let all = json!({"match": {"body": "word"}});
                assert_eq!(own.ids("unseen", &all).len(), 30);
            });
        }
    });
    // From now on somebody looks, and what is written is found without another word.
    write(&mut es, "unseen", 30, 40);
    until("what was written under somebody's eyes", || {
        es.ok("GET", "/unseen/_count", &Json::Null)["count"] == 40
    });
    // A table of documents is a look, too.
    es.ok("PUT", "/table", &json!({"settings": {"number_of_shards": 2}}));
    write(&mut es, "table", 0, 7);
    let table = es.raw("GET", "/_cat/indices/table?h=docs.count", "");
    assert_eq!(table.body.trim(), "7");
}

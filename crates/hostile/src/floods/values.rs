//! Requests of the search APIs whose values take many times as much memory as their text, and replies that do.

use super::Ground;
use super::bodies::{JSON, ask};
use std::sync::atomic::{AtomicUsize, Ordering};

const LINES: &str = "Content-Type: application/x-ndjson\r\n";

/// A list of as many of these values as have `bytes` bytes.
fn list(value: &str, bytes: usize) -> String {
    format!("[{}1]", value.repeat(bytes / value.len()))
}

/// Bodies of up to 95 MB whose values would take gigabytes as a tree: searches, updates, settings and mappings.
pub fn trees(ground: &Ground<'_>) {
    let [digits, lists, objects] = ["1,", "[1],", "{\"\":1},"].map(|value| list(value, 15_000_000));
    let long = list("[1],", 95_000_000);
    let of_terms = |list: &str| format!("{{\"query\":{{\"terms\":{{\"k\":{list}}}}}}}");
    let requests = [
        ("POST", "/trees/_search", of_terms(&digits)),
        ("POST", "/trees/_search", of_terms(&lists)),
        ("POST", "/trees/_count", of_terms(&objects)),
        ("POST", "/trees/_mget", format!("{{\"ids\":{digits}}}")),
        ("POST", "/trees/_msearch", format!("{{}}\n{}\n", of_terms(&lists))),
        (
            "POST",
            "/trees/_update/1",
            format!("{{\"doc_as_upsert\":true,\"doc\":{{\"n\":{long}}}}}"),
        ),
        ("PUT", "/trees/_settings", format!("{{\"index\":{long}}}")),
        ("PUT", "/trees/_mapping", format!("{{\"properties\":{long}}}")),
        ("PUT", "/trees", format!("{{\"mappings\":{long}}}")),
    ];
    ask(ground, "PUT", "/trees", JSON, b"{}");
    ground.on_threads(8, || {
        for (method, path, body) in requests.iter().cycle() {
            if ground.is_over() {
                return;
            }
            ask(ground, method, path, JSON, body.as_bytes());
        }
    });
}

/// Documents of many values, alone and in bulk requests of up to 90 MB.
pub fn documents(ground: &Ground<'_>) {
    let alone =
        [1_000_000, 4_000_000, 95_000_000].map(|bytes| format!("{{\"n\":{}}}", list("1,", bytes)));
    let in_bulk = [600, 60_000, 3_000_000].map(|bytes| {
        let line = format!("{{\"index\":{{}}}}\n{{\"n\":{}}}\n", list("1,", bytes));
        line.repeat((90_000_000 / line.len()).min(99_000))
    });
    ground.on_threads(8, || {
        while !ground.is_over() {
            for document in &alone {
                ask(ground, "POST", "/values/_doc", JSON, document.as_bytes());
            }
            for bulk in &in_bulk {
                ask(ground, "POST", "/values/_bulk", LINES, bulk.as_bytes());
            }
        }
    });
}

/// Updates of few bytes, 99,999 in a request, of a document of 5 MB.
pub fn updates(ground: &Ground<'_>) {
    let document = format!("{{\"t\":\"{}\",\"n\":0}}", "a ".repeat(2_500_000));
    ask(ground, "PUT", "/updates/_doc/1", JSON, document.as_bytes());
    let next = AtomicUsize::new(1);
    ground.on_threads(4, || {
        while !ground.is_over() {
            let from = next.fetch_add(99_999, Ordering::Relaxed);
            let lines: String = (from..from + 99_999)
                .map(|n| {
                    format!("{{\"update\":{{\"_id\":\"1\"}}}}\n{{\"doc\":{{\"n\":{n}}},\"_source\":true}}\n")
                })
                .collect();
            ask(ground, "POST", "/updates/_bulk", LINES, lines.as_bytes());
        }
    });
}

/// Replies of many times the same long documents.
pub fn replies(ground: &Ground<'_>) {
    let document = format!("{{\"t\":\"{}\"}}", "a".repeat(30_000_000));
    for id in 0..8 {
        ask(ground, "PUT", &format!("/long/_doc/{id}?refresh=true"), JSON, document.as_bytes());
    }
    let ids = format!("{{\"ids\":[{}\"0\"]}}", "\"1\",".repeat(9_000));
    let searches = "{\"index\":\"long\"}\n{\"size\":3}\n".repeat(900);
    ground.on_threads(64, || {
        while !ground.is_over() {
            ask(ground, "POST", "/long/_mget", JSON, ids.as_bytes());
            ask(ground, "POST", "/long/_search?size=10000", JSON, b"{}");
            ask(
                ground,
                "POST",
                "/long/_search?size=3&filter_path=hits.hits._source.u",
                JSON,
                b"{}",
            );
            ask(ground, "POST", "/long/_search?size=8&_source_excludes=t", JSON, b"{}");
            ask(ground, "POST", "/_msearch", LINES, searches.as_bytes());
        }
    });
}

/// A long document in each of many indices, none of which is searched.
pub fn drafts(ground: &Ground<'_>) {
    let words: String = (0..60_000_u64).map(|n| format!("w{} ", n * 7_919 % 1_000_003)).collect();
    let document = format!("{{\"t\":\"{words}\"}}");
    let next = AtomicUsize::new(0);
    ground.on_threads(4, || {
        while !ground.is_over() {
            let index = next.fetch_add(1, Ordering::Relaxed) % 900;
            ask(ground, "POST", &format!("/draft-{index}/_doc"), JSON, document.as_bytes());
        }
    });
}

/// Documents of 4 MB in Vespa's API, of ever other words, and updates of few bytes of them.
pub fn backlog(ground: &Ground<'_>) {
    let words: String =
        (0..500_000_u64).map(|n| format!("{:x} ", n * 48_271 % 2_147_483_647)).collect();
    let document = format!("{{\"fields\":{{\"body\":\"{words}\"}}}}");
    let next = AtomicUsize::new(0);
    ground.on_threads(16, || {
        while !ground.is_over() {
            let path =
                format!("/document/v1/doc/doc/docid/{}", next.fetch_add(1, Ordering::Relaxed) % 64);
            ask(ground, "POST", &path, JSON, document.as_bytes());
            for score in 0..20 {
                let update = format!("{{\"fields\":{{\"score\":{{\"assign\":{score}}}}}}}");
                ask(ground, "PUT", &path, JSON, update.as_bytes());
            }
        }
    });
}

//! Requests of the search APIs that are small to send and large to answer.

use super::{Endpoint, Ground};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Read, Write};
use std::sync::OnceLock;
use std::time::Duration;

/// Sends a request and waits for the first bytes of its reply.
pub(super) fn ask(ground: &Ground<'_>, method: &str, path: &str, kind: &str, body: &[u8]) {
    let Ok(mut stream) = ground.connect() else { return };
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: h\r\n{kind}Connection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    if ground.send(&mut stream, head.as_bytes()) && ground.send(&mut stream, body) {
        // Whoever floods reads as well, so that the server goes on.
        let mut buffer = [0; 65_536];
        while !ground.is_over() {
            match stream.read(&mut buffer) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if super::is_timeout(&error) => {}
                Err(_) => return,
            }
        }
    }
}

pub(super) const JSON: &str = "Content-Type: application/json\r\n";

/// Makes an index with some documents, then asks these bodies of it again and again.
fn search(ground: &Ground<'_>, bodies: &[String]) {
    let words =
        ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "alpha", "alphabet", "beta", "gamma delta epsilon"];
    let documents: String = (0..2_000)
        .map(|n| format!("{{\"index\":{{\"_id\":\"{n}\"}}}}\n{{\"t\":\"{} word{n}\",\"n\":{n},\"k\":\"key{n}\"}}\n", words[n % 5]))
        .collect();
    ask(
        ground,
        "POST",
        "/flood/_bulk?refresh=true",
        "Content-Type: application/x-ndjson\r\n",
        documents.as_bytes(),
    );
    ground.on_threads(8, || {
        for body in bodies.iter().cycle() {
            if ground.is_over() {
                return;
            }
            ask(ground, "POST", "/flood/_search", JSON, body.as_bytes());
        }
    });
}

/// Queries within queries, 50,000 deep, as objects and as arrays.
pub fn nested_queries(ground: &Ground<'_>) {
    let deep = |open: &str, middle: &str, close: &str| {
        open.repeat(50_000) + middle + &close.repeat(50_000)
    };
    let must = deep("{\"bool\":{\"must\":[", "{\"match_all\":{}}", "]}}");
    search(
        ground,
        &[
            format!("{{\"query\":{must}}}"),
            format!("{{\"query\":{}}}", deep("[", "", "]")),
            format!(
                "{{\"aggs\":{}}}",
                deep("{\"a\":{\"filter\":{\"match_all\":{}},\"aggs\":", "{}", "}}")
            ),
            format!("{{\"query\":{{\"query_string\":{{\"query\":\"{}\"}}}}}}", deep("(", "a", ")")),
        ],
    );
}

/// Patterns that take exponential time in matchers that go back.
pub fn patterns(ground: &Ground<'_>) {
    let of = |kind: &str, pattern: &str| {
        format!("{{\"query\":{{\"{kind}\":{{\"t\":{{\"value\":\"{pattern}\"}}}}}}}}")
    };
    search(
        ground,
        &[
            of("regexp", "(a*)*(a*)*(a*)*c"),
            of("regexp", "(a|aa)+(a|aa)+(a|aa)+"),
            of("regexp", &format!("({}){{1,1000}}", "a?".repeat(200))),
            of("regexp", "((((a{1,100}){1,100}){1,100}){1,100})"),
            of("regexp", &"[a-z]".repeat(20_000)),
            of("wildcard", &"*a".repeat(5_000)),
            of("wildcard", &"?*".repeat(20_000)),
            of("fuzzy", &"a".repeat(30_000)),
            of("prefix", &"a".repeat(100_000)),
            format!(
                "{{\"query\":{{\"match\":{{\"t\":{{\"query\":\"{}\",\"fuzziness\":2}}}}}}}}",
                "alpha ".repeat(5_000)
            ),
            format!(
                "{{\"query\":{{\"match_phrase\":{{\"t\":{{\"query\":\"{}\",\"slop\":1000000}}}}}}}}",
                "alpha ".repeat(2_000)
            ),
        ],
    );
}

/// Sizes, counts and buckets of 2^31 and more.
pub fn sizes(ground: &Ground<'_>) {
    let all = "\"query\":{\"match_all\":{}}";
    search(
        ground,
        &[
            format!("{{{all},\"size\":2147483647}}"),
            format!("{{{all},\"from\":2147483647,\"size\":10}}"),
            format!("{{{all},\"size\":1e300}}"),
            "{\"size\":0,\"aggs\":{\"a\":{\"terms\":{\"field\":\"k.keyword\",\"size\":2147483647}}}}".to_owned(),
            "{\"size\":0,\"aggs\":{\"a\":{\"histogram\":{\"field\":\"n\",\"interval\":1e-9}}}}".to_owned(),
            "{\"size\":0,\"aggs\":{\"a\":{\"histogram\":{\"field\":\"n\",\"interval\":0.000001,\"extended_bounds\":{\"min\":0,\"max\":1e15}}}}}".to_owned(),
            "{\"size\":0,\"aggs\":{\"a\":{\"date_histogram\":{\"field\":\"n\",\"fixed_interval\":\"1ms\",\"extended_bounds\":{\"min\":0,\"max\":4000000000000}}}}}".to_owned(),
            "{\"size\":0,\"aggs\":{\"a\":{\"terms\":{\"field\":\"k.keyword\",\"size\":100000},\"aggs\":{\"b\":{\"terms\":{\"field\":\"k.keyword\",\"size\":100000}}}}}}".to_owned(),
            "{\"size\":0,\"aggs\":{\"a\":{\"percentiles\":{\"field\":\"n\",\"percents\":[1e308,-5,50]}}}}".to_owned(),
            "{\"size\":0,\"aggs\":{\"a\":{\"cardinality\":{\"field\":\"n\",\"precision_threshold\":2147483647}}}}".to_owned(),
            format!("{{\"query\":{{\"terms\":{{\"k.keyword\":[{}\"x\"]}}}}}}", "\"key1\",".repeat(200_000)),
        ],
    );
}

/// Bodies that are gzip bombs: a gigabyte in a megabyte.
pub fn packed_bombs(ground: &Ground<'_>) {
    static BOMB: OnceLock<Vec<u8>> = OnceLock::new();
    let bomb = BOMB.get_or_init(|| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let piece = vec![b'\n'; 16 << 20];
        for _ in 0..64 {
            let _ = encoder.write_all(&piece);
        }
        encoder.finish().unwrap_or_default()
    });
    let kind = "Content-Type: application/x-ndjson\r\nContent-Encoding: gzip\r\n";
    ground.on_threads(24, || {
        while !ground.is_over() {
            for path in ["/_bulk", "/flood/_search", "/search/", "/document/v1/a/b/docid/1"] {
                ask(ground, "POST", path, kind, bomb);
            }
        }
    });
}

/// Bulk bodies of 90 MB on many connections at once: more lines than a request may have.
pub fn giant_bulks(ground: &Ground<'_>) {
    bulks(ground, 2_000_000);
}

/// Bulk bodies of as many lines as are accepted, of few bytes each.
pub fn full_bulks(ground: &Ground<'_>) {
    bulks(ground, 100_000);
}

fn bulks(ground: &Ground<'_>, documents: usize) {
    let body = "{\"index\":{\"_index\":\"giant\"}}\n{\"t\":\"a word\"}\n".repeat(documents);
    ground.on_threads(12, || {
        while !ground.is_over() {
            ask(
                ground,
                "POST",
                "/_bulk",
                "Content-Type: application/x-ndjson\r\n",
                body.as_bytes(),
            );
        }
    });
}

/// New fields without end, a thousand in each document.
pub fn new_fields(ground: &Ground<'_>) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    ground.on_threads(4, || {
        while !ground.is_over() {
            let from = next.fetch_add(1_000, std::sync::atomic::Ordering::Relaxed);
            let fields: Vec<String> =
                (from..from + 1_000).map(|n| format!("\"field{n}\":{n}")).collect();
            ask(
                ground,
                "POST",
                "/fields/_doc",
                JSON,
                format!("{{{}}}", fields.join(",")).as_bytes(),
            );
        }
    });
}

/// New indices without end.
pub fn new_indices(ground: &Ground<'_>) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    ground.on_threads(4, || {
        while !ground.is_over() {
            let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            ask(ground, "PUT", &format!("/index-{number}"), JSON, b"{}");
        }
    });
}

/// Scrolls, points in time and continuation tokens that were never given.
pub fn forged_tokens(ground: &Ground<'_>) {
    let tokens =
        ["AAAA", "..%2F..%2F", "%00", "/////w==", "AAAACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"];
    let long = "A".repeat(40_000);
    ground.on_threads(8, || {
        while !ground.is_over() {
            for token in tokens.iter().copied().chain([long.as_str()]) {
                ask(ground, "POST", "/_search/scroll", JSON, format!("{{\"scroll_id\":\"{token}\"}}").as_bytes());
                ask(ground, "DELETE", &format!("/_search/scroll/{token}"), "", b"");
                ask(ground, "GET", &format!("/document/v1/?continuation={token}&wantedDocumentCount=2147483647&concurrency=100000"), "", b"");
                ask(ground, "GET", &format!("/document/v1/a/b/docid/{token}"), "", b"");
            }
        }
    });
}

/// Selections and queries of Vespa that are deep, long and wide.
pub fn deep_yql(ground: &Ground<'_>) {
    let encoded = |text: &str| text.replace(' ', "%20").replace('"', "%22");
    let deep = format!("{}true{}", "(".repeat(9_000), ")".repeat(9_000));
    let many = vec!["title contains \"a\""; 900].join(" or ");
    let not = "!".repeat(9_000);
    let prefix = format!("title matches \"{}\"", "(a*)*".repeat(300));
    ground.on_threads(8, || {
        while !ground.is_over() {
            for condition in [deep.as_str(), &many, &not, &prefix] {
                let yql = encoded(&format!("select * from sources * where {condition}"));
                ask(
                    ground,
                    "GET",
                    &format!("/search/?yql={yql}&hits=2147483647&offset=2147483647"),
                    "",
                    b"",
                );
                ask(
                    ground,
                    "GET",
                    &format!("/document/v1/?selection={}", encoded(condition)),
                    "",
                    b"",
                );
            }
            let body = format!(
                "{{\"yql\":\"select * from sources * where {}true{}\"}}",
                "(".repeat(100_000),
                ")".repeat(100_000)
            );
            ask(ground, "POST", "/search/", JSON, body.as_bytes());
        }
    });
}

/// Documents and JSON that nest without measure.
pub fn nested_documents(ground: &Ground<'_>) {
    let deep = format!("{{\"fields\":{{\"a\":{}1{}}}}}", "[".repeat(400_000), "]".repeat(400_000));
    let objects = format!("{{\"t\":{}1{}}}", "{\"a\":".repeat(200_000), "}".repeat(200_000));
    ground.on_threads(8, || {
        while !ground.is_over() {
            ask(ground, "POST", "/document/v1/a/b/docid/1", JSON, deep.as_bytes());
            ask(ground, "POST", "/deep/_doc", JSON, objects.as_bytes());
            ask(ground, "PUT", "/deep2", JSON, format!("{{\"mappings\":{objects}}}").as_bytes());
        }
    });
}

/// An honest search.
///
/// # Errors
/// Anything but a reply of status 200.
pub fn honest(endpoint: &Endpoint, patience: Duration) -> std::io::Result<()> {
    super::get(endpoint, "/state/v1/health", patience)
}

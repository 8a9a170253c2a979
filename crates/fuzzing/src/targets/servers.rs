//! Requests to the embedded servers beside documents: YQL, Elasticsearch's bodies, SQL, and those to the live page.

use crate::holds::{choice, one_line};
use crate::memory::{Allowed, within};
use plimsoll_search::dialect::Dialect;

/// Tables of Unicode are made when a text first needs them.
const QUERY_MEMORY: Allowed = Allowed { base: 4 << 20, each: 2000 };

/// A statement of YQL.
///
/// # Panics
/// When a property does not hold.
pub fn yql(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let json = serde_json::json!({ "yql": text, "query": "a b" }).to_string();
    within(bytes.len(), QUERY_MEMORY, || {
        plimsoll_vespa::fuzz::body(json.as_bytes()).iter().for_each(one_line)
    });
}

/// Words of the simple query language; the first byte chooses how they are read.
///
/// # Panics
/// When a property does not hold.
pub fn simple_queries(bytes: &[u8]) {
    let (form, bytes) = choice(bytes);
    let kinds = ["all", "any", "web", "phrase", "near", "oNear", "weakAnd", "tokenize"];
    let kind = kinds[usize::from(form) % kinds.len()];
    let text = String::from_utf8_lossy(bytes);
    let name = if form & 0x40 == 0 { "query" } else { "filter" };
    let json = serde_json::json!({ name: text, "type": kind }).to_string();
    within(bytes.len(), QUERY_MEMORY, || {
        plimsoll_vespa::fuzz::body(json.as_bytes()).iter().for_each(one_line)
    });
}

/// Parameters of a search, as a URL or as JSON.
///
/// # Panics
/// When a property does not hold.
pub fn search_parameters(bytes: &[u8]) {
    within(bytes.len(), QUERY_MEMORY, || {
        let said = match bytes.first() {
            Some(b'{') => plimsoll_vespa::fuzz::body(bytes),
            _ => plimsoll_vespa::fuzz::url(&String::from_utf8_lossy(bytes)),
        };
        said.iter().for_each(one_line);
    });
}

/// Path and query of a request to `/document/v1/`, divided by `?`.
///
/// # Panics
/// When a property does not hold.
pub fn document_requests(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (path, query) = text.split_once('?').unwrap_or((&text, ""));
    // A selection may have 64 patterns, and each takes up to a megabyte when it is compiled.
    let allowed = Allowed { base: 80 << 20, each: 2000 };
    within(bytes.len(), allowed, || {
        plimsoll_vespa::fuzz::document_request(path, query).iter().for_each(one_line);
    });
}

/// Parameters and body of a search of Elasticsearch, divided by a line end.
///
/// # Panics
/// When a property does not hold.
pub fn elastic_searches(bytes: &[u8]) {
    let at = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let query = String::from_utf8_lossy(&bytes[..at]);
    let body = &bytes[at..];
    within(bytes.len(), QUERY_MEMORY, || {
        for is_count in [false, true] {
            plimsoll_elastic::fuzz::search(&query, body, is_count).iter().for_each(one_line);
        }
    });
}

/// Bodies of Elasticsearch's other requests: mappings with a document behind a byte 0, bulks, settings, dates.
///
/// # Panics
/// When a property does not hold.
pub fn elastic_bodies(bytes: &[u8]) {
    let allowed = Allowed { base: 1 << 20, each: 4000 };
    within(bytes.len(), allowed, || {
        plimsoll_elastic::fuzz::mapping_and_document(bytes).iter().for_each(one_line);
        plimsoll_elastic::fuzz::bulk(bytes).iter().for_each(one_line);
        plimsoll_elastic::fuzz::settings(bytes).iter().for_each(one_line);
        plimsoll_elastic::fuzz::log(bytes);
        let text = String::from_utf8_lossy(bytes);
        let early = plimsoll_elastic::fuzz::date(&text, false);
        let late = plimsoll_elastic::fuzz::date(&text, true);
        if let (Some(early), Some(late)) = (early, late) {
            assert!(early <= late, "{text}: {early} is later than {late}");
        }
    });
}

/// The parameter `filter_path`, and behind a line end the reply that it cuts.
///
/// # Panics
/// When a property does not hold.
pub fn filter_paths(bytes: &[u8]) {
    let at = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let path = String::from_utf8_lossy(&bytes[..at]);
    let reply = bytes.get(at + 1..).unwrap_or_default();
    let shaped =
        within(bytes.len(), QUERY_MEMORY, || plimsoll_elastic::fuzz::filter_path(&path, reply));
    if let (Some(shaped), true) =
        (shaped, serde_json::from_slice::<serde_json::Value>(reply).is_ok())
    {
        assert!(serde_json::from_slice::<serde_json::Value>(&shaped).is_ok());
    }
}

/// Statements of the voter's database, run on empty tables; its JSON API; and its log.
///
/// # Panics
/// When a property does not hold.
pub fn sql(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    within(bytes.len(), QUERY_MEMORY, || {
        plimsoll_voterdb::fuzz::statements(&text).iter().for_each(one_line);
        plimsoll_voterdb::fuzz::json_query(&text).iter().for_each(one_line);
        plimsoll_voterdb::fuzz::log(bytes);
    });
}

/// A request to the live page: its query, then lines of header fields. Without the token it is not shown.
///
/// # Panics
/// When a property does not hold.
pub fn live_requests(bytes: &[u8]) {
    const TOKEN: &str = "0123456789abcdef0123456789abcdef";
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let query = String::from_utf8_lossy(lines.next().unwrap_or_default());
    let fields: Vec<(&[u8], &[u8])> = lines
        .filter_map(|line| {
            let at = line.iter().position(|byte| *byte == b':')?;
            Some((&line[..at], line[at + 1..].trim_ascii()))
        })
        .collect();
    let allowed = Allowed { base: 20_000, each: 200 };
    let may =
        within(bytes.len(), allowed, || plimsoll_live::fuzz::may(Some(&query), &fields, TOKEN));
    let whole = String::from_utf8_lossy(bytes);
    assert!(!may || whole.contains(TOKEN), "seen without the token");
}

/// Replies that a comparison of engines reads, and those of a receiver of OTLP.
///
/// # Panics
/// When a property does not hold.
pub fn engine_replies(bytes: &[u8]) {
    within(bytes.len(), QUERY_MEMORY, || {
        for dialect in [Dialect::Elasticsearch, Dialect::Vespa, Dialect::Postgresql] {
            let _ = (dialect.read_count(bytes), dialect.read_index_size(bytes));
            let _ = (dialect.read_version(bytes), dialect.read_found(bytes));
            let _ = (dialect.remove_on(bytes), dialect.message(400, bytes));
            let _ = dialect.is_document(bytes, &serde_json::json!({"id": "1"}));
        }
        let text = String::from_utf8_lossy(bytes);
        plimsoll_outlets::otlp::fuzz_reply(&text).err().iter().for_each(one_line);
    });
}

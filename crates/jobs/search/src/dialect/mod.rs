//! The way an engine is used to: one query, one load, one index in the language of each.

mod elastic;
mod sql;
mod vespa;

use super::SearchError;
use super::query::Query;
use plimsoll_core::secrets::without_remembered;
use plimsoll_workloads::checks::HitCounter;
use plimsoll_workloads::rows::Rows;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use sql::{SIMILARITY, Statement, insert};

/// The language of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Elasticsearch from 7 on, OpenSearch, and `plimsoll serve search`.
    Elasticsearch,
    /// Vespa, and `plimsoll serve search`.
    Vespa,
    /// PostgreSQL with `tsvector`, `fuzzystrmatch` and `pg_trgm`.
    Postgresql,
}

/// Request to an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// An HTTP request.
    Http(HttpCall),
    /// Statements of SQL, sent together: all of them are done, or none.
    Sql(String),
}

/// One HTTP request to an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpCall {
    /// The method.
    pub method: &'static str,
    /// Path and query.
    pub path: String,
    /// The body, with its content type.
    pub body: Option<(&'static str, String)>,
}

impl Call {
    pub(super) fn without_body(method: &'static str, path: impl Into<String>) -> Self {
        Self::Http(HttpCall { method, path: path.into(), body: None })
    }

    fn json(method: &'static str, path: impl Into<String>, body: &Value) -> Self {
        Self::with_body(method, path, (JSON, body.to_string()))
    }

    pub(super) fn with_body(
        method: &'static str,
        path: impl Into<String>,
        body: (&'static str, String),
    ) -> Self {
        Self::Http(HttpCall { method, path: path.into(), body: Some(body) })
    }
}

/// The content type of JSON.
const JSON: &str = "application/json";
/// The content type of one JSON text a line.
const NDJSON: &str = "application/x-ndjson";

/// Content of the answer to a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Number of documents that match, if the engine reports it exactly.
    pub hits: Option<u64>,
    /// Ids of the documents returned.
    pub ids: Vec<String>,
}

/// The way documents are handed to an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feeding {
    /// Many in one request, two lines each.
    Bulk,
    /// One a request, below this path.
    Single(&'static str),
    /// Many in one `COPY`, a line each.
    Copy,
}

impl Dialect {
    /// Its name, as flags and records have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Dialect::Elasticsearch => "elasticsearch",
            Dialect::Vespa => "vespa",
            Dialect::Postgresql => "postgresql",
        }
    }

    /// Reads a name.
    ///
    /// # Errors
    /// When there is no such dialect.
    pub fn parse(text: &str) -> Result<Self, SearchError> {
        match text {
            "elasticsearch" | "opensearch" => Ok(Dialect::Elasticsearch),
            "vespa" => Ok(Dialect::Vespa),
            "postgresql" => Ok(Dialect::Postgresql),
            other => Err(SearchError::new(format!(
                "unknown dialect '{other}'; there are elasticsearch (also for OpenSearch), vespa, postgresql"
            ))),
        }
    }

    /// Returns true if it divides an index into as many shards as the matrix says.
    #[must_use]
    pub const fn has_shards(self) -> bool {
        matches!(self, Dialect::Elasticsearch)
    }

    /// The request of a query in a cell.
    ///
    /// # Errors
    /// Why the dialect cannot say it.
    pub fn search(self, index: &str, query: &Query, distance: u8) -> Result<Call, String> {
        match self {
            Dialect::Elasticsearch => elastic::search(index, query, distance),
            Dialect::Vespa => vespa::search(query, distance),
            Dialect::Postgresql => Ok(Call::Sql(sql::select(index, query, distance)?.inlined())),
        }
    }

    /// The same query, asked once: what comes back can be read by [`Dialect::read_found`].
    ///
    /// # Errors
    /// As [`Dialect::search`].
    pub fn ask(self, index: &str, query: &Query, distance: u8) -> Result<Call, String> {
        match self.search(index, query, distance)? {
            // A single row that holds hits and ids, whatever the query returns.
            Call::Sql(text) => Ok(Self::told_sql(&text, query)),
            call => Ok(call),
        }
    }

    /// The SQL of a query with the values of a row in its places; the same as [`Dialect::search`] without one.
    ///
    /// # Errors
    /// Why the dialect cannot say it, or why the row cannot fill it.
    pub fn filled_sql(
        index: &str,
        query: &Query,
        distance: u8,
        rows: &Rows,
        row: usize,
    ) -> Result<String, String> {
        sql::filled(index, query, distance, (rows, row))
    }

    /// That SQL, asked once, as [`Dialect::ask`] does it.
    #[must_use]
    pub fn told_sql(select: &str, query: &Query) -> Call {
        Call::Sql(sql::told(select, query))
    }

    /// A query as its user reads it: the body, the YQL, or the SQL.
    ///
    /// # Errors
    /// Why the dialect cannot say it.
    pub fn shown(self, index: &str, query: &Query, distance: u8) -> Result<String, String> {
        match self {
            Dialect::Elasticsearch => elastic::body(query, distance).map(|body| body.to_string()),
            Dialect::Vespa => vespa::yql(query, distance),
            Dialect::Postgresql => sql::select(index, query, distance).map(|made| made.to_string()),
        }
    }

    /// Makes an empty index; what was there of that name is removed first by [`Dialect::remove`].
    #[must_use]
    pub fn create(self, index: &str, shards: u32) -> Vec<Call> {
        match self {
            Dialect::Elasticsearch => vec![elastic::create(index, shards)],
            // Vespa's types are part of the application, and `plimsoll serve search` has its own.
            Dialect::Vespa => Vec::new(),
            Dialect::Postgresql => Statement::tables(index).0.into_iter().map(Call::Sql).collect(),
        }
    }

    /// Removes an index; that it was not there is reported as 404 and is as good.
    #[must_use]
    pub fn remove(self, index: &str) -> Vec<Call> {
        match self {
            Dialect::Elasticsearch => vec![Call::without_body("DELETE", format!("/{index}"))],
            Dialect::Vespa => vec![vespa::remove_all()],
            Dialect::Postgresql => vec![Call::Sql(sql::remove(index))],
        }
    }

    /// Returns the next request if [`Dialect::remove`] was answered before its work was done.
    #[must_use]
    pub fn remove_on(self, body: &[u8]) -> Option<Call> {
        let value: Value = serde_json::from_slice(body).ok()?;
        match self {
            Dialect::Vespa => vespa::remove_on(value.get("continuation")?.as_str()?),
            Dialect::Elasticsearch | Dialect::Postgresql => None,
        }
    }

    /// Makes what was written findable: at once, where the engine takes such an order, or by making its indexes.
    #[must_use]
    pub fn refresh(self, index: &str) -> Vec<Call> {
        match self {
            Dialect::Elasticsearch => {
                vec![Call::without_body("POST", format!("/{index}/_refresh"))]
            }
            Dialect::Vespa => Vec::new(),
            Dialect::Postgresql => Statement::tables(index).1.into_iter().map(Call::Sql).collect(),
        }
    }

    /// Asks how many documents can be found.
    #[must_use]
    pub fn count(self, index: &str) -> Option<Call> {
        match self {
            Dialect::Elasticsearch => Some(Call::without_body("GET", format!("/{index}/_count"))),
            Dialect::Vespa => Some(vespa::count()),
            Dialect::Postgresql => Some(Call::Sql(sql::count(index))),
        }
    }

    /// Asks how many documents an index has of which the load came to its end, and all that is made after it.
    #[must_use]
    pub fn count_whole(self, index: &str) -> Option<Call> {
        match self {
            // Its documents are there to be counted long before its indexes are.
            Dialect::Postgresql => Some(Call::Sql(sql::count_whole(index))),
            Dialect::Elasticsearch | Dialect::Vespa => self.count(index),
        }
    }

    /// Asks for a document as it was written, where all texts have the same place, so that only their documents tell
    /// one from another.
    #[must_use]
    pub fn document(self, id: &str) -> Option<Call> {
        (self == Dialect::Vespa).then(|| vespa::document(id))
    }

    /// Returns true if the answer to [`Dialect::document`] holds this text's line.
    #[must_use]
    pub fn is_document(self, body: &[u8], line: &Value) -> bool {
        let Ok(value) = serde_json::from_slice::<Value>(body) else { return false };
        let own = |field| value.pointer("/fields")?.get(field)?.as_str();
        let told = |field| line.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        ["title", "body"]
            .iter()
            .all(|field| own(*field).filter(|text| !text.is_empty()) == told(*field))
    }

    /// The number in the answer to [`Dialect::count`].
    #[must_use]
    pub fn read_count(self, body: &[u8]) -> Option<u64> {
        let value: Value = serde_json::from_slice(body).ok()?;
        match self {
            Dialect::Elasticsearch => value.get("count")?.as_u64(),
            Dialect::Vespa => value.pointer("/root/fields/totalCount")?.as_u64(),
            Dialect::Postgresql => value.get(0)?.as_u64(),
        }
    }

    /// Asks how large an index is.
    #[must_use]
    pub fn index_size(self, index: &str) -> Option<Call> {
        match self {
            Dialect::Elasticsearch => Some(Call::without_body(
                "GET",
                format!("/_cat/indices/{index}?format=json&bytes=b"),
            )),
            Dialect::Vespa => None,
            Dialect::Postgresql => Some(Call::Sql(sql::size(index))),
        }
    }

    /// The bytes in the answer to [`Dialect::index_size`].
    #[must_use]
    pub fn read_index_size(self, body: &[u8]) -> Option<u64> {
        let value: Value = serde_json::from_slice(body).ok()?;
        let first = value.get(0)?;
        let size = first.get("store.size").unwrap_or(first);
        size.as_u64().or_else(|| size.as_str()?.parse().ok())
    }

    /// Asks an engine who it is, and whether it lives.
    #[must_use]
    pub fn hello(self) -> Call {
        match self {
            Dialect::Elasticsearch => Call::without_body("GET", "/"),
            Dialect::Postgresql => {
                Call::Sql("SELECT to_json(current_setting('server_version'))".to_owned())
            }
            Dialect::Vespa => Call::without_body("GET", "/state/v1/health"),
        }
    }

    /// Name and version in the answer to [`Dialect::hello`]; empty where it does not say.
    #[must_use]
    pub fn read_version(self, body: &[u8]) -> String {
        let Ok(value) = serde_json::from_slice::<Value>(body) else { return String::new() };
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
        match self {
            Dialect::Elasticsearch => {
                let name = text("/version/distribution").unwrap_or("elasticsearch");
                text("/version/number").map_or(String::new(), |number| format!("{name} {number}"))
            }
            Dialect::Vespa => String::new(),
            Dialect::Postgresql => value
                .get(0)
                .map(|version| version.as_str().map_or_else(|| version.to_string(), str::to_owned))
                .map_or(String::new(), |version| format!("postgresql {version}")),
        }
    }

    /// The way documents are handed over.
    #[must_use]
    pub const fn feeding(self) -> Feeding {
        match self {
            Dialect::Elasticsearch => Feeding::Bulk,
            Dialect::Vespa => Feeding::Single(vespa::DOCUMENTS),
            Dialect::Postgresql => Feeding::Copy,
        }
    }

    /// Path and content type of a load's requests; of a `COPY` the statement.
    #[must_use]
    pub fn bulk_path(self, index: &str) -> (String, &'static str) {
        match self.feeding() {
            Feeding::Copy => (sql::copy(index), ""),
            Feeding::Bulk => (format!("/{index}/_bulk"), NDJSON),
            Feeding::Single(path) => (path.to_owned(), JSON),
        }
    }

    /// Hits and ids in the answer to a query. Of an answer that was cut since it is too long, only the hits: they stand
    /// before the documents.
    #[must_use]
    pub fn read_found(self, body: &[u8]) -> Found {
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            let is_exact = self != Dialect::Elasticsearch || elastic::is_exact(body);
            let hits = HitCounter::default().count(None, body).filter(|_| is_exact);
            return Found { hits, ids: Vec::new() };
        };
        match self {
            Dialect::Elasticsearch => elastic::found(&value),
            Dialect::Vespa => vespa::found(&value),
            Dialect::Postgresql => sql::found(&value),
        }
    }

    /// Number of documents that a reply's first row reports, where it begins with that number; queries that are their user's
    /// own may return anything, and their rows are their hits.
    #[must_use]
    pub fn tells_hits(query: &Query) -> bool {
        !matches!(query.clause, super::query::Clause::Raw(_))
    }

    /// Error message of the engine, from the beginning of a reply that may be cut: its own words, or the reply's.
    #[must_use]
    pub fn message(self, status: u16, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body);
        let said = ["\"reason\":", "\"message\":", "\"summary\":", "\"detail\":", "\"error\":"]
            .iter()
            .find_map(|key| string_after(&text, key))
            .unwrap_or_else(|| text.chars().take(MESSAGE_MAX).collect());
        let said: String = said.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let said = without_remembered(said);
        let said = said.trim();
        if said.is_empty() { format!("status {status}") } else { format!("{status}: {said}") }
    }

    /// The checks that make a reply a success; none where a reply says itself whether it is one.
    #[must_use]
    pub const fn checks(self) -> Option<&'static str> {
        match self {
            Dialect::Elasticsearch => Some("elasticsearch"),
            Dialect::Vespa => Some("vespa"),
            Dialect::Postgresql => None,
        }
    }
}

/// Longest message of an engine that is repeated, characters.
const MESSAGE_MAX: usize = 300;

/// The first JSON string after a key, as far as it is there.
fn string_after(text: &str, key: &str) -> Option<String> {
    let mut rest = text;
    while let Some(at) = rest.find(key) {
        rest = rest[at + key.len()..].trim_start();
        let Some(inside) = rest.strip_prefix('"') else { continue };
        let (mut said, mut escaped) = (String::new(), false);
        for c in inside.chars() {
            match (escaped, c) {
                (true, 'n' | 't' | 'r') => said.push(' '),
                (true, c) => said.push(c),
                (false, '"') => break,
                (false, '\\') => {}
                (false, c) => said.push(c),
            }
            escaped = !escaped && c == '\\';
            if said.chars().count() >= MESSAGE_MAX {
                break;
            }
        }
        if !said.trim().is_empty() {
            return Some(said);
        }
    }
    None
}

#[cfg(test)]
mod tests;

//! The request of a search.

use super::super::dialect::{Context, DefaultOperator, query, query_string};
use super::super::error::{At, ElasticError};
use super::super::params::Params;
use super::super::settings::duration;
use super::order::{self, Criterion};
use super::source_filter::SourceFilter;
use plimsoll_index::query::Node;
use serde_json::{Map, Value as Json};
use std::time::Duration;

/// Longest time that a search may take when the request does not say, and at most.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest body of a search: what it becomes in memory takes many times as much.
const MAX_QUERY_BYTES: usize = 16 << 20;
/// Fields of Elasticsearch that this server does not support.
const UNSUPPORTED: [&str; 19] = [
    "aggs",
    "aggregations",
    "highlight",
    "suggest",
    "rescore",
    "collapse",
    "script_fields",
    "docvalue_fields",
    "fields",
    "post_filter",
    "search_after",
    "slice",
    "pit",
    "indices_boost",
    "runtime_mappings",
    "terminate_after",
    "knn",
    "stored_fields",
    "ext",
];

/// Number of matches that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Totals {
    /// Not at all: the reply has no total.
    Nothing,
    /// Up to this number; above it the reply only says that there are more.
    To(u64),
    All,
}

/// A search as it was asked for.
#[derive(Clone, Debug)]
pub(crate) struct SearchRequest {
    query: Option<Json>,
    /// The parameter `q`.
    words: Option<String>,
    default_field: Option<String>,
    operator: DefaultOperator,
    pub(crate) from: usize,
    pub(crate) size: usize,
    pub(crate) sort: Vec<Criterion>,
    pub(crate) source: SourceFilter,
    pub(crate) totals: Totals,
    /// Totals as a plain number.
    pub(crate) plain_total: bool,
    pub(crate) timeout: Duration,
    pub(crate) min_score: Option<f32>,
    pub(crate) version: bool,
    pub(crate) sequence: bool,
    pub(crate) track_scores: bool,
    /// Only documents of this routing value's shard are searched.
    pub(crate) routing: Option<String>,
}

impl Default for SearchRequest {
    fn default() -> Self {
        Self {
            query: None,
            words: None,
            default_field: None,
            operator: DefaultOperator::default(),
            from: 0,
            size: 10,
            sort: Vec::new(),
            source: SourceFilter::All,
            totals: Totals::To(10_000),
            plain_total: false,
            timeout: MAX_TIMEOUT,
            min_score: None,
            version: false,
            sequence: false,
            track_scores: false,
            routing: None,
        }
    }
}

fn token(value: &Json) -> &'static str {
    match value {
        Json::Null => "VALUE_NULL",
        Json::Bool(_) => "VALUE_BOOLEAN",
        Json::Number(_) => "VALUE_NUMBER",
        Json::String(_) => "VALUE_STRING",
        Json::Array(_) => "START_ARRAY",
        Json::Object(_) => "START_OBJECT",
    }
}

fn totals(value: &Json) -> Result<Totals, ElasticError> {
    let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    match text.as_str() {
        "true" => Ok(Totals::All),
        "false" => Ok(Totals::Nothing),
        number => {
            let number: i64 = number.parse().map_err(|_| {
                ElasticError::new(
                    400,
                    "number_format_exception",
                    format!("For input string: \"{text}\""),
                )
            })?;
            match number {
                -1 => Ok(Totals::Nothing),
                number => u64::try_from(number).map(Totals::To).map_err(|_| {
                    let reason = format!(
                        "[track_total_hits] parameter must be positive or equals to -1, got {number}"
                    );
                    ElasticError::argument(reason)
                }),
            }
        }
    }
}

fn timeout(text: &str) -> Result<Duration, ElasticError> {
    if text == "-1" {
        return Ok(MAX_TIMEOUT);
    }
    let read = duration(text).ok_or_else(|| {
        let reason = format!(
            "failed to parse setting [timeout] with value [{text}] as a time value: unit is \
             missing or unrecognized"
        );
        ElasticError::argument(reason)
    })?;
    Ok(read.min(MAX_TIMEOUT))
}

impl SearchRequest {
    /// Reads the body and the parameters, which win.
    ///
    /// # Errors
    /// As Elasticsearch says it.
    pub(crate) fn read(body: &[u8], params: &Params) -> Result<Self, ElasticError> {
        let mut request = Self::default();
        if !body.iter().all(u8::is_ascii_whitespace) {
            let json = parse_short(body)?;
            request.body(&json).map_err(|error| error.located(body))?;
        }
        request.parameters(params)?;
        Ok(request)
    }

    fn body(&mut self, json: &Json) -> Result<(), ElasticError> {
        let at = At::ROOT;
        let Json::Object(object) = json else {
            let reason = format!("Expected [START_OBJECT] but found [{}]", token(json));
            return Err(ElasticError::parsing(&at, reason));
        };
        for (key, value) in object {
            self.member(key, value, &at.key(key))?;
        }
        Ok(())
    }

    fn member(&mut self, key: &str, value: &Json, at: &At<'_>) -> Result<(), ElasticError> {
        let flag = || value.as_bool().or_else(|| value.as_str()?.parse().ok());
        let unknown = || {
            let reason = format!("Unknown key for a {} in [{key}].", token(value));
            ElasticError::parsing(at, reason)
        };
        match key {
            "query" if value.is_object() => self.query = Some(value.clone()),
            "from" => self.from = page(key, value)?,
            "size" => self.size = page(key, value)?,
            "sort" => self.sort = order::read(value, at)?,
            "_source" => self.source = SourceFilter::read(value, at)?,
            "track_total_hits" => self.totals = totals(value)?,
            "timeout" => self.timeout = timeout(value.as_str().unwrap_or_default())?,
            "min_score" => {
                let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
                self.min_score = Some(number.ok_or_else(unknown)? as f32);
            }
            "version" => self.version = flag().ok_or_else(unknown)?,
            "seq_no_primary_term" => self.sequence = flag().ok_or_else(unknown)?,
            "track_scores" => self.track_scores = flag().ok_or_else(unknown)?,
            "stats" => {}
            "explain" | "profile" if flag() == Some(false) => {}
            "explain" | "profile" => {
                return Err(ElasticError::unsupported(&format!("[{key}]")));
            }
            known if UNSUPPORTED.contains(&known) => {
                return Err(ElasticError::unsupported(&format!("[{known}] in a search")));
            }
            _ => return Err(unknown()),
        }
        Ok(())
    }

    fn parameters(&mut self, params: &Params) -> Result<(), ElasticError> {
        let number = |name: &str| match params.get(name) {
            Some(text) => match page(name, &Json::String(text.to_owned())) {
                Err(cause) if cause.kind == "number_format_exception" => {
                    let reason =
                        format!("Failed to parse int parameter [{name}] with value [{text}]");
                    Err(ElasticError::argument(reason).caused_by(cause))
                }
                read => read.map(Some),
            },
            None => Ok(None),
        };
        self.from = number("from")?.unwrap_or(self.from);
        self.size = number("size")?.unwrap_or(self.size);
        if let Some(text) = params.get("q") {
            self.words = Some(text.to_owned());
        }
        self.default_field = params.get("df").map(ToOwned::to_owned);
        match params.get("default_operator").map(str::to_ascii_lowercase).as_deref() {
            None | Some("or") => {}
            Some("and") => self.operator = DefaultOperator::And,
            Some(other) => {
                let reason = format!("operator needs to be either OR or AND, but not [{other}]");
                return Err(ElasticError::argument(reason));
            }
        }
        if let Some(list) = params.get("sort") {
            self.sort = list.split(',').map(Criterion::from_parameter).collect::<Result<_, _>>()?;
        }
        let filter = SourceFilter::from_parameters(
            params.get("_source"),
            params.get("_source_includes"),
            params.get("_source_excludes"),
        );
        if let Some(filter) = filter {
            self.source = filter;
        }
        if let Some(text) = params.get("track_total_hits") {
            self.totals = totals(&Json::String(text.to_owned()))?;
        }
        if let Some(text) = params.get("timeout") {
            self.timeout = timeout(text)?;
        }
        self.version |= params.flag("version");
        self.sequence |= params.flag("seq_no_primary_term");
        self.track_scores |= params.flag("track_scores");
        self.plain_total = params.flag("rest_total_hits_as_int");
        self.routing = params.get("routing").map(ToOwned::to_owned);
        refuse_unsupported(params)?;
        if self.plain_total {
            match self.totals {
                Totals::To(10_000) => self.totals = Totals::All,
                Totals::To(limit) => {
                    let reason = format!(
                        "[rest_total_hits_as_int] cannot be used if the tracking of total hits is \
                         not accurate, got {limit}"
                    );
                    return Err(ElasticError::argument(reason));
                }
                Totals::All | Totals::Nothing => {}
            }
        }
        Ok(())
    }

    /// Checks the page against the window of an index.
    ///
    /// # Errors
    /// When it ends behind the window.
    pub(crate) fn check(&self, index: &str, most: usize) -> Result<(), ElasticError> {
        let window = self.from.saturating_add(self.size);
        if window > most {
            let reason = format!(
                "Result window is too large, from + size must be less than or equal to: \
                 [{most}] but was [{window}]. See the scroll api for a more efficient way to \
                 request large data sets. This limit can be set by changing the \
                 [index.max_result_window] index level setting."
            );
            return Err(ElasticError::argument(reason).all_shards_failed(index));
        }
        Ok(())
    }

    /// The query for one index.
    ///
    /// # Errors
    /// As Elasticsearch says it.
    pub(crate) fn node(&self, context: Context<'_>) -> Result<Node, ElasticError> {
        let by_score = self.sort.iter().any(|criterion| criterion.field == "_score");
        if self.track_scores && !self.sort.is_empty() && !by_score {
            return Err(ElasticError::unsupported("[track_scores] beside a [sort] without _score"));
        }
        if let Some(words) = &self.words {
            return query_string(words, self.default_field.as_deref(), self.operator, context);
        }
        match &self.query {
            Some(json) => query(json, &At::ROOT.key("query"), context),
            None => Ok(Node::Constant(Box::new(Node::All), 1.0)),
        }
    }

    /// Only the query of a body, as `_count` takes it.
    ///
    /// # Errors
    /// When there is anything else in the body.
    pub(crate) fn read_count(body: &[u8], params: &Params) -> Result<Self, ElasticError> {
        if !body.iter().all(u8::is_ascii_whitespace) {
            let json = parse_short(body)?;
            let empty = Map::new();
            let object = json.as_object().unwrap_or(&empty);
            if let Some((key, _)) = object.iter().find(|(key, _)| *key != "query") {
                let reason = format!("request does not support [{key}]");
                return Err(ElasticError::parsing(&At::ROOT.key(key), reason).located(body));
            }
        }
        let mut request = Self::read(body, params)?;
        (request.size, request.totals) = (0, Totals::All);
        Ok(request)
    }
}

/// Reads a body that must be JSON.
///
/// # Errors
/// When it is none.
pub(crate) fn parse(body: &[u8]) -> Result<Json, ElasticError> {
    serde_json::from_slice(body).map_err(|error| ElasticError::json(&error))
}

/// The same for a request that reads, which must not be too long: the tree takes many times as much as the text.
///
/// # Errors
/// When it is too long, or none.
pub(crate) fn parse_short(body: &[u8]) -> Result<Json, ElasticError> {
    if body.len() > MAX_QUERY_BYTES {
        let reason = format!(
            "a request of [{}] bytes is longer than [{MAX_QUERY_BYTES}]: ask for less at a time",
            body.len()
        );
        return Err(ElasticError::too_long(reason));
    }
    parse(body)
}

/// Refuses parameters that would change the answer if they were implemented.
fn refuse_unsupported(params: &Params) -> Result<(), ElasticError> {
    let given = |name: &str| params.get(name).filter(|value| !["", "false"].contains(value));
    for name in ["scroll", "explain", "fielddata_fields", "fields"] {
        if given(name).is_some() {
            return Err(ElasticError::unsupported(&format!("[{name}]")));
        }
    }
    if given("stored_fields").is_some_and(|fields| fields != "_none_") {
        return Err(ElasticError::unsupported("[stored_fields]"));
    }
    if let Some(kind) = given("search_type").filter(|kind| *kind != "query_then_fetch") {
        return Err(ElasticError::unsupported(&format!("the search_type [{kind}]")));
    }
    if params.get("allow_partial_search_results") == Some("false") {
        return Err(ElasticError::unsupported("[allow_partial_search_results] that is false"));
    }
    match given("analyzer") {
        Some(other) if other != "standard" => {
            Err(ElasticError::unsupported(&format!("the analyzer [{other}]")))
        }
        _ => Ok(()),
    }
}

fn page(name: &str, value: &Json) -> Result<usize, ElasticError> {
    let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
    let number = number.ok_or_else(|| {
        let shown = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        ElasticError::new(400, "number_format_exception", format!("For input string: \"{shown}\""))
    })?;
    usize::try_from(number).map_err(|_| {
        ElasticError::argument(format!("[{name}] parameter cannot be negative but was [{number}]"))
    })
}

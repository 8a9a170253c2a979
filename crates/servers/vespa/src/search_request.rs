//! The request to `/search/`: parameters and query text become a [`Search`].

use super::order_parameter;
use super::query_type::{QueryType, QueryTypeParts};
use super::search_reply::{Code, Failure, is_special};
use super::simple::{self, Text};
use super::yql::{self, FreeText, Scope};
use plimsoll_documents::schema::{DEFAULT_FIELD, Schemas};
use plimsoll_index::query::{Node, OrderBy, Ranking, Search, Selection, Statement};
use plimsoll_serving::parameters::{Parameters, duration_us, is_true};
use std::cell::Cell;
use std::time::Duration;

/// The most hits that a search may return.
pub(crate) const MAX_HITS: u64 = 400;
/// The largest offset of the first hit.
pub(crate) const MAX_OFFSET: u64 = 1000;
/// Longest time that a search may take when the request does not say.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_millis(500);
/// The longest time that a request may give a search.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(3600);

const DEFAULT_HITS: u64 = 10;
/// Parameters by which Vespa finds other documents, or orders or groups them otherwise, and which this server does not
/// have: an answer without them would be to another question. Those that end in a dot stand for all that begin so.
const REFUSED: [&str; 14] = [
    "select",
    "select.",
    "collapsefield",
    "collapsesize",
    "collapse.",
    "pos.",
    "streaming.",
    "ranking.location",
    "ranking.matchPhase.",
    "ranking.rankScoreDropLimit",
    "ranking.secondPhase.rankScoreDropLimit",
    "ranking.globalPhase.",
    "rules.rulebase",
    "model.type.profile",
];
const PARAMETER_PAGE: &str =
    "https://docs.vespa.ai/en/reference/query-api-reference.html#native-execution-parameters";

/// A search and how its answer is wanted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SearchRequest {
    pub(crate) search: Search,
    pub(crate) selection: Selection,
    pub(crate) timeout: Duration,
    /// `presentation.timing=true`
    pub(crate) timing: bool,
}

/// The names outside a statement that it can refer to.
struct RequestScope<'a> {
    parameters: &'a Parameters,
    /// The way the parameter `query` is read.
    kind: QueryType,
    /// The way text in a statement is read unless the statement says.
    in_statement: QueryType,
    /// True if the statement has read the parameter `query`, and with it its filter.
    read_query: Cell<bool>,
    schemas: &'a Schemas,
}

impl<'a> RequestScope<'a> {
    fn new(parameters: &'a Parameters, schemas: &'a Schemas) -> Result<Self, String> {
        let part = |name: &str| parameters.get(&format!("model.type.{name}")).map(str::to_owned);
        let is_refused = |name: &str| {
            REFUSED.iter().any(|no| name == *no || (no.ends_with('.') && name.starts_with(no)))
        };
        if let Some(name) = parameters.named(is_refused) {
            return Err(format!("'{name}' is not supported by this server"));
        }
        if let Some(name) = parameters.get("queryProfile").filter(|name| *name != "default") {
            return Err(format!(
                "Could not resolve query profile '{name}': the only one is default"
            ));
        }
        let parts = QueryTypeParts {
            name: parameters.any(&["type", "model.type"]).map(str::to_owned),
            composite: part("composite"),
            syntax: part("syntax"),
            tokenization: part("tokenization"),
        };
        let kind = QueryType::default().with(&parts);
        let kind = kind.map_err(|message| format!("Could not set 'model.type': {message}"))?;
        let everywhere = part("isYqlDefault").is_some_and(|text| is_true(&text));
        let in_statement = if everywhere { kind } else { QueryType::default() };
        Ok(Self { parameters, kind, in_statement, read_query: Cell::new(false), schemas })
    }

    /// The field of words without a field in the texts of parameters.
    fn default_field(&self) -> &str {
        self.parameters.any(&["default-index", "model.defaultIndex"]).unwrap_or(DEFAULT_FIELD)
    }

    /// The text that restricts `query`, if there is one.
    fn filter(&self) -> Option<&str> {
        let filter = self.parameters.any(&["filter", "model.filter"]);
        filter.filter(|text| !text.trim().is_empty())
    }

    /// A text of a parameter, once its length and field are looked at.
    fn text<'t>(
        &'t self,
        text: &'t str,
        field: &'t str,
        kind: QueryType,
    ) -> Result<Text<'t>, String> {
        if text.len() > yql::MAX_TEXT_BYTES {
            let limit = yql::MAX_TEXT_BYTES;
            return Err(format!(
                "the query has {} bytes, at most {limit} are accepted",
                text.len()
            ));
        }
        if !self.schemas.can_search(field) {
            return Err(unknown_field(field, self.schemas));
        }
        Ok(Text { text, field, kind, distance: None, schemas: self.schemas })
    }

    /// A query that `recall` restricts, without any part in the relevance.
    fn recalled(&self, query: Node) -> Result<Node, String> {
        let Some(recall) = self.parameters.get("recall") else { return Ok(query) };
        let text = self.text(recall, self.default_field(), QueryType::any())?;
        let filter = simple::filter(&text)?;
        if !filter.ranked.is_empty() {
            return Err("Recall contains at least one rank item: write + or - before it".to_owned());
        }
        if filter.required.is_empty() && filter.unwanted.is_empty() {
            return Err("Failed to parse recall parameter".to_owned());
        }
        Ok(filter.unranked().apply(query))
    }
}

impl Scope for RequestScope<'_> {
    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name)
    }

    fn user_query(&self) -> Result<Node, String> {
        self.read_query.set(true);
        let text = self.parameters.any(&["query", "model.queryString"]).unwrap_or("");
        let field = self.default_field();
        let query = simple::parse(&self.text(text, field, self.kind)?)?;
        match self.filter() {
            None => Ok(query),
            // Where nothing else is asked for, the filter is the query.
            Some(filter) if query == Node::Null => {
                simple::parse(&self.text(filter, field, QueryType::any())?)
            }
            Some(filter) => {
                Ok(simple::filter(&self.text(filter, field, QueryType::any())?)?.apply(query))
            }
        }
    }

    fn free_text(&self, free: &FreeText<'_>) -> Result<Node, String> {
        let field = free.field.unwrap_or(DEFAULT_FIELD);
        match free.grammar.name.as_deref() {
            Some("raw") => return Ok(simple::uncut(free.text, field, self.schemas)),
            Some("segment") => {
                let (field, text) = (field.to_owned(), free.text.to_owned());
                return Ok(Node::Term { field, text });
            }
            _ => {}
        }
        let kind = if free.only_words { QueryType::only_words() } else { self.in_statement };
        let text = self.text(free.text, field, kind.with(free.grammar)?)?;
        simple::parse(&Text { distance: free.distance, ..text })
    }
}

/// Reads the parameters of a search.
///
/// # Errors
/// With what to tell the client.
pub(crate) fn read(parameters: &Parameters, schemas: &Schemas) -> Result<SearchRequest, Failure> {
    let scope = RequestScope::new(parameters, schemas).map_err(invalid)?;
    let mut statement = statement(parameters, &scope)?;
    check_names(&statement, schemas)?;
    let sources = parameters.any(&["sources", "search", "model.sources"]).unwrap_or("");
    statement.sources.extend(listed(sources).map(str::to_owned));
    let types = restricted(types(&statement.sources, schemas)?, parameters, schemas)?;
    let (hits, offset) = page(parameters, &statement)?;
    let timeout = timeout(parameters, &statement)?;
    let ranking = ranking(parameters)?;
    let timing = parameters.get("presentation.timing").is_some_and(is_true);
    let order = order(parameters, statement.order)?;
    let Statement { selection, filter, .. } = statement;
    let filter = filter.asked().ok_or_else(|| {
        Failure::new(Code::NullQuery, "No query: there is no word to look for in 'query'")
    })?;
    let filter = scope.recalled(filter).map_err(invalid)?;
    let search = Search { filter, types, order, ranking, hits, offset };
    Ok(SearchRequest { search, selection, timeout, timing })
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(Code::InvalidParameter, message)
}

fn unknown_field(name: &str, schemas: &Schemas) -> String {
    format!("Field '{name}' does not exist. The fields are {}", schemas.field_names())
}

fn statement(parameters: &Parameters, scope: &RequestScope<'_>) -> Result<Statement, Failure> {
    if let Some(text) = parameters.get("yql").filter(|text| !text.trim().is_empty()) {
        let statement = yql::parse(text, scope)
            .map_err(|error| invalid(format!("Could not create query from YQL: {error}")))?;
        if scope.filter().is_some() && !scope.read_query.get() {
            return Err(invalid(
                "'filter' restricts 'query', which this YQL statement does not read: add 'and userQuery()', or say in \
                 the statement what is to be filtered",
            ));
        }
        return Ok(statement);
    }
    if parameters.any(&["query", "model.queryString"]).is_none() && scope.filter().is_none() {
        let message = "No query: give 'yql' (or 'query' with words to look for)";
        return Err(Failure::new(Code::NullQuery, message));
    }
    Ok(Statement {
        selection: Selection::All,
        sources: Vec::new(),
        filter: scope.user_query().map_err(invalid)?,
        order: Vec::new(),
        limit: None,
        offset: None,
        timeout_ms: None,
    })
}

fn check_names(statement: &Statement, schemas: &Schemas) -> Result<(), Failure> {
    if let Selection::Named(names) = &statement.selection {
        let unknown = names.iter().find(|name| !is_special(name) && !schemas.has_field(name));
        if let Some(name) = unknown {
            return Err(invalid(unknown_field(name, schemas)));
        }
    }
    Ok(())
}

/// The order that the statement asks for, or else the parameter.
fn order(parameters: &Parameters, in_statement: Vec<OrderBy>) -> Result<Vec<OrderBy>, Failure> {
    match parameters.any(&["sorting", "ranking.sorting"]) {
        Some(text) if in_statement.is_empty() => order_parameter::order(text).map_err(invalid),
        _ => Ok(in_statement),
    }
}

/// The names in a list with commas.
fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// Of the document types those that `restrict` names; without any, every one.
fn restricted(
    types: Vec<u16>,
    parameters: &Parameters,
    schemas: &Schemas,
) -> Result<Vec<u16>, Failure> {
    let text = parameters.any(&["restrict", "model.restrict"]).unwrap_or("");
    let mut wanted = Vec::new();
    for name in listed(text) {
        let schema = schemas.by_name(name).ok_or_else(|| {
            let known = schemas.type_names();
            invalid(format!("Could not set 'restrict' to '{name}'. The document types are {known}"))
        })?;
        wanted.push(schema.number());
    }
    if wanted.is_empty() {
        return Ok(types);
    }
    wanted.sort_unstable();
    wanted.dedup();
    if types.is_empty() {
        return Ok(if wanted.len() == schemas.types().len() { Vec::new() } else { wanted });
    }
    wanted.retain(|number| types.contains(number));
    if wanted.is_empty() {
        return Err(invalid("'restrict' names none of the document types of the sources"));
    }
    Ok(wanted)
}

/// The document types that the sources name; the cluster stands for all of them.
fn types(sources: &[String], schemas: &Schemas) -> Result<Vec<u16>, Failure> {
    let mut types = Vec::new();
    let mut every = false;
    for source in sources {
        match schemas.by_name(source) {
            Some(schema) => types.push(schema.number()),
            None if source == schemas.cluster() => every = true,
            None => {
                let message = format!(
                    "Could not resolve source ref '{source}'. Valid source refs are {}, {}.",
                    schemas.type_names(),
                    schemas.cluster()
                );
                return Err(invalid(message));
            }
        }
    }
    types.sort_unstable();
    types.dedup();
    if every || types.len() == schemas.types().len() {
        types.clear();
    }
    Ok(types)
}

/// Hits and offset. In YQL, `limit` counts from the first match: `limit 31 offset 29` gives two
/// hits.
fn page(parameters: &Parameters, statement: &Statement) -> Result<(usize, usize), Failure> {
    let number = |names: [&str; 2]| match parameters.any(&names) {
        None => Ok(None),
        Some(text) => text.trim().parse::<u64>().map(Some).map_err(|_| {
            let name = names[0];
            invalid(format!("Could not set '{name}' to '{text}': it takes a whole number from 0"))
        }),
    };
    let offset = match statement.offset {
        Some(offset) => offset,
        None => number(["offset", "start"])?.unwrap_or(0),
    };
    let hits = match statement.limit {
        Some(limit) => limit.saturating_sub(statement.offset.unwrap_or(0)),
        None => number(["hits", "count"])?.unwrap_or(DEFAULT_HITS),
    };
    if hits > MAX_HITS {
        let message =
            format!("{hits} hits requested, configured limit: {MAX_HITS}. See {PARAMETER_PAGE}");
        return Err(Failure::new(Code::IllegalQuery, message));
    }
    if offset > MAX_OFFSET {
        let message = format!(
            "Offset of {offset} requested, configured limit: {MAX_OFFSET}. See {PARAMETER_PAGE}"
        );
        return Err(Failure::new(Code::IllegalQuery, message));
    }
    // Both are far below the range of any usize.
    Ok((hits as usize, offset as usize))
}

fn timeout(parameters: &Parameters, statement: &Statement) -> Result<Duration, Failure> {
    if let Some(ms) = statement.timeout_ms {
        return Ok(Duration::from_millis(ms).min(MAX_TIMEOUT));
    }
    let Some(text) = parameters.get("timeout") else { return Ok(DEFAULT_TIMEOUT) };
    let us = duration_us(text).ok_or_else(|| {
        invalid(format!("Could not set 'timeout' to '{text}': use a time such as 500ms or 2s"))
    })?;
    Ok(Duration::from_micros(us).min(MAX_TIMEOUT))
}

fn ranking(parameters: &Parameters) -> Result<Ranking, Failure> {
    match parameters.any(&["ranking", "ranking.profile"]) {
        None | Some("default" | "bm25") => Ok(Ranking::Bm25),
        Some("unranked") => Ok(Ranking::Unranked),
        Some(name) => {
            let message =
                format!("The rank profile '{name}' does not exist: use default, bm25 or unranked");
            Err(invalid(message))
        }
    }
}

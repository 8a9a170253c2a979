//! Elasticsearch's query language: JSON becomes a tree of `plimsoll_index::query`.
//!
//! The meaning of a word depends on the field, so that a query is read once for each index
//! it goes to.

mod compound;
mod fulltext;
mod fuzziness;
mod leaf;
mod minimum;
mod params;
mod simple;

pub(crate) use simple::{DefaultOperator, query_string};

use super::error::{At, ElasticError};
use super::mapping::{Field, ID, Mapping};
use levenshtein_automata::Distance;
use plimsoll_index::fuzzy::FuzzyMode;
use plimsoll_index::query::{AtLeast, Expansion, Node, Similar};
use plimsoll_scan::Metric;
use serde_json::Value as Json;

/// Deepest nesting of queries.
const MAX_DEPTH: usize = 64;
/// The most clauses of one query.
const MAX_CLAUSES: usize = 65_536;

/// The most words that a word may stand for: as many as Lucene takes, whatever the query says.
const MAX_EXPANSIONS: usize = 1024;
/// Elasticsearch's own fields of each document; only the id can be searched here.
const OF_ITSELF: [&str; 8] =
    ["_index", "_type", "_routing", "_source", "_seq_no", "_version", "_field_names", "_ignored"];

/// Queries of Elasticsearch that are not here.
const UNSUPPORTED: [&str; 36] = [
    "wildcard",
    "regexp",
    "query_string",
    "simple_query_string",
    "boosting",
    "function_score",
    "nested",
    "has_child",
    "has_parent",
    "parent_id",
    "geo_bounding_box",
    "geo_distance",
    "geo_polygon",
    "geo_shape",
    "shape",
    "more_like_this",
    "percolate",
    "rank_feature",
    "script",
    "script_score",
    "wrapper",
    "pinned",
    "span_term",
    "span_near",
    "span_or",
    "span_not",
    "span_first",
    "span_multi",
    "span_containing",
    "span_within",
    "span_field_masking",
    "intervals",
    "match_bool_prefix",
    "match_phrase_prefix",
    "terms_set",
    "distance_feature",
];

pub(crate) type Made = Result<Node, ElasticError>;

/// The context of a query.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) index: &'a str,
    pub(crate) uuid: &'a str,
    pub(crate) mapping: &'a Mapping,
    pub(crate) mode: FuzzyMode,
    /// The value of `now`, in milliseconds since 1970.
    pub(crate) now_ms: i64,
    pub(crate) depth: usize,
}

impl Context<'_> {
    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    /// Returns the field of a name, also one that cannot be searched; nothing when the mapping has none.
    fn field_or_hidden(&self, name: &str) -> Result<Option<&Field>, ElasticError> {
        match self.mapping.field(name) {
            None if OF_ITSELF.contains(&name) => {
                Err(ElasticError::unsupported(&format!("queries for [{name}]")))
            }
            field => Ok(field),
        }
    }

    /// The field of a name; nothing when the mapping has none, and then nothing matches.
    fn field(&self, name: &str) -> Result<Option<&Field>, ElasticError> {
        match self.field_or_hidden(name)? {
            Some(field) if !field.index => {
                let reason = format!(
                    "failed to create query: Cannot search on field [{name}] since it is not \
                     indexed."
                );
                Err(self.refused(reason))
            }
            field => Ok(field),
        }
    }

    /// The same for queries that cannot ask for the id.
    fn field_but_id(&self, name: &str) -> Result<Option<&Field>, ElasticError> {
        if name == ID {
            let what = "queries for [_id] other than ids, term, terms and match";
            return Err(ElasticError::unsupported(what));
        }
        self.field(name)
    }

    /// A query that does not go with the index.
    pub(crate) fn refused(&self, reason: impl Into<String>) -> ElasticError {
        ElasticError::shard(self.index, self.uuid, reason)
    }

    /// A query that cannot be made for the index, for this reason.
    fn not_made(&self, cause: ElasticError) -> ElasticError {
        self.refused(format!("failed to create query: {}", cause.reason)).caused_by(cause)
    }
}

/// Reads a query.
///
/// # Errors
/// As Elasticsearch says it; the place in the request is still to be found.
pub(crate) fn query(json: &Json, at: &At<'_>, context: Context<'_>) -> Made {
    if context.depth >= MAX_DEPTH {
        let reason = format!("The nested depth of the query exceeds the limit of [{MAX_DEPTH}]");
        return Err(ElasticError::argument(reason));
    }
    let Json::Object(object) = json else {
        return Err(ElasticError::parsing(
            at,
            "[_na] query malformed, must start with start_object",
        ));
    };
    let mut members = object.iter();
    let Some((name, body)) = members.next() else {
        return Err(ElasticError::argument("query malformed, empty clause found"));
    };
    let inner = at.key(name);
    if !body.is_object() {
        let reason = format!("[{name}] query malformed, no start_object after query name");
        return Err(ElasticError::parsing(&inner, reason));
    }
    let context = context.deeper();
    let node = match name.as_str() {
        "match" => fulltext::one(body, &inner, context),
        "match_phrase" => fulltext::phrase(body, &inner, context),
        "multi_match" => fulltext::several(body, &inner, context),
        "fuzzy" => leaf::fuzzy(body, &inner, context),
        "bool" => compound::read(body, &inner, context),
        "dis_max" => compound::best(body, &inner, context),
        "constant_score" => compound::constant(body, &inner, context),
        "term" => leaf::term(body, &inner, context),
        "terms" => leaf::terms(body, &inner, context),
        "range" => leaf::range(body, &inner, context),
        "prefix" => leaf::prefix(body, &inner, context),
        "exists" => leaf::exists(body, &inner, context),
        "ids" => leaf::ids(body, &inner),
        "match_all" => leaf::everything(body, &inner),
        "match_none" => leaf::none(body, &inner),
        known if UNSUPPORTED.contains(&known) => {
            Err(ElasticError::unsupported(&format!("the query [{known}]")))
        }
        unknown => Err(unknown_query(unknown, &inner)),
    }?;
    if let Some((next, _)) = members.next() {
        let reason =
            format!("[{name}] malformed query, expected [END_OBJECT] but found [FIELD_NAME]");
        return Err(ElasticError::parsing(&at.key(next), reason));
    }
    Ok(node)
}

const KNOWN: [&str; 15] = [
    "match",
    "match_phrase",
    "multi_match",
    "fuzzy",
    "bool",
    "dis_max",
    "constant_score",
    "term",
    "terms",
    "range",
    "prefix",
    "exists",
    "ids",
    "match_all",
    "match_none",
];

/// Edits of a name up to which it is taken for another one that was mistyped.
const MISTYPED: u8 = 2;

fn unknown_query(name: &str, at: &At<'_>) -> ElasticError {
    let length = name.chars().count();
    // A hint for those who mistyped less than half of a name. An automaton takes kilobytes for each character, so that there is
    // none of a name whose length alone is too far away.
    let near = |known: &&&str| {
        if known.len().abs_diff(length) > usize::from(MISTYPED) {
            return false;
        }
        let automaton = plimsoll_index::automaton::builder(MISTYPED.into(), false);
        let distance = automaton.map(|builder| builder.build_dfa(name).eval(known.as_bytes()));
        let longer = length.max(known.len());
        matches!(distance, Some(Distance::Exact(edits)) if usize::from(edits) * 2 < longer)
    };
    let hint =
        KNOWN.iter().find(near).map_or_else(String::new, |k| format!(" did you mean [{k}]?"));
    let cause = ElasticError::new(
        400,
        "named_object_not_found_exception",
        format!("unknown field [{name}]"),
    );
    let cause = cause.placed(at);
    ElasticError::parsing(at, format!("unknown query [{name}]{hint}")).caused_by(cause)
}

/// The node with its boost.
fn boosted(node: Node, boost: f32) -> Node {
    if boost == 1.0 { node } else { Node::Boost(Box::new(node), boost) }
}

/// The same relevance for all matches.
fn constant(node: Node, score: f32) -> Node {
    match node {
        Node::Nothing => Node::Nothing,
        node => Node::Constant(Box::new(node), score),
    }
}

/// At least this many of the nodes.
fn some_of(mut should: Vec<Node>, at_least: usize) -> Node {
    match should.len() {
        0 => Node::Nothing,
        1 if at_least <= 1 => should.swap_remove(0),
        _ => Node::AtLeast(Box::new(AtLeast { must: Vec::new(), should, at_least })),
    }
}

/// All of the nodes.
fn all_of(mut must: Vec<Node>) -> Node {
    match must.len() {
        0 => Node::Nothing,
        1 => must.swap_remove(0),
        _ => Node::And(must),
    }
}

/// The way words are to be found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nearness {
    pub(crate) fuzziness: fuzziness::Fuzziness,
    pub(crate) prefix_length: usize,
    pub(crate) max_expansions: usize,
    pub(crate) transpositions: bool,
    /// The errors that a scan counts.
    pub(crate) metric: Metric,
}

impl Default for Nearness {
    fn default() -> Self {
        Self {
            fuzziness: fuzziness::Fuzziness::default(),
            prefix_length: 0,
            max_expansions: 50,
            transpositions: true,
            metric: Metric::default(),
        }
    }
}

impl Nearness {
    /// Words near a term; `written` is the text that the term was cut from.
    fn node(&self, field: &str, term: String, written: &str, mode: FuzzyMode) -> Node {
        let length = term.chars().count();
        let max_edits = self.fuzziness.edits(length);
        if max_edits == 0 {
            return Node::Exact { field: field.to_owned(), term };
        }
        let (term, expansion) = match mode {
            FuzzyMode::Index => (term, Expansion::Nearest(self.max_expansions.min(MAX_EXPANSIONS))),
            FuzzyMode::Automaton => (term, Expansion::All),
            FuzzyMode::Scan => (written.to_owned(), Expansion::Scan(self.metric)),
        };
        Node::Similar(Similar {
            field: field.to_owned(),
            term,
            max_edits,
            prefix_length: self.prefix_length,
            transpositions: self.transpositions,
            expansion,
        })
    }
}

//! Queries whose text is cut into words: `match`, `match_phrase`, `multi_match`.

use super::super::error::{At, ElasticError};
use super::super::mapping::{Field, Kind};
use super::fuzziness::{self, Fuzziness};
use super::params::{Outcome, boost, flag, natural, one_field, text, token, unknown};
use super::{Context, MAX_CLAUSES, Made, Nearness, all_of, boosted, leaf, minimum, some_of};
use plimsoll_index::fuzzy::FuzzyMode;
use plimsoll_index::query::Node;
use plimsoll_index::standard::{Cuts, push_lower};
use serde_json::Value as Json;

/// The common fields of all queries with words.
struct Asked {
    query: Json,
    boost: f32,
    all: bool,
    nearness: Nearness,
    minimum: Option<Json>,
    slop: u32,
    all_without_words: bool,
    lenient: bool,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            query: Json::Null,
            boost: 1.0,
            all: false,
            nearness: Nearness::default(),
            minimum: None,
            slop: 0,
            all_without_words: false,
            lenient: false,
        }
    }
}

impl Asked {
    /// Takes a member that `match` has; tells whether it is one.
    fn take(&mut self, key: &str, value: &Json, at: &At<'_>, mode: FuzzyMode) -> Outcome<bool> {
        match key {
            "operator" => self.all = operator(value)?,
            "fuzziness" => self.nearness.fuzziness = Fuzziness::read(value, mode)?,
            "metric" if mode == FuzzyMode::Scan => self.nearness.metric = fuzziness::metric(value)?,
            "prefix_length" => self.nearness.prefix_length = natural(value, at, "prefix length")?,
            "max_expansions" => {
                self.nearness.max_expansions = natural(value, at, "max expansions")?;
                if self.nearness.max_expansions == 0 {
                    return Err(ElasticError::argument("max_expansions must be positive"));
                }
            }
            "fuzzy_transpositions" => self.nearness.transpositions = flag(value)?,
            "minimum_should_match" => self.minimum = Some(value.clone()),
            "lenient" => self.lenient = flag(value)?,
            "fuzzy_rewrite" | "cutoff_frequency" => {
                return Err(ElasticError::unsupported(&format!("[{key}]")));
            }
            // There are no synonyms.
            "auto_generate_synonyms_phrase_query" => {}
            _ => return self.take_common(key, value, at),
        }
        Ok(true)
    }

    /// Takes a member that the other queries have as well.
    fn take_common(&mut self, key: &str, value: &Json, at: &At<'_>) -> Outcome<bool> {
        match key {
            "query" => match value {
                Json::Array(_) | Json::Object(_) => return Ok(false),
                value => self.query = value.clone(),
            },
            "boost" => self.boost = boost(value, at)?,
            "_name" => {}
            "analyzer" => {
                let name = text(value, at)?;
                if name != "standard" {
                    return Err(ElasticError::unsupported(&format!("the analyzer [{name}]")));
                }
            }
            "zero_terms_query" => {
                self.all_without_words = match text(value, at)?.to_ascii_lowercase().as_str() {
                    "none" => false,
                    "all" => true,
                    other => {
                        let reason = format!("Unsupported zero_terms_query value [{other}]");
                        return Err(ElasticError::parsing(at, reason));
                    }
                };
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn operator(value: &Json) -> Outcome<bool> {
    match value.as_str().unwrap_or("").to_ascii_lowercase().as_str() {
        "and" => Ok(true),
        "or" => Ok(false),
        _ => {
            let reason = format!(
                "operator needs to be either OR or AND, but not [{}]",
                value.as_str().unwrap_or(&value.to_string())
            );
            Err(ElasticError::argument(reason))
        }
    }
}

/// Reads the members behind the field of `match` and `match_phrase`.
fn members(
    query: &str,
    asked: &Json,
    at: &At<'_>,
    mut take: impl FnMut(&mut Asked, &str, &Json, &At<'_>) -> Outcome<bool>,
) -> Outcome<Asked> {
    let mut found = Asked::default();
    let Json::Object(object) = asked else {
        found.query = asked.clone();
        return Ok(found);
    };
    for (key, value) in object {
        let inner = at.key(key);
        if value.is_object() || value.is_array() {
            let reason = format!("[{query}] unknown token [{}] after [{key}]", token(value));
            return Err(ElasticError::parsing(&inner, reason));
        }
        if !take(&mut found, key, value, &inner)? {
            return Err(unknown(query, key, &inner));
        }
    }
    if found.query.is_null() {
        return Err(ElasticError::parsing(at, "No text specified for text query"));
    }
    Ok(found)
}

/// `match`
pub(super) fn one(body: &Json, at: &At<'_>, context: Context<'_>) -> Made {
    let (name, asked) = one_field("match", body, at)?;
    let at = at.key(name);
    let asked = members("match", asked, &at, |found, key, value, at| {
        found.take(key, value, at, context.mode)
    })?;
    Ok(boosted(words(name, &asked, &at, context)?, asked.boost))
}

fn words(name: &str, asked: &Asked, at: &At<'_>, context: Context<'_>) -> Made {
    let query = text(&asked.query, at)?;
    let Some(field) = context.field(name)? else { return no_field(name, &query) };
    if field.kind != Kind::Text {
        if field.kind == Kind::Keyword {
            return Ok(asked.nearness.node(name, query.clone(), &query, context.mode));
        }
        return match leaf::equal(field, &asked.query, context) {
            Err(_) if asked.lenient => Ok(Node::Nothing),
            made => made,
        };
    }
    let nodes = word_nodes(field, &query, asked, context)?;
    if nodes.is_empty() {
        let all = Node::Constant(Box::new(Node::All), 1.0);
        return Ok(if asked.all_without_words { all } else { Node::Nothing });
    }
    if asked.all {
        return Ok(all_of(nodes));
    }
    let required = match &asked.minimum {
        // One word is no choice: there is nothing to count.
        Some(minimum) if nodes.len() > 1 => {
            minimum::required(minimum, nodes.len()).map_err(|error| context.not_made(error))?.max(1)
        }
        _ => 1,
    };
    Ok(some_of(nodes, required))
}

/// A name that is no field, but may be the id.
fn no_field(name: &str, query: &str) -> Made {
    if name == super::super::mapping::ID {
        return Ok(Node::Exact { field: name.to_owned(), term: query.to_owned() });
    }
    Ok(Node::Nothing)
}

fn word_nodes(
    field: &Field,
    query: &str,
    asked: &Asked,
    context: Context<'_>,
) -> Outcome<Vec<Node>> {
    let mut nodes = Vec::new();
    for (start, end) in Cuts::new(query) {
        let written = &query[start..end];
        let mut term = String::with_capacity(written.len());
        push_lower(&mut term, written);
        nodes.push(asked.nearness.node(&field.path, term, written, context.mode));
        if nodes.len() > MAX_CLAUSES {
            return Err(too_many());
        }
    }
    Ok(nodes)
}

fn too_many() -> ElasticError {
    let reason = format!("maxClauseCount is set to {MAX_CLAUSES}");
    ElasticError::new(400, "too_many_clauses", reason)
}

/// `match_phrase`. With `--fuzzy scan` it takes a `fuzziness` for the phrase as a whole.
pub(super) fn phrase(body: &Json, at: &At<'_>, context: Context<'_>) -> Made {
    let (name, asked) = one_field("match_phrase", body, at)?;
    let at = at.key(name);
    let asked = members("match_phrase", asked, &at, |found, key, value, at| match key {
        "slop" => {
            found.slop = natural(value, at, "slop")? as u32;
            Ok(true)
        }
        "fuzziness" | "operator" | "metric" if context.mode == FuzzyMode::Scan => {
            found.take(key, value, at, context.mode)
        }
        _ => found.take_common(key, value, at),
    })?;
    Ok(boosted(phrase_node(name, &asked, &at, context)?, asked.boost))
}

fn phrase_node(name: &str, asked: &Asked, at: &At<'_>, context: Context<'_>) -> Made {
    let query = text(&asked.query, at)?;
    let Some(field) = context.field(name)? else { return no_field(name, &query) };
    if field.kind != Kind::Text {
        return match leaf::equal(field, &asked.query, context) {
            Err(_) if asked.lenient => Ok(Node::Nothing),
            made => made,
        };
    }
    if query.is_empty() && !asked.all_without_words {
        return Ok(Node::Nothing);
    }
    if context.mode == FuzzyMode::Scan && asked.nearness.fuzziness != Fuzziness::default() {
        return Ok(asked.nearness.node(name, query.clone(), &query, context.mode));
    }
    let mut words = field.mapped.analysis.words(&query);
    Ok(match words.len() {
        0 if asked.all_without_words => Node::Constant(Box::new(Node::All), 1.0),
        0 => Node::Nothing,
        1 => Node::Exact { field: name.to_owned(), term: words.swap_remove(0) },
        _ => Node::Near { field: name.to_owned(), words, slop: asked.slop },
    })
}

/// The name or pattern of a field of `multi_match`, and its weight behind `^`.
fn weighed(name: &str) -> Outcome<(&str, f32)> {
    let Some((pattern, boost)) = name.split_once('^') else { return Ok((name, 1.0)) };
    let boost = boost.parse().map_err(|_| {
        let reason = format!("For input string: \"{boost}\"");
        ElasticError::new(400, "number_format_exception", reason)
    })?;
    Ok((pattern, boost))
}

/// `multi_match` of the types `best_fields`, `most_fields` and `phrase`.
pub(super) fn several(body: &Json, at: &At<'_>, context: Context<'_>) -> Made {
    let mut asked = Asked::default();
    let mut names: Vec<String> = Vec::new();
    let (mut kind, mut tie_breaker) = ("best_fields".to_owned(), None);
    for (key, value) in body.as_object().into_iter().flatten() {
        let at = at.key(key);
        match key.as_str() {
            "fields" => {
                let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                for name in list {
                    names.push(text(name, &at)?);
                }
            }
            "type" => kind = text(value, &at)?,
            "tie_breaker" => tie_breaker = Some(super::params::number(value, &at)? as f32),
            "slop" => asked.slop = natural(value, &at, "slop")? as u32,
            _ => {
                if !asked.take(key, value, &at, context.mode)? {
                    return Err(unknown("multi_match", key, &at));
                }
            }
        }
    }
    if asked.query.is_null() {
        return Err(ElasticError::parsing(at, "No text specified for multi_match query"));
    }
    if names.is_empty() {
        names.push("*".to_owned());
    }
    let tie_breaker = tie_breaker.unwrap_or(match kind.as_str() {
        "best_fields" | "phrase" => 0.0,
        "most_fields" => 1.0,
        other => {
            return Err(ElasticError::unsupported(&format!("multi_match of the type [{other}]")));
        }
    });
    let nearness = asked.nearness.fuzziness != Fuzziness::default();
    if kind == "phrase" && nearness && context.mode != FuzzyMode::Scan {
        return Err(ElasticError::parsing(at, "Fuzziness not allowed for type [phrase]"));
    }
    let mut nodes = Vec::new();
    for name in &names {
        let (pattern, boost) = weighed(name)?;
        // A pattern means the fields that can hold the text.
        let lenient = asked.lenient;
        asked.lenient |= pattern.contains('*');
        for field in context.mapping.matching(pattern) {
            let node = if kind == "phrase" {
                phrase_node(&field.path, &asked, at, context)?
            } else {
                words(&field.path, &asked, at, context)?
            };
            if node != Node::Nothing {
                nodes.push(boosted(node, boost));
            }
        }
        asked.lenient = lenient;
    }
    let node = match nodes.len() {
        0 => Node::Nothing,
        1 => nodes.swap_remove(0),
        _ => Node::Best { children: nodes, tie_breaker },
    };
    Ok(boosted(node, asked.boost))
}

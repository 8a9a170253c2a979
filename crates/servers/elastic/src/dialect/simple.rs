//! The parameter `q`: words, `field:word`, `"phrases"`, `+`, `-`, `AND`, `OR`, `NOT`, `word~1`,
//! `field:word*` and `_exists_:field`. No brackets, and nothing else that would change what is found.

use super::super::error::{At, ElasticError};
use super::{Context, Made, query};
use plimsoll_index::query::Node;
use serde_json::{Value as Json, json};

/// The way words without an operator combine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DefaultOperator {
    #[default]
    Or,
    And,
}

/// Reads the text of `q`.
///
/// # Errors
/// When a part of it is not understood.
pub(crate) fn query_string(
    text: &str,
    default_field: Option<&str>,
    operator: DefaultOperator,
    context: Context<'_>,
) -> Made {
    let (mut must, mut should, mut must_not) = (Vec::new(), Vec::new(), Vec::new());
    let mut rest = text.trim();
    let (mut negated, mut required) = (false, operator == DefaultOperator::And);
    while !rest.is_empty() {
        let (part, after) = part(rest);
        rest = after.trim_start();
        match part {
            "AND" | "&&" => {
                // What stands before is required as well.
                if let Some(last) = should.pop() {
                    must.push(last);
                }
                required = true;
                continue;
            }
            "OR" | "||" => {
                required = false;
                continue;
            }
            "NOT" | "!" => {
                negated = true;
                continue;
            }
            _ => {}
        }
        if part.starts_with('(') || part.ends_with(')') {
            return Err(ElasticError::unsupported("brackets in [q]"));
        }
        let (sign, bare) = match part.strip_prefix(['-', '+', '!']) {
            Some(bare) if !bare.is_empty() => (part.chars().next(), bare),
            _ => (None, part),
        };
        let clause = clause(bare, default_field)?;
        match sign {
            Some('-' | '!') => must_not.push(clause),
            _ if negated => must_not.push(clause),
            Some('+') => must.push(clause),
            _ if required => must.push(clause),
            _ => should.push(clause),
        }
        (negated, required) = (false, operator == DefaultOperator::And);
    }
    if must.is_empty() && should.is_empty() && must_not.is_empty() {
        return Ok(Node::Nothing);
    }
    let whole = json!({"bool": {"must": must, "should": should, "must_not": must_not}});
    query(&whole, &At::ROOT, context)
}

/// The next word or phrase, with its field and signs.
fn part(text: &str) -> (&str, &str) {
    let mut quoted = false;
    let end = text.find(|c: char| {
        quoted ^= c == '"';
        !quoted && c.is_whitespace()
    });
    text.split_at(end.unwrap_or(text.len()))
}

fn clause(part: &str, default_field: Option<&str>) -> Result<Json, ElasticError> {
    let (field, text) = match part.split_once(':') {
        Some((field, text)) if !field.is_empty() && !field.contains('"') => (Some(field), text),
        _ => (default_field, part),
    };
    if let (Some("_exists_"), name) = (field, text) {
        return Ok(json!({"exists": {"field": name}}));
    }
    if text == "*" {
        return Ok(match field {
            None | Some("*") => json!({"match_all": {}}),
            Some(field) => json!({"exists": {"field": field}}),
        });
    }
    if let Some(phrase) = text.strip_prefix('"') {
        let (phrase, behind) = phrase.split_once('"').unwrap_or((phrase, ""));
        let slop = match behind.strip_prefix('~') {
            Some(slop) => slop.parse::<u32>().ok(),
            None => behind.is_empty().then_some(0),
        };
        let slop = slop.ok_or_else(|| unsupported(part))?;
        return Ok(on(field, "phrase", json!({ "query": phrase, "slop": slop })));
    }
    if let (Some(field), Some(start)) = (field, text.strip_suffix('*'))
        && !special(start)
    {
        return Ok(json!({"prefix": {field: start.to_lowercase()}}));
    }
    if special(text) {
        return Err(unsupported(part));
    }
    if let Some((word, edits)) = text.rsplit_once('~') {
        let edits = if edits.is_empty() { "AUTO" } else { edits };
        return Ok(on(field, "best_fields", json!({ "query": word, "fuzziness": edits })));
    }
    Ok(on(field, "best_fields", json!({ "query": text, "operator": "and" })))
}

/// Returns true if a word has signs that Elasticsearch takes for more than a part of it: wildcards, boosts, ranges, comparisons,
/// regular expressions, escapes.
fn special(text: &str) -> bool {
    text.contains(['*', '?', '^', '\\', '[', ']', '{', '}']) || text.starts_with(['<', '>', '/'])
}

fn unsupported(part: &str) -> ElasticError {
    ElasticError::unsupported(&format!("[{part}] in [q]"))
}

/// The clause on a field, or on all of them.
fn on(field: Option<&str>, kind: &str, mut asked: Json) -> Json {
    asked["fields"] = field.map_or(json!(["*"]), |field| json!([field]));
    asked["type"] = kind.into();
    asked["lenient"] = true.into();
    json!({ "multi_match": asked })
}

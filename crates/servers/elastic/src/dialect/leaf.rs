//! Queries for values as they are: `term`, `terms`, `range`, `prefix`, `fuzzy`, `exists`, `ids`.

use super::super::error::{At, ElasticError};
use super::super::mapping::date::{Formats, math};
use super::super::mapping::{Field, ID, Kind};
use super::fuzziness::Fuzziness;
use super::params::{Outcome, boost, flag, natural, one_field, text, token, unknown};
use super::{Context, MAX_CLAUSES, Made, Nearness, boosted, constant, some_of};
use plimsoll_index::fuzzy::FuzzyMode;
use plimsoll_index::query::{Literal, Node, Number};
use serde_json::Value as Json;
use std::ops::Bound;

/// The number that a value is for a field, dates and booleans too.
fn number(field: &Field, value: &Json, late: bool, context: Context<'_>) -> Outcome<Number> {
    let shown = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let failed = |reason: String| {
        Err(context.not_made(ElasticError::new(400, "number_format_exception", reason)))
    };
    match field.kind {
        Kind::Boolean => match shown.as_str() {
            "true" => Ok(Number::Whole(1)),
            "false" | "" => Ok(Number::Whole(0)),
            _ => failed(format!("Can't parse boolean value [{shown}], expected [true] or [false]")),
        },
        Kind::Date => match math(&shown, field.formats, late, context.now_ms) {
            Some(at) => Ok(Number::Whole(at)),
            None => {
                let reason = format!(
                    "failed to parse date field [{shown}] with format \
                         [strict_date_optional_time||epoch_millis]"
                );
                let why = "Failed to parse with all enclosed parsers";
                let why = ElasticError::new(400, "date_time_parse_exception", why);
                let cause = ElasticError::argument(reason.clone()).caused_by(why);
                let reason = format!("{reason}: [{reason}]");
                let error = ElasticError::new(400, "parse_exception", reason);
                Err(error.caused_by(cause).said_by_shards())
            }
        },
        _ => {
            let trimmed = shown.trim();
            if let Ok(whole) = trimmed.parse() {
                return Ok(Number::Whole(whole));
            }
            match trimmed.parse::<f64>() {
                Ok(real) if real.is_finite() => Ok(Number::Real(real)),
                _ => failed(format!("For input string: \"{shown}\"")),
            }
        }
    }
}

/// Documents whose field has exactly this value.
pub(super) fn equal(field: &Field, value: &Json, context: Context<'_>) -> Made {
    match field.kind {
        Kind::Text | Kind::Keyword => {
            let term = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            Ok(Node::Exact { field: field.path.clone(), term })
        }
        Kind::Date => {
            // A date that leaves out the time means the whole day.
            let lower = Bound::Included(number(field, value, false, context)?);
            let upper = Bound::Included(number(field, value, true, context)?);
            Ok(constant(Node::Range { field: field.path.clone(), lower, upper }, 1.0))
        }
        _ => {
            let bound = Bound::Included(number(field, value, false, context)?);
            let field = field.path.clone();
            Ok(constant(Node::Range { field, lower: bound, upper: bound }, 1.0))
        }
    }
}

/// A value, or an object with one under one of these names; other members go to `take`.
fn value_of<'j>(
    query: &str,
    asked: &'j Json,
    at: &At<'_>,
    names: &[&str],
    mut take: impl FnMut(&str, &Json, &At<'_>) -> Outcome<bool>,
) -> Outcome<(&'j Json, f32)> {
    let Json::Object(object) = asked else { return Ok((asked, 1.0)) };
    let (mut value, mut factor) = (None, 1.0);
    for (key, member) in object {
        let at = at.key(key);
        match key.as_str() {
            name if names.contains(&name) => {
                if member.is_object() || member.is_array() {
                    let reason =
                        format!("[{query}] unexpected token [{}] after [{key}]", token(member));
                    return Err(ElasticError::parsing(&at, reason));
                }
                value = Some(member);
            }
            "boost" => factor = boost(member, &at)?,
            "_name" => {}
            _ => {
                if !take(key, member, &at)? {
                    return Err(unknown(query, key, &at));
                }
            }
        }
    }
    let value = value.filter(|value| !value.is_null());
    value.map(|value| (value, factor)).ok_or_else(|| ElasticError::argument("value cannot be null"))
}

/// `term`
pub(super) fn term(body: &Json, at: &At<'_>, context: Context<'_>) -> Made {
    let (name, asked) = one_field("term", body, at)?;
    let mut folded = false;
    let (value, factor) = value_of("term", asked, &at.key(name), &["value"], |key, value, _| {
        let known = key == "case_insensitive";
        folded |= known && flag(value)?;
        Ok(known)
    })?;
    if folded {
        return Err(ElasticError::unsupported("case_insensitive"));
    }
    if name == ID {
        return Ok(boosted(by_ids(std::slice::from_ref(value)), factor));
    }
    let Some(field) = context.field(name)? else { return Ok(Node::Nothing) };
    Ok(boosted(equal(field, value, context)?, factor))
}

/// `terms`
pub(super) fn terms(body: &Json, at: &At<'_>, context: Context<'_>) -> Made {
    let (mut found, mut factor) = (None, 1.0);
    for (key, value) in body.as_object().into_iter().flatten() {
        let at = at.key(key);
        match (key.as_str(), value) {
            ("boost", _) => factor = boost(value, &at)?,
            ("_name", _) => {}
            (_, Json::Array(values)) => {
                if found.is_some() {
                    let reason = "[terms] query does not support multiple fields";
                    return Err(ElasticError::parsing(&at, reason));
                }
                found = Some((key, values));
            }
            (_, Json::Object(_)) => return Err(ElasticError::unsupported("terms lookup")),
            _ => return Err(unknown("terms", key, &at)),
        }
    }
    let Some((name, values)) = found else {
        return Err(ElasticError::parsing(
            at,
            "[terms] query requires a field name, followed by array of terms or a document lookup specification",
        ));
    };
    if values.len() > MAX_CLAUSES {
        let reason = format!(
            "The number of terms [{}] used in the Terms Query request has exceeded the allowed \
             maximum of [{MAX_CLAUSES}].",
            values.len()
        );
        return Err(ElasticError::argument(reason));
    }
    if name == ID {
        return Ok(constant(by_ids(values), factor));
    }
    let Some(field) = context.field(name)? else { return Ok(Node::Nothing) };
    let path = field.path.clone();
    let node = match field.kind {
        Kind::Text | Kind::Date => {
            let nodes = values.iter().map(|value| equal(field, value, context));
            some_of(nodes.collect::<Result<_, _>>()?, 1)
        }
        Kind::Keyword => {
            let text =
                |value: &Json| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            let values = values.iter().map(|value| Literal::Text(text(value))).collect();
            Node::OneOf { field: path, values }
        }
        _ => {
            let values = values
                .iter()
                .map(|value| number(field, value, false, context).map(Literal::Number));
            Node::OneOf { field: path, values: values.collect::<Result<_, _>>()? }
        }
    };
    Ok(if values.is_empty() { Node::Nothing } else { constant(node, factor) })
}

fn by_ids(values: &[Json]) -> Node {
    let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let values: Vec<_> = values.iter().map(|value| Literal::Text(text(value))).collect();
    if values.is_empty() {
        return Node::Nothing;
    }
    constant(Node::OneOf { field: ID.to_owned(), values }, 1.0)
}

/// `ids`
pub(super) fn ids(body: &Json, at: &At<'_>) -> Made {
    let (mut values, mut factor) = (None, 1.0);
    for (key, value) in body.as_object().into_iter().flatten() {
        let at = at.key(key);
        match key.as_str() {
            "values" => {
                values = Some(value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice))
            }
            "type" | "_name" => {}
            "boost" => factor = boost(value, &at)?,
            _ => {
                let cause = ElasticError::unknown_field("ids", key, &at);
                return Err(ElasticError::parsing(&at, cause.reason.clone()).caused_by(cause));
            }
        }
    }
    let values =
        values.ok_or_else(|| ElasticError::parsing(at, "[ids] query, no ids values provided"))?;
    Ok(boosted(by_ids(values), factor))
}

/// `range`
pub(super) fn range(body: &Json, at: &At<'_>, context: Context<'_>) -> Made {
    let (name, asked) = one_field("range", body, at)?;
    let at = at.key(name);
    let Json::Object(object) = asked else {
        let reason = format!("[range] query does not support [{name}]");
        return Err(ElasticError::parsing(&at, reason));
    };
    let (mut lower, mut upper, mut factor, mut formats) = (None, None, 1.0, None);
    let (mut with_lower, mut with_upper) = (true, true);
    for (key, value) in object {
        let at = at.key(key);
        let given = (!value.is_null()).then_some(value);
        match key.as_str() {
            "gte" | "ge" => (lower, with_lower) = (given, true),
            "gt" => (lower, with_lower) = (given, false),
            "lte" | "le" => (upper, with_upper) = (given, true),
            "lt" => (upper, with_upper) = (given, false),
            "from" => lower = given,
            "to" => upper = given,
            "include_lower" => with_lower = flag(value)?,
            "include_upper" => with_upper = flag(value)?,
            "boost" => factor = boost(value, &at)?,
            "format" => {
                let name = text(value, &at)?;
                let read = Formats::parse(&name);
                formats = Some(read.ok_or_else(|| {
                    ElasticError::unsupported(&format!("the date format [{name}]"))
                })?);
            }
            "_name" | "relation" => {}
            "time_zone" => return Err(ElasticError::unsupported("time_zone")),
            _ => return Err(unknown("range", key, &at)),
        }
    }
    let Some(field) = context.field_but_id(name)? else { return Ok(Node::Nothing) };
    if matches!(field.kind, Kind::Text | Kind::Keyword) {
        return Err(ElasticError::unsupported(&format!("a range of the text field [{name}]")));
    }
    let mut as_asked = field.clone();
    as_asked.formats = formats.unwrap_or(field.formats);
    // `gt` and `lte` of a day begin behind its last moment.
    let bound = |value: Option<&Json>, with: bool, late: bool| match value {
        None => Ok(Bound::Unbounded),
        Some(value) => {
            let number = number(&as_asked, value, late, context)?;
            Ok(if with { Bound::Included(number) } else { Bound::Excluded(number) })
        }
    };
    let lower = bound(lower, with_lower, !with_lower)?;
    let upper = bound(upper, with_upper, with_upper)?;
    let node = Node::Range { field: name.to_owned(), lower, upper };
    Ok(constant(node, factor))
}

/// `prefix`
pub(super) fn prefix(body: &Json, at: &At<'_>, context: Context<'_>) -> Made {
    let (name, asked) = one_field("prefix", body, at)?;
    let at = at.key(name);
    let names = ["value", "prefix"];
    let (value, factor) = value_of("prefix", asked, &at, &names, |key, value, _| {
        match key {
            "case_insensitive" if flag(value)? => {
                Err(ElasticError::unsupported("case_insensitive"))
            }
            // All matches have the same relevance unless something else is asked for.
            "rewrite" if value != "constant_score" => {
                Err(ElasticError::unsupported(&format!("the rewrite [{value}]")))
            }
            _ => Ok(["case_insensitive", "rewrite"].contains(&key)),
        }
    })?;
    let text = text(value, &at)?;
    let Some(field) = context.field_but_id(name)? else { return Ok(Node::Nothing) };
    if !matches!(field.kind, Kind::Text | Kind::Keyword) {
        let reason = format!(
            "Can only use prefix queries on keyword, text and wildcard fields - not on [{name}] \
             which is of type [{}]",
            field.kind.name()
        );
        return Err(context.refused(reason));
    }
    Ok(constant(Node::Beginning { field: name.to_owned(), text }, factor))
}

/// `fuzzy`
pub(super) fn fuzzy(body: &Json, at: &At<'_>, context: Context<'_>) -> Made {
    let (name, asked) = one_field("fuzzy", body, at)?;
    let at = at.key(name);
    let mut nearness = Nearness { fuzziness: Fuzziness::Auto(3, 6), ..Nearness::default() };
    let (value, factor) = value_of("fuzzy", asked, &at, &["value", "term"], |key, value, at| {
        match key {
            "fuzziness" => nearness.fuzziness = Fuzziness::read(value, context.mode)?,
            "metric" if context.mode == FuzzyMode::Scan => {
                nearness.metric = super::fuzziness::metric(value)?;
            }
            "prefix_length" => nearness.prefix_length = natural(value, at, "prefix length")?,
            "max_expansions" => nearness.max_expansions = natural(value, at, "max expansions")?,
            "transpositions" => nearness.transpositions = flag(value)?,
            "rewrite" => return Err(ElasticError::unsupported("[rewrite] of fuzzy")),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if nearness.max_expansions == 0 {
        return Err(ElasticError::argument("maxExpansions must be positive."));
    }
    let text = text(value, &at)?;
    let Some(field) = context.field_but_id(name)? else { return Ok(Node::Nothing) };
    if !matches!(field.kind, Kind::Text | Kind::Keyword) {
        let reason = format!(
            "Can only use fuzzy queries on keyword and text fields - not on [{name}] which is of \
             type [{}]",
            field.kind.name()
        );
        return Err(context.not_made(ElasticError::argument(reason)));
    }
    Ok(boosted(nearness.node(name, text.clone(), &text, context.mode), factor))
}

/// `exists`
pub(super) fn exists(body: &Json, at: &At<'_>, context: Context<'_>) -> Made {
    let (mut name, mut factor) = (None, 1.0);
    for (key, value) in body.as_object().into_iter().flatten() {
        let at = at.key(key);
        match key.as_str() {
            "field" => name = Some(text(value, &at)?),
            "boost" => factor = boost(value, &at)?,
            "_name" => {}
            _ => return Err(unknown("exists", key, &at)),
        }
    }
    let name =
        name.ok_or_else(|| ElasticError::parsing(at, "[exists] must be provided with a [field]"))?;
    if name == ID {
        return Ok(constant(Node::All, factor));
    }
    context.field_or_hidden(&name)?;
    // An object is there when one of its fields is; multi-fields are no fields of an object.
    let within = format!("{name}.");
    let fields = context.mapping.fields.iter();
    let matches = |path: &str| {
        path == name || path.starts_with(&within) || super::super::names::matches(&name, path)
    };
    let named = fields.filter(|field| field.is_kept() && matches(&field.path));
    let nodes: Vec<_> = named.map(|field| Node::Exists(field.path.clone())).collect();
    Ok(constant(some_of(nodes, 1), factor))
}

fn only_boost(query: &str, body: &Json, at: &At<'_>) -> Outcome<f32> {
    let mut factor = 1.0;
    for (key, value) in body.as_object().into_iter().flatten() {
        let at = at.key(key);
        match key.as_str() {
            "boost" => factor = boost(value, &at)?,
            "_name" => {}
            _ => {
                let cause = ElasticError::unknown_field(query, key, &at);
                return Err(ElasticError::parsing(&at, cause.reason.clone()).caused_by(cause));
            }
        }
    }
    Ok(factor)
}

/// `match_all`
pub(super) fn everything(body: &Json, at: &At<'_>) -> Made {
    Ok(constant(Node::All, only_boost("match_all", body, at)?))
}

/// `match_none`
pub(super) fn none(body: &Json, at: &At<'_>) -> Made {
    only_boost("match_none", body, at)?;
    Ok(Node::Nothing)
}

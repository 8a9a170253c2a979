//! Members of queries, and what is said when they are not what they should be.

use super::super::error::{At, ElasticError};
use serde_json::{Map, Value as Json};

pub(super) type Outcome<T> = Result<T, ElasticError>;

/// The way Elasticsearch calls the beginning of a value.
pub(crate) fn token(json: &Json) -> &'static str {
    match json {
        Json::Null => "VALUE_NULL",
        Json::Bool(_) => "VALUE_BOOLEAN",
        Json::Number(_) => "VALUE_NUMBER",
        Json::String(_) => "VALUE_STRING",
        Json::Array(_) => "START_ARRAY",
        Json::Object(_) => "START_OBJECT",
    }
}

/// A value as text: numbers and booleans as they are written.
pub(crate) fn text(json: &Json, at: &At<'_>) -> Outcome<String> {
    match json {
        Json::String(text) => Ok(text.clone()),
        Json::Number(number) => Ok(number.to_string()),
        Json::Bool(value) => Ok(value.to_string()),
        other => {
            let reason = format!("expected a value but found [{}]", token(other));
            Err(ElasticError::parsing(at, reason))
        }
    }
}

pub(crate) fn number(json: &Json, at: &At<'_>) -> Outcome<f64> {
    let number = match json {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => text.parse().ok(),
        _ => None,
    };
    let number = number.filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| match json.as_str() {
        Some(text) => ElasticError::new(
            400,
            "number_format_exception",
            format!("For input string: \"{text}\""),
        ),
        None => ElasticError::parsing(at, format!("expected a number but found [{}]", token(json))),
    })
}

pub(crate) fn whole(json: &Json, at: &At<'_>) -> Outcome<i64> {
    Ok(number(json, at)? as i64)
}

/// A number that is not negative.
pub(crate) fn natural(json: &Json, at: &At<'_>, name: &str) -> Outcome<usize> {
    let number = whole(json, at)?;
    usize::try_from(number)
        .map_err(|_| ElasticError::argument(format!("No negative {name} allowed.")))
}

pub(crate) fn flag(json: &Json) -> Outcome<bool> {
    match json {
        Json::Bool(value) => Ok(*value),
        Json::String(text) if text == "true" => Ok(true),
        Json::String(text) if text == "false" => Ok(false),
        other => {
            let shown = other.as_str().map_or_else(|| other.to_string(), ToOwned::to_owned);
            let reason =
                format!("Failed to parse value [{shown}] as only [true] or [false] are allowed.");
            Err(ElasticError::argument(reason))
        }
    }
}

pub(super) fn boost(json: &Json, at: &At<'_>) -> Outcome<f32> {
    let boost = number(json, at)? as f32;
    if boost < 0.0 {
        return Err(ElasticError::argument(
            "negative [boost] are not allowed, use a value between 0 and 1 to deboost",
        ));
    }
    Ok(boost)
}

/// The error for an unknown key of a query.
pub(super) fn unknown(query: &str, key: &str, at: &At<'_>) -> ElasticError {
    ElasticError::parsing(at, format!("[{query}] query does not support [{key}]"))
}

/// The one field of a query and what is asked of it: a value, or an object.
pub(super) fn one_field<'j>(
    query: &str,
    body: &'j Json,
    at: &At<'_>,
) -> Outcome<(&'j str, &'j Json)> {
    let empty = Map::new();
    let object = body.as_object().unwrap_or(&empty);
    let Some((field, _)) = object.iter().next() else {
        return Err(match query {
            "match" | "match_phrase" => {
                ElasticError::parsing(at, "No text specified for text query")
            }
            _ => ElasticError::argument(format!("[{query}] has no field")),
        });
    };
    if let Some((second, _)) = object.iter().nth(1) {
        let reason = format!(
            "[{query}] query doesn't support multiple fields, found [{field}] and [{second}]"
        );
        return Err(ElasticError::parsing(&at.key(second), reason));
    }
    let Some((field, asked)) = body.as_object().and_then(|object| object.iter().next()) else {
        return Err(ElasticError::argument("no field"));
    };
    if asked.is_array() {
        let reason = format!("[{query}] unknown token [START_ARRAY] after [{field}]");
        return Err(ElasticError::parsing(&at.key(field), reason));
    }
    Ok((field, asked))
}

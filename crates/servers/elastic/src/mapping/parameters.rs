//! Parameters of mappings that would change what is found, or how it is scored, and do not here.

use crate::error::ElasticError;
use serde_json::{Map, Value as Json};

/// Refuses what would be ignored.
///
/// # Errors
/// With the parameter and its value.
pub(super) fn check(json: &Json) -> Result<(), ElasticError> {
    let Some(root) = json.as_object() else { return Ok(()) };
    let required = root.get("_routing").and_then(|routing| routing.get("required"));
    if required.is_some_and(|value| is(value, "true")) {
        return Err(ElasticError::unsupported("[_routing] that is required"));
    }
    if root.get("numeric_detection").is_some_and(|value| is(value, "true")) {
        return Err(ElasticError::unsupported("[numeric_detection]"));
    }
    fields(root.get("properties"))
}

fn fields(json: Option<&Json>) -> Result<(), ElasticError> {
    for (name, json) in json.and_then(Json::as_object).into_iter().flatten() {
        let Some(json) = json.as_object() else { continue };
        field(name, json)?;
        // How deep they may be the JSON parser has checked.
        fields(json.get("properties"))?;
        fields(json.get("fields"))?;
    }
    Ok(())
}

fn field(name: &str, json: &Map<String, Json>) -> Result<(), ElasticError> {
    let text = json.get("type").is_some_and(|kind| is(kind, "text"));
    // What Elasticsearch does when the parameter is not there; where its value is another the field is refused.
    let taken = |key: &str| -> Option<&[&str]> {
        Some(match key {
            "norms" if text => &["true"],
            "norms" => &["false"],
            "index_options" if text => &["positions", "offsets"],
            "index_options" => &["docs"],
            "similarity" => &["BM25"],
            "boost" => &["1", "1.0"],
            "coerce" => &["true"],
            "split_queries_on_whitespace" => &["false"],
            "position_increment_gap" => &["100"],
            _ => return None,
        })
    };
    for (key, value) in json {
        if taken(key).is_some_and(|taken| !taken.iter().any(|taken| is(value, taken))) {
            let what = format!("[{key}] of field [{name}] with the value [{}]", plain(value));
            return Err(ElasticError::unsupported(&what));
        }
    }
    Ok(())
}

fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn is(value: &Json, wanted: &str) -> bool {
    plain(value) == wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_would_be_ignored_is_refused() {
        let of = |options: Json| json!({"properties": {"o": {"properties": {"f": options}}}});
        for good in [
            of(json!({"type": "text", "norms": true, "similarity": "BM25", "store": true})),
            of(json!({"type": "keyword", "norms": "false", "doc_values": false})),
            of(json!({"type": "long", "coerce": true, "boost": 1.0})),
            json!({"numeric_detection": false, "_routing": {"required": false}}),
        ] {
            check(&good).unwrap();
        }
        for bad in [
            of(json!({"type": "text", "norms": false})),
            of(json!({"type": "keyword", "norms": true})),
            of(json!({"type": "text", "fields": {"x": {"type": "text", "index_options": "docs"}}})),
            of(json!({"type": "keyword", "index_options": "freqs"})),
            of(json!({"type": "text", "similarity": "boolean"})),
            of(json!({"type": "text", "boost": 2})),
            of(json!({"type": "long", "coerce": false})),
            of(json!({"type": "keyword", "split_queries_on_whitespace": true})),
            of(json!({"type": "text", "position_increment_gap": 0})),
            json!({"numeric_detection": true}),
            json!({"_routing": {"required": true}}),
        ] {
            let error = check(&bad).unwrap_err().reason;
            assert!(error.starts_with("plimsoll does not implement ["), "{error}");
        }
    }
}

//! Parts of a source that a reply shows.

use super::super::error::{At, ElasticError};
use super::super::{memory, names};
use serde_json::{Map, Value as Json};

/// The `_source` of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum SourceFilter {
    #[default]
    All,
    Nothing,
    Parts {
        includes: Vec<String>,
        excludes: Vec<String>,
    },
}

fn list(json: &Json) -> Option<Vec<String>> {
    match json {
        Json::String(text) => Some(vec![text.clone()]),
        Json::Array(items) => items.iter().map(|i| i.as_str().map(ToOwned::to_owned)).collect(),
        _ => None,
    }
}

impl SourceFilter {
    /// Reads `true`, `false`, a pattern, a list, or an object with `includes` and `excludes`.
    ///
    /// # Errors
    /// When it is something else.
    pub(crate) fn read(json: &Json, at: &At<'_>) -> Result<Self, ElasticError> {
        let wrong = |key: &str| {
            let reason = format!("Unknown key for a value in [{key}].");
            Err(ElasticError::parsing(at, reason))
        };
        match json {
            Json::Bool(true) => Ok(Self::All),
            Json::Bool(false) => Ok(Self::Nothing),
            Json::Object(object) => {
                let (mut includes, mut excludes) = (Vec::new(), Vec::new());
                for (key, value) in object {
                    let Some(list) = list(value) else { return wrong(key) };
                    match key.as_str() {
                        "includes" | "include" => includes = list,
                        "excludes" | "exclude" => excludes = list,
                        _ => return wrong(key),
                    }
                }
                Ok(Self::parts(includes, excludes))
            }
            other => match list(other) {
                Some(includes) => Ok(Self::parts(includes, Vec::new())),
                None => wrong("_source"),
            },
        }
    }

    /// Reads the parameters `_source`, `_source_includes` and `_source_excludes`.
    pub(crate) fn from_parameters(
        source: Option<&str>,
        includes: Option<&str>,
        excludes: Option<&str>,
    ) -> Option<Self> {
        let split = |text: &str| text.split(',').map(ToOwned::to_owned).collect::<Vec<_>>();
        match (source, includes, excludes) {
            (None, None, None) => None,
            (Some("false"), ..) => Some(Self::Nothing),
            (Some("true" | "") | None, includes, excludes) => {
                let list = |text: Option<&str>| text.map(split).unwrap_or_default();
                Some(Self::parts(list(includes), list(excludes)))
            }
            (Some(list), ..) => Some(Self::parts(split(list), Vec::new())),
        }
    }

    fn parts(includes: Vec<String>, excludes: Vec<String>) -> Self {
        if includes.is_empty() && excludes.is_empty() {
            return Self::All;
        }
        Self::Parts { includes, excludes }
    }

    /// Appends what is shown of a source; tells whether anything is.
    pub(crate) fn push(&self, out: &mut Vec<u8>, source: &[u8]) -> bool {
        match self {
            Self::All => out.extend_from_slice(source),
            Self::Nothing => return false,
            Self::Parts { includes, excludes } => {
                let _alone = memory::alone(source.len());
                let json: Json = serde_json::from_slice(source).unwrap_or_default();
                let shown = match &json {
                    Json::Object(object) => self::shown(object, "", includes, excludes),
                    _ => Map::new(),
                };
                out.extend_from_slice(Json::Object(shown).to_string().as_bytes());
            }
        }
        true
    }
}

/// The path is chosen by a pattern itself, or as part of what is.
fn chosen(patterns: &[String], path: &str) -> bool {
    patterns.iter().any(|pattern| {
        names::matches(pattern, path)
            || path.match_indices('.').any(|(at, _)| names::matches(pattern, &path[..at]))
    })
}

/// Something inside the path may be chosen.
fn leads_to(patterns: &[String], path: &str) -> bool {
    patterns.iter().any(|pattern| {
        pattern.starts_with('*')
            || pattern.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
            || pattern.split_once('*').is_some_and(|(head, _)| path.starts_with(head))
    })
}

fn shown(
    object: &Map<String, Json>,
    prefix: &str,
    includes: &[String],
    excludes: &[String],
) -> Map<String, Json> {
    let mut found = Map::new();
    for (key, value) in object {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        if chosen(excludes, &path) {
            continue;
        }
        let whole = includes.is_empty() || chosen(includes, &path);
        if let Some(kept) = shown_value(value, &path, whole, includes, excludes) {
            found.insert(key.clone(), kept);
        }
    }
    found
}

fn shown_value(
    value: &Json,
    path: &str,
    whole: bool,
    includes: &[String],
    excludes: &[String],
) -> Option<Json> {
    if whole && !leads_to(excludes, path) {
        return Some(value.clone());
    }
    if !whole && !leads_to(includes, path) {
        return None;
    }
    match value {
        Json::Object(inner) => {
            let includes = if whole { &[] } else { includes };
            let kept = shown(inner, path, includes, excludes);
            (whole || !kept.is_empty()).then_some(Json::Object(kept))
        }
        Json::Array(items) => {
            let kept: Vec<_> = items
                .iter()
                .filter_map(|item| match item {
                    Json::Object(_) | Json::Array(_) => {
                        shown_value(item, path, whole, includes, excludes)
                    }
                    leaf => whole.then(|| leaf.clone()),
                })
                .collect();
            (whole || !kept.is_empty()).then_some(Json::Array(kept))
        }
        leaf => whole.then(|| leaf.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_of_a_source_are_shown() {
        let source = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [{"f": 4, "g": 5}, 6]});
        let show = |filter: Json| {
            let mut out = Vec::new();
            let filter = SourceFilter::read(&filter, &At::ROOT).unwrap();
            filter.push(&mut out, source.to_string().as_bytes());
            serde_json::from_slice::<Json>(&out).unwrap()
        };
        assert_eq!(show(json!(true)), source);
        assert_eq!(show(json!("a")), json!({"a": 1}));
        assert_eq!(show(json!(["b.c", "e.f"])), json!({"b": {"c": 2}, "e": [{"f": 4}]}));
        assert_eq!(show(json!("b")), json!({"b": {"c": 2, "d": 3}}));
        assert_eq!(show(json!("*.c")), json!({"b": {"c": 2}}));
        assert_eq!(show(json!({"excludes": ["b.c", "e"]})), json!({"a": 1, "b": {"d": 3}}));
        assert_eq!(show(json!({"includes": "b", "excludes": "b.d"})), json!({"b": {"c": 2}}));
        assert_eq!(show(json!("x")), json!({}));
        assert!(SourceFilter::read(&json!(5), &At::ROOT).is_err());
    }
}

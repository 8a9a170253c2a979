//! Request parameters: from the query string, a form or a JSON body.

use percent_encoding::percent_decode_str;
use serde_json::Value as Json;

/// A parameter could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParameterError(pub String);

/// Names with values, in the order of arrival. The last one of a name counts, and the URL counts
/// for more than the body.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    entries: Vec<(String, String)>,
}

impl Parameters {
    /// Reads `a=1&b=2`, with `+` and `%20` both for a space.
    pub fn from_query(query: &str) -> Result<Self, ParameterError> {
        let mut entries = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            entries.push((decode(name)?, decode(value)?));
        }
        Ok(Self { entries })
    }

    /// Reads a JSON object; nested objects give dotted names.
    pub fn from_json(body: &[u8]) -> Result<Self, ParameterError> {
        let json: Json = serde_json::from_slice(body)
            .map_err(|error| ParameterError(format!("the request body is not JSON: {error}")))?;
        if !json.is_object() {
            return Err(ParameterError("the request body must be a JSON object".to_owned()));
        }
        let mut flat = Flat::default();
        flat.take("", json)?;
        Ok(Self { entries: flat.entries })
    }

    /// Adds parameters that win over those already here.
    pub fn overlay(&mut self, winning: Self) {
        self.entries.extend(winning.entries);
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut newest_first = self.entries.iter().rev();
        newest_first.find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The name of the first parameter that `is_meant`, if it has a value.
    pub fn named(&self, is_meant: impl Fn(&str) -> bool) -> Option<&str> {
        let mut given = self.entries.iter().filter(|(_, value)| !value.trim().is_empty());
        given.find(|(name, _)| is_meant(name)).map(|(name, _)| name.as_str())
    }

    /// The value of the first of these names that was given.
    pub fn any(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }
}

/// Most bytes of the dotted names of a JSON object together. Each member repeats the name of the object that it is in: without
/// a bound, a body of 1 MiB may have names of 40 GB.
const NAMES_MAX_BYTES: usize = 4 << 20;

/// The members of a JSON object with dotted names.
#[derive(Default)]
struct Flat {
    entries: Vec<(String, String)>,
    names_bytes: usize,
}

impl Flat {
    /// The parser of JSON bounds the nesting, and with it this recursion.
    fn take(&mut self, prefix: &str, json: Json) -> Result<(), ParameterError> {
        let value = match json {
            Json::Object(object) => {
                for (key, value) in object {
                    let name = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
                    self.names_bytes += name.len();
                    if self.names_bytes > NAMES_MAX_BYTES {
                        let most = NAMES_MAX_BYTES >> 20;
                        let message = format!(
                            "the names of the parameters have more than {most} MiB together; use shorter ones"
                        );
                        return Err(ParameterError(message));
                    }
                    self.take(&name, value)?;
                }
                return Ok(());
            }
            Json::Null => return Ok(()),
            Json::String(text) => text,
            other => other.to_string(),
        };
        self.entries.push((prefix.to_owned(), value));
        Ok(())
    }
}

/// Returns true if a truth value is true. Vespa takes `true` in any case, and every other word as no.
pub fn is_true(text: &str) -> bool {
    text.eq_ignore_ascii_case("true")
}

/// Decodes one name or value.
pub fn decode(text: &str) -> Result<String, ParameterError> {
    let spaced;
    let text = if text.contains('+') {
        spaced = text.replace('+', " ");
        &spaced
    } else {
        text
    };
    let decoded = percent_decode_str(text).decode_utf8();
    decoded
        .map(Into::into)
        .map_err(|_| ParameterError(format!("'{text}' is not percent-encoded UTF-8 text")))
}

/// Reads a time such as `500ms`, `2 s` or `0.5` (seconds), in microseconds.
pub fn duration_us(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let scale = match unit.trim() {
        "" | "s" => 1e6,
        "ks" => 1e9,
        "ms" => 1e3,
        "us" | "µs" | "μs" => 1.0,
        _ => return None,
    };
    let us = number * scale;
    // About 31 years: far more than anybody waits, and far from overflowing nanoseconds.
    (us.is_finite() && us <= 1e15).then_some(us as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_an_object_have_dotted_names() {
        let parameters = Parameters::from_json(br#"{"a": {"b": 1, "c": {"d": "x"}}, "e": null}"#);
        let parameters = parameters.unwrap();
        assert_eq!((parameters.get("a.b"), parameters.get("a.c.d")), (Some("1"), Some("x")));
        assert_eq!(parameters.get("e"), None);
    }

    #[test]
    fn names_that_repeat_that_of_their_object_are_bounded() {
        // 1 MB of which one half is a name, and the other has members that repeat it: 40 GB of names.
        let members: String = (0..80_000).map(|n| format!("\"{n}\":1,")).collect();
        let body = format!("{{\"{}\":{{{members}\"x\":1}}}}", "n".repeat(500_000));
        let error = Parameters::from_json(body.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("have more than 4 MiB together"), "{error}");
    }
}

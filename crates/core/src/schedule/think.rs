//! Think time of a client of a closed load.

use super::users::Pause;
use crate::units::Span;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Pause of a client between a reply and its next request. It is read as `none`, as `as-response`, as a time with its unit
/// (`20ms`), as a distribution (`exponential 2s`), or as `{ fixed = NANOSECONDS }`; a fixed time is written in the last form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Think {
    /// Asks again at once.
    #[default]
    None,
    /// Waits this long, ns.
    Fixed(u64),
    /// Waits as long as the last answer took (`vespa-fbench -c -1`).
    AsResponse,
    /// Waits for a time that is drawn before each request from the seed, the client and the number of its request.
    #[serde(untagged)]
    Random(Pause),
}

impl From<Pause> for Think {
    fn from(pause: Pause) -> Self {
        match pause {
            Pause::None | Pause::Fixed(Span { ns: 0 }) => Self::None,
            Pause::Fixed(span) => Self::Fixed(span.ns),
            random => Self::Random(random),
        }
    }
}

impl<'de> Deserialize<'de> for Think {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ThinkVisitor)
    }
}

struct ThinkVisitor;

const FORMS: &str = "none, as-response, a time with its unit such as 20ms, or a distribution such as exponential 2s";

impl<'de> Visitor<'de> for ThinkVisitor {
    type Value = Think;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FORMS)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Think, E> {
        match text {
            "none" => return Ok(Think::None),
            "as-response" => return Ok(Think::AsResponse),
            _ => {}
        }
        // A bare number is rejected: in this place, numbers are nanoseconds.
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            let span = text.parse::<Span>().ok().filter(|_| text.ends_with(char::is_alphabetic));
            return span
                .map(|span| Think::Fixed(span.ns))
                .ok_or_else(|| E::custom(format!("think '{text}': write {FORMS}")));
        }
        text.parse::<Pause>().map(Think::from).map_err(|error| E::custom(format!("think: {error}")))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Think, A::Error> {
        let wrong =
            || A::Error::custom(format!("think: write {FORMS}, or {{ fixed = NANOSECONDS }}"));
        let Some((key, ns)) = map.next_entry::<String, u64>()? else { return Err(wrong()) };
        if key != "fixed" || map.next_key::<String>()?.is_some() {
            return Err(wrong());
        }
        Ok(Think::Fixed(ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_with_its_unit_is_read_as_by_the_flag() {
        let read = |json: &str| serde_json::from_str::<Think>(json).map_err(|e| e.to_string());
        for (json, think) in [
            (r#""none""#, Think::None),
            (r#""as-response""#, Think::AsResponse),
            (r#""20ms""#, Think::Fixed(20_000_000)),
            (r#""1.5s""#, Think::Fixed(1_500_000_000)),
            (r#"{"fixed":7}"#, Think::Fixed(7)),
            (r#""exponential 2s""#, Think::Random(Pause::Exponential(Span::seconds(2)))),
            (r#""fixed 20ms""#, Think::Fixed(20_000_000)),
        ] {
            assert_eq!(read(json), Ok(think), "{json}");
        }
        for (json, told) in [
            ("20", "expected none, as-response, a time"),
            (r#""20""#, "think '20': write"),
            (r#""gamma 2s""#, "'gamma' is"),
            (r#"{"fix":7}"#, "fixed = NANOSECONDS"),
            (r#"{"fixed":7,"b":1}"#, "fixed = NANOSECONDS"),
            ("{}", "fixed = NANOSECONDS"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(told), "{json}: {error}");
        }
        let random = Think::from("normal 2s 500ms".parse::<Pause>().unwrap());
        assert_eq!(serde_json::to_string(&random).unwrap(), r#""normal 2s 500ms""#);
        for think in [Think::None, Think::Fixed(7), Think::AsResponse, random] {
            let json = serde_json::to_string(&think).unwrap();
            assert_eq!(read(&json), Ok(think));
        }
    }
}

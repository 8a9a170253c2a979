//! One check: how it is written, and when it holds.

use super::parts::Parts;
use super::{Seen, Shown};
use crate::classes::regex_problem;
use crate::json_scan::{Pointer, number, unsigned};
use plimsoll_core::units::Span;
use regex::bytes::Regex;
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    AtLeast,
    Above,
    AtMost,
    Below,
}

#[derive(Clone, Debug)]
pub(super) enum Rule {
    Exists(Pointer),
    /// There is a value at one of these: what replies of one system have in common.
    ExistsAny(Vec<Pointer>),
    Absent(Pointer),
    /// If there is a value, it must be this one.
    EqualIfThere(Pointer, serde_json::Value),
    /// None of the replies that a reply holds may have failed.
    EachPart(Parts),
    Equal(Pointer, serde_json::Value, bool),
    Number(Pointer, Comparison, f64),
    Contains(memchr::memmem::Finder<'static>, bool),
    Matches(Box<Regex>),
    /// Number of hits, compared with a number. At the pointer, a reply reports whether it counted all of them.
    Hits(Comparison, u64, Pointer),
    /// Service time, compared with a limit in ns.
    Time(Comparison, u64),
}

/// Pointer at which Elasticsearch reports whether the number of hits is all of them (`eq`), or where it stopped
/// counting (`gte`).
const RELATION: &str = "/hits/total/relation";
/// Part of a value that is shown in the reason of a failure, characters.
const VALUE_CHARS: usize = 80;

/// Comparison of a text, and the beginning of its value.
fn comparison_at(text: &str, at: usize) -> Result<(Comparison, usize), &'static str> {
    let signs = [
        (">=", Comparison::AtLeast),
        ("<=", Comparison::AtMost),
        ("!=", Comparison::Unequal),
        ("==", Comparison::Equal),
        ("=", Comparison::Equal),
        (">", Comparison::Above),
        ("<", Comparison::Below),
    ];
    let found = signs.iter().find(|(sign, _)| text[at..].starts_with(sign));
    let (sign, comparison) = found.ok_or("compare with =, !=, >=, >, <= or <")?;
    Ok((*comparison, at + sign.len()))
}

/// Checks that are not about a place in JSON; `None` if this is one of those.
fn parse_whole(text: &str) -> Result<Option<Rule>, Cow<'static, str>> {
    let needles = [("body!~", false), ("body~", true)];
    for (prefix, wanted) in needles {
        let Some(needle) = text.strip_prefix(prefix) else { continue };
        if needle.is_empty() {
            return Err("write the text that the body must contain after '~'".into());
        }
        let finder = memchr::memmem::Finder::new(needle.as_bytes()).into_owned();
        return Ok(Some(Rule::Contains(finder, wanted)));
    }
    if let Some(expression) = text.strip_prefix("body=~") {
        let regex = Regex::new(expression);
        let regex = regex.map_err(|error| {
            Cow::from(format!("invalid regular expression: {}", regex_problem(&error)))
        })?;
        return Ok(Some(Rule::Matches(Box::new(regex))));
    }
    let after =
        |name: &str| text.strip_prefix(name).is_some_and(|t| t.starts_with(['=', '<', '>', '!']));
    if after("hits") {
        let (comparison, at) = comparison_at(text, "hits".len())?;
        let hits =
            unsigned(&text.as_bytes()[at..]).ok_or("write a number of hits, as in hits>=1")?;
        let relation = Pointer::parse(RELATION).ok_or("this is a defect of plimsoll")?;
        return Ok(Some(Rule::Hits(comparison, hits, relation)));
    }
    if after("time") {
        let (comparison, at) = comparison_at(text, "time".len())?;
        if matches!(comparison, Comparison::Equal | Comparison::Unequal) {
            return Err("compare a time with <, <=, > or >=".into());
        }
        let span = text[at..].parse::<Span>().ok().filter(|_| text.ends_with(char::is_alphabetic));
        let span = span.ok_or("write a time with its unit, as in time<500ms")?;
        return Ok(Some(Rule::Time(comparison, span.ns)));
    }
    Ok(None)
}

/// Reads a check.
pub(super) fn parse_rule(text: &str) -> Result<Rule, Cow<'static, str>> {
    if let Some(rule) = parse_whole(text)? {
        return Ok(rule);
    }
    let negated = text.strip_prefix("!json:").map(|rest| format!("!{rest}"));
    let text = negated.as_deref().or(text.strip_prefix("json:")).unwrap_or(text);
    let pointer = |text: &str| {
        let wrong = "a JSON pointer starts with '/' and has no '~' but ~0 and ~1";
        Pointer::parse(text).filter(|_| text.starts_with('/')).ok_or(wrong)
    };
    if let Some(absent) = text.strip_prefix('!') {
        return Ok(Rule::Absent(pointer(absent)?));
    }
    if !text.starts_with('/') {
        return Err(
            "write status=2xx, /json/pointer>=1, !/json/pointer, body~TEXT, hits>=1, time<500ms or vespa".into(),
        );
    }
    let Some(at) = text.find(['=', '<', '>', '!']) else {
        return Ok(Rule::Exists(pointer(text)?));
    };
    let (comparison, value_at) = comparison_at(text, at)?;
    let (pointer, value) = (pointer(&text[..at])?, &text[value_at..]);
    match comparison {
        Comparison::Equal | Comparison::Unequal => {
            // What is not JSON is a text, so that names need no quotes in a shell.
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            Ok(Rule::Equal(pointer, value, comparison == Comparison::Equal))
        }
        _ => {
            let limit = number(value.as_bytes()).ok_or("write a number after the comparison")?;
            Ok(Rule::Number(pointer, comparison, limit))
        }
    }
}

impl Comparison {
    fn holds<T: PartialOrd>(self, found: &T, limit: &T) -> bool {
        match self {
            Self::AtLeast => found >= limit,
            Self::Above => found > limit,
            Self::AtMost => found <= limit,
            Self::Below => found < limit,
            Self::Equal => found == limit,
            Self::Unequal => found != limit,
        }
    }
}

impl Rule {
    /// Returns true if the body must be seen to decide.
    fn reads_body(&self) -> bool {
        !matches!(self, Self::Time(..) | Self::Hits(..))
    }

    /// Returns true if the reply satisfies the check. Where the part of a body that is not seen could decide otherwise, it does not:
    /// an absence is known only of a body that is there whole.
    pub(super) fn holds(&self, seen: &Seen<'_>) -> bool {
        if seen.shown == Shown::Coded && self.reads_body() {
            return false;
        }
        let (body, whole) = (seen.body, seen.shown == Shown::Whole);
        match self {
            Self::Exists(pointer) => pointer.find(body).is_some(),
            Self::ExistsAny(pointers) => pointers.iter().any(|pointer| pointer.leads_into(body)),
            Self::Absent(pointer) => whole && pointer.find(body).is_none() && looks_like_json(body),
            Self::EqualIfThere(pointer, value) => match pointer.find(body) {
                Some(found) => equal(found, value),
                None => whole && looks_like_json(body),
            },
            Self::EachPart(parts) => whole && looks_like_json(body) && parts.failed(body).is_none(),
            Self::Equal(pointer, value, wanted) => {
                pointer.find(body).is_some_and(|found| equal(found, value) == *wanted)
            }
            Self::Number(pointer, comparison, limit) => {
                let found = pointer.find(body).and_then(number);
                found.is_some_and(|found| comparison.holds(&found, limit))
            }
            Self::Contains(needle, true) => needle.find(body).is_some(),
            Self::Contains(needle, false) => whole && needle.find(body).is_none(),
            Self::Matches(regex) if whole => regex.is_match(body),
            // A match that ends where the body was cut may owe itself to the cut, as `[^x]*$` does.
            Self::Matches(regex) => regex.shortest_match(body).is_some_and(|end| end < body.len()),
            Self::Hits(comparison, hits, relation) => {
                let at_least = relation.find(body).is_some_and(|told| told == br#""gte""#);
                let holds = |found: &u64| match comparison {
                    // More than were counted may be there: only what is true of any number above is known.
                    Comparison::Unequal if at_least => found > hits,
                    Comparison::Equal | Comparison::AtMost | Comparison::Below if at_least => false,
                    _ => comparison.holds(found, hits),
                };
                seen.hits.as_ref().is_some_and(holds)
            }
            Self::Time(comparison, limit_ns) => comparison.holds(&seen.service_ns, limit_ns),
        }
    }

    /// Actual content of the reply, for the reason of a failure.
    pub(super) fn found(&self, seen: &Seen<'_>) -> String {
        match seen.shown {
            Shown::Coded if self.reads_body() => {
                return "the body is in a content coding that was not decoded".to_owned();
            }
            Shown::Cut if self.reads_body() => {
                let kept = seen.body.len();
                return format!("only the first {kept} bytes of the body were kept");
            }
            _ => {}
        }
        match self {
            Self::Exists(pointer)
            | Self::Absent(pointer)
            | Self::EqualIfThere(pointer, _)
            | Self::Equal(pointer, ..)
            | Self::Number(pointer, ..) => match pointer.find(seen.body) {
                Some(value) => format!("found {}", shown(value)),
                None if looks_like_json(seen.body) => "found no such value".to_owned(),
                None => "the body is not JSON".to_owned(),
            },
            Self::EachPart(parts) => match parts.failed(seen.body) {
                Some((index, part)) => format!("number {index}, from 0, is {}", shown(part)),
                None => "the body is not JSON".to_owned(),
            },
            Self::ExistsAny(_) if looks_like_json(seen.body) => "found none of them".to_owned(),
            Self::ExistsAny(_) => "the body is not JSON".to_owned(),
            Self::Contains(_, false) => "found it".to_owned(),
            Self::Contains(_, true) | Self::Matches(_) => {
                format!("not found in {} bytes", seen.body.len())
            }
            Self::Hits(..) => match seen.hits {
                Some(hits) => format!("found {hits} hits"),
                None => "the reply has no number of hits".to_owned(),
            },
            Self::Time(..) => format!("took {:.2} ms", seen.service_ns as f64 / 1e6),
        }
    }
}

/// A value's text, on one line and not too long.
fn shown(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    let mut out: String =
        text.chars().take(VALUE_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(VALUE_CHARS).is_some() {
        out.push_str("...");
    }
    out
}

/// An error page in HTML has no `root.errors` and no `timed_out` either; that must not count as an absence of
/// errors.
fn looks_like_json(body: &[u8]) -> bool {
    matches!(body.iter().find(|byte| !byte.is_ascii_whitespace()), Some(b'{' | b'['))
}

fn equal(found: &[u8], value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Bool(true) => found == b"true",
        serde_json::Value::Bool(false) => found == b"false",
        serde_json::Value::Number(n) if n.is_f64() => number(found) == n.as_f64(),
        _ => match serde_json::from_slice::<serde_json::Value>(found) {
            Ok(parsed) if parsed.is_f64() => parsed.as_f64() == value.as_f64(),
            Ok(parsed) => parsed == *value,
            Err(_) => false,
        },
    }
}

//! What a reply must be to count as a success.
//!
//! | written | holds when |
//! |---|---|
//! | `status=200-299,304` or `status=2xx` | the status is among these |
//! | `/root/id=toplevel`, `/a!=1` | the value at the JSON pointer is (not) this |
//! | `/root/fields/totalCount>=1`, `>`, `<=`, `<` | it is a number and compares so |
//! | `/root/children` | there is a value |
//! | `!/root/errors` | there is none |
//! | `body~TEXT`, `body!~TEXT` | the body contains the text, or does not |
//! | `body=~REGEX` | the regular expression matches in the body |
//! | `hits>=1`, `hits=0` | the reply tells so many hits ([`HitCounter`]) |
//! | `time<500ms` | it took so long from sending to the last byte |
//! | `vespa` | status 200, no `root.errors`, and a full `root.coverage` if one is given |
//! | `elasticsearch` | status 200, not `timed_out`, no failed shards, no bulk `errors` |
//!
//! A pointer may also be written with `json:` before it. Its keys cannot hold `=`, `<`, `>` or `!` here. Unless a status is
//! asked for, 2xx is.

use std::fmt;

use crate::json_scan::{Pointer, number, unsigned};
use plimsoll_core::units::Span;
use regex::bytes::Regex;

/// Where Elasticsearch says whether the number of hits is all of them (`eq`), or where it stopped counting (`gte`).
const RELATION: &str = "/hits/total/relation";

/// What is wrong with a check as written.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("--check '{text}': {problem}")]
pub struct CheckError {
    text: String,
    problem: &'static str,
}

/// A set of HTTP status codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusSet(Vec<(u16, u16)>);

impl StatusSet {
    /// 200 to 299.
    #[must_use]
    pub fn success() -> Self {
        Self(vec![(200, 299)])
    }

    /// Reads codes (`304`), ranges (`200-299`) and classes (`2xx`), parted by commas.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let code = |text: &str| {
            let three = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
            text.parse::<u16>().ok().filter(|code| three && (100..=599).contains(code))
        };
        let range = |part: &str| {
            let part = part.trim();
            if let Some(first) = part.strip_suffix("xx").or_else(|| part.strip_suffix("XX")) {
                let low = code(&format!("{first}00"))?;
                return Some((low, low + 99));
            }
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let (low, high) = (code(low)?, code(high)?);
            (low <= high).then_some((low, high))
        };
        text.split(',').map(range).collect::<Option<Vec<_>>>().map(Self)
    }

    /// Whether a code is in the set.
    #[inline]
    #[must_use]
    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|&(low, high)| low <= status && status <= high)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    AtLeast,
    Above,
    AtMost,
    Below,
}

#[derive(Clone, Debug)]
enum Rule {
    Exists(Pointer),
    Absent(Pointer),
    /// If there is a value, it must be this one.
    EqualIfThere(Pointer, serde_json::Value),
    Equal(Pointer, serde_json::Value, bool),
    Number(Pointer, Comparison, f64),
    Contains(memchr::memmem::Finder<'static>, bool),
    Matches(Box<Regex>),
    /// How many hits, as a number to compare with; at the pointer a reply says whether it has counted them all.
    Hits(Comparison, u64, Pointer),
    /// How long it may take, ns.
    Time(Comparison, u64),
}

/// What checks look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen<'a> {
    /// The status.
    pub status: u16,
    /// The body, decoded: neither chunked nor gzip.
    pub body: &'a [u8],
    /// How many hits the reply told of, if it did.
    pub hits: Option<u64>,
    /// From sending to the last byte, ns.
    pub service_ns: u64,
}

/// How a reply failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure<'a> {
    /// The status is not among those that count as success.
    Status(u16),
    /// This check, as the user wrote it, does not hold.
    Check(&'a str),
}

impl fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "status {status}"),
            Self::Check(text) => write!(f, "check {text}"),
        }
    }
}

/// All checks of a run.
#[derive(Clone, Debug)]
pub struct Checks {
    status: StatusSet,
    rules: Vec<(String, Rule)>,
}

impl Default for Checks {
    fn default() -> Self {
        Self { status: StatusSet::success(), rules: Vec::new() }
    }
}

impl Checks {
    /// Reads checks as users write them.
    ///
    /// # Errors
    /// The first one that cannot be read.
    pub fn new<S: AsRef<str>>(texts: &[S]) -> Result<Self, CheckError> {
        let mut checks = Self::default();
        for text in texts {
            checks.add(text.as_ref())?;
        }
        Ok(checks)
    }

    fn add(&mut self, text: &str) -> Result<(), CheckError> {
        let fail = |problem| CheckError { text: text.escape_debug().to_string(), problem };
        if let Some(codes) = text.strip_prefix("status=") {
            self.status = StatusSet::parse(codes)
                .ok_or_else(|| fail("write codes of 100 to 599, such as 200-299,304 or 2xx"))?;
            return Ok(());
        }
        match text {
            "vespa" => self.add_vespa(),
            "elasticsearch" => self.add_elasticsearch(),
            _ => {
                let rule = parse_rule(text).map_err(fail)?;
                self.rules.push((text.to_owned(), rule));
            }
        }
        Ok(())
    }

    fn add_vespa(&mut self) {
        self.status = StatusSet(vec![(200, 200)]);
        self.preset("vespa: no errors (/root/errors)", "/root/errors", Rule::Absent);
        let full = |p| Rule::EqualIfThere(p, true.into());
        self.preset("vespa: full coverage (/root/coverage/full)", "/root/coverage/full", full);
    }

    fn add_elasticsearch(&mut self) {
        self.status = StatusSet(vec![(200, 200)]);
        let never = |p| Rule::EqualIfThere(p, false.into());
        let none = |p| Rule::EqualIfThere(p, 0.into());
        self.preset("elasticsearch: in time (/timed_out)", "/timed_out", never);
        self.preset("elasticsearch: all shards (/_shards/failed)", "/_shards/failed", none);
        self.preset("elasticsearch: all bulk items (/errors)", "/errors", never);
    }

    fn preset(&mut self, text: &str, pointer: &str, rule: impl FnOnce(Pointer) -> Rule) {
        if let Some(pointer) = Pointer::parse(pointer) {
            self.rules.push((text.to_owned(), rule(pointer)));
        }
    }

    /// Whether judging needs the body's bytes; if not, the engine need not keep them.
    #[must_use]
    pub fn needs_body(&self) -> bool {
        self.rules.iter().any(|(_, rule)| !matches!(rule, Rule::Time(..)))
    }

    /// Whether judging needs the number of hits.
    #[must_use]
    pub fn needs_hits(&self) -> bool {
        self.rules.iter().any(|(_, rule)| matches!(rule, Rule::Hits(..)))
    }

    /// Judges a reply.
    ///
    /// # Errors
    /// The first check that does not hold.
    pub fn judge(&self, seen: &Seen<'_>) -> Result<(), Failure<'_>> {
        if !self.status.contains(seen.status) {
            return Err(Failure::Status(seen.status));
        }
        match self.rules.iter().find(|(_, rule)| !rule.holds(seen)) {
            Some((text, _)) => Err(Failure::Check(text)),
            None => Ok(()),
        }
    }
}

/// What a text is compared by, and where the value to compare with begins.
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
fn parse_whole(text: &str) -> Result<Option<Rule>, &'static str> {
    let needles = [("body!~", false), ("body~", true)];
    for (prefix, wanted) in needles {
        let Some(needle) = text.strip_prefix(prefix) else { continue };
        if needle.is_empty() {
            return Err("write the text that the body must contain after '~'");
        }
        let finder = memchr::memmem::Finder::new(needle.as_bytes()).into_owned();
        return Ok(Some(Rule::Contains(finder, wanted)));
    }
    if let Some(expression) = text.strip_prefix("body=~") {
        let regex = Regex::new(expression);
        let regex = regex.map_err(|_| "no regular expression; see the regex crate's syntax")?;
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
            return Err("compare a time with <, <=, > or >=");
        }
        let span = text[at..].parse::<Span>().ok().filter(|_| text.ends_with(char::is_alphabetic));
        let span = span.ok_or("write a time with its unit, as in time<500ms")?;
        return Ok(Some(Rule::Time(comparison, span.ns)));
    }
    Ok(None)
}

fn parse_rule(text: &str) -> Result<Rule, &'static str> {
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
            "write status=2xx, /json/pointer>=1, !/json/pointer, body~TEXT, hits>=1, time<500ms or vespa",
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
    fn holds(&self, seen: &Seen<'_>) -> bool {
        let body = seen.body;
        match self {
            Self::Exists(pointer) => pointer.find(body).is_some(),
            Self::Absent(pointer) => pointer.find(body).is_none() && looks_like_json(body),
            Self::EqualIfThere(pointer, value) => {
                pointer.find(body).map_or(looks_like_json(body), |found| equal(found, value))
            }
            Self::Equal(pointer, value, wanted) => {
                pointer.find(body).is_some_and(|found| equal(found, value) == *wanted)
            }
            Self::Number(pointer, comparison, limit) => {
                let found = pointer.find(body).and_then(number);
                found.is_some_and(|found| comparison.holds(&found, limit))
            }
            Self::Contains(needle, wanted) => needle.find(body).is_some() == *wanted,
            Self::Matches(regex) => regex.is_match(body),
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

/// Counts the hits that a reply claims, for the share of queries without any.
#[derive(Clone, Debug)]
pub struct HitCounter {
    pointers: Vec<Pointer>,
}

impl Default for HitCounter {
    /// Vespa's `root.fields.totalCount`, then Elasticsearch's `hits.total.value` and the older
    /// `hits.total`.
    fn default() -> Self {
        let known = ["/root/fields/totalCount", "/hits/total/value", "/hits/total"];
        Self { pointers: known.iter().filter_map(|text| Pointer::parse(text)).collect() }
    }
}

impl HitCounter {
    /// Name of the header in which Vespa tells the number without a look into the body.
    pub const HEADER: &'static str = "X-Yahoo-Vespa-TotalHitCount";

    /// Looks at one pointer of the user's own.
    #[must_use]
    pub fn at(pointer: Pointer) -> Self {
        Self { pointers: vec![pointer] }
    }

    /// The number of hits; `None` if the reply does not say. `header` is the value of
    /// [`HitCounter::HEADER`] in *this* reply.
    #[must_use]
    pub fn count(&self, header: Option<&[u8]>, body: &[u8]) -> Option<u64> {
        let from_header = header.and_then(|value| unsigned(value.trim_ascii()));
        from_header.or_else(|| {
            self.pointers.iter().find_map(|pointer| pointer.find(body).and_then(unsigned))
        })
    }
}

#[cfg(test)]
mod tests;

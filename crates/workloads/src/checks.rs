//! What a reply must be to count as a success.
//!
//! | written | holds when |
//! |---|---|
//! | `status=200-299,304` or `status=2xx` | the status is among these |
//! | `/root/id=toplevel`, `/a!=1` | the value at the JSON pointer is (not) this |
//! | `/root/fields/totalCount>=1`, `>`, `<=`, `<` | it is a number and compares so |
//! | `/root/children` | there is a value |
//! | `!/root/errors` | there is none |
//! | `body~TEXT` | the body contains the text |
//! | `vespa` | status 200, no `root.errors`, and a full `root.coverage` if one is given |
//! | `elasticsearch` | status 200, not `timed_out`, no failed shards, no bulk `errors` |
//!
//! A pointer's keys cannot hold `=`, `<`, `>` or `!` here. Unless a status is asked for, 2xx is.

use std::fmt;

use crate::json_scan::{Pointer, number, unsigned};

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
    Contains(memchr::memmem::Finder<'static>),
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
        !self.rules.is_empty()
    }

    /// Judges a reply. `body` is decoded: neither chunked nor gzip.
    ///
    /// # Errors
    /// The first check that does not hold.
    pub fn judge(&self, status: u16, body: &[u8]) -> Result<(), Failure<'_>> {
        if !self.status.contains(status) {
            return Err(Failure::Status(status));
        }
        match self.rules.iter().find(|(_, rule)| !rule.holds(body)) {
            Some((text, _)) => Err(Failure::Check(text)),
            None => Ok(()),
        }
    }
}

fn parse_rule(text: &str) -> Result<Rule, &'static str> {
    if let Some(needle) = text.strip_prefix("body~") {
        if needle.is_empty() {
            return Err("write the text that the body must contain after '~'");
        }
        return Ok(Rule::Contains(memchr::memmem::Finder::new(needle.as_bytes()).into_owned()));
    }
    let pointer = |text: &str| {
        let wrong = "a JSON pointer starts with '/' and has no '~' but ~0 and ~1";
        Pointer::parse(text).filter(|_| text.starts_with('/')).ok_or(wrong)
    };
    if let Some(absent) = text.strip_prefix('!') {
        return Ok(Rule::Absent(pointer(absent)?));
    }
    if !text.starts_with('/') {
        return Err("write status=2xx, /json/pointer>=1, !/json/pointer, body~TEXT or vespa");
    }
    let Some(at) = text.find(['=', '<', '>', '!']) else {
        return Ok(Rule::Exists(pointer(text)?));
    };
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
    let (pointer, value) = (pointer(&text[..at])?, &text[at + sign.len()..]);
    match comparison {
        Comparison::Equal | Comparison::Unequal => {
            // What is not JSON is a text, so that names need no quotes in a shell.
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            Ok(Rule::Equal(pointer, value, *comparison == Comparison::Equal))
        }
        _ => {
            let limit = number(value.as_bytes()).ok_or("write a number after the comparison")?;
            Ok(Rule::Number(pointer, *comparison, limit))
        }
    }
}

impl Rule {
    fn holds(&self, body: &[u8]) -> bool {
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
                found.is_some_and(|found| match comparison {
                    Comparison::AtLeast => found >= *limit,
                    Comparison::Above => found > *limit,
                    Comparison::AtMost => found <= *limit,
                    Comparison::Below => found < *limit,
                    Comparison::Equal | Comparison::Unequal => false,
                })
            }
            Self::Contains(needle) => needle.find(body).is_some(),
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
mod tests {
    use super::*;

    fn holds(check: &str, body: &str) -> bool {
        Checks::new(&[check]).unwrap().judge(200, body.as_bytes()).is_ok()
    }

    #[test]
    fn statuses() {
        let set = StatusSet::parse("200-299, 304,4xx").unwrap();
        for (code, inside) in
            [(199, false), (200, true), (299, true), (300, false), (304, true), (499, true)]
        {
            assert_eq!(set.contains(code), inside, "{code}");
        }
        for bad in ["", "20", "99", "600", "299-200", "2x", "abc", "200-", "1e2", "+20", "6xx"] {
            assert_eq!(StatusSet::parse(bad), None, "{bad}");
        }
        let default = Checks::default();
        assert_eq!(default.judge(204, b""), Ok(()));
        assert_eq!(default.judge(302, b""), Err(Failure::Status(302)));
        assert!(!default.needs_body());
    }

    #[test]
    fn values_at_pointers() {
        let body = r#"{"root":{"id":"toplevel","n":42,"f":1.5,"t":true,"e":null,"l":[1]}}"#;
        for check in [
            "/root/id=toplevel",
            "/root/id==\"toplevel\"",
            "/root/n=42",
            "/root/n=42.0",
            "/root/n>=42",
            "/root/n>41.5",
            "/root/n<=42",
            "/root/n<43",
            "/root/n!=41",
            "/root/f=1.5",
            "/root/t=true",
            "/root/e=null",
            "/root/e",
            "/root/l=[1]",
            "!/root/errors",
            "body~toplevel",
        ] {
            assert!(holds(check, body), "{check}");
        }
        for check in [
            "/root/id=other",
            "/root/n=41",
            "/root/n>42",
            "/root/n<42",
            "/root/id>=1",
            "/root/missing>=0",
            "/root/missing!=1",
            "/root/missing",
            "!/root/id",
            "/root/t=false",
            "body~absent",
        ] {
            assert!(!holds(check, body), "{check}");
        }
        assert!(!holds("!/root/errors", "<html>"), "an error page is not a reply without errors");
    }

    #[test]
    fn wrong_checks_are_told_in_one_line() {
        for bad in ["", "x", "status=", "/a>=b", "/a~2", "body~", "!x", "/a!b", "root=1"] {
            let error = Checks::new(&[bad]).unwrap_err().to_string();
            assert!(error.contains("--check") && !error.contains('\n'), "{bad}: {error}");
        }
    }

    #[test]
    fn presets_know_a_200_that_is_no_success() {
        let vespa = Checks::new(&["vespa"]).unwrap();
        let fine = br#"{"root":{"fields":{"totalCount":1},"coverage":{"full":true}}}"#;
        let errors = br#"{"root":{"errors":[{"code":12}],"fields":{"totalCount":0}}}"#;
        let degraded = br#"{"root":{"coverage":{"full":false},"fields":{"totalCount":1}}}"#;
        assert_eq!(vespa.judge(200, fine), Ok(()));
        assert_eq!(vespa.judge(200, br#"{"root":{"fields":{}}}"#), Ok(()));
        assert!(vespa.judge(200, errors).is_err());
        let failure = vespa.judge(200, degraded).unwrap_err();
        assert_eq!(failure.to_string(), "check vespa: full coverage (/root/coverage/full)");
        assert_eq!(vespa.judge(204, fine), Err(Failure::Status(204)));

        let elastic = Checks::new(&["elasticsearch"]).unwrap();
        let reply = |text: &str| elastic.judge(200, text.as_bytes()).is_ok();
        assert!(reply(r#"{"timed_out":false,"_shards":{"failed":0},"hits":{}}"#));
        assert!(!reply(r#"{"timed_out":true,"_shards":{"failed":0}}"#));
        assert!(!reply(r#"{"timed_out":false,"_shards":{"failed":1}}"#));
        assert!(!reply(r#"{"took":3,"errors":true}"#));
        assert!(!reply("<html>maintenance</html>") && !reply(""), "a 200 is not yet a success");
    }

    #[test]
    fn hits_are_counted_wherever_they_are_told() {
        let counter = HitCounter::default();
        let vespa = br#"{"root":{"fields":{"totalCount":7}}}"#;
        assert_eq!(counter.count(None, vespa), Some(7));
        assert_eq!(counter.count(Some(b" 0 "), vespa), Some(0));
        assert_eq!(counter.count(Some(b"x"), vespa), Some(7));
        assert_eq!(counter.count(None, br#"{"hits":{"total":5,"hits":[]}}"#), Some(5));
        let newer = br#"{"hits":{"total":{"value":0,"relation":"eq"}}}"#;
        assert_eq!(counter.count(None, newer), Some(0));
        assert_eq!(counter.count(None, b"<html>"), None);
        let own = HitCounter::at(Pointer::parse("/n").unwrap());
        assert_eq!(own.count(None, br#"{"n":3}"#), Some(3));
    }
}

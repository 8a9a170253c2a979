//! Checks that make a reply a success.
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
//! | `hits>=1`, `hits=0` | the reply tells this many hits ([`HitCounter`]) |
//! | `time<500ms` | it took this long from sending to the last byte |
//! | `vespa` | status 200, a `root` (or a document's `pathId`), no `root.errors`, and a full `root.coverage` if one is given |
//! | `elasticsearch` | status 200, a reply of that API (`ELASTICSEARCH_REPLIES`), not `timed_out`, no failed shards, no bulk `errors`; the same of each reply that `_msearch` and `_mget` hold, without `error` and with a `status` below 400 |
//!
//! A pointer may also be written with `json:` before it. Its keys cannot hold `=`, `<`, `>` or `!` here. Unless a status is
//! asked for, 2xx is.
//!
//! An absence (`!/pointer`, `body!~TEXT`, the presets) is known only of a whole body: it does not hold of one that was cut
//! because it is too long, or that is in a content coding which is not decoded.

mod parts;
mod rule;

use crate::json_scan::{Pointer, unsigned};
use parts::Parts;
use rule::{Rule, parse_rule};
use std::borrow::Cow;
use std::fmt;

/// Members of which a reply of Vespa has one: of a search, and of the document API.
const VESPA_REPLIES: [&str; 2] = ["/root", "/pathId"];
/// Members of which a reply of Elasticsearch or OpenSearch has one: of a search or bulk, of a document, of an index, of
/// several documents, of several searches.
const ELASTICSEARCH_REPLIES: [&str; 7] =
    ["/took", "/timed_out", "/_shards", "/_index", "/hits", "/docs", "/responses"];

/// Error of a check as written.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("--check '{text}': {problem}")]
pub struct CheckError {
    text: String,
    problem: Cow<'static, str>,
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

    /// Reads codes (`304`), ranges (`200-299`) and classes (`2xx`), separated by commas.
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

    /// Returns true if a code is in the set.
    #[inline]
    #[must_use]
    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|&(low, high)| low <= status && status <= high)
    }
}

/// Part of a reply's body that can be looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// All of it.
    #[default]
    Whole,
    /// Its beginning: it was too long to be kept.
    Cut,
    /// Bytes in a content coding that was not decoded.
    Coded,
}

/// Parts of a reply that checks look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen<'a> {
    /// The status.
    pub status: u16,
    /// The body, decoded: neither chunked nor gzip.
    pub body: &'a [u8],
    /// Extent of `body`: all, the beginning, or bytes that are still coded.
    pub shown: Shown,
    /// Number of hits that the reply reported, if it did.
    pub hits: Option<u64>,
    /// From sending to the last byte, ns.
    pub service_ns: u64,
}

/// The way a reply failed.
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

    /// The same for replies of a system that are neither a search's nor a document's, such as that of a new index: which
    /// server said so is known.
    #[must_use]
    pub fn of_any_reply(mut self) -> Self {
        self.rules.retain(|(_, rule)| !matches!(rule, Rule::ExistsAny(_)));
        self
    }

    fn add(&mut self, text: &str) -> Result<(), CheckError> {
        let fail = |problem| CheckError { text: text.escape_debug().to_string(), problem };
        if let Some(codes) = text.strip_prefix("status=") {
            self.status = StatusSet::parse(codes).ok_or_else(|| {
                fail("write codes of 100 to 599, such as 200-299,304 or 2xx".into())
            })?;
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
        self.of_system("vespa: a reply of Vespa (/root or /pathId)", &VESPA_REPLIES);
        self.preset("vespa: no errors (/root/errors)", "/root/errors", Rule::Absent);
        let full = |p| Rule::EqualIfThere(p, true.into());
        self.preset("vespa: full coverage (/root/coverage/full)", "/root/coverage/full", full);
    }

    fn add_elasticsearch(&mut self) {
        self.status = StatusSet(vec![(200, 200)]);
        let never = |p| Rule::EqualIfThere(p, false.into());
        let none = |p| Rule::EqualIfThere(p, 0.into());
        self.of_system(
            "elasticsearch: a reply of its API (/took, /timed_out, /_shards, /_index, /hits, /docs or /responses)",
            &ELASTICSEARCH_REPLIES,
        );
        self.preset("elasticsearch: in time (/timed_out)", "/timed_out", never);
        self.preset("elasticsearch: all shards (/_shards/failed)", "/_shards/failed", none);
        self.preset("elasticsearch: all bulk items (/errors)", "/errors", never);
        if let Some(parts) = Parts::new() {
            let text = "elasticsearch: all searches and documents (/responses, /docs)".to_owned();
            self.rules.push((text, Rule::EachPart(parts)));
        }
    }

    /// Any server says 200 to something: only a reply of the system itself may then be looked through for errors.
    fn of_system(&mut self, text: &str, pointers: &[&str]) {
        let pointers = pointers.iter().filter_map(|pointer| Pointer::parse(pointer)).collect();
        self.rules.push((text.to_owned(), Rule::ExistsAny(pointers)));
    }

    fn preset(&mut self, text: &str, pointer: &str, rule: impl FnOnce(Pointer) -> Rule) {
        if let Some(pointer) = Pointer::parse(pointer) {
            self.rules.push((text.to_owned(), rule(pointer)));
        }
    }

    /// Returns true if judging needs the body's bytes; if not, the engine need not keep them.
    #[must_use]
    pub fn needs_body(&self) -> bool {
        self.rules.iter().any(|(_, rule)| !matches!(rule, Rule::Time(..)))
    }

    /// Returns true if judging needs the number of hits.
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

    /// Reason why a reply failed, with what was found instead; `None` where it did not fail.
    #[must_use]
    pub fn explain(&self, seen: &Seen<'_>) -> Option<String> {
        match self.judge(seen).err()? {
            status @ Failure::Status(_) => Some(status.to_string()),
            check @ Failure::Check(_) => {
                let failed = self.rules.iter().find(|(_, rule)| !rule.holds(seen))?;
                Some(format!("{check}: {}", failed.1.found(seen)))
            }
        }
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

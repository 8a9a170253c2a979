//! The things that stand in the reply to a visit: documents, steps of progress, counts and messages.
//!
//! Documents are passed on as the bytes that came: of each one only the id is looked at.

use super::json_front::Scan;
use super::reply_error::{ReplyError, form};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Kind of a document's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It is there.
    Put,
    /// It was removed.
    Remove,
}

/// One thing in a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'a> {
    /// A document, or the trace of one that was removed.
    Document {
        /// Kind of the entry.
        entry: Entry,
        /// Its id.
        id: Cow<'a, str>,
        /// Its id as it came: a JSON string with its quotes.
        id_json: Cow<'a, [u8]>,
        /// Text from the end of the id to the end of the object: `,"fields":{...}}`, or `}`.
        rest: Cow<'a, [u8]>,
    },
    /// Progress of the visit.
    Progress {
        /// Continuation token; `None` at its end, or after a failure.
        token: Option<String>,
        /// In the space of buckets, 0 to 100, where it was reported.
        percent: Option<f64>,
    },
    /// The path that an object says it answers.
    Path(String),
    /// The array of documents begins.
    Documents,
    /// Number of documents that the server says it has sent in this object.
    Count(u64),
    /// Number of documents that the server says it has sent in these lines; only the last progress follows.
    Closing(u64),
    /// Message of the server.
    Message {
        /// Its words.
        text: String,
        /// True if the visit has failed.
        is_error: bool,
    },
}
/// Reads the id of a document, which stands first in every known server's reply.
pub(super) fn document(object: &[u8]) -> Result<Item<'_>, ReplyError> {
    let entry = |key: &[u8]| match key {
        b"\"put\"" | b"\"id\"" => Some(Entry::Put),
        b"\"remove\"" => Some(Entry::Remove),
        _ => None,
    };
    let first = Scan::first_member(object).ok_or_else(|| form("a document is expected", object))?;
    if let (Some(entry), b'"') = (entry(first.key), object[first.value_from]) {
        let mut scan = Scan { bytes: object, at: first.value_from };
        let id_json = scan.string().ok_or_else(|| form("an id is expected", object))?;
        let rest = Cow::Borrowed(&object[scan.at..]);
        return Ok(Item::Document { entry, id: text(id_json)?, id_json: id_json.into(), rest });
    }
    // The id may stand elsewhere after all.
    let members: Members<'_> = serde_json::from_slice(object)
        .map_err(|error| form(&format!("a document is not JSON ({error})"), object))?;
    let mut found = None;
    let mut rest = Vec::new();
    for (key, value) in &members.0 {
        let quoted = format!("\"{key}\"");
        match entry(quoted.as_bytes()) {
            Some(entry) if found.is_none() => found = Some((entry, value.get())),
            _ => {
                rest.extend_from_slice(b",");
                rest.extend_from_slice(Value::from(key.as_str()).to_string().as_bytes());
                rest.push(b':');
                rest.extend_from_slice(value.get().as_bytes());
            }
        }
    }
    rest.push(b'}');
    let (entry, id_json) = found.ok_or_else(|| form("a document has no id", object))?;
    let id = text(id_json.as_bytes())?.into_owned().into();
    let id_json = id_json.as_bytes().to_vec().into();
    Ok(Item::Document { entry, id, id_json, rest: rest.into() })
}

/// A document as it is written: on one line, also if it came over several.
pub(super) fn on_one_line(object: &[u8]) -> Result<Cow<'_, [u8]>, ReplyError> {
    let is_end = |byte: u8| matches!(byte, b'\n' | b'\r');
    if memchr::memchr2(b'\n', b'\r', object).is_none() {
        return Ok(Cow::Borrowed(object));
    }
    // In JSON a line end stands between two values, and never in a text.
    serde_json::from_slice::<&RawValue>(object)
        .map_err(|error| form(&format!("a document is not JSON ({error})"), object))?;
    Ok(object.iter().map(|&byte| if is_end(byte) { b' ' } else { byte }).collect())
}

/// Value of a JSON string.
fn text(json: &[u8]) -> Result<Cow<'_, str>, ReplyError> {
    let wrong = || form("an id is not a text", json);
    let inner = json.strip_prefix(b"\"").and_then(|json| json.strip_suffix(b"\""));
    let inner = inner.ok_or_else(wrong)?;
    if memchr::memchr(b'\\', inner).is_none() {
        return std::str::from_utf8(inner).map(Cow::Borrowed).map_err(|_| wrong());
    }
    serde_json::from_slice(json).map(Cow::Owned).map_err(|_| wrong())
}

/// A continuation token; `None` if there is none, which is the end. A value that is no text must not look like that end.
pub(super) fn token(value: Value) -> Result<Option<String>, ReplyError> {
    match value {
        Value::Null => Ok(None),
        Value::String(token) => Ok(Some(token)),
        other => Err(form("a continuation token is not a text", other.to_string().as_bytes())),
    }
}

/// A line that is no document.
pub(super) fn line_item(line: &[u8], each: &mut impl FnMut(Item<'_>)) -> Result<(), ReplyError> {
    let value: Value = serde_json::from_slice(line)
        .map_err(|error| form(&format!("a line is not JSON ({error})"), line))?;
    if let Some(progress) = value.get("continuation") {
        if !progress.is_object() {
            return Err(form("a continuation is not an object", line));
        }
        let token = token(progress.get("token").cloned().unwrap_or(Value::Null))?;
        let percent = progress.get("percentFinished").and_then(Value::as_f64);
        each(Item::Progress { token, percent });
    }
    if let Some(stats) = value.get("sessionStats") {
        let count = stats.get("documentCount").and_then(Value::as_u64);
        each(Item::Closing(count.ok_or_else(|| form("sessionStats without documentCount", line))?));
    }
    if let Some(message) = value.get("message") {
        let text = message.get("text").unwrap_or(message);
        let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
        // A server that gives no severity speaks only when something is wrong.
        let severity = message.get("severity").and_then(Value::as_str).unwrap_or("error");
        each(Item::Message { text, is_error: severity == "error" });
    }
    Ok(())
}

/// The members of an object in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

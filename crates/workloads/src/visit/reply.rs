//! Reads the reply to a visit while it arrives: one JSON object, or JSON lines.
//!
//! Vespa answers a visit in two forms: an object with the documents in an array, and, where a stream of JSON
//! lines was asked for, a line for each document and each step of progress. The first key tells them apart. Documents are
//! passed on as the bytes that came: of each one only the id is looked at.

use crate::json_skip::{ContainerEnd, container_length};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use thiserror::Error;

/// Longest document or line, bytes. Vespa's own limit on a document is 100 MiB.
pub const ITEM_BYTES_MAX: usize = 128 << 20;

/// Why a reply cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ReplyError {
    /// The bytes are no reply to a visit.
    #[error("the reply is not that of a visit: {0}")]
    Form(String),
    /// One document or line is longer than [`ITEM_BYTES_MAX`].
    #[error("a document or line of the reply is longer than 128 MiB")]
    TooLong,
    /// It ends before its end.
    #[error("the reply ends in the middle")]
    Truncated,
}

/// What a document's entry says of it.
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
        /// Which of both.
        entry: Entry,
        /// Its id.
        id: Cow<'a, str>,
        /// Its id as it came: a JSON string with its quotes.
        id_json: Cow<'a, [u8]>,
        /// What follows the id up to the end of the object: `,"fields":{...}}`, or `}`.
        rest: Cow<'a, [u8]>,
    },
    /// How far the visit has come.
    Progress {
        /// Where to go on; none when it is at its end, or failed.
        token: Option<String>,
        /// In the space of buckets, 0 to 100, where it was told.
        percent: Option<f64>,
    },
    /// How many documents the server says it has sent in this object.
    Count(u64),
    /// How many documents the server says it has sent in these lines; only the last progress follows.
    Closing(u64),
    /// What the server has to say.
    Message {
        /// Its words.
        text: String,
        /// Whether the visit has failed.
        is_error: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the first byte.
    Start,
    /// In lines.
    Lines,
    /// In the object, before a key or its end.
    Key,
    /// In the array of documents.
    Documents,
    /// Behind the object.
    Done,
}

/// The form in which a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyForm {
    /// One JSON object.
    Object,
    /// JSON lines, with progress between the documents.
    Lines,
}

/// A reader of one reply.
#[derive(Debug)]
pub struct ReplyReader {
    place: Place,
    /// Bytes that are not used up.
    held: Vec<u8>,
    /// How far the search for the end of the current document or line has come.
    end: ContainerEnd,
    line_scanned: usize,
}

impl Default for ReplyReader {
    fn default() -> Self {
        Self {
            place: Place::Start,
            held: Vec::new(),
            end: ContainerEnd::default(),
            line_scanned: 0,
        }
    }
}

impl ReplyReader {
    /// Makes it ready for the next reply.
    pub fn clear(&mut self) {
        self.place = Place::Start;
        self.held.clear();
        self.end = ContainerEnd::default();
        self.line_scanned = 0;
    }

    /// In which form the reply comes, once its first key is there.
    #[must_use]
    pub fn form(&self) -> Option<ReplyForm> {
        match self.place {
            Place::Start => None,
            Place::Lines => Some(ReplyForm::Lines),
            Place::Key | Place::Documents | Place::Done => Some(ReplyForm::Object),
        }
    }

    /// Reads a piece and gives every item that is complete with it to `each`.
    ///
    /// # Errors
    /// When the bytes are no reply to a visit.
    pub fn feed(
        &mut self,
        piece: &[u8],
        each: &mut impl FnMut(Item<'_>),
    ) -> Result<(), ReplyError> {
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(piece);
        let mut at = 0;
        let mut result = Ok(());
        loop {
            match self.step(&held[at..], each) {
                Ok(None) => break,
                Ok(Some(used)) => at += used,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        held.drain(..at);
        if held.len() > ITEM_BYTES_MAX {
            result = Err(ReplyError::TooLong);
        }
        self.held = held;
        result
    }

    /// The reply is through.
    ///
    /// # Errors
    /// [`ReplyError::Truncated`] when it cannot be.
    pub fn end(&mut self, each: &mut impl FnMut(Item<'_>)) -> Result<(), ReplyError> {
        if self.place == Place::Lines && !self.held.iter().all(u8::is_ascii_whitespace) {
            // The last line may come without its line end.
            self.feed(b"\n", each)?;
        }
        let blank = self.held.iter().all(u8::is_ascii_whitespace);
        match self.place {
            Place::Lines | Place::Done if blank => Ok(()),
            _ => Err(ReplyError::Truncated),
        }
    }

    /// Takes the next thing from the front of `bytes`; how many bytes it was, or none when more are needed.
    fn step(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(Item<'_>),
    ) -> Result<Option<usize>, ReplyError> {
        match self.place {
            Place::Start => self.start(bytes),
            Place::Lines => self.line(bytes, each),
            Place::Key => self.member(bytes, each),
            Place::Documents => self.element(bytes, each),
            Place::Done if bytes.iter().all(u8::is_ascii_whitespace) => Ok(None),
            Place::Done => Err(form("there are bytes behind its end", bytes)),
        }
    }

    /// Looks at the first key, which tells in which form the reply comes.
    fn start(&mut self, bytes: &[u8]) -> Result<Option<usize>, ReplyError> {
        let mut scan = Scan { bytes, at: 0 };
        scan.blanks();
        let begin = scan.at;
        match scan.take() {
            None => return Ok(None),
            Some(b'{') => {}
            Some(_) => return Err(form("it does not begin with an object", bytes)),
        }
        let inside = scan.at;
        scan.blanks();
        let key = match scan.peek() {
            None => return Ok(None),
            Some(b'}') => &b""[..],
            Some(_) => match scan.string() {
                Some(key) => key,
                None => return scan.incomplete("a key is expected"),
            },
        };
        if LINE_KEYS.contains(&key) {
            self.place = Place::Lines;
            return Ok(Some(begin));
        }
        self.place = Place::Key;
        Ok(Some(inside))
    }

    /// The next line.
    fn line(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(Item<'_>),
    ) -> Result<Option<usize>, ReplyError> {
        let Some(length) = memchr::memchr(b'\n', &bytes[self.line_scanned..]) else {
            self.line_scanned = bytes.len();
            return Ok(None);
        };
        let end = std::mem::take(&mut self.line_scanned) + length;
        let line = bytes[..end].trim_ascii();
        if !line.is_empty() {
            let whole = container_length(line) == Some(line.len());
            let first = Scan::first_member(line)
                .filter(|_| whole)
                .ok_or_else(|| form("a line is not a JSON object", line))?;
            match first.key {
                b"\"put\"" | b"\"remove\"" | b"\"id\"" => each(document(line)?),
                b"\"continuation\"" | b"\"sessionStats\"" | b"\"message\"" => {
                    line_item(line, each)?;
                }
                // What is not known may be left out.
                _ => {}
            }
        }
        Ok(Some(end + 1))
    }

    /// The next member of the object, or its end.
    fn member(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(Item<'_>),
    ) -> Result<Option<usize>, ReplyError> {
        let mut scan = Scan { bytes, at: 0 };
        scan.separators();
        match scan.peek() {
            None => return Ok(None),
            Some(b'}') => {
                self.place = Place::Done;
                return Ok(Some(scan.at + 1));
            }
            Some(_) => {}
        }
        let Some(key) = scan.string() else { return scan.incomplete("a key is expected") };
        scan.blanks();
        match scan.take() {
            None => return Ok(None),
            Some(b':') => {}
            Some(_) => return Err(form("a colon is expected", bytes)),
        }
        scan.blanks();
        if key == b"\"documents\"" && scan.peek() == Some(b'[') {
            self.place = Place::Documents;
            return Ok(Some(scan.at + 1));
        }
        let Some(value) = scan.value() else { return Ok(None) };
        let value: Value = serde_json::from_slice(value)
            .map_err(|error| form(&format!("a value is not JSON ({error})"), value))?;
        match (key, value) {
            (b"\"continuation\"", Value::String(token)) => {
                each(Item::Progress { token: Some(token), percent: None });
            }
            (b"\"documentCount\"", value) => {
                let count =
                    value.as_u64().ok_or_else(|| form("documentCount is no count", bytes))?;
                each(Item::Count(count));
            }
            (b"\"message\"", value) => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                each(Item::Message { text, is_error: true });
            }
            _ => {}
        }
        Ok(Some(scan.at))
    }

    /// The next document of the array, or its end.
    fn element(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(Item<'_>),
    ) -> Result<Option<usize>, ReplyError> {
        let mut scan = Scan { bytes, at: 0 };
        scan.separators();
        // The search for the end of a document goes on where it stopped, so that nothing may be taken away
        // before it has been found.
        match scan.peek() {
            None => Ok(None),
            Some(b']') => {
                self.place = Place::Key;
                Ok(Some(scan.at + 1))
            }
            Some(b'{') => {
                let Some(length) = self.end.find(&bytes[scan.at..]) else { return Ok(None) };
                self.end = ContainerEnd::default();
                each(document(&bytes[scan.at..scan.at + length])?);
                Ok(Some(scan.at + length))
            }
            Some(_) => Err(form("a document is expected", bytes)),
        }
    }
}

/// First keys of JSON lines; an object begins with another.
const LINE_KEYS: [&[u8]; 6] = [
    b"\"put\"",
    b"\"remove\"",
    b"\"continuation\"",
    b"\"sessionStats\"",
    b"\"sessionTrace\"",
    b"\"message\"",
];

/// Bytes of a reply that an error shows.
const SHOWN_BYTES: usize = 80;

fn form(what: &str, at: &[u8]) -> ReplyError {
    let shown = String::from_utf8_lossy(&at[..at.len().min(SHOWN_BYTES)]).into_owned();
    ReplyError::Form(format!("{what}: {shown:?}"))
}

/// Reads the id of a document, which stands first in every known server's reply.
fn document(object: &[u8]) -> Result<Item<'_>, ReplyError> {
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

/// What a JSON string says.
fn text(json: &[u8]) -> Result<Cow<'_, str>, ReplyError> {
    let wrong = || form("an id is no text", json);
    let inner = json.strip_prefix(b"\"").and_then(|json| json.strip_suffix(b"\""));
    let inner = inner.ok_or_else(wrong)?;
    if memchr::memchr(b'\\', inner).is_none() {
        return std::str::from_utf8(inner).map(Cow::Borrowed).map_err(|_| wrong());
    }
    serde_json::from_slice(json).map(Cow::Owned).map_err(|_| wrong())
}

/// A line that is no document.
fn line_item(line: &[u8], each: &mut impl FnMut(Item<'_>)) -> Result<(), ReplyError> {
    let value: Value = serde_json::from_slice(line)
        .map_err(|error| form(&format!("a line is not JSON ({error})"), line))?;
    if let Some(progress) = value.get("continuation") {
        let token = progress.get("token").and_then(Value::as_str).map(str::to_owned);
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

/// A look at JSON from the front.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The first member of an object.
struct First<'a> {
    /// With its quotes.
    key: &'a [u8],
    value_from: usize,
}

impl<'a> Scan<'a> {
    fn first_member(object: &'a [u8]) -> Option<First<'a>> {
        let mut scan = Scan { bytes: object, at: 0 };
        (scan.take()? == b'{').then_some(())?;
        scan.blanks();
        let key = scan.string()?;
        scan.blanks();
        (scan.take()? == b':').then_some(())?;
        scan.blanks();
        scan.peek()?;
        Some(First { key, value_from: scan.at })
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn separators(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace() || byte == b',') {
            self.at += 1;
        }
    }

    /// A string with its quotes; none when it is not there, or not whole.
    fn string(&mut self) -> Option<&'a [u8]> {
        let begin = self.at;
        if self.peek() != Some(b'"') {
            return None;
        }
        let mut at = begin + 1;
        loop {
            let found = memchr::memchr2(b'"', b'\\', self.bytes.get(at..)?)?;
            if self.bytes[at + found] == b'"' {
                self.at = at + found + 1;
                return Some(&self.bytes[begin..self.at]);
            }
            at += found + 2;
        }
    }

    /// Any value; none when it is not whole.
    fn value(&mut self) -> Option<&'a [u8]> {
        let begin = self.at;
        match self.peek()? {
            b'"' => self.string(),
            b'{' | b'[' => {
                self.at += ContainerEnd::default().find(&self.bytes[begin..])?;
                Some(&self.bytes[begin..self.at])
            }
            _ => {
                let ends =
                    |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b'}' | b']');
                self.at += self.bytes[begin..].iter().position(ends)?;
                Some(&self.bytes[begin..self.at])
            }
        }
    }

    /// A string is not there: because it has not come yet, or because something else stands there.
    fn incomplete(&self, expected: &str) -> Result<Option<usize>, ReplyError> {
        match self.peek() {
            None | Some(b'"') => Ok(None),
            Some(_) => Err(form(expected, &self.bytes[self.at..])),
        }
    }
}

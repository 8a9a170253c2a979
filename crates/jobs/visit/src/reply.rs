//! Reads the reply to a visit while it arrives: one JSON object, or JSON lines.
//!
//! Vespa answers a visit in two forms: an object with the documents in an array, and, where a stream of JSON
//! lines was asked for, a line for each document and each step of progress. The first key tells them apart.

use super::item::{Item, document, line_item, on_one_line, token};
use super::json_front::Scan;
use super::reply_error::{ITEM_BYTES_MAX, ReplyError, form};
use plimsoll_core::holding::Hold;
use plimsoll_workloads::json_skip::{ContainerEnd, container_length};
use serde_json::Value;

/// Bytes of a member that are looked at again with every piece.
const OFTEN_BYTES: usize = 64 << 10;
/// A buffer above this many bytes is given back when it is empty.
const RETAINED_BYTES: usize = 1 << 20;

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
    hold: Hold,
    /// State of the search for the end of the current document or line.
    end: ContainerEnd,
    line_scanned: usize,
    /// A member that has not come whole is looked at again when this many bytes of it are there.
    wait_for: usize,
}

impl Default for ReplyReader {
    fn default() -> Self {
        Self {
            place: Place::Start,
            held: Vec::new(),
            hold: Hold::default(),
            end: ContainerEnd::default(),
            line_scanned: 0,
            wait_for: 0,
        }
    }
}

impl ReplyReader {
    /// Makes it ready for the next reply.
    pub fn clear(&mut self) {
        self.place = Place::Start;
        self.forget();
        self.end = ContainerEnd::default();
        self.line_scanned = 0;
        self.wait_for = 0;
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
        if !self.hold.covers(held.len() + piece.len()) {
            self.hold = Hold::default();
            return Err(ReplyError::NoRoom);
        }
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
        if result.is_err() || self.held.is_empty() {
            self.forget();
        }
        result
    }

    /// Forgets what was not used up, and gives back a buffer that has grown large.
    fn forget(&mut self) {
        self.held.clear();
        if self.held.capacity() > RETAINED_BYTES {
            self.held = Vec::new();
        }
        self.hold = Hold::default();
    }

    /// The reply is through.
    ///
    /// # Errors
    /// [`ReplyError::Truncated`] when it cannot be.
    pub fn end(&mut self, each: &mut impl FnMut(Item<'_>)) -> Result<(), ReplyError> {
        if std::mem::take(&mut self.wait_for) > 0 {
            self.feed(b"", each)?;
        }
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
            // From the front each time: twice as much must be there, or a reply in small pieces would take a time that grows
            // with the square of its length.
            Place::Start | Place::Key if bytes.len() < self.wait_for => Ok(None),
            Place::Start | Place::Key => {
                let is_start = self.place == Place::Start;
                let found = if is_start { self.start(bytes) } else { self.member(bytes, each) };
                let is_long = matches!(found, Ok(None)) && bytes.len() > OFTEN_BYTES;
                self.wait_for = if is_long { 2 * bytes.len() } else { 0 };
                found
            }
            Place::Lines => self.line(bytes, each),
            Place::Documents => self.element(bytes, each),
            Place::Done if bytes.iter().all(u8::is_ascii_whitespace) => Ok(None),
            Place::Done => Err(form("there are bytes after its end", bytes)),
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
                b"\"put\"" | b"\"remove\"" | b"\"id\"" => each(document(&on_one_line(line)?)?),
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
        // A wrong length of a chunk puts a line into its content. A continuation that is not recognised would end the slice.
        if key.iter().any(|&byte| byte < b' ') {
            return Err(form("a key is not JSON", bytes));
        }
        scan.blanks();
        match scan.take() {
            None => return Ok(None),
            Some(b':') => {}
            Some(_) => return Err(form("a colon is expected", bytes)),
        }
        scan.blanks();
        if key == b"\"documents\"" && scan.peek() == Some(b'[') {
            self.place = Place::Documents;
            each(Item::Documents);
            return Ok(Some(scan.at + 1));
        }
        let Some(value) = scan.value() else { return Ok(None) };
        let value: Value = serde_json::from_slice(value)
            .map_err(|error| form(&format!("a value is not JSON ({error})"), value))?;
        match (key, value) {
            (b"\"pathId\"", Value::String(path)) => each(Item::Path(path)),
            (b"\"continuation\"", value) => {
                // Without a token the slice is through.
                if let token @ Some(_) = token(value)? {
                    each(Item::Progress { token, percent: None });
                }
            }
            (b"\"documentCount\"", value) => {
                let count =
                    value.as_u64().ok_or_else(|| form("documentCount is not a count", bytes))?;
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
                each(document(&on_one_line(&bytes[scan.at..scan.at + length])?)?);
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

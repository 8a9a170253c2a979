//! Requests with places for values: cut into pieces once, filled without allocating.

use super::Rows;
use crate::render::{RenderedSet, put_decimal};
use thiserror::Error;

/// A place that cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// A request names an unknown column.
    #[error("'{{{{{name}}}}}' is not a column of the rows; they have {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The columns there are.
        known: String,
        /// Line of the request in its file.
        line: u64,
    },
    /// Braces are not closed, or not as they were opened.
    #[error("'{text}' is not closed; write {{{{name}}}} or {{{{{{name}}}}}}")]
    NotClosed {
        /// Text at its beginning.
        text: String,
        /// Line of the request in its file.
        line: u64,
    },
    /// A place in SQL where no value is safe.
    #[error(
        "'{text}' is between dollars, in a comment, after a backslash or in a literal with UESCAPE, where no value is safe; move it outside"
    )]
    NotSafe {
        /// Text at its beginning.
        text: String,
        /// Line of the request in its file.
        line: u64,
    },
    /// A value would break the request where it would stand.
    #[error("column '{name}': a value with a {what}, which cannot stand in {place}; {advice}")]
    Value {
        /// The column.
        name: String,
        /// Offending content.
        what: &'static str,
        /// Context of the place.
        place: &'static str,
        /// Remedy.
        advice: &'static str,
        /// Line of the row in its file.
        row_line: u64,
    },
}

/// The way a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    /// As it is.
    Raw,
    /// RFC 3986: all but unreserved characters percent-encoded.
    Percent,
    /// RFC 8259: escaped for the inside of a JSON string.
    Json,
    /// The same twice: for a string in a language that has JSON's escapes, inside of a JSON string.
    QuotedJson,
}

#[derive(Clone, Copy, Debug)]
enum Piece {
    /// From here to there in the bytes of the request.
    Text {
        from: u32,
        to: u32,
    },
    Value {
        column: u16,
        coding: Coding,
    },
    /// The number of bytes of the body.
    Length,
}

/// A place for a value at the beginning of a text.
pub(super) struct Found {
    /// The column.
    pub(super) column: usize,
    /// True if it has three braces.
    pub(super) raw: bool,
    /// Bytes of it, braces included.
    pub(super) length: usize,
}

/// The place that a text begins with, which begins with two braces.
pub(super) fn first_place(text: &[u8], line: u64, rows: &Rows) -> Result<Found, TemplateError> {
    let raw = text.starts_with(b"{{{");
    let (open, close): (usize, &[u8]) = if raw { (3, b"}}}") } else { (2, b"}}") };
    let rest = &text[open..];
    let not_closed = || TemplateError::NotClosed {
        text: String::from_utf8_lossy(&text[..text.len().min(40)]).trim().to_owned(),
        line,
    };
    let length = memchr::memmem::find(rest, close).ok_or_else(not_closed)?;
    let name = String::from_utf8_lossy(&rest[..length]).trim().to_owned();
    if name.contains(['{', '}']) {
        return Err(not_closed());
    }
    let column = rows.column(&name).ok_or_else(|| TemplateError::Unknown {
        known: rows.names().join(", "),
        name,
        line,
    })?;
    Ok(Found { column, raw, length: open + length + close.len() })
}

/// The pieces of every request of a [`RenderedSet`].
#[derive(Clone, Debug, Default)]
pub struct TemplateSet {
    pieces: Vec<Piece>,
    /// Ends of the pieces of each request's head and body.
    ends: Vec<(u32, u32)>,
}

/// Context of a value, which decides how it is written and what it may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Path,
    Header,
    Json,
    QuotedJson,
    Body,
}

const LENGTH: &[u8] = b"\r\nContent-Length: ";

impl TemplateSet {
    /// Cuts all requests of a set into pieces and looks at every value that they name.
    ///
    /// # Errors
    /// The first request that names an unknown column, and the first value that would break a request.
    pub fn new(set: &RenderedSet, rows: &Rows) -> Result<Self, TemplateError> {
        Self::with_json(set, rows, Place::Json)
    }

    /// The same for requests whose JSON holds texts in a language with strings of its own, such as YQL, in which values
    /// stand.
    ///
    /// # Errors
    /// As [`TemplateSet::new`].
    pub fn with_quoted(set: &RenderedSet, rows: &Rows) -> Result<Self, TemplateError> {
        Self::with_json(set, rows, Place::QuotedJson)
    }

    fn with_json(set: &RenderedSet, rows: &Rows, of_json: Place) -> Result<Self, TemplateError> {
        let mut templates = Self::default();
        let mut raw_in_path = vec![false; rows.names().len()];
        let mut in_header = raw_in_path.clone();
        for index in 0..set.len() {
            let (bytes, line) = (set.bytes(index), set.line(index));
            let body_at = memchr::memmem::find(bytes, b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
            let line_end = memchr::memchr(b'\r', bytes).unwrap_or(bytes.len()).min(body_at);
            let begins = bytes[body_at..].trim_ascii_start();
            let json = begins.starts_with(b"[")
                || (begins.starts_with(b"{") && !begins.starts_with(b"{{"));
            let start = templates.pieces.len();
            templates.cut(bytes, body_at..bytes.len(), line, rows, |_| {
                if json { of_json } else { Place::Body }
            })?;
            let of_body: Vec<Piece> = templates.pieces.drain(start..).collect();
            let place = |at| if at < line_end { Place::Path } else { Place::Header };
            match memchr::memmem::rfind(&bytes[..body_at], LENGTH) {
                Some(at) if of_body.len() > 1 || matches!(of_body[..], [Piece::Value { .. }]) => {
                    let digits = at + LENGTH.len();
                    let after = digits
                        + bytes[digits..].iter().position(|b| !b.is_ascii_digit()).unwrap_or(0);
                    templates.cut(bytes, 0..digits, line, rows, place)?;
                    templates.pieces.push(Piece::Length);
                    templates.cut(bytes, after..body_at, line, rows, place)?;
                }
                _ => templates.cut(bytes, 0..body_at, line, rows, place)?,
            }
            for piece in &templates.pieces[start..] {
                if let Piece::Value { column, coding: Coding::Raw } = piece {
                    // The head's raw values are those of headers, and those of the path with three braces.
                    in_header[*column as usize] = true;
                }
            }
            let head_end = templates.pieces.len() as u32;
            mark_raw_in_path(bytes, line_end, rows, &mut raw_in_path);
            templates.pieces.extend(of_body);
            templates.ends.push((head_end, templates.pieces.len() as u32));
        }
        check_values(rows, &in_header, &raw_in_path)?;
        Ok(templates)
    }

    /// Returns true if no request has a place for a value.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        !self.pieces.iter().any(|piece| matches!(piece, Piece::Value { .. }))
    }

    /// Cuts a range of a request into pieces.
    fn cut(
        &mut self,
        bytes: &[u8],
        range: std::ops::Range<usize>,
        line: u64,
        rows: &Rows,
        place: impl Fn(usize) -> Place,
    ) -> Result<(), TemplateError> {
        let (mut from, end) = (range.start, range.end);
        while let Some(found) = memchr::memmem::find(&bytes[from..end], b"{{") {
            let at = from + found;
            self.text(from, at);
            let own = first_place(&bytes[at..end], line, rows)?;
            let coding = match place(at) {
                _ if own.raw => Coding::Raw,
                Place::Path => Coding::Percent,
                Place::Json => Coding::Json,
                Place::QuotedJson => Coding::QuotedJson,
                Place::Header | Place::Body => Coding::Raw,
            };
            self.pieces.push(Piece::Value { column: own.column as u16, coding });
            from = at + own.length;
        }
        self.text(from, end);
        Ok(())
    }

    fn text(&mut self, from: usize, to: usize) {
        if from < to {
            self.pieces.push(Piece::Text { from: from as u32, to: to as u32 });
        }
    }

    /// Appends the request at `index` of the set that the templates were cut from, with the values of a row. `body` is
    /// scratch space.
    #[inline]
    pub fn fill(
        &self,
        request: &[u8],
        index: usize,
        rows: &Rows,
        row: usize,
        body: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        let start = if index == 0 { 0 } else { self.ends[index - 1].1 as usize };
        let (head_end, end) = self.ends[index];
        body.clear();
        for piece in &self.pieces[head_end as usize..end as usize] {
            put(piece, request, rows, row, 0, body);
        }
        for piece in &self.pieces[start..head_end as usize] {
            put(piece, request, rows, row, body.len(), out);
        }
        out.extend_from_slice(body);
    }
}

/// Notes the columns that stand in the request line with three braces.
fn mark_raw_in_path(bytes: &[u8], line_end: usize, rows: &Rows, marked: &mut [bool]) {
    let mut rest = &bytes[..line_end];
    while let Some(at) = memchr::memmem::find(rest, b"{{{") {
        rest = &rest[at + 3..];
        let Some(end) = memchr::memmem::find(rest, b"}}}") else { return };
        let name = String::from_utf8_lossy(&rest[..end]);
        if let Some(column) = rows.column(name.trim()) {
            marked[column] = true;
        }
    }
}

/// Looks for values that would end a line of the head, or the path.
fn check_values(rows: &Rows, in_head: &[bool], in_path: &[bool]) -> Result<(), TemplateError> {
    for column in 0..rows.names().len() {
        if !in_head[column] && !in_path[column] {
            continue;
        }
        for row in 0..rows.len() {
            let value = rows.value(row, column);
            let wrong = |what, place, advice| TemplateError::Value {
                name: rows.names()[column].clone(),
                what,
                place,
                advice,
                row_line: rows.line(row),
            };
            let control = |b: &u8| *b < 0x20 && *b != b'\t' || *b == 0x7f;
            if value.iter().any(control) {
                return Err(wrong("control character", "the head of a request", "take it out"));
            }
            if in_path[column] && value.iter().any(u8::is_ascii_whitespace) {
                return Err(wrong("blank", "a path as it is", "write two braces, which encode it"));
            }
        }
    }
    Ok(())
}

#[inline]
fn put(piece: &Piece, request: &[u8], rows: &Rows, row: usize, length: usize, out: &mut Vec<u8>) {
    match *piece {
        Piece::Text { from, to } => out.extend_from_slice(&request[from as usize..to as usize]),
        Piece::Length => put_decimal(out, length),
        Piece::Value { column, coding } => {
            let value = rows.value(row, column as usize);
            match coding {
                Coding::Raw => out.extend_from_slice(value),
                Coding::Percent => put_percent(value, out),
                Coding::Json => put_json(value, out),
                Coding::QuotedJson => put_quoted_json(value, out),
            }
        }
    }
}

const HEX_UPPER: &[u8; 16] = b"0123456789ABCDEF";
const HEX_LOWER: &[u8; 16] = b"0123456789abcdef";

fn put_percent(value: &[u8], out: &mut Vec<u8>) {
    for &byte in value {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(byte);
        } else {
            let (high, low) = (byte >> 4, byte & 15);
            out.extend_from_slice(&[b'%', HEX_UPPER[high as usize], HEX_UPPER[low as usize]]);
        }
    }
}

fn put_json(value: &[u8], out: &mut Vec<u8>) {
    for &byte in value {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[
                    HEX_LOWER[(byte >> 4) as usize],
                    HEX_LOWER[(byte & 15) as usize],
                ]);
            }
            _ => out.push(byte),
        }
    }
}

/// Twice [`put_json`]: its backslashes and quotes once more. The inner string may stand in single quotes too, of which JSON
/// knows nothing: one in the value gets a backslash of its own, which is two in JSON.
fn put_quoted_json(value: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    put_json(value, out);
    let backslashes = |byte: u8| match byte {
        b'"' | b'\\' => 1,
        b'\'' => 2,
        _ => 0,
    };
    let more: usize = out[start..].iter().map(|byte| backslashes(*byte)).sum();
    let (mut from, mut to) = (out.len(), out.len() + more);
    out.resize(to, 0);
    // From the end, so that nothing is overwritten before it has moved.
    while from > start {
        (from, to) = (from - 1, to - 1);
        let byte = out[from];
        out[to] = byte;
        for _ in 0..backslashes(byte) {
            to -= 1;
            out[to] = b'\\';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::Authority;
    use crate::render::{HttpForm, RequestParts};

    fn rows(text: &str) -> Rows {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.csv");
        std::fs::write(&path, text).unwrap();
        Rows::load(&path).unwrap()
    }

    fn set(requests: &[(&str, &str, Option<&str>)]) -> RenderedSet {
        let authority = Authority { host: "h".into(), port: 80, tls: false };
        let mut set = RenderedSet::default();
        for (index, (target, header, body)) in requests.iter().enumerate() {
            let headers = [("X-User".to_owned(), (*header).to_owned())];
            let form = HttpForm::new(&authority, &headers, false).unwrap();
            let body = body.map(str::as_bytes);
            let parts =
                RequestParts { method: "POST", target: target.as_bytes(), headers: &[], body };
            set.push(0, index as u64 + 1, |out| form.render(&parts, out));
        }
        set
    }

    fn filled(set: &RenderedSet, rows: &Rows, index: usize, row: usize) -> String {
        let templates = TemplateSet::new(set, rows).unwrap();
        let (mut body, mut out) = (Vec::new(), Vec::new());
        templates.fill(set.bytes(index), index, rows, row, &mut body, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_are_written_as_their_place_needs() {
        let rows = rows("term,user\nr\u{e4}d & \"blau\",7\nx,8\n");
        let requests = [
            (
                "/s?q={{term}}&u={{{user}}}",
                "{{user}}",
                Some("{\"q\":\"{{ term }}\",\"n\":{{{user}}}}"),
            ),
            ("/plain", "-", Some("{{term}}")),
            ("/none", "-", Some("{\"a\":{\"b\":1}}")),
        ];
        let set = set(&requests);
        let text = filled(&set, &rows, 0, 0);
        assert!(
            text.starts_with("POST /s?q=r%C3%A4d%20%26%20%22blau%22&u=7 HTTP/1.1\r\n"),
            "{text}"
        );
        assert!(text.contains("\r\nX-User: 7\r\n"), "{text}");
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "{\"q\":\"r\u{e4}d & \\\"blau\\\"\",\"n\":7}");
        assert!(head.contains(&format!("\r\nContent-Length: {}", body.len())), "{head}");
        let text = filled(&set, &rows, 1, 1);
        assert!(text.ends_with("\r\n\r\nx") && text.contains("Content-Length: 1\r\n"), "{text}");
        assert_eq!(filled(&set, &rows, 2, 0).as_bytes(), set.bytes(2));
    }

    #[test]
    fn json_escapes_are_read_back() {
        let value = "a\"b\\c\nd\re\tf\u{1}g\u{7f}";
        let mut out = Vec::new();
        put_json(value.as_bytes(), &mut out);
        let text = format!("\"{}\"", String::from_utf8(out).unwrap());
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), value);
    }

    #[test]
    fn filling_does_not_allocate_once_the_buffers_have_grown() {
        let rows = rows("term,user\nabc,7\ndefgh,8\n");
        let set = set(&[("/s?q={{term}}", "{{user}}", Some("{\"q\":\"{{term}}\"}"))]);
        let templates = TemplateSet::new(&set, &rows).unwrap();
        let (mut body, mut out) = (Vec::with_capacity(64), Vec::with_capacity(512));
        let before = (body.as_ptr(), out.as_ptr());
        for row in [0, 1, 0] {
            out.clear();
            templates.fill(set.bytes(0), 0, &rows, row, &mut body, &mut out);
        }
        assert_eq!((body.as_ptr(), out.as_ptr()), before);
    }

    #[test]
    fn what_cannot_be_filled_is_refused_with_its_line() {
        let error = |requests: &[(&str, &str, Option<&str>)], text: &str| {
            TemplateSet::new(&set(requests), &rows(text)).unwrap_err()
        };
        let unknown = error(&[("/a", "-", None), ("/b?{{trem}}", "-", None)], "term,user\nx,1\n");
        assert!(matches!(&unknown, TemplateError::Unknown { line: 2, .. }), "{unknown}");
        assert_eq!(
            unknown.to_string(),
            "'{{trem}}' is not a column of the rows; they have term, user"
        );
        let open = error(&[("/a", "-", Some("{{term"))], "term\nx\n");
        assert_eq!(open.to_string(), "'{{term' is not closed; write {{name}} or {{{name}}}");
        let blank = error(&[("/a?{{{term}}}", "-", None)], "term\nx\ntwo words\n");
        assert!(matches!(blank, TemplateError::Value { row_line: 3, .. }), "{blank}");
        let line = error(&[("/a", "{{term}}", None)], "term\n\"x\ny\"\n");
        assert!(line.to_string().contains("control character"), "{line}");
        assert!(
            TemplateSet::new(&set(&[("/a?{{term}}", "-", None)]), &rows("term\ntwo words\n"))
                .is_ok()
        );
    }

    #[test]
    fn a_string_inside_a_string_is_escaped_twice() {
        let rows = rows("w\n\"a\"\"b\\c'd\"\nplain\n");
        let body = r#"{"yql":"f contains \"{{w}}\" or g contains '{{w}}'"}"#;
        let set = set(&[("/", "x", Some(body))]);
        let templates = TemplateSet::with_quoted(&set, &rows).unwrap();
        let mut out = Vec::new();
        templates.fill(set.bytes(0), 0, &rows, 0, &mut Vec::new(), &mut out);
        let text = String::from_utf8(out).unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        let value: serde_json::Value = serde_json::from_str(body).unwrap();
        // One string of YQL, and nothing of the value behind it.
        assert_eq!(value["yql"], r#"f contains "a\"b\\c\'d" or g contains 'a\"b\\c\'d'"#);
        assert!(text.contains(&format!("Content-Length: {}\r\n", body.len())), "{text}");
    }
}

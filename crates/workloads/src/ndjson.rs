//! Requests as NDJSON: one object a line, `{"method","path","headers","body","class"}`.
//!
//! Only `path` is needed. `method` is GET by default; `body` is a text, or any other JSON value,
//! which is sent as the JSON it is; `class` names the class the request is counted in. Unknown keys
//! are errors, because a misspelt one would silently change what is measured.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::authority::Authority;
use crate::edit_distance::near_miss;
use crate::error::{InputError, Problem};
use crate::header::{check_header, is_token};
use crate::query_file::{
    ByteRange, Passes, ReadOptions, Record, RecordKind, RecordReader, SourceFile, check_target,
    to_path,
};

/// Longest line: 4 MiB. A longer one is an error.
pub const NDJSON_LINE_MAX_BYTES: usize = 4 * 1024 * 1024;
/// Most headers of one request.
pub const HEADERS_MAX: usize = 64;

const KEYS: [&str; 5] = ["method", "path", "headers", "body", "class"];

/// One request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NdjsonRequest {
    /// The method, such as GET.
    pub method: String,
    /// The request target; starts with `/`.
    pub path: String,
    /// Headers beside those of every request, in the order of the line.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub body: Option<Vec<u8>>,
    /// The class named on the line.
    pub class: Option<String>,
    /// Line in the file, from 1.
    pub line: u64,
}

/// Reads one line.
///
/// # Errors
/// The problem with it, and the remedy.
pub fn parse_line(line: &[u8]) -> Result<NdjsonRequest, Problem> {
    request_of(line, None)
}

/// The same where it is known to which servers requests go: a whole URL of the only one becomes its path.
fn request_of(line: &[u8], own: Option<&[Authority]>) -> Result<NdjsonRequest, Problem> {
    if memchr::memchr(0, line).is_some() {
        return Err(Problem::Nul);
    }
    let Fields(mut request) = serde_json::from_slice(line).map_err(|error| {
        // serde_json appends "at line 1 column N"; the line is known better from the file.
        let text = error.to_string();
        let text = text.split(" at line 1 column ").collect::<Vec<_>>();
        match text[..] {
            [what, column] if column != "0" => Problem::Json(format!("{what} (column {column})")),
            _ => Problem::Json(text[0].to_owned()),
        }
    })?;
    if request.path.is_empty() {
        let what = "no \"path\"; write at least {\"path\":\"/search/?query=test\"}";
        return Err(Problem::Json(what.into()));
    }
    if let Some(own) = own {
        let mut path = std::mem::take(&mut request.path).into_bytes();
        to_path(&mut path, own)?;
        request.path = String::from_utf8(path).map_err(|error| Problem::Json(error.to_string()))?;
    }
    if !request.path.starts_with('/') {
        let what = format!(
            "path '{}' does not start with '/'; write the path only, such as /search/?query=test",
            request.path.escape_debug()
        );
        return Err(Problem::Json(what));
    }
    check_target(request.path.as_bytes())?;
    if !is_token(&request.method) {
        let what = format!("method '{}' is not one word", request.method.escape_debug());
        return Err(Problem::Json(what));
    }
    for (name, value) in &request.headers {
        check_header(name, value).map_err(Problem::Header)?;
    }
    Ok(request)
}

/// The fields of a line as they come.
struct Fields(NdjsonRequest);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object such as {\"path\":\"/search/?query=test\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut request = NdjsonRequest { method: "GET".into(), ..NdjsonRequest::default() };
        let mut seen = [false; KEYS.len()];
        while let Some(key) = map.next_key::<String>()? {
            let Some(which) = KEYS.iter().position(|known| *known == key) else {
                return Err(A::Error::custom(unknown_key(&key)));
            };
            if std::mem::replace(&mut seen[which], true) {
                return Err(A::Error::custom(format!(
                    "key \"{key}\" is a duplicate; write it once"
                )));
            }
            match which {
                0 => request.method = map.next_value()?,
                1 => request.path = map.next_value()?,
                2 => request.headers = map.next_value::<Headers>()?.0,
                3 => {
                    request.body = body_bytes(map.next_value::<Box<RawValue>>()?.get())
                        .map_err(A::Error::custom)?
                }
                _ => request.class = map.next_value()?,
            }
        }
        Ok(Fields(request))
    }
}

fn unknown_key(key: &str) -> String {
    let key_shown = key.escape_debug();
    match near_miss(key, &KEYS) {
        Some(meant) => format!("unknown key \"{key_shown}\"; did you mean \"{meant}\"?"),
        None => format!("unknown key \"{key_shown}\"; known are {}", KEYS.join(", ")),
    }
}

/// A text is sent as it is, null as no body, anything else as the JSON that was written.
fn body_bytes(text: &str) -> Result<Option<Vec<u8>>, serde_json::Error> {
    Ok(match text.as_bytes().first() {
        Some(b'"') => Some(serde_json::from_str::<String>(text)?.into_bytes()),
        Some(b'n') => None,
        _ => Some(text.as_bytes().to_vec()),
    })
}

struct Headers(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HeadersVisitor;
        impl<'de> Visitor<'de> for HeadersVisitor {
            type Value = Headers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of header names and texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
                let mut headers = Vec::new();
                while let Some(entry) = map.next_entry::<String, String>()? {
                    if headers.len() == HEADERS_MAX {
                        return Err(A::Error::custom("more than 64 headers"));
                    }
                    headers.push(entry);
                }
                Ok(Headers(headers))
            }
        }
        deserializer.deserialize_map(HeadersVisitor)
    }
}

/// Streams the requests of a file (plain or gzip) in bounded memory.
pub struct NdjsonReader {
    records: RecordReader,
    source: SourceFile,
    record: Record,
    /// The servers that requests go to, where they are known.
    own: Option<Arc<[Authority]>>,
}

impl NdjsonReader {
    /// Opens a file or a byte range of it; see [`RecordReader::open`].
    ///
    /// # Errors
    /// When the file is missing, empty or cannot be read.
    pub fn open(path: &Path, range: ByteRange, passes: Passes) -> Result<Self, InputError> {
        Self::of(SourceFile::open(path)?, range, passes)
    }

    /// As [`NdjsonReader::open`], for a file that was opened before.
    ///
    /// # Errors
    /// When it is empty or cannot be read.
    pub fn of(
        mut source: SourceFile,
        range: ByteRange,
        passes: Passes,
    ) -> Result<Self, InputError> {
        let options = ReadOptions {
            kind: RecordKind::Line,
            line_max_bytes: NDJSON_LINE_MAX_BYTES,
            base64: false,
            own: None,
        };
        let records = RecordReader::open(&mut source, &options, range, passes)?;
        Ok(Self { records, source, record: Record::default(), own: None })
    }

    /// The same for requests that go to these servers: a `path` that is a whole URL of the only one is taken as its path.
    #[must_use]
    pub fn going_to(mut self, own: Arc<[Authority]>) -> Self {
        self.own = Some(own);
        self
    }

    /// The next request; `None` when all passes are over.
    ///
    /// # Errors
    /// [`InputError::Line`] with file and line for a line that is no request.
    pub fn next_request(&mut self) -> Result<Option<NdjsonRequest>, InputError> {
        if !self.records.next_repeating(&mut self.record)? {
            return Ok(None);
        }
        match request_of(&self.record.target, self.own.as_deref()) {
            Ok(mut request) => {
                request.line = self.record.line;
                Ok(Some(request))
            }
            Err(problem) => {
                let line = self.records.true_line(&self.record);
                Err(InputError::line(self.source.path(), line, problem))
            }
        }
    }
}

/// Reads a whole file. The caller sees to it that it is small enough.
///
/// # Errors
/// The first wrong line; [`InputError::Empty`] if there is no request.
pub fn load(path: &Path) -> Result<Vec<NdjsonRequest>, InputError> {
    let mut reader = NdjsonReader::open(path, ByteRange::WHOLE, Passes::Count(1))?;
    let mut requests = Vec::new();
    while let Some(request) = reader.next_request()? {
        requests.push(request);
    }
    if requests.is_empty() {
        return Err(InputError::Empty { path: path.to_owned() });
    }
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_line_and_a_short_one() {
        let full = br#"{"method":"POST","path":"/s","headers":{"X-A":"1","B":""},
            "body":{"b":1.0, "a":[]},"class":"fuzzy"}"#;
        let request = parse_line(full).unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/s"));
        assert_eq!(request.headers, [("X-A".into(), "1".into()), ("B".into(), String::new())]);
        assert_eq!(request.body.unwrap(), br#"{"b":1.0, "a":[]}"#);
        assert_eq!(request.class.unwrap(), "fuzzy");

        let short = parse_line(br#"{"path":"/?q=a"}"#).unwrap();
        assert_eq!((short.method.as_str(), short.body, short.class), ("GET", None, None));
        assert_eq!(parse_line(br#"{"path":"/","body":"a\nb"}"#).unwrap().body.unwrap(), b"a\nb");
        assert_eq!(parse_line(br#"{"path":"/","body":null,"class":null}"#).unwrap().body, None);
    }

    #[test]
    fn wrong_lines_say_what_and_what_next() {
        for (line, expected) in [
            (r#"{"path":"/","metod":"GET"}"#, r#"unknown key "metod"; did you mean "method"?"#),
            (r#"{"path":"/","zzz":1}"#, r#"unknown key "zzz"; known are method"#),
            (r#"{"path":"/","path":"/"}"#, "is a duplicate"),
            (r#"{"method":"GET"}"#, r#"no "path""#),
            (r#"{"path":"a"}"#, "does not start with '/'"),
            (r#"{"path":"/a b"}"#, "blank in the URL at column 3"),
            (r#"{"path":"/a\u0007"}"#, "control character 0x07"),
            (r#"{"path":"/","method":"GE T"}"#, "is not one word"),
            (r#"{"path":"/","headers":{"A":"x\r\nB: y"}}"#, "control character (\\r) in its value"),
            (r#"{"path":"/","headers":{"A b":"x"}}"#, "header name 'A b'"),
            (r#"{"path":"/","headers":[1]}"#, "expected an object of header names"),
            (r#"{"path":3}"#, "expected a string"),
            (r#"["/"]"#, "expected an object such as"),
            ("/search/?q=a", "expected value (column 1)"),
            (r#"{"path":"/""#, "EOF while parsing an object"),
            (r#"{"path":"/"} x"#, "trailing characters"),
        ] {
            let error = parse_line(line.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{line} -> {error}");
        }
    }

    #[test]
    fn whole_urls_of_the_only_server_are_their_paths() {
        let own = [Authority { host: "h".to_owned(), port: 8080, tls: false }];
        let read = |path: &str| {
            let line = serde_json::json!({ "path": path }).to_string();
            request_of(line.as_bytes(), Some(&own)).map(|request| request.path)
        };
        assert_eq!(read("http://h:8080/a?q=\u{e4}#x").unwrap(), "/a?q=\u{e4}");
        assert_eq!(read("/a?b=http://x/").unwrap(), "/a?b=http://x/");
        for (path, told) in [
            ("http://other:8080/a", "is not at http://h:8080"),
            ("https://h:8080/a", "is not at http://h:8080"),
            ("ok", "write /ok"),
            ("http://h:8080/a b", "blank in the URL"),
        ] {
            let problem = read(path).unwrap_err().to_string();
            assert!(problem.contains(told) && !problem.contains('\n'), "{path}: {problem}");
        }
    }

    #[test]
    fn errors_name_file_and_line_even_in_a_range() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q.ndjson");
        let mut text = "{\"path\":\"/a\"}\n\n".repeat(20);
        text.push_str("{\"pat\":\"/a\"}\n");
        std::fs::write(&path, &text).unwrap();
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("q.ndjson:41: unknown key \"pat\"; did you mean"), "{error}");

        let range = ByteRange { index: 2, of: 3 };
        let mut reader = NdjsonReader::open(&path, range, Passes::Count(1)).unwrap();
        let error = loop {
            match reader.next_request() {
                Ok(found) => assert!(found.is_some()),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("q.ndjson:41: "), "{error}");
    }
}

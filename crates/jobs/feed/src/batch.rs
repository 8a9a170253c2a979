//! Operations on their way from the reader to the shards, many at a time.

use super::operation::{Kind, Operation};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_wire::vespa::push_document_path;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::Range;

/// Parameters that go with every operation.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    /// Longest time that the server may take for one, ms.
    pub timeout_ms: Option<u64>,
    /// Vespa's route.
    pub route: Option<String>,
    /// Answered by the server without being looked at.
    pub dry_run: bool,
}

/// Facts about an operation besides its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Put, update or remove.
    pub kind: Kind,
    /// True if an update makes the document.
    pub create: bool,
    /// A hash of the document's id: operations of the same number keep their order.
    pub key: u64,
    /// Its number in the whole input, from 1.
    pub number: u64,
    /// Index of its file.
    pub file: u32,
    /// Its line in that file, from 1.
    pub line: u64,
    /// Ends of its fields: the id with quotes, the condition with quotes, the request target, the body.
    ends: [u32; 4],
}

impl Item {
    fn part(&self, index: usize) -> Range<usize> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        start as usize..self.ends[index] as usize
    }

    /// The id as JSON.
    #[must_use]
    pub fn id_json<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.part(0)]
    }

    /// The request target: path and parameters.
    #[must_use]
    pub fn target<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.part(2)]
    }

    /// The body of the request; empty for a remove.
    #[must_use]
    pub fn body<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.part(3)]
    }

    /// Appends the operation as a line that can be fed again.
    pub fn write_line(&self, bytes: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(b"{\"");
        out.extend_from_slice(self.kind.key().as_bytes());
        out.extend_from_slice(b"\":");
        out.extend_from_slice(self.id_json(bytes));
        let condition = &bytes[self.part(1)];
        if !condition.is_empty() {
            out.extend_from_slice(b",\"condition\":");
            out.extend_from_slice(condition);
        }
        if self.create {
            out.extend_from_slice(b",\"create\":true");
        }
        match self.body(bytes) {
            [] => out.push(b'}'),
            body => {
                out.push(b',');
                out.extend_from_slice(&body[1..]);
            }
        }
        one_line(&mut out[start..]);
        out.push(b'\n');
    }
}

/// Replaces line ends by tabs. Between the parts of JSON, both are blanks. In its strings, both are invalid: an operation that was
/// rejected for a line end in a string is rejected again.
pub(super) fn one_line(text: &mut [u8]) {
    for byte in text.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b'\t';
    }
}

/// Operations and their bytes, one after the other.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    items: Vec<(usize, Item)>,
    /// The number that have been taken.
    taken: usize,
    /// Space for a path.
    path: String,
}

impl Batch {
    /// The number that are left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len() - self.taken
    }

    /// Returns true if none is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of bytes that it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Empties it and keeps its memory, unless one long operation has made that large.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(4 << 20);
        self.items.clear();
        self.taken = 0;
    }

    /// The operation at `index` of all, whether it was taken or not, and its bytes.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<(Item, &[u8])> {
        let (start, item) = *self.items.get(index)?;
        Some((item, &self.bytes[start..start + item.ends[3] as usize]))
    }

    /// The next operation and its bytes.
    pub fn take(&mut self) -> Option<(Item, &[u8])> {
        let (start, item) = *self.items.get(self.taken)?;
        self.taken += 1;
        Some((item, &self.bytes[start..start + item.ends[3] as usize]))
    }

    /// Adds an operation, rendered as far as it does not depend on the target. `place`: number, file and line.
    pub fn push(
        &mut self,
        operation: &Operation<'_>,
        place: (u64, u32, u64),
        parameters: &Parameters,
    ) {
        let start = self.bytes.len();
        let out = &mut self.bytes;
        let mut ends = [0; 4];
        out.extend_from_slice(operation.id_json);
        ends[0] = (out.len() - start) as u32;
        if let Some((_, json)) = &operation.condition {
            out.extend_from_slice(json);
        }
        ends[1] = (out.len() - start) as u32;
        self.path.clear();
        push_document_path(&mut self.path, &operation.id);
        put_parameters(&mut self.path, operation, parameters);
        out.extend_from_slice(self.path.as_bytes());
        ends[2] = (out.len() - start) as u32;
        if operation.kind != Kind::Remove {
            out.extend_from_slice(b"{\"fields\":");
            out.extend_from_slice(operation.fields);
            out.push(b'}');
        }
        ends[3] = (out.len() - start) as u32;
        let (number, file, line) = place;
        let (kind, create, key) = (operation.kind, operation.create, key_of(operation));
        self.items.push((start, Item { kind, create, key, number, file, line, ends }));
    }
}

/// The hash by which operations on the same document are known. Two documents of the same hash wait for each
/// other without need, and that is all.
pub(super) fn key_of(operation: &Operation<'_>) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(operation.id.as_str())
}

fn put_parameters(target: &mut String, operation: &Operation<'_>, parameters: &Parameters) {
    let mut mark = '?';
    let mut put = |name: &str, value: &str| {
        target.push(mark);
        target.push_str(name);
        target.push('=');
        target.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
        mark = '&';
    };
    if let Some((condition, _)) = &operation.condition {
        put("condition", condition);
    }
    if operation.create {
        put("create", "true");
    }
    if let Some(ms) = parameters.timeout_ms {
        put("timeout", &format!("{ms}ms"));
    }
    if let Some(route) = &parameters.route {
        put("route", route);
    }
    if parameters.dry_run {
        put("dryRun", "true");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::parse;

    fn one(text: &str, parameters: &Parameters) -> (Item, Vec<u8>) {
        let mut batch = Batch::default();
        batch.push(&parse(text.as_bytes()).unwrap(), (7, 1, 3), parameters);
        let (item, bytes) = batch.take().unwrap();
        (item, bytes.to_vec())
    }

    #[test]
    fn operations_become_targets_and_bodies() {
        let parameters = Parameters::default();
        let text = r#"{"update":"id:n:t:n=7:a/b c","condition":"t.x == \"y&z\"","create":true,"fields":{"a":{"assign":1}}}"#;
        let (item, bytes) = one(text, &parameters);
        assert_eq!(
            String::from_utf8_lossy(item.target(&bytes)),
            "/document/v1/n/t/number/7/a%2Fb%20c?condition=t%2Ex%20%3D%3D%20%22y%26z%22&create=true"
        );
        assert_eq!(item.body(&bytes), br#"{"fields":{"a":{"assign":1}}}"#);
        assert_eq!((item.number, item.file, item.line), (7, 1, 3));
        let parameters =
            Parameters { timeout_ms: Some(1500), route: Some("default".to_owned()), dry_run: true };
        let (item, bytes) = one(r#"{"remove":"id:n:t::x"}"#, &parameters);
        let target = "/document/v1/n/t/docid/x?timeout=1500ms&route=default&dryRun=true";
        assert_eq!(item.target(&bytes), target.as_bytes());
        assert_eq!(item.body(&bytes), b"");
    }

    /// A blank would make it valid, with another text.
    #[test]
    fn a_line_end_in_a_string_stays_invalid() {
        for line_end in ["\n", "\r", "\\\n"] {
            let text = format!("{{\"put\":\"id:n:t::x\",\n\"fields\":{{\"a\":\"b{line_end}c\"}}}}");
            let (item, bytes) = one(&text, &Parameters::default());
            let mut line = Vec::new();
            item.write_line(&bytes, &mut line);
            assert_eq!(memchr::memchr2_iter(b'\n', b'\r', &line).count(), 1);
            assert!(serde_json::from_slice::<serde_json::Value>(&line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn a_line_reads_back_as_the_same_operation() {
        for text in [
            r#"{"put":"id:n:t::x","fields":{"a":"b"}}"#,
            "{\"id\":\"id:n:t::\\u00e6\",\r\n\"fields\":{\n\"a\":\t[1,\n2]}}",
            r#"{"update":"id:n:t:g=q:x","create":true,"condition":"a \"b\"","fields":{}}"#,
            r#"{"remove":"id:n:t::x","condition":"t.a == 1"}"#,
        ] {
            let (item, bytes) = one(text, &Parameters::default());
            let mut line = Vec::new();
            item.write_line(&bytes, &mut line);
            assert_eq!(memchr::memchr_iter(b'\n', &line).count(), 1);
            let line = line.trim_ascii_end();
            let tree = |text: &[u8]| -> serde_json::Value { serde_json::from_slice(text).unwrap() };
            let mut expected = tree(text.as_bytes());
            if let Some(id) = expected.as_object_mut().and_then(|map| map.remove("id")) {
                expected["put"] = id;
            }
            assert_eq!(tree(line), expected);
            let (again, other) = one(std::str::from_utf8(line).unwrap(), &Parameters::default());
            assert_eq!((again.key, again.target(&other)), (item.key, item.target(&bytes)));
        }
    }
}

//! Files of requests and of rows, and the texts that stand in flags.

use crate::file::MemoryFile;
use crate::holds::{choice, one_line};
use crate::memory::{Allowed, within};
use plimsoll_workloads::authority::Authority;
use plimsoll_workloads::checks::{Checks, Seen, Shown};
use plimsoll_workloads::classes::Classes;
use plimsoll_workloads::corpus::{Corpus, CorpusOptions, Source};
use plimsoll_workloads::header::{check_verbatim, parse_header};
use plimsoll_workloads::json_scan::{self, Pointer};
use plimsoll_workloads::json_skip::container_length;
use plimsoll_workloads::ndjson;
use plimsoll_workloads::query_file::{ReadOptions, Record, RecordKind, RecordParser};
use plimsoll_workloads::rows::{Rows, fill_sql, fill_text};
use plimsoll_workloads::sql::{SqlMode, SqlSet};
use plimsoll_workloads::volt_calls::CallSet;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

const FILE_MEMORY: Allowed = Allowed { base: 400_000, each: 300 };

/// Bytes that are read in pieces.
struct Slow<'b> {
    bytes: &'b [u8],
    size: usize,
}

impl Read for Slow<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let size = self.size.max(1).min(out.len()).min(self.bytes.len());
        let (piece, rest) = self.bytes.split_at(size);
        out[..size].copy_from_slice(piece);
        self.bytes = rest;
        Ok(size)
    }
}

fn records(bytes: &[u8], size: usize, options: &ReadOptions) -> (Vec<Record>, u64, Option<String>) {
    let mut parser = RecordParser::new(Slow { bytes, size }, Path::new("q.txt"), options);
    let (mut seen, mut record) = (Vec::new(), Record::default());
    let error = loop {
        match parser.next_record(&mut record) {
            Ok(true) => seen.push(record.clone()),
            Ok(false) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    (seen, parser.skipped(), error)
}

/// A query file. The first byte chooses its form, the second is the length of the pieces.
///
/// # Panics
/// When a property does not hold.
pub fn query_files(bytes: &[u8]) {
    let (form, bytes) = choice(bytes);
    let (size, bytes) = choice(bytes);
    let kind = [RecordKind::Get, RecordKind::Post, RecordKind::Line][usize::from(form) % 3];
    let mut options = ReadOptions::new(kind);
    options.line_max_bytes = 1024;
    options.base64 = form & 4 != 0;
    let own = Authority { host: "h".to_owned(), port: 80, tls: false };
    options.own = (form & 8 != 0).then(|| Arc::from([own]));
    let whole = within(bytes.len(), FILE_MEMORY, || records(bytes, usize::MAX, &options));
    assert_eq!(
        records(bytes, size.into(), &options),
        whole,
        "in pieces of {size} bytes, and whole"
    );
    whole.2.iter().for_each(one_line);
    for record in &whole.0 {
        // A blank or a control character would end the request line early.
        let is_sound = |byte: &u8| *byte > b' ' && *byte != 0x7f;
        let is_checked = kind != RecordKind::Line;
        assert!(!is_checked || record.target.iter().all(is_sound), "{record:?}");
        assert!(options.own.is_none() || !is_checked || record.target.starts_with(b"/"));
    }
}

/// A line of requests in NDJSON.
///
/// # Panics
/// When a property does not hold.
pub fn ndjson_lines(bytes: &[u8]) {
    match within(bytes.len(), FILE_MEMORY, || ndjson::parse_line(bytes)) {
        Err(problem) => one_line(&problem),
        Ok(request) => {
            // What is accepted is JSON for others, too, and means the same. A number of any size is JSON, and a body may have it.
            let Ok(object) = serde_json::from_slice::<BTreeMap<String, Box<RawValue>>>(bytes)
            else {
                panic!("accepted, and not JSON: {}", bytes.escape_ascii());
            };
            let path = object.get("path").and_then(|path| serde_json::from_str(path.get()).ok());
            assert_eq!(path, Some(request.path.clone()));
            let is_sound = |byte: u8| byte > b' ' && byte != 0x7f;
            assert!(request.path.bytes().all(is_sound) && request.path.starts_with('/'));
            assert!(!request.method.is_empty() && request.method.bytes().all(is_sound));
            for (name, value) in &request.headers {
                assert!(name.bytes().all(is_sound) && !value.contains(['\r', '\n', '\0']));
            }
        }
    }
}

/// A file of rows, plain or compressed.
///
/// # Panics
/// When a property does not hold.
pub fn rows(bytes: &[u8]) {
    let file = MemoryFile::of(bytes);
    let allowed = Allowed { base: 700_000, each: 5000 };
    match within(bytes.len(), allowed, || Rows::load(file.path())) {
        Err(error) => one_line(&error),
        Ok(rows) => {
            compare_with_csv(bytes, &rows);
            let name = &rows.names()[0];
            for row in 0..rows.len().min(10) {
                let template = format!("select {{{name}}}");
                let text = fill_text(&template, &rows, row);
                let sql = fill_sql(&template, &rows, row);
                text.err().iter().for_each(one_line);
                sql.err().iter().for_each(one_line);
            }
        }
    }
}

/// Rows that are accepted are the same for the csv crate.
fn compare_with_csv(bytes: &[u8], rows: &Rows) {
    // Both readers leave out one byte order mark, which editors write.
    let begins = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let begins = begins.iter().find(|byte| !byte.is_ascii_whitespace());
    if bytes.starts_with(&[0x1f, 0x8b]) || begins == Some(&b'{') {
        return;
    }
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
    let Ok(names) = reader.byte_headers().cloned() else { return };
    // Names are shown, and values are sent as they are.
    let shown: Vec<_> = names.iter().map(String::from_utf8_lossy).collect();
    let shown: Vec<&str> = shown.iter().map(|name| name.trim()).collect();
    assert_eq!(rows.names(), shown);
    let mut count = 0;
    for (number, record) in reader.byte_records().enumerate() {
        let Ok(record) = record else { return };
        let own: Vec<&[u8]> =
            (0..rows.names().len()).map(|column| rows.value(number, column)).collect();
        assert_eq!(own, record.iter().collect::<Vec<_>>(), "row {number}");
        count += 1;
    }
    assert_eq!(count, rows.len());
}

/// Statements of SQL and calls of VoltDB, a line each.
///
/// # Panics
/// When a property does not hold.
pub fn statement_files(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    within(bytes.len(), FILE_MEMORY, || {
        for way in [SqlMode::Simple, SqlMode::Prepared] {
            match SqlSet::parse(&text, way, &mut Classes::default()) {
                Ok(set) => assert!((0..set.len()).all(|index| !set.sql(index).is_empty())),
                Err(error) => one_line(&error),
            }
        }
        CallSet::parse(&text, &mut Classes::default()).err().iter().for_each(one_line);
    });
}

/// A file of documents, plain or compressed.
///
/// # Panics
/// When a property does not hold.
pub fn corpora(bytes: &[u8]) {
    let file = MemoryFile::of(bytes);
    let source = Source::Ndjson(file.path().to_owned());
    let allowed = Allowed { base: 700_000, each: 5000 };
    within(bytes.len(), allowed, || {
        let documents = match Corpus::open(&source, &CorpusOptions::default()) {
            Ok(corpus) => corpus.documents(),
            Err(error) => return one_line(&error),
        };
        let documents = match documents {
            Ok(documents) => documents,
            Err(error) => return one_line(&error),
        };
        for document in documents {
            match document {
                Ok(document) => {
                    let mut line = Vec::new();
                    document.to_ndjson(&mut line);
                    assert!(serde_json::from_slice::<Value>(&line).is_ok());
                }
                Err(error) => one_line(&error),
            }
        }
    });
}

/// A JSON text and, before the first line end, a pointer into it: what is found is what serde_json finds.
///
/// # Panics
/// When a property does not hold.
pub fn json(bytes: &[u8]) {
    let at = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (pointer, json) = (&bytes[..at], bytes.get(at + 1..).unwrap_or_default());
    let pointer = std::str::from_utf8(pointer).ok().and_then(Pointer::parse);
    let value = serde_json::from_slice::<Value>(json);
    within(bytes.len(), Allowed { base: 2000, each: 4 }, || {
        let _ = json_scan::members(json).count() + json_scan::elements(json).count();
        let _ = pointer.as_ref().map(|pointer| pointer.find(json));
    });
    let Ok(value) = value else { return };
    let trimmed = json.trim_ascii();
    if trimmed.starts_with(b"{") || trimmed.starts_with(b"[") {
        assert_eq!(container_length(trimmed), Some(trimmed.len()));
    }
    match &value {
        Value::Object(object) => {
            let own: Vec<_> = json_scan::members(json).collect();
            // Of members with one name serde_json keeps the last.
            assert!(own.len() >= object.len());
            for (key, value) in own {
                assert!(serde_json::from_slice::<String>(key).is_ok());
                assert!(serde_json::from_slice::<Value>(value).is_ok());
            }
        }
        Value::Array(array) => {
            let own: Vec<Value> = json_scan::elements(json)
                .map_while(|element| serde_json::from_slice(element).ok())
                .collect();
            assert_eq!(&own, array);
        }
        _ => assert_eq!(json_scan::members(json).count() + json_scan::elements(json).count(), 0),
    }
    if let Some(found) = pointer.as_ref().and_then(|pointer| pointer.find(json)) {
        let found = serde_json::from_slice::<Value>(found);
        assert!(found.is_ok(), "a value is cut");
    }
}

/// Rules for classes and checks, headers, and a reply that the checks judge: parts divided by byte 0.
///
/// # Panics
/// When a property does not hold.
pub fn rules(bytes: &[u8]) {
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let rule = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let body = parts.next().unwrap_or_default();
    // A small regular expression may stand for a large machine; the crate bounds it at some megabytes.
    let allowed = Allowed { base: 24 << 20, each: 2000 };
    within(bytes.len(), allowed, || {
        match Checks::new(&[rule.as_str()]) {
            Ok(checks) => {
                for shown in [Shown::Whole, Shown::Cut, Shown::Coded] {
                    let seen = Seen { status: 200, body, shown, hits: Some(3), service_ns: 1 };
                    let is_failure = checks.judge(&seen).is_err();
                    let explained = checks.explain(&seen);
                    explained.iter().for_each(one_line);
                    assert_eq!(explained.is_some(), is_failure);
                }
            }
            Err(error) => one_line(&error),
        }
        match Classes::new(&[rule.as_str()]) {
            Ok(mut classes) => {
                let _ = classes.classify(None, body, b"");
            }
            Err(error) => one_line(&error),
        }
        match parse_header(&rule) {
            Ok((name, value)) => assert!(!format!("{name}{value}").contains(['\r', '\n', '\0'])),
            Err(error) => one_line(&error),
        }
        check_verbatim(&rule).err().iter().for_each(one_line);
    });
}

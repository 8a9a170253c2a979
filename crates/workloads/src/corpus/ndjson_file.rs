//! Documents of the user's: one JSON object a line.
//!
//! `title` or `body` must be there and be texts. `category` and `author` (texts), `score` (a whole
//! number) and `id` (a text or whole number) may be missing; then they are empty, 0, and the number
//! of the line. The fields may also stand under `fields`, with the id in `id` or `put`, as in
//! Vespa's feed files. Other fields are ignored, because real files have many. A line may have 16
//! MiB.

use std::path::Path;

use serde_json::{Map, Value};

use super::{CorpusError, Document, Documents};
use crate::error::InputError;
use crate::query_file::{
    ByteRange, Passes, ReadOptions, Record, RecordKind, RecordReader, SourceFile,
};

/// Longest line.
const LINE_MAX_BYTES: usize = 16 * 1024 * 1024;

fn open(path: &Path) -> Result<RecordReader, InputError> {
    let options = ReadOptions {
        kind: RecordKind::Line,
        line_max_bytes: LINE_MAX_BYTES,
        base64: false,
        own: None,
    };
    let mut source = SourceFile::open(path)?;
    RecordReader::open(&mut source, &options, ByteRange::WHOLE, Passes::Count(1))
}

/// Sees to it that there is a first document and that it can be read.
pub(super) fn check(path: &Path) -> Result<(), CorpusError> {
    match documents(path)?.next() {
        Some(first) => first.map(|_| ()),
        None => Err(InputError::Empty { path: path.to_owned() }.into()),
    }
}

pub(super) fn documents(path: &Path) -> Result<Documents, CorpusError> {
    let (mut reader, mut record) = (open(path)?, Record::default());
    let path = path.to_owned();
    let mut over = false;
    Ok(Box::new(std::iter::from_fn(move || {
        if over {
            return None;
        }
        let next = match reader.next_record(&mut record) {
            Ok(false) => None,
            Ok(true) => Some(parse(&record.target, record.line).map_err(|problem| {
                CorpusError::Line { path: path.clone(), line: record.line, problem }
            })),
            Err(error) => Some(Err(error.into())),
        };
        over = !matches!(next, Some(Ok(_)));
        next
    })))
}

fn parse(line: &[u8], number: u64) -> Result<Document, String> {
    let whole: Map<String, Value> = serde_json::from_slice(line).map_err(|error| {
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or_default();
        format!("{what} (column {}); each line must be one JSON object", error.column())
    })?;
    let fields = match whole.get("fields") {
        Some(Value::Object(fields)) => fields,
        _ => &whole,
    };
    let text = |key: &str| match fields.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("\"{key}\" is not a text; put it in quotes")),
    };
    let score = match fields.get("score") {
        None | Some(Value::Null) => 0,
        Some(value) => value
            .as_i64()
            .ok_or_else(|| "\"score\" is not a whole number of 64 bits; round it".to_owned())?,
    };
    let id = match whole.get("id").or_else(|| whole.get("put")) {
        None | Some(Value::Null) => number.to_string(),
        Some(Value::String(id)) if !id.is_empty() => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        Some(_) => return Err("\"id\" is neither a text nor a number; leave it out".into()),
    };
    let document = Document {
        id,
        title: text("title")?,
        body: text("body")?,
        category: text("category")?,
        author: text("author")?,
        score,
    };
    if document.title.is_empty() && document.body.is_empty() {
        return Err("neither \"title\" nor \"body\"; name the text's field one of these".into());
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Result<Document, String>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.ndjson");
        std::fs::write(&path, text).unwrap();
        let prefix = format!("{}/", dir.path().display());
        let clean = |e: CorpusError| e.to_string().replace(&prefix, "");
        match documents(&path) {
            Ok(all) => all.map(|one| one.map_err(clean)).collect(),
            Err(error) => vec![Err(clean(error))],
        }
    }

    #[test]
    fn fields_are_read_by_name() {
        let found = read(concat!(
            "{\"id\":7,\"title\":\"t\",\"body\":\"b\",\"category\":\"c\",",
            "\"author\":\"a\",\"score\":-5,\"x\":[]}\n",
            "\n{\"body\":\"only\"}\n",
            "{\"put\":\"id:n:doc::1\",\"fields\":{\"title\":\"v\"}}\n",
        ));
        let found: Vec<Document> = found.into_iter().map(Result::unwrap).collect();
        assert_eq!((found[0].id.as_str(), found[0].score), ("7", -5));
        assert_eq!((found[1].id.as_str(), found[1].body.as_str()), ("3", "only"));
        assert_eq!((found[2].id.as_str(), found[2].title.as_str()), ("id:n:doc::1", "v"));
    }

    #[test]
    fn wrong_lines_name_file_and_line_and_end_the_reading() {
        for (line, expected) in [
            ("[1]", "each line must be one JSON object"),
            ("{\"title\":3}", "\"title\" is not a text"),
            ("{\"titel\":\"x\"}", "neither \"title\" nor \"body\""),
            ("{\"title\":\"x\",\"score\":1.5}", "\"score\" is not a whole number"),
            ("{\"title\":", "EOF"),
        ] {
            let found = read(&format!("{{\"title\":\"fine\"}}\n{line}\n{{\"title\":\"fine\"}}\n"));
            assert_eq!(found.len(), 2, "{line}");
            let error = found[1].as_ref().unwrap_err();
            assert!(error.starts_with("c.ndjson:2: ") && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let document = Document {
            id: "a".into(),
            title: "quote \" and \\".into(),
            body: "line\nline\u{1}é".into(),
            category: "c".into(),
            author: "d".into(),
            score: i64::MIN,
        };
        let mut text = Vec::new();
        document.to_ndjson(&mut text);
        let found = read(std::str::from_utf8(&text).unwrap());
        assert_eq!(found, [Ok(document)]);
    }
}

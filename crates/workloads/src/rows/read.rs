//! Reading rows: CSV, TSV or NDJSON, plain or gzip.

use super::{COLUMNS_MAX, ROWS_MAX_BYTES, Rows};
use crate::error::{InputError, Problem};
use crate::query_file::SourceFile;
use serde_json::{Map, Value};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

fn no_row(path: &Path) -> InputError {
    let problem = "holds no row; write a line of names, and a line of values for each row";
    InputError::line(path, 1, Problem::Rows(problem.into()))
}

impl Rows {
    /// Reads a whole file. It is NDJSON when it begins with `{`; else CSV, or with tabs when its name ends in `.tsv`.
    ///
    /// # Errors
    /// When it cannot be read, holds no row, is over [`ROWS_MAX_BYTES`], or a row has not the columns of the first.
    pub fn load(path: &Path) -> Result<Self, InputError> {
        let source = SourceFile::open(path).map_err(|error| match error {
            InputError::Empty { .. } => no_row(path),
            error => error,
        })?;
        if !source.fits(ROWS_MAX_BYTES)? {
            let problem = Problem::Rows(
                "a file of rows may have 256 MiB at most; split it (head -n), or ask from a query file".into(),
            );
            return Err(InputError::line(path, 1, problem));
        }
        let fail = |error| InputError::io(path, error);
        let mut bytes = BufReader::new(source.at(0).map_err(fail)?);
        let first = loop {
            let seen = bytes.fill_buf().map_err(fail)?;
            match seen.iter().position(|b| !b.is_ascii_whitespace()) {
                Some(at) => break Some(seen[at]),
                None if seen.is_empty() => break None,
                None => {
                    let blank = seen.len();
                    bytes.consume(blank);
                }
            }
        };
        // A second reader: what was blank counts for the lines too.
        let bytes = source.at(0).map_err(fail)?;
        let mut rows = Self { path: path.to_owned(), ..Self::default() };
        match first {
            Some(b'{') => rows.read_ndjson(bytes)?,
            _ => rows.read_csv(bytes)?,
        }
        if rows.is_empty() {
            return Err(no_row(path));
        }
        rows.bytes.shrink_to_fit();
        rows.ends.shrink_to_fit();
        rows.lines.shrink_to_fit();
        Ok(rows)
    }

    fn wrong(&self, line: u64, problem: impl Into<String>) -> InputError {
        InputError::line(&self.path, line, Problem::Rows(problem.into()))
    }

    fn set_names(&mut self, line: u64, names: Vec<String>) -> Result<(), InputError> {
        if names.len() > COLUMNS_MAX {
            return Err(self.wrong(line, format!("more than {COLUMNS_MAX} columns")));
        }
        for (index, name) in names.iter().enumerate() {
            if name.is_empty() || name.contains(['{', '}']) {
                let shown = name.escape_debug();
                let problem =
                    format!("column {}: '{shown}' is no name; use one without braces", index + 1);
                return Err(self.wrong(line, problem));
            }
            if names[..index].contains(name) {
                return Err(
                    self.wrong(line, format!("two columns are called '{name}'; rename one"))
                );
            }
        }
        self.names = names;
        Ok(())
    }

    fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        // The values are no longer than the file, which has at most 256 MiB; escapes only get shorter.
        self.ends.push(self.bytes.len() as u32);
    }

    fn read_csv(&mut self, bytes: impl Read) -> Result<(), InputError> {
        let tabs = self.path.to_string_lossy().trim_end_matches(".gz").ends_with(".tsv");
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(if tabs { b'\t' } else { b',' })
            .has_headers(false)
            .flexible(true)
            .from_reader(bytes);
        let mut record = csv::ByteRecord::new();
        loop {
            let read = reader.read_byte_record(&mut record);
            let line = record.position().map_or(1, csv::Position::line);
            match read {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => return Err(self.wrong(line, error.to_string().replace('\n', " "))),
            }
            if self.names.is_empty() {
                let names = record.iter().map(|n| String::from_utf8_lossy(n).trim().to_owned());
                self.set_names(line, names.collect())?;
                continue;
            }
            if record.len() != self.names.len() {
                let (has, needs) = (record.len(), self.names.len());
                return Err(self.wrong(line, format!("{has} values for {needs} columns")));
            }
            record.iter().for_each(|value| self.push(value));
            self.lines.push(line as u32);
        }
    }

    fn read_ndjson(&mut self, bytes: impl Read) -> Result<(), InputError> {
        let mut reader = BufReader::new(bytes);
        let (mut text, mut line) = (Vec::new(), 0);
        loop {
            text.clear();
            let read = reader.read_until(b'\n', &mut text);
            if read.map_err(|error| InputError::io(&self.path, error))? == 0 {
                return Ok(());
            }
            line += 1;
            if text.trim_ascii().is_empty() {
                continue;
            }
            let row: Map<String, Value> = serde_json::from_slice(&text).map_err(|error| {
                let text = error.to_string();
                let what = text.split(" at line").next().unwrap_or_default().to_owned();
                self.wrong(line, format!("{what}; write an object such as {{\"name\":\"value\"}}"))
            })?;
            if self.names.is_empty() {
                self.set_names(line, row.keys().cloned().collect())?;
            }
            for column in 0..self.names.len() {
                let Some(value) = row.get(&self.names[column]) else {
                    let problem = format!("no \"{}\", which the first row has", self.names[column]);
                    return Err(self.wrong(line, problem));
                };
                match value {
                    Value::String(text) => self.push(text.as_bytes()),
                    other => self.push(other.to_string().as_bytes()),
                }
            }
            self.lines.push(line as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn load(name: &str, text: &[u8]) -> Result<Rows, InputError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        Rows::load(&path)
    }

    fn all(rows: &Rows) -> Vec<Vec<String>> {
        let value = |row, column| String::from_utf8_lossy(rows.value(row, column)).into_owned();
        (0..rows.len())
            .map(|row| (0..rows.names().len()).map(|column| value(row, column)).collect())
            .collect()
    }

    #[test]
    fn csv_tsv_and_ndjson_hold_the_same() {
        let csv = load("a.csv", b"term,user\n\"big, blue\",1\nplain,\"two\nlines\"\n").unwrap();
        assert_eq!(all(&csv), [["big, blue", "1"], ["plain", "two\nlines"]]);
        assert_eq!(
            (csv.names(), csv.line(0), csv.line(1)),
            (&["term".to_owned(), "user".to_owned()][..], 2, 3)
        );
        assert_eq!((csv.column("user"), csv.column("x")), (Some(1), None));
        let tsv = load("a.tsv", b"term\tuser\r\nbig, blue\t1\r\n").unwrap();
        assert_eq!(all(&tsv), [["big, blue", "1"]]);
        let lines = "\n{\"term\":\"b\\u00e4r \\\"x\\\"\",\"n\":1.5,\"l\":[1]}\n\n{\"l\":null,\"n\":true,\"term\":\"\"}\n";
        let ndjson = load("a.ndjson", lines.as_bytes()).unwrap();
        assert_eq!(all(&ndjson), [["bär \"x\"", "1.5", "[1]"], ["", "true", "null"]]);
        assert_eq!((ndjson.line(0), ndjson.line(1)), (2, 4));
    }

    #[test]
    fn gzip_and_a_byte_order_mark_are_read() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"\xef\xbb\xbfterm\na\nb\n").unwrap();
        let rows = load("a.csv.gz", &packed.finish().unwrap()).unwrap();
        assert_eq!((rows.column("term"), rows.len()), (Some(0), 2));
    }

    #[test]
    fn what_is_wrong_is_told_with_file_and_line() {
        for (name, text, word) in [
            ("a.csv", "a,b\n1,2\n3\n", "a.csv:3: 1 values for 2 columns"),
            ("a.csv", "a,a\n1,2\n", "a.csv:1: two columns"),
            ("a.csv", "a,\n1,2\n", "a.csv:1: column 2"),
            ("a.csv", "a,b\n", "no row"),
            ("a.ndjson", "{\"a\":1}\n{\"b\":1}\n", "a.ndjson:2: no \"a\""),
            ("a.ndjson", "{\"a\":1}\n{\"a\":\n", "a.ndjson:2: EOF"),
            ("a.ndjson", "{\"a{\":1}\n", "a.ndjson:1: column 1"),
        ] {
            let message = load(name, text.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(word) && !message.contains('\n'), "{text}: {message}");
        }
    }
}

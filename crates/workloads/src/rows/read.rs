//! Reading rows: CSV, TSV or NDJSON, plain or gzip.

use super::{COLUMNS_MAX, ROWS_MAX_BYTES, Rows};
use crate::error::{InputError, Problem};
use crate::query_file::SourceFile;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Byte order mark that some programs write at the beginning of UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

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
        let source = SourceFile::open_any(path).map_err(|error| match error {
            InputError::Empty { .. } => no_row(path),
            error => error,
        })?;
        if !source.fits(ROWS_MAX_BYTES)? {
            let problem = Problem::Rows(
                "a file of rows can have at most 256 MiB; split it (head -n), or use a query file"
                    .into(),
            );
            return Err(InputError::line(path, 1, problem));
        }
        let fail = |error| InputError::io(path, error);
        let mut bytes = BufReader::new(source.at(0).map_err(fail)?);
        let first = loop {
            let seen = bytes.fill_buf().map_err(fail)?;
            let passed = |b: &u8| b.is_ascii_whitespace() || BYTE_ORDER_MARK.contains(b);
            match seen.iter().position(|b| !passed(b)) {
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
            _ => {
                let separator = if rows.has_tabs() { b'\t' } else { b',' };
                rows.check_marks(source.at(0).map_err(fail)?, separator)?;
                rows.read_csv(bytes, separator)?;
            }
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
            // A name in a request is looked for without the blanks around it.
            if name.is_empty() || name.contains(['{', '}']) || name.trim() != name {
                let (place, shown) = (index + 1, name.escape_debug());
                let problem = format!(
                    "column {place}: '{shown}' is not a name; use one without braces, and without blanks around it"
                );
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
        // The values are no longer than the file, which has at most 256 MiB: escapes only get shorter, and all else is kept as
        // it is written.
        self.ends.push(self.bytes.len() as u32);
    }

    fn has_tabs(&self) -> bool {
        self.path.to_string_lossy().trim_end_matches(".gz").ends_with(".tsv")
    }

    /// Rejects quotation marks that are not valid CSV. CSV readers accept them without an error: if one is left open, the rest
    /// of the file becomes one value, and text behind a closing mark becomes a part of the value.
    fn check_marks(&self, bytes: impl Read, separator: u8) -> Result<(), InputError> {
        let mut bytes = BufReader::new(bytes);
        let (mut at, mut line, mut opened) = (Marks::Begin, 1, 1);
        loop {
            let seen = bytes.fill_buf().map_err(|error| InputError::io(&self.path, error))?;
            for &byte in seen {
                at = match (at, byte) {
                    (Marks::Begin, b'"') => {
                        opened = line;
                        Marks::Inside
                    }
                    (Marks::Inside, b'"') => Marks::Closed,
                    (Marks::Inside, _) | (Marks::Closed, b'"') => Marks::Inside,
                    (_, byte) if byte == separator || byte == b'\n' || byte == b'\r' => {
                        Marks::Begin
                    }
                    (Marks::Closed, _) => {
                        let problem = "text behind the quotation mark that closes a value; double each mark \
                                       that belongs to a value, and put the value in marks";
                        return Err(self.wrong(line, problem));
                    }
                    (Marks::Begin, byte) if line == 1 && BYTE_ORDER_MARK.contains(&byte) => {
                        Marks::Begin
                    }
                    (Marks::Begin | Marks::Bare, _) => Marks::Bare,
                };
                line += u64::from(byte == b'\n');
            }
            let length = seen.len();
            bytes.consume(length);
            match at {
                _ if length > 0 => {}
                Marks::Inside => {
                    let problem = "a quotation mark that opens a value is not closed; close it, or \
                                   double each one inside of a value and put the value in such marks";
                    return Err(self.wrong(opened, problem));
                }
                _ => return Ok(()),
            }
        }
    }

    fn read_csv(&mut self, bytes: impl Read, separator: u8) -> Result<(), InputError> {
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(separator)
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
            let own = text.strip_prefix(BYTE_ORDER_MARK).filter(|_| line == 1).unwrap_or(&text);
            if own.trim_ascii().is_empty() {
                continue;
            }
            let row: Row<'_> = serde_json::from_slice(own).map_err(|error| {
                let text = error.to_string();
                let what = text.split(" at line").next().unwrap_or_default().to_owned();
                self.wrong(line, format!("{what}; write an object such as {{\"name\":\"value\"}}"))
            })?;
            if self.names.is_empty() {
                if row.0.is_empty() {
                    let problem =
                        "the first row has no column; write an object such as {\"name\":\"value\"}";
                    return Err(self.wrong(line, problem));
                }
                self.set_names(line, row.0.iter().map(|(name, _)| name.clone()).collect())?;
            }
            for column in 0..self.names.len() {
                let Some(value) = row.value(column, &self.names[column]) else {
                    let problem = format!("no \"{}\", which the first row has", self.names[column]);
                    return Err(self.wrong(line, problem));
                };
                // A text without its quotation marks and escapes; all else to the last digit as it is written.
                match serde_json::from_str::<String>(value) {
                    Ok(text) => self.push(text.as_bytes()),
                    Err(_) if value.starts_with('"') => {
                        let name = &self.names[column];
                        let problem = format!("the value of \"{name}\" is not a valid text");
                        return Err(self.wrong(line, problem));
                    }
                    Err(_) => self.push(value.as_bytes()),
                }
            }
            self.lines.push(line as u32);
        }
    }
}

/// Position of a byte in a CSV value.
#[derive(Clone, Copy)]
enum Marks {
    /// At its beginning.
    Begin,
    /// In one without quotation marks around it.
    Bare,
    /// Between quotation marks.
    Inside,
    /// Behind a mark that closes the value, unless another follows.
    Closed,
}

/// An object's members in their order, each value as it is written.
struct Row<'a>(Vec<(String, &'a RawValue)>);

impl Row<'_> {
    /// The value of this name, which usually is at this place.
    fn value(&self, place: usize, name: &str) -> Option<&str> {
        let is = |member: &&(String, &RawValue)| member.0 == name;
        let found = self.0.get(place).filter(is).or_else(|| self.0.iter().find(is));
        found.map(|(_, value)| value.get())
    }
}

impl<'de> Deserialize<'de> for Row<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Row<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Row(members))
            }
        }

        deserializer.deserialize_map(Members)
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
    fn values_of_ndjson_are_those_of_the_file_to_the_last_digit() {
        let lines = "{\"id\":123456789012345678901234567890,\"price\":1.10,\"o\":{\"b\": 1e3, \"a\":\"\\n\"}}\n\
                     {\"o\":\"x\",\"id\":-0,\"price\":1E400,\"more\":1}\n";
        let rows = load("a.ndjson", lines.as_bytes()).unwrap();
        assert_eq!(
            all(&rows),
            [
                ["123456789012345678901234567890", "1.10", "{\"b\": 1e3, \"a\":\"\\n\"}"],
                ["-0", "1E400", "x"]
            ]
        );
    }

    #[test]
    fn a_quotation_mark_that_is_left_open_swallows_nothing() {
        for (text, line) in [
            ("term\nship\n\"boat\nraft\n", 3),
            ("term\n\"boat", 2),
            ("a,b\n1,\"2\n3,4\n", 2),
            ("a,b\n\"1,2\n3,4\n", 2),
            ("\"a,b\n1,2\n", 1),
        ] {
            let told = load("a.csv", text.as_bytes()).unwrap_err().to_string();
            assert!(told.contains(&format!("a.csv:{line}: a quotation mark")), "{text}: {told}");
        }
        for (name, text) in [
            ("a.csv", "term\n\"new york\" pizza\n"),
            ("a.csv", "a,b\n\"x\"y,1\n"),
            ("a.tsv", "a\tb\n\"x\" ,y\t1\n"),
            ("a.csv", "\u{feff}\"a\"b\n1\n"),
        ] {
            let told = load(name, text.as_bytes()).unwrap_err().to_string();
            let line = if text.contains("\"b\n") { 1 } else { 2 };
            let wanted = format!("{name}:{line}: text behind the quotation mark");
            assert!(told.contains(&wanted), "{text}: {told}");
        }
        // Closed ones may hold anything, at the end of the file too.
        let rows = load("a.csv", b"term\n\"a \"\"b\"\"\n\"\nwith\"in\n\"last\n\nline\"").unwrap();
        assert_eq!(all(&rows), [["a \"b\"\n"], ["with\"in"], ["last\n\nline"]]);
        let marked = load("a.csv", b"\xef\xbb\xbf\"a,b\",c\r\n\"\",\"\"\"\"\r\n").unwrap();
        assert_eq!(marked.names(), ["a,b", "c"]);
        assert_eq!(all(&marked), [["", "\""]]);
    }

    #[test]
    fn gzip_and_a_byte_order_mark_are_read() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"\xef\xbb\xbfterm\na\nb\n").unwrap();
        let rows = load("a.csv.gz", &packed.finish().unwrap()).unwrap();
        assert_eq!((rows.column("term"), rows.len()), (Some(0), 2));
        let ndjson = load("a.ndjson", b"\xef\xbb\xbf{\"term\":\"a\"}\n{\"term\":\"b\"}\n").unwrap();
        assert_eq!(ndjson.column("term"), Some(0));
        assert_eq!(all(&ndjson), [["a"], ["b"]]);
    }

    #[test]
    fn errors_have_file_and_line() {
        for (name, text, word) in [
            ("a.csv", "a,b\n1,2\n3\n", "a.csv:3: 1 values for 2 columns"),
            ("a.csv", "a,a\n1,2\n", "a.csv:1: two columns"),
            ("a.csv", "a,\n1,2\n", "a.csv:1: column 2"),
            ("a.csv", "a,b\n", "no row"),
            ("a.ndjson", "{\"a\":1}\n{\"b\":1}\n", "a.ndjson:2: no \"a\""),
            ("a.ndjson", "{\"a\":1}\n{\"a\":\n", "a.ndjson:2: EOF"),
            ("a.ndjson", "{\"a{\":1}\n", "a.ndjson:1: column 1"),
            ("a.ndjson", "{\"a\":1,\" b\":1}\n", "a.ndjson:1: column 2"),
            ("a.ndjson", "{}\n", "a.ndjson:1: the first row has no column"),
            ("a.ndjson", "\n{}\n{\"a\":1}\n", "a.ndjson:2: the first row has no column"),
            ("a.ndjson", "{\"a\":1,\"a\":1}\n", "a.ndjson:1: two columns"),
            ("a.ndjson", "{\"a\":1}\n[1]\n", "a.ndjson:2: invalid type: sequence"),
        ] {
            let message = load(name, text.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(word) && !message.contains('\n'), "{text}: {message}");
        }
    }
}

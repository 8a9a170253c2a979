//! SQL statements and calls of procedures from a text, asked of a server that speaks VoltDB's protocol.
//!
//! The text holds one of them a line: `exec PROCEDURE VALUE ...` as in sqlcmd, anything else is SQL for `@AdHoc`. Empty
//! lines and lines that begin with `--` are passed over.

use crate::classes::{ClassError, Classes};
use crate::course::Course;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::UserTurn;
use plimsoll_wire::volt::{Request, Response, Status, Value, Volt};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use std::sync::Arc;
use thiserror::Error;

/// The procedure that plans and runs a statement.
const AD_HOC: &str = "@AdHoc";
/// Most values of a call.
const VALUES_MAX: usize = 1024;
/// Most bytes of a text in samples.
const SHOWN_MAX: usize = 500;

/// A text without calls, or with one that cannot be made.
#[derive(Debug, Error)]
pub enum CallError {
    /// There is nothing to ask.
    #[error("the file has no statement; write one per line, SQL or exec PROCEDURE VALUE ...")]
    Empty,
    /// A call cannot be made.
    #[error("line {line}: {problem}")]
    Line {
        /// Its line, from 1.
        line: u64,
        /// The problem.
        problem: &'static str,
    },
    /// A class rule cannot be used.
    #[error(transparent)]
    Class(#[from] ClassError),
}

/// The calls of a run, rendered.
#[derive(Debug)]
pub struct CallSet {
    texts: Vec<String>,
    requests: Vec<Request>,
    classes: Vec<u8>,
    lines: Vec<u64>,
    class_names: Vec<String>,
}

impl CallSet {
    /// Reads calls; `classes` are distinguished by their text.
    ///
    /// # Errors
    /// A text without calls, or one that cannot be made.
    pub fn parse(text: &str, classes: &mut Classes) -> Result<Self, CallError> {
        let mut set = Self {
            texts: Vec::new(),
            requests: Vec::new(),
            classes: Vec::new(),
            lines: Vec::new(),
            class_names: Vec::new(),
        };
        for (line, text) in (1u64..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with("--") {
                continue;
            }
            let request = call_of(text).map_err(|problem| CallError::Line { line, problem })?;
            set.requests.push(request);
            set.classes.push(classes.classify(None, text.as_bytes(), b"")?);
            set.lines.push(line);
            set.texts.push(text.to_owned());
        }
        if set.requests.is_empty() {
            return Err(CallError::Empty);
        }
        set.class_names = classes.names().into_iter().map(str::to_owned).collect();
        Ok(set)
    }

    /// Returns the number of calls.
    #[must_use]
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Always false: an empty set is an error.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns whether some call is of a class.
    #[must_use]
    pub fn has_class(&self, class: u16) -> bool {
        self.classes.iter().any(|&own| u16::from(own) == class)
    }

    /// Names of the classes, by index.
    #[must_use]
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }
}

/// The call that a line stands for.
fn call_of(text: &str) -> Result<Request, &'static str> {
    let mut request = Request::default();
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if !["exec", "execute"].iter().any(|word| first.eq_ignore_ascii_case(word)) {
        request.call(AD_HOC, &[Value::String(text)]);
        return Ok(request);
    }
    let words = words_of(rest.trim_end_matches(';'))?;
    let Some(((procedure, false), values)) = words.split_first().map(|(f, v)| ((&f.0, f.1), v))
    else {
        return Err("the procedure is missing; write exec PROCEDURE VALUE ...");
    };
    if values.len() > VALUES_MAX {
        return Err("more than 1,024 values");
    }
    let values: Vec<Value<'_>> = values.iter().map(value_of).collect();
    request.call(procedure, &values);
    Ok(request)
}

/// A value as sqlcmd reads it: a whole number, a number, NULL, or text.
fn value_of((word, is_quoted): &(String, bool)) -> Value<'_> {
    if *is_quoted {
        return Value::String(word);
    }
    if word.eq_ignore_ascii_case("null") {
        return Value::Null;
    }
    if let Ok(number) = word.parse() {
        return Value::BigInt(number);
    }
    // `inf` and `nan` are words.
    let is_number = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    match word.parse() {
        Ok(number) if is_number => Value::Float(number),
        _ => Value::String(word),
    }
}

/// Words separated by blanks or commas, and whether each stood in single quotes, of which two are one.
fn words_of(text: &str) -> Result<Vec<(String, bool)>, &'static str> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_whitespace() || c == ',' {
            continue;
        }
        let mut word = String::new();
        if c != '\'' {
            word.push(c);
            while let Some(c) = chars.next_if(|c| !c.is_whitespace() && *c != ',') {
                word.push(c);
            }
            words.push((word, false));
            continue;
        }
        loop {
            match chars.next() {
                None => return Err("a quotation mark is not closed"),
                Some('\'') if chars.next_if_eq(&'\'').is_none() => break,
                Some(c) => word.push(c),
            }
        }
        words.push((word, true));
    }
    Ok(words)
}

/// The sessions of one shard. A call is a success when its status is; the rows of its tables are its hits.
pub struct CallSessions {
    set: Arc<CallSet>,
    course: Course,
}

impl CallSessions {
    /// Makes the calls of `set` in the order of `course`.
    #[must_use]
    pub fn new(set: Arc<CallSet>, course: Course) -> Self {
        Self { set, course }
    }
}

impl Sessions<Volt> for CallSessions {
    fn user(&mut self, _client: u32, turn: UserTurn) {
        self.course.user(turn);
    }

    fn next(&mut self, _client: u32, _target: u32, request: &mut Request) -> Turn {
        let Some(index) = self.course.next_index() else { return Turn::Exhausted };
        request.copy_from(&self.set.requests[index]);
        // A call can change data: it is never made twice.
        let class = u16::from(self.set.classes[index]);
        Turn::Ask(Submission { class, item: index as u64, idempotent: false })
    }

    fn judge(&mut self, _: u32, _: &Submission, reply: &Response<'_>, _: Times) -> Judgement {
        let good = reply.is_success();
        let rows = || reply.tables.flatten().map(|table| table.row_count() as u64).sum();
        Judgement {
            outcome: if good { Outcome::Ok } else { Outcome::Failed(Failure::App) },
            status: 0,
            hits: good.then(rows),
            body_bytes: reply.bytes as u64,
        }
    }

    fn lost(&mut self, _: u32, _: &Submission, _: Failure, _: Times) {}

    fn describe(&self, what: &Submission, _: &Request) -> String {
        let index = what.item as usize;
        let text: String = self.set.texts[index].chars().take(SHOWN_MAX).collect();
        format!("line {}: {}", self.set.lines[index], text.replace(char::is_control, " "))
    }

    fn explain(&self, _: &Submission, reply: &Response<'_>) -> (String, String) {
        (said(reply), told(reply))
    }
}

/// Reason why a reply is no answer, in the server's own words.
#[must_use]
pub fn said(reply: &Response<'_>) -> String {
    if reply.is_success() {
        return "success, but with an unexpected result".to_owned();
    }
    let name = Status::name(reply.status);
    match reply.status_text.map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => format!("{name}: {text}"),
        None => name.to_owned(),
    }
}

/// The way a reply looked.
#[must_use]
pub fn told(reply: &Response<'_>) -> String {
    let (status, tables) = (reply.status, reply.tables.len());
    format!("status {status}, {tables} tables, {} bytes, {} ms", reply.bytes, reply.round_trip_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Way;
    use crate::query_file::Passes;
    use plimsoll_wire::volt::{Kind, ResponseWriter};

    const TEXT: &str = "-- both kinds\nSELECT count(*) FROM votes\n\nexec Vote 2125550001, 6 2;\n\
                        EXECUTE Insert 'it''s, all', null 1.5 word\n";

    fn set() -> CallSet {
        CallSet::parse(TEXT, &mut Classes::new(&["vote=Vote"]).unwrap()).unwrap()
    }

    #[test]
    fn lines_are_statements_or_calls_of_procedures() {
        let set = set();
        let mut written = Request::default();
        written.call("@AdHoc", &[Value::String("SELECT count(*) FROM votes")]);
        assert_eq!(set.requests[0], written);
        let vote = [Value::BigInt(2_125_550_001), Value::BigInt(6), Value::BigInt(2)];
        written.call("Vote", &vote);
        assert_eq!(set.requests[1], written);
        let words =
            [Value::String("it's, all"), Value::Null, Value::Float(1.5), Value::String("word")];
        written.call("Insert", &words);
        assert_eq!(set.requests[2], written);
        assert_eq!(
            (set.lines.as_slice(), set.class_names()),
            (&[2, 4, 5][..], &set.class_names[..])
        );
        assert_eq!(set.classes[0], set.classes[2]);
        assert_ne!(set.classes[0], set.classes[1]);
    }

    #[test]
    fn what_cannot_be_called_is_named_by_its_line() {
        let said = |text| CallSet::parse(text, &mut Classes::default()).unwrap_err().to_string();
        assert!(said("-- nothing\n").contains("has no statement"));
        assert!(said("SELECT 1\nexec\n").starts_with("line 2: the procedure is missing"));
        assert!(said("exec 'Vote' 1").starts_with("line 1: the procedure is missing"));
        assert!(said("exec Vote 'open").contains("not closed"));
    }

    #[test]
    fn rows_are_hits_and_a_status_is_a_failure() {
        let way = Way::new(0..3, 0, 1, Passes::Count(1));
        let mut sessions = CallSessions::new(Arc::new(set()), Course::new(way));
        let mut request = Request::default();
        let Turn::Ask(what) = sessions.next(0, 0, &mut request) else { panic!("nothing to ask") };
        assert_eq!((what.item, what.idempotent), (0, false));
        assert!(sessions.describe(&what, &request).starts_with("line 2: SELECT"));
        let mut out = Vec::new();
        let mut response = ResponseWriter::success(&mut out, 7, 1);
        let mut table = response.table(&[("N", Kind::BigInt)]);
        table.row(&[Value::BigInt(1)]);
        table.row(&[Value::BigInt(2)]);
        let reply = Response::read(&out[4..]).unwrap();
        let judged = sessions.judge(0, &what, &reply, Times::default());
        assert_eq!((judged.outcome, judged.hits), (Outcome::Ok, Some(2)));
        out.clear();
        ResponseWriter::failure(&mut out, 7, -2, "no such table", 0);
        let reply = Response::read(&out[4..]).unwrap();
        let judged = sessions.judge(0, &what, &reply, Times::default());
        assert_eq!((judged.outcome, judged.hits), (Outcome::Failed(Failure::App), None));
        assert!(sessions.explain(&what, &reply).0.contains("no such table"));
    }
}

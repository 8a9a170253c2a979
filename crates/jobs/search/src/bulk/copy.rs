//! Loading a text into PostgreSQL: `COPY` of as many documents at a time as other engines get in a bulk request.
//!
//! A `COPY` is done as a whole or not at all. One whose connection broke is not sent again, since no one knows which of
//! the two it was, and documents that are there twice would end the second one.

use super::{BATCH_BYTES, BATCH_DOCUMENTS, LoadTally};
use crate::query::{FIELDS, FieldKind};
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_wire::postgres::{Postgres, Reply, Request};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use plimsoll_workloads::sql::{explained, judged};
use serde_json::Value;
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The clients that load a text, all on one thread.
pub struct CopySessions<R> {
    text: R,
    line: Vec<u8>,
    over: bool,
    statement: String,
    data: Vec<u8>,
    /// Documents and bytes in flight, one entry a client.
    under_way: Vec<(u64, u64)>,
    tally: Arc<LoadTally>,
    give_up: Arc<AtomicBool>,
}

impl<R: BufRead> CopySessions<R> {
    /// Clients that read `text`, NDJSON, and hand it over with `statement`, a `COPY ... FROM STDIN`. They set `give_up`
    /// when the text cannot be read or nothing is taken any more.
    #[must_use]
    pub fn new(
        text: R,
        statement: String,
        clients: u32,
        tally: Arc<LoadTally>,
        give_up: Arc<AtomicBool>,
    ) -> Self {
        Self {
            text,
            line: Vec::new(),
            over: false,
            statement,
            data: Vec::new(),
            under_way: vec![(0, 0); clients.max(1) as usize],
            tally,
            give_up,
        }
    }

    fn fail(&mut self, why: impl FnOnce() -> String) {
        self.tally.note(why);
        self.give_up.store(true, Ordering::Relaxed);
        self.over = true;
    }

    /// Gathers the next documents; says how many they are.
    fn fill(&mut self) -> u64 {
        self.data.clear();
        let mut documents = 0;
        while !self.over && self.data.len() < BATCH_BYTES && documents < BATCH_DOCUMENTS as u64 {
            self.line.clear();
            match self.text.read_until(b'\n', &mut self.line) {
                Ok(0) => self.over = true,
                Ok(_) if self.line.trim_ascii().is_empty() => {}
                Ok(_) if put_row(&self.line, &mut self.data) => documents += 1,
                Ok(_) => {
                    self.tally.failed.fetch_add(1, Ordering::Relaxed);
                    self.tally
                        .note(|| "a line of the text is not a document with an id".to_owned());
                }
                Err(error) => self.fail(|| format!("the text cannot be read: {error}")),
            }
        }
        documents
    }

    fn place(&self, client: u32) -> usize {
        client as usize % self.under_way.len()
    }
}

/// Appends a document as a row of `COPY`'s text format; false when the line is no document.
fn put_row(line: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_slice(line) else { return false };
    let Some(Value::String(id)) = fields.get("id") else { return false };
    put_text(id, out);
    for (field, kind) in FIELDS {
        out.push(b'\t');
        match fields.get(field) {
            Some(Value::String(text)) => put_text(text, out),
            Some(Value::Null) | None if kind == FieldKind::Number => out.extend_from_slice(b"\\N"),
            Some(Value::Null) | None => {}
            Some(other) => put_text(&other.to_string(), out),
        }
    }
    out.push(b'\n');
    true
}

/// Appends a value; PostgreSQL's texts hold no NUL.
fn put_text(text: &str, out: &mut Vec<u8>) {
    for &byte in text.as_bytes() {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0 => out.push(b' '),
            other => out.push(other),
        }
    }
}

impl<R: BufRead> Sessions<Postgres> for CopySessions<R> {
    fn next(&mut self, client: u32, _target: u32, request: &mut Request) -> Turn {
        let documents = self.fill();
        if documents == 0 {
            return Turn::Exhausted;
        }
        if request.copy_in(&self.statement, &self.data).is_err() {
            self.fail(|| "the COPY cannot be written".to_owned());
            return Turn::Exhausted;
        }
        let place = self.place(client);
        self.under_way[place] = (documents, self.data.len() as u64);
        Turn::Ask(Submission { class: 0, item: place as u64, idempotent: false })
    }

    fn judge(
        &mut self,
        client: u32,
        _what: &Submission,
        reply: &Reply<'_>,
        times: Times,
    ) -> Judgement {
        let place = self.place(client);
        let (documents, bytes) = std::mem::take(&mut self.under_way[place]);
        let judgement = judged(reply);
        if judgement.outcome == Outcome::Ok {
            self.tally.taken(documents, bytes, times);
        } else {
            self.tally.failed.fetch_add(documents, Ordering::Relaxed);
            self.tally.note(|| explained(reply).0);
        }
        judgement
    }

    fn lost(&mut self, client: u32, _what: &Submission, failure: Failure, _times: Times) {
        let place = self.place(client);
        let (documents, _) = std::mem::take(&mut self.under_way[place]);
        self.tally.failed.fetch_add(documents, Ordering::Relaxed);
        self.fail(|| format!("{} while ingesting", failure.name()));
    }

    fn describe(&self, _what: &Submission, _request: &Request) -> String {
        self.statement.clone()
    }

    fn explain(&self, _what: &Submission, reply: &Reply<'_>) -> (String, String) {
        explained(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_a_row_whatever_is_in_it() {
        let mut out = Vec::new();
        let line = br#"{"id":"s1","title":"a\tb","body":"c:\\d\ne\u0000","category":"x","author":"y","score":7}"#;
        assert!(put_row(line, &mut out));
        assert_eq!(String::from_utf8(out).unwrap(), "s1\ta\\tb\tc:\\\\d\\ne \tx\ty\t7\n");
        let mut out = Vec::new();
        assert!(put_row(br#"{"id":"s2","body":"b"}"#, &mut out));
        assert_eq!(out, b"s2\t\tb\t\t\t\\N\n");
        assert!(
            !put_row(b"{\"title\":\"no id\"}", &mut Vec::new()) && !put_row(b"[", &mut Vec::new())
        );
    }

    #[test]
    fn a_text_is_cut_into_batches_of_documents() {
        let line = "{\"id\":\"a\",\"body\":\"b\"}\n";
        let text = line.repeat(BATCH_DOCUMENTS + 3);
        let tally = Arc::new(LoadTally::default());
        let copy = "COPY t FROM STDIN".to_owned();
        let mut sessions = CopySessions::new(text.as_bytes(), copy, 2, tally, Arc::default());
        let mut request = Request::default();
        assert!(matches!(sessions.next(0, 0, &mut request), Turn::Ask(_)));
        assert!(matches!(sessions.next(1, 0, &mut request), Turn::Ask(_)));
        assert_eq!(sessions.under_way.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [1000, 3]);
        assert_eq!(sessions.next(0, 0, &mut request), Turn::Exhausted);
    }
}

//! Operations in memory that are sent at a rate, again and again: what a search for the load line asks of a document API.
//!
//! Nothing is sent a second time and nothing is held back: an answer that is not an acceptance is a failure, and two
//! operations on the same document may be in flight together.

use super::answer::{self, Answer};
use super::batch::{Batch, Item, Parameters};
use super::form::{FeedForm, Packer};
use super::operation::{Kind, Problem, parse};
use super::sessions::said;
use super::source::Source;
use super::splitter::Splitter;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_wire::http1::{Keep, Reply, Request};
use plimsoll_wire::{Judgement, Protocol, Sessions, Submission, Turn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;

/// Most bytes of operations, unpacked.
pub const SET_BYTES_MAX: usize = 256 << 20;
/// The kinds of operations, in the order in which their classes are listed.
const KINDS: [Kind; 3] = [Kind::Put, Kind::Update, Kind::Remove];

/// A file whose operations cannot be sent.
#[derive(Debug, Error)]
pub enum SetError {
    /// It cannot be read.
    #[error("{0}")]
    Read(#[from] std::io::Error),
    /// One of them is malformed.
    #[error("line {line}: {problem}")]
    Malformed {
        /// Its line, from 1.
        line: u64,
        /// The problem.
        problem: Problem,
    },
    /// There is none.
    #[error("there is no operation in it; write put, update or remove")]
    Empty,
    /// They do not fit into memory.
    #[error("the operations are longer than {} MiB; use a part of the file", SET_BYTES_MAX >> 20)]
    TooLong,
}

/// Operations, and which of them comes next.
pub struct OperationSet {
    batch: Batch,
    /// Number of operations sent, by all sessions of all parts.
    sent: AtomicU64,
    /// The class of each kind of [`KINDS`].
    classes: [Option<u16>; 3],
    /// Statuses beside 2xx that are successes.
    accept: Vec<u16>,
}

impl OperationSet {
    /// Reads a whole file.
    ///
    /// # Errors
    /// A file that cannot be read, is too long, or has no operation or a malformed one.
    pub fn read(source: &mut Source, accept: Vec<u16>) -> Result<Self, SetError> {
        let mut unpacked = source.read()?;
        let mut splitter = Splitter::default();
        let (mut batch, mut is_there) = (Batch::default(), [false; 3]);
        let (mut at_end, mut number) = (false, 0);
        while !at_end {
            at_end = !unpacked.append_to(splitter.space())?;
            while let Some(piece) = splitter.next(at_end) {
                number += 1;
                let line = piece.line;
                let operation = piece
                    .problem
                    .map_or_else(|| parse(piece.text), Err)
                    .map_err(|problem| SetError::Malformed { line, problem })?;
                is_there[place_of(operation.kind)] = true;
                batch.push(&operation, (number, 0, line), &Parameters::default());
                if batch.bytes() > SET_BYTES_MAX {
                    return Err(SetError::TooLong);
                }
            }
        }
        if batch.is_empty() {
            return Err(SetError::Empty);
        }
        let mut classes = [None; 3];
        let there = classes.iter_mut().zip(is_there).filter(|(_, is_there)| *is_there);
        for (number, (class, _)) in (0u16..).zip(there) {
            *class = Some(number);
        }
        Ok(Self { batch, sent: AtomicU64::new(0), classes, accept })
    }

    /// Returns the number of operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Always false: an empty set is an error.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Names of the classes, by index: the kinds of operations that there are.
    #[must_use]
    pub fn class_names(&self) -> Vec<String> {
        let there = KINDS.iter().zip(self.classes).filter(|(_, class)| class.is_some());
        there.map(|(kind, _)| kind.key().to_owned()).collect()
    }

    fn class_of(&self, kind: Kind) -> u16 {
        self.classes[place_of(kind)].unwrap_or(0)
    }

    fn get(&self, index: u64) -> (Item, &[u8]) {
        self.batch.get(index as usize).unwrap_or_default()
    }

    /// Meaning of a reply, with the reason if it is a failure.
    fn judge(&self, index: u64, reply: &Reply<'_>) -> Result<(), (Failure, String)> {
        let (item, bytes) = self.get(index);
        match reply.status {
            200..=299 => match answer::read(reply, &item, bytes) {
                Answer::Done => Ok(()),
                Answer::FieldsIgnored => Err((
                    Failure::App,
                    "written without fields that the target does not know".to_owned(),
                )),
                Answer::OperationIgnored => {
                    Err((Failure::App, "no cluster of the target takes the document".to_owned()))
                }
                Answer::Stranger(why) => Err((Failure::Check, why)),
            },
            other if self.accept.contains(&other) => Ok(()),
            status => Err((Failure::Status, said(status, reply.body))),
        }
    }
}

fn place_of(kind: Kind) -> usize {
    KINDS.iter().position(|own| *own == kind).unwrap_or(0)
}

/// The sessions of one shard. All sessions of a set go through it together, in its order, from its start again after its
/// end; those of a later part go on where those before it ended.
pub struct OperationSessions {
    set: Arc<OperationSet>,
    /// One a target.
    forms: Arc<Vec<FeedForm>>,
    packer: Packer,
}

impl OperationSessions {
    /// Sends the operations of `set`; `forms` holds one form for each target.
    #[must_use]
    pub fn new(set: Arc<OperationSet>, forms: Arc<Vec<FeedForm>>) -> Self {
        Self { set, forms, packer: Packer::default() }
    }
}

impl<P> Sessions<P> for OperationSessions
where
    P: for<'a> Protocol<Request = Request, Reply<'a> = Reply<'a>>,
{
    fn next(&mut self, _client: u32, target: u32, request: &mut Request) -> Turn {
        let index = self.set.sent.fetch_add(1, Ordering::Relaxed) % self.set.len() as u64;
        let (item, bytes) = self.set.get(index);
        request.bytes.clear();
        request.head = false;
        // The reply must name the document, and may say that something was left out.
        request.keep = Keep { head: true, body: true, stream: false };
        let form = &self.forms[target as usize % self.forms.len()];
        let (path, body) = (item.target(bytes), item.body(bytes));
        form.render(item.kind, path, body, &mut self.packer, &mut request.bytes);
        // An update may be an increment: done twice it is another one.
        let idempotent = item.kind != Kind::Update;
        Turn::Ask(Submission { class: self.set.class_of(item.kind), item: index, idempotent })
    }

    fn judge(&mut self, _: u32, what: &Submission, reply: &Reply<'_>, _: Times) -> Judgement {
        let outcome = match self.set.judge(what.item, reply) {
            Ok(()) => Outcome::Ok,
            Err((failure, _)) => Outcome::Failed(failure),
        };
        Judgement { outcome, status: reply.status, hits: None, body_bytes: reply.body_bytes }
    }

    fn lost(&mut self, _: u32, _: &Submission, _: Failure, _: Times) {}

    fn describe(&self, what: &Submission, request: &Request) -> String {
        let (item, _) = self.set.get(what.item);
        let line = request.bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(&line[..line.len().min(440)]);
        format!("line {}: {line}", item.line)
    }

    fn explain(&self, what: &Submission, reply: &Reply<'_>) -> (String, String) {
        let shown = &reply.body[..reply.body.len().min(200)];
        let text = format!("HTTP {}: {}", reply.status, String::from_utf8_lossy(shown));
        let reason = self.set.judge(what.item, reply).err().map(|(_, why)| why);
        (reason.unwrap_or_default(), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Packed;
    use plimsoll_wire::http::Http;
    use plimsoll_wire::http1::Encoding;
    use plimsoll_workloads::authority::Authority;
    use plimsoll_workloads::render::HttpForm;
    use std::io::Write;

    fn read(text: &str) -> Result<OperationSet, SetError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        OperationSet::read(&mut Source::open(file.path()).unwrap(), vec![412])
    }

    const THREE: &str = "{\"put\":\"id:n:t::a\",\"fields\":{\"x\":1}}\n{\"remove\":\"id:n:t::a\"}\n\
                         {\"put\":\"id:n:t::b\",\"fields\":{}}\n";

    fn sessions(set: &Arc<OperationSet>) -> OperationSessions {
        let authority = Authority { host: "h".to_owned(), port: 1, tls: false };
        let http = HttpForm::new(&authority, &[], false).unwrap();
        let forms = vec![FeedForm::new(&http, false, Packed::Never)];
        OperationSessions::new(set.clone(), Arc::new(forms))
    }

    fn ask(own: &mut OperationSessions) -> (String, Submission) {
        let mut request = Request::default();
        let turn = Sessions::<Http>::next(own, 0, 0, &mut request);
        let Turn::Ask(what) = turn else { panic!("{turn:?}") };
        let text = String::from_utf8_lossy(&request.bytes).into_owned();
        (text.lines().next().unwrap().to_owned(), what)
    }

    #[test]
    fn operations_come_in_their_order_again_and_again_over_all_parts() {
        let set = Arc::new(read(THREE).unwrap());
        assert_eq!(
            (set.len(), set.class_names()),
            (3, vec!["put".to_owned(), "remove".to_owned()])
        );
        let (mut one, mut other) = (sessions(&set), sessions(&set));
        let lines = [ask(&mut one), ask(&mut other), ask(&mut one), ask(&mut other)];
        let lines: Vec<_> = lines.iter().map(|(line, what)| (line.as_str(), what.class)).collect();
        let put = ("POST /document/v1/n/t/docid/a HTTP/1.1", 0);
        assert_eq!(lines[..2], [put, ("DELETE /document/v1/n/t/docid/a HTTP/1.1", 1)]);
        assert_eq!(lines[2..], [("POST /document/v1/n/t/docid/b HTTP/1.1", 0), put]);
    }

    #[test]
    fn a_reply_is_judged_as_a_feed_judges_it() {
        let set = Arc::new(read(THREE).unwrap());
        let mut own = sessions(&set);
        let (_, what) = ask(&mut own);
        let mut outcome = |status, head: &str, body: &str| {
            let reply = Reply {
                status,
                head: head.as_bytes(),
                body: body.as_bytes(),
                encoding: Encoding::Identity,
                body_bytes: body.len() as u64,
                truncated: false,
            };
            Sessions::<Http>::judge(&mut own, 0, &what, &reply, Times::default()).outcome
        };
        let named = r#"{"pathId":"/document/v1/n/t/docid/a"}"#;
        assert_eq!(outcome(200, "", named), Outcome::Ok);
        assert_eq!(outcome(200, "", "{}"), Outcome::Failed(Failure::Check));
        let ignored = "X-Vespa-Ignored-Fields: true\r\n";
        assert_eq!(outcome(200, ignored, named), Outcome::Failed(Failure::App));
        assert_eq!(outcome(429, "", ""), Outcome::Failed(Failure::Status));
        assert_eq!(outcome(412, "", ""), Outcome::Ok, "asked for");
    }

    #[test]
    fn what_cannot_be_sent_is_named_by_its_line() {
        let said = |text| read(text).err().unwrap().to_string();
        assert!(said("").contains("no operation"));
        assert!(
            said("{\"put\":\"id:n:t::a\",\"fields\":{}}\n{\"put\":7}\n").starts_with("line 2: ")
        );
    }
}

//! SQL statements from a file, asked of a server that speaks PostgreSQL's protocol.
//!
//! The file holds one statement a line; empty lines and lines that begin with `--` are passed over.

use crate::classes::{ClassError, Classes};
use crate::course::Course;
use crate::http::Way;
use crate::script::Script;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::UserTurn;
use plimsoll_wire::postgres::{Postgres, Reply, Request, RequestError, Statement};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use std::sync::Arc;
use thiserror::Error;

/// Longest file of statements, bytes: they are kept in memory.
pub const STATEMENTS_BYTES_MAX: u64 = 64 << 20;
/// Part of a text that is shown in samples, bytes.
const SHOWN_MAX: usize = 500;

/// Statements that cannot be asked.
#[derive(Debug, Error)]
pub enum SqlError {
    /// There is nothing to ask.
    #[error("the file has no statement; write one SQL statement per line")]
    Empty,
    /// A statement cannot be sent.
    #[error("line {line}: {problem}")]
    Line {
        /// Its line, from 1.
        line: u64,
        /// The problem.
        problem: RequestError,
    },
    /// A class rule cannot be used.
    #[error(transparent)]
    Class(#[from] ClassError),
}

/// The way statements are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SqlMode {
    /// By the simple protocol: the server parses and plans each time.
    #[default]
    Simple,
    /// Prepared by each connection when it first needs them, then only executed.
    Prepared,
}

/// The statements of a run, rendered.
#[derive(Debug)]
pub struct SqlSet {
    statements: Vec<Statement>,
    requests: Vec<Request>,
    classes: Vec<u8>,
    lines: Vec<u64>,
    class_names: Vec<String>,
    is_prepared: bool,
}

impl SqlSet {
    /// Reads statements; `classes` are distinguished by their text.
    ///
    /// # Errors
    /// A text without statements, or one that cannot be sent.
    pub fn parse(text: &str, way: SqlMode, classes: &mut Classes) -> Result<Self, SqlError> {
        let mut set = Self {
            statements: Vec::new(),
            requests: Vec::new(),
            classes: Vec::new(),
            lines: Vec::new(),
            class_names: Vec::new(),
            is_prepared: way == SqlMode::Prepared,
        };
        for (line, sql) in (1u64..).zip(text.lines()) {
            let sql = sql.trim();
            if sql.is_empty() || sql.starts_with("--") {
                continue;
            }
            let wrong = |problem| SqlError::Line { line, problem };
            let mut request = Request::default();
            match way {
                SqlMode::Simple => request.query(sql).map_err(wrong)?,
                SqlMode::Prepared => request.execute(set.requests.len() as u32, &[]),
            }
            set.statements.push(Statement::new(sql).map_err(wrong)?);
            set.requests.push(request);
            set.classes.push(classes.classify(None, sql.as_bytes(), b"")?);
            set.lines.push(line);
        }
        if set.requests.is_empty() {
            return Err(SqlError::Empty);
        }
        set.class_names = classes.names().into_iter().map(str::to_owned).collect();
        Ok(set)
    }

    /// Number of statements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Always false: an empty set is an error.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns whether some statement is of a class.
    #[must_use]
    pub fn has_class(&self, class: u16) -> bool {
        self.classes.iter().any(|&own| u16::from(own) == class)
    }

    /// Names of the classes, by index.
    #[must_use]
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }

    /// Statements that connections prepare.
    #[must_use]
    pub fn to_prepare(&self) -> &[Statement] {
        if self.is_prepared { &self.statements } else { &[] }
    }

    /// The text of a statement.
    #[must_use]
    pub fn sql(&self, index: usize) -> &str {
        self.statements[index].sql()
    }
}

/// The sessions of one shard. A reply is a success when it holds no error and leaves no transaction open; its
/// rows are its hits.
pub struct SqlSessions {
    set: Arc<SqlSet>,
    course: Course,
}

impl SqlSessions {
    /// Asks the statements of `set` in the order of `way`.
    #[must_use]
    pub fn new(set: Arc<SqlSet>, way: Way) -> Self {
        Self { set, course: Course::new(way) }
    }

    /// Lets each user ask the statements of `set` by `script`.
    #[must_use]
    pub fn of_users(set: Arc<SqlSet>, script: Script) -> Self {
        Self { set, course: Course::of_users(script) }
    }
}

impl Sessions<Postgres> for SqlSessions {
    fn user(&mut self, _client: u32, turn: UserTurn) {
        self.course.user(turn);
    }

    fn next(&mut self, _client: u32, _target: u32, request: &mut Request) -> Turn {
        let Some(index) = self.course.next_index() else { return Turn::Exhausted };
        request.copy_from(&self.set.requests[index]);
        // A statement can change data: it is never sent twice.
        let class = u16::from(self.set.classes[index]);
        Turn::Ask(Submission { class, item: index as u64, idempotent: false })
    }

    fn judge(&mut self, _: u32, _: &Submission, reply: &Reply<'_>, _: Times) -> Judgement {
        judged(reply)
    }

    fn lost(&mut self, _: u32, _: &Submission, _: Failure, _: Times) {}

    fn describe(&self, what: &Submission, _: &Request) -> String {
        let index = what.item as usize;
        format!("line {}: {}", self.set.lines[index], shown(self.set.sql(index)))
    }

    fn explain(&self, _: &Submission, reply: &Reply<'_>) -> (String, String) {
        explained(reply)
    }
}

/// Judges a reply, with its rows as hits: a success has no error and leaves no transaction open.
#[must_use]
pub fn judged(reply: &Reply<'_>) -> Judgement {
    use plimsoll_wire::postgres::Transaction;
    let good = reply.error.is_none() && reply.transaction == Transaction::None;
    Judgement {
        outcome: if good { Outcome::Ok } else { Outcome::Failed(Failure::App) },
        status: 0,
        hits: good.then_some(reply.rows),
        body_bytes: reply.bytes,
    }
}

/// Reason why a reply was no success, and how it looked.
#[must_use]
pub fn explained(reply: &Reply<'_>) -> (String, String) {
    let reason = match reply.error {
        Some(error) => {
            format!("{} (SQLSTATE {})", error.message(), String::from_utf8_lossy(error.code()))
        }
        None => "the request left a transaction open".to_owned(),
    };
    let tag = String::from_utf8_lossy(reply.tag);
    (shown(&reason), format!("{} rows, {} bytes, {tag}", reply.rows, reply.bytes))
}

fn shown(text: &str) -> String {
    let cut = &text.as_bytes()[..text.len().min(SHOWN_MAX)];
    let whole = String::from_utf8_lossy(cut);
    whole.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query_file::Passes;
    use crate::script::UserOrder;

    const TEXT: &str = "-- two kinds\nSELECT 1\n\n  SELECT count(*) FROM t  \n";

    fn set(way: SqlMode) -> SqlSet {
        let mut classes = Classes::new(&["count=count"]).unwrap();
        SqlSet::parse(TEXT, way, &mut classes).unwrap()
    }

    #[test]
    fn statements_are_read_classed_and_asked_in_turn() {
        let simple = set(SqlMode::Simple);
        assert_eq!((simple.len(), simple.sql(1)), (2, "SELECT count(*) FROM t"));
        assert!(simple.to_prepare().is_empty());
        let prepared = set(SqlMode::Prepared);
        assert_eq!(prepared.to_prepare().len(), 2);
        let way = Way::new(0..2, 0, 1, Passes::Count(1));
        let mut sessions = SqlSessions::new(Arc::new(prepared), way);
        let mut request = Request::default();
        let mut asked = Vec::new();
        while let Turn::Ask(what) = sessions.next(0, 0, &mut request) {
            assert!(!what.idempotent && request.bytes() > 0);
            asked.push((sessions.set.class_names()[what.class as usize].clone(), what.item));
        }
        assert_eq!(asked, [("other".to_owned(), 0), ("count".to_owned(), 1)]);
        let what = Submission { class: 0, item: 1, idempotent: false };
        assert_eq!(sessions.describe(&what, &request), "line 4: SELECT count(*) FROM t");
    }

    #[test]
    fn users_ask_in_the_order_of_their_script() {
        let script = Script::new(UserOrder::Block, &[2, 2], 0, 1).unwrap();
        let mut sessions = SqlSessions::of_users(Arc::new(set(SqlMode::Simple)), script);
        let mut request = Request::default();
        let mut ask = |user, step| {
            sessions.user(0, UserTurn { user, step, free_ns: 0 });
            match sessions.next(0, 0, &mut request) {
                Turn::Ask(what) => what.item,
                other => panic!("{other:?}"),
            }
        };
        // Two users whose turns alternate, each of whom goes its own way.
        let asked: Vec<u64> = (0..4).flat_map(|step| [ask(0, step), ask(1, step)]).collect();
        assert_eq!(asked, [0, 0, 0, 0, 1, 1, 1, 1]);
    }

    #[test]
    fn wrong_files_are_told_by_line() {
        let told = |text| {
            let set = SqlSet::parse(text, SqlMode::Simple, &mut Classes::default());
            set.unwrap_err().to_string()
        };
        assert!(told("\n-- nothing\n").contains("no statement"));
        assert!(told("SELECT 1\nSELECT '\0'\n").starts_with("line 2: "));
    }
}

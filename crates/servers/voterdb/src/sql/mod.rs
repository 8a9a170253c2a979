//! The SQL that people type at `@AdHoc`: selects over the tables and views, and the simple forms of changes.
//!
//! It is small and honest: what it does not know is an error that says so. Whole numbers are 64 bits wide and an overflow is
//! an error; numbers with a point are floats. There are no sub-queries, no outer joins and no changes of the schema.

mod evaluate;
mod lexer;
mod names;
mod parser;
mod schema;
mod select;
mod sink;
mod source;
mod syntax;
mod write;

pub(crate) use lexer::TEXT_BYTES_MAX;
pub(crate) use schema::{TABLES, Table};
pub(crate) use source::{Database, votes_by_state};
pub(crate) use syntax::Statement;
pub(crate) use write::{greeting, replicate};

use super::result::{Datum, ResultTable};

/// Reason why a statement has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SqlError {
    /// It cannot be understood; nothing was done.
    #[error("SQL error while compiling query: {0}")]
    Compile(String),
    /// Its values cannot be computed.
    #[error("VOLTDB ERROR: SQL ERROR {0}")]
    Run(String),
    /// A row violates a constraint.
    #[error("VOLTDB ERROR: CONSTRAINT VIOLATION {0}")]
    Constraint(String),
}

/// Reads statements divided by semicolons.
pub(crate) fn parse(text: &str) -> Result<Vec<Statement>, SqlError> {
    parser::parse(text).map_err(SqlError::Compile)
}

/// Runs statements one after another, each over what those before it left, and returns a table of each. All are understood
/// before the first one runs; the first that fails then ends the rest, and whoever asked takes back what those before it
/// changed.
pub(crate) fn run(
    statements: &[Statement],
    params: &[Datum<'static>],
    database: &mut Database<'_>,
    deadline_ns: u64,
) -> Result<Vec<ResultTable>, SqlError> {
    check(statements, params)?;
    let mut rest = params;
    let one = |statement: &Statement| {
        let (own, others) = rest.split_at(statement.params());
        rest = others;
        match statement {
            Statement::Select(select) => select::run(select, own, database, deadline_ns),
            write => write::run(write, own, database, deadline_ns).map(ResultTable::modified),
        }
    };
    statements.iter().map(one).collect()
}

fn check(statements: &[Statement], params: &[Datum<'static>]) -> Result<(), SqlError> {
    let wanted: usize = statements.iter().map(Statement::params).sum();
    if wanted != params.len() {
        return Err(SqlError::Compile(format!(
            "Number of arguments provided was {} where {wanted} was expected for statement.",
            params.len()
        )));
    }
    let mut rest = params;
    statements.iter().try_for_each(|statement| {
        let (own, others) = rest.split_at(statement.params());
        rest = others;
        match statement {
            Statement::Select(select) => select::check(select, own),
            write => write::check(write, own),
        }
    })
}

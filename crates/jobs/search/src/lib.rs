//! A search matrix: queries that every engine is asked in its own language, and what is made of the answers.
//!
//! | part | holds |
//! |---|---|
//! | [`query`] | the neutral query list, read from TOML |
//! | [`builtin`] | ten queries of our own for the corpora of this program |
//! | [`dialect`] | how a query, a load and an index are said to Elasticsearch, Vespa and PostgreSQL |
//! | [`spec`] | the matrix itself, from a file or from flags |
//! | [`truth`] | what a query must find in a synthetic corpus |
//! | [`probe`] | words at known distances, and what an engine's answers say of it |
//! | [`bulk`] | sessions that load a text through an engine's bulk interface |
//! | [`sessions`] | the users of a cell |
//! | [`asking`] | sessions that ask once and keep the replies |
//! | [`cell`] | a cell's numbers from its repeats |
//! | [`statistics`] | the arithmetic of a cell |
//!
//! ```
//! use plimsoll_search::SearchError;
//!
//! let error = SearchError::new("matrix.toml:3: users: 0 users ask nothing");
//! assert!(error.to_string().starts_with("matrix.toml:3"));
//! ```

pub mod asking;
pub mod builtin;
pub mod bulk;
pub mod cell;
mod command;
mod compare;
mod csv;
pub mod dialect;
mod figures;
mod forms;
mod page;
mod pipe_table;
pub mod printed_table;
pub mod probe;
pub mod query;
pub mod sessions;
mod sheet;
pub mod spec;
pub mod statistics;
pub mod truth;

pub use command::SearchArgs;

/// Wrong input of a matrix: what is wrong, where, and what to do next, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SearchError(pub String);

impl SearchError {
    /// The error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

//! The result of planning: a query, or the reason why there is none.

use crate::mapping::Mapped;
use crate::words::WordQuery;
use tantivy::Term;
use tantivy::query::{ConstScoreQuery, ExistsQuery, Query};
use tantivy::schema::IndexRecordOption;

/// Reason why a query does not fit the schema; said to the client as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

/// A query, or why there is none.
pub(crate) type Made = Result<Box<dyn Query>, PlanError>;

/// The documents that have a value at all.
pub(crate) fn any_value(mapped: &Mapped) -> Box<dyn Query> {
    if let Some((names, name)) = &mapped.listed {
        let term = Term::from_field_text(*names, name);
        return flat(WordQuery::new(term, IndexRecordOption::Basic));
    }
    let column = mapped.column.clone().unwrap_or_default();
    flat(ExistsQuery::new(column, false))
}

/// A query whose matches do not add to the relevance.
pub(crate) fn flat(query: impl Query) -> Box<dyn Query> {
    Box::new(ConstScoreQuery::new(Box::new(query), 0.0))
}

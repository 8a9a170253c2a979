//! The rows that a matrix's requests are filled with.

use crate::usage::usage;
use anyhow::Result;
use plimsoll_workloads::render::{Authority, HttpForm, RenderedSet};
use plimsoll_workloads::rows::{Rows, TemplateSet};
use plimsoll_workloads::search::asking::render;
use plimsoll_workloads::search::dialect::{Call, HttpCall};
use plimsoll_workloads::search::query::Query;
use plimsoll_workloads::search::spec::MatrixSpec;
use std::sync::Arc;

/// The rows of a matrix, looked through; none where it has none.
///
/// # Errors
/// When they cannot be read, or do not fit the queries.
pub fn rows(spec: &MatrixSpec, list: &[Query]) -> Result<Option<Arc<Rows>>> {
    let Some(wanted) = &spec.rows else { return Ok(None) };
    let rows = Rows::load(&wanted.file)?;
    check(spec, list, &rows)?;
    Ok(Some(Arc::new(rows)))
}

/// Whether some request names a column, and none names what is no column.
fn check(spec: &MatrixSpec, list: &[Query], rows: &Rows) -> Result<()> {
    let file = rows.path().display();
    let nobody = Authority { host: "localhost".to_owned(), port: 80, tls: false };
    let form = HttpForm::new(&nobody, &[], false).map_err(usage)?;
    let mut plain = true;
    for engine in &spec.engines {
        for query in list {
            let Ok(Call::Http(call)) = engine.dialect.search("index", query, 0) else { continue };
            let mut cut = RenderedSet::default();
            cut.push(0, 0, |out| render(&form, &call, out));
            let templates = TemplateSet::new(&cut, rows)
                .map_err(|error| usage(format!("query '{}': {error}", query.name)))?;
            plain &= templates.is_plain();
        }
    }
    if plain {
        let name = &rows.names()[0];
        return Err(usage(format!(
            "rows of {file}: no query names one of its columns; write {{{{{name}}}}} in a query's text"
        )));
    }
    Ok(())
}

/// A request, filled with the first row.
///
/// # Errors
/// When it names what is no column.
pub fn with_first_row(form: &HttpForm, call: &HttpCall, rows: &Rows) -> Result<RenderedSet> {
    let mut cut = RenderedSet::default();
    cut.push(0, 0, |out| render(form, call, out));
    let templates = TemplateSet::new(&cut, rows).map_err(|error| usage(error.to_string()))?;
    let (mut filled, mut body) = (RenderedSet::default(), Vec::new());
    filled.push(0, 0, |out| templates.fill(cut.bytes(0), 0, rows, 0, &mut body, out));
    Ok(filled)
}

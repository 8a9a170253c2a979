//! The rows that a matrix's requests are filled with.

use crate::asking::render;
use crate::dialect::{Call, Dialect, HttpCall};
use crate::query::Query;
use crate::sessions::Statements;
use crate::spec::MatrixSpec;
use anyhow::Result;
use plimsoll_job::usage::usage;
use plimsoll_workloads::authority::Authority;
use plimsoll_workloads::render::{HttpForm, RenderedSet};
use plimsoll_workloads::rows::{Rows, TemplateSet};
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

/// Checks that some request names a column, and that each named column exists and its values can be put there.
fn check(spec: &MatrixSpec, list: &[Query], rows: &Rows) -> Result<()> {
    let file = rows.path().display();
    let nobody = Authority { host: "localhost".to_owned(), port: 80, tls: false };
    let form = HttpForm::new(&nobody, &[], false).map_err(usage)?;
    let farthest = spec.groups.iter().map(|group| group.distance).max().unwrap_or(0);
    let mut plain = true;
    for engine in &spec.engines {
        let mut statements = Statements::default();
        for (index, query) in list.iter().enumerate() {
            let said = |error: anyhow::Error| usage(format!("query '{}': {error}", query.name));
            match engine.dialect.search(INDEX, query, farthest) {
                Ok(Call::Http(call)) => {
                    let mut cut = RenderedSet::default();
                    cut.push(0, 0, |out| render(&form, &call, out));
                    plain &= templates(engine.dialect, &cut, rows).map_err(said)?.is_plain();
                }
                Ok(Call::Sql(text)) => {
                    plain &= !text.contains("{{");
                    let place = (INDEX, farthest);
                    add_sql(&mut statements, (index, query), place, Some(rows)).map_err(said)?;
                }
                Err(_) => {}
            }
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

/// An index's name for what is only looked through.
const INDEX: &str = "index";

/// Requests, cut for rows: values stand in JSON, or in strings of YQL inside of it.
///
/// # Errors
/// When a request names what is no column, or a value would break one.
pub fn templates(dialect: Dialect, set: &RenderedSet, rows: &Rows) -> Result<TemplateSet> {
    let made = match dialect {
        Dialect::Vespa => TemplateSet::with_quoted(set, rows),
        Dialect::Elasticsearch | Dialect::Postgresql => TemplateSet::new(set, rows),
    };
    made.map_err(|error| usage(error.to_string()))
}

/// Adds a query's SQL, for each row where it names a column.
///
/// # Errors
/// When a row cannot fill it, or there is too much of it.
pub fn add_sql(
    statements: &mut Statements,
    (class, query): (usize, &Query),
    (index, distance): (&str, u8),
    rows: Option<&Rows>,
) -> Result<()> {
    let mut wrong = None;
    let made = |row: usize| match rows {
        Some(rows) => Dialect::filled_sql(index, query, distance, rows, row),
        None => match Dialect::Postgresql.search(index, query, distance)? {
            Call::Sql(text) => Ok(text),
            Call::Http(_) => Err("it is not SQL".to_owned()),
        },
    };
    let plain = match Dialect::Postgresql.search(index, query, distance) {
        Ok(Call::Sql(text)) => !text.contains("{{"),
        _ => true,
    };
    let count = rows.filter(|_| !plain).map_or(1, Rows::len);
    let texts =
        (0..count).map_while(|row| made(row).map_err(|error| wrong = Some((row, error))).ok());
    let pushed = statements.push(class as u16, Dialect::tells_hits(query), texts);
    match (wrong, rows) {
        (Some((row, error)), Some(rows)) => {
            let place = format!("{}:{}", rows.path().display(), rows.line(row));
            Err(usage(format!("{place}: {error}")))
        }
        (Some((_, error)), None) => Err(usage(error)),
        (None, _) => Ok(pushed.map_err(|error| usage(error.to_string()))?),
    }
}

/// A query's call with the first row in its places.
///
/// # Errors
/// When it names what is no column, or the row cannot fill it.
pub fn sql_of_first_row(query: &Query, place: (&str, u8), rows: &Rows) -> Result<Call> {
    let text = Dialect::filled_sql(place.0, query, place.1, rows, 0).map_err(usage)?;
    Ok(Dialect::told_sql(&text, query))
}

/// A request, filled with the first row.
///
/// # Errors
/// When it names what is no column.
pub fn with_first_row(
    dialect: Dialect,
    form: &HttpForm,
    call: &HttpCall,
    rows: &Rows,
) -> Result<RenderedSet> {
    let mut cut = RenderedSet::default();
    cut.push(0, 0, |out| render(form, call, out));
    let templates = templates(dialect, &cut, rows)?;
    let (mut filled, mut body) = (RenderedSet::default(), Vec::new());
    filled.push(0, 0, |out| templates.fill(cut.bytes(0), 0, rows, 0, &mut body, out));
    Ok(filled)
}

//! Requests of users, and the rows that fill them.

use super::{Source, SourceKind};
use crate::usage::usage;
use anyhow::Result;
use plimsoll_core::scenario::{RowOrder, RowsPer, Scenario};
use plimsoll_core::schedule::LoadModel;
use plimsoll_workloads::rows::{Rows, TemplateError, TemplateSet, place_in_a_head};
use plimsoll_workloads::script::{Script, UserOrder};
use std::sync::Arc;

/// Rows, and the requests cut for them.
pub(super) struct Filling {
    pub rows: Arc<Rows>,
    pub order: (RowOrder, RowsPer),
    /// One set a target.
    pub templates: Arc<Vec<TemplateSet>>,
}

/// Refuses settings of users where there are none.
///
/// # Errors
/// The first of them.
pub fn check(scenario: &Scenario) -> Result<()> {
    let users = matches!(scenario.load, LoadModel::Users { .. });
    let per_user = scenario.rows.as_ref().is_some_and(|rows| rows.per == RowsPer::User);
    let wrong = if scenario.repeat == 0 {
        "--passes must be at least 1"
    } else if !users && scenario.repeat != 1 {
        "--passes is the number of times that each user sends each request; it needs --users"
    } else if !users && per_user {
        "--rows-per user needs --users; without users each request has a row"
    } else if users && scenario.ignore_first > 0 {
        "the first requests of clients can be excluded, those of users cannot; use --warmup"
    } else {
        return Ok(());
    };
    Err(usage(wrong))
}

/// Requests of each user; `None` in models without users.
pub(super) fn script(scenario: &Scenario, source: &Source) -> Result<Option<Script>> {
    if !matches!(scenario.load, LoadModel::Users { .. }) {
        return Ok(None);
    }
    let SourceKind::Rendered(rendered) = &source.kind else {
        return Err(usage(
            "--users: a file of requests of over 64 MiB is streamed, and users need theirs in memory; \
             use a smaller file, or --rows",
        ));
    };
    script_of(scenario, rendered.per_target[0].len())
}

/// Requests of each user out of this many; `None` in models without users.
///
/// # Errors
/// An order that is none, or more than a user can ask.
pub fn script_of(scenario: &Scenario, count: usize) -> Result<Option<Script>> {
    let LoadModel::Users { requests, .. } = scenario.load else { return Ok(None) };
    let order = match scenario.order.as_str() {
        "file" => UserOrder::File,
        "block" => UserOrder::Block,
        "interleaved" => UserOrder::Interleaved,
        "shuffle" => UserOrder::Shuffle,
        "random" => UserOrder::Random,
        other => {
            return Err(usage(format!(
                "--order '{other}': write file, block, interleaved, shuffle or random"
            )));
        }
    };
    let repeats = vec![scenario.repeat; count];
    Script::new(order, &repeats, requests, scenario.seed).map(Some).map_err(usage)
}

/// Refuses a place for a value in a URL or header when there are no rows to fill it from.
fn unfilled(scenario: &Scenario, source: &Source) -> Result<()> {
    let SourceKind::Rendered(rendered) = &source.kind else { return Ok(()) };
    let Some((line, place)) = rendered.per_target.first().and_then(place_in_a_head) else {
        return Ok(());
    };
    let whence = match &scenario.queries {
        Some(path) => format!("{}:{line}", path.display()),
        None => "URL or --header".to_owned(),
    };
    Err(usage(format!("{whence}: {place} needs rows; use --rows FILE, or write %7B%7B for braces")))
}

/// The rows of a scenario, with its requests cut for them; `None` where there are no rows.
pub(super) fn filling(scenario: &Scenario, source: &Source) -> Result<Option<Filling>> {
    let Some(wanted) = &scenario.rows else {
        unfilled(scenario, source)?;
        return Ok(None);
    };
    let SourceKind::Rendered(rendered) = &source.kind else {
        return Err(usage(
            "--rows: a file of requests of over 64 MiB is streamed and cannot be filled; use a smaller one",
        ));
    };
    let rows = Rows::load(&wanted.file)?;
    let cut = rendered.per_target.iter().map(|set| TemplateSet::new(set, &rows));
    let templates = cut.collect::<Result<Vec<_>, _>>().map_err(|error| {
        let place = match (&error, &scenario.queries) {
            (TemplateError::Value { row_line, .. }, _) => {
                format!("{}:{row_line}", wanted.file.display())
            }
            (
                TemplateError::Unknown { line, .. }
                | TemplateError::NotClosed { line, .. }
                | TemplateError::NotSafe { line, .. },
                Some(path),
            ) => format!("{}:{line}", path.display()),
            _ => "URL, --header or --body".to_owned(),
        };
        usage(format!("{place}: {error}"))
    })?;
    if templates.iter().all(TemplateSet::is_plain) {
        return Err(usage(format!(
            "--rows {}: no request names one of its columns; write {{{{{}}}}} in a URL, header or body",
            wanted.file.display(),
            rows.names()[0]
        )));
    }
    let order = (wanted.order, wanted.per);
    Ok(Some(Filling { rows: Arc::new(rows), order, templates: Arc::new(templates) }))
}

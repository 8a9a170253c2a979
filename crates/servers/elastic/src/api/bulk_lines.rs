//! The lines of a bulk that say what is to be done.

use super::super::error::ElasticError;
use hyper::body::Bytes;
use memchr::memchr;
use serde::Deserialize;
use serde_json::Value as Json;
use std::borrow::Cow;

/// The name of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Index,
    Create,
    Update,
    Delete,
}

impl Verb {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    index: Option<Meta<'a>>,
    #[serde(borrow)]
    create: Option<Meta<'a>>,
    #[serde(borrow)]
    update: Option<Meta<'a>>,
    #[serde(borrow)]
    delete: Option<Meta<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Meta<'a> {
    #[serde(borrow)]
    pub(super) _index: Option<Cow<'a, str>>,
    pub(super) _id: Option<Json>,
    _type: Option<Json>,
    #[serde(borrow)]
    pub(super) routing: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) _routing: Option<Cow<'a, str>>,
    pub(super) if_seq_no: Option<u64>,
    #[serde(rename = "if_primary_term")]
    _term: Option<u64>,
    pub(super) version: Option<u64>,
    #[serde(borrow)]
    pub(super) version_type: Option<Cow<'a, str>>,
    #[serde(rename = "retry_on_conflict")]
    _retries: Option<u64>,
    #[serde(rename = "require_alias")]
    _alias: Option<bool>,
}

/// Takes a line off a body.
pub(super) fn next_line(body: &Bytes, at: &mut usize) -> std::ops::Range<usize> {
    let start = *at;
    let length = memchr(b'\n', &body[start..]).unwrap_or(body.len() - start);
    *at = (start + length + 1).min(body.len());
    let end = start + length;
    let end = if end > start && body[end - 1] == b'\r' { end - 1 } else { end };
    start..end
}

/// Reads the line with what is to be done.
///
/// # Errors
/// When it is not understood.
pub(super) fn action(line: &[u8], number: usize) -> Result<(Verb, Meta<'_>), ElasticError> {
    let malformed = |what: String| {
        let reason = format!("Malformed action/metadata line [{number}], {what}");
        ElasticError::argument(reason)
    };
    let line: Line<'_> = serde_json::from_slice(line).map_err(|error| {
        if error.is_data() { malformed(error.to_string()) } else { ElasticError::json(&error) }
    })?;
    let verbs = [
        (Verb::Index, line.index),
        (Verb::Create, line.create),
        (Verb::Update, line.update),
        (Verb::Delete, line.delete),
    ];
    let mut given = verbs.into_iter().filter_map(|(verb, meta)| Some((verb, meta?)));
    match (given.next(), given.next()) {
        (Some(found), None) => Ok(found),
        _ => Err(malformed("expected field [create], [delete], [index] or [update]".to_owned())),
    }
}

/// Reads the lines of a bulk, those that say what is to be done; for fuzzing.
///
/// # Errors
/// As [`action`].
pub(crate) fn actions(body: &[u8]) -> Result<usize, ElasticError> {
    let body = Bytes::copy_from_slice(body);
    let (mut at, mut number, mut found) = (0, 0, 0);
    while at < body.len() {
        let line = next_line(&body, &mut at);
        number += 1;
        if body[line.clone()].trim_ascii().is_empty() {
            continue;
        }
        let (verb, _) = action(&body[line], number)?;
        if verb != Verb::Delete {
            let _ = next_line(&body, &mut at);
            number += 1;
        }
        found += 1;
    }
    Ok(found)
}

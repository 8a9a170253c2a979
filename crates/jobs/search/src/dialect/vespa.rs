//! Vespa's YQL, as Vespa and `plimsoll serve search` have it, for the document type `doc`.

use super::{Call, Found};
use crate::query::{Bound, Clause, FieldKind, Query, field_kind, words};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use serde_json::{Value, json};

/// Documents are written below this path.
pub(super) const DOCUMENTS: &str = "/document/v1/plimsoll/doc/docid/";

/// The request of a query.
pub(super) fn search(query: &Query, distance: u8) -> Result<Call, String> {
    let body = json!({ "yql": yql(query, distance)?, "hits": query.size });
    Ok(Call::json("POST", "/search/", &body))
}

/// Its YQL.
pub(super) fn yql(query: &Query, distance: u8) -> Result<String, String> {
    if let Clause::Raw(texts) = &query.clause {
        let text = texts.get("vespa").ok_or("the query has no text for vespa")?;
        return Ok(text.replace("{distance}", &distance.to_string()));
    }
    Ok(format!("select * from doc where {}", condition(&query.clause, distance)?))
}

pub(super) fn count() -> Call {
    let body = json!({ "yql": "select * from doc where true", "hits": 0 });
    Call::json("POST", "/search/", &body)
}

/// Removes every document of the matrix's.
const REMOVE_ALL: &str =
    "/document/v1/plimsoll/doc/docid/?selection=true&cluster=plimsoll&timeChunk=60s";

/// Removes every document; a `timeChunk` ends the request before a proxy would.
pub(super) fn remove_all() -> Call {
    Call::without_body("DELETE", REMOVE_ALL)
}

/// Continues, where it was ended before all of them were gone.
pub(super) fn remove_on(continuation: &str) -> Option<Call> {
    let token = percent_encode(continuation.as_bytes(), NON_ALPHANUMERIC);
    let path = format!("{REMOVE_ALL}&continuation={token}");
    (!continuation.is_empty()).then(|| Call::without_body("DELETE", path))
}

/// Asks for a document.
pub(super) fn document(id: &str) -> Call {
    let id = percent_encode(id.as_bytes(), NON_ALPHANUMERIC);
    Call::without_body("GET", format!("{DOCUMENTS}{id}"))
}

fn condition(clause: &Clause, distance: u8) -> Result<String, String> {
    Ok(match clause {
        Clause::Fuzzy { field, word, distance: own } => {
            one_word(field, word, own.in_cell(distance))
        }
        Clause::Match { field, text, all, distance: own } => {
            let edits = own.in_cell(distance);
            let values = match field_kind(field) {
                FieldKind::Keyword => vec![text.clone()],
                _ => words(text),
            };
            let parts: Vec<String> =
                values.iter().map(|word| one_word(field, word, edits)).collect();
            joined(&parts, if *all { " and " } else { " or " })
        }
        Clause::Phrase { field, text, distance: own } => {
            if own.in_cell(distance) > 0 {
                return Err("phrase() takes exact words only".to_owned());
            }
            let parts: Vec<String> = words(text).iter().map(|word| quoted(word)).collect();
            match parts.as_slice() {
                [word] => format!("{field} contains {word}"),
                several => format!("{field} contains phrase({})", several.join(", ")),
            }
        }
        Clause::Term { field, values } => {
            let parts: Vec<String> = values.iter().map(|value| equal(field, value)).collect();
            joined(&parts, " or ")
        }
        Clause::Prefix { field, text } => {
            format!("{field} contains ({{prefix: true}}{})", quoted(text))
        }
        Clause::Range { field, at_least, above, at_most, below } => {
            range(field, [(">=", at_least), (">", above), ("<=", at_most), ("<", below)])
        }
        Clause::Exists { .. } => {
            return Err("YQL has no test for a field without a value".to_owned());
        }
        Clause::Ids { .. } => return Err("YQL does not search document ids".to_owned()),
        Clause::All => "true".to_owned(),
        Clause::Bool { must, should, must_not, minimum } => {
            several(must, should, must_not, *minimum, distance)?
        }
        Clause::Raw(_) => return Err("a raw text cannot be part of another query".to_owned()),
    })
}

fn several(
    must: &[Clause],
    should: &[Clause],
    must_not: &[Clause],
    minimum: u32,
    distance: u8,
) -> Result<String, String> {
    let all = |clauses: &[Clause]| {
        clauses.iter().map(|one| condition(one, distance)).collect::<Result<Vec<_>, _>>()
    };
    let (mut parts, should) = (all(must)?, all(should)?);
    match minimum as usize {
        // Optional ones change the ranking only, which this matrix does not compare.
        0 => {}
        1 => parts.push(joined(&should, " or ")),
        every if every == should.len() => parts.extend(should),
        _ => return Err("YQL cannot express 'at least N of these'".to_owned()),
    }
    if parts.is_empty() {
        parts.push("true".to_owned());
    }
    parts.extend(all(must_not)?.iter().map(|part| format!("!({part})")));
    Ok(joined(&parts, " and "))
}

fn one_word(field: &str, word: &str, edits: u8) -> String {
    match edits {
        0 => format!("{field} contains {}", quoted(word)),
        _ => format!("{field} contains ({{maxEditDistance: {edits}}}fuzzy({}))", quoted(word)),
    }
}

fn equal(field: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("{field} contains {}", quoted(text)),
        other => format!("{field} = {other}"),
    }
}

fn range(field: &str, bounds: [(&str, &Bound); 4]) -> String {
    let parts: Vec<String> = bounds
        .iter()
        .filter_map(|(sign, bound)| Some(format!("{field} {sign} {}", bound.as_ref()?)))
        .collect();
    joined(&parts, " and ")
}

fn joined(parts: &[String], joint: &str) -> String {
    match parts {
        [one] => one.clone(),
        several => format!("({})", several.join(joint)),
    }
}

/// A string as YQL reads it, which has JSON's escapes.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

pub(super) fn found(value: &Value) -> Found {
    let hits = value.pointer("/root/fields/totalCount").and_then(Value::as_u64);
    let ids = value.pointer("/root/children").and_then(Value::as_array);
    let ids = ids.map_or_else(Vec::new, |hits| {
        hits.iter()
            .filter_map(|hit| {
                let id = hit.pointer("/fields/documentid").or_else(|| hit.get("id"))?.as_str()?;
                // The corpus knows its documents by the last part: id:plimsoll:doc::s17.
                Some(id.rsplit("::").next().unwrap_or(id).to_owned())
            })
            .collect()
    });
    Found { hits, ids }
}

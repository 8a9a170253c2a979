//! Queries made of queries: `bool`, `dis_max`, `constant_score`.

use super::super::error::{At, ElasticError};
use super::minimum;
use super::params::{Outcome, boost, flag, number, token, unknown};
use super::{
    Context, MAX_CLAUSES, Made, all_of, boosted, constant as constant_node, query, some_of,
};
use plimsoll_index::query::{AtLeast, Node};
use serde_json::Value as Json;

/// A clause, or a list of them.
fn clauses(json: &Json, at: &At<'_>, context: Context<'_>) -> Outcome<Vec<Node>> {
    match json {
        Json::Array(items) => {
            if items.len() > MAX_CLAUSES {
                let reason = format!("maxClauseCount is set to {MAX_CLAUSES}");
                return Err(ElasticError::new(400, "too_many_clauses", reason));
            }
            let items = items.iter().enumerate();
            items.map(|(number, item)| query(item, &at.item(number), context)).collect()
        }
        Json::Object(_) => Ok(vec![query(json, at, context)?]),
        other => {
            let reason = format!("doesn't support values of type: {}", token(other));
            Err(ElasticError::bad_value(at, reason))
        }
    }
}

/// The clauses of `bool` under a key.
fn clauses_of(key: &str, json: &Json, at: &At<'_>, context: Context<'_>) -> Outcome<Vec<Node>> {
    if !json.is_array() && !json.is_object() {
        let reason = format!("[bool] {key} doesn't support values of type: {}", token(json));
        return Err(ElasticError::bad_value(at, reason));
    }
    clauses(json, at, context).map_err(|error| error.within("bool", key, at))
}

/// `bool`
pub(super) fn read(body: &Json, at: &At<'_>, context: Context<'_>) -> Made {
    let (mut must, mut should, mut filters, mut must_not) = (vec![], vec![], vec![], vec![]);
    let (mut minimum, mut factor, mut all_but) = (None, 1.0, true);
    for (key, value) in body.as_object().into_iter().flatten() {
        let at = at.key(key);
        match key.as_str() {
            "must" => must.extend(clauses_of(key, value, &at, context)?),
            "should" => should.extend(clauses_of(key, value, &at, context)?),
            "filter" => filters.extend(clauses_of(key, value, &at, context)?),
            "must_not" | "mustNot" => must_not.extend(clauses_of(key, value, &at, context)?),
            "minimum_should_match" => minimum = Some(value),
            "boost" => factor = boost(value, &at)?,
            "adjust_pure_negative" => all_but = flag(value)?,
            "_name" => {}
            _ => return Err(ElasticError::unknown_field("bool", key, &at)),
        }
    }
    if must.is_empty() && should.is_empty() && filters.is_empty() && must_not.is_empty() {
        return Ok(constant_node(Node::All, factor));
    }
    let required = !must.is_empty() || !filters.is_empty();
    let at_least = match minimum {
        Some(minimum) if !should.is_empty() => {
            minimum::required(minimum, should.len()).map_err(|error| context.not_made(error))?
        }
        _ => usize::from(!required && !should.is_empty()),
    };
    // Without anything required one of the optional clauses is.
    let at_least = if required || should.is_empty() { at_least } else { at_least.max(1) };
    must.extend(filters.into_iter().map(|filter| constant_node(filter, 0.0)));
    if must.is_empty() && should.is_empty() {
        // Nothing but exclusions: of all documents, or of none.
        if !all_but {
            return Ok(Node::Nothing);
        }
        must.push(constant_node(Node::All, 0.0));
    }
    must.extend(must_not.into_iter().map(|node| Node::Not(Box::new(node))));
    let node = match (must.is_empty(), should.is_empty()) {
        (_, true) => all_of(must),
        (true, false) => some_of(should, at_least),
        (false, false) => Node::AtLeast(Box::new(AtLeast { must, should, at_least })),
    };
    Ok(boosted(node, factor))
}

/// `dis_max`
pub(super) fn best(body: &Json, at: &At<'_>, context: Context<'_>) -> Made {
    let (mut children, mut tie_breaker, mut factor) = (None, 0.0, 1.0);
    for (key, value) in body.as_object().into_iter().flatten() {
        let at = at.key(key);
        match key.as_str() {
            "queries" => children = Some(clauses(value, &at, context)?),
            "tie_breaker" => tie_breaker = number(value, &at)? as f32,
            "boost" => factor = boost(value, &at)?,
            "_name" => {}
            _ => return Err(unknown("dis_max", key, &at)),
        }
    }
    let children = children.filter(|children| !children.is_empty()).ok_or_else(|| {
        ElasticError::parsing(at, "[dis_max] requires 'queries' field with at least one clause")
    })?;
    Ok(boosted(Node::Best { children, tie_breaker }, factor))
}

/// `constant_score`
pub(super) fn constant(body: &Json, at: &At<'_>, context: Context<'_>) -> Made {
    let (mut filter, mut factor) = (None, 1.0);
    for (key, value) in body.as_object().into_iter().flatten() {
        let at = at.key(key);
        match key.as_str() {
            "filter" if value.is_object() => filter = Some(query(value, &at, context)?),
            "filter" => {
                let reason = "unexpected token [START_ARRAY]";
                return Err(ElasticError::parsing(&at, reason));
            }
            "boost" => factor = boost(value, &at)?,
            "_name" => {}
            _ => return Err(unknown("constant_score", key, &at)),
        }
    }
    let filter = filter
        .ok_or_else(|| ElasticError::parsing(at, "[constant_score] requires a 'filter' element"))?;
    Ok(constant_node(filter, factor))
}

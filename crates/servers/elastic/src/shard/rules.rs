//! Conditions of an operation, and merging of partial changes.

use super::super::error::ElasticError;
use super::ids::Entry;
use super::operation::{Condition, Item, Operation};
use serde_json::Value as Json;

/// An object as bytes.
pub(super) fn object_bytes(source: &serde_json::Map<String, Json>) -> Vec<u8> {
    Json::Object(source.clone()).to_string().into_bytes()
}

/// Checks the conditions of an operation; gives the version that the document gets.
pub(super) fn check(
    item: &Item,
    known: Option<Entry>,
    present: Option<Entry>,
) -> Result<u64, ElasticError> {
    let conflict = |what: String| {
        let reason = format!("[{}]: version conflict, {what}", item.id);
        Err(ElasticError::new(409, "version_conflict_engine_exception", reason))
    };
    let Condition { if_sequence, external } = item.condition;
    if matches!(item.operation, Operation::Create(..))
        && let Some(present) = present
    {
        let version = present.version;
        return conflict(format!("document already exists (current version [{version}])"));
    }
    if let Some(wanted) = if_sequence {
        match present {
            Some(entry) if entry.sequence == wanted => {}
            Some(entry) => {
                return conflict(format!(
                    "required seqNo [{wanted}], primary term [1]. current document has seqNo [{}] \
                     and primary term [1]",
                    entry.sequence
                ));
            }
            None => {
                return conflict(format!(
                    "required seqNo [{wanted}], primary term [1]. but no document was found"
                ));
            }
        }
    }
    if let Some((version, again)) = external {
        let current = known.map_or(0, |entry| entry.version);
        if known.is_some() && (current > version || (current == version && !again)) {
            return conflict(format!(
                "current version [{current}] is higher or equal to the one provided [{version}]"
            ));
        }
        return Ok(version);
    }
    Ok(known.map_or(0, |entry| entry.version) + 1)
}

/// Merges an object into another, objects inside too. Tells whether anything has changed.
pub(super) fn merge(
    into: &mut serde_json::Map<String, Json>,
    from: &serde_json::Map<String, Json>,
) -> bool {
    let mut changed = false;
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Json::Object(old)), Json::Object(new)) => changed |= merge(old, new),
            (Some(old), new) if old == new => {}
            (_, new) => {
                into.insert(key.clone(), new.clone());
                changed = true;
            }
        }
    }
    changed
}

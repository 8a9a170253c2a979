//! The results of several clients added up.

use anyhow::Result;
use plimsoll_core::histogram::Histogram;
use plimsoll_record::voter::VoterResult;

/// The sum of two counts; none if one of them is unknown.
#[must_use]
pub fn add(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.saturating_add(other?))
}

/// Adds the result of a process. The times that servers report are in `server`.
///
/// # Errors
/// A histogram that cannot be read.
pub fn add_up(result: &mut VoterResult, own: &VoterResult, server: &mut Histogram) -> Result<()> {
    result.accepted += own.accepted;
    result.rejected.contestant += own.rejected.contestant;
    result.rejected.limit += own.rejected.limit;
    result.unknown += own.unknown;
    result.retries += own.retries;
    for (what, count) in &own.errors {
        *result.errors.entry(what.clone()).or_default() += count;
    }
    result.rows_before = add(result.rows_before, own.rows_before);
    result.rows_after = add(result.rows_after, own.rows_after);
    if !own.check_reason.is_empty() {
        result.check_reason.clone_from(&own.check_reason);
    }
    if !own.server.histogram.is_empty() {
        server.merge(&Histogram::decode(&own.server.histogram)?);
    }
    // The process that asked last saw all votes.
    let votes = |one: &VoterResult| one.contestants.iter().map(|c| c.votes).sum::<u64>();
    if votes(own) >= votes(result) {
        result.contestants.clone_from(&own.contestants);
    }
    result.processes.extend(own.processes.iter().cloned());
    Ok(())
}

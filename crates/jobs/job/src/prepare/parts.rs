//! A run as one part of a larger one: its share of the plan, and what cannot be shared.

use crate::together::{is_coordinator, parts_word};
use crate::usage::usage;
use anyhow::Result;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::Slice;
use plimsoll_core::verdict::ConnectionLimit;
use plimsoll_engine::shard::ShardPlan;

/// The part of a whole run's plan that is carried out here. The parts together are the whole.
pub(super) fn cut(whole: ShardPlan, slice: Slice) -> ShardPlan {
    if slice.is_whole() {
        return whole;
    }
    let mut own = whole.cut(slice.index, slice.of);
    let share = |most: u32| slice.share(most.into()) as u32;
    own.connection_limit = match whole.connection_limit {
        ConnectionLimit::Asked(most) => ConnectionLimit::Asked(share(most)),
        ConnectionLimit::Own(most) => ConnectionLimit::Own(share(most)),
        ConnectionLimit::Machine(most) => ConnectionLimit::Machine(share(most)),
        limit @ (ConnectionLimit::None | ConnectionLimit::Grown) => limit,
    };
    own
}

/// Every thread needs a slot and a connection of its own, and every part something to do: one more than were asked for
/// would be another load. Clients that each have their own connection are dealt out with it, and a thread may have none.
pub(super) fn check_shares(scenario: &Scenario, slots: Option<u32>) -> Result<()> {
    let (threads, parts) = (scenario.threads_in_all(), scenario.slice.of);
    let is_short = |count: &u32| *count < threads;
    let connections =
        scenario.connections.filter(|_| scenario.connections != scenario.load.clients());
    let short = match (slots.filter(is_short), connections.filter(is_short)) {
        (Some(slots), _) => format!("--slots {slots}"),
        (None, Some(connections)) => format!("--connections {connections}"),
        (None, None) => return check_parts(scenario),
    };
    Err(usage(match parts {
        1 => format!("{short} is less than one for each of {threads} threads; use fewer --threads"),
        _ => format!(
            "{short} is less than one for each of {threads} threads ({parts} parts of {}); use fewer parts or --threads",
            scenario.threads
        ),
    }))
}

/// Rejects a run in more parts than it has clients, users or requests: some parts would have none.
///
/// # Errors
/// The first of these numbers that is too small.
pub fn check_parts(scenario: &Scenario) -> Result<()> {
    let parts = u64::from(scenario.slice.of);
    let counts = [
        (scenario.load.clients().map(u64::from), "clients"),
        (scenario.load.most_users(), "users"),
        (scenario.requests, "requests"),
    ];
    for (count, name) in counts {
        if let Some(count) = count.filter(|&count| parts > 1 && count < parts) {
            return Err(usage(format!(
                "{count} {name} cannot be shared out to {parts} parts; use fewer parts, or more {name}"
            )));
        }
    }
    Ok(())
}

/// Rejects a part of a larger run, and a run by agents, where `what` needs the whole; `why` says what for.
///
/// # Errors
/// If the slice is not the whole, or others carry it out.
pub fn only_whole(slice: Slice, what: &str, why: &str) -> Result<()> {
    if is_coordinator() {
        return Err(usage(format!("{what} cannot be shared out to {}: {why}", parts_word())));
    }
    match slice.is_whole() {
        true => Ok(()),
        false => Err(usage(format!("{what} cannot be part {slice} of a larger run: {why}"))),
    }
}

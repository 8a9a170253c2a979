//! Agents of a run on several machines, a line each.

use crate::number::{count, significant};
use crate::page::{Column, Page, Tone};
use crate::plain::{clip, printable};
use plimsoll_core::verdict::VerdictKind;
use plimsoll_record::RunRecord;
use plimsoll_record::fleet::{AgentResult, FleetResult, Members, Role};

/// Agents that have a line; the record holds all of them.
const LINES_MAX: usize = 20;
/// Longest name of an agent on the page, characters.
const NAME_CHARS_MAX: usize = 32;

/// The table, and how well the agents started together.
pub fn table(page: &mut Page<'_>, record: &RunRecord) {
    let Some(fleet) = record.job_results.fleet() else { return };
    let columns = [
        Column::text(match fleet.members {
            Members::Agents => "Agents",
            Members::Processes => "Processes",
        }),
        Column::number("sent", 0),
        Column::number("ok", 1),
        Column::number("failed", 1),
        Column::number("ok/s", 0),
        Column::number("p50 ms", 0),
        Column::number("p95", 0),
        Column::number("p99", 0),
        Column::number("lag p99", 0),
        Column::number("cpu s", 2),
    ];
    let (shown, left_out) = shown(fleet, page.is_verbose());
    let rows: Vec<(Vec<String>, Tone)> =
        shown.into_iter().map(|agent| row(fleet.members, agent)).collect();
    page.table(&columns, &rows);
    if left_out > 0 {
        page.note(&format!("{left_out} more in the record; --verbose prints them"));
    }
    if fleet.start_skew_max_ms <= 0.0 {
        // An agent's own record, and one that was merged from such.
        return;
    }
    page.note(&format!(
        "start skew: p99 {} ms, at most {} ms",
        significant(fleet.start_skew_p99_ms),
        significant(fleet.start_skew_max_ms)
    ));
}

/// Those that were lost or limited first, in a table that stays short.
fn shown(fleet: &FleetResult, is_verbose: bool) -> (Vec<&AgentResult>, usize) {
    let mut agents: Vec<&AgentResult> = fleet.agents.iter().collect();
    if is_verbose || agents.len() <= LINES_MAX {
        return (agents, 0);
    }
    let is_well = |agent: &&AgentResult| {
        let is_whole = agent.figures.is_some() || is_watching(agent);
        is_whole && agent.verdict.is_none_or(|kind| kind == VerdictKind::Valid)
    };
    agents.sort_by_key(is_well);
    let left_out = agents.split_off(LINES_MAX).len();
    (agents, left_out)
}

/// Returns true for an agent that has watched to the end.
fn is_watching(agent: &AgentResult) -> bool {
    agent.role == Role::Watch && agent.trouble.is_none()
}

fn row(members: Members, agent: &AgentResult) -> (Vec<String>, Tone) {
    let name = clip(&printable(&members.label(&agent.name)), NAME_CHARS_MAX);
    if agent.role == Role::Watch {
        let dashes = std::iter::repeat_n("-".to_owned(), 9);
        let (state, tone) = match is_watching(agent) {
            true => ("watch", Tone::Plain),
            false => ("watch, lost", Tone::Warn),
        };
        return (std::iter::once(format!("{name} ({state})")).chain(dashes).collect(), tone);
    }
    let Some(own) = &agent.figures else {
        let dashes = std::iter::repeat_n("-".to_owned(), 9);
        return (std::iter::once(format!("{name} (lost)")).chain(dashes).collect(), Tone::Bad);
    };
    let is_limited = agent.verdict == Some(VerdictKind::GeneratorLimited);
    let cells = [
        match (is_limited, agent.role) {
            (true, _) => format!("{name} (limited)"),
            (false, Role::Feed) => format!("{name} (feed)"),
            (false, _) => name,
        },
        count(own.sent),
        count(own.ok),
        count(own.failed),
        count(own.ok_per_s.round() as u64),
        significant(own.p50_ms),
        significant(own.p95_ms),
        significant(own.p99_ms),
        significant(own.lag_p99_ms),
        significant(own.cpu_s),
    ];
    (cells.to_vec(), if is_limited { Tone::Warn } else { Tone::Plain })
}

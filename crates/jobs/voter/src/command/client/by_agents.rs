//! The parts of a run by agents or processes together. The coordinator counts the rows, before the first call and after the last one,
//! and compares them with the votes: agents vote in one key range, and each process in one of its own.

use super::{Before, Counted};
use crate::command::contact::Contact;
use crate::command::start::wall_of;
use crate::command::sums::add_up;
use crate::command::task::Task;
use anyhow::{Result, anyhow};
use plimsoll_core::histogram::Histogram;
use plimsoll_core::voter::WriteCheck;
use plimsoll_engine::run::RunEnd;
use plimsoll_job::together::{
    Gathered, Part, gather, is_coordinator, kept, part_title, trouble_of,
};
use plimsoll_job::usage::one_line;
use plimsoll_record::voter::{ServerTimes, Totals, VoterProcess, VoterResult};
use plimsoll_record::{JobResults, RunRecord};
use plimsoll_report::forms::{Merged, Parts};
use serde::{Deserialize, Serialize};

/// Result of one part.
#[derive(Serialize, Deserialize)]
struct VoterPart {
    result: VoterResult,
    /// The common start on the wall clock of the agent's machine, us since the Unix epoch.
    start_us: u64,
    /// Reason why it ended before its time.
    trouble: Option<String>,
}

/// The result of this run: of this part on an agent, of all parts at their coordinator. Returns why it ended before its time, too.
///
/// # Errors
/// A result that cannot be sent or read.
pub fn conclude(
    task: &Task,
    before: &Before,
    end: &RunEnd,
    counted: Counted,
) -> Result<(VoterResult, Option<String>)> {
    let start_us = wall_of(end.start_ns);
    let own = || {
        let (result, trouble) = super::conclude(task, before, end, counted);
        Ok(VoterPart { result, start_us, trouble })
    };
    let mut gathered = gather(own)?;
    if !is_coordinator() {
        let only = gathered.parts.pop().ok_or_else(|| anyhow!("the calls have no result"))?;
        return Ok((only.value.result, only.value.trouble));
    }
    let lacks = gathered.lacks();
    let (mut result, trouble) = sum(gathered, start_us)?;
    result.agreed_start_us = before.agreed_us;
    if task.has_own_ranges() {
        for process in &mut result.processes {
            process.client = format!("{}{}", task.shape.client, process.index + 1);
        }
    }
    result.key_range = task.range();
    result.shape = Some(task.shape.clone());
    result.hosts = task.database.hosts();
    if !task.is_voter() {
        result.check_reason = "hello only reads".to_owned();
        return Ok((result, trouble));
    }
    let mut after = Vec::new();
    let counted =
        Contact::open(&task.database, task.scenario.connect_timeout).and_then(|mut contact| {
            for range in task.ranges() {
                after.push(contact.count(range)?);
            }
            contact.results()
        });
    match counted {
        Ok(contestants) => result.contestants = contestants,
        Err(error) => result.check_reason = one_line(&error),
    }
    match task.has_own_ranges() {
        true => check_each(&mut result, &before.rows, &after, lacks),
        false => check_all(&mut result, before.rows.first(), after.first(), lacks),
    }
    Ok((result, trouble))
}

/// Puts the parts of calls that are over together. The rows are known to the coordinator alone.
pub fn merge(record: &RunRecord, parts: &Parts) -> Option<Result<Merged, String>> {
    let is_voter = matches!(record.job.as_str(), "voter" | "seek");
    let whole = || {
        let gathered: Gathered<VoterPart> = kept(parts)?;
        let lacks = gathered.lacks();
        let first = gathered.parts.first().ok_or_else(|| anyhow!("no record has a result"))?;
        let (start_us, of_all) = (first.value.start_us, first.value.result.clone());
        let (mut result, trouble) = sum(gathered, start_us)?;
        result.agreed_start_us = of_all.agreed_start_us;
        (result.key_range, result.shape, result.hosts) =
            (of_all.key_range, of_all.shape, of_all.hosts);
        result.check_reason = match is_voter {
            true => "the rows were counted by the coordinator, and are in its record alone",
            false => "hello only reads",
        }
        .to_owned();
        let troubles = trouble.into_iter().chain(lacks).collect();
        Ok(Merged { results: JobResults::of(result), troubles, ..Merged::default() })
    };
    // A search for a rate of votes has votes too.
    let is_search = record.job == "seek" && record.job_results.voter().is_some();
    let is_own = is_search || matches!(record.job.as_str(), "voter" | "hello");
    is_own.then(|| whole().map_err(|error: anyhow::Error| one_line(&error)))
}

/// Compares the rows of each process with its votes. Those of a process that was lost cannot be compared, and the others can.
fn check_each(result: &mut VoterResult, before: &[u64], after: &[u64], lacks: Option<String>) {
    for process in &mut result.processes {
        let at = process.index as usize;
        process.rows_before = before.get(at).copied();
        let check = match process.died.is_empty() {
            true => {
                process.rows_after = after.get(at).copied();
                let (before, after) = (process.rows_before, process.rows_after);
                WriteCheck::of_counts(before, after, process.accepted, process.unknown)
            }
            false => WriteCheck::NotChecked,
        };
        (process.check, process.check_rows) = (check.kind(), check.rows());
    }
    let sum = |rows: fn(&VoterProcess) -> Option<u64>| result.processes.iter().map(rows).sum();
    let (rows_before, rows_after) = (sum(|one| one.rows_before), sum(|one| one.rows_after));
    (result.rows_before, result.rows_after) = (rows_before, rows_after);
    if let Some(lacks) = lacks {
        result.check_reason = lacks;
    }
    result.set_check(WriteCheck::all(result.processes.iter().map(VoterProcess::write_check)));
}

/// Compares the rows with the votes of all parts. Without the votes of a part there is nothing to compare.
fn check_all(
    result: &mut VoterResult,
    before: Option<&u64>,
    after: Option<&u64>,
    lacks: Option<String>,
) {
    (result.rows_before, result.rows_after) = (before.copied(), after.copied());
    let check = match lacks {
        None => WriteCheck::of_counts(
            result.rows_before,
            result.rows_after,
            result.accepted,
            result.unknown,
        ),
        Some(lacks) => {
            result.check_reason = lacks;
            WriteCheck::NotChecked
        }
    };
    result.set_check(check);
}

/// Adds the parts up. Times on the wall clocks of their machines count from the common start, which was at `start_us` here.
fn sum(gathered: Gathered<VoterPart>, start_us: u64) -> Result<(VoterResult, Option<String>)> {
    let mut result = VoterResult::default();
    let mut server = Histogram::new();
    let mut trouble = None;
    for Part { index, agent, value: part } in gathered.parts {
        let here_us =
            |there_us: u64| start_us.saturating_add(there_us).saturating_sub(part.start_us);
        let mut own = part.result;
        for process in &mut own.processes {
            process.index = index;
            process.client.clone_from(&agent);
            (process.started_us, process.ended_us) =
                (here_us(process.started_us), here_us(process.ended_us));
            // Only the rows of all parts are counted.
            (process.rows_before, process.rows_after) = (None, None);
        }
        add_up(&mut result, &own, &mut server)?;
        trouble = trouble.or(part.trouble.map(|why| format!("{}: {why}", part_title(&agent))));
    }
    result.server = ServerTimes::from(&server);
    result.totals = Totals::of(&result.processes);
    let lost = |(index, agent): (u32, String)| VoterProcess {
        index,
        client: agent,
        died: died(trouble_of(index)),
        ..VoterProcess::default()
    };
    result.processes.extend(gathered.missing.into_iter().map(lost));
    result.processes.sort_by_key(|process| process.index);
    (result.rows_after, result.check_reason) = (None, String::new());
    Ok((result, trouble))
}

/// The end of an agent without results.
fn died(trouble: Option<String>) -> String {
    let why = trouble.map_or(String::new(), |why| format!(": {why}"));
    format!("lost before it had sent its results{why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::voter::WriteCheckKind;

    /// A process that died leaves the checks of the others as they are.
    #[test]
    fn each_process_is_checked_by_itself() {
        let process = |index, accepted, died: &str| VoterProcess {
            index,
            accepted,
            died: died.to_owned(),
            ..VoterProcess::default()
        };
        let checked = |processes, lacks| {
            let mut result = VoterResult { processes, ..VoterResult::default() };
            check_each(&mut result, &[5, 7], &[15, 27], lacks);
            let checks: Vec<_> = result.processes.iter().map(|one| one.check).collect();
            (checks, result.check, result.rows_before, result.rows_after)
        };
        let (ok, not) = (WriteCheckKind::Ok, WriteCheckKind::NotChecked);
        let both = checked(vec![process(0, 10, ""), process(1, 20, "")], None);
        assert_eq!(both, (vec![ok, ok], ok, Some(12), Some(42)));
        let one = checked(vec![process(0, 10, ""), process(1, 0, "killed")], Some("x".to_owned()));
        assert_eq!(one, (vec![ok, not], not, Some(12), None));
        // Ten rows too few of one and ten too many of the other are no even sum.
        let wrong = checked(vec![process(0, 20, ""), process(1, 10, "")], None);
        assert!(wrong.1 != ok && wrong.0.iter().all(|check| *check != ok), "{wrong:?}");
    }

    fn part(index: u32, accepted: u64, clock_us: u64) -> Part<VoterPart> {
        let start_us = 1_000_000_000 + clock_us;
        let process = VoterProcess {
            calls: accepted,
            started_us: start_us + 5,
            ended_us: start_us + 2_000_000,
            ..VoterProcess::default()
        };
        let errors = [("timeout".to_owned(), 2)].into();
        let result =
            VoterResult { accepted, errors, processes: vec![process], ..VoterResult::default() };
        let agent = format!("agent-{index}");
        Part { index, agent, value: VoterPart { result, start_us, trouble: None } }
    }

    /// A wall clock that is wrong by a minute moves no vote.
    #[test]
    fn parts_add_up_from_the_common_start() {
        let parts = vec![part(0, 30, 0), part(2, 12, 60_000_000)];
        let gathered = Gathered { parts, missing: vec![(1, "b".to_owned())] };
        let (result, trouble) = sum(gathered, 7_000_000_000).unwrap();
        assert_eq!((result.accepted, result.errors["timeout"], trouble), (42, 4, None));
        let starts: Vec<_> = result.processes.iter().map(|one| one.started_us).collect();
        assert_eq!(starts, [7_000_000_005, 0, 7_000_000_005]);
        assert_eq!((result.totals.transactions, result.totals.start_skew_ms), (42, 0.0));
        let clients: Vec<_> = result.processes.iter().map(|one| one.client.as_str()).collect();
        assert_eq!(clients, ["agent-0", "b", "agent-2"]);
        assert!(result.processes[1].died.contains("lost"));
    }
}

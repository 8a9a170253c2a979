//! The parts of a feed together: counts by sum, times by their histograms, and the proof that each operation was in one part.

use super::finish::{self, Ended};
use super::task::Task;
use crate::Tally;
use crate::failed::EXAMPLES_MAX;
use anyhow::{Result, anyhow};
use plimsoll_core::histogram::{Histogram, add_some, encode_some};
use plimsoll_core::moments::together as over_time;
use plimsoll_job::together::{Gathered, Part, is_coordinator, kept, part_title};
use plimsoll_job::usage::one_line;
use plimsoll_record::feed::{CodeTimes, FeedResult, RefusedOperation};
use plimsoll_record::{JobResults, RunRecord};
use plimsoll_report::forms::{Merged, Parts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Result of one part of a feed, and what its summaries were made of.
#[derive(Serialize, Deserialize)]
pub struct FeedPart {
    result: FeedResult,
    /// Status, and the times of its answers, encoded: from sending, and from the operation's turn.
    codes: Vec<(u16, String, String)>,
    /// Operations of the whole input that this part has seen, and whether it came to the end of it.
    seen: (u64, bool),
    warnings: Vec<String>,
}

impl FeedPart {
    /// The result of this process.
    pub fn of(task: &Task, ended: &Ended) -> Self {
        let (result, warnings) = finish::result(task, ended);
        let position = task.feed.input.position();
        let Tally { codes, .. } = &ended.tally;
        let code = |code: &crate::tally::CodeTally| {
            (code.status, encode_some(&code.server), encode_some(&code.whole))
        };
        Self {
            result,
            codes: codes.iter().map(code).collect(),
            seen: (position.operations, position.at_end),
            warnings,
        }
    }
}

/// Puts the parts of a feed that is over together. The names of its input are those that the agents know, without a folder.
pub fn merge(record: &RunRecord, parts: &Parts) -> Option<Result<Merged, String>> {
    let whole = || {
        let gathered: Gathered<FeedPart> = kept(parts)?;
        let own_name = |file: &String| {
            let name = Path::new(file).file_name().and_then(|name| name.to_str());
            name.unwrap_or(file).to_owned()
        };
        let first = gathered.parts.first().map(|part| part.value.result.files.as_slice());
        let files: Vec<String> = first.unwrap_or_default().iter().map(own_name).collect();
        let cpu_s = parts.there.iter().map(|part| part.cpu_s).sum();
        let (result, lacks, warnings) = summed(gathered, &files, cpu_s)?;
        let troubles = result.trouble.clone().into_iter().chain(lacks).collect();
        Ok(Merged { results: JobResults::of(result), troubles, warnings })
    };
    (record.job == "feed").then(|| whole().map_err(|error: anyhow::Error| one_line(&error)))
}

/// The feed of all parts, what is missing of it, and warnings. `cpu_s` is the CPU time of all, `files` are the names of the input
/// here.
///
/// # Errors
/// A part that cannot be read.
pub fn together(
    gathered: Gathered<FeedPart>,
    files: &[String],
    cpu_s: f64,
) -> Result<(FeedResult, Option<String>, Vec<String>)> {
    if is_coordinator() {
        return summed(gathered, files, cpu_s);
    }
    let (lacks, mut parts) = (gathered.lacks(), gathered.parts);
    let only = parts.pop().ok_or_else(|| anyhow!("the feed has no result"))?;
    Ok((only.value.result, lacks, only.value.warnings))
}

fn summed(
    gathered: Gathered<FeedPart>,
    files: &[String],
    cpu_s: f64,
) -> Result<(FeedResult, Option<String>, Vec<String>)> {
    let (lacks, parts) = (gathered.lacks(), gathered.parts);
    let named = |part: &Part<FeedPart>| {
        let name = part_title(&part.agent);
        let warnings = part.value.warnings.clone().into_iter();
        warnings.map(move |why| format!("{name}: {why}")).collect::<Vec<_>>()
    };
    let warnings = parts.iter().flat_map(named).collect();
    let mut result = sum(parts, files, cpu_s, lacks.is_none())?;
    result.complete &= lacks.is_none();
    Ok((result, lacks, warnings))
}

/// Adds the parts up. If they are `all`, they must have each operation of the input once.
fn sum(parts: Vec<Part<FeedPart>>, files: &[String], cpu_s: f64, all: bool) -> Result<FeedResult> {
    let mut whole =
        FeedResult { complete: !parts.is_empty(), files: files.to_vec(), ..FeedResult::default() };
    let mut codes: BTreeMap<u16, (Histogram, Histogram)> = BTreeMap::new();
    let mut seen = Vec::new();
    let mut stretches = Vec::new();
    for Part { agent, value: part, .. } in parts {
        for (status, server, turn) in &part.codes {
            let own = codes.entry(*status).or_insert_with(|| (Histogram::new(), Histogram::new()));
            add_some(&mut own.0, server)?;
            add_some(&mut own.1, turn)?;
        }
        seen.push(part.seen);
        let mut own = part.result;
        stretches.push(std::mem::take(&mut own.over_time));
        add(&mut whole, own, &agent);
    }
    let times = |(server, turn): &(Histogram, Histogram)| {
        let server = server.summary();
        CodeTimes { count: server.count, server, whole: turn.summary() }
    };
    whole.codes = codes.iter().map(|(status, own)| (status.to_string(), times(own))).collect();
    whole.examples = first_of_each_kind(std::mem::take(&mut whole.examples));
    whole.over_time = over_time(&stretches);
    if whole.seconds > 0.0 {
        whole.accepted_per_s = whole.accepted as f64 / whole.seconds;
    }
    let settled = whole.accepted + whole.refused + whole.ignored_fields + whole.ignored_operations;
    whole.cpu_us_per_operation = cpu_s * 1e6 / settled.max(1) as f64;
    if let (true, Some(why)) = (all, wrong_sum(&whole, &seen)) {
        whole.complete = false;
        whole.trouble.get_or_insert(why);
    }
    Ok(whole)
}

/// Reason why the parts are not the input; none if each of its operations was in one of them, or some did not read to the end.
fn wrong_sum(whole: &FeedResult, seen: &[(u64, bool)]) -> Option<String> {
    let (first, _) = seen.first()?;
    if seen.iter().any(|(_, at_end)| !at_end) {
        return None;
    }
    let dealt = whole.operations + whole.left + whole.skipped;
    (dealt != *first || seen.iter().any(|(operations, _)| operations != first)).then(|| {
        format!(
            "the parts have {dealt} operations and the input has {first}; this is a defect in plimsoll, please report it"
        )
    })
}

fn add(whole: &mut FeedResult, own: FeedResult, agent: &str) {
    let file = |name: &str| {
        let index = own.files.iter().position(|file| file == name);
        index.and_then(|index| whole.files.get(index)).cloned().unwrap_or_else(|| name.to_owned())
    };
    let unread = own.unread.clone().map(|mut place| {
        place.file = file(&place.file);
        place
    });
    let examples: Vec<RefusedOperation> = own
        .examples
        .iter()
        .map(|one| RefusedOperation { file: file(&one.file), ..one.clone() })
        .collect();
    whole.examples.extend(examples);
    // From the first of these places on, everything that was not read is fed, and some of the rest once more.
    whole.unread = match (whole.unread.take(), unread) {
        (Some(one), Some(other)) => Some(if one.skip <= other.skip { one } else { other }),
        (one, other) => one.or(other),
    };
    whole.operations += own.operations;
    whole.accepted += own.accepted;
    whole.refused += own.refused;
    whole.ignored_fields += own.ignored_fields;
    whole.ignored_operations += own.ignored_operations;
    whole.malformed += own.malformed;
    whole.unsettled += own.unsettled;
    whole.left += own.left;
    whole.complete &= own.complete;
    // The parts run side by side: the feed takes as long as the slowest, and waits as long as the one that waits longest.
    whole.seconds = whole.seconds.max(own.seconds);
    whole.input_limited_s = whole.input_limited_s.max(own.input_limited_s);
    whole.requests += own.requests;
    whole.body_bytes += own.body_bytes;
    whole.reply_bytes += own.reply_bytes;
    for (why, count) in own.retries {
        *whole.retries.entry(why).or_default() += count;
    }
    for (why, count) in own.lost {
        *whole.lost.entry(why).or_default() += count;
    }
    whole.http = own.http;
    whole.connections += own.connections;
    whole.inflight.fixed |= own.inflight.fixed;
    whole.inflight.limit += own.inflight.limit;
    whole.inflight.most += own.inflight.most;
    whole.inflight.last += own.inflight.last;
    whole.inflight.shrinks += own.inflight.shrinks;
    whole.inflight.pauses += own.inflight.pauses;
    whole.failed_files.extend(own.failed_files.iter().map(|path| format!("{agent}: {path}")));
    // Every part passes the same ones over.
    whole.skipped = whole.skipped.max(own.skipped);
    let trouble = own.trouble.map(|trouble| format!("{}: {trouble}", part_title(agent)));
    whole.trouble = whole.trouble.take().or(trouble);
}

/// The first ones of each status, and of malformed operations, in the order of the input.
fn first_of_each_kind(mut examples: Vec<RefusedOperation>) -> Vec<RefusedOperation> {
    examples.sort_by_key(|one| one.operation);
    let mut kinds: BTreeMap<(u16, bool), usize> = BTreeMap::new();
    examples.retain(|one| {
        let count = kinds.entry((one.status, one.id.is_empty())).or_default();
        *count += 1;
        *count <= EXAMPLES_MAX
    });
    examples
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::feed::InputPlace;

    fn part(index: u32, operations: u64, refused: &[u64]) -> Part<FeedPart> {
        let mut server = Histogram::new();
        (0..operations).for_each(|_| server.record(1_000_000));
        let example = |operation: &u64| RefusedOperation {
            operation: *operation,
            file: format!("/agent/{index}/b"),
            id: "id".to_owned(),
            status: 507,
            ..RefusedOperation::default()
        };
        let result = FeedResult {
            operations,
            accepted: operations,
            complete: true,
            seconds: 2.0,
            files: vec![format!("/agent/{index}/a"), format!("/agent/{index}/b")],
            examples: refused.iter().map(example).collect(),
            ..FeedResult::default()
        };
        let codes = vec![(200, encode_some(&server), encode_some(&server))];
        let value = FeedPart { result, codes, seen: (10, true), warnings: Vec::new() };
        Part { index, agent: format!("agent-{index}"), value }
    }

    fn files() -> Vec<String> {
        ["a", "b"].map(str::to_owned).to_vec()
    }

    #[test]
    fn the_sum_of_parts_has_each_operation_once() {
        let whole = sum(vec![part(0, 6, &[9, 3]), part(1, 4, &[5])], &files(), 1.0, true).unwrap();
        assert_eq!((whole.operations, whole.accepted, whole.complete), (10, 10, true));
        assert_eq!((whole.accepted_per_s, whole.codes["200"].count), (5.0, 10));
        let examples: Vec<_> =
            whole.examples.iter().map(|one| (one.operation, one.file.as_str())).collect();
        assert_eq!(examples, [(3, "b"), (5, "b"), (9, "b")]);
        assert_eq!(whole.files, files());
        assert_eq!(whole.trouble, None);
    }

    #[test]
    fn operations_that_are_missing_or_there_twice_are_found() {
        for wrong in [3, 5] {
            let parts = || vec![part(0, 6, &[]), part(1, wrong, &[])];
            let whole = sum(parts(), &files(), 1.0, true).unwrap();
            assert!(!whole.complete && whole.trouble.unwrap().contains("a defect"));
            // Without the part that is lost there is nothing to compare.
            assert_eq!(sum(parts(), &files(), 1.0, false).unwrap().trouble, None);
        }
    }

    #[test]
    fn the_rest_is_fed_from_the_first_place_on() {
        let stopped = |index, skip| {
            let mut part = part(index, 3, &[]);
            let file = format!("/agent/{index}/a");
            part.value.result.unread = Some(InputPlace { file, line: skip, skip });
            part.value.seen = (skip, false);
            part
        };
        let whole = sum(vec![stopped(0, 8), stopped(1, 7)], &files(), 1.0, true).unwrap();
        assert_eq!(whole.unread, Some(InputPlace { file: "a".to_owned(), line: 7, skip: 7 }));
        assert_eq!(whole.trouble, None);
    }
}

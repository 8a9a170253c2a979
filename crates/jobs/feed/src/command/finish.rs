//! Result of a feed.

use super::task::Task;
use crate::{InflightChoice, Left, Position, Tally};
use plimsoll_core::clock::now_ns;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_job::throughput::Waiting;
use plimsoll_record::feed::{
    CodeTimes, FeedMoment, FeedResult, Inflight, InputPlace, RefusedOperation,
};
use plimsoll_report::plain::printable;

/// Facts about an ended run.
pub struct Ended {
    /// Time at which it began, ns.
    pub started_ns: u64,
    /// CPU of the process in it, s.
    pub cpu_s: f64,
    /// True if the user ended it.
    pub stopped: bool,
    /// Counts of its sessions.
    pub tally: Tally,
    /// The feed over time.
    pub over_time: Vec<FeedMoment>,
}

/// The result, and what a careful reader should know besides. Nothing is read any more from here on.
pub fn result(task: &Task, ended: &Ended) -> (FeedResult, Vec<String>) {
    let feed = &task.feed;
    feed.input.close();
    let (mut tally, position) = (ended.tally.clone(), feed.input.position());
    // The reader may have gone on when a shard had ended.
    for mut batch in feed.input.rest() {
        while let Some((item, bytes)) = batch.take() {
            feed.leave_unsent(&item, bytes, &mut tally);
        }
    }
    let mut warnings = Vec::new();
    if let Err(error) = feed.failed.finish() {
        warnings
            .push(format!("the operations that were not accepted could not be written: {error}"));
    }
    let operations = position.operations - position.skipped - position.elsewhere - tally.left;
    // Where nothing was settled, all the time passed in vain.
    let last_ns = if tally.last_ns > 0 { tally.last_ns } else { now_ns() };
    let seconds = last_ns.saturating_sub(ended.started_ns) as f64 / 1e9;
    let settled = tally.accepted + tally.refused + tally.ignored_fields + tally.ignored_operations;
    let settled = settled.max(1) as f64;
    let trouble = feed.trouble();
    let unread = unread(task, &position, tally.first_left);
    let read_enough = unread.is_none() || feed.may_end_early();
    // What was fed by an earlier run may be all that there is; an input without operations is somebody's mistake.
    let passed_over = position.skipped + position.elsewhere;
    let empty = operations == 0 && position.at_end && passed_over == 0 && tally.left == 0;
    let result = FeedResult {
        operations,
        accepted: tally.accepted,
        refused: tally.refused,
        ignored_fields: tally.ignored_fields,
        ignored_operations: tally.ignored_operations,
        malformed: position.malformed,
        unsettled: tally.unsettled,
        left: tally.left,
        complete: tally.accepted == operations && read_enough && trouble.is_none() && !empty,
        seconds,
        accepted_per_s: if seconds > 0.0 { tally.accepted as f64 / seconds } else { 0.0 },
        input_limited_s: tally.starved_ns as f64 / 1e9,
        requests: tally.requests,
        retries: tally.retries(),
        body_bytes: tally.body_bytes,
        reply_bytes: tally.reply_bytes,
        http: if task.scenario.http2 { "2" } else { "1.1" }.to_owned(),
        connections: task.scenario.own_connections(),
        inflight: inflight(task, &tally),
        codes: tally
            .codes
            .iter()
            .map(|code| {
                let (server, whole) = (code.server.summary(), code.whole.summary());
                (code.status.to_string(), CodeTimes { count: server.count, server, whole })
            })
            .collect(),
        lost: tally.lost(),
        over_time: ended.over_time.clone(),
        cpu_us_per_operation: ended.cpu_s * 1e6 / settled,
        examples: examples(task),
        failed_files: feed
            .failed
            .paths()
            .map(|paths| paths.iter().map(|path| path.display().to_string()).collect())
            .unwrap_or_default(),
        files: feed.input.names().to_vec(),
        skipped: position.skipped,
        unread,
        trouble,
    };
    (result, warnings)
}

fn inflight(task: &Task, tally: &Tally) -> Inflight {
    let (choice, slice) = (task.feed.settings.inflight, task.feed.settings.slice);
    Inflight {
        fixed: matches!(choice, InflightChoice::Fixed(_)),
        limit: slice.share(choice.limit().into()) as u32,
        most: tally.most_under_way,
        last: tally.window,
        shrinks: tally.shrinks,
        pauses: tally.pauses,
    }
}

fn examples(task: &Task) -> Vec<RefusedOperation> {
    let refusals = task.feed.failed.examples();
    let told = |refusal: crate::Refusal| RefusedOperation {
        operation: refusal.operation,
        file: refusal.file,
        line: refusal.line,
        id: refusal.id,
        status: refusal.status,
        reason: refusal.reason,
    };
    refusals.into_iter().map(told).collect()
}

/// Position from which on some of the input was not fed: that of the first operation that was read and left alone, or else the end
/// of what was read, unless that is all.
fn unread(task: &Task, position: &Position, left: Option<Left>) -> Option<InputPlace> {
    let (file, line, skip) = match left {
        Some(left) => (left.file as usize, left.line, left.number - 1),
        None if position.at_end && task.feed.input.trouble().is_none() => return None,
        None => (position.file, position.line, position.operations),
    };
    let file = task.feed.input.names().get(file).cloned().unwrap_or_default();
    Some(InputPlace { file, line, skip })
}

/// The time for which the feed waited for its input.
pub fn input(result: &FeedResult) -> Waiting {
    Waiting {
        waited_s: result.input_limited_s,
        of_s: result.seconds,
        reason: "the input was too slow (one thread reads and decompresses it, no faster than its producer)",
    }
}

/// Returns the verdict: valid if every operation was accepted.
pub fn verdict(result: &FeedResult, stopped: bool) -> Verdict {
    if result.complete {
        return Verdict::new(VerdictKind::Valid, Vec::new());
    }
    let mut reasons: Vec<String> = result.trouble.iter().cloned().collect();
    if stopped {
        reasons.push("the feed was stopped before its end".to_owned());
    }
    let stopped_early = stopped || result.trouble.is_some() || result.unread.is_some();
    if result.operations == 0 && !stopped_early {
        reasons.push("the input holds no operation".to_owned());
    }
    let missing = result.operations - result.accepted;
    if missing > 0 {
        let mut text = format!("{missing} of {} operations were not accepted", result.operations);
        if let Some(first) = result.examples.first().filter(|_| result.trouble.is_none()) {
            text += &format!("; {}:{}: {}", first.file, first.line, printable(&first.reason));
        }
        reasons.push(text);
    }
    if let Some(place) = &result.unread {
        reasons.push(format!(
            "{} was not read from line {} on; --skip {} feeds the rest",
            place.file, place.line, place.skip
        ));
    }
    let tried = result.requests > 0;
    let kind = match (result.accepted, stopped) {
        (0, false) if tried => VerdictKind::TargetFailed,
        _ => VerdictKind::Partial,
    };
    Verdict::new(kind, reasons)
}

//! Result of a visit.

use crate::course::by_slice;
use crate::{ReplyForm, SliceTimes, Visit, VisitTotals};
use plimsoll_core::histogram::Histogram;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_engine::run::RunEnd;
use plimsoll_job::throughput::Waiting;
use plimsoll_record::visit::{SlicesTried, TimeShares, UnfinishedSlice, VisitMoment, VisitResult};
use std::sync::mpsc::Receiver;

/// The shares of the time of slices.
pub fn shares(times: SliceTimes) -> TimeShares {
    TimeShares::of(times.wait_ns as f64, times.receive_ns as f64, times.turn_ns as f64)
}

/// Time that a run took.
pub struct Took {
    /// From the first request until everything was written, s.
    pub seconds: f64,
    /// Of that, from the last byte received on, s.
    pub writing_s: f64,
    /// CPU of the process, s.
    pub cpu_s: f64,
    /// Times from sending to the first byte of each reply.
    pub first_bytes: Histogram,
    /// The visit over time.
    pub over_time: Vec<VisitMoment>,
}

/// The histograms of all shards, together.
pub fn together(counted: &Receiver<Histogram>) -> Histogram {
    let mut all = Histogram::new();
    counted.try_iter().for_each(|own| all.merge(&own));
    all
}

/// The result of a run that began with `before`; `written`: whether the output has taken everything.
pub fn result(visit: &Visit, before: &VisitTotals, took: &Took, written: bool) -> VisitResult {
    let totals = visit.totals();
    let (seconds, cpu_s) = (took.seconds, took.cpu_s);
    let (at_once, tried) = match visit.climbed() {
        Some((at_once, steps)) => (Some(at_once), steps),
        None => (None, Vec::new()),
    };
    let entries = |totals: &VisitTotals| totals.documents + totals.removes;
    let bytes = totals.bytes - before.bytes;
    let seconds_own = seconds.max(1e-9);
    VisitResult {
        documents: totals.documents,
        removes: totals.removes,
        document_count_claimed: totals.claimed,
        document_count_received: totals.received,
        inconsistent_replies: totals.inconsistent,
        duplicates: totals.duplicates,
        bytes,
        id_digest: totals.digest.to_string(),
        complete: totals.is_complete() && written,
        slices: totals.slices,
        slices_done: totals.slices_done,
        replies: totals.replies,
        form: match totals.form {
            Some(ReplyForm::Lines) => "lines",
            _ => "object",
        }
        .to_owned(),
        seconds,
        documents_per_s: (entries(&totals) - entries(before)) as f64 / seconds_own,
        gbps: bytes as f64 * 8.0 / 1e9 / seconds_own,
        cpu_s_per_gb: per_gb(cpu_s, bytes),
        time: shares(totals.times),
        first_byte_ms: took.first_bytes.summary(),
        output_limited_s: visit.limited_ns() as f64 / 1e9,
        output_last_s: took.writing_s,
        slices_at_once: at_once,
        slices_tried: tried
            .iter()
            .map(|step| SlicesTried { slices: step.slices, mb_per_s: step.bytes_per_s / 1e6 })
            .collect(),
        by_slice: by_slice(visit),
        over_time: took.over_time.clone(),
        resumed_from: entries(before),
        files: visit.files().iter().map(|path| path.display().to_string()).collect(),
        unfinished: totals
            .unfinished
            .iter()
            .map(|slice| UnfinishedSlice {
                slice: slice.slice,
                reason: slice.reason.clone(),
                token: slice.token.clone(),
            })
            .collect(),
        trouble: visit.trouble(),
        matrix: Vec::new(),
    }
}

/// CPU for 10^9 bytes, s; 0 when there were none.
pub fn per_gb(cpu_s: f64, bytes: u64) -> f64 {
    if bytes == 0 { 0.0 } else { cpu_s / (bytes as f64 / 1e9) }
}

/// The time for which the visit waited for its output.
pub fn output(result: &VisitResult) -> Waiting {
    Waiting {
        waited_s: result.output_limited_s + result.output_last_s,
        of_s: result.seconds,
        reason: "the output was slower than the documents arrived",
    }
}

/// The reason of a visit some of whose replies did not hold as many documents as they announced. Such counts can be right in sum.
fn wrong_counts(result: &VisitResult) -> Option<String> {
    (result.inconsistent_replies > 0).then(|| {
        format!(
            "replies announced {} documents and held {}; the counts of {} of {} replies are wrong",
            result.document_count_claimed,
            result.document_count_received,
            result.inconsistent_replies,
            result.replies
        )
    })
}

/// Returns the verdict: valid if everything that was asked for was received and written.
pub fn verdict(result: &VisitResult, end: &RunEnd, stopped: bool) -> Verdict {
    let ledger = &end.totals.ledger;
    let mut reasons = Vec::new();
    // What the output does not take is not the target's failure.
    let nothing = ledger.ok == 0 && ledger.finished() > 0 && result.documents == 0;
    if let Some(trouble) = &result.trouble {
        reasons.push(trouble.clone());
    }
    if stopped {
        reasons.push("the visit was stopped before its end".to_owned());
    }
    if !result.unfinished.is_empty() && result.trouble.is_none() && !stopped {
        let first = &result.unfinished[0];
        reasons.push(format!(
            "{} of {} slices did not finish; slice {}: {}",
            result.unfinished.len(),
            result.slices,
            first.slice,
            first.reason
        ));
    }
    reasons.extend(wrong_counts(result));
    let kind = if stopped {
        VerdictKind::Partial
    } else if nothing && !result.complete {
        VerdictKind::TargetFailed
    } else if !result.complete {
        VerdictKind::Partial
    } else {
        VerdictKind::Valid
    };
    Verdict::new(kind, reasons)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_are_wrong_and_right_in_sum_are_a_reason() {
        let mut result = VisitResult {
            document_count_claimed: 400,
            document_count_received: 400,
            replies: 8,
            ..VisitResult::default()
        };
        assert_eq!(wrong_counts(&result), None);
        result.inconsistent_replies = 2;
        let reason = wrong_counts(&result).unwrap();
        assert!(reason.ends_with("the counts of 2 of 8 replies are wrong"), "{reason}");
    }
}

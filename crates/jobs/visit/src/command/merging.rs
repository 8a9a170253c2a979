//! The parts of a visit together: counts by sum, the digest of the ids by its own sum, times by their histograms.

use super::finish::{self, Took};
use crate::{IdDigest, SliceTimes, Visit, VisitTotals};
use anyhow::{Result, anyhow};
use plimsoll_core::histogram::{Histogram, add_some, encode_some};
use plimsoll_core::moments::together as over_time;
use plimsoll_job::together::{Gathered, Part, is_coordinator, kept, part_title};
use plimsoll_job::usage::one_line;
use plimsoll_record::visit::{SLICES_MAX, VisitResult};
use plimsoll_record::{JobResults, RunRecord};
use plimsoll_report::forms::{Merged, Parts};
use serde::{Deserialize, Serialize};

/// Result of one part of a visit, and what its summaries were made of.
#[derive(Serialize, Deserialize)]
pub struct VisitPart {
    result: VisitResult,
    times: SliceTimes,
    /// Times to the first byte, encoded.
    first_bytes: String,
    /// Reason why not everything could be written.
    unwritten: Option<String>,
}

impl VisitPart {
    /// The result of this process; `written` says whether its output took everything.
    pub fn of(
        visit: &Visit,
        before: &VisitTotals,
        took: &Took,
        written: Result<(), String>,
    ) -> Self {
        // What the output said before is the reason why the visit ended.
        let unwritten = written.as_ref().err().filter(|_| !visit.is_stopped());
        Self {
            result: finish::result(visit, before, took, written.is_ok()),
            times: visit.totals().times,
            first_bytes: encode_some(&took.first_bytes),
            unwritten: unwritten
                .map(|error| format!("the documents or the state cannot be written: {error}")),
        }
    }
}

/// Puts the parts of a visit that is over together.
pub fn merge(record: &RunRecord, parts: &Parts) -> Option<Result<Merged, String>> {
    let whole = || {
        let (gathered, cpu_s) = (kept(parts)?, parts.there.iter().map(|part| part.cpu_s).sum());
        let (result, lacks, warnings) = summed(gathered, cpu_s)?;
        let troubles = result.trouble.clone().into_iter().chain(lacks).collect();
        Ok(Merged { results: JobResults::of(result), troubles, warnings })
    };
    (record.job == "visit").then(|| whole().map_err(|error: anyhow::Error| one_line(&error)))
}

/// The visit of all parts, what is missing of it, and warnings. `cpu_s` is the CPU time of all.
///
/// # Errors
/// A part that cannot be read.
pub fn together(
    gathered: Gathered<VisitPart>,
    cpu_s: f64,
) -> Result<(VisitResult, Option<String>, Vec<String>)> {
    if is_coordinator() {
        return summed(gathered, cpu_s);
    }
    let (lacks, mut parts) = (gathered.lacks(), gathered.parts);
    let warnings = parts.iter().filter_map(|part| part.value.unwritten.clone()).collect();
    let only = parts.pop().ok_or_else(|| anyhow!("the visit has no result"))?;
    Ok((only.value.result, lacks, warnings))
}

fn summed(
    gathered: Gathered<VisitPart>,
    cpu_s: f64,
) -> Result<(VisitResult, Option<String>, Vec<String>)> {
    let lacks = gathered.lacks();
    let named = |part: &Part<VisitPart>| {
        let why = part.value.unwritten.clone()?;
        Some(format!("{}: {why}", part_title(&part.agent)))
    };
    let warnings = gathered.parts.iter().filter_map(named).collect();
    let mut result = sum(gathered.parts, cpu_s)?;
    result.complete &= lacks.is_none();
    Ok((result, lacks, warnings))
}

fn sum(parts: Vec<Part<VisitPart>>, cpu_s: f64) -> Result<VisitResult> {
    let mut all = VisitResult { complete: !parts.is_empty(), ..VisitResult::default() };
    let (mut digest, mut times) = (IdDigest::default(), SliceTimes::default());
    let mut first_bytes = Histogram::new();
    let mut stretches = Vec::new();
    for Part { agent, value: part, .. } in parts {
        let own = part.result;
        digest.add(IdDigest::try_from(own.id_digest.clone()).map_err(|why| anyhow!(why))?);
        add_some(&mut first_bytes, &part.first_bytes)?;
        times.wait_ns += part.times.wait_ns;
        times.receive_ns += part.times.receive_ns;
        times.turn_ns += part.times.turn_ns;
        all.documents += own.documents;
        all.removes += own.removes;
        all.document_count_claimed += own.document_count_claimed;
        all.document_count_received += own.document_count_received;
        all.inconsistent_replies += own.inconsistent_replies;
        all.duplicates += own.duplicates;
        all.bytes += own.bytes;
        all.complete &= own.complete;
        all.slices += own.slices;
        all.slices_done += own.slices_done;
        all.replies += own.replies;
        all.resumed_from += own.resumed_from;
        if all.form.is_empty() || own.form == "lines" {
            all.form = own.form;
        }
        // The parts run side by side: the visit takes as long as the slowest, and waits as long as the one that waits longest.
        all.seconds = all.seconds.max(own.seconds);
        all.output_limited_s = all.output_limited_s.max(own.output_limited_s);
        all.output_last_s = all.output_last_s.max(own.output_last_s);
        all.slices_at_once = match (all.slices_at_once, own.slices_at_once) {
            (Some(all), Some(own)) => Some(all + own),
            (one, other) => one.or(other),
        };
        all.by_slice.extend(own.by_slice);
        all.files.extend(own.files.iter().map(|file| format!("{agent}: {file}")));
        all.unfinished.extend(own.unfinished);
        let trouble = own.trouble.map(|trouble| format!("{}: {trouble}", part_title(&agent)));
        all.trouble = all.trouble.or(trouble);
        stretches.push(own.over_time);
    }
    let seconds = all.seconds.max(1e-9);
    let entries = (all.documents + all.removes).saturating_sub(all.resumed_from);
    all.documents_per_s = entries as f64 / seconds;
    all.gbps = all.bytes as f64 * 8.0 / 1e9 / seconds;
    all.cpu_s_per_gb = finish::per_gb(cpu_s, all.bytes);
    all.id_digest = digest.to_string();
    all.time = finish::shares(times);
    all.first_byte_ms = first_bytes.summary();
    all.by_slice.sort_by_key(|slice| slice.slice);
    all.by_slice.truncate(SLICES_MAX);
    all.unfinished.sort_by_key(|slice| slice.slice);
    all.over_time = over_time(&stretches);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::visit::VisitSlice;

    fn part(index: u32, documents: u64, ids: &[&str]) -> Part<VisitPart> {
        let mut digest = IdDigest::default();
        ids.iter().for_each(|id| digest.add(IdDigest::of(id)));
        let mut first_bytes = Histogram::new();
        (0..documents).for_each(|_| first_bytes.record(1_000_000 * u64::from(index + 1)));
        let result = VisitResult {
            documents,
            id_digest: digest.to_string(),
            complete: true,
            inconsistent_replies: 1,
            slices: 2,
            slices_done: 2,
            seconds: 1.0 + f64::from(index),
            by_slice: vec![VisitSlice { slice: 1 - index, ..VisitSlice::default() }],
            files: vec!["f".to_owned()],
            ..VisitResult::default()
        };
        let value = VisitPart {
            result,
            times: SliceTimes { wait_ns: 1, ..SliceTimes::default() },
            first_bytes: encode_some(&first_bytes),
            unwritten: None,
        };
        Part { index, agent: format!("agent-{index}"), value }
    }

    #[test]
    fn the_sum_of_parts_is_the_visit_of_the_whole() {
        let all = sum(vec![part(0, 3, &["a", "b"]), part(1, 1, &["c"])], 2.0).unwrap();
        let mut whole = IdDigest::default();
        ["c", "a", "b"].iter().for_each(|id| whole.add(IdDigest::of(id)));
        assert_eq!(all.id_digest, whole.to_string());
        assert_eq!((all.documents, all.slices, all.slices_done), (4, 4, 4));
        assert_eq!(all.inconsistent_replies, 2);
        assert_eq!((all.seconds, all.documents_per_s), (2.0, 2.0));
        assert_eq!((all.first_byte_ms.count, all.time.first_byte), (4, 1.0));
        assert_eq!(all.by_slice.iter().map(|one| one.slice).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(all.files, ["agent-0: f", "agent-1: f"]);
        assert!(all.complete);
    }

    #[test]
    fn one_incomplete_part_makes_the_whole_incomplete() {
        let mut late = part(1, 1, &["c"]);
        late.value.result.complete = false;
        late.value.result.trouble = Some("why".to_owned());
        let all = sum(vec![part(0, 3, &["a"]), late], 2.0).unwrap();
        assert!(!all.complete);
        assert_eq!(all.trouble.as_deref(), Some("agent agent-1: why"));
        assert!(!sum(Vec::new(), 0.0).unwrap().complete, "a visit of which nothing is known");
    }
}

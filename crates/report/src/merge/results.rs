//! Results of the job, from those that each part has kept.

use super::{MergeError, Part};
use crate::forms::{Forms, Merged, PartResults, Parts};

/// The results of the parts together; nothing for a job without results of its own.
pub(super) fn of_jobs(parts: &[Part], forms: &[Forms]) -> Result<Merged, MergeError> {
    let Some(first) = parts.first() else { return Ok(Merged::default()) };
    let of = parts.iter().map(|part| part.of).max().unwrap_or(1);
    let mut all = Parts::default();
    for number in 1..=of {
        let index = number - 1;
        match parts.iter().find(|part| part.number == number) {
            Some(part) if !part.own.results.is_empty() => all.there.push(PartResults {
                index,
                agent: part.agent.name.clone(),
                cpu_s: part.loaded.record.generator.cpu_s,
                results: part.own.results.clone(),
            }),
            Some(part) => all.missing.push((index, part.agent.name.clone())),
            None => all.missing.push((index, format!("part {number}"))),
        }
    }
    let merged = forms.iter().find_map(|job| (job.merge)(&first.loaded.record, &all));
    merged.unwrap_or_else(|| Ok(Merged::default())).map_err(MergeError::Results)
}

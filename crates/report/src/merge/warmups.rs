//! The warm-up of a run, from those of its parts.

use super::Part;
use crate::assemble::{RecordHeader, WARMUP, warmup_phase};
use crate::error::RecordError;
use plimsoll_core::interval::Interval;
use plimsoll_record::{PhaseRecord, Rates};
use serde_json::Value;
use std::path::Path;

/// The warm-up of all parts.
pub(super) struct Warmup {
    schedule: Value,
    duration_s: f64,
    sum: Interval,
    /// Names of the agents whose warm-up is not there.
    missing: Vec<String>,
}

/// Takes the warm-up out of the phases, since the journals have none of it, and adds those of the parts up.
pub(super) fn take(
    header: &mut RecordHeader,
    parts: &[Part],
) -> Result<Option<Warmup>, RecordError> {
    let Some(at) = header.phases.iter().position(|phase| !phase.measured && phase.name == WARMUP)
    else {
        return Ok(None);
    };
    let phase = header.phases.remove(at);
    let duration_s = phase.duration_s.unwrap_or_default();
    for later in &mut header.phases {
        later.from_s -= duration_s;
    }
    let mut warmup = Warmup {
        schedule: phase.schedule,
        duration_s,
        sum: Interval::default(),
        missing: Vec::new(),
    };
    for part in parts {
        let Some(line) = &part.own.warmup else {
            warmup.missing.push(part.agent.name.clone());
            continue;
        };
        let mut own = Interval::default();
        own.refill(line).map_err(|error| damaged(&part.loaded.folder, &error.to_string()))?;
        warmup.sum.merge(&own);
    }
    Ok(Some(warmup))
}

fn damaged(folder: &Path, problem: &str) -> RecordError {
    RecordError::Damaged { path: folder.join("part.json"), problem: problem.to_owned() }
}

impl Warmup {
    /// Puts the warm-up before the measured phase, which has the length and the rates of the run. Returns a warning if a part of it is
    /// not there.
    pub(super) fn put(
        self,
        phases: &mut Vec<PhaseRecord>,
        (duration_s, rate): (f64, Rates),
    ) -> Option<String> {
        if let [measured] = &mut phases[..] {
            (measured.duration_s, measured.rate) = (duration_s, rate);
        }
        for phase in &mut *phases {
            phase.from_s += self.duration_s;
        }
        phases.insert(0, warmup_phase(self.schedule, self.duration_s, &self.sum));
        (!self.missing.is_empty()).then(|| {
            format!(
                "the warm-up lacks that of agent {}, whose record has none",
                self.missing.join(", ")
            )
        })
    }
}

//! The way of a search, as the finding has it: what it looked at, and what it knew then.

use serde::{Deserialize, Serialize};

/// Most steps that a finding keeps. A search that goes on for longer keeps every second one from then on.
pub const STEPS_MAX: usize = 1024;

/// Kind of a step of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// A short look at one rate.
    Look,
    /// The line lies between two rates, as far as short looks can say.
    Bracket,
    /// The line was estimated, with an interval.
    Estimate,
    /// A contiguous run at one rate, to certify it.
    Run,
}

/// Step of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SeekStep"))]
pub struct Step {
    /// Kind.
    pub kind: StepKind,
    /// Its end, s since the start of the search.
    pub at_s: f64,
    /// Rate that was offered, or the estimate, requests per second; absent for a bracket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Lower end of the bracket or the interval, requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_per_s: Option<f64>,
    /// Upper end of the bracket or the interval, requests per second; absent while no rate has broken a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_per_s: Option<f64>,
    /// True if all limits held; absent for brackets and estimates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
}

/// The steps of a search so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    kept: Vec<Step>,
    /// Of this many steps one is kept.
    every: usize,
    seen: usize,
}

impl Steps {
    /// Keeps a step.
    pub(super) fn take(&mut self, step: Step) {
        let every = self.every.max(1);
        if self.seen.is_multiple_of(every) {
            self.kept.push(step);
        }
        self.seen += 1;
        if self.kept.len() > STEPS_MAX {
            let mut at = 0;
            self.kept.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every = every * 2;
        }
    }

    /// The steps, in the order of time.
    pub(super) fn kept(&self) -> Vec<Step> {
        self.kept.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_of_any_length_keeps_steps_of_its_whole_time() {
        let mut steps = Steps::default();
        for at in 0..100_000u32 {
            steps.take(Step {
                kind: StepKind::Bracket,
                at_s: f64::from(at),
                rate_per_s: None,
                low_per_s: Some(1.0),
                high_per_s: Some(2.0),
                held: None,
            });
        }
        let kept = steps.kept();
        assert!((STEPS_MAX / 2..=STEPS_MAX).contains(&kept.len()), "{}", kept.len());
        let gaps: Vec<f64> = kept.windows(2).map(|two| two[1].at_s - two[0].at_s).collect();
        assert!(gaps.iter().all(|gap| *gap == gaps[0]), "{gaps:?}");
        assert!(kept[0].at_s == 0.0 && kept[kept.len() - 1].at_s > 99_000.0);
    }
}

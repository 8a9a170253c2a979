//! Load models as files and records have them: times as texts, or in the older fields as numbers of nanoseconds.

use super::super::think::Think;
use super::super::users::{Pause, UserProfile};
use super::{Arrivals, LoadModel, Step};
use crate::units::{Rate, Span};
use serde::Deserialize;

/// A load model as it is written.
#[derive(Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum WrittenModel {
    Closed {
        clients: u32,
        #[serde(default)]
        think: Think,
        cycle: Option<Span>,
        cycle_ns: Option<u64>,
    },
    Open {
        rate: Option<Rate>,
        rate_per_s: Option<Rate>,
        #[serde(default)]
        arrivals: Arrivals,
    },
    Burst {
        size: u32,
        every: Option<Span>,
        every_ns: Option<u64>,
    },
    PacedBurst {
        size: u32,
        delay: Option<Span>,
        delay_ns: Option<u64>,
        limit: Option<u32>,
    },
    Profile {
        steps: Vec<WrittenStep>,
        #[serde(default)]
        arrivals: Arrivals,
    },
    Users {
        profile: UserProfile,
        #[serde(default)]
        requests: u32,
        #[serde(default)]
        think: Pause,
        #[serde(default)]
        pace: Span,
    },
}

/// A step of a profile as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenStep {
    from: Option<Rate>,
    from_per_s: Option<Rate>,
    to: Option<Rate>,
    to_per_s: Option<Rate>,
    duration: Option<Span>,
    duration_ns: Option<u64>,
}

/// Returns the one of two fields that is there.
pub(crate) fn either<T>(
    name: &str,
    one: Option<T>,
    older_name: &str,
    older: Option<T>,
) -> Result<T, String> {
    match (one, older) {
        (Some(value), None) | (None, Some(value)) => Ok(value),
        (Some(_), Some(_)) => {
            Err(format!("`{name}` and `{older_name}` are the same; give one of them"))
        }
        (None, None) => Err(format!("field `{name}` is missing")),
    }
}

/// Returns the length of a time, ns.
pub(crate) fn time_ns(name: &str, time: Option<Span>, time_ns: Option<u64>) -> Result<u64, String> {
    either(name, time.map(|time| time.ns), &format!("{name}_ns"), time_ns)
}

fn rate_per_s(name: &str, rate: Option<Rate>, rate_per_s: Option<Rate>) -> Result<f64, String> {
    either(name, rate, &format!("{name}_per_s"), rate_per_s).map(|rate| rate.per_s)
}

impl TryFrom<WrittenModel> for LoadModel {
    type Error = String;

    fn try_from(written: WrittenModel) -> Result<Self, String> {
        Ok(match written {
            WrittenModel::Closed { clients, think, cycle, cycle_ns } => {
                let has_cycle = cycle.is_some() || cycle_ns.is_some();
                let cycle_ns = if has_cycle { time_ns("cycle", cycle, cycle_ns)? } else { 0 };
                LoadModel::Closed { clients, think, cycle_ns }
            }
            WrittenModel::Open { rate, rate_per_s: older, arrivals } => {
                LoadModel::Open { rate_per_s: rate_per_s("rate", rate, older)?, arrivals }
            }
            WrittenModel::Burst { size, every, every_ns } => {
                LoadModel::Burst { size, every_ns: time_ns("every", every, every_ns)? }
            }
            WrittenModel::PacedBurst { size, delay, delay_ns, limit } => {
                LoadModel::PacedBurst { size, delay_ns: time_ns("delay", delay, delay_ns)?, limit }
            }
            WrittenModel::Profile { steps, arrivals } => {
                let steps = steps.into_iter().map(Step::try_from).collect::<Result<_, _>>()?;
                LoadModel::Profile { steps, arrivals }
            }
            WrittenModel::Users { profile, requests, think, pace } => {
                LoadModel::Users { profile, requests, think, pace }
            }
        })
    }
}

impl TryFrom<WrittenStep> for Step {
    type Error = String;

    fn try_from(step: WrittenStep) -> Result<Self, String> {
        Ok(Step {
            from_per_s: rate_per_s("from", step.from, step.from_per_s)?,
            to_per_s: rate_per_s("to", step.to, step.to_per_s)?,
            duration_ns: time_ns("duration", step.duration, step.duration_ns)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<LoadModel, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn times_and_rates_are_texts_or_the_numbers_of_before() {
        for (texts, numbers) in [
            (
                r#"{"model":"closed","clients":2,"cycle":"20ms","think":"2s"}"#,
                r#"{"model":"closed","clients":2,"cycle_ns":20000000,"think":{"fixed":2000000000}}"#,
            ),
            (r#"{"model":"open","rate":"60/min"}"#, r#"{"model":"open","rate_per_s":1}"#),
            (
                r#"{"model":"burst","size":2,"every":"1s"}"#,
                r#"{"model":"burst","size":2,"every_ns":1000000000}"#,
            ),
            (
                r#"{"model":"paced-burst","size":2,"delay":"5ms"}"#,
                r#"{"model":"paced-burst","size":2,"delay_ns":5000000}"#,
            ),
            (
                r#"{"model":"profile","steps":[{"from":0,"to":"1k/s","duration":"1m30s"}]}"#,
                r#"{"model":"profile","steps":[{"from_per_s":0.0,"to_per_s":1000,"duration_ns":90000000000}]}"#,
            ),
        ] {
            let model = read(texts).unwrap();
            assert_eq!(read(numbers), Ok(model.clone()), "{texts}");
            let again = serde_json::to_string(&model).unwrap();
            assert_eq!(read(&again), Ok(model), "{again}");
        }
    }

    #[test]
    fn a_time_that_is_missing_or_there_twice_is_named() {
        for (json, word) in [
            (r#"{"model":"burst","size":2}"#, "field `every` is missing"),
            (r#"{"model":"burst","size":2,"every":"1s","every_ns":1}"#, "`every` and `every_ns`"),
            (r#"{"model":"burst","size":2,"every_ns":"1s"}"#, "expected u64"),
            (r#"{"model":"open","rate":"fast"}"#, "'fast' is not a rate"),
        ] {
            let told = read(json).unwrap_err();
            assert!(told.contains(word), "{json}: {told}");
        }
    }
}

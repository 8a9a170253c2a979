//! Words for what a record holds as data: the load that was asked for, limits, shell words.

use crate::number::{counted, significant};
use crate::sheet::Cell;
use plimsoll_core::schedule::{Arrivals, LoadModel, Think};
use plimsoll_core::units::Span;
use serde_json::Value;

/// A measured figure of a limit with its unit; one that depends on requests that did not succeed is a lower bound.
#[must_use]
pub fn limit_cell(value: f64, unit: &str, at_least: bool) -> Cell {
    let cell = match unit {
        "ms" => Cell::ms(value),
        "/s" => Cell::per_s(value),
        "" => Cell::number(value, significant(value)),
        unit => Cell::number(value, format!("{} {unit}", significant(value))),
    };
    match cell {
        Cell::Number { value, text, from } if at_least => {
            Cell::Number { value, text: format!("at least {text}"), from }
        }
        cell => cell,
    }
}

/// The load of a scenario in words; `None` if it has none that this version knows.
#[must_use]
pub fn load(scenario: &Value) -> Option<String> {
    let model: LoadModel = serde_json::from_value(scenario.get("load")?.clone()).ok()?;
    let span = |ns: u64| Span { ns }.to_string();
    let gaps = |arrivals: Arrivals| match arrivals {
        Arrivals::Uniform => "equal gaps",
        Arrivals::Poisson => "Poisson arrivals",
    };
    Some(match model {
        LoadModel::Closed { clients, think, cycle_ns } => {
            let mut text = format!("closed model: {}", counted(clients.into(), "client"));
            text += match think {
                Think::None => ", each sends its next request when the reply is there",
                _ => ", each thinks between a reply and its next request",
            };
            if cycle_ns > 0 {
                text += &format!(", at most one request in {} each", span(cycle_ns));
            }
            text
        }
        LoadModel::Open { rate_per_s, arrivals } => {
            format!("open model: {} requests/s, {}", significant(rate_per_s), gaps(arrivals))
        }
        LoadModel::Burst { size, every_ns } => {
            format!("bursts of {} every {}", counted(size.into(), "request"), span(every_ns))
        }
        LoadModel::PacedBurst { size, delay_ns, limit } => {
            let after = match limit {
                Some(limit) => format!(" after no more than {limit} are behind"),
                None => String::new(),
            };
            format!("bursts of {}, {}{after}", counted(size.into(), "request"), span(delay_ns))
        }
        LoadModel::Profile { steps, arrivals } => {
            let rates = steps.iter().flat_map(|step| [step.from_per_s, step.to_per_s]);
            let (low, high) =
                rates.fold((f64::MAX, 0.0f64), |(low, high), rate| (low.min(rate), high.max(rate)));
            let length_ns = steps.iter().map(|step| step.duration_ns).sum();
            format!(
                "rate profile: {} in {}, from {}/s to {}/s, {}",
                counted(steps.len() as u64, "step"),
                span(length_ns),
                significant(low.min(high)),
                significant(high),
                gaps(arrivals)
            )
        }
        LoadModel::Users { requests, .. } => match requests {
            0 => "virtual users, each sends all requests of the source".to_owned(),
            requests => format!("virtual users, {} each", counted(requests.into(), "request")),
        },
    })
}

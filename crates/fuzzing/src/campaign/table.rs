//! The table of a run, as the book has it.

use super::outcome::Outcome;
use super::{Plan, Sanitizer};
use plimsoll_core::clock::{format_utc, wall_us};
use plimsoll_report::number::count;
use std::fmt::Write as _;

/// Inputs that each target has had before a release.
const BEFORE_A_RELEASE: f64 = 1e8;

/// The name of the processor.
fn machine(cores: usize) -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name"));
    let name = name
        .and_then(|rest| rest.split_once(':'))
        .map_or("unknown processor", |(_, name)| name.trim());
    format!("{name}, {cores} cores")
}

/// The table as Markdown.
pub fn render(found: &[(&str, Outcome)], plan: &Plan, cores: usize) -> String {
    let date = format_utc(wall_us());
    let date = date.split('T').next().unwrap_or_default();
    let inputs: u64 = found.iter().map(|(_, outcome)| outcome.inputs).sum();
    let checked = match plan.sanitizer {
        Some(Sanitizer::Address) => "AddressSanitizer, debug assertions and overflow checks",
        None => "debug assertions and overflow checks",
    };
    let mut text = format!(
        "{date}, {}; {} inputs in all; {checked}.\n\n\
         | target | inputs | inputs/s | features | corpus | new | findings |\n\
         |---|---|---|---|---|---|---|\n",
        machine(cores),
        count(inputs)
    );
    for (name, outcome) in found {
        let findings = match outcome.findings.len() {
            0 => "none".to_owned(),
            count => {
                let names = outcome.findings.iter().filter_map(|path| path.file_name());
                let names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
                format!("{count}: {}", names.join(", "))
            }
        };
        let _ = writeln!(
            text,
            "| `{name}` | {} | {} | {} | {} | {} | {findings} |",
            count(outcome.inputs),
            count(outcome.rate.round() as u64),
            count(outcome.features),
            count(outcome.kept),
            count(outcome.new_inputs as u64),
        );
    }
    let seconds: f64 = found
        .iter()
        .filter(|(_, outcome)| outcome.rate > 0.0)
        .map(|(_, outcome)| BEFORE_A_RELEASE / outcome.rate)
        .sum();
    let _ = write!(
        text,
        "\n10^8 inputs for each of these targets take {:.0} hours at this speed on {cores} cores.",
        seconds / 3600.0 / cores as f64
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_figures_of_its_target_and_the_end_says_how_long_a_release_takes() {
        let outcome = Outcome {
            inputs: 1_234_567,
            rate: 10_000.0,
            features: 12,
            kept: 3,
            new_inputs: 1,
            ..Outcome::default()
        };
        let text = render(&[("yql", outcome)], &Plan::default(), 2);
        assert!(text.contains("| `yql` | 1,234,567 | 10,000 | 12 | 3 | 1 | none |"), "{text}");
        assert!(text.ends_with("take 1 hours at this speed on 2 cores."), "{text}");
        let found = Outcome { findings: vec!["a/crash-1".into()], ..Outcome::default() };
        assert!(render(&[("sql", found)], &Plan::default(), 2).contains("| 1: crash-1 |"));
    }
}

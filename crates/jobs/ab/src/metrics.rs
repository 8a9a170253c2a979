//! Metrics that can be compared: their names, units and directions.

use plimsoll_decide::rule::{Better, better};
use plimsoll_job::usage::usage;

/// Names that are not in rules: those of a program that is not plimsoll.
const OF_COMMANDS: [&str; 2] = ["time", "number"];
/// Metrics that are shown without an answer, if they were not named.
const SHOWN: [&str; 7] = ["rate", "mean", "p50", "p95", "p99", "cpu", "errors"];

/// A metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Name.
    pub name: String,
    /// True if a higher value is better.
    pub is_higher_better: bool,
    /// True if it gets an answer.
    pub is_named: bool,
}

impl Metric {
    /// Reads a name.
    ///
    /// # Errors
    /// An unknown name.
    pub fn of(name: &str, is_higher_better: bool, is_command: bool) -> anyhow::Result<Self> {
        let name = if name == "p99_9" { "p99.9" } else { name };
        let direction = match better(name) {
            Some(better) if !is_command => Some(better == Better::Higher),
            _ if OF_COMMANDS.contains(&name) && is_command => {
                Some(name == "number" && is_higher_better)
            }
            _ => None,
        };
        match direction {
            Some(is_higher_better) => {
                Ok(Self { name: name.to_owned(), is_higher_better, is_named: true })
            }
            None if is_command => Err(usage(format!(
                "--on {name}: the blocks of --command have the metrics time and number (--number)"
            ))),
            None => Err(usage(format!(
                "--on {name}: unknown metric; write rate, p50, p90, p95, p99, p99.9, mean, max, max-rate, cpu, errors, \
                 documents, accepted or bytes"
            ))),
        }
    }

    /// The unit of its values.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match self.name.as_str() {
            "rate" | "max-rate" | "documents" | "accepted" => "/s",
            "bytes" => "B/s",
            "cpu" => "us",
            "errors" => "%",
            "time" => "s",
            "number" => "",
            _ => "ms",
        }
    }
}

/// Returns the named metrics first, then those that are only shown.
#[must_use]
pub fn all(named: Vec<Metric>, is_command: bool) -> Vec<Metric> {
    let mut all = named;
    let shown: &[&str] = if is_command { &["time"] } else { &SHOWN };
    for name in shown {
        let is_new = !all.iter().any(|metric| metric.name == *name);
        let metric = Metric::of(name, false, is_command).ok().filter(|_| is_new);
        all.extend(metric.map(|metric| Metric { is_named: false, ..metric }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_metrics_stand_first_and_others_are_only_shown() {
        let named = vec![
            Metric::of("p99", false, false).unwrap(),
            Metric::of("rate", false, false).unwrap(),
        ];
        let all = all(named, false);
        let names: Vec<&str> = all.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["p99", "rate", "mean", "p50", "p95", "cpu", "errors"]);
        assert_eq!(all.iter().filter(|metric| metric.is_named).count(), 2);
        assert!(all[1].is_higher_better && !all[0].is_higher_better);
        assert_eq!((all[0].unit(), all[1].unit(), all[5].unit()), ("ms", "/s", "us"));
    }

    #[test]
    fn an_unknown_metric_names_the_known_ones() {
        let refusal =
            |name, is_command| Metric::of(name, true, is_command).unwrap_err().to_string();
        assert!(refusal("p98", false).contains("write rate, p50"));
        assert!(refusal("p95", true).contains("time and number"));
        assert!(Metric::of("number", true, true).unwrap().is_higher_better);
        assert!(!Metric::of("time", true, true).unwrap().is_higher_better);
    }
}

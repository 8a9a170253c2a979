//! Runs that are like each other: the same job and settings, against the same target, on the same machine.

use plimsoll_core::record::Machine;
use plimsoll_record::RunRecord;
use serde::Serialize;
use serde_json::{Map, Value};

/// Settings of a scenario in which like runs may differ: they choose among random draws, or judge the result.
const FREE: [&str; 6] = ["seed", LIMITS, "assertions", "max_failed", "name", "labels"];
/// The setting that holds the limits.
const LIMITS: &str = "slo";
/// Settings that are other words for the job and its target.
const NAMES: [&str; 3] = ["job", "targets", "target"];
/// Longest value in a list of differences, characters.
const SHOWN_CHARS_MAX: usize = 60;

/// Properties that runs must have in common to differ only by chance, or by the change that is looked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Likeness {
    /// Job of the catalogue, or the command.
    pub job: String,
    /// Target; empty for a job of the catalogue, which starts its own.
    pub target: String,
    /// Settings.
    #[serde(skip)]
    pub settings: Map<String, Value>,
    /// The machine of the generator in words, which tell machines apart.
    pub machine: String,
}

impl Likeness {
    /// Returns what a record has to have in common with others.
    #[must_use]
    pub fn of(record: &RunRecord) -> Self {
        let machine = machine(&record.machine);
        if let Some(entry) = record.job_results.catalogue() {
            let vars = entry.vars.iter().map(|(key, value)| (key.clone(), value.clone().into()));
            let role = entry.role.iter().map(|role| ("role".to_owned(), role.clone().into()));
            let settings = vars.chain(role).collect();
            return Self { job: entry.name.clone(), target: String::new(), settings, machine };
        }
        let mut settings = record.scenario.as_object().cloned().unwrap_or_default();
        // A search measures the rate at which its limit holds: with another limit it measures something else.
        let is_free = |name: &str| {
            FREE.contains(&name) && !(name == LIMITS && record.job_results.is_search())
        };
        settings.retain(|name, _| !is_free(name) && !NAMES.contains(&name.as_str()));
        Self { job: record.job.clone(), target: record.target.url.clone(), settings, machine }
    }

    /// Returns the differences to another run, a short phrase each.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut all = Vec::new();
        let mut told = |name: &str, one: &str, other: &str| {
            if one != other {
                all.push(format!("{name} {one} and {other}"));
            }
        };
        told("machine", &self.machine, &other.machine);
        told("target", &self.target, &other.target);
        let more = other.settings.keys().filter(|name| !self.settings.contains_key(*name));
        for name in self.settings.keys().chain(more) {
            let shown = |settings: &Map<String, Value>| shown(settings.get(name));
            told(name, &shown(&self.settings), &shown(&other.settings));
        }
        all
    }

    /// Returns the settings that tell the load in a line: `open 200/s, duration 30s`.
    #[must_use]
    pub fn load(&self) -> String {
        let text = |name: &str| self.settings.get(name).and_then(Value::as_str);
        let mut words = Vec::new();
        if let Some(Value::Object(load)) = self.settings.get("load") {
            let of = |name: &str| load.get(name).filter(|value| !value.is_null());
            let number = |name: &str| of(name).and_then(Value::as_f64);
            match (number("rate_per_s"), number("clients")) {
                (Some(rate), _) => words.push(format!("{rate} requests/s")),
                (None, Some(clients)) => words.push(format!("{clients} clients")),
                _ => words.extend(of("model").and_then(Value::as_str).map(str::to_owned)),
            }
        }
        words.extend(text("duration").map(|duration| format!("for {duration}")));
        words.join(" ")
    }
}

/// A value of a scenario in few words.
fn shown(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => return "none".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    crate::plain::clip(&text, SHOWN_CHARS_MAX)
}

/// A machine in a line.
fn machine(machine: &Machine) -> String {
    let cpus = machine
        .cpus_allowed
        .map_or(machine.cpus.to_string(), |allowed| format!("{allowed} of {}", machine.cpus));
    // Kernels reserve more or less of the same memory.
    let gib = (machine.memory_bytes as f64 / f64::from(1u32 << 30)).round();
    format!(
        "{} ({}, {cpus} CPUs, {gib} GiB, kernel {})",
        machine.hostname, machine.cpu, machine.kernel
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use serde_json::json;

    #[test]
    fn runs_with_other_seeds_and_limits_are_like_each_other() {
        let one = samples::good();
        let mut other = samples::good();
        other.scenario["seed"] = json!(7);
        other.scenario["slo"] = json!(["p95=5ms"]);
        assert_eq!(Likeness::of(&one), Likeness::of(&other));
        other.scenario["rate"] = json!(200);
        other.machine.kernel = "6.2".to_owned();
        let differences = Likeness::of(&one).differences(&Likeness::of(&other));
        assert_eq!(
            differences,
            [
                "machine here (a processor, 1 of 2 CPUs, 7 GiB, kernel 6.1.0) and here (a processor, 1 of 2 CPUs, 7 GiB, kernel 6.2)",
                "rate 100 and 200"
            ]
        );
    }

    /// The limit decides which rate a search finds.
    #[test]
    fn searches_with_other_limits_are_not_like_each_other() {
        let (one, mut other) = (samples::followed(), samples::followed());
        other.scenario["seed"] = json!(7);
        assert_eq!(Likeness::of(&one), Likeness::of(&other));
        other.scenario["slo"] = json!(["p95=500ms"]);
        let differences = Likeness::of(&one).differences(&Likeness::of(&other));
        assert!(differences.iter().any(|text| text.starts_with("slo ")), "{differences:?}");
    }

    #[test]
    fn a_job_of_the_catalogue_is_like_itself_on_any_port() {
        let entry = |users: &str| plimsoll_record::catalogue::CatalogueEntry {
            name: "mine".to_owned(),
            vars: [("users".to_owned(), users.to_owned())].into(),
            ..Default::default()
        };
        let mut one = samples::good();
        one.job_results.put(entry("5"));
        let mut other = one.clone();
        other.target.url = "http://127.0.0.1:40000/".to_owned();
        assert_eq!(Likeness::of(&one), Likeness::of(&other));
        other.job_results.put(entry("6"));
        assert_eq!(Likeness::of(&one).differences(&Likeness::of(&other)), ["users 5 and 6"]);
    }

    #[test]
    fn the_load_is_told_in_a_line() {
        let mut record = samples::good();
        record.scenario =
            json!({"load": {"model": "open", "rate_per_s": 200.0}, "duration": "30s"});
        assert_eq!(Likeness::of(&record).load(), "200 requests/s for 30s");
        record.scenario = json!({"load": {"model": "closed", "clients": 4}});
        assert_eq!(Likeness::of(&record).load(), "4 clients");
    }
}

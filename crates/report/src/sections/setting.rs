//! The load that was asked for, machine and target, and the command.

use super::said;
use crate::command::shell;
use crate::number::{bytes, counted, significant};
use crate::sheet::{Cell, Part, Section, Tone};
use crate::source;
use plimsoll_record::RunRecord;
use serde_json::Value;

type Facts = Vec<(String, Cell)>;

fn put(facts: &mut Facts, name: &str, cell: Cell) {
    facts.push((name.to_owned(), cell));
}

/// The run as it was asked for, and the reasons of the verdict.
#[must_use]
pub fn asked(record: &RunRecord) -> Section {
    let mut facts = Facts::new();
    put(&mut facts, "job", Cell::text(record.job.clone()));
    if !record.name.is_empty() {
        put(&mut facts, "name", Cell::text(record.name.clone()));
    }
    for (key, value) in &record.labels {
        put(&mut facts, &format!("label {key}"), Cell::text(value.clone()));
    }
    if !record.target.url.is_empty() {
        put(&mut facts, "target", Cell::text(record.target.url.clone()));
    }
    let scenario = &record.scenario;
    if let Some(load) = said::load(scenario) {
        put(&mut facts, "load", Cell::text(load));
    }
    put(&mut facts, "measured", Cell::seconds(record.duration_s).from(&["duration_s"]));
    // Times of a scenario are texts with their units.
    let of_time = [
        ("warm-up", "warmup"),
        ("timeout of a request", "timeout"),
        ("timeout of a connection", "connect_timeout"),
    ];
    for (name, field) in of_time {
        if let Some(text) = scenario.get(field).and_then(Value::as_str).filter(|text| *text != "0s")
        {
            put(&mut facts, name, Cell::text(text));
        }
    }
    if let Some(queries) = scenario.get("queries").and_then(Value::as_str) {
        put(&mut facts, "requests from", Cell::text(queries));
    }
    if let Some(number) = scenario.get("connections").and_then(Value::as_u64) {
        put(&mut facts, "connections", Cell::count(number).from(&["scenario", "connections"]));
    }
    if scenario.get("http2").and_then(Value::as_bool) == Some(true) {
        put(&mut facts, "protocol", Cell::text("HTTP/2"));
    }
    if let Some(seed) = scenario.get("seed").and_then(Value::as_u64) {
        put(
            &mut facts,
            "seed",
            Cell::number(seed as f64, seed.to_string()).from(&["scenario", "seed"]),
        );
    }
    let mut section = Section::new("asked", "The run, and the reasons of its verdict", "");
    section.parts.push(Part::Facts(facts));
    section.parts.extend(reasons(record));
    section
}

/// The reasons of the verdict, and the warnings.
fn reasons(record: &RunRecord) -> Vec<Part> {
    let reason = |reason: &String| Part::Text(Tone::Plain, reason.clone());
    let mut parts: Vec<Part> = record.verdict.reasons.iter().map(reason).collect();
    let unknown = record.job_results.unknown().map(|section| {
        format!(
            "the section '{}' is not shown: this plimsoll does not know it; use a newer one",
            section.key
        )
    });
    let warnings = record.warnings.iter().cloned().chain(unknown);
    parts.extend(warnings.map(|warning| Part::Text(Tone::Warn, format!("Warning: {warning}"))));
    parts
}

/// The machine of the generator, the target, and the network between them.
#[must_use]
pub fn machine(record: &RunRecord) -> Section {
    let machine = &record.machine;
    let mut facts = Facts::new();
    if !record.target.url.is_empty() {
        put(&mut facts, "target", Cell::text(record.target.url.clone()));
        let place = match record.known("target.same_host", record.target.same_host) {
            Some(true) => Cell::text("this machine"),
            Some(false) => Cell::text("another machine"),
            None => Cell::Unknown,
        };
        put(&mut facts, "target runs on", place);
    }
    if !record.target.addresses.is_empty() {
        put(&mut facts, "addresses in use", Cell::text(record.target.addresses.join(", ")));
    }
    if let Some(network) = &record.network {
        let us = |value: u32, field: &'static str| {
            Cell::number(value.into(), format!("{value} us")).from(&["network", field])
        };
        let floor = us(network.rtt_floor_median_us, "rtt_floor_median_us");
        put(&mut facts, "round trip, median of the connections' smallest", floor);
        put(&mut facts, "round trip, smallest", us(network.rtt_min_us, "rtt_min_us"));
        let connections = Cell::count(network.connections.into()).from(&["network", "connections"]);
        put(&mut facts, "connections looked at", connections);
        let again = Cell::count(network.retransmits).from(&["network", "retransmits"]);
        put(&mut facts, "segments sent again", again);
    }
    if !record.is_known("machine") {
        put(&mut facts, "generator runs on", Cell::Unknown);
    }
    if !machine.hostname.is_empty() {
        put(&mut facts, "generator runs on", Cell::text(machine.hostname.clone()));
    }
    if machine.cpus > 0 {
        put(&mut facts, "processor", Cell::text(machine.cpu.clone()));
        put(&mut facts, "processors", Cell::count(machine.cpus.into()).from(&["machine", "cpus"]));
    }
    if let Some(allowed) = machine.cpus_allowed {
        let allowed = Cell::count(allowed.into()).from(&["machine", "cpus_allowed"]);
        put(&mut facts, "processors that the generator may use", allowed);
    }
    if machine.memory_bytes > 0 {
        let memory = machine.memory_bytes as f64;
        let memory = Cell::number(memory, bytes(memory)).from(&["machine", "memory_bytes"]);
        put(&mut facts, "memory", memory);
    }
    for (cache, size) in &machine.caches {
        put(&mut facts, cache, Cell::text(size.clone()));
    }
    let systems = [
        ("operating system", &machine.os),
        ("kernel", &machine.kernel),
        ("architecture", &machine.architecture),
    ];
    for (name, text) in systems {
        if !text.is_empty() {
            put(&mut facts, name, Cell::text(text.clone()));
        }
    }
    Section::new("machine", "Machine and target", "").with(Part::Facts(facts))
}

/// The command that makes the run again; `None` if the record does not have it.
pub fn command(record: &RunRecord) -> Option<Section> {
    if record.command.is_empty() {
        return None;
    }
    let mut note = "The command line of this run, for a POSIX shell.".to_owned();
    if record.command.iter().any(|word| word.contains(crate::command::LEFT_OUT)) {
        note += &format!(
            " Secrets are left out: put them in the place of {}.",
            crate::command::LEFT_OUT
        );
    }
    Some(
        Section::new("command", "Repeat this run", &note)
            .with(Part::Command(shell(&record.command))),
    )
}

/// When it ran, for how long, and with which seed.
#[must_use]
pub fn when(record: &RunRecord) -> String {
    if let Some(import) = record.job_results.import() {
        let mut when = format!("{}; {}", source::measured(record, import), source::file(import));
        if !record.run_id.is_empty() {
            when += &format!(", record {}", record.run_id);
        }
        return when;
    }
    let started = record.started_at.replace('T', " ").replace('Z', " UTC");
    let mut when = format!("started {started}, measured {} s", significant(record.duration_s));
    if record.target.same_host {
        when += ", target on the machine of the generator";
    }
    if !record.run_id.is_empty() {
        when += &format!(", run {}", record.run_id);
    }
    when
}

/// The job and its target.
#[must_use]
pub fn title(record: &RunRecord) -> String {
    let mut title = record.job.clone();
    if let Some(import) = record.job_results.import() {
        title += &format!(" {}", import.source());
    }
    if !record.name.is_empty() {
        title += &format!(" {}", record.name);
    }
    let targets: Vec<&str> = record.target.url.split(' ').filter(|url| !url.is_empty()).collect();
    match targets.as_slice() {
        [] => {}
        [one] => title += &format!(": {one}"),
        [first, rest @ ..] => {
            title += &format!(": {first} and {}", counted(rest.len() as u64, "other address"));
        }
    }
    title
}

/// The program that made the record.
#[must_use]
pub fn footer(record: &RunRecord) -> Vec<String> {
    let mut tool = format!("plimsoll {}", record.tool.version);
    if !record.tool.commit.is_empty() {
        tool += &format!(", commit {}", record.tool.commit);
        if record.tool.modified == Some(true) {
            tool += " with changes";
        }
    }
    vec![tool]
}

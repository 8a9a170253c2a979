//! From an import to a run record, in which everything that the source does not give is unknown.

use crate::imported::{Class, Counts, Imported, Times, TimesOf};
use plimsoll_core::clock::format_utc;
use plimsoll_core::interval::Counters;
use plimsoll_core::ledger::{Failed, Ledger, Refused, Unsent};
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_record::fbench::Percentile;
use plimsoll_record::import::ImportResult;
use plimsoll_record::{
    Bytes, ClassRecord, Generator, JobResults, Latencies, Machine, Rates, RunRecord, SCHEMA,
    TargetInfo, Tool,
};
use plimsoll_report::assemble::RecordHeader;
use plimsoll_report::naming::Naming;
use plimsoll_report::plain::without_secrets;
use serde_json::json;
use std::collections::BTreeMap;

/// Name of the job in the record.
pub const JOB: &str = "import";
/// The class of a source that distinguishes none.
const ALL: &str = "all";

/// Facts of a record that do not come from the file.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The program that imports.
    pub tool: Tool,
    /// Id of the record; empty if it is not kept.
    pub run_id: String,
    /// Time of the import in UTC.
    pub imported_at: String,
    /// Name and labels that the user gives the record.
    pub naming: Naming,
    /// Name of the format.
    pub format: &'static str,
    /// Name of the file.
    pub file: String,
}

/// The record of an import.
#[must_use]
pub fn record_of(imported: &Imported, about: &About) -> RunRecord {
    let mut unknown = Unknown::default();
    let counts = &imported.counts;
    let classes = classes(imported);
    let latency_ms = latencies(
        &mut unknown,
        "latency_ms",
        &[(&imported.response, &imported.service, &imported.failed)],
    );
    let ledger = ledger(&mut unknown, "ledger", counts);
    let rate = Rates {
        offered_per_s: unknown.or_nan("rate.offered_per_s", imported.offered_per_s),
        achieved_per_s: unknown.or_nan("rate.achieved_per_s", imported.achieved_per_s),
        ok_per_s: unknown.or_nan("rate.ok_per_s", imported.ok_per_s),
    };
    let bytes = Bytes {
        sent: unknown.or_default("bytes.sent", imported.bytes_sent),
        received: unknown.or_default("bytes.received", imported.bytes_received),
    };
    let duration_s = unknown.or_nan("duration_s", imported.duration_s);
    let statuses = unknown.or_default("statuses", imported.statuses.clone());
    class_unknowns(&mut unknown, &classes);
    // No file has figures of the generator.
    unknown.all(&["generator", "machine", "counters", "target.same_host"]);
    let target = imported.target.as_deref().unwrap_or_default();
    let mut record = RunRecord {
        schema: SCHEMA.to_owned(),
        tool: about.tool.clone(),
        run_id: about.run_id.clone(),
        job: JOB.to_owned(),
        command: Vec::new(),
        name: about.naming.name.clone(),
        labels: about.naming.labels.clone(),
        started_at: about.imported_at.clone(),
        duration_s,
        scenario: json!({}),
        target: TargetInfo { url: without_secrets(target), ..TargetInfo::default() },
        machine: Machine::default(),
        ledger,
        rate,
        bytes,
        latency_ms,
        intervals: BTreeMap::new(),
        generator: Generator::default(),
        class_names: classes.iter().map(|class| class.name.clone()).collect(),
        histograms: histograms(&classes),
        classes: classes.iter().map(|class| (class.name.clone(), class_record(class))).collect(),
        phases: Vec::new(),
        slo: BTreeMap::new(),
        assertions: Vec::new(),
        verdict: verdict(imported),
        warnings: imported.warnings.clone(),
        statuses,
        counters: Counters::default(),
        network: None,
        slowest: Vec::new(),
        outlets: Vec::new(),
        job_results: JobResults::default(),
    };
    record.job_results.put(result(imported, about, unknown.paths));
    record.blank_unknown();
    record
}

/// The header that the journal of the seconds is written with.
#[must_use]
pub fn header_of(record: &RunRecord) -> RecordHeader {
    RecordHeader { class_names: record.class_names.clone(), ..RecordHeader::of(record) }
}

/// Paths of unknown fields.
#[derive(Debug, Default)]
struct Unknown {
    paths: Vec<String>,
}

impl Unknown {
    fn add(&mut self, path: &str) {
        if !self.paths.iter().any(|known| known == path) {
            self.paths.push(path.to_owned());
        }
    }

    fn all(&mut self, paths: &[&str]) {
        paths.iter().for_each(|path| self.add(path));
    }

    fn or_nan(&mut self, path: &str, value: Option<f64>) -> f64 {
        value.filter(|v| v.is_finite()).unwrap_or_else(|| {
            self.add(path);
            f64::NAN
        })
    }

    fn or_default<T: Default>(&mut self, path: &str, value: Option<T>) -> T {
        value.unwrap_or_else(|| {
            self.add(path);
            T::default()
        })
    }
}

fn verdict(imported: &Imported) -> Verdict {
    let reason = format!(
        "plimsoll did not measure these figures: {} did, and whether its generator kept up is unknown",
        imported.tool
    );
    Verdict::new(VerdictKind::Imported, vec![reason])
}

fn result(imported: &Imported, about: &About, unknown: Vec<String>) -> ImportResult {
    let times = [("response", &imported.response), ("service", &imported.service)];
    let times: Vec<String> = times
        .iter()
        .filter(|(_, times)| !times.is_unknown())
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let times_of = match imported.times_of {
        _ if times.is_empty() => "",
        TimesOf::All => "all",
        TimesOf::Successful => "successful",
    };
    let percentile = |&(percentile, ms): &(f64, f64)| Percentile { percentile, ms };
    let failures = imported.failures.iter().map(|(words, n)| (without_secrets(words), *n));
    ImportResult {
        tool: imported.tool.clone(),
        tool_version: imported.tool_version.clone(),
        format: about.format.to_owned(),
        file: about.file.clone(),
        measured_from: imported.started_us.map(format_utc),
        times,
        times_from: imported.times_from.clone(),
        times_of: times_of.to_owned(),
        exact_to: imported.exact_to.clone(),
        below_ms: imported.below_ms,
        percentiles: imported.percentiles.iter().map(percentile).collect(),
        failed: imported.counts.failed,
        failures: failures.collect(),
        settings: imported.settings.clone(),
        unknown,
        has_seconds: imported.seconds.is_some(),
    }
}

/// The classes of the source, each name once; one with everything if it distinguishes none.
fn classes(imported: &Imported) -> Vec<Class> {
    if imported.classes.is_empty() {
        return vec![Class {
            name: ALL.to_owned(),
            counts: imported.counts,
            ok_per_s: imported.ok_per_s,
            response: imported.response.clone(),
            service: imported.service.clone(),
            failed: imported.failed.clone(),
        }];
    }
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let name = |class: &Class| {
        let plain = if class.name.trim().is_empty() { ALL } else { class.name.as_str() };
        without_secrets(plain)
    };
    let named = |class: &Class| {
        let mut name = name(class);
        let times = seen.entry(name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            name = format!("{name} ({times})");
        }
        Class { name, ..class.clone() }
    };
    imported.classes.iter().map(named).collect()
}

fn ledger(unknown: &mut Unknown, path: &str, counts: &Counts) -> Ledger {
    let at = |name: &str| format!("{path}.{name}");
    let sent = unknown.or_default(&at("sent"), counts.sent);
    let scheduled = unknown.or_default(&at("scheduled"), counts.scheduled);
    let ok = unknown.or_default(&at("ok"), counts.ok);
    unknown.add(&at("refused"));
    let stopped = unknown.or_default(&at("unsent"), counts.unsent);
    let failed = unknown.or_default(&at("failed"), failed_kinds(counts));
    let failed = if counts.kinds.is_none() { failed_sum(counts) } else { failed };
    let unfinished = unknown.or_default(&at("unfinished"), counts.unfinished);
    let unsent = Unsent { stopped };
    Ledger { scheduled, sent, ok, refused: Refused::default(), unsent, failed, unfinished }
}

/// Failures by kind; known also if there are none.
fn failed_kinds(counts: &Counts) -> Option<Failed> {
    counts.kinds.or_else(|| (counts.failed == Some(0)).then(Failed::default))
}

/// The sum of failures without a kind, as [`plimsoll_record::read`] puts it into memory.
fn failed_sum(counts: &Counts) -> Failed {
    Failed { check: counts.failed.unwrap_or(0), ..Failed::default() }
}

type Kinds<'a> = (&'a Times, &'a Times, &'a Times);

/// Latencies of the whole; a field is unknown if it is for one of `of`.
fn latencies(unknown: &mut Unknown, path: &str, of: &[Kinds<'_>]) -> Latencies {
    type Pick = for<'a> fn(&Kinds<'a>) -> &'a Times;
    let picks: [(&str, Pick); 3] =
        [("response", |of| of.0), ("service", |of| of.1), ("failed", |of| of.2)];
    for (name, pick) in picks {
        let path = format!("{path}.{name}");
        if of.iter().all(|one| pick(one).is_unknown()) {
            unknown.add(&path);
            continue;
        }
        if of.iter().any(|one| pick(one).count.is_none()) {
            unknown.add(&format!("{path}.count"));
        }
        // Of no request there is no time; that is known.
        let some = || of.iter().map(pick).filter(|times| times.count != Some(0));
        for (index, (point, _)) in Times::default().points().into_iter().enumerate() {
            if some().any(|times| times.points()[index].1.is_none()) {
                unknown.add(&format!("{path}.{point}"));
            }
        }
    }
    of.first().map(latencies_of).unwrap_or_default()
}

fn latencies_of(of: &Kinds<'_>) -> Latencies {
    let summary = |times: &Times| match times.count {
        Some(0) => plimsoll_core::histogram::LatencySummary::default(),
        _ => times.summary(),
    };
    Latencies {
        response: summary(of.0),
        service: summary(of.1),
        failed: summary(of.2),
        judged: None,
        server: None,
    }
}

fn class_unknowns(unknown: &mut Unknown, classes: &[Class]) {
    let lacks = |field: fn(&Class) -> bool| classes.iter().any(field);
    for (name, is_lacking) in [
        ("sent", lacks(|class| class.counts.sent.is_none())),
        ("ok", lacks(|class| class.counts.ok.is_none())),
        ("failed", lacks(|class| failed_kinds(&class.counts).is_none())),
        ("ok_per_s", lacks(|class| class.ok_per_s.is_none_or(|rate| !rate.is_finite()))),
        ("zero_hits", true),
        ("hits_known", true),
    ] {
        if is_lacking {
            unknown.add(&format!("classes.*.{name}"));
        }
    }
    let of: Vec<Kinds<'_>> =
        classes.iter().map(|class| (&class.response, &class.service, &class.failed)).collect();
    latencies(unknown, "classes.*.latency_ms", &of);
}

fn class_record(class: &Class) -> ClassRecord {
    let counts = &class.counts;
    ClassRecord {
        sent: counts.sent.unwrap_or(0),
        ok: counts.ok.unwrap_or(0),
        failed: failed_kinds(counts).unwrap_or_else(|| failed_sum(counts)),
        ok_per_s: class.ok_per_s.unwrap_or(f64::NAN),
        zero_hits: 0,
        hits_known: 0,
        latency_ms: latencies_of(&(&class.response, &class.service, &class.failed)),
    }
}

/// The histograms of each class, as far as the source has them.
fn histograms(classes: &[Class]) -> BTreeMap<String, String> {
    let mut encoded = BTreeMap::new();
    for class in classes {
        for (kind, times) in
            [("response", &class.response), ("service", &class.service), ("failed", &class.failed)]
        {
            if let Some(histogram) = &times.histogram {
                encoded.insert(format!("{}/{kind}", class.name), histogram.encode());
            }
        }
    }
    encoded
}

use super::*;
use crate::samples;
use plimsoll_core::interval::Interval;
use plimsoll_core::seek::finding::{Measured, Verdict as Found};
use plimsoll_core::seek::plant::Window;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_record::JobResults;
use plimsoll_record::fbench::{FbenchOptions, FbenchResult, FbenchSums};
use serde_json::{Value, json};

fn schema() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/run.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// All complaints about a document; empty when it fits.
fn complaints(document: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    validator.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

fn parsed(record: &RunRecord) -> Value {
    serde_json::from_str(&pretty(record)).unwrap()
}

fn fbench_record() -> RunRecord {
    let totals = samples::second(0, 0, 100);
    let options = FbenchOptions { clients: 4, ran_for_s: 1, ..FbenchOptions::default() };
    let sums = FbenchSums { clients_ended: 4, elapsed_ns: 4_000_000_000, skipped: 0 };
    let result = FbenchResult::new(&options, &totals, &sums);
    let mut ending = samples::ending();
    ending.job_results = JobResults::of(result.clone());
    let record = samples::record_of(&samples::seconds(), ending);
    assert_eq!(record.job_results.fbench(), Some(&result));
    record
}

#[test]
fn real_records_fit_the_committed_schema() {
    let mut void = samples::seconds();
    void[1].ledger.sent += 1;
    for record in [
        samples::good(),
        samples::failed(),
        samples::record_of(&[], crate::assemble::Ending::default()),
        samples::record_of(&[Interval::new(0)], samples::ending()),
        samples::record_of(&void, samples::ending()),
        fbench_record(),
    ] {
        assert_eq!(complaints(&parsed(&record)), Vec::<String>::new());
    }
}

#[test]
fn the_voters_section_fits_the_committed_schema() {
    use plimsoll_core::voter::WriteCheck;
    use plimsoll_record::voter::{
        ContestantVotes, Totals, TunePoint, TuneResult, VoterProcess, VoterResult,
    };
    let processes = vec![VoterProcess { index: 1, calls: 7, ..VoterProcess::default() }];
    let mut result = VoterResult {
        accepted: 5,
        errors: [("server unavailable".to_owned(), 2)].into(),
        rows_before: Some(1),
        rows_after: Some(6),
        check_reason: "why".to_owned(),
        agreed_start_us: Some(1),
        auto_tune: Some(TuneResult {
            goal: "p99=10ms".to_owned(),
            latency: "client".to_owned(),
            trace: vec![TunePoint { late: 0.5, ..TunePoint::default() }],
            ..TuneResult::default()
        }),
        contestants: vec![ContestantVotes { name: "A".to_owned(), number: 1, votes: 5 }],
        totals: Totals::of(&processes),
        processes,
        ..VoterResult::default()
    };
    let told = |result: &VoterResult| {
        let mut ending = samples::ending();
        ending.job_results = JobResults::of(result.clone());
        complaints(&parsed(&samples::record_of(&samples::seconds(), ending)))
    };
    let none = WriteCheck::NotChecked;
    for check in [WriteCheck::Ok, WriteCheck::Missing(3), WriteCheck::Surplus(1), none] {
        result.set_check(check);
        assert_eq!(told(&result), Vec::<String>::new());
    }
    assert_eq!(told(&VoterResult::default()), Vec::<String>::new());
    result.processes[0].rate_per_s = -1.0;
    assert!(!told(&result).is_empty(), "the schema says nothing of the section");
}

#[test]
fn what_a_search_found_fits_the_committed_schema() {
    let mut followed = samples::followed();
    let mut found = followed.job_results.seek().unwrap().clone();
    found.finding.verdict = Found::NeverViolated { at_least_per_s: 60.0 };
    let failing = Measured::new(1.0, 2.0, 1, &Window { scheduled: 3, ..Window::default() });
    found.finding.failing = Some(failing);
    followed.job_results.put(found);
    let good = parsed(&followed);
    assert_eq!(complaints(&good), Vec::<String>::new());
    for (name, wrong) in [
        ("verdict", json!("good")),
        ("basis", json!({})),
        ("interval_per_s", json!([1.0])),
        ("notes", json!("text")),
        ("broke", json!(5.0)),
    ] {
        let mut record = good.clone();
        record["seek"][name] = wrong;
        assert!(!complaints(&record).is_empty(), "{name}");
    }
}

#[test]
fn every_kind_of_verdict_is_in_the_schema() {
    for kind in [
        VerdictKind::Valid,
        VerdictKind::GeneratorLimited,
        VerdictKind::TargetFailed,
        VerdictKind::Partial,
        VerdictKind::Void,
    ] {
        let mut record = samples::good();
        record.verdict.kind = kind;
        assert_eq!(complaints(&parsed(&record)), Vec::<String>::new());
    }
}

/// Walks through the document and the schema together: each object of the record must name all its fields.
#[test]
fn the_schema_refuses_what_a_record_never_is() {
    let good = parsed(&fbench_record());
    for pointer in [
        "",
        "/ledger",
        "/ledger/failed",
        "/rate",
        "/latency_ms/response",
        "/generator",
        "/classes/fuzzy",
        "/phases/0",
        "/verdict",
        "/slowest/0",
        "/network",
        "/counters",
        "/fbench",
    ] {
        let keys: Vec<String> =
            good.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect();
        for key in keys {
            let optional =
                pointer.is_empty() && ["network", "fbench", "command"].contains(&key.as_str());
            let mut less = good.clone();
            less.pointer_mut(pointer).unwrap().as_object_mut().unwrap().shift_remove(&key);
            assert_eq!(complaints(&less).is_empty(), optional, "{pointer}/{key} was removed");
            let mut wrong = good.clone();
            wrong.pointer_mut(pointer).unwrap()[&key] = json!("-1 of another type\n");
            let free_text = wrong.pointer(pointer).unwrap()[&key].is_string()
                && good.pointer(pointer).unwrap()[&key].is_string()
                && !["schema", "started_at", "kind", "run_id"].contains(&key.as_str());
            let anything = ["scenario", "schedule"].contains(&key.as_str());
            assert_eq!(complaints(&wrong).is_empty(), free_text || anything, "{pointer}/{key}");
        }
        let mut more = good.clone();
        more.pointer_mut(pointer).unwrap()["not_documented"] = json!(1);
        assert!(!complaints(&more).is_empty(), "{pointer} takes an unknown field");
    }
}

#[test]
fn compact_and_pretty_say_the_same() {
    let record = samples::good();
    let line = compact(&record);
    assert!(!line.contains('\n'));
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), parsed(&record));
    assert_eq!(serde_json::from_str::<RunRecord>(&line).unwrap(), record);
}

#[test]
fn the_record_begins_as_the_design_says() {
    let text = pretty(&samples::good());
    let keys: Vec<_> = parsed(&samples::good()).as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys[..20],
        [
            "schema",
            "tool",
            "run_id",
            "job",
            "started_at",
            "duration_s",
            "scenario",
            "target",
            "machine",
            "ledger",
            "rate",
            "bytes",
            "latency_ms",
            "generator",
            "classes",
            "class_names",
            "phases",
            "slo",
            "verdict",
            "warnings"
        ]
    );
    assert!(text.starts_with("{\n  \"schema\": \"plimsoll.run/1\",\n") && text.ends_with("}\n"));
}

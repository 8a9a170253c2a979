//! A run that is made again from the records of its agents has everything that its coordinator's record has.

use super::{Fleet, reasons, record, wait_until_idle};
use crate::process::{PATIENCE, Place};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The newest record of each agent.
fn folders(fleet: &Fleet, runs: usize) -> Vec<PathBuf> {
    let newest = |(name, agent): &(String, crate::process::Running)| {
        // An agent that waits again has kept its record.
        wait_until_idle(agent, runs + 1);
        let all = std::fs::read_dir(fleet.runs(name)).unwrap().flatten();
        let all = all.map(|entry| entry.path()).filter(|path| path.join("run.json").is_file());
        all.max().unwrap()
    };
    fleet.agents.iter().map(newest).collect()
}

#[track_caller]
fn merged(fleet: &Fleet, folders: &[PathBuf]) -> Value {
    let folders = folders.iter().map(|folder| folder.display().to_string());
    let words = ["report", "--merge"].map(str::to_owned).into_iter().chain(folders);
    let words = words.chain(["--format", "json"].map(str::to_owned));
    record(&fleet.place.start(words).wait(PATIENCE).expect(0))
}

/// Makes sure that two sections are the same but for these members.
#[track_caller]
fn same_but(whole: &Value, merged: &Value, section: &str, left_out: &[&str]) {
    let without = |record: &Value| {
        let mut own = record[section].clone();
        let members = own.as_object_mut().unwrap_or_else(|| panic!("no {section}: {record:#}"));
        members.retain(|name, _| !left_out.contains(&name.as_str()));
        own
    };
    let (merged, whole) = (without(merged), without(whole));
    assert!(is_same(&merged, &whole), "{section}: {merged:#} and {whole:#}");
}

/// Sums of fractions are added in another order, which may differ in the last digits.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) if one.is_f64() && other.is_f64() => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= 1e-12 * one.abs().max(other.abs())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, value)| other.get(name).is_some_and(|own| is_same(value, own)))
        }
        _ => one == other,
    }
}

/// Counts and times of the requests, which every job has.
#[track_caller]
fn same_figures(whole: &Value, merged: &Value) {
    for field in ["ledger", "histograms", "latency_ms", "counters", "statuses", "class_names"] {
        assert_eq!(merged[field], whole[field], "{field}: {}", reasons(merged));
    }
    assert_eq!(merged["verdict"]["kind"], whole["verdict"]["kind"], "{}", reasons(merged));
}

#[test]
fn a_feed_and_a_visit_are_made_again_from_the_records_of_their_agents() {
    let fleet = Fleet::of(Place::busy(), 3, &["search"]);
    let put = |n: u32| {
        format!(
            "{{\"put\":\"id:plimsoll:doc::{n}\",\"fields\":{{\"title\":\"t\",\"score\":{n}}}}}\n"
        )
    };
    let text: String = (0..900).map(put).collect();
    fleet.place.file("good.ndjson", &text);
    fleet.place.file(
        "bad.ndjson",
        text + "{\"bogus\":1}\n{\"put\":\"id:plimsoll:nosuch::1\",\"fields\":{}}\n",
    );
    let url = fleet.target.url.clone();
    // What is rejected has the place in the input, too.
    let whole = record(&fleet.run(&["feed", &url, "bad.ndjson"]).expect(3));
    let again = merged(&fleet, &folders(&fleet, 1));
    same_figures(&whole, &again);
    same_but(&whole, &again, "feed", &[]);
    assert_eq!(again["feed"]["operations"], 902);
    assert!(again["feed"]["examples"][0]["file"] == "bad.ndjson", "{}", again["feed"]["examples"]);

    let whole = record(&fleet.run(&["visit", &url, "--out", "dump", "--slices", "7"]).expect(0));
    let own = folders(&fleet, 2);
    let again = merged(&fleet, &own);
    same_figures(&whole, &again);
    same_but(&whole, &again, "visit", &[]);
    assert_eq!(again["visit"]["documents"], 900);
    // A part that is missing, and one whose results are, are named, and the rest is shown.
    let part = merged(&fleet, &own[..2]);
    assert_eq!(part["verdict"]["kind"], "partial");
    assert!(reasons(&part).contains("of 3 agents are missing: part 3"), "{}", reasons(&part));
    assert_eq!(part["visit"]["slices_done"].as_u64().map(|done| done < 7), Some(true));
    std::fs::remove_file(own[1].join("part.json")).unwrap();
    let part = merged(&fleet, &own);
    assert_eq!(part["verdict"]["kind"], "partial");
    assert!(reasons(&part).contains("of 3 agents are missing: b"), "{}", reasons(&part));
    std::fs::write(own[1].join("part.json"), "{").unwrap();
    let words = ["report", "--merge", &own[1].display().to_string()].map(str::to_owned);
    let ended = fleet.place.run(words).expect(64);
    assert!(ended.stderr.contains("part.json is damaged"), "{}", ended.stderr);
}

#[test]
fn an_election_is_made_again_without_its_rows() {
    let fleet = Fleet::of(Place::busy(), 2, &["voter", "--port", "0"]);
    let url = fleet.target.url.clone();
    let words = ["voter", &url, "--calls", "3000", "--clients", "8", "--max-votes", "9"];
    let whole = record(&fleet.run(&words).expect(0));
    let again = merged(&fleet, &folders(&fleet, 1));
    same_figures(&whole, &again);
    // The coordinator alone has seen the rows, and times count from the clock of another process.
    let rows = ["rows_before", "rows_after", "check", "check_rows", "check_reason", "contestants"];
    let but = [&rows[..], &["processes", "totals"]].concat();
    same_but(&whole, &again, "voter", &but);
    assert_eq!(again["voter"]["check"], "not-checked");
    let clients = |record: &Value| -> Vec<Value> {
        let all = record["voter"]["processes"].as_array().unwrap().iter().cloned();
        let own = all.map(|mut one| {
            for name in ["started_us", "ended_us", "laps"] {
                one.as_object_mut().unwrap().remove(name);
            }
            one
        });
        own.collect()
    };
    assert_eq!(clients(&again), clients(&whole));
    assert_eq!(again["voter"]["totals"]["transactions"], whole["voter"]["totals"]["transactions"]);
    let whole = record(&fleet.run(&["hello", &url, "--calls", "2000", "--clients", "8"]).expect(0));
    let again = merged(&fleet, &folders(&fleet, 2));
    same_figures(&whole, &again);
    same_but(&whole, &again, "voter", &["processes", "totals"]);
}

#[test]
fn the_warm_up_is_made_again() {
    let fleet = Fleet::of(Place::busy(), 3, &["null"]);
    let url = fleet.target.url.clone();
    let words = ["load", &url, "--rate", "300", "--warmup", "2s", "--duration", "3s"];
    let whole = record(&fleet.run(&words));
    let own = folders(&fleet, 1);
    let again = merged(&fleet, &own);
    same_figures(&whole, &again);
    let phases = whole["phases"].as_array().unwrap();
    assert_eq!((&phases[0]["name"], phases.len()), (&Value::from("warmup"), 2));
    assert!(phases[0]["ledger"]["ok"].as_u64() > Some(400), "{}", phases[0]);
    for (index, phase) in phases.iter().enumerate() {
        for field in ["name", "from_s", "measured", "schedule", "ledger", "latency_ms"] {
            assert_eq!(again["phases"][index][field], phase[field], "{index} {field}");
        }
    }
    assert_eq!(again["phases"].as_array().unwrap().len(), 2);
    // One that has none of it is named.
    std::fs::remove_file(own[2].join("part.json")).unwrap();
    let part = merged(&fleet, &own);
    assert!(part["warnings"].to_string().contains("the warm-up lacks that of agent c"), "{part:#}");
    assert_eq!(part["ledger"], whole["ledger"]);
    cut(&own[0]);
    // The record of an agent that was killed knows neither the length of the run nor its warm-up; the others do.
    let part = merged(&fleet, &own);
    assert_eq!(part["verdict"]["kind"], "partial");
    for (index, phase) in phases.iter().enumerate() {
        for field in ["name", "from_s", "measured", "schedule"] {
            assert_eq!(part["phases"][index][field], phase[field], "{index} {field}: {part:#}");
        }
    }
}

/// Leaves of a record what its process had written after a second, had it been killed then.
fn cut(folder: &Path) {
    let path = folder.join("run.json");
    let mut early: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    early["verdict"] = json!({"kind": "partial", "reasons": ["the run has not ended"]});
    std::fs::write(path, early.to_string()).unwrap();
    let journal = folder.join("intervals.ndjson");
    let text = std::fs::read_to_string(&journal).unwrap();
    let first = text.split_inclusive('\n').next().unwrap();
    std::fs::write(journal, first).unwrap();
    let _ = std::fs::remove_file(folder.join("part.json"));
}

//! `plimsoll compare` and `plimsoll report --history`: real records of every job, exit codes, forms, and wrong words.

use crate::process::{Place, Target};
use crate::server::Server;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs a job that leaves a record, whatever its verdict, and returns the folder of the record.
fn run(place: &Place, args: &[&str]) -> PathBuf {
    let ended = place.start(args).wait(Duration::from_secs(120));
    assert!(matches!(ended.code, Some(0 | 2 | 3)), "{args:?}: {}\n{}", ended.stdout, ended.stderr);
    let runs = std::fs::read_dir(place.path().join("runs")).unwrap();
    let mut folders: Vec<PathBuf> = runs.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders.pop().unwrap()
}

/// Copies a record with another id and another time, valid, and changed.
fn copy(from: &Path, number: u32, change: impl Fn(&mut Value)) -> String {
    let mut record: Value =
        serde_json::from_str(&std::fs::read_to_string(from.join("run.json")).unwrap()).unwrap();
    record["run_id"] = json!(format!("{number:08x}"));
    record["started_at"] =
        json!(format!("2026-11-{:02}T{:02}:00:00Z", 1 + number / 24, number % 24));
    record["verdict"] = json!({"kind": "valid", "reasons": []});
    change(&mut record);
    let folder = from.parent().unwrap().join(format!("2026-copy-{number:08x}"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("run.json"), record.to_string()).unwrap();
    for name in ["intervals.ndjson", "resources.ndjson"] {
        let _ = std::fs::copy(from.join(name), folder.join(name));
    }
    folder.to_str().unwrap().to_owned()
}

/// A scaled number of a record.
fn scale(record: &mut Value, pointer: &str, factor: f64) {
    let value = record.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}"));
    *value = json!(value.as_f64().unwrap() * factor);
}

/// A small deviation that differs from run to run, 1 % at most.
fn noise(number: u32) -> f64 {
    1.0 + 0.01 * (f64::from(number * 7 % 11) / 5.0 - 1.0)
}

/// One real run, as the baseline, four like it, and one changed by `worse`.
fn six(run: &Path, vary: &[&str], worse: impl Fn(&mut Value)) -> (String, String) {
    let varied = |number: u32| {
        copy(run, number, |record| {
            vary.iter().for_each(|pointer| scale(record, pointer, noise(number)));
        })
    };
    let first = varied(1);
    (2..6).for_each(|number| drop(varied(number)));
    (first, copy(run, 9, worse))
}

fn server(place: &Place, args: &[&str]) -> Target {
    place.serve(&[args, &["--port", "0"]].concat())
}

/// The row of a metric in the JSON of a comparison.
fn row<'a>(comparison: &'a Value, metric: &str) -> &'a Value {
    let rows = comparison["rows"].as_array().unwrap();
    rows.iter()
        .find(|row| row["metric"] == metric)
        .unwrap_or_else(|| panic!("no {metric} in {rows:#?}"))
}

fn compared(place: &Place, first: &str, other: &str) -> Value {
    let ended = place.run(["compare", first, other, "--format", "json"]).expect(0);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["schema"], "plimsoll.comparison/1");
    json
}

/// A metric is worse than the baseline, and the others that are named have a row.
#[track_caller]
fn expect_worse(place: &Place, (first, other): (&str, &str), metric: &str, rows: &[&str]) {
    let json = compared(place, first, other);
    let against = &row(&json, metric)["against"][0];
    assert_eq!(against["answer"], "worse", "{against}");
    for name in rows {
        row(&json, name);
    }
    let text = place.run(["compare", first, other]).expect(0).stdout;
    assert!(text.contains("The runs were not interleaved") && text.contains("  worse, "), "{text}");
}

fn load(place: &Place) -> PathBuf {
    let server = Server::ok();
    let url = server.url();
    run(place, &["load", &url, "--clients", "1", "--requests", "200", "--quiet"])
}

const P99: &str = "/latency_ms/response/p99";

#[test]
fn exit_codes_say_worse_cannot_tell_and_fine() {
    let place = Place::new();
    let real = load(&place);
    let alone = copy(&real, 50, |_| {});
    let without = tempfile::tempdir().unwrap();
    let rule = ["--fail-on", "p99>+5%"];
    // Without like runs.
    let empty = ["--runs", without.path().to_str().unwrap()];
    let args = [&["compare", &alone, real.to_str().unwrap()], &rule[..], &empty].concat();
    let ended = place.run(args).expect(2);
    assert!(ended.stdout.contains("p99>+5%  B against A: CANNOT TELL"), "{}", ended.stdout);
    let (first, slower) = six(&real, &[P99], |record| scale(record, P99, 1.5));
    let run =
        |args: &[&str], code| place.run([&["compare", first.as_str()], args].concat()).expect(code);
    let failed = run(&[&slower, "--fail-on", "p99>+5%", "--fail-on", "errors>+5%"], 1);
    assert!(failed.stdout.contains("p99>+5%  B against A: FAILS: +"), "{}", failed.stdout);
    assert!(failed.stdout.contains("errors>+5%  B against A: HOLDS"), "{}", failed.stdout);
    run(&[&slower, "--fail-on", "errors>+5%"], 0);
    run(&[&slower, "--fail-on", "p99>+90%"], 0);
    run(&[&slower], 0);
    let limited = copy(&real, 60, |record| record["verdict"]["kind"] = json!("generator-limited"));
    let told = run(&[&limited, "--fail-on", "p99>+5%"], 2).stdout;
    assert!(told.contains("cannot tell: B is generator-limited"), "{told}");
}

#[test]
fn forms_for_a_pull_request_a_build_server_and_a_browser() {
    let place = Place::new();
    let (first, slower) = six(&load(&place), &[P99], |record| scale(record, P99, 1.5));
    let shown = |format: &str, code| {
        let args = ["compare", &first, &slower, "--fail-on", "p99>+5%", "--format", format];
        place.run(args).expect(code).stdout
    };
    let markdown = shown("markdown", 1);
    assert!(markdown.contains("| **p99** |") && markdown.contains("worse: +"), "{markdown}");
    let junit = shown("junit", 1);
    assert!(junit.contains("failures=\"1\"") && junit.contains("p99&gt;+5%"), "{junit}");
    let html = shown("html", 1);
    assert!(html.starts_with("<!doctype html>") && html.contains("Percentile curves"));
    assert!(html.contains("worse: +") && html.contains("id=\"throughput\""));
}

#[test]
fn wrong_words_are_one_line_each() {
    let place = Place::new();
    let real = load(&place);
    let (one, other) =
        (copy(&real, 1, |_| {}), copy(&real, 2, |record| record["job"] = json!("voter")));
    let answered = copy(&real, 3, |record| record["job"] = json!("ab"));
    let cases: [(&[&str], &str); 9] = [
        (&[&one], "compare needs 2 to 26 runs, not 1"),
        (&[&one, &one], "is named twice"),
        (&[&one, &other], "name records of the same job"),
        (&[&one, &answered], "print it with 'plimsoll report"),
        (&[&one, "00000009"], "there is no run '00000009' in runs"),
        (&[&one, &one, "--fail-on", "p99"], "write METRIC>+N% or METRIC<-N%"),
        (&[&one, &one, "--fail-on", "rate>+5%"], "a higher rate is better; write 'rate<-5%'"),
        (&[&one, &one, "--margin", "5"], "'5' is not a margin; write a percentage such as 5%"),
        (&[&one, "00000003", "--format", "csv"], "csv"),
    ];
    for (args, words) in cases {
        let ended = place.run([&["compare"], args].concat()).expect(64);
        assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
        assert!(ended.stdout.is_empty(), "{}", ended.stdout);
    }
    let like = copy(&real, 4, |_| {});
    let ended = place.run(["compare", &one, &like, "--fail-on", "documents<-5%"]).expect(64);
    assert!(
        ended.stderr.contains("the records have no 'documents'; they have rate"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_load_and_fbench_are_compared_by_ids() {
    let place = Place::new();
    let real = load(&place);
    let (_, _) = six(&real, &[P99, "/rate/ok_per_s"], |record| {
        scale(record, P99, 1.5);
        scale(record, "/rate/ok_per_s", 0.5);
    });
    let rows = ["p50", "p95", "p99", "errors"];
    expect_worse(&place, ("00000001", "00000009"), "rate", &rows);
    let place = Place::new();
    let target = server(&place, &["null"]);
    place.file("q.txt", "/\n");
    let port = target.port.to_string();
    let args =
        ["fbench", "-n", "1", "-s", "1", "-q", "q.txt", &target.host, &port, "--runs", "runs"];
    let (first, other) = six(&run(&place, &args), &["/rate/ok_per_s"], |record| {
        scale(record, "/rate/ok_per_s", 0.5)
    });
    expect_worse(&place, (&first, &other), "rate", &["p99", "errors", "cpu"]);
}

#[test]
fn a_search_for_the_line_is_compared_by_its_certified_rate() {
    let place = Place::busy();
    let target = server(&place, &["queue", "--servers", "4", "--service", "exponential:5ms"]);
    let args = ["seek", &target.url, "--slo", "p95=25ms", "--budget", "15s", "--quiet"];
    let real = run(&place, &args);
    let rate = "/seek/certified_rate_per_s";
    let with = |per_s: f64| {
        move |record: &mut Value| record["seek"]["certified_rate_per_s"] = json!(per_s)
    };
    let first = copy(&real, 1, with(600.0));
    (2..6).for_each(|number| drop(copy(&real, number, with(600.0 * noise(number)))));
    let other = copy(&real, 9, with(400.0));
    expect_worse(&place, (&first, &other), "max-rate", &[]);
    // Nothing was certified: no claim.
    let none = copy(&real, 10, |record| *record.pointer_mut(rate).unwrap() = Value::Null);
    let against = row(&compared(&place, &first, &none), "max-rate")["against"][0].clone();
    assert_eq!(against["words"], "cannot tell: B has no such figure", "{against}");
}

#[test]
fn votes_are_compared_by_what_was_accepted() {
    let place = Place::new();
    let target = server(&place, &["voter"]);
    let args = ["voter", &target.url, "--duration", "1s", "--rate", "200", "--quiet"];
    let accepted = "/voter/accepted";
    let with = |factor: f64| {
        move |record: &mut Value| {
            let votes = record.pointer(accepted).unwrap().as_u64().unwrap() as f64;
            *record.pointer_mut(accepted).unwrap() = json!((votes * factor) as u64);
        }
    };
    let real = run(&place, &args);
    let first = copy(&real, 1, with(1.0));
    (2..6).for_each(|number| drop(copy(&real, number, with(noise(number)))));
    let other = copy(&real, 9, with(0.5));
    expect_worse(&place, (&first, &other), "accepted", &["rate", "p50", "errors", "cpu"]);
}

#[test]
fn a_ranking_benchmark_at_one_rate_is_compared_as_a_load() {
    let place = Place::busy();
    let target =
        server(&place, &["rank", "--scale", "9", "--walk-calls", "1000", "--stories", "6"]);
    let url = target.url.replace("http://", "rank://");
    let args = ["rank", "--target", &url, "-q", "20", "-d", "2", "-w", "0", "--quiet"];
    let p50 = "/latency_ms/response/p50";
    let (first, other) = six(&run(&place, &args), &[p50], |record| scale(record, p50, 1.5));
    expect_worse(&place, (&first, &other), "p50", &["rate", "errors"]);
}

#[test]
fn feed_and_visit_are_compared_by_documents_and_bytes() {
    let place = Place::new();
    let target = server(&place, &["search"]);
    let line = |i: u32| {
        format!("{{\"put\":\"id:plimsoll:doc::{i}\",\"fields\":{{\"title\":\"t {i}\"}}}}\n")
    };
    place.file("in.jsonl", (0..500).map(line).collect::<String>());
    let fed = run(&place, &["feed", &target.url, "in.jsonl", "--quiet"]);
    let per_s = "/feed/accepted_per_s";
    let (first, other) = six(&fed, &[per_s], |record| scale(record, per_s, 0.5));
    expect_worse(&place, (&first, &other), "documents", &["bytes", "p50", "errors"]);
    let args = ["visit", &target.url, "--cluster", "plimsoll", "--quiet", "--out", "out.jsonl"];
    let visited = run(&place, &args);
    let per_s = "/visit/documents_per_s";
    let (first, other) = six(&visited, &[per_s], |record| scale(record, per_s, 0.5));
    expect_worse(&place, (&first, &other), "documents", &["bytes", "errors"]);
}

#[test]
fn a_history_shows_a_step_and_leaves_out_what_is_not_valid() {
    let place = Place::new();
    let real = load(&place);
    for number in 0..24 {
        copy(&real, number, |record| {
            scale(record, P99, noise(number) * if number < 14 { 1.0 } else { 1.4 });
            if number == 5 {
                scale(record, P99, 9.0);
                record["verdict"]["kind"] = json!("partial");
            }
        });
    }
    std::fs::remove_dir_all(&real).unwrap();
    let text = place.run(["report", "--history", "runs"]).expect(0).stdout;
    for part in [
        "24 runs, 2026-11-01T00:00:00Z to 2026-11-01T23:00:00Z, 1 of them not counted (partial)",
        "p99 is worse since 0000000e (2026-11-01T14:00:00Z)",
        "candidate: confirm with plimsoll ab --a BEFORE --b AFTER --on p99 -- load http://127.0.0.1:",
        "1 change: candidates, until 'plimsoll ab' has confirmed them.",
    ] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
    let args = ["report", "--history", "runs", "load", "--format", "json"];
    let json: Value = serde_json::from_str(&place.run(args).expect(0).stdout).unwrap();
    assert_eq!(json["schema"], "plimsoll.trend/1");
    let trends = json["groups"][0]["trends"].as_array().unwrap();
    let p99 = trends.iter().find(|trend| trend["metric"] == "p99").unwrap();
    assert_eq!((&p99["counted"], &p99["findings"][0]["at"]), (&json!(23), &json!(14)));
    let html = place.run(["report", "--history", "runs", "--format", "html"]).expect(0).stdout;
    assert!(html.contains("worse since 0000000e"));
    for (args, words) in [
        (&["report", "--history", "nowhere"][..], "nowhere"),
        (&["report", "--history", "runs", "voter"], "no run of voter in runs; it has runs of load"),
        (&["report", "--history", "runs", "--format", "csv"], "text, html, markdown or json"),
        (&["report", "--history", "runs", "--all"], "--all"),
    ] {
        let ended = place.run(args).expect(64);
        assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
    }
}

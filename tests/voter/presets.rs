//! Erlvolt's five runs, its words, and what is printed.

use super::{database, expect_exact, rejected, run};
use crate::process::Place;
use crate::record::Record;

const CALLS: u64 = 20_000;

#[test]
fn the_four_voter_presets_are_exact_on_one_database() {
    let place = Place::busy();
    let target = database(&place, &[]);
    let mut rows = 0;
    for (seed, preset) in [(1, "VSD"), (2, "VSM"), (3, "VBM"), (4, "VBD")] {
        // Bursts wait for their delay; 20,000 calls in bursts of 100 are a second of it.
        let (calls, seed) = (CALLS.to_string(), seed.to_string());
        let args = ["voter", preset, &target.url, "--calls", &calls, "--seed", &seed, "--quiet"];
        let record = run(&place, &args);
        expect_exact(&record);
        assert_eq!(record.count("/voter/rows_before"), rows, "{preset}");
        rows = record.count("/voter/rows_after");
        // None is rounded away, and the queue had room for all.
        assert_eq!((record.ok(), record.count("/ledger/scheduled")), (CALLS, CALLS), "{preset}");
        // The ways out of a vote are really taken.
        assert!(record.count("/voter/rejected/contestant") > 0, "{preset}");
        assert!(record.count("/voter/rejected/limit") > 0, "{preset}");
        assert!(rejected(&record) < CALLS / 10, "{preset}");
        let votes = record.0["voter"]["contestants"].as_array().unwrap();
        let votes: u64 = votes.iter().map(|one| one["votes"].as_u64().unwrap()).sum();
        assert_eq!(votes, rows, "{preset}");
        assert_eq!(record.count("/voter/server/ms/count"), CALLS, "{preset}");
    }
}

#[test]
fn hello_asks_for_rows_and_checks_each() {
    let place = Place::busy();
    let record = run(&place, &["hello", "--calls", "20000", "--quiet"]);
    assert_eq!((record.ok(), record.text("/voter/check")), (CALLS, "not-checked"));
    assert_eq!(record.text("/job"), "hello");
}

#[test]
fn the_originals_words_make_the_originals_lines() {
    let place = Place::busy();
    let words = "voter run VSD voter 5001 steady 20 x direct x x x verbose 50";
    let ended = place.run(words.split(' '));
    assert!(matches!(ended.code, Some(0 | 3)), "{}\n{}", ended.stdout, ended.stderr);
    // Lines that are longer than the page continue below.
    let whole = ended.stdout.replace("\n           ", " ");
    for part in [
        "Client 'VSD', voter, 5,001 calls, steady, 20 workers, delay n/a, direct, queue n/a, slots n/a, limit n/a, verbose, 20.0 stats/sec",
        "Hosts: 127.0.0.1:",
        "check writes ... ok: ",
        "(6 contestants)",
        "....Jessie Alloway: ",
        "T/sec throughput, 0.00% fails, total transactions: 5,001, fails: 0, total time: ",
        " new votes\n[",
        "Server     mean ",
        "  response ",
    ] {
        assert!(whole.contains(part), "{part} is missing in\n{whole}");
    }
    // Of all calls only whole bursts were made by the original.
    for phase in ["connect ...", "preparation ...", "calls ...", "cool down ..."] {
        assert!(ended.stderr.contains(phase), "{phase} is missing in\n{}", ended.stderr);
    }
    // The record prints the same page again.
    let again = place.run(["report", "--verbose"]).expect(0);
    let from = |text: &str| text[text.find("Client 'VSD'").unwrap()..].to_owned();
    assert_eq!(from(&again.stdout), from(&ended.stdout));
}

#[test]
fn rolling_lines_have_both_latencies_and_go_where_they_are_wanted() {
    let place = Place::busy();
    let target = database(&place, &[]);
    let common =
        ["voter", &target.url, "--clients", "5", "--duration", "600ms", "--dump-interval", "100ms"];
    let line = |text: &str| {
        text.lines().find(|line| line.starts_with("Client VSD: at ")).map(str::to_owned)
    };
    let ended = place.run([&common[..], &["--seed", "4"]].concat());
    assert_eq!((line(&ended.stderr), line(&ended.stdout)), (None, None), "nobody asked for them");
    let ended = place.run([&common[..], &["--verbose"]].concat());
    let told = line(&ended.stderr).expect("a line on stderr");
    for part in
        ["lap ", "total ", "success: ", "pending: ", ", avglat: ", "maxlat: ", "server avglat: "]
    {
        assert!(told.contains(part), "{part} is missing in {told}");
    }
    assert_eq!(line(&ended.stdout), None);
    let ended = place.run([&common[..], &["--seed", "2", "--verbosity", "veryverbose"]].concat());
    assert!(line(&ended.stdout).is_some(), "{}", ended.stdout);
    let args = [&common[..], &["--seed", "3", "--quiet", "--json", "-"]].concat();
    let ended = place.run(args);
    assert_eq!(line(&ended.stderr), None);
    expect_exact(&Record::of(&ended));
}

#[test]
fn a_rate_a_tuned_load_and_the_load_line_are_counted_too() {
    let place = Place::busy();
    let target = database(&place, &[]);
    let open = [
        "voter",
        &target.url,
        "--rate",
        "2000",
        "--arrivals",
        "poisson",
        "--duration",
        "1s",
        "--quiet",
    ];
    let record = run(&place, &open);
    expect_exact(&record);
    assert!(record.count("/ledger/scheduled") > 1_500);

    a_tuned_load_is_checked(&place, &target.url);

    let sought =
        ["voter", &target.url, "--seek", "p90=200ms", "--budget", "6s", "--seed", "3", "--quiet"];
    let ended = place.run([&sought[..], &["--json", "-", "--no-record"]].concat());
    let record = Record::of(&ended);
    record.expect_balanced();
    assert_eq!(record.text("/voter/check"), "ok", "{:#}", record.0["voter"]);
    assert!(record.0["seek"]["curve"].as_array().is_some_and(|curve| !curve.is_empty()));
}

fn a_tuned_load_is_checked(place: &Place, url: &str) {
    let tune = |limit: &str, more: &[&str]| {
        let args = ["voter", url, "--auto-tune", limit, "--quiet", "--json", "-", "--no-record"];
        place.run([&args[..], more].concat())
    };
    let ended = tune("p90=100ms", &["--duration", "9s", "--seed", "2"]);
    let record = Record::of(&ended);
    record.expect_schema();
    record.expect_balanced();
    assert_eq!(record.text("/voter/check"), "ok", "{:#}", record.0["voter"]);
    let tuned = &record.0["voter"]["auto_tune"];
    assert_eq!(tuned["goal"], "p90=100ms");
    assert!(record.count("/voter/auto_tune/windows") > 0);
    // The last check is the headline, and decides the exit code.
    let last = tuned["checks"].as_array().unwrap().last().expect("a check");
    assert!(last["seconds"].as_f64().unwrap() > 2.9, "32 limits: {last}");
    assert!(last["under_way"].as_f64().unwrap() < tuned["best_under_way"].as_f64().unwrap());
    assert_eq!(last["held"], last["late"].as_f64().unwrap() <= 0.1);
    if last["held"] == true {
        assert_eq!(tuned["certified_rate_per_s"], last["rate_per_s"]);
        assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    } else {
        assert!(tuned["certified_rate_per_s"].is_null(), "{tuned}");
        ended.expect(3);
    }
    // No time for a check, and a limit that nothing holds.
    let short = tune("p90=100ms", &["--duration", "1s", "--seed", "3"]).expect(3);
    let record = Record::of(&short);
    assert_eq!(record.verdict(), "budget-too-small");
    assert!(record.0["voter"]["auto_tune"]["certified_rate_per_s"].is_null());
    let few = tune("p90=100ms", &["--calls", "200", "--seed", "5"]).expect(3);
    let reason = Record::of(&few).text("/verdict/reasons/0").to_owned();
    assert!(reason.ends_with("leave out --calls, or give more of them"), "{reason}");
    let strict = tune("p90=1us", &["--duration", "6s", "--seed", "4"]).expect(2);
    assert_eq!(Record::of(&strict).verdict(), "infeasible");
}

#[test]
fn a_host_that_is_named_twice_has_twice_the_connections() {
    let place = Place::busy();
    let target = database(&place, &[]);
    let both = format!("{},127.0.0.1:{}", target.url, target.port);
    for (seed, affinity) in [("1", "on"), ("2", "off")] {
        let args =
            ["voter", &both, "--calls", "3000", "--clients", "20", "--seed", seed, "--quiet"];
        let record = run(&place, &[&args[..], &["--affinity", affinity]].concat());
        expect_exact(&record);
        assert_eq!((record.ok(), record.count("/counters/connects")), (3000, 2));
    }
}

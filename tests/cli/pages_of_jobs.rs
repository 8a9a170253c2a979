//! The page of each job, made by the program from a real run: its own sections, plots with data, and the numbers of its record.

use super::pages::{data, expect_equal, folder};
use crate::process::Place;
use crate::server::Server;
use serde_json::Value;
use std::fmt::Write as _;

/// Runs a command with `--html`, and expects sections with plots that hold data and the record's own numbers.
#[track_caller]
fn expect_page(place: &Place, command: &[&str], sections: &[&str], plots: &[&str]) -> String {
    let mut words = command.to_vec();
    words.splice(1..1, ["--html=page.html"]);
    let ended = place.run(&words);
    assert!(ended.code.is_some_and(|code| code <= 4), "{words:?}\n{}", ended.stderr);
    let page = place.read("page.html");
    for section in sections {
        assert!(page.contains(&format!("<section id=\"{section}\">")), "{words:?}: no {section}");
    }
    let data = data(&page);
    for plot in plots {
        let own = data["plots"].as_array().unwrap().iter().find(|own| own["id"] == **plot);
        let own = own.unwrap_or_else(|| panic!("{words:?}: no plot {plot}"));
        let points = match own["kind"].as_str() {
            Some("grid") => own["values"].as_array().unwrap().len(),
            _ => {
                let name = own["series"][0]["a"].as_str().unwrap();
                data["arrays"][name]["d"].as_array().unwrap().len()
            }
        };
        assert!(points > 0, "{words:?}: nothing in {plot}");
    }
    let text = std::fs::read(folder(place).join("run.json")).unwrap();
    let record: Value = serde_json::from_slice(&text).unwrap();
    assert!(expect_equal(&page, &record) > 20, "{words:?}");
    let decide = page.split("<section id=\"decide\">").nth(1).unwrap();
    let rows = decide.split("</section>").next().unwrap().matches("<tr").count();
    // One of the rows is the head.
    assert!((2..=10).contains(&rows), "{words:?}: {rows} rows to decide from");
    page
}

#[test]
fn a_search_shows_its_narrowing_and_its_curve() {
    let (place, server) = (Place::new(), Server::ok());
    let url = server.url();
    let seek = ["seek", &url, "--slo", "p95=50ms", "--budget", "15s", "--max-rate", "100"];
    expect_page(&place, &seek, &["line", "rates", "narrowing"], &["rates", "narrowing"]);
}

#[test]
fn votes_show_their_laps_and_the_check_of_their_writes() {
    let place = Place::busy();
    let voter = ["voter", "VSD", "--calls", "4000", "--dump-interval", "50ms"];
    let page = expect_page(&place, &voter, &["laps", "writes", "clients", "votes"], &["laps-1"]);
    assert!(page.contains("All writes are there."));
    let place = Place::new();
    let hello = ["hello", "--duration", "1s", "--dump-interval", "100ms"];
    let page = expect_page(&place, &hello, &["laps", "clients"], &["laps-1"]);
    assert!(!page.contains("<section id=\"writes\">"));
}

#[test]
fn a_feed_shows_its_window_and_a_visit_its_slices() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let mut puts = String::new();
    for i in 0..3000 {
        let _ = writeln!(puts, "{{\"put\":\"id:plimsoll:doc::{i}\",\"fields\":{{\"score\":{i}}}}}");
    }
    place.file("puts", &puts);
    let feed = ["feed", &target.url, "puts"];
    expect_page(&place, &feed, &["feed", "window", "statuses"], &["feed-window", "feed-rates"]);
    let other = Place::new();
    let visit = ["visit", &target.url, "--cluster", "plimsoll", "--slices", "4", "--out", "all"];
    let plots = ["visit-rates", "visit-window", "visit-times"];
    let page = expect_page(&other, &visit, &["visit", "course", "slices"], &plots);
    assert!(page.contains("The visit is complete.") && page.contains("slice 3</text>"));
}

#[test]
fn ranking_shows_the_cpu_of_its_stages() {
    let place = Place::busy();
    let rank = ["rank", "-q", "10,20", "-d", "2", "-w", "0"];
    let page = expect_page(&place, &rank, &["runs", "stages"], &["runs"]);
    assert!(page.contains("pagerank</text>"), "a bar a stage");
}

#[test]
fn fbench_shows_its_summary() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", "/a\n/b\n");
    let port = server.port();
    let fbench = ["fbench", "-n", "2", "-s", "1", "-q", "q.txt", "127.0.0.1", &port];
    let page = expect_page(&place, &fbench, &["summary", "cycles"], &["throughput"]);
    assert!(page.contains("/fbench/cycles_not_held"));
}

/// Several runs of a job, as a page whose numbers are those of the history as JSON.
#[test]
fn several_runs_of_a_job_are_a_page() {
    let (place, server) = (Place::new(), Server::ok());
    for requests in ["100", "200", "300"] {
        let load = ["load", &server.url(), "--clients", "1", "--requests", requests];
        place.run(load);
    }
    let page = place.run(["report", "load", "--all", "--format", "html"]).expect(0).stdout;
    let again = place.run(["report", "load", "--all", "--format", "html"]).expect(0).stdout;
    assert_eq!(page, again);
    let history = place.run(["report", "load", "--all", "--format", "json"]).expect(0).stdout;
    let history: Value = serde_json::from_str(&history).unwrap();
    assert!(expect_equal(&page, &history) >= 6);
    assert!(page.contains("3 runs") && page.contains("id=\"plot-job-1\""));
    let text = place.run(["report", "load", "--all", "--format", "markdown"]).expect(0).stdout;
    assert!(text.contains("| job |"), "{text}");
}

#[test]
fn a_matrix_shows_its_heat_maps_its_lines_and_its_recall() {
    let place = Place::busy();
    let search = ["search", "--engine", "index", "--engine", "automaton", "--groups", "2x1"];
    let short = ["--sizes", "100kB", "--users", "1,3", "--duration", "300ms", "--warmup", "100ms"];
    let sections = ["matrix", "scaling", "cells", "hits", "recall", "ingest"];
    let page =
        expect_page(&place, &[&search[..], &short].concat(), &sections, &["matrix-1", "scaling-1"]);
    assert!(!page.contains("[[query]]"), "the names of the queries, not their file");
}

#[test]
fn a_mix_shows_queries_with_and_without_the_feed() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let mut puts = String::new();
    for i in 0..2000 {
        let _ = writeln!(puts, "{{\"put\":\"id:plimsoll:doc::{i}\",\"fields\":{{\"score\":{i}}}}}");
    }
    place.file("puts", &puts);
    let text = format!(
        "[feed]\nurl = \"{0}\"\nfiles = [\"puts\"]\nrate = 1000\n[queries]\nurl = \"{0}/document/v1/\"\n\
         rate = 50\nduration = \"4s\"\n",
        target.url
    );
    place.file("mix.toml", text);
    expect_page(&place, &["run", "mix.toml"], &["beside", "feed", "window"], &["feed-window"]);
}

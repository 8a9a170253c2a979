//! A database that dies under load.

use super::database;
use crate::process::{Place, until};
use crate::record::Record;
use rustix::process::Signal;
use std::time::Duration;

#[test]
fn every_acknowledged_vote_is_there_after_a_kill_and_the_client_says_what_it_knows() {
    let place = Place::busy();
    let flags = ["--data", "db", "--durability", "sync", "--partitions", "2"];
    let target = database(&place, &flags);
    let args = ["voter", &target.url, "--clients", "50", "--duration", "20s", "--give-up", "1s"];
    let running = place.start([&args[..], &["--json", "-", "--no-record", "--verbose"]].concat());
    // A rolling line says that votes have been accepted.
    until("votes", Duration::from_secs(30), || {
        running.stderr_so_far().lines().filter(|line| line.contains("T/sec")).count() > 2
    });
    target.process.signal(Signal::KILL);
    let ended = running.wait(Duration::from_secs(40));
    assert_eq!(ended.code, Some(3), "{}\n{}", ended.stdout, ended.stderr);
    let record = Record::of(&ended);
    record.expect_balanced();
    assert_eq!((record.verdict(), record.text("/voter/check")), ("partial", "not-checked"));
    let reasons = record.0["verdict"]["reasons"].to_string();
    assert!(
        reasons.contains("the target is gone") && reasons.contains("could not be checked"),
        "{reasons}"
    );
    let (accepted, unknown) = (record.count("/voter/accepted"), record.count("/voter/unknown"));
    assert!(accepted > 0 && unknown > 0, "{:#}", record.0["voter"]);
    // Calls that found nobody to connect to are surely not done, and no part of the interval.
    let errors = record.0["voter"]["errors"].as_object().unwrap();
    assert!(errors.keys().any(|what| what.starts_with("not sent")), "{errors:?}");
    drop(target);

    let again = database(&place, &flags);
    let one = ["voter", &again.url, "--clients", "1", "--calls", "1", "--seed", "77", "--quiet"];
    let rows = super::run(&place, &one).count("/voter/rows_before");
    assert!(rows >= accepted, "{accepted} votes were acknowledged and {rows} are there");
    assert!(rows <= accepted + unknown, "{rows} rows of {accepted} votes and {unknown} unknown");
}

#[test]
fn whoever_stops_it_gets_what_there_is_with_its_check() {
    let place = Place::busy();
    let target = database(&place, &[]);
    for processes in ["1", "2"] {
        let args =
            ["voter", &target.url, "--clients", "8", "--duration", "30s", "--seed", processes];
        let more = ["--processes", processes, "--json", "-", "--no-record", "--verbose"];
        let running = place.start([&args[..], &more].concat());
        until("votes", Duration::from_secs(30), || running.stderr_so_far().contains("T/sec"));
        running.signal(Signal::INT);
        let ended = running.wait(Duration::from_secs(30));
        assert_eq!(ended.code, Some(3), "{}\n{}", ended.stdout, ended.stderr);
        let record = Record::of(&ended);
        record.expect_balanced();
        assert_eq!((record.verdict(), record.text("/voter/check")), ("partial", "ok"));
        assert!(record.count("/voter/accepted") > 0);
        // Of several processes only the one that was called says so.
        super::line(&ended);
    }
}

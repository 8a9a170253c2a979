//! Jobs of the catalogue on agents: the flags of a fleet go to the job's command.

use super::{Fleet, record};
use crate::process::{PATIENCE, Place};

#[test]
fn a_job_of_the_catalogue_is_carried_out_by_agents() {
    let fleet = Fleet::of(Place::busy(), 2, &["null"]);
    fleet.place.file("q.txt", "/a\n/b\n/c\n");
    let port = fleet.target.url.rsplit(':').next().unwrap().trim_end_matches('/');
    let (port, bus) = (format!("port={port}"), fleet.bus());
    let mut words = vec!["run", "fbench", "-r", "remote", "-i", "host=127.0.0.1", "-i", &port];
    words.extend(["-i", "queries=q.txt", "-i", "clients=4", "-i", "seconds=3"]);
    words.extend(["--disable-hooks", "--json", "-", "--quiet", "--agents", "2", "--bus", &bus]);
    let whole = record(&fleet.place.start(words).wait(PATIENCE));
    assert_eq!(whole["fleet"]["agents"].as_array().map(Vec::len), Some(2), "{}", whole["fleet"]);
    assert!(whole["fleet"].get("troubles").is_none(), "{}", whole["fleet"]);
    let sent = whole["ledger"]["sent"].as_u64().unwrap();
    assert!(sent > 0 && fleet.target_requests() >= sent, "{}", whole["ledger"]);
    let entry = &whole["catalogue"];
    let args: Vec<&str> =
        entry["args"].as_array().unwrap().iter().filter_map(|word| word.as_str()).collect();
    assert_eq!(entry["name"], "fbench", "{entry}");
    assert!(args.ends_with(&["--agents", "2", "--bus", &bus]), "{args:?}");
}

#[test]
fn a_job_with_processes_of_its_own_leaves_them_out_on_agents() {
    let place = Place::new();
    let voter = |flags: &[&str]| {
        place.run([&["run", "voter", "--dry-run"], flags].concat()).expect(0).stdout
    };
    let (alone, two) = (voter(&[]), voter(&["-i", "processes=2"]));
    let agents = voter(&["--agents", "2", "--bus", "nats://127.0.0.1:4222"]);
    assert!(!alone.contains("--processes") && two.contains("--processes 2"), "{alone}{two}");
    assert!(agents.contains("--agents 2") && !agents.contains("--processes"), "{agents}");
}

#[test]
fn flags_that_are_not_of_a_fleet_are_refused_behind_a_job() {
    let place = Place::new();
    for (flags, why) in [
        (&["--agents", "2", "-i", "clients=4"][..], "-i stands behind the flags of a fleet"),
        (&["--agents", "2", "--clients", "4"], "go into its variables"),
        (&["--watchers", "2"], "--agents"),
        (&["--agents", "2"], "--bus is missing"),
    ] {
        let ended = place.run([&["run", "fbench", "-r", "embedded"], flags].concat());
        assert_eq!(ended.code, Some(64), "{flags:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(why), "{flags:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.trim().lines().count(), 1, "{}", ended.stderr);
    }
}

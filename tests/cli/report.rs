//! plimsoll report.

use crate::process::Place;
use crate::record::Record;
use crate::server::Server;

#[test]
fn of_nothing_is_one_clear_line() {
    let place = Place::new();
    place.file("file", "x");
    std::fs::create_dir(place.path().join("empty")).unwrap();
    for (args, word) in [
        (&["report"][..], "runs"),
        (&["report", "--runs", "empty"], "empty"),
        (&["report", "empty"], "empty"),
        (&["report", "missing"], "missing"),
        (&["report", "file"], "file"),
        (&["report", "--format", "xml"], "xml"),
    ] {
        let ended = place.run(args).expect(64);
        assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(word), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn all_forms_of_the_latest_run() {
    let (place, server) = (Place::new(), Server::ok());
    let url = server.url();
    place.run(["load", &url, "--clients", "1", "--requests", "3"]).expect(0);
    let live = place.run(["load", &url, "--clients", "2", "--requests", "50"]).expect(0);
    let text = place.run(["report"]).expect(0).stdout;
    assert_eq!(text, live.stdout, "the report of a run says what the run said");
    let record = Record::of(&place.run(["report", "--format", "json"]).expect(0));
    record.expect_balanced();
    assert_eq!(record.ok(), 50);
    let csv = place.run(["report", "--format", "csv"]).expect(0).stdout;
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0].len(), rows[1].len());
    let column = rows[0].iter().position(|name| *name == "ok").unwrap();
    assert_eq!(rows[1][column], "50");
    let fbench = place.run(["report", "--format", "fbench"]).expect(64);
    assert!(fbench.stderr.contains("not a run of plimsoll fbench"), "{}", fbench.stderr);

    // By name, from elsewhere, and after the run's folder was moved.
    let folder = std::fs::read_dir(place.path().join("runs")).unwrap().next().unwrap().unwrap();
    std::fs::rename(folder.path(), place.path().join("moved")).unwrap();
    place.run(["report", "moved"]).expect(0);
}

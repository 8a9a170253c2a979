//! A file for each command, run to its end.

use crate::process::{Ended, Place};
use crate::record::Record;
use crate::server::Server;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(180);

/// Runs the file in a folder beside, and returns its record; exit code 3 says that the machine was busy.
#[track_caller]
fn run(place: &Place, text: &str, flags: &[&str]) -> Record {
    let ended = start(place, text, flags);
    assert!(
        matches!(ended.code, Some(0 | 3)),
        "{:?}\n{}\n{}",
        ended.code,
        ended.stdout,
        ended.stderr
    );
    let record = Record::of(&ended);
    record.expect_schema();
    record
}

fn start(place: &Place, text: &str, flags: &[&str]) -> Ended {
    let _ = std::fs::create_dir(place.path().join("in"));
    place.file("in/file.toml", text);
    let args = ["run", "in/file.toml", "--json", "-", "--no-record", "--quiet"];
    place.start([&args[..], flags].concat()).wait(LONG)
}

#[test]
fn load_from_a_file() {
    let (place, server) = (Place::new(), Server::ok());
    std::fs::create_dir(place.path().join("in")).unwrap();
    place.file("in/q.txt", "/a\n/b\n");
    let text = format!(
        "url = \"{}\"\nqueries = \"q.txt\"\nclients = 2\nrequests = 10\nheader = [\"X-A: 1\", \"X-A: 2\"]\n",
        server.url()
    );
    let record = run(&place, &text, &[]);
    assert_eq!((record.ok(), server.requests()), (10, 10));
    assert!(
        server.seen()[0].text().contains("X-A: 1\r\nX-A: 2\r\n"),
        "{}",
        server.seen()[0].text()
    );
    let record = run(&place, &text, &["--requests", "6"]);
    assert_eq!(record.ok(), 6, "a flag comes in the place of the field");
}

#[test]
fn a_contradiction_is_told_in_the_words_of_the_file() {
    let place = Place::new();
    let error_line = |text: &str, flags: &[&str]| {
        let ended = start(&place, text, flags).expect(64);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        ended.stderr.trim_end().to_owned()
    };
    let url = "url = \"http://127.0.0.1:1/\"\n";
    for (text, line) in [
        (
            format!("{url}rate = 5\nclients = 2\n"),
            "plimsoll: in/file.toml:3: `clients` and `rate` are different load models; give one of them",
        ),
        (
            format!("{url}queries = \"none.txt\"\n"),
            "plimsoll: in/file.toml:2: field `queries`: in/none.txt: no such file or folder; check the path",
        ),
        (
            format!("{url}\ncheck = [\"status=2xx\", \"foo>\"]\n"),
            "plimsoll: in/file.toml:3: `check` 'foo>': write status=2xx, /json/pointer>=1, !/json/pointer, \
             body~TEXT, hits>=1, time<500ms or vespa",
        ),
        (
            format!("{url}rate = 0\n"),
            "plimsoll: in/file.toml:2: `rate`: a rate must be a number above 0 and at most 10,000,000 per second, not 0",
        ),
        (
            format!("{url}user_requests = 2\n"),
            "plimsoll: in/file.toml:2: `user_requests` belongs to users; give --users, or leave it out",
        ),
    ] {
        assert_eq!(error_line(&text, &[]), line);
    }
    let line = error_line(&format!("{url}rate = 5\n"), &["--clients", "2"]);
    assert!(
        line.contains("in/file.toml:2: --clients and `rate` are different load models"),
        "{line}"
    );
}

#[test]
fn seek_from_a_file() {
    let place = Place::new();
    let target = place.serve(&["null"]);
    let text = format!(
        "command = \"seek\"\nurl = \"{}\"\nslo = \"p95=1s\"\nmax_rate = 40\nbudget = \"12s\"\n",
        target.url
    );
    let ended = start(&place, &text, &[]);
    assert!(matches!(ended.code, Some(0 | 2 | 3)), "{:?}\n{}", ended.code, ended.stderr);
    let record = Record::of(&ended);
    record.expect_schema();
    assert!(record.0["seek"]["curve"].as_array().is_some_and(|curve| !curve.is_empty()));
    assert_eq!(record.text("/scenario/slo/0"), "p95=1s");
}

#[test]
fn search_from_a_file_and_a_matrix_beside_it() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    std::fs::create_dir(place.path().join("in")).unwrap();
    place.file("in/q.toml", "[[query]]\nname = \"all\"\nkind = \"all\"\n");
    let engine = format!("mine={}", target.url);
    place.file(
        "in/matrix.toml",
        format!(
            "engines = [\"{engine}\"]\nsizes = [\"1MB\"]\ngroups = [\"2x1\"]\nusers = [1]\n\
             duration = \"500ms\"\nwarmup = \"0s\"\nqueries = \"q.toml\"\nhits = 5\n"
        ),
    );
    let ended = start(&place, "command = \"search\"\nfile = \"matrix.toml\"\n", &[]).expect(0);
    let hint = "plimsoll: in/matrix.toml:8: field `hits` is now `query_hits`\n";
    assert!(ended.stderr.starts_with(hint), "{}", ended.stderr);
    let record = Record::of(&ended);
    record.expect_schema();
    assert!(record.0["search"]["cells"][0]["ok_per_s"].as_f64() > Some(0.0), "{:#}", record.0);
    assert_eq!(record.text("/search/cells/0/queries/0/name"), "all");
}

#[test]
fn rank_from_a_file() {
    let place = Place::new();
    let text =
        "command = \"rank\"\nscale = 9\nqps = [20]\nseconds = 2\nwarmup = 0\nout = \"table.csv\"\n";
    let ended = start(&place, text, &[]);
    assert!(matches!(ended.code, Some(0 | 2 | 3)), "{:?}\n{}", ended.code, ended.stderr);
    Record::of(&ended).expect_schema();
    assert!(place.path().join("in/table.csv").is_file(), "a path begins at the file's folder");
}

#[test]
fn voter_from_a_file() {
    let place = Place::new();
    let target = place.serve(&["voter", "--port", "0"]);
    let text = format!("command = \"voter\"\nurl = \"{}\"\ncalls = 500\nclients = 4\n", target.url);
    let record = run(&place, &text, &[]);
    assert_eq!(record.text("/voter/check"), "ok", "{:#}", record.0["voter"]);
    assert_eq!(record.count("/voter/totals/transactions"), 500);
}

#[test]
fn feed_and_visit_from_files() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    std::fs::create_dir(place.path().join("in")).unwrap();
    let put = |i| format!("{{\"put\":\"id:plimsoll:doc::{i}\",\"fields\":{{\"title\":\"a\"}}}}\n");
    place.file("in/docs.ndjson", (0..50).map(put).collect::<String>());
    let text = format!("command = \"feed\"\nurl = \"{}\"\nfiles = [\"docs.ndjson\"]\n", target.url);
    let record = run(&place, &text, &[]);
    assert_eq!(record.count("/feed/accepted"), 50);
    let text = format!(
        "command = \"visit\"\nurl = \"{}\"\ncluster = \"plimsoll\"\nslices = 2\nout = \"dump.ndjson\"\n",
        target.url
    );
    let record = run(&place, &text, &[]);
    assert_eq!(record.count("/visit/documents"), 50);
    assert_eq!(place.read("in/dump.ndjson").lines().count(), 50);
}

#[test]
fn fbench_from_a_file() {
    let (place, server) = (Place::new(), Server::ok());
    std::fs::create_dir(place.path().join("in")).unwrap();
    place.file("in/q.txt", "/a\n/b\n");
    let text = format!(
        "command = \"fbench\"\nhosts = [\"127.0.0.1\", \"{}\"]\nn = 2\ns = 1\nq = \"q.txt\"\nc = 100\n",
        server.port()
    );
    let record = run(&place, &text, &[]);
    assert!(record.ok() > 0 && record.ok() as usize <= server.requests());
}

//! Memory does not grow with files, and little with connections.

use crate::process::{Ended, PATIENCE, Place, Running, find_program, stolen_while};
use crate::record::Record;
use crate::server::Server;
use std::io::{BufWriter, Write};

const MB: u64 = 1_000_000;

/// Runs to the end; returns the largest memory seen from outside, bytes.
fn watched(mut running: Running) -> (Ended, u64) {
    let mut peak = 0;
    while running.is_running() {
        peak = peak.max(running.memory_peak_bytes().unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    (running.wait(PATIENCE), peak)
}

/// Clients that never pause may find that reading the file, in a build without optimisation, is the
/// limit. Nothing else may have gone wrong.
#[track_caller]
fn at_full_speed(ended: Ended) {
    let limited = ended.stderr.starts_with("plimsoll: NOT VALID: generator-limited");
    ended.expect(if limited { 3 } else { 0 });
}

#[test]
fn a_large_file_streams_in_bounded_memory() {
    let (place, server) = (Place::new(), Server::ok());
    let path = place.path().join("large.txt");
    let mut file = BufWriter::new(std::fs::File::create(&path).unwrap());
    let pad = "p".repeat(1000);
    for i in 0..90_000 {
        writeln!(file, "/q{i}?{pad}").unwrap();
    }
    file.into_inner().unwrap().sync_all().unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() > 64 << 20);
    let port = server.port();
    let args = [
        "fbench",
        "-n",
        "2",
        "-z",
        "-s",
        "2",
        "-q",
        "large.txt",
        "--no-record",
        "127.0.0.1",
        &port,
    ];
    let (ended, peak) = watched(place.start(args));
    eprintln!("fbench -z over {} MB: {} MB", 90, peak / MB);
    at_full_speed(ended);
    assert!(peak > 0 && peak < 60 * MB, "{} MB", peak / MB);
    // Both halves of the file were read by their own client.
    let paths = server.paths();
    assert!(paths.iter().any(|path| path.starts_with("/q0?")));
    let second = paths.iter().filter_map(|p| p[2..].split_once('?')?.0.parse().ok()).max();
    assert!(second.is_some_and(|n: u64| n >= 45_000), "{second:?}");

    let url = server.url();
    let args = ["load", &url, "--queries", "large.txt", "--duration", "1s", "--no-record"];
    let (ended, peak) = watched(place.start(args));
    eprintln!("load over {} MB: {} MB", 90, peak / MB);
    at_full_speed(ended);
    assert!(peak > 0 && peak < 60 * MB, "{} MB", peak / MB);
}

/// Five times the requests, of several classes, with checks and failures: nothing may grow with them.
#[test]
fn memory_is_flat_however_many_requests_there_are() {
    let place = Place::alone();
    let target =
        place.serve(&["queue", "--servers", "0", "--service", "fixed:0ms", "--error-every", "7"]);
    place.file("q.txt", (0..1000).map(|i| format!("/class{}/q{i}\n", i % 5)).collect::<String>());
    let run = |requests: &str| {
        let more = ["--class", "a=class0", "--class", "b=class1", "--check", "status=200"];
        let args = ["load", &target.url, "--clients", "16", "--queries", "q.txt", "--json", "-"];
        let limits = ["--requests", requests, "--duration", "120s", "--cycle", "320us"];
        let record = Record::of(&place.run([&args[..], &more, &limits].concat()));
        record.expect_balanced();
        assert_eq!(record.sent().to_string(), requests);
        record.count("/generator/rss_max_bytes")
    };
    // The shorter one takes seconds too: in its first seconds a run comes to use its few intervals. They are of 2 MB
    // each here, and one or two more are in use wherever a busy machine keeps the thread waiting that empties them.
    let (few, many) = (run("150000"), run("750000"));
    eprintln!("150,000 requests: {} kB, 750,000: {} kB", few / 1000, many / 1000);
    // Its three times, kept of each request, would be more.
    assert!(many < few + 24 * 600_000, "{few} bytes, then {many}");
}

/// Memory of a run with this many connections, by its own record and from outside, bytes.
fn with_connections(n: &str) -> (Record, u64) {
    let place = Place::busy();
    let target = place.serve(&["null"]);
    let args = [
        "load",
        &target.url,
        "--clients",
        n,
        "--duration",
        "3s",
        "--connect-timeout",
        "20s",
        "--json",
        "-",
    ];
    let (ended, peak) = watched(place.start(args));
    let record = Record::of(&ended);
    record.expect_balanced();
    assert_eq!(record.failures(), [], "{}", ended.stderr);
    let accepted = target.stats()["connections"]["accepted"].as_u64().unwrap();
    // One more connection asks for these figures.
    let needed = n.parse::<u64>().unwrap() + 1;
    // Of the connections that are opened before the start, at most 512 are under way at once. Those
    // whose first packets the machine loses or holds up are opened anew by their first request.
    assert!((needed..=needed + 512).contains(&accepted), "{accepted} of {needed}");
    (record, peak)
}

#[test]
fn a_thousand_connections_take_under_60_mb() {
    let (record, peak) = with_connections("1000");
    let own = record.count("/generator/rss_max_bytes");
    eprintln!("1000 connections: {} MB by its record, {} MB from outside", own / MB, peak / MB);
    assert!(own < 60 * MB && peak < 60 * MB, "{} MB, {} MB", own / MB, peak / MB);
    assert!(own > 2 * MB && peak > 2 * MB);
}

/// Users who think need no connection of their own, and are on time all the same.
#[test]
fn ten_thousand_thinking_users_take_under_150_mb() {
    let place = Place::alone();
    let target = place.serve(&["null"]);
    let args = [
        "load",
        &target.url,
        "--users",
        "ramp 10000 during 4s",
        "--user-requests",
        "4",
        "--think",
        "3s",
        "--connections",
        "100",
        "--json",
        "-",
    ];
    let ((ended, peak), stolen) = stolen_while(|| watched(place.start(args)));
    let record = Record::of(&ended);
    record.expect_balanced();
    // All of them were there between the fourth second and the ninth.
    assert_eq!(record.ok(), 40_000, "{}", ended.stderr);
    let own = record.count("/generator/rss_max_bytes");
    let (late, took) = (record.number("/generator/lag_ms/p99"), record.number("/duration_s"));
    eprintln!(
        "10000 users: {} MB by its record, {} MB from outside, lag p99 {late} ms, {took} s",
        own / MB,
        peak / MB
    );
    assert!(own < 150 * MB && peak < 150 * MB, "{} MB, {} MB", own / MB, peak / MB);
    // The last user comes at 4 s and thinks three times; what its answers take is on top.
    let on_time = record.verdict() == "valid" && stolen <= 0.02;
    assert!(took >= 12.9 && (took < 13.8 || !on_time), "{took} s");
}

#[test]
fn ten_thousand_connections_take_under_250_mb() {
    let limits = std::process::Command::new(find_program("bash"))
        .args(["-c", "ulimit -Hn"])
        .output()
        .unwrap();
    let hard = String::from_utf8(limits.stdout).unwrap().trim().to_owned();
    let enough = hard == "unlimited" || hard.parse::<u64>().is_ok_and(|n| n >= 10_200);
    assert!(
        enough,
        "only {hard} files may be open; run: ulimit -Hn 20000 (as root), or set LimitNOFILE"
    );
    let (record, peak) = with_connections("10000");
    let own = record.count("/generator/rss_max_bytes");
    eprintln!("10000 connections: {} MB by its record, {} MB from outside", own / MB, peak / MB);
    assert!(own < 250 * MB && peak < 250 * MB, "{} MB, {} MB", own / MB, peak / MB);
}

//! Feeds that something on this side of the network holds up.

use super::{done, feed, puts};
use crate::process::Place;
use crate::record::Record;
use crate::server::{Server, Step, reply};
use std::io::Write as _;
use std::time::Duration;

#[test]
fn statistics_that_cannot_be_written_cost_no_page() {
    let place = Place::new();
    let server =
        Server::start(|seen| vec![Step::Send(reply(200, "", done(&seen.path()).as_bytes()))]);
    place.file("in", puts(0, 50));
    let ended = feed(&place, &server.url(), &["in", "--http1", "--vespa-statistics", "/dev/full"]);
    let ended = ended.expect(1);
    assert!(ended.stdout.contains("all 50 operations"), "{}", ended.stdout);
    let expected = "plimsoll: --vespa-statistics /dev/full: no space left on device; free some space, or name another place";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
}

/// Everything is accepted, and the rate is that of whoever wrote the pipe.
#[test]
fn an_input_that_trickles_is_what_limited_the_feed() {
    let place = Place::new();
    let server =
        Server::start(|seen| vec![Step::Send(reply(200, "", done(&seen.path()).as_bytes()))]);
    let path = place.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let writer = std::thread::spawn(move || {
        let mut pipe = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        for part in 0..10 {
            pipe.write_all(puts(part * 10, part * 10 + 10).as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(150));
        }
    });
    let ended = feed(&place, &server.url(), &["pipe", "--http1", "--json", "-"]).expect(3);
    writer.join().unwrap();
    let record = Record::of(&ended);
    assert_eq!((record.count("/feed/accepted"), record.verdict()), (100, "generator-limited"));
    let limited_s = record.number("/feed/input_limited_s");
    assert!((0.5..3.0).contains(&limited_s), "{limited_s}");
    assert!(ended.stderr.contains("the input was too slow"), "{}", ended.stderr);
    // The same from a file is over before anything could be waited for.
    place.file("in", puts(0, 100));
    let record =
        Record::of(&feed(&place, &server.url(), &["in", "--http1", "--json", "-"]).expect(0));
    assert!(record.number("/feed/input_limited_s") < 0.5);
}

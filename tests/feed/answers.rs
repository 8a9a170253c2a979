//! Feeds to servers whose answers accept nothing, or not everything, whatever their status is.

use super::{done, feed, puts};
use crate::process::Place;
use crate::record::Record;
use crate::server::{Server, Step, reply};
use std::time::Duration;

/// Any server answers with 200 to something: only one that names the document has accepted it.
#[test]
fn a_server_that_only_says_200_accepts_nothing() {
    let place = Place::new();
    place.file("in", puts(0, 50));
    for body in ["{}", "{\"ok\":true,\"total\":3,\"items\":[1,2,3]}", "<html></html>", ""] {
        let server = Server::start(move |_| vec![Step::Send(reply(200, "", body.as_bytes()))]);
        let flags = ["in", "--http1", "--failed", "rest", "--json", "-"];
        let ended = feed(&place, &server.url(), &flags).expect(4);
        let record = Record::of(&ended);
        assert_eq!((record.count("/feed/accepted"), record.count("/feed/refused")), (0, 50));
        assert_eq!(record.failures(), [("check".to_owned(), 50)], "{body}");
        assert_eq!(place.read("rest").lines().count(), 50);
        assert!(ended.stderr.contains("HTTP 200"), "{}", ended.stderr);
    }
}

#[test]
fn what_the_target_ignored_was_not_accepted() {
    let place = Place::new();
    place.file("in", puts(0, 60));
    let server = Server::start(|seen| {
        let head = match seen.number % 3 {
            0 => "X-Vespa-Ignored-Fields: true\r\n",
            1 => "x-vespa-ignored-operation: true\r\n",
            _ => "",
        };
        vec![Step::Send(reply(200, head, done(&seen.path()).as_bytes()))]
    });
    let flags = ["in", "--http1", "--failed", "rest", "--json", "-"];
    let record = Record::of(&feed(&place, &server.url(), &flags).expect(3));
    let count = |name: &str| record.count(&format!("/feed/{name}"));
    assert_eq!((count("operations"), count("accepted"), count("refused")), (60, 20, 0));
    assert_eq!((count("ignored_fields"), count("ignored_operations")), (20, 20));
    assert_eq!(record.failures(), [("app".to_owned(), 40)]);
    assert_eq!(place.read("rest").lines().count(), 40);
    let text = place.run(["report"]).expect(0).stdout;
    for part in ["20 ignored by", "20 written without fields", "X-Vespa-Ignored-Fields"] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
}

/// One operation at a time tries there; the others must not wait for it beyond their own time.
#[test]
fn a_server_that_refuses_everything_is_left_in_time() {
    let place = Place::new();
    let server = Server::start(|_| vec![Step::Send(reply(429, "", b"{\"message\":\"full\"}"))]);
    for count in [30, 5000] {
        place.file("in", puts(0, count));
        let flags = ["in", "--http1", "--timeout", "3s", "--failed", "rest", "--json", "-"];
        let ended = feed(&place, &server.url(), &flags).expect(4);
        assert!(ended.took < Duration::from_millis(5500), "{:?}", ended.took);
        let record = Record::of(&ended);
        let there = record.count("/feed/operations");
        assert_eq!(record.count("/feed/accepted"), 0);
        assert_eq!(record.count("/feed/refused") + record.count("/feed/unsettled"), there);
        assert_eq!(place.read("rest").lines().count() as u64, there);
        assert!(ended.stderr.contains("HTTP 429: full"), "{}", ended.stderr);
    }
}

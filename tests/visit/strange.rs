//! Visits of servers that are something else than they should be, or say what is wrong in their own way.

use super::{CHUNKED, LONG, complete_in_spite_of, feed, ids};
use crate::faults::{Fault, Faults};
use crate::process::Place;
use crate::record::Record;
use crate::server::{Server, Step, ok, reply};
use std::time::Duration;

/// Somebody else's 200 is no corpus, however empty it looks.
#[test]
fn a_server_that_only_says_200_has_no_documents() {
    let place = Place::new();
    for body in [
        "{}",
        "{\"ok\":true,\"total\":3,\"items\":[1,2,3]}",
        "<html></html>",
        "{\"pathId\":\"/document/v1/a/b/docid/1\",\"id\":\"id:a:b::1\",\"fields\":{}}",
        "{\"pathId\":\"/other/\",\"documents\":[],\"documentCount\":0}",
    ] {
        let server = Server::start(move |_| vec![Step::Send(ok(body))]);
        for form in [&[][..], &["--chunked"], &["--slices", "2"]] {
            let url = server.url();
            let args = [&["visit", &url, "--quiet", "--out", "dump"], form].concat();
            let ended = place.start(args).wait(LONG).expect(4);
            assert!(ended.took < Duration::from_secs(6), "{:?}", ended.took);
            assert!(ended.stderr.contains("not that of a visit"), "{body}: {}", ended.stderr);
        }
    }
}

/// Neither at all, nor behind the head of a reply; retries would take ten minutes.
#[test]
fn a_server_that_never_answers_is_left_with_the_reason() {
    let place = Place::new();
    let heads = [&b""[..], b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"];
    let visits = heads.map(|head| {
        let server = Server::start(move |_| vec![Step::Send(head.to_vec()), Step::Hang]);
        let url = server.url();
        let args = ["visit", &url, "--cluster", "c", "--request-timeout", "1s", "--no-record"];
        (place.start(args), server)
    });
    for (running, _server) in visits {
        let ended = running.wait(LONG).expect(4);
        // The request ahead, and the visit's own with what it waits longer than the server.
        assert!(ended.took < Duration::from_secs(35), "{:?}", ended.took);
        assert!(ended.stderr.contains("the target does not answer"), "{}", ended.stderr);
    }
}

#[test]
fn strange_replies_on_the_way_are_asked_for_again() {
    for form in [&[][..], &CHUNKED] {
        for body in ["{}", "{\"pathId\":\"/x\",\"documents\":[],\"documentCount\":0}"] {
            complete_in_spite_of("strange", form, move |number, _| match number % 4 {
                3 => Fault::Instead(body),
                _ => Fault::None,
            });
        }
    }
    // One slice gets nothing else: it is not complete.
    let place = Place::new();
    let target = place.serve(&["search"]);
    feed(&place, &target, 500);
    let proxy = Faults::start(&format!("{}:{}", target.host, target.port), |_, head| {
        if head.contains("sliceId=1") { Fault::Instead("{}") } else { Fault::None }
    });
    let url = proxy.url();
    let args = ["visit", &url, "--slices", "2", "--retries", "2", "--out", "dump", "--json", "-"];
    let ended = place.start(args).wait(LONG).expect(3);
    let record = Record::of(&ended);
    assert_eq!(record.0["visit"]["complete"], false);
    assert_eq!(record.failures(), [("check".to_owned(), 3)]);
    assert!(ended.stderr.contains("slice 1: HTTP 200, but"), "{}", ended.stderr);
}

/// As Vespa's own handler does: a stream begins with its status, and what is wrong is noticed behind it.
#[test]
fn what_a_stream_does_not_say_is_asked_for_without_one() {
    let place = Place::new();
    let stream = || {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        vec![
            Step::Send(head.as_bytes().to_vec()),
            Step::Sleep(Duration::from_millis(50)),
            Step::Close,
        ]
    };
    let wrong = |text: &str| {
        let body = format!("{{\"pathId\":\"/document/v1/\",\"message\":\"{text}\"}}");
        vec![Step::Send(reply(400, "", body.as_bytes()))]
    };
    // Before the visit.
    let server = Server::start(move |seen| match seen.path().contains("stream=true") {
        true => stream(),
        false => wrong("Exception parsing document selector"),
    });
    let url = server.url();
    let flags = ["--cluster", "music", "--selection", "music.year >", "--quiet"];
    let ended = place.start([&["visit", &url], &flags[..]].concat()).wait(LONG).expect(4);
    assert!(ended.took < Duration::from_secs(6), "{:?}", ended.took);
    let text = "HTTP 400: Exception parsing document selector";
    assert_eq!(ended.stderr.matches(text).count(), 1, "{}", ended.stderr);
    // In its middle: only one slice is refused.
    let server = Server::start(move |seen| match seen.path() {
        path if path.contains("stream=true") => stream(),
        path if path.contains("sliceId=") => wrong("the token is of another visit"),
        _ => vec![Step::Send(ok(
            "{\"pathId\":\"/document/v1/\",\"documents\":[],\"documentCount\":0}",
        ))],
    });
    let url = server.url();
    let flags = ["--cluster", "music", "--slices", "3", "--quiet", "--out", "dump"];
    let ended = place.start([&["visit", &url], &flags[..]].concat()).wait(LONG).expect(4);
    assert!(ended.took < Duration::from_secs(6), "{:?}", ended.took);
    let text = "HTTP 400: the token is of another visit";
    assert_eq!(ended.stderr.matches(text).count(), 1, "{}", ended.stderr);
    assert!(ended.stdout.matches(text).count() <= 1, "{}", ended.stdout);
}

#[test]
fn the_cluster_is_found_where_there_is_one() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let fed = feed(&place, &target, 200);
    let out = place.start(["visit", &target.url, "--quiet"]).wait(LONG).expect(0);
    assert_eq!(ids(&out.stdout, "id"), fed);
    let server = |names: &'static str| {
        Server::start(move |seen| {
            let text = match seen.path().contains("cluster=%2A") {
                true => {
                    format!("Your Vespa deployment has no content cluster '*', only {names}")
                }
                false => "Must set 'cluster' parameter to a valid content cluster id".to_owned(),
            };
            let body = format!("{{\"message\":\"{text}\"}}");
            vec![Step::Send(reply(400, "", body.as_bytes()))]
        })
    };
    let several = server("'music', 'books'");
    let ended = place.start(["visit", &several.url(), "--quiet"]).wait(LONG).expect(64);
    assert!(ended.stderr.contains("music, books"), "{}", ended.stderr);
    assert!(ended.stderr.trim_end().ends_with("--cluster NAME"), "{}", ended.stderr);
    // Whoever does not know the word is asked without a cluster, and what it says ends in the flag.
    let other = Server::start(|_| {
        let body = "{\"message\":\"Must set 'cluster' parameter\"}";
        vec![Step::Send(reply(400, "", body.as_bytes()))]
    });
    let ended = place.start(["visit", &other.url(), "--quiet"]).wait(LONG).expect(4);
    assert!(ended.stderr.trim_end().ends_with("--cluster NAME"), "{}", ended.stderr);
}

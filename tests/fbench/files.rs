//! Query files that are shared, cut or too long; output files.

use super::{counts, fbench, figure, lines};
use crate::process::Place;
use crate::server::{Server, Step, reply};
use std::collections::BTreeMap;

/// How often each target and body was asked.
fn asked(server: &Server) -> BTreeMap<(String, String), usize> {
    let mut asked = BTreeMap::new();
    for seen in server.seen() {
        *asked.entry((seen.path(), seen.body())).or_default() += 1;
    }
    asked
}

#[test]
fn a_shared_file_loses_and_doubles_nothing() {
    // The original lost one of 6 requests with 2 clients.
    for (clients, records) in [("2", 6), ("3", 100), ("7", 100), ("20", 11)] {
        let (place, server) = (Place::new(), Server::ok());
        let file: String =
            (0..records).map(|i| format!("/q{i}?{}\n", "x".repeat(i % 13))).collect();
        place.file("q.txt", file);
        let flags = ["-n", clients, "-z", "-r", "0", "-q", "q.txt"];
        let ended = fbench(&place, &server, &flags).expect(0);
        assert_eq!(counts(&ended), (records as u64, 0), "{clients} clients");
        let asked = asked(&server);
        assert_eq!(asked.len(), records);
        assert!(asked.values().all(|&n| n == 1), "{asked:?}");
    }
}

#[test]
fn a_shared_file_of_posts_keeps_bodies_with_their_urls() {
    for clients in ["2", "3", "7"] {
        let (place, server) = (Place::new(), Server::ok());
        let record = |i: usize| {
            (format!("/p{i}"), format!("{{\"n\": {i},\n\"pad\": \"{}\"}}", "y".repeat(i * 7)))
        };
        let file: String =
            (0..30).map(record).map(|(url, body)| format!("{url}\n{body}\n")).collect();
        place.file("q.txt", file);
        let flags = ["-n", clients, "-P", "-z", "-r", "0", "-q", "q.txt"];
        let ended = fbench(&place, &server, &flags).expect(0);
        assert_eq!(counts(&ended), (30, 0));
        let expected: BTreeMap<_, usize> = (0..30).map(|i| (record(i), 1)).collect();
        assert_eq!(asked(&server), expected, "{clients} clients");
    }
}

#[test]
fn a_line_that_is_too_long_is_skipped_and_counted() {
    let (place, server) = (Place::new(), Server::ok());
    let long = format!("/{}", "l".repeat(1023));
    let fits = format!("/{}", "f".repeat(1022));
    place.file("q.txt", format!("/a\n{long}\n{fits}\n/b\n"));
    // Anything below 1024 is 1024, as in the original.
    let ended =
        fbench(&place, &server, &["-n", "1", "-m", "10", "-r", "0", "-q", "q.txt"]).expect(0);
    assert_eq!(counts(&ended), (3, 0));
    assert_eq!(figure(&ended, "skipped requests:"), 1.0);
    assert_eq!(server.paths(), ["/a", &fits, "/b"]);
}

#[test]
fn a_line_of_a_body_may_be_longer_than_a_url() {
    let (place, server) = (Place::new(), Server::ok());
    let long = "b".repeat(15_000);
    place.file("q.txt", format!("/a\n{long}\n/{}\nleft out\n/c\nend\n", "l".repeat(1023)));
    let flags = ["-n", "1", "-P", "-m", "1024", "-r", "0", "-q", "q.txt"];
    let ended = fbench(&place, &server, &flags).expect(0);
    assert_eq!((counts(&ended), figure(&ended, "skipped requests:")), ((2, 0), 1.0));
    let seen = server.seen();
    assert_eq!((seen[0].path(), seen[0].body()), ("/a".to_owned(), long));
    assert_eq!((seen[1].path(), seen[1].body()), ("/c".to_owned(), "end".to_owned()));
}

const HEADERS: &str = "Server: x\r\nX-Yahoo-Vespa-NumHits: 10\r\nX-Yahoo-Vespa-TotalHitCount: 4242\r\n\
    X-Yahoo-Vespa-SearchTime: 3\r\nx-yahoo-vespa-lower: no\r\n";

#[test]
fn the_output_file_is_the_originals_to_the_byte() {
    let place = Place::new();
    let server = Server::start(|seen| {
        vec![Step::Send(match seen.number {
            0 => reply(200, HEADERS, b"{\"root\":{}}"),
            1 => reply(503, "X-Yahoo-Vespa-NumHits: 0\r\n", b"busy"),
            _ => return vec![Step::Reset],
        })]
    });
    place.file("q.txt", "/search/?query=a0\n/search/?query=a1\n/search/?query=a2\n");
    let flags = ["-n", "1", "-r", "0", "-a", "&x=1", "-q", "q.txt", "-o", "out%03d.txt"];
    let ended = fbench(&place, &server, &flags).expect(4);
    assert_eq!(counts(&ended), (1, 2));
    let out = place.read("out000.txt");
    let time = out.split_once("TIME USED: ").unwrap().1.split_once(" s\n").unwrap().0;
    let seconds: f64 = time.parse().unwrap();
    assert!(time.split_once('.').unwrap().1.len() == 4 && seconds < 5.0, "{time}");
    let line = "[--xxyyzz--FBENCH_MAGIC_DELIMITER--zzyyxx--]\n";
    let expected = format!(
        "{line}URL: /search/?query=a0\n\nNumHits: 10\nTotalHitCount: 4242\nSearchTime: 3\n\r\n\
         {{\"root\":{{}}}}\nTIME USED: {time} s\n\
         {line}URL: /search/?query=a1\n\nNumHits: 0\n\r\nbusy\nFBENCH: URL FETCH FAILED!\n\
         {line}URL: /search/?query=a2\n\n\nFBENCH: URL FETCH FAILED!\n{line}"
    );
    assert_eq!(out, expected);
}

#[test]
fn an_output_file_for_each_client() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", lines(5));
    let flags = ["-n", "3", "-r", "0", "-q", "q.txt", "-o", "o%d"];
    fbench(&place, &server, &flags).expect(0);
    for name in ["o0", "o1", "o2"] {
        assert_eq!(place.read(name).matches("TIME USED").count(), 5, "{name}");
    }
    let ended = fbench(&place, &server, &["-n", "3", "-q", "q.txt", "-o", "one.txt"]).expect(64);
    assert!(ended.stderr.contains("overwrite each other's file"), "{}", ended.stderr);
}

#[test]
fn an_output_file_that_cannot_be_written_is_told() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", lines(5));
    let flags = ["-n", "1", "-r", "0", "-q", "q.txt", "-o", "/dev/full"];
    let ended = fbench(&place, &server, &flags).expect(0);
    assert!(ended.stdout.contains("an output file (-o) is incomplete"), "{}", ended.stdout);
}

#[test]
fn zero_hits_are_counted_from_the_header_of_this_reply() {
    let place = Place::new();
    // Zero hits, no header at all, and a failure: the original carries the zero over.
    let server = Server::start(|seen| {
        vec![Step::Send(match seen.number % 3 {
            0 => reply(200, "X-Yahoo-Vespa-TotalHitCount: 0\r\n", b"{}"),
            1 => reply(200, "", b"{}"),
            _ => reply(503, "", b"{}"),
        })]
    });
    place.file("q.txt", lines(30));
    let ended = fbench(&place, &server, &["-n", "1", "-r", "0", "-q", "q.txt"]).expect(0);
    assert_eq!(counts(&ended), (20, 10));
    assert_eq!(figure(&ended, "zero hit queries:"), 10.0);
    assert_eq!(figure(&ended, "zero hit percentage:"), 50.0);
}

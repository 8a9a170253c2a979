//! Where requests and headers come from: flags, files, pipes and devices.

use super::{load, record, record_on_time_or_late};
use crate::process::{PATIENCE, Place, Running};
use crate::record::Record;
use crate::server::Server;

#[test]
fn headers_of_a_file_and_repeated_ones_are_all_sent() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("headers.txt", "# of staging\nX-From: file\n\nX-Twice: 1\n");
    let flags = ["--header", "@headers.txt", "--header", "X-Twice: 2", "--header", "X-Own: a"];
    let of = [&flags[..], &["--clients", "1", "--requests", "1"]].concat();
    let record = record(&place, &server.url(), &of, 0);
    let seen = server.seen()[0].text();
    assert!(
        seen.contains("\r\nX-From: file\r\nX-Twice: 1\r\nX-Twice: 2\r\nX-Own: a\r\n"),
        "{seen}"
    );
    assert_eq!(record.text("/scenario/headers/0"), "@headers.txt");
}

#[test]
fn requests_come_from_stdin_and_from_a_pipe() {
    let (place, server) = (Place::new(), Server::ok());
    let url = server.url();
    let flags = ["--clients", "1", "--requests", "6", "--json", "-"];
    let args = [&["load", &url, "--queries", "-"][..], &flags].concat();
    let ended = place.run_with_input(args, b"/a\n/b\n/c\n").expect(0);
    assert_eq!(Record::of(&ended).ok(), 6);
    assert_eq!(server.paths(), ["/a", "/b", "/c", "/a", "/b", "/c"], "read once, sent twice");
    let script = format!(
        "{} load {url} --queries <(printf '/d\\n/e\\n') {} --no-record",
        env!("CARGO_BIN_EXE_plimsoll"),
        flags.join(" ")
    );
    let ended = Running::start(place.program("bash", ["-c", &script]), b"").wait(PATIENCE);
    assert_eq!(Record::of(&ended.expect(0)).ok(), 6);
    assert_eq!(server.paths()[6..], ["/d", "/e", "/d", "/e", "/d", "/e"]);
}

#[test]
fn a_device_without_an_end_is_an_error_and_not_a_full_memory() {
    let place = Place::new();
    let url = "http://127.0.0.1:1/";
    for (flags, line) in [
        (["--queries", "/dev/zero"], "/dev/zero: over 512 MiB of a pipe or device"),
        (["--body", "@/dev/zero"], "--body @/dev/zero: over 64 MiB"),
        (["--header", "@/dev/zero"], "--header @/dev/zero: over 1 MiB"),
    ] {
        let running = place.start([&["load", url][..], &flags].concat());
        let ended = running.wait(PATIENCE).expect(64);
        assert!(ended.stderr.contains(line), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
}

#[test]
fn a_body_of_any_bytes_is_sent_as_it_is() {
    let (place, server) = (Place::new(), Server::ok());
    let bytes: Vec<u8> = (0..=255).collect();
    place.file("body.bin", &bytes);
    let flags = ["--body", "@body.bin", "--clients", "1", "--requests", "2"];
    record(&place, &server.url(), &flags, 0);
    for seen in server.seen() {
        let text = seen.text();
        assert!(text.starts_with("POST / "), "{text}");
        assert!(text.contains("\r\nContent-Type: application/octet-stream\r\n"), "{text}");
        assert!(text.contains("\r\nContent-Length: 256\r\n"), "{text}");
        assert!(seen.bytes.ends_with(&bytes), "{:?}", seen.bytes);
    }
}

#[test]
fn clients_pause_for_random_times_between_their_requests() {
    let (place, server) = (Place::new(), Server::ok());
    let of = |think: &str| {
        let flags = ["--clients", "4", "--requests", "80", "--duration", "60s", "--think", think];
        record_on_time_or_late(&place, &server.url(), &flags, 0)
    };
    let record = of("exponential 100ms");
    assert_eq!((record.ok(), record.text("/scenario/load/model")), (80, "closed"));
    // Four clients pause 19 times each: 1.9 s on average, with a deviation of 0.23 s for each.
    let elapsed_s = record.number("/duration_s");
    assert!((1.0..6.0).contains(&elapsed_s), "{elapsed_s}");
    let ended = load(&place, &server.url(), &["--rate", "5", "--think", "exponential 2s"]);
    assert!(ended.expect(64).stderr.contains("--think"), "an open model has no clients that pause");
}

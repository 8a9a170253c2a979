//! The highest rate of operations on documents.

use super::asking::search;
use super::found;
use crate::process::Place;
use std::fmt::Write as _;

/// Four puts, an update and a remove of each ten documents.
fn operations(documents: u32) -> String {
    let mut text = String::new();
    for i in 0..documents {
        let id = format!("id:plimsoll:doc::{i}");
        // Writing into a string does not fail.
        let _ = match i % 10 {
            8 => writeln!(text, "{{\"remove\":\"{id}\"}}"),
            9 => writeln!(
                text,
                "{{\"update\":\"{id}\",\"create\":true,\"fields\":{{\"score\":{{\"assign\":{i}}}}}}}"
            ),
            _ => writeln!(text, "{{\"put\":\"{id}\",\"fields\":{{\"title\":\"number {i}\"}}}}"),
        };
    }
    text
}

#[test]
fn operations_have_a_line_by_their_kinds() {
    let place = Place::busy();
    let target = place.serve(&["search"]);
    place.file("ops.json", operations(200));
    let limits = ["--slo", "p90{class=put}=900ms", "--slo", "errors=2%", "--max-rate", "80"];
    let time = ["--feed", "ops.json", "--start-rate", "20", "--budget", "20s"];
    let record = found(&search(&place, &target.url, &[&limits[..], &time].concat()));
    assert_ne!(record.verdict(), "infeasible", "{:#}", record.0["verdict"]);
    let of = |class: &str| record.count(&format!("/classes/{class}/ok"));
    let (put, update, remove) = (of("put"), of("update"), of("remove"));
    assert_eq!(put + update + remove, record.ok());
    // In the order of the file, again and again over all parts: eight, one and one of ten.
    let sent = record.sent();
    assert!(sent > 250, "{sent} operations: the file was sent more than once");
    assert!(
        put.abs_diff(8 * sent / 10) <= 10 && update.abs_diff(sent / 10) <= 10,
        "{put} {update}"
    );
    assert!(remove.abs_diff(sent / 10) <= 10, "{remove}");
    assert_eq!(record.text("/scenario/queries"), "ops.json");
    // What was put again is there once, and what was removed is not.
    let args = ["visit", &target.url, "--cluster", "plimsoll", "--quiet", "--no-record"];
    let out = place.run(args).expect(0);
    assert_eq!(out.stdout.lines().count(), 180);
    // Documents of no type that it has: no rate holds.
    place.file("strange.json", "{\"put\":\"id:n:nothing::1\",\"fields\":{}}");
    let flags = ["--feed", "strange.json", "--slo", "errors=5%", "--budget", "12s"];
    let strange =
        found(&search(&place, &target.url, &[&flags[..], &["--max-rate", "50"]].concat()));
    assert_eq!((strange.ok(), strange.0["seek"]["certified_rate_per_s"].is_null()), (0, true));
}

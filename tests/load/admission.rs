//! Managed admission: slots, a bounded queue, a limit to waiting.

use super::record;
use crate::process::Place;
use crate::server::{Server, Step, ok};
use std::time::Duration;

/// Answers after this long.
fn slow(ms: u64) -> Server {
    Server::start(move |_| vec![Step::Sleep(Duration::from_millis(ms)), Step::Send(ok("x"))])
}

#[test]
fn what_the_queue_cannot_hold_is_refused() {
    let (place, server) = (Place::new(), slow(300));
    // Two bursts of 50: 5 are sent, 10 wait, 35 are refused, each time.
    let flags = [
        "--burst",
        "50",
        "--every",
        "2s",
        "--duration",
        "4s",
        "--slots",
        "5",
        "--queue",
        "10",
        "--connections",
        "20",
    ];
    let record = record(&place, &server.url(), &flags, 0);
    assert_eq!(record.count("/ledger/scheduled"), 100);
    assert_eq!(record.count("/ledger/refused/queue_full"), 70, "{:#}", record.0["ledger"]);
    assert_eq!((record.ok(), server.requests()), (30, 30));
    assert!(record.number("/latency_ms/response/max") >= 900.0, "waiting is in the response time");
    assert!(record.number("/latency_ms/service/max") < 700.0);
}

#[test]
fn what_waits_too_long_is_refused() {
    let (place, server) = (Place::new(), slow(400));
    let flags = [
        "--burst",
        "10",
        "--every",
        "3s",
        "--duration",
        "3s",
        "--slots",
        "2",
        "--queue",
        "100",
        "--queue-timeout",
        "600ms",
        "--connections",
        "10",
    ];
    let record = record(&place, &server.url(), &flags, 0);
    // Two at once, two more after 400 ms; the other six give up after 600 ms.
    assert_eq!(record.count("/ledger/refused/queue_timeout"), 6, "{:#}", record.0["ledger"]);
    assert_eq!((record.ok(), server.requests()), (4, 4));
}

#[test]
fn slots_bound_what_is_under_way() {
    let (place, server) = (Place::new(), slow(50));
    let flags = [
        "--rate",
        "200",
        "--duration",
        "1s",
        "--slots",
        "3",
        "--queue",
        "1000",
        "--connections",
        "50",
    ];
    let record = record(&place, &server.url(), &flags, 0);
    assert_eq!(record.count("/ledger/scheduled"), 200);
    assert_eq!(record.ok(), server.requests() as u64);
    let seen = server.seen();
    for start in seen.windows(4) {
        let gap_ms = (start[3].at_ns - start[0].at_ns) as f64 / 1e6;
        assert!(gap_ms > 40.0, "four requests within {gap_ms} ms where three may be under way");
    }
}

/// Everything that is due waits for one of two slots, ten times as long as it is served: that is the
/// target's time, in the response time, and none of the generator's lag.
#[test]
fn waiting_for_a_slot_is_not_the_generators_lag() {
    for model in [&["--burst", "40", "--every", "1s"][..], &["--rate", "90"]] {
        let place = Place::alone();
        let target = place.serve(&["queue", "--servers", "0", "--service", "fixed:20ms"]);
        let slots = ["--duration", "3s", "--slots", "2", "--queue", "1000"];
        let more = ["--queue-timeout", "30s", "--connections", "20"];
        let flags = [model, &slots, &more].concat();
        let record = record(&place, &target.url, &flags, 0);
        record.expect_valid();
        let due = if model[0] == "--burst" { 120 } else { 270 };
        assert_eq!(record.count("/ledger/scheduled"), due);
        if model[0] == "--burst" {
            // 20 pairs one after the other: the last of each burst waits for 19 of them.
            assert_eq!(record.ok(), due);
            assert!(record.number("/latency_ms/response/p99") >= 380.0);
            assert!(record.number("/latency_ms/response/p50") >= 180.0);
        }
        assert!(record.number("/latency_ms/service/p50") < 40.0, "waiting is not service");
        // No request waited inside the target: never more than two were there.
        let stats = target.stats();
        assert_eq!(stats["answered"].as_u64(), Some(record.ok()));
        assert_eq!(record.count("/ledger/refused/queue_full"), 0);
    }
}

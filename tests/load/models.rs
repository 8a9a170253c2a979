//! Load models: how many requests, and when.

use super::{arrivals_ms, record, record_on_time_or_late};
use crate::process::Place;
use crate::server::{Server, Step, ok};

#[test]
fn uniform_arrivals_are_exact_in_number() {
    let (place, server) = (Place::new(), Server::ok());
    let record =
        record_on_time_or_late(&place, &server.url(), &["--rate", "200", "--duration", "2s"], 0);
    assert_eq!(record.count("/ledger/scheduled"), 400);
    assert_eq!((record.ok(), server.requests()), (400, 400));
    assert!((record.number("/rate/offered_per_s") - 200.0).abs() < 1e-6);
    let last = arrivals_ms(&server)[399];
    assert!((1900.0..2200.0).contains(&last), "the last came {last} ms after the first");
}

#[test]
fn a_rate_is_counted_over_the_time_that_was_asked_for() {
    let (place, server) = (Place::new(), Server::ok());
    // The last request of the second is due at 0.9 s; the second is one second long all the same.
    let slow =
        record_on_time_or_late(&place, &server.url(), &["--rate", "10", "--duration", "1s"], 0);
    assert!((slow.number("/duration_s") - 1.0).abs() < 1e-6);
    assert!((slow.number("/rate/offered_per_s") - 10.0).abs() < 1e-6);
    let burst = ["--burst", "10", "--every", "1s", "--duration", "2s"];
    let burst = record_on_time_or_late(&place, &server.url(), &burst, 0);
    assert!((burst.number("/rate/achieved_per_s") - 10.0).abs() < 1e-6);
    // With a number of requests, the run is as long as they take.
    let counted = ["--rate", "100", "--requests", "50", "--duration", "30s"];
    let counted = record_on_time_or_late(&place, &server.url(), &counted, 0);
    assert!(counted.number("/duration_s") < 5.0);
}

#[test]
fn a_warmup_is_a_phase_before_the_measured_one() {
    let (place, server) = (Place::new(), Server::ok());
    let flags = ["--rate", "50", "--warmup", "1s", "--duration", "2s"];
    let record = record_on_time_or_late(&place, &server.url(), &flags, 0);
    assert_eq!((record.ok(), server.requests()), (100, 150));
    for (phase, from_s, duration_s) in [(0, 0.0, 1.0), (1, 1.0, 2.0)] {
        let of = |figure: &str| record.number(&format!("/phases/{phase}/{figure}"));
        assert!((of("from_s") - from_s).abs() < 1e-6, "phase {phase}");
        assert!((of("duration_s") - duration_s).abs() < 1e-6, "phase {phase}");
        assert!((of("rate/offered_per_s") - 50.0).abs() < 1e-6, "phase {phase}");
    }
}

#[test]
fn the_first_part_of_a_profile_is_its_warm_up() {
    let (place, server) = (Place::new(), Server::ok());
    let flags = ["--rate-profile", "100:2s", "--warmup", "1s"];
    let record = record_on_time_or_late(&place, &server.url(), &flags, 0);
    assert_eq!((record.ok(), server.requests()), (100, 200));
    // Not half of it, over a second more in which nothing was due.
    assert!((record.number("/rate/offered_per_s") - 100.0).abs() < 1e-6);
    assert!((record.number("/duration_s") - 1.0).abs() < 1e-6);
}

#[test]
fn poisson_arrivals_are_the_same_for_a_seed() {
    let place = Place::new();
    let run = |seed: &str| {
        let server = Server::ok();
        let flags = ["--rate", "300", "--arrivals", "poisson", "--duration", "2s", "--seed", seed];
        let record = record_on_time_or_late(&place, &server.url(), &flags, 0);
        assert_eq!(record.ok(), server.requests() as u64);
        record.count("/ledger/scheduled")
    };
    let first = run("3");
    // 600 expected; five standard deviations.
    assert!((478..=722).contains(&first), "{first}");
    assert_eq!(run("3"), first, "the same seed has the same schedule");
}

#[test]
fn bursts_come_at_once() {
    let (place, server) = (Place::new(), Server::ok());
    let flags = ["--burst", "30", "--every", "500ms", "--duration", "2s", "--connections", "30"];
    let record = record_on_time_or_late(&place, &server.url(), &flags, 0);
    assert_eq!((record.ok(), server.requests()), (120, 120));
    let at = arrivals_ms(&server);
    for burst in 0..4 {
        let (first, last) = (at[burst * 30], at[burst * 30 + 29]);
        assert!((first - burst as f64 * 500.0).abs() < 150.0, "burst {burst} at {first} ms");
        assert!(last - first < 200.0, "burst {burst} took {} ms", last - first);
    }
}

#[test]
fn a_profile_is_the_area_under_its_line() {
    let (place, server) = (Place::new(), Server::ok());
    let flags = ["--rate-profile", "0-200:1s,200:1s,200-0:1s"];
    let record = record_on_time_or_late(&place, &server.url(), &flags, 0);
    let scheduled = record.count("/ledger/scheduled");
    assert!((399..=401).contains(&scheduled), "{scheduled} requests");
    assert_eq!(server.requests() as u64, scheduled);
    let early = arrivals_ms(&server).iter().filter(|&&t| t < 900.0).count();
    assert!((70..=130).contains(&early), "{early} in the first stretch of about 100");
}

#[test]
fn clients_wait_for_their_answers() {
    let place = Place::new();
    let pause = std::time::Duration::from_millis(50);
    let server = Server::start(move |_| vec![Step::Sleep(pause), Step::Send(ok("x"))]);
    let flags = ["--clients", "5", "--duration", "2s"];
    let record = record(&place, &server.url(), &flags, 0);
    assert_eq!(record.ok(), server.requests() as u64);
    assert!(
        (150..=200).contains(&record.ok()),
        "{} requests of 50 ms by 5 clients in 2 s",
        record.ok()
    );
    assert_eq!(server.connections(), 5);
}

#[test]
fn think_time_and_cycles() {
    let place = Place::new();
    let server = Server::ok();
    let flags = ["--clients", "2", "--think", "100ms", "--duration", "2s"];
    let thinking = record_on_time_or_late(&place, &server.url(), &flags, 0).ok();
    assert!((34..=42).contains(&thinking), "{thinking} requests with 100 ms between them");
    let server = Server::ok();
    let flags = ["--clients", "2", "--cycle", "100ms", "--duration", "2s"];
    assert_eq!(record_on_time_or_late(&place, &server.url(), &flags, 0).ok(), 40);
}

#[test]
fn threads_share_the_schedule_without_losing_any() {
    let place = Place::new();
    for threads in ["1", "3"] {
        let server = Server::ok();
        let flags = ["--rate", "100", "--duration", "2s", "--threads", threads];
        let open = record_on_time_or_late(&place, &server.url(), &flags, 0);
        assert_eq!((open.count("/ledger/scheduled"), server.requests()), (200, 200));
        let server = Server::ok();
        let flags = ["--clients", "7", "--requests", "100", "--threads", threads];
        let closed = record(&place, &server.url(), &flags, 0);
        assert_eq!((closed.ok(), server.requests(), server.connections()), (100, 100, 7));
    }
}

#[test]
fn the_warm_up_is_not_counted() {
    let (place, server) = (Place::new(), Server::ok());
    let flags = ["--rate", "100", "--duration", "1s", "--warmup", "1s"];
    let record = record_on_time_or_late(&place, &server.url(), &flags, 0);
    assert_eq!((record.count("/ledger/scheduled"), server.requests()), (100, 200));
    assert!(
        (0.95..1.1).contains(&record.number("/duration_s")),
        "{}",
        record.number("/duration_s")
    );
}

#[test]
fn a_slow_server_does_not_slow_the_schedule() {
    // One answer at a time, 20 ms each: 50 a second of the 100 that are due. What was due in time is asked after
    // the end too, for as long as a timeout.
    let place = Place::new();
    let pause = std::time::Duration::from_millis(20);
    let server = Server::start(move |_| vec![Step::Sleep(pause), Step::Send(ok("x"))]);
    let flags = ["--rate", "100", "--duration", "2s", "--connections", "1", "--timeout"];
    // The one connection is the limit, and the verdict says so.
    let run = |timeout: &str| record(&place, &server.url(), &[&flags[..], &[timeout]].concat(), 3);
    let patient = run("5s");
    assert_eq!(patient.count("/ledger/scheduled"), 200);
    assert_eq!((patient.ok(), patient.sent()), (200, server.requests() as u64));
    assert!(
        patient.number("/latency_ms/response/p99") > 1900.0,
        "the backlog is in the response time"
    );
    assert!(patient.number("/latency_ms/service/p50") < 40.0);
    assert!(patient.number("/rate/ok_per_s") < 55.0, "what ends after the run is in no rate");

    let hasty = run("500ms");
    assert_eq!(hasty.count("/ledger/scheduled"), 200);
    assert!(hasty.count("/ledger/unsent/stopped") >= 60, "{:#}", hasty.0["ledger"]);
    assert!(hasty.has_warning("were never sent"), "{:#}", hasty.0["warnings"]);
}

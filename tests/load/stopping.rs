//! Nothing hangs: signals, dead targets, the end of time. Each test has a promise of seconds, which holds on a machine that has time.

use crate::process::{Ended, PATIENCE, Place, Running, until};
use crate::record::Record;
use crate::server::{Server, Step, ok};
use rustix::process::Signal;
use std::time::Duration;

#[test]
fn a_server_that_never_answers_is_waited_for_no_longer_than_promised() {
    for model in
        [&["--clients", "4"][..], &["--rate", "50"], &["--burst", "20", "--every", "300ms"]]
    {
        let (place, server) = (Place::quiet(), Server::silent());
        let url = server.url();
        let mut args =
            vec!["load", url.as_str(), "--duration", "1s", "--timeout", "1s", "--json", "-"];
        args.extend(model);
        let ended = place.start(args).wait(Duration::from_secs(30)).expect(4);
        assert!(ended.took < Duration::from_millis(4000), "{model:?}: {:?}", ended.took);
        let record = Record::of(&ended);
        record.expect_balanced();
        assert_eq!((record.ok(), record.sent()), (0, server.requests() as u64));
        assert_eq!(
            record.count("/ledger/failed/timeout"),
            record.sent(),
            "{:#}",
            record.0["ledger"]
        );
    }
}

#[test]
fn fbench_against_a_server_that_never_answers() {
    let (place, server) = (Place::quiet(), Server::silent());
    place.file("q.txt", "/a\n");
    let port = server.port();
    let args =
        ["fbench", "-n", "3", "-s", "1", "--timeout", "1s", "-q", "q.txt", "127.0.0.1", &port];
    let ended = place.start(args).wait(Duration::from_secs(30)).expect(4);
    assert!(ended.took < Duration::from_millis(4000), "{:?}", ended.took);
    assert!(ended.stdout.contains("successful requests:           0\n"), "{}", ended.stdout);
}

/// Starts a long run, signals it when the server has seen `after` requests; it must end within 2 s.
#[track_caller]
fn interrupted(
    place: &Place,
    server: &Server,
    args: &[&str],
    signal: Signal,
    after: usize,
) -> Ended {
    let running = place.start(args);
    until("the run is under way", Duration::from_secs(30), || server.requests() >= after);
    let started_ns = plimsoll_core::clock::now_ns();
    running.signal(signal);
    let ended = running.wait(PATIENCE);
    let took_ms = (plimsoll_core::clock::now_ns() - started_ns) / 1_000_000;
    assert!(took_ms < 2000, "{signal:?}: {took_ms} ms until the end");
    ended
}

#[test]
fn a_signal_ends_the_run_with_its_summary() {
    for signal in [Signal::INT, Signal::TERM] {
        let (place, server) = (Place::quiet(), Server::ok());
        let url = server.url();
        let args = ["load", &url, "--rate", "100", "--duration", "60s"];
        let ended = interrupted(&place, &server, &args, signal, 50).expect(3);
        assert!(
            ended.stdout.starts_with("Result     NOT VALID: partial, exit 3\n"),
            "{}",
            ended.stdout
        );
        assert!(ended.stderr.contains("stopped before its end"), "{}", ended.stderr);
        let record = Record::of(&place.run(["report", "--format", "json"]).expect(0));
        record.expect_balanced();
        assert_eq!(record.verdict(), "partial");
        assert_eq!(record.sent(), server.requests() as u64);
        assert!(record.number("/duration_s") < 30.0, "the time that it took, not the time planned");
    }
}

#[test]
fn a_signal_ends_fbench_with_its_summary() {
    let (place, server) = (Place::quiet(), Server::ok());
    place.file("q.txt", "/a\n/b\n");
    let port = server.port();
    let args = ["fbench", "-n", "2", "-c", "20", "-s", "-1", "-q", "q.txt", "127.0.0.1", &port];
    let ended = interrupted(&place, &server, &args, Signal::INT, 120).expect(3);
    for part in ["Clients Joined.\n", "*** Benchmark Summary ***", "partial"] {
        assert!(ended.stdout.contains(part), "no {part} in\n{}", ended.stdout);
    }
    assert!(
        ended.stdout.contains("ran for:                       1 seconds\n"),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_signal_ends_a_run_without_any_answer() {
    let (place, server) = (Place::quiet(), Server::silent());
    let url = server.url();
    let args = ["load", &url, "--clients", "4", "--duration", "60s"];
    let ended = interrupted(&place, &server, &args, Signal::INT, 4);
    assert!(matches!(ended.code, Some(3 | 4)), "{ended:?}");
    assert!(ended.stdout.contains("Ledger"), "{}", ended.stdout);
    let record = Record::of(&place.run(["report", "--format", "json"]).expect(0));
    record.expect_balanced();
    assert_eq!((record.sent(), record.count("/ledger/unfinished")), (4, 4));
}

/// The measured time is whole then, and the page says what is missing all the same.
#[test]
fn a_signal_in_the_wait_for_the_last_replies_is_told() {
    let hang = |seen: &crate::server::Seen| match seen.number % 8 {
        7 => vec![Step::Hang],
        _ => vec![Step::Send(ok("x"))],
    };
    let (place, server) = (Place::quiet(), Server::start(hang));
    let url = server.url();
    let args =
        ["load", &url, "--rate", "40", "--duration", "1s", "--timeout", "20s", "--json", "r.json"];
    let running = place.start(args);
    until("all requests of a second", Duration::from_secs(30), || server.requests() >= 40);
    std::thread::sleep(Duration::from_millis(500));
    running.signal(Signal::INT);
    let ended = running.wait(PATIENCE).expect(0);
    let record = Record(serde_json::from_str(&place.read("r.json")).unwrap());
    record.expect_balanced();
    assert_ne!(record.verdict(), "partial");
    assert_eq!(record.count("/ledger/unfinished"), 5);
    let told = "for the last replies: 5 requests in flight cut off";
    let text: String = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(told), "{}", ended.stdout);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let (place, server) = (Place::quiet(), Server::silent());
    let running = place.start(["load", &server.url(), "--clients", "4", "--duration", "60s"]);
    until("the run is under way", Duration::from_secs(30), || server.requests() >= 4);
    running.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(50));
    running.signal(Signal::INT);
    let ended = running.wait(Duration::from_millis(700));
    assert_eq!(ended.code, Some(130));
}

#[test]
fn a_killed_run_can_be_reported_but_for_its_last_second() {
    let (place, server) = (Place::quiet(), Server::ok());
    let running = place.start(["load", &server.url(), "--rate", "100", "--duration", "60s"]);
    until("three seconds of load", Duration::from_secs(30), || server.requests() >= 350);
    running.signal(Signal::KILL);
    assert_eq!(running.wait(PATIENCE).code, None);
    let seen = server.requests() as u64;
    let record = Record::of(&place.run(["report", "--format", "json"]).expect(0));
    record.expect_balanced();
    assert_eq!(record.verdict(), "partial");
    assert!(record.ok() <= seen && record.ok() + 130 >= seen, "{} of {seen}", record.ok());
    let text = place.run(["report"]).expect(0).stdout;
    assert!(text.contains("partial") && text.contains("killed"), "{text}");
}

#[test]
fn a_server_that_trickles_its_reply_is_cut_off() {
    let trickle: Vec<Step> =
        std::iter::once(Step::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n".to_vec()))
            .chain(
                (0..100).flat_map(|_| {
                    [Step::Sleep(Duration::from_millis(50)), Step::Send(b"x".to_vec())]
                }),
            )
            .collect();
    let (place, server) = (Place::quiet(), Server::start(move |_| trickle.clone()));
    let url = server.url();
    let args =
        ["load", &url, "--clients", "1", "--requests", "3", "--timeout", "300ms", "--json", "-"];
    let ended = place.start(args).wait(Duration::from_secs(20)).expect(4);
    Record::of(&ended).expect_failed("timeout", 3);
    assert!(ended.took < Duration::from_secs(4), "{:?}", ended.took);
}

#[test]
fn time_that_is_up_ends_a_run_whose_target_is_slow() {
    let place = Place::new();
    let pause = vec![Step::Sleep(Duration::from_millis(700)), Step::Send(ok("x"))];
    let server = Server::start(move |_| pause.clone());
    let running: Running =
        place.start(["load", &server.url(), "--clients", "2", "--duration", "1s", "--json", "-"]);
    let ended = running.wait(Duration::from_secs(20)).expect(0);
    let record = Record::of(&ended);
    record.expect_balanced();
    assert_eq!((record.ok(), record.sent()), (4, 4), "what was under way at the end is waited for");
}

//! How a connection may end, over TLS in particular, and what that says of the reply on it.

use crate::scripted::{Asked, Scripted, Step, Steps, closed_plan, play, to_the_end, whole};
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::outcome::Failure;
use plimsoll_engine::shard::{ShardPlan, Timeouts};
use plimsoll_engine::sim::{Arrival, Link};
use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};

const PATIENT: Timeouts = Timeouts { connect_ns: SECOND_NS, request_ns: SECOND_NS };

/// All that arrives in one piece, and in several.
fn links() -> [Link; 2] {
    let split = Link { split_per_mille: 1000, latency_max_ns: 200_000, ..Link::default() };
    [Link::default(), split]
}

/// Without TLS and with both versions of it.
const LAYERS: [Option<&SupportedProtocolVersion>; 3] = [None, Some(&TLS12), Some(&TLS13)];
const TLS: [Option<&SupportedProtocolVersion>; 2] = [Some(&TLS12), Some(&TLS13)];

/// What became of ten requests of one client.
#[derive(Debug, PartialEq, Eq)]
struct Ends {
    ok: u64,
    failed: Vec<(Failure, u64)>,
    retries: u64,
    /// How many the server saw, and on how many connections.
    asked: (usize, usize),
}

fn ten(
    layer: Option<&'static SupportedProtocolVersion>,
    link: Link,
    posts: u64,
    script: impl FnMut(&Asked) -> Steps + 'static,
) -> Ends {
    let server = Scripted::new(script);
    let server = match layer {
        Some(version) => server.with_tls(version),
        None => server,
    };
    let (outcome, server) = play(closed_plan(1, 10, PATIENT, layer.is_some()), link, posts, server);
    let (totals, server) = (outcome.totals(), server.borrow());
    assert_eq!(totals.ledger.sent, 10, "a run of ten requests");
    let failed = Failure::ALL
        .into_iter()
        .map(|kind| (kind, totals.ledger.failed.get(kind)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let asked = (server.asked.len(), server.knocked_ns.len());
    Ends { ok: totals.ledger.ok, failed, retries: totals.counters.retries, asked }
}

/// Ten requests, each on a connection of its own.
fn each_alone(ok: u64, failed: &[(Failure, u64)]) -> Ends {
    Ends { ok, failed: failed.to_vec(), retries: 0, asked: (10, 10) }
}

#[test]
fn a_body_that_stops_before_its_length_is_short_however_the_connection_ends() {
    let begun: [&[u8]; 3] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nGET /",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nGET /\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Le",
    ];
    for layer in LAYERS {
        let ends: &[&[Step]] = match layer {
            None => &[&[Step::Close], &[Step::Reset]],
            Some(_) => &[
                &[Step::Close],
                &[Step::Reset],
                &[Step::CloseNotify, Step::Close],
                // Some servers say that they close and leave the rest to the client.
                &[Step::CloseNotify],
            ],
        };
        for link in links() {
            for (bytes, end) in begun.iter().flat_map(|b| ends.iter().map(move |e| (*b, *e))) {
                let steps: Steps = std::iter::once(Step::Send(bytes.to_vec()))
                    .chain(end.iter().cloned())
                    .map(|step| (0, step))
                    .collect();
                let shown = format!("{layer:?} {link:?} {steps:?}");
                let ends = ten(layer, link, 0, move |_| steps.clone());
                assert_eq!(ends, each_alone(0, &[(Failure::Short, 10)]), "{shown}");
            }
        }
    }
}

#[test]
fn a_body_up_to_the_close_is_whole_when_the_close_is_in_order() {
    for link in links() {
        let plain = |asked: &Asked| vec![(0, to_the_end(asked)), (0, Step::Close)];
        assert_eq!(ten(None, link, 0, plain), each_alone(10, &[]));
        for layer in TLS {
            let said = |asked: &Asked| {
                vec![(0, to_the_end(asked)), (0, Step::CloseNotify), (0, Step::Close)]
            };
            assert_eq!(ten(layer, link, 0, said), each_alone(10, &[]), "{layer:?}");
            let late =
                |asked: &Asked| vec![(0, to_the_end(asked)), (MILLISECOND_NS, Step::CloseNotify)];
            assert_eq!(ten(layer, link, 0, late), each_alone(10, &[]), "{layer:?}");
        }
    }
}

/// RFC 9112, 8 and 9.8: without close_notify anybody on the way may have cut the body short.
#[test]
fn a_body_up_to_the_close_is_short_when_tls_was_not_closed() {
    for link in links() {
        for layer in TLS {
            for end in [Step::Close, Step::Reset] {
                let shown = format!("{layer:?} {end:?}");
                let steps = move |asked: &Asked| vec![(0, to_the_end(asked)), (0, end.clone())];
                let ends = ten(layer, link, 0, steps);
                assert_eq!(ends, each_alone(0, &[(Failure::Short, 10)]), "{shown}");
            }
        }
    }
}

/// A body with a length is whole when all of it has come, also when the end is abrupt.
#[test]
fn a_body_of_its_length_is_whole_however_the_connection_ends() {
    for layer in TLS {
        for end in [Step::Close, Step::Reset, Step::CloseNotify] {
            let steps = move |asked: &Asked| vec![(0, whole(asked)), (0, end.clone())];
            let ends = ten(layer, Link::default(), 0, steps);
            assert_eq!((ends.ok, ends.failed.len()), (10, 0), "{layer:?}");
        }
    }
}

#[test]
fn a_kept_connection_that_ends_before_any_byte_is_asked_once_more() {
    for layer in LAYERS {
        let ends: &[&[Step]] = match layer {
            None => &[&[Step::Close], &[Step::Reset]],
            Some(_) => &[&[Step::Close], &[Step::Reset], &[Step::CloseNotify, Step::Close]],
        };
        for (link, end) in links().into_iter().flat_map(|l| ends.iter().map(move |e| (l, *e))) {
            let shown = format!("{layer:?} {end:?}");
            let script = |asked: &Asked| match asked.prior {
                0 => vec![(0, whole(asked))],
                _ => end.iter().map(|step| (MILLISECOND_NS, step.clone())).collect(),
            };
            // The first goes through; each of the others is asked twice.
            let gets = ten(layer, link, 0, script);
            let again = Ends { ok: 10, failed: Vec::new(), retries: 9, asked: (19, 10) };
            assert_eq!(gets, again, "{shown}");
            let posts = ten(layer, link, 1000, script);
            let failed = vec![(Failure::Reset, 5)];
            assert_eq!(posts, Ends { ok: 5, failed, retries: 0, asked: (10, 5) }, "{shown}");
        }
    }
}

#[test]
fn a_request_is_asked_once_more_and_never_twice_more() {
    for layer in LAYERS {
        let script = |asked: &Asked| match asked.connection {
            0 if asked.prior == 0 => vec![(0, whole(asked))],
            _ => vec![(0, Step::Close)],
        };
        let ends = ten(layer, Link::default(), 0, script);
        let failed = vec![(Failure::Reset, 9)];
        // Only the second request was on a kept connection.
        assert_eq!(ends, Ends { ok: 1, failed, retries: 1, asked: (11, 10) }, "{layer:?}");
    }
}

/// TLS that breaks takes nothing from what it has carried.
#[test]
fn a_whole_reply_before_a_record_that_cannot_be_read_succeeds() {
    for layer in LAYERS.into_iter().filter(Option::is_some) {
        let script = |asked: &Asked| vec![(0, whole(asked)), (0, Step::BadRecord)];
        assert_eq!(ten(layer, Link::default(), 0, script), each_alone(10, &[]), "{layer:?}");
        let cut = |_: &Asked| {
            let part = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart";
            vec![(0, Step::Send(part.to_vec())), (0, Step::BadRecord)]
        };
        let failed = [(Failure::Tls, 10)];
        assert_eq!(ten(layer, Link::default(), 0, cut), each_alone(0, &failed), "{layer:?}");
    }
}

/// Without keep-alive a connection ends with its first reply, also when the server would go on.
#[test]
fn without_keep_alive_nothing_follows_the_first_request() {
    for layer in LAYERS {
        let server = Scripted::new(|asked| vec![(0, whole(asked))]);
        let server = match layer {
            Some(version) => server.with_tls(version),
            None => server,
        };
        let plan = closed_plan(2, 10, PATIENT, layer.is_some());
        let (outcome, server) =
            play(ShardPlan { keep_alive: false, ..plan }, Link::default(), 0, server);
        assert_eq!(outcome.totals().ledger.ok, 10);
        assert!(server.borrow().asked.iter().all(|asked| asked.prior == 0));
        assert_eq!(server.borrow().knocked_ns.len(), 10);
        assert_eq!(outcome.end.round_trips.len(), 10, "each has told of its round trips");
    }
}

/// A request that is sent again has waited already, and its deadline stays where it was: whether the second
/// connection comes up and says nothing, comes up late, or never comes up.
#[test]
fn a_request_that_is_sent_again_keeps_its_deadline() {
    let timeouts = Timeouts { connect_ns: 400 * MILLISECOND_NS, request_ns: 250 * MILLISECOND_NS };
    let lost_ns = 200 * MILLISECOND_NS;
    for (second, reached) in [
        (Arrival::Accepted { after_ns: 0 }, true),
        (Arrival::Accepted { after_ns: 30 * MILLISECOND_NS }, true),
        (Arrival::Accepted { after_ns: 300 * MILLISECOND_NS }, false),
        (Arrival::Silence, false),
    ] {
        for layer in LAYERS {
            let server = Scripted::new(move |asked| match (asked.connection, asked.prior) {
                (0, 0) => vec![(0, whole(asked))],
                (0, _) => vec![(lost_ns, Step::Reset)],
                _ => Vec::new(),
            })
            .arriving(move |n| if n == 0 { Arrival::Accepted { after_ns: 0 } } else { second });
            let server = match layer {
                Some(version) => server.with_tls(version),
                None => server,
            };
            let plan = closed_plan(1, 2, timeouts, layer.is_some());
            let (outcome, server) = play(plan, Link::default(), 0, server);
            let totals = outcome.totals();
            assert_eq!((totals.counters.retries, totals.ledger.failed.timeout), (1, 1));
            assert_eq!(server.borrow().asked.len(), if reached { 3 } else { 2 });
            let (_, times) = outcome.diary.asked[1].end.unwrap();
            let waited_ns = times.done_ns - times.sent_ns;
            let within = timeouts.request_ns..=timeouts.request_ns + 1_000;
            assert!(within.contains(&waited_ns), "{layer:?} {second:?}: gave up after {waited_ns}");
        }
    }
}

//! Feeds on a virtual clock against a made-up server that refuses, forgets, cuts and is away for a while: whatever
//! it does, each document's operations arrive in their order, and what was not accepted is written down.
#![allow(clippy::unwrap_used)]

mod scene;
mod server;

use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::rng::Rng;
use plimsoll_core::schedule::{Arrivals, Limits, LoadModel};
use plimsoll_feed::{InflightChoice, fuzz_operations};
use scene::Scene;
use server::Faults;
use std::collections::{BTreeMap, BTreeSet};

/// `count` operations on `documents` documents. Each one's number is its condition, so that the server can tell.
fn input(rng: &mut Rng, count: u64, documents: u64) -> String {
    let mut text = String::new();
    for number in 1..=count {
        let id = format!("id:n:t::{}", rng.below(documents));
        let line = match rng.below(5) {
            0 => format!("{{\"remove\":\"{id}\",\"condition\":\"{number}\"}}\n"),
            1 => format!("{{\"update\":\"{id}\",\"fields\":{{}},\"condition\":\"{number}\"}}\n"),
            _ => {
                format!("{{\"put\":\"{id}\",\"condition\":\"{number}\",\"fields\":{{\"a\":1}}}}\n")
            }
        };
        text.push_str(&line);
    }
    text
}

#[test]
fn everything_is_accepted_in_order_whatever_the_server_does() {
    for seed in 0..120 {
        let mut rng = Rng::new(seed);
        let faults = Faults {
            busy: rng.below(200),
            unavailable: rng.below(60),
            failing: rng.below(60),
            reset: rng.below(60),
            stalled: rng.below(5),
            away: None,
            room: (seed % 3 == 0).then(|| 5 + rng.below(60) as usize),
            ..Faults::default()
        };
        let documents = 1 + rng.below(400);
        let count = 200 + rng.below(1500);
        let text = input(&mut rng, count, documents);
        let folder = tempfile::tempdir().unwrap();
        let mut scene = Scene::new(seed, faults);
        scene.settings.retries = 1000;
        let end = scene.run(&text, folder.path());
        assert_eq!((end.tally.accepted, end.tally.refused), (count, 0), "seed {seed} {faults:?}");
        assert_eq!((end.trouble.as_deref(), end.failed.as_str()), (None, ""), "seed {seed}");
        end.expect_order(seed);
        // The last operation of each document was the last one done.
        let mut last = BTreeMap::new();
        for (number, line) in (1u64..).zip(text.lines()) {
            let name = line.split("::").nth(1).unwrap().split('"').next().unwrap().to_owned();
            last.insert(format!("/document/v1/n/t/docid/{name}"), number);
        }
        assert_eq!(end.server.done, last, "seed {seed}");
        let asked: u64 = end.tally.retries.values().sum();
        assert_eq!(end.tally.requests, count + asked, "seed {seed}");
        let answers: u64 = end.tally.codes.iter().map(|code| code.server.count()).sum();
        assert_eq!(answers + end.tally.lost.iter().sum::<u64>(), end.tally.requests);
        let busy = end.tally.codes.iter().find(|code| code.status == 429);
        assert!(busy.is_none_or(|busy| busy.whole.is_empty()));
    }
}

#[test]
fn a_window_of_its_own_is_never_exceeded() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let text = input(&mut rng, 1000, 100);
        let folder = tempfile::tempdir().unwrap();
        let mut scene = Scene::new(seed, Faults { busy: 100, reset: 20, ..Faults::default() });
        let size = 1 + rng.below(40) as u32;
        scene.settings.inflight = InflightChoice::Fixed(size);
        scene.settings.retries = 1000;
        let end = scene.run(&text, folder.path());
        assert_eq!(end.tally.accepted, 1000);
        assert!(end.server.most_inside <= size as usize, "{} of {size}", end.server.most_inside);
        assert!(end.tally.most_under_way <= size);
    }
}

#[test]
fn a_stretch_of_refusals_brings_no_storm() {
    for status in [429, 503] {
        for seed in 0..10 {
            let away = Some((SECOND_NS + 150 * MILLISECOND_NS, 5 * SECOND_NS, status));
            let text = input(&mut Rng::new(seed), 2000, 2000);
            let folder = tempfile::tempdir().unwrap();
            let mut scene = Scene::new(seed, Faults { away, ..Faults::default() });
            scene.service_ns = 20 * MILLISECOND_NS;
            let end = scene.run(&text, folder.path());
            assert_eq!(end.tally.accepted, 2000, "{:?}", end.trouble);
            assert!(end.took_ns > 3 * SECOND_NS, "it was over before: {}", end.took_ns);
            let refused = end.statuses()[&status];
            // Those that were under way when it began, once more at most, and then one at a time.
            let under_way = end.tally.most_under_way as usize;
            assert!(refused <= 2 * under_way + 20, "{refused} refusals, {under_way} under way");
            // And it is back at full speed soon after: nothing waits longer than the last pause.
            assert!(end.took_ns < 16 * SECOND_NS, "{}", end.took_ns);
            assert!(end.tally.shrinks > 0 && end.tally.pauses > 0);
        }
    }
}

#[test]
fn a_target_with_little_room_is_not_overrun() {
    let text = input(&mut Rng::new(1), 2000, 2000);
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::new(1, Faults { room: Some(40), ..Faults::default() });
    scene.service_ns = 20 * MILLISECOND_NS;
    let end = scene.run(&text, folder.path());
    assert_eq!(end.tally.accepted, 2000);
    let refused = end.statuses().get(&429).copied().unwrap_or(0);
    assert!(refused < 200, "{refused} refusals");
    // Forty places of 20 ms and the way there and back.
    let rate = 2000.0 / (end.took_ns as f64 / 1e9);
    assert!(rate > 0.6 * 40.0 / 0.02004, "{rate} a second");
}

#[test]
fn what_is_not_accepted_can_be_fed_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = input(&mut Rng::new(3), 500, 60);
    text += "{\"put\":\"id:n:t::nosuch\",\"fields\":{\"a\":\"\u{e6}\"}}\n";
    text += "{\"put\":\"id:n:t::c\",\"condtion\":\"x\",\"fields\":{}}\n{\"put\":\"id:n\n";
    let mut scene = Scene::new(3, Faults { failing: 300, unavailable: 100, ..Faults::default() });
    scene.settings.retries = 0;
    let end = scene.run(&text, folder.path());
    let lines: Vec<_> = end.failed.lines().collect();
    assert_eq!(lines.len() as u64, end.tally.refused + 2);
    assert_eq!(end.tally.accepted + end.tally.refused, 501);
    assert!(end.tally.refused > 100);
    let reasons: Vec<serde_json::Value> =
        end.reasons.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(reasons.len(), lines.len());
    for (line, reason) in lines.iter().zip(&reasons) {
        let original = text.lines().nth(reason["line"].as_u64().unwrap() as usize - 1).unwrap();
        match serde_json::from_str::<serde_json::Value>(original) {
            Ok(tree) if reason["id"] != "" => {
                assert_eq!(serde_json::from_str::<serde_json::Value>(line).unwrap(), tree);
            }
            _ => assert_eq!(*line, original),
        }
    }
    assert!(reasons.iter().any(|r| r["reason"].as_str().unwrap().contains("'condtion'")));
    // Fed again, all but the malformed and the one of an unknown type are accepted.
    let mut scene = Scene::new(4, Faults::default());
    let again = scene.run(&end.failed, folder.path());
    assert_eq!((again.tally.accepted, again.tally.refused), (end.tally.refused - 1, 1));
    assert_eq!(again.failed.lines().count(), 3);
    assert!(again.reasons.contains("\"status\":404,\"reason\":\"HTTP 404: no such type\""));
    scene.settings.allowed = vec![404];
    let allowed = scene.run(&again.failed, folder.path());
    assert_eq!((allowed.tally.accepted, allowed.tally.refused), (1, 0));
}

#[test]
fn a_target_that_stays_away_is_given_up_and_nothing_is_forgotten() {
    for (status, seed) in [(503, 1), (0, 2), (503, 3), (0, 4)] {
        let from_ns = SECOND_NS + 20 * MILLISECOND_NS * (seed - 1);
        let faults = Faults { away: Some((from_ns, u64::MAX, status)), ..Faults::default() };
        let text = input(&mut Rng::new(seed), 2000, 500);
        let folder = tempfile::tempdir().unwrap();
        let end = Scene::new(seed, faults).run(&text, folder.path());
        let trouble = end.trouble.unwrap();
        assert!(trouble.contains("accepted nothing in 14 consecutive attempts"), "{trouble}");
        assert!(end.took_ns < 60 * SECOND_NS, "{}", end.took_ns);
        let tally = &end.tally;
        assert_eq!(tally.accepted + tally.refused + tally.unsettled, 2000);
        assert_eq!(end.failed.lines().count() as u64, 2000 - tally.accepted);
        end.server.asked.values().for_each(|numbers| assert!(numbers.is_sorted()));
    }
}

/// With everything refused only one operation at a time tries; the others must not wait for it beyond their own time.
#[test]
fn every_operation_expires_at_its_own_time_where_all_is_refused() {
    for (seed, timeout_s, count) in [(1, 5, 40), (2, 5, 1), (3, 3, 3000), (4, 8, 300)] {
        let faults = Faults { away: Some((0, u64::MAX, 429)), ..Faults::default() };
        let text = input(&mut Rng::new(seed), count, count);
        let folder = tempfile::tempdir().unwrap();
        let mut scene = Scene::new(seed, faults);
        scene.settings.timeout_ns = timeout_s * SECOND_NS;
        let end = scene.run(&text, folder.path());
        let limit_ns = (timeout_s + 2) * SECOND_NS;
        assert!(end.took_ns <= limit_ns, "seed {seed}: {} ms", end.took_ns / MILLISECOND_NS);
        // The last try of a single operation may come so late that no other fits in.
        assert!(end.took_ns >= timeout_s * SECOND_NS / 2, "seed {seed}: too early");
        let tally = &end.tally;
        assert_eq!((tally.accepted, tally.refused + tally.unsettled), (0, count), "seed {seed}");
        assert_eq!(end.failed.lines().count() as u64, count);
        assert!(end.reasons.contains("HTTP 429: not now; sent"), "{}", end.reasons);
    }
    // A stretch of refusals that is shorter than an operation's time ends nothing.
    let away = Some((SECOND_NS, 4 * SECOND_NS, 429));
    let text = input(&mut Rng::new(5), 500, 500);
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::new(5, Faults { away, ..Faults::default() });
    scene.settings.timeout_ns = 12 * SECOND_NS;
    let end = scene.run(&text, folder.path());
    assert_eq!((end.tally.accepted, end.trouble), (500, None));
}

#[test]
fn a_good_status_is_not_enough() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let text = input(&mut rng, 800, 100);
        let folder = tempfile::tempdir().unwrap();
        let faults =
            Faults { foreign: 100, fields_ignored: 50, ignored: 30, busy: 50, ..Faults::default() };
        let end = Scene::new(seed, faults).run(&text, folder.path());
        let tally = &end.tally;
        let seen =
            |status: u16| end.server.seen.iter().filter(|seen| seen.status == status).count();
        assert_eq!(tally.accepted as usize, seen(200), "seed {seed}");
        assert_eq!(tally.refused as usize, seen(1200), "seed {seed}");
        assert_eq!(tally.ignored_fields as usize, seen(1201), "seed {seed}");
        assert_eq!(tally.ignored_operations as usize, seen(1202), "seed {seed}");
        assert_eq!(end.failed.lines().count() as u64, 800 - tally.accepted);
        for word in ["does not name this document", "X-Vespa-Ignored-Fields", "no cluster takes"] {
            assert!(end.reasons.contains(word), "no '{word}' in {}", end.reasons);
        }
        end.expect_order(seed);
    }
}

#[test]
fn a_feed_that_is_stopped_tells_what_is_left() {
    for seed in 0..30 {
        let mut rng = Rng::new(seed);
        let text = input(&mut rng, 2000, 300);
        let folder = tempfile::tempdir().unwrap();
        let mut scene = Scene::new(seed, Faults { busy: 100, stalled: 10, ..Faults::default() });
        scene.stop_ns = Some(SECOND_NS + rng.below(60) * MILLISECOND_NS);
        let end = scene.run(&text, folder.path());
        let left: BTreeSet<&str> = end.failed.lines().collect();
        assert_eq!(left.len() as u64, 2000 - end.tally.accepted, "seed {seed}");
        assert!(end.tally.unsettled > 0, "seed {seed}: it was through before");
        // What is left stands in the order of the input, and whoever feeds it ends where the input ends.
        let numbers = |line: &&str| -> u64 {
            let tree: serde_json::Value = serde_json::from_str(line).unwrap();
            tree["condition"].as_str().unwrap().parse().unwrap()
        };
        let order: Vec<u64> = end.failed.lines().map(|line| numbers(&line)).collect();
        assert!(order.is_sorted(), "seed {seed}");
        assert!(end.took_ns < SECOND_NS, "seed {seed}");
    }
}

#[test]
fn a_rate_does_not_wait_and_counts_from_when_operations_were_due() {
    let text = input(&mut Rng::new(8), 1000, 1000);
    let folder = tempfile::tempdir().unwrap();
    // For half a second everything is refused: what is due meanwhile waits, and its waiting counts.
    let away = Some((2 * SECOND_NS, 2 * SECOND_NS + SECOND_NS / 2, 429));
    let mut scene = Scene::new(8, Faults { away, ..Faults::default() });
    let load = LoadModel::Open { rate_per_s: 250.0, arrivals: Arrivals::Uniform };
    scene.settings.pace = Some((load, Limits::after(1000 * SECOND_NS)));
    let end = scene.run(&text, folder.path());
    assert_eq!(end.tally.accepted, 1000);
    let took_s = end.took_ns as f64 / 1e9;
    assert!((3.9..4.1).contains(&took_s), "{took_s}");
    let good = end.tally.codes.iter().find(|code| code.status == 200).unwrap();
    assert!(good.server.max_ns() < 5 * MILLISECOND_NS, "{}", good.server.max_ns());
    let worst_ns = good.whole.max_ns();
    assert!((400..800).contains(&(worst_ns / MILLISECOND_NS)), "{worst_ns}");
    let late = good.whole.count_above(100 * MILLISECOND_NS);
    assert!((80..200).contains(&late), "{late} operations were due and could not be sent");
    // The run's own books tell the same, except that a repetition is a request of its own there.
    let response = &end.totals.classes[0].response;
    assert!(response.count_above(100 * MILLISECOND_NS) >= 80);
}

#[test]
fn a_wait_for_an_earlier_operation_on_the_document_is_in_the_response_time() {
    let text = input(&mut Rng::new(8), 50, 1);
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::new(8, Faults::default());
    scene.service_ns = 20 * MILLISECOND_NS;
    let load = LoadModel::Open { rate_per_s: 1000.0, arrivals: Arrivals::Uniform };
    scene.settings.pace = Some((load, Limits::after(1000 * SECOND_NS)));
    let end = scene.run(&text, folder.path());
    assert_eq!((end.tally.accepted, end.tally.requests), (50, 50));
    // One document takes 50 operations a second: the last one, due after 49 ms, has its answer after some 1,000 ms.
    let response = &end.totals.classes[0].response;
    let longest_ms = response.max_ns() / MILLISECOND_NS;
    assert!((700..1300).contains(&longest_ms), "{longest_ms} ms");
    // Without retries, each is the time of the operation as a whole.
    let whole = &end.tally.codes[0].whole;
    for limit_ns in [100, 400, 700].map(|ms| ms * MILLISECOND_NS) {
        assert_eq!(response.count_above(limit_ns), whole.count_above(limit_ns));
    }
    end.expect_order(8);
}

#[test]
fn time_that_is_over_ends_a_feed_without_failures() {
    let text = input(&mut Rng::new(8), 1000, 1000);
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::new(8, Faults::default());
    let load = LoadModel::Open { rate_per_s: 100.0, arrivals: Arrivals::Uniform };
    scene.settings.pace = Some((load, Limits::after(2 * SECOND_NS)));
    scene.settings.may_end_early = true;
    let end = scene.run(&text, folder.path());
    assert_eq!((end.tally.accepted, end.tally.left), (200, 800));
    assert_eq!(end.failed, "");
}

#[test]
fn the_same_seed_gives_the_same_feed() {
    let run = || {
        let text = input(&mut Rng::new(5), 1500, 100);
        let folder = tempfile::tempdir().unwrap();
        let faults = Faults { busy: 100, unavailable: 30, reset: 30, ..Faults::default() };
        let mut scene = Scene::new(5, faults);
        scene.settings.retries = 1000;
        let end = scene.run(&text, folder.path());
        (end.took_ns, end.server.asked, end.tally.requests)
    };
    assert_eq!(run(), run());
}

#[test]
fn arbitrary_bytes_are_read_to_their_end() {
    let words: [&[u8]; 12] = [
        b"{",
        b"}",
        b"\"",
        b"\\",
        b"[",
        b"]",
        b"\n",
        b"{\"put\":\"id:a:b::c\"",
        b",\"fields\":{}",
        b":",
        b"\xff\x00",
        b",\"condition\":\"x\"",
    ];
    for seed in 0..3000 {
        let mut rng = Rng::new(seed);
        let mut bytes = Vec::new();
        for _ in 0..rng.below(60) {
            bytes.extend_from_slice(words[rng.below(words.len() as u64) as usize]);
        }
        assert!(fuzz_operations(&bytes) <= bytes.len());
    }
}

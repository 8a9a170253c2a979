//! Virtual users: when they come, what they ask in which order, their rows, and what is asserted of them.

use super::{arrivals_ms, load, on_time_or_late, record, record_on_time_or_late};
use crate::process::Place;
use crate::record::Record;
use crate::server::{Server, Step, ok};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::BTreeMap;
use std::time::Duration;

/// Whether moments may be held against the schedule: the machine that tests share may stand still, and then plimsoll
/// says that it was late itself. Counts and orders must hold all the same.
fn is_on_time(record: &Record) -> bool {
    record.verdict() == "valid"
}

/// What each user asked, by the `u` of its requests, in the order in which the server saw it.
fn by_user(server: &Server) -> BTreeMap<u32, Vec<String>> {
    let mut asked: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for path in server.paths() {
        let (what, user) = path.split_once("?u=").unwrap();
        asked.entry(user.parse().unwrap()).or_default().push(what.to_owned());
    }
    asked
}

/// A file of rows with a number for each user, and one of three requests that hold it.
fn numbered(place: &Place) {
    let rows: String = (0..200).map(|n| format!("{n}\n")).collect();
    place.file("rows.csv", format!("user\n{rows}"));
    place.file("q.txt", "/a?u={{user}}\n/b?u={{user}}\n/c?u={{user}}\n");
}

const PER_USER: [&str; 6] = ["--queries", "q.txt", "--rows", "rows.csv", "--rows-per", "user"];

#[test]
fn users_come_as_the_profile_says() {
    let (place, server) = (Place::new(), Server::ok());
    let steps = "ramp 50 during 1s, nothing for 500ms, at once 20, peak 30 during 1s, constant 40/s during 1s";
    let record = record_on_time_or_late(&place, &server.url(), &["--users", steps], 0);
    assert_eq!((record.ok(), server.requests()), (140, 140));
    if is_on_time(&record) {
        let at = arrivals_ms(&server);
        // By the formulas: equal gaps, a pause, all at once, then half of the peak by its middle.
        for (number, expected_ms) in [
            (25, 500.0),
            (49, 980.0),
            (50, 1500.0),
            (69, 1500.0),
            (85, 2000.0),
            (120, 3000.0),
            (139, 3475.0),
        ] {
            let found = at[number];
            assert!(
                (found - expected_ms).abs() < 150.0,
                "user {number} came at {found}, not {expected_ms}"
            );
        }
        // The run is as long as its profile, and not as the longest that it could have been.
        assert!(
            (record.number("/duration_s") - 3.5).abs() < 0.3,
            "{}",
            record.number("/duration_s")
        );
    }
    assert_eq!(record.text("/scenario/load/profile").matches(',').count(), 4);
}

#[test]
fn a_seed_has_its_random_arrivals_and_threads_share_them() {
    let place = Place::new();
    let run = |threads: &str, seed: &str| {
        let server = Server::ok();
        let flags = [
            "--users",
            "constant 100/s during 1s randomized",
            "--threads",
            threads,
            "--seed",
            seed,
        ];
        let record = record_on_time_or_late(&place, &server.url(), &flags, 0);
        assert_eq!((record.ok(), server.requests()), (100, 100));
        (is_on_time(&record), arrivals_ms(&server))
    };
    let (one, three, other) = (run("1", "3"), run("3", "3"), run("1", "4"));
    let apart = |a: &[f64], b: &[f64]| {
        let mut apart: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a - b).abs()).collect();
        apart.sort_by(f64::total_cmp);
        apart[apart.len() / 2]
    };
    if one.0 && three.0 && other.0 {
        assert!(apart(&one.1, &three.1) < 20.0, "{}", apart(&one.1, &three.1));
        assert!(apart(&one.1, &other.1) > apart(&one.1, &three.1));
    }
}

#[test]
fn a_user_asks_in_its_order_one_after_the_other() {
    let place = Place::new();
    numbered(&place);
    for (order, expected) in [
        ("block", vec!["/a", "/a", "/b", "/b", "/c", "/c"]),
        ("interleaved", vec!["/a", "/b", "/c", "/a", "/b", "/c"]),
    ] {
        let server = Server::ok();
        let own = ["--users", "at once 12", "--order", order, "--passes", "2", "--threads", "2"];
        let record = record(&place, &server.url(), &[&PER_USER[..], &own].concat(), 0);
        assert_eq!(record.ok(), 72, "{order}");
        let asked = by_user(&server);
        assert_eq!(asked.len(), 12);
        assert!(asked.values().all(|own| *own == expected), "{order}: {asked:?}");
    }
    let shuffled = |threads: &str, seed: &str| {
        let server = Server::ok();
        let own = [
            "--users",
            "at once 8",
            "--order",
            "shuffle",
            "--passes",
            "3",
            "--threads",
            threads,
            "--seed",
            seed,
        ];
        record(&place, &server.url(), &[&PER_USER[..], &own].concat(), 0);
        by_user(&server)
    };
    let one = shuffled("1", "1");
    assert_eq!(one, shuffled("3", "1"), "the order follows from the seed and the user's number");
    assert_ne!(one, shuffled("1", "2"));
    assert!(one.values().any(|own| *own != one[&0]), "every user has the same order");
    for own in one.values() {
        let mut sorted = own.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, ["/a", "/a", "/a", "/b", "/b", "/b", "/c", "/c", "/c"]);
    }
}

#[test]
fn users_go_through_a_file_together() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("log.txt", (0..20).map(|n| format!("/{n}\n")).collect::<String>());
    let flags = ["--queries", "log.txt", "--users", "ramp 10 during 200ms", "--user-requests", "2"];
    assert_eq!(record_on_time_or_late(&place, &server.url(), &flags, 0).ok(), 20);
    let mut seen = server.paths();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 20, "each request of the log was asked once");
}

#[test]
fn users_think_and_keep_a_pace() {
    let place = Place::new();
    numbered(&place);
    let gaps = |own: &[&str], pause_ms: u64| {
        let pause = Duration::from_millis(pause_ms);
        let server = Server::start(move |_| vec![Step::Sleep(pause), Step::Send(ok("x"))]);
        let flags = [&PER_USER[..], &["--users", "ramp 10 during 100ms"], own].concat();
        let record = record_on_time_or_late(&place, &server.url(), &flags, 0);
        assert_eq!(record.ok(), 30);
        let mut last: BTreeMap<String, u64> = BTreeMap::new();
        let mut gaps = Vec::new();
        for seen in server.seen() {
            let user = seen.path().split_once("?u=").unwrap().1.to_owned();
            if let Some(before_ns) = last.insert(user, seen.at_ns) {
                gaps.push((seen.at_ns - before_ns) as f64 / 1e6);
            }
        }
        assert_eq!(gaps.len(), 20);
        (is_on_time(&record), gaps)
    };
    let (on_time, thinking) = gaps(&["--think", "200ms"], 50);
    assert!(thinking.iter().all(|gap| *gap >= 249.0), "{thinking:?}");
    assert!(!on_time || thinking.iter().all(|gap| *gap < 500.0), "{thinking:?}");
    let (on_time, paced) = gaps(&["--pace", "200ms"], 50);
    let mean = paced.iter().sum::<f64>() / 20.0;
    assert!(!on_time || (mean - 200.0).abs() < 40.0, "{paced:?}");
    let (_, uniform) = gaps(&["--think", "uniform 50ms 250ms"], 0);
    let (least, most) = uniform.iter().fold((f64::MAX, 0f64), |(l, m), &g| (l.min(g), m.max(g)));
    assert!(least >= 49.0 && most > least + 50.0, "{uniform:?}");
}

#[test]
fn a_number_of_users_is_held() {
    let place = Place::new();
    let pause = Duration::from_millis(50);
    let server = Server::start(move |_| vec![Step::Sleep(pause), Step::Send(ok("x"))]);
    let flags = ["--users", "concurrent 5 during 1s", "--user-requests", "2"];
    let record = record(&place, &server.url(), &flags, 0);
    // Each seat has a user every 100 ms at best; the last ones end after the second.
    assert!((10..=110).contains(&record.ok()), "{}", record.ok());
    assert_eq!(record.ok() % 2, 0, "a user left in the middle");
    assert_eq!(server.connections(), 5);
    let (took_s, slowest_ms) =
        (record.number("/duration_s"), record.number("/latency_ms/response/max"));
    assert!(took_s <= 1.01 + 2.0 * slowest_ms / 1e3, "{took_s} s");
}

#[test]
fn a_duration_ends_users_before_they_leave() {
    let (place, server) = (Place::new(), Server::ok());
    let flags =
        ["--users", "at once 5", "--user-requests", "1000", "--think", "100ms", "--duration", "1s"];
    let record = record_on_time_or_late(&place, &server.url(), &flags, 0);
    assert!(record.ok() <= 50 && (record.ok() >= 40 || !is_on_time(&record)), "{}", record.ok());
    assert!((record.number("/duration_s") - 1.0).abs() < 1e-6);
}

#[test]
fn users_who_wait_for_a_connection_are_counted_from_when_they_were_due() {
    let place = Place::new();
    let pause = Duration::from_millis(20);
    let server = Server::start(move |_| vec![Step::Sleep(pause), Step::Send(ok("x"))]);
    // Two connections for twenty users are what the result shows, and the verdict says so.
    let flags = ["--users", "at once 20", "--connections", "2"];
    let record = record(&place, &server.url(), &flags, 3);
    assert_eq!(server.connections(), 2);
    assert!(record.number("/latency_ms/response/max") > 190.0);
    assert!(record.number("/latency_ms/service/p50") < 100.0);
    assert!(record.number("/generator/lag_ms/p50") < 20.0, "waiting is not the generator's lag");
    assert!(record.has_warning("waited for a free connection"), "{:#}", record.0["warnings"]);
}

#[test]
fn rows_fill_paths_headers_and_bodies() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("rows.ndjson", "{\"t\":\"a \\\"b\\\" & c\",\"n\":1}\n{\"t\":\"plain\",\"n\":2}\n");
    place.file(
        "q.ndjson",
        "{\"method\":\"POST\",\"path\":\"/s?q={{t}}\",\"headers\":{\"X-N\":\"{{n}}\"},\"body\":{\"q\":\"{{t}}\",\"n\":\"{{n}}\"}}\n",
    );
    let flags =
        ["--queries", "q.ndjson", "--rows", "rows.ndjson", "--clients", "1", "--requests", "3"];
    record(&place, &server.url(), &flags, 0);
    let seen = server.seen();
    assert_eq!(seen[0].path(), "/s?q=a%20%22b%22%20%26%20c");
    assert!(seen[0].text().contains("\r\nX-N: 1\r\n"));
    let body: serde_json::Value = serde_json::from_str(&seen[0].body()).unwrap();
    assert_eq!(body, serde_json::json!({"q": "a \"b\" & c", "n": "1"}));
    assert_eq!(
        (seen[1].path().as_str(), seen[2].path()),
        ("/s?q=plain", seen[0].path()),
        "circular"
    );
}

#[test]
fn a_queue_of_rows_ends_the_run() {
    let place = Place::new();
    numbered(&place);
    for (load_flags, threads) in [
        (vec!["--clients", "4"], "2"),
        (vec!["--rate", "1000"], "1"),
        (vec!["--users", "constant 300/s during 20s"], "3"),
    ] {
        let server = Server::ok();
        let own = ["--rows-order", "queue", "--duration", "20s", "--threads", threads];
        let flags = [&PER_USER[..4], &load_flags, &own].concat();
        let record = record_on_time_or_late(&place, &server.url(), &flags, 0);
        assert!(
            record.has_warning("200 rows of rows.csv are used up"),
            "{:#}",
            record.0["warnings"]
        );
        assert!(record.number("/duration_s") < 10.0, "{load_flags:?}");
        let mut users: Vec<u32> = by_user(&server).into_keys().collect();
        users.sort_unstable();
        assert_eq!(users, (0..200).collect::<Vec<_>>(), "{load_flags:?}");
        assert_eq!(server.requests(), 200, "{load_flags:?}: each row once");
    }
}

#[test]
fn assertions_set_the_exit_code_and_are_kept() {
    let (place, server) = (Place::quiet(), Server::ok());
    place.file("q.txt", "/a\n/slow\n");
    let classes = ["--queries", "q.txt", "--class", "a=/a", "--class", "b=/slow"];
    let run = |assertions: &[&str], code: i32| {
        let asserted = assertions.iter().flat_map(|text| ["--assert", text]);
        let own = ["--users", "at once 10", "--user-requests", "2"];
        let flags: Vec<&str> = classes.into_iter().chain(own).chain(asserted).collect();
        record(&place, &server.url(), &flags, code)
    };
    let fine = [
        "global p95 < 5s",
        "each failed.percent is 0%",
        "class a requests is 10",
        "global rate > 1/s",
    ];
    let held = run(&fine, 0);
    assert_eq!(held.0["assertions"].as_array().unwrap().len(), 5);
    let missed = run(&["global requests between 5 and 10", "class b ok.count is 10"], 2);
    let results = missed.0["assertions"].as_array().unwrap();
    assert_eq!((&results[0]["held"], &results[1]["held"]), (&false.into(), &true.into()));
    assert_eq!(results[0]["actual"], 20.0);
    let url = server.url();
    let args = ["load", &url, "--requests", "20", "--no-record", "--assert", "global max < 1us"];
    let text = place.run(args).expect(2).stdout;
    assert!(text.starts_with("Result     MISSED global max < 0.001ms: "), "{text}");
}

#[test]
fn junit_is_read_back_by_an_xml_reader() {
    let (place, server) = (Place::new(), Server::ok());
    let url = server.url();
    let asserted =
        ["--assert", "global p95 < 1us", "--assert", "global requests is 20", "--slo", "errors=0%"];
    let args = [&["load", &url, "--requests", "20", "--quiet"][..], &asserted].concat();
    place.run(args).expect(2);
    let xml = place.run(["report", "--format", "junit"]).expect(0).stdout;
    let mut reader = Reader::from_str(&xml);
    let (mut cases, mut failures, mut inside) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let event = reader.read_event().unwrap_or_else(|error| panic!("{error}\n{xml}"));
        if let Event::Start(e) | Event::Empty(e) = &event {
            let get = |key: &str| {
                let found =
                    e.attributes().map(Result::unwrap).find(|a| a.key.as_ref() == key.as_bytes());
                found.unwrap().unescape_value().unwrap().into_owned()
            };
            match e.name().as_ref() {
                b"testcase" => cases.push(get("name")),
                b"failure" => failures.push((cases.last().unwrap().clone(), get("message"))),
                _ => {}
            }
        }
        match event {
            Event::Start(e) => inside.push(e.name().as_ref().to_vec()),
            Event::End(_) => drop(inside.pop()),
            Event::Eof => break,
            _ => {}
        }
    }
    assert!(inside.is_empty());
    assert_eq!(cases.len(), 4, "{cases:?}");
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0].0, "global p95 < 0.001ms");
    assert!(failures[0].1.starts_with("p95 is "), "{failures:?}");
    // A record can be held against other assertions later.
    place.run(["report", "--assert", "global requests is 20"]).expect(0);
    place.run(["report", "--assert", "global requests is 21"]).expect(2);
    // A class that is not there has no failed request either; that must not hold.
    let told = place.run(["report", "--assert", "class a failed.count is 0"]).expect(64).stderr;
    assert!(told.contains("no class 'a'") && told.contains("it has "), "{told}");
}

#[test]
fn checks_of_hits_and_times_and_texts() {
    let place = Place::new();
    let pause = Duration::from_millis(60);
    let body = "{\"hits\":{\"total\":{\"value\":3}}}";
    let server = Server::start(move |_| vec![Step::Sleep(pause), Step::Send(ok(body))]);
    for (check, code) in [
        ("hits>=1", 0),
        ("hits>=4", 4),
        ("json:/hits/total/value>=1", 0),
        ("time<5s", 0),
        ("time<10ms", 4),
        ("body!~error", 0),
        ("body=~value.:[0-9]", 0),
        ("body=~^x", 4),
    ] {
        let flags = ["--requests", "4", "--clients", "2", "--check", check];
        let ended = load(&place, &server.url(), &flags).expect(code);
        let record = Record::of(&ended);
        match code {
            0 => assert_eq!(record.ok(), 4, "{check}"),
            _ => {
                record.expect_failed("check", 4);
                assert!(ended.stderr.contains(check), "{}", ended.stderr);
            }
        }
    }
}

#[test]
fn a_file_holds_users_rows_and_assertions() {
    let (place, server) = (Place::new(), Server::ok());
    numbered(&place);
    let scenario = format!(
        "job = \"visitors\"\ntargets = [\"{}\"]\nqueries = \"q.txt\"\norder = \"block\"\nrepeat = 2\n\
         assertions = [\"global requests is 30\"]\n\
         [load]\nmodel = \"users\"\nprofile = \"rampUsers(5).during(200.millis)\"\nthink = \"uniform 1ms 20ms\"\n\
         [rows]\nfile = \"rows.csv\"\nper = \"user\"\norder = \"queue\"\n",
        server.url()
    );
    place.file("visitors.toml", &scenario);
    let ended = place.run(["run", "visitors.toml", "--json", "-"]);
    let first = on_time_or_late(ended, 0);
    assert_eq!((first.ok(), first.text("/scenario/load/profile")), (30, "ramp 5 during 200ms"));
    let asked = by_user(&server);
    assert_eq!(asked.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert!(asked.values().all(|own| *own == ["/a", "/a", "/b", "/b", "/c", "/c"]), "{asked:?}");
    let wrong = scenario.replace("rampUsers(5)", "rampUsers(x)");
    place.file("wrong.toml", wrong);
    let told = place.run(["run", "wrong.toml"]).expect(64).stderr;
    assert!(told.contains("wrong.toml:") && told.contains("'x' is not a whole number"), "{told}");
}

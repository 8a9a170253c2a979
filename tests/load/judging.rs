//! Requests of all sources, checks, classes, hits, limits, and what is printed of them.

use super::{load, on_time_or_late, record};
use crate::process::Place;
use crate::record::Record;
use crate::server::{Seen, Server, Step, ok, reply};
use std::time::Duration;

#[test]
fn a_request_of_our_own_to_the_byte() {
    let (place, server) = (Place::new(), Server::ok());
    let url = format!("{}/a/b?c=d%20e#fragment", server.url());
    let flags =
        ["--clients", "1", "--requests", "1", "--header", "X-One: 1", "--body", "{\"a\":1}"];
    record(&place, &url, &flags, 0);
    let expected = format!(
        "POST /a/b?c=d%20e HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nUser-Agent: plimsoll/{}\r\nX-One: 1\r\n\
         Content-Type: application/json\r\nContent-Length: 7\r\n\r\n{{\"a\":1}}",
        server.port(),
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(server.seen()[0].text(), expected);
}

#[test]
fn ndjson_with_methods_headers_bodies_and_tags() {
    let (place, server) = (Place::new(), Server::ok());
    place.file(
        "q.ndjson",
        "{\"path\":\"/get\",\"class\":\"read\"}\n\
         {\"method\":\"PUT\",\"path\":\"/put\",\"headers\":{\"X-A\":\"2\"},\"body\":{\"n\":[1, 2]},\"class\":\"write\"}\n\
         {\"method\":\"DELETE\",\"path\":\"/delete\",\"class\":\"write\"}\n\
         {\"path\":\"/plain\",\"body\":\"text\",\"method\":\"POST\"}\n",
    );
    let flags =
        ["--queries", "q.ndjson", "--clients", "1", "--requests", "8", "--header", "X-A: 1"];
    let record = record(&place, &server.url(), &flags, 0);
    let seen = server.seen();
    let lines: Vec<String> =
        seen.iter().map(|s| s.text().lines().next().unwrap().to_owned()).collect();
    let pass = [
        "GET /get HTTP/1.1",
        "PUT /put HTTP/1.1",
        "DELETE /delete HTTP/1.1",
        "POST /plain HTTP/1.1",
    ];
    assert_eq!(lines, [pass, pass].concat());
    assert_eq!(seen[1].body(), "{\"n\":[1, 2]}", "JSON goes out as it was written");
    assert!(seen[0].text().contains("\r\nX-A: 1\r\n") && seen[1].text().contains("\r\nX-A: 2\r\n"));
    assert!(!seen[1].text().contains("X-A: 1"), "{}", seen[1].text());
    assert_eq!(seen[3].body(), "text");
    assert_eq!(record.count("/classes/read/ok"), 2);
    assert_eq!(record.count("/classes/write/ok"), 4);
}

#[test]
fn a_query_file_in_three_orders() {
    let place = Place::new();
    place.file("q.txt", (0..50).map(|i| format!("/q{i}\n")).collect::<String>());
    let asked = |order: &str, seed: &str| {
        let server = Server::ok();
        let flags = [
            "--queries",
            "q.txt",
            "--clients",
            "1",
            "--requests",
            "100",
            "--order",
            order,
            "--seed",
            seed,
        ];
        record(&place, &server.url(), &flags, 0);
        server.paths()
    };
    let file = asked("file", "1");
    assert!(file.iter().enumerate().all(|(i, path)| *path == format!("/q{}", i % 50)));
    let shuffled = asked("shuffle", "1");
    assert_eq!(shuffled[..50], shuffled[50..], "the same order in each pass");
    let mut once = shuffled[..50].to_vec();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), 50, "each once");
    assert_eq!(shuffled, asked("shuffle", "1"), "the same seed asks the same requests");
    assert_ne!(shuffled, asked("shuffle", "2"));
    let random = asked("random", "1");
    assert_ne!(random[..50], random[50..]);
    assert_eq!(random, asked("random", "1"));
}

#[test]
fn post_files() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", "/a\n{\"x\":1}\n/b\n{\"y\":\n2}\n");
    let flags = ["--queries", "q.txt", "--post", "--clients", "1", "--requests", "4"];
    record(&place, &server.url(), &flags, 0);
    let seen: Vec<(String, String)> = server.seen().iter().map(|s| (s.path(), s.body())).collect();
    assert_eq!(seen[1], ("/b".to_owned(), "{\"y\":\n2}".to_owned()));
    assert!(server.seen()[0].text().starts_with("POST /a "));
}

#[test]
fn classes_by_expression_are_counted_apart_and_the_heaviest_is_named() {
    let place = Place::new();
    let server = Server::start(|seen: &Seen| {
        let slow = seen.path().contains("fuzzy");
        let pause = Duration::from_millis(if slow { 150 } else { 0 });
        vec![Step::Sleep(pause), Step::Send(ok("x"))]
    });
    place.file("q.txt", "/s?q=plain1\n/s?q=fuzzy1\n/s?q=phrase1\n/other\n");
    let flags = [
        "--queries",
        "q.txt",
        "--clients",
        "1",
        "--requests",
        "40",
        "--class",
        "fuzzy=fuzzy\\d",
        "--class",
        "phrase=phrase",
        "--class",
        "search=/s",
    ];
    let record = record(&place, &server.url(), &flags, 0);
    for class in ["fuzzy", "phrase", "search"] {
        assert_eq!(record.count(&format!("/classes/{class}/ok")), 10, "{class}");
    }
    assert!(record.number("/classes/fuzzy/latency_ms/service/p50") >= 150.0);
    assert!(record.number("/classes/phrase/latency_ms/service/p50") < 100.0);
    let slowest = &record.0["slowest"][0];
    assert_eq!(slowest["class"], "fuzzy");
    assert!(slowest["request"].as_str().unwrap().contains("/s?q=fuzzy1"), "{slowest:#}");
    let text = place.run(["report"]).expect(0).stdout;
    let classes = text.split_once("Classes").unwrap().1;
    let first =
        classes.lines().find(|line| ["fuzzy", "phrase", "search"].iter().any(|c| line.contains(c)));
    assert!(first.unwrap().contains("fuzzy"), "the heaviest comes first\n{text}");
}

#[test]
fn checks_make_failures_of_200s() {
    let place = Place::new();
    let server = Server::start(|seen: &Seen| {
        vec![Step::Send(match seen.number % 4 {
            0 => ok("{\"root\":{\"fields\":{\"totalCount\":3}}}"),
            1 => ok("{\"root\":{\"errors\":[{\"code\":12}]}}"),
            2 => ok(
                "{\"root\":{\"fields\":{\"totalCount\":3},\"coverage\":{\"coverage\":50,\"full\":false}}}",
            ),
            _ => reply(504, "", b"{}"),
        })]
    });
    let flags = ["--clients", "1", "--requests", "40"];
    let with = |checks: &[&str], code| {
        let flags: Vec<&str> =
            flags.iter().copied().chain(checks.iter().flat_map(|c| ["--check", c])).collect();
        record(&place, &server.url(), &flags, code)
    };
    assert_eq!(with(&[], 0).ok(), 30);
    let vespa = with(&["vespa"], 4);
    assert_eq!(vespa.ok(), 10, "{:#}", vespa.0["ledger"]);
    assert_eq!(vespa.failures(), [("status".to_owned(), 10), ("check".to_owned(), 20)]);
    assert_eq!(with(&["/root/fields/totalCount>=1"], 0).ok(), 20);
    assert_eq!(with(&["/root/fields/totalCount>=4"], 4).ok(), 0);
    assert_eq!(with(&["!/root/errors"], 0).ok(), 20);
    assert_eq!(with(&["body~totalCount"], 0).ok(), 20);
    assert_eq!(with(&["status=504"], 4).ok(), 10);
    assert_eq!(with(&["status=2xx,504"], 0).ok(), 40);
}

#[test]
fn an_absence_is_not_known_of_a_body_that_was_cut_or_is_coded() {
    let place = Place::new();
    let filler = "x".repeat(5 << 20);
    let body = format!("{{\"took\":1,\"root\":{{}},\"a\":\"{filler}\",\"errors\":true}}");
    let long = Server::start(move |_| vec![Step::Send(ok(&body))]);
    let coded = Server::start(|_| {
        let head = "Content-Type: application/json\r\nContent-Encoding: br\r\n";
        vec![Step::Send(reply(200, head, b"{\"took\":1,\"root\":{}} not really brotli"))]
    });
    let flags = ["--clients", "1", "--requests", "2", "--check"];
    for server in [&long, &coded] {
        for check in ["body!~ERROR", "!/errors", "vespa", "elasticsearch", "body=~^[^E]*$"] {
            let failed = record(&place, &server.url(), &[&flags[..], &[check]].concat(), 4);
            failed.expect_failed("check", 2);
        }
    }
    // What the beginning of a cut body shows is known.
    assert_eq!(record(&place, &long.url(), &[&flags[..], &["/took=1"]].concat(), 0).ok(), 2);
    let reasons = |server: &Server| {
        let failed = record(&place, &server.url(), &[&flags[..], &["!/errors"]].concat(), 4);
        failed.0["verdict"]["reasons"].to_string()
    };
    assert!(reasons(&long).contains("only the first 4194304 bytes"), "{}", reasons(&long));
    assert!(reasons(&coded).contains("content coding"), "{}", reasons(&coded));
}

#[test]
fn any_200_is_not_a_reply_of_vespa_or_elasticsearch() {
    let place = Place::new();
    let server = Server::start(|_| vec![Step::Send(ok("{\"ok\":true,\"total\":3}"))]);
    for check in ["vespa", "elasticsearch"] {
        let flags = ["--clients", "1", "--requests", "5", "--check", check];
        record(&place, &server.url(), &flags, 4).expect_failed("check", 5);
    }
}

#[test]
fn a_failed_check_says_what_was_found_and_a_status_what_to_do() {
    let place = Place::new();
    let server = Server::start(|seen: &Seen| {
        vec![Step::Send(match seen.path().as_str() {
            "/moved" => reply(302, "Location: https://other.example/login\r\n", b""),
            "/closed" => reply(401, "", b""),
            _ => ok("{\"total\":3}"),
        })]
    });
    for (path, flags, told) in [
        ("/", &["--check", "/total=4"][..], "check /total=4: found 3"),
        (
            "/moved",
            &[],
            "status 302 leads to https://other.example/login; redirects are not followed",
        ),
        ("/closed", &[], "status 401: the server wants credentials; give --header 'Authorization"),
    ] {
        let flags = [&["--clients", "1", "--requests", "2"], flags].concat();
        let failed = record(&place, &(server.url() + path), &flags, 4);
        let reasons = failed.0["verdict"]["reasons"].to_string();
        assert!(reasons.contains(told), "{reasons}");
    }
}

#[test]
fn queries_that_find_nothing_are_counted_and_warned_about() {
    let place = Place::new();
    let server = Server::start(|seen: &Seen| {
        let hits = if seen.path().contains("none") { 0 } else { 12 };
        vec![Step::Send(ok(&format!("{{\"root\":{{\"fields\":{{\"totalCount\":{hits}}}}}}}")))]
    });
    place.file("q.txt", "/search/?q=some\n/search/?q=none\n");
    let flags = ["--queries", "q.txt", "--clients", "1", "--requests", "40"];
    let counted = record(&place, &server.url(), &flags, 0);
    let class = counted.0["classes"].as_object().unwrap().values().next().unwrap();
    assert_eq!((class["zero_hits"].as_u64(), class["hits_known"].as_u64()), (Some(20), Some(40)));
    assert!(
        counted.has_warning("50 % of the queries found nothing"),
        "{:#}",
        counted.0["warnings"]
    );
    assert!(counted.has_warning("sent 20 times"), "{:#}", counted.0["warnings"]);
    let off = record(&place, &server.url(), &[&flags[..], &["--hits", "off"]].concat(), 0);
    assert!(!off.has_warning("found nothing"));
    let own = Server::start(|_| vec![Step::Send(ok("{\"hits\":{\"total\":{\"value\":0}}}"))]);
    let flags = ["--clients", "1", "--requests", "5", "--hits", "/hits/total/value"];
    assert!(record(&place, &own.url(), &flags, 0).has_warning("100 % of the queries"));
}

#[test]
fn a_target_on_the_same_machine_is_warned_about() {
    let (place, server) = (Place::new(), Server::ok());
    let ten = ["--clients", "1", "--requests", "10"];
    let here = record(&place, &server.url(), &ten, 0);
    assert_eq!(here.0["target"]["same_host"], true);
    assert!(here.has_warning("share this machine"), "{:#}", here.0["warnings"]);
}

#[test]
fn a_limit_that_is_missed_is_exit_2() {
    let (place, server) = (Place::quiet(), Server::ok());
    let held = ["--clients", "1", "--requests", "50", "--slo", "p99=10s", "--slo", "errors=0%"];
    let good = record(&place, &server.url(), &held, 0);
    assert_eq!(good.0["slo"]["p99"]["held"], true);
    let missed = ["--clients", "1", "--requests", "50", "--slo", "p50=1us", "--slo", "p99=10s"];
    let bad = record(&place, &server.url(), &missed, 2);
    assert_eq!(
        (&bad.0["slo"]["p50"]["held"], &bad.0["slo"]["p99"]["held"]),
        (&false.into(), &true.into())
    );
    assert_eq!(bad.verdict(), "valid");
    // Beside replies that take this long, a delay of the generator's own is small.
    let late =
        Server::start(|_| vec![Step::Sleep(Duration::from_millis(40)), Step::Send(ok("{}"))]);
    let slow = ["--rate", "20", "--duration", "1s", "--slo", "rate=1000"];
    record(&place, &late.url(), &slow, 2);
    let text = place.run(["report"]).expect(0).stdout;
    assert!(text.starts_with("Result     MISSED rate: 20.0/s < 1000/s, exit 2\n"), "{text}");
}

#[test]
fn json_on_stdout_is_json_and_fits_the_schema() {
    let (place, server) = (Place::new(), Server::ok());
    let schema = include_str!("../../docs/run.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let broken = Server::start(|_| vec![Step::Reset]);
    let dead = broken.url();
    let url = server.url();
    for (args, code, on_time) in [
        (vec!["load", url.as_str(), "--clients", "2", "--requests", "20"], 0, true),
        (
            vec![
                "load",
                url.as_str(),
                "--rate",
                "50",
                "--duration",
                "1s",
                "--warmup",
                "1s",
                "--slo",
                "p95=1s",
            ],
            0,
            false,
        ),
        (vec!["load", dead.as_str(), "--requests", "5"], 4, true),
    ] {
        let ended = place.run(args.iter().copied().chain(["--json", "-"]));
        // On a busy machine a run at a rate may say that it was late; its record has the same form.
        let record =
            if on_time { Record::of(&ended.expect(code)) } else { on_time_or_late(ended, code) };
        let problems: Vec<String> = validator
            .iter_errors(&record.0)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(problems.is_empty(), "{args:?}: {problems:#?}");
        assert_eq!(record.text("/schema"), "plimsoll.run/1");
    }
}

#[test]
fn the_result_is_on_stdout_and_nothing_else() {
    let (place, server) = (Place::new(), Server::ok());
    let ended = place.run(["load", &server.url(), "--clients", "2", "--requests", "20"]).expect(0);
    assert_eq!(ended.said(), "", "a pipe is shown no progress");
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ended.stdout);
    let json = load(&place, &server.url(), &["--requests", "20", "--json", "run.json"]);
    // The last --json counts; the text is printed when the JSON goes to a file.
    assert!(json.code == Some(64) || json.stdout.contains("Result "), "{json:?}");
}

//! The search target, with curl and with load.

use crate::process::{Place, Target, curl, until};
use crate::record::Record;
use serde_json::Value;
use std::time::Duration;

fn total(target: &Target, yql: &str) -> u64 {
    let (status, body) = curl(&[
        "-G",
        "--data-urlencode",
        &format!("yql={yql}"),
        &format!("{}/search/", target.url),
    ]);
    assert_eq!(status, 200, "{yql}: {body}");
    let reply: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(reply.pointer("/root/coverage/full"), Some(&Value::Bool(true)), "{reply:#}");
    reply.pointer("/root/fields/totalCount").unwrap().as_u64().unwrap()
}

fn put(target: &Target, id: &str, title: &str, score: u64) {
    let fields = serde_json::json!({"fields": {"title": title, "score": score}}).to_string();
    let url = format!("{}/document/v1/plimsoll/doc/docid/{id}", target.url);
    let (status, body) = curl(&["-H", "Content-Type: application/json", "-d", &fields, &url]);
    assert_eq!(status, 200, "{body}");
}

#[test]
fn fed_searched_and_deleted_with_curl() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    put(&target, "a", "the white whale", 10);
    put(&target, "b", "a white ship", 20);
    put(&target, "c", "the black ship at sea", 30);
    let all = "select * from sources * where true";
    until("all are found", Duration::from_secs(10), || total(&target, all) == 3);
    for (query, expected) in [
        ("title contains \"ship\"", 2),
        ("title contains \"white\" and title contains \"ship\"", 1),
        ("title contains \"whale\" or title contains \"sea\"", 2),
        ("title contains \"ship\" and !(title contains \"white\")", 1),
        ("title contains phrase(\"white\", \"ship\")", 1),
        ("title contains phrase(\"ship\", \"white\")", 0),
        ("title contains ({maxEditDistance:1}fuzzy(\"whalf\"))", 1),
        ("score >= 20", 2),
        ("range(score, 10, 20)", 2),
        ("userQuery()", 2),
    ] {
        if query == "userQuery()" {
            let url = format!(
                "{}/search/?query=ship&yql=select%20*%20from%20doc%20where%20userQuery()",
                target.url
            );
            let (_, body) = curl(&[&url]);
            let reply: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(
                reply.pointer("/root/fields/totalCount"),
                Some(&expected.into()),
                "{reply:#}"
            );
        } else {
            assert_eq!(
                total(&target, &format!("select * from doc where {query}")),
                expected,
                "{query}"
            );
        }
    }
    let url = format!("{}/document/v1/plimsoll/doc/docid/b", target.url);
    let (status, body) = curl(&[&url]);
    assert!(status == 200 && body.contains("a white ship"), "{body}");
    assert_eq!(curl(&["-X", "DELETE", &url]).0, 200);
    assert_eq!(curl(&[&url]).0, 404);
    until("it is gone", Duration::from_secs(10), || total(&target, all) == 2);
    let (status, body) = curl(&[&format!("{}/search/?yql=selec", target.url)]);
    assert!(status == 400 && body.contains("errors"), "{status} {body}");
}

#[test]
fn fed_and_measured_with_load() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let feed: String = (0..200)
        .map(|i| {
            format!(
                "{{\"method\":\"POST\",\"path\":\"/document/v1/plimsoll/doc/docid/{i}\",\
                 \"body\":{{\"fields\":{{\"title\":\"ship number{i}\",\"score\":{i}}}}},\"class\":\"feed\"}}\n"
            )
        })
        .collect();
    place.file("feed.ndjson", feed);
    let feed =
        ["load", &target.url, "--queries", "feed.ndjson", "--clients", "4", "--requests", "200"];
    let fed = Record::of(&place.run(feed.into_iter().chain(["--json", "-"])).expect(0));
    assert_eq!((fed.ok(), fed.count("/classes/feed/ok")), (200, 200));
    let all = "select * from sources * where title contains \"ship\"";
    until("all are found", Duration::from_secs(10), || total(&target, all) == 200);
    place.file(
        "q.txt",
        "/search/?yql=select%20*%20from%20doc%20where%20title%20contains%20%22ship%22\n\
         /search/?yql=select%20*%20from%20doc%20where%20title%20contains%20%22number7%22\n\
         /search/?yql=select%20*%20from%20doc%20where%20title%20contains%20%22nothing%22\n",
    );
    let search =
        ["load", &target.url, "--queries", "q.txt", "--requests", "90", "--check", "vespa"];
    let classes = ["--class", "all=ship", "--class", "one=number7", "--class", "none=nothing"];
    let ended = place.run(search.into_iter().chain(classes).chain(["--json", "-"])).expect(0);
    let record = Record::of(&ended);
    record.expect_balanced();
    assert_eq!(record.ok(), 90);
    assert_eq!(record.count("/classes/none/zero_hits"), 30);
    assert_eq!(record.count("/classes/one/zero_hits"), 0);
    assert!(record.has_warning("33 % of the queries found nothing"), "{:#}", record.0["warnings"]);
    // The same with fbench, whose headers the target answers.
    let port = target.port.to_string();
    let args =
        ["fbench", "-n", "2", "-r", "0", "-y", "-q", "q.txt", "-o", "o%d", "127.0.0.1", &port];
    let ended = place.run(args).expect(0);
    assert!(ended.stdout.contains("zero hit queries:              2\n"), "{}", ended.stdout);
    let out = place.read("o0");
    for line in
        ["TotalHitCount: 200\n", "TotalHitCount: 1\n", "TotalHitCount: 0\n", "FullCoverage: 1\n"]
    {
        assert!(out.contains(line), "no {line:?} in\n{out}");
    }
}

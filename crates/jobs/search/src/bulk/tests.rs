use super::*;
use plimsoll_wire::http1::Encoding;
use plimsoll_workloads::authority::Authority;
use std::io::Cursor;

const TEXT: &str = "{\"id\":\"s\\\"0\",\"title\":\"a\",\"score\":1}\n{\"id\":\"s1\",\"title\":\"b\"}\n{\"id\":\"s2\",\"title\":\"c\"}\n";

fn sessions(dialect: Dialect) -> (BulkSessions<Cursor<&'static str>>, Arc<LoadTally>) {
    let authority = Authority { host: "h".to_owned(), port: 1, tls: false };
    let form = HttpForm::new(&authority, &[], false).unwrap();
    let tally = Arc::new(LoadTally::default());
    let made =
        BulkSessions::new(Cursor::new(TEXT), form, dialect, "i", 1, tally.clone(), Arc::default());
    (made, tally)
}

fn asked(sessions: &mut BulkSessions<Cursor<&'static str>>) -> (Turn, String) {
    let mut request = Request::default();
    let turn = sessions.next(0, 0, &mut request);
    (turn, String::from_utf8(request.bytes).unwrap())
}

fn answer(sessions: &mut BulkSessions<Cursor<&'static str>>, status: u16, body: &str) -> Judgement {
    let reply = Reply {
        status,
        head: b"",
        body: body.as_bytes(),
        encoding: Encoding::Identity,
        body_bytes: body.len() as u64,
        truncated: false,
    };
    let times = Times { intended_ns: 1, sent_ns: 1_000, done_ns: 2_000 };
    sessions.judge(0, &Submission::default(), &reply, times)
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[test]
fn lines_become_a_bulk_body_by_copying() {
    let (mut made, tally) = sessions(Dialect::Elasticsearch);
    let (_, text) = asked(&mut made);
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /i/_bulk HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("Content-Type: application/x-ndjson"), "{head}");
    let lines: Vec<&str> = body.lines().collect();
    assert_eq!(lines[0], "{\"index\":{\"_id\":\"s\\\"0\"}}");
    assert_eq!(lines[1], "{\"title\":\"a\",\"score\":1}");
    assert_eq!(lines.len(), 6);
    let judged = answer(&mut made, 200, "{\"took\":1,\"errors\":false,\"items\":[]}");
    assert_eq!(judged.outcome, Outcome::Ok);
    assert_eq!((count(&tally.documents), count(&tally.failed)), (3, 0));
    assert_eq!(count(&tally.bytes), body.len() as u64);
    assert!((tally.seconds() - 1e-6).abs() < 1e-12);
    assert_eq!(asked(&mut made).0, Turn::Exhausted);
}

#[test]
fn one_document_a_request_where_there_is_no_bulk() {
    let (mut made, tally) = sessions(Dialect::Vespa);
    let (_, text) = asked(&mut made);
    assert!(text.starts_with("POST /document/v1/plimsoll/doc/docid/s%220 HTTP/1.1\r\n"), "{text}");
    assert!(text.ends_with("\r\n\r\n{\"fields\":{\"title\":\"a\",\"score\":1}}"), "{text}");
    answer(&mut made, 200, "");
    assert_eq!(count(&tally.documents), 1);
    let (_, text) = asked(&mut made);
    assert!(text.contains("/docid/s1 "), "{text}");
}

#[test]
fn what_is_turned_away_is_sent_again_later() {
    let (mut made, tally) = sessions(Dialect::Elasticsearch);
    let (_, first) = asked(&mut made);
    answer(&mut made, 429, "{}");
    let Turn::Rest { until_ns } = asked(&mut made).0 else { panic!("it did not wait") };
    assert_eq!(until_ns, 2_000 + PAUSE_NS);
    assert_eq!(asked(&mut made).1, first, "the same body again");
    // Now only one of the three items is turned away, and one is refused for good.
    let items = r#"{"errors":true,"items":[{"index":{"status":201}},{"index":{"status":429}},
        {"index":{"status":400,"error":{"type":"mapper","reason":"no such field"}}}]}"#;
    assert_eq!(answer(&mut made, 200, items).outcome, Outcome::Failed(Failure::Check));
    assert_eq!((count(&tally.documents), count(&tally.failed)), (1, 1));
    assert_eq!(tally.first_trouble().as_deref(), Some("200: no such field"));
    assert!(matches!(asked(&mut made).0, Turn::Rest { .. }));
    let (_, left) = asked(&mut made);
    let body = left.split_once("\r\n\r\n").unwrap().1;
    assert_eq!(body, "{\"index\":{\"_id\":\"s1\"}}\n{\"title\":\"b\"}\n");
    answer(&mut made, 200, "{\"errors\":false}");
    assert_eq!((count(&tally.documents), count(&tally.retried)), (2, 4));
}

#[test]
fn an_engine_that_never_takes_it_is_not_waited_for_without_end() {
    let (mut made, tally) = sessions(Dialect::Elasticsearch);
    for _ in 0..=TURNED_AWAY_MAX {
        while !matches!(asked(&mut made).0, Turn::Ask(_)) {}
        answer(&mut made, 429, "");
    }
    assert_eq!(count(&tally.failed), 3);
    assert_eq!(asked(&mut made).0, Turn::Exhausted);
}

#[test]
fn a_broken_connection_is_tried_again_and_then_ends_the_load() {
    let (mut made, tally) = sessions(Dialect::Elasticsearch);
    for _ in 0..=BROKEN_MAX {
        while !matches!(asked(&mut made).0, Turn::Ask(_)) {}
        let times = Times { intended_ns: 1, sent_ns: 1, done_ns: 2 };
        made.lost(0, &Submission::default(), Failure::Connect, times);
    }
    assert_eq!(count(&tally.failed), 3);
    assert!(made.give_up.load(Ordering::Relaxed));
    assert_eq!(asked(&mut made).0, Turn::Exhausted);
}

#[test]
fn refusals_are_told_in_the_engines_words() {
    let (mut made, tally) = sessions(Dialect::Elasticsearch);
    asked(&mut made);
    answer(&mut made, 404, r#"{"error":{"reason":"no such index [i]"}}"#);
    assert_eq!(tally.first_trouble().as_deref(), Some("404: no such index [i]"));
    assert_eq!(count(&tally.failed), 3);
}

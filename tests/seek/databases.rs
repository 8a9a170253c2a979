//! Lines of databases: votes, each a transaction; SQL statements and procedures of VoltDB's protocol.

use super::asking::search;
use super::found;
use crate::engines::install;
use crate::process::Place;
use crate::record::Record;

#[test]
fn votes_have_a_line_and_every_one_of_them_is_a_row() {
    let place = Place::busy();
    let target = place.serve(&["voter", "--port", "0"]);
    let flags = ["--slo", "p90=200ms", "--max-rate", "1500", "--start-rate", "300"];
    let time = ["--budget", "20s", "--seed", "4"];
    let record = found(&search(&place, &target.url, &[&flags[..], &time].concat()));
    assert_ne!(record.verdict(), "infeasible", "{:#}", record.0["verdict"]);
    assert_eq!(record.text("/voter/check"), "ok", "{:#}", record.0["voter"]);
    assert_eq!(record.text("/job"), "seek");
    let grown = record.count("/voter/rows_after") - record.count("/voter/rows_before");
    assert_eq!(grown, record.count("/voter/accepted"));
    assert!(grown > 1000 && record.number("/seek/curve/0/rate_per_s") <= 1500.0);
    let page = place.run(["report"]).expect(0).stdout;
    assert!(page.contains("\nWrites     ok: "), "{page}");
    for (flags, word) in [
        (&["--slo", "p90{class=select}=1s"][..], "unknown class 'select'; write one of vote"),
        (&["--slo", "p90=1s", "--order", "random"], "--order"),
        (&["--slo", "p90=1s", "--check", "status=2xx"], "--check"),
        (&["--slo", "p90=1s", "--votes", "--body", "SELECT 1"], "different requests"),
        (&["--slo", "p90=1s", "--users", "constant"], "telephones"),
        (&["--slo", "max=1s"], "p99.9"),
    ] {
        let ended = search(&place, &target.url, flags).expect(64);
        assert!(ended.stderr.contains(word), "no {word:?} in {}", ended.stderr);
    }
}

#[test]
fn statements_and_procedures_of_voltdb_are_searched_and_loaded() {
    let place = Place::busy();
    let target = place.serve(&["voter", "--port", "0"]);
    let url = target.url.as_str();
    // The preparation of votes makes the contestants.
    place.run(["voter", url, "--calls", "10", "--quiet"]).expect(0);
    let calls = "-- two that work, and one that is not there\n\
                 SELECT contestant_name FROM contestants\nexec Vote 2125550100 1 1000000\nexec Nothing 'a, b'\n";
    place.file("calls.sql", calls);
    let classes = ["--class", "select=SELECT", "--class", "vote=Vote", "--class", "bad=Nothing"];
    let args = ["load", url, "--queries", "calls.sql", "--requests", "300", "--json", "-"];
    let run = Record::of(&place.run([&args[..], &classes].concat()));
    run.expect_balanced();
    assert_eq!((run.count("/classes/select/ok"), run.count("/classes/vote/ok")), (100, 100));
    assert_eq!(run.count("/classes/bad/failed/app"), 100);
    // The contestants are rows, and rows are hits.
    let select = &run.0["classes"]["select"];
    assert_eq!((select["hits_known"].as_u64(), select["zero_hits"].as_u64()), (Some(100), Some(0)));
    let flags = ["--queries", "calls.sql", "--max-rate", "200", "--start-rate", "50"];
    let of = |limit: &[&str]| {
        let time = ["--budget", "15s"];
        search(&place, url, &[&flags[..], &classes, limit, &time].concat())
    };
    let good = found(&of(&["--slo", "errors{class=vote}=10%", "--slo", "p90{class=select}=500ms"]));
    assert_ne!(good.verdict(), "infeasible", "{:#}", good.0["verdict"]);
    assert!(good.count("/classes/vote/ok") > 100 && good.count("/classes/bad/ok") == 0);
    // As many connections in each part as there are hosts.
    assert!(good.count("/counters/connects") < 100, "{}", good.0["counters"]);
    let bad = found(&of(&["--slo", "p90{class=bad}=50ms"]).expect(2));
    assert_eq!(bad.verdict(), "infeasible");
    let one = ["--body", "SELECT count(*) FROM votes", "--slo", "p50=1s", "--max-rate", "50"];
    let one = found(&search(&place, url, &[&one[..], &["--budget", "10s"]].concat()));
    assert_eq!((one.ok(), one.verdict() == "infeasible"), (one.sent(), false));
    for (flags, word) in [
        (&["--queries", "calls.sql", "--slo", "p50=1s", "--http2"][..], "--http2"),
        (&["--body", "SELECT 1", "--queries", "calls.sql", "--slo", "p50=1s"], "leave one out"),
        (&["--feed", "calls.sql", "--slo", "p50=1s"], "over HTTP"),
        (&["--body", "exec", "--slo", "p50=1s"], "the procedure is missing"),
        (&["--body", "exec Vote 'open", "--slo", "p50=1s"], "is not closed"),
    ] {
        let ended = search(&place, url, flags).expect(64);
        assert!(ended.stderr.contains(word), "no {word:?} in {}", ended.stderr);
    }
    let port = crate::server::closed_port();
    let nobody = format!("volt://127.0.0.1:{port}");
    let ended = search(&place, &nobody, &["--body", "SELECT 1", "--slo", "p50=1s"]).expect(4);
    assert!(ended.stderr.contains("nothing is listening"), "{}", ended.stderr);
}

#[test]
fn votes_and_calls_of_voltdb_itself_have_lines() {
    install("voltdb");
    let place = Place::busy();
    let target = place.serve(&["voltdb", "--data", "data", "--heap", "256MiB"]);
    let rates = ["--start-rate", "50", "--max-rate", "200", "--budget", "15s", "--seed", "3"];
    let of = |what: &[&str]| search(&place, &target.url, &[what, &rates[..]].concat());
    let votes = found(&of(&["--slo", "p50=500ms"]));
    assert_ne!(votes.verdict(), "infeasible", "{:#}", votes.0["verdict"]);
    assert_eq!(votes.text("/voter/check"), "ok", "{:#}", votes.0["voter"]);
    assert_eq!(votes.count("/voter/rows_after"), votes.count("/voter/accepted"));
    assert!(votes.count("/voter/accepted") > 100, "{:#}", votes.0["voter"]);
    place.file("calls.sql", "SELECT COUNT(*) FROM contestants\nexec Nothing 1\n");
    let classes = ["--queries", "calls.sql", "--class", "bad=Nothing"];
    let calls = found(&of(&[&classes[..], &["--slo", "p90{class=bad}=50ms"]].concat()));
    assert_eq!(
        calls.verdict(),
        "infeasible",
        "a procedure that is not there is late at every rate"
    );
    assert!(calls.count("/classes/other/ok") > 20 && calls.count("/classes/bad/ok") == 0);
}

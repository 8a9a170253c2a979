//! Bad input: one clear line on stderr, exit code 64, and nothing is sent.

use crate::process::{Ended, Place};
use crate::server::Server;
use std::path::Path;

/// One line on stderr that holds `word`; stdout empty; exit code 64.
#[track_caller]
pub fn refused(ended: Ended, word: &str) {
    let ended = ended.expect(64);
    assert_eq!(ended.stderr.lines().count(), 1, "not one line:\n{}", ended.stderr);
    assert!(ended.stderr.starts_with("plimsoll: "), "{}", ended.stderr);
    assert!(ended.stderr.contains(word), "no {word:?} in {}", ended.stderr);
    assert_eq!(ended.stdout, "", "something was printed before the input was known to be good");
    assert!(ended.stderr.len() < 400, "{}", ended.stderr);
}

/// Files that tests name.
fn files(place: &Place) {
    place.file("good.txt", "/a\n/b\n");
    place.file("empty.txt", "");
    place.file("blank.txt", "\n\n  \n");
    place.file("long.txt", format!("/a\n/{}\n", "b".repeat(200_000)));
    place.file("post.txt", "{\"no\":\"url\"}\n/a\nbody\n");
    place.file("nul.txt", b"/a\n/b\0c\n");
    place.file("rows.csv", "a,b\n1,2\n3,two words\n");
    place.file("ragged.csv", "a,b\n1,2\n3\n");
    place.file("open.csv", "a,b\n1,2\n\"3,4\n5,6\n7,8\n");
    place.file("unknown.txt", "/?{{a}}\n/?{{c}}\n");
    place.file("raw.txt", "/?{{{b}}}\n");
    place.file("foreign.txt", "/a\nhttp://example.org/b\n");
    place.file("bare.txt", "/a\nok\n");
    place.file("methods.txt", "GET /a\n");
    place.file("array.ndjson", "[{\"path\":\"/a\"}]\n");
    place.file("space.txt", "/a\n/b c\n");
    place.file("bad.ndjson", "{\"path\":\"/a\"}\n{\"pat\":\"/b\"}\n");
    place.file("cut.ndjson", "{\"path\":\"/a\"}\n{\"path\":\n");
}

#[test]
fn fbench() {
    let (place, server) = (Place::new(), Server::ok());
    files(&place);
    let port = server.port();
    let cases: &[(&[&str], &str)] = &[
        (&["-q", "missing.txt"], "missing.txt"),
        (&["-q", "query%03d.txt"], "query000.txt"),
        (&["-q", "empty.txt"], "empty.txt"),
        (&["-q", "blank.txt"], "blank.txt"),
        (&["-q", "."], "."),
        (&["-q", "nul.txt"], "nul.txt:2: NUL byte"),
        (&["-q", "space.txt"], "space.txt:2: blank"),
        (&["-P", "-q", "post.txt"], "post.txt:1: body without a URL"),
        (&["-P", "-d", "-q", "bad.ndjson"], "bad.ndjson:1"),
        (&["-n", "0", "-q", "good.txt"], "-n must be at least 1"),
        (&["-q", "good.txt", "--connect-timeout", "0s"], "--connect-timeout: must be more than 0"),
        (&["-q", "good.txt", "-H", "X: ${NOT_SET_HERE}"], "-H 'X': the environment variable"),
        (&["-n", "-1", "-q", "good.txt"], "-n"),
        (&["-n", "x", "-q", "good.txt"], "'x'"),
        (&["-n", "1000000", "-q", "good.txt"], "-n"),
        (&["-c", "fast", "-q", "good.txt"], "'fast'"),
        (&["-s", "0", "-q", "good.txt"], "-s must be at least 1"),
        (&["-s", "-5", "-q", "good.txt"], "-s"),
        (&["-s", "1.5", "-q", "good.txt"], "'1.5'"),
        (&["-p", "-1", "-q", "good.txt"], "-p"),
        (&["-r", "-2", "-q", "good.txt"], "-r"),
        (&["-d", "-q", "good.txt"], "-P"),
        (&["-H", "no colon", "-q", "good.txt"], "-H"),
        (&["-H", "X: a\nY: b", "-q", "good.txt"], "control character"),
        (&["-a", "&a b", "-q", "good.txt"], "-a"),
        (&["-A", "a b", "-q", "good.txt"], "-A"),
        (&["-A", "host:port", "-q", "good.txt"], "-A"),
        (&["-q", "%s.txt"], "%s"),
        (&["-q", "good.txt", "-o", "no/such/dir%d"], "no/such/dir"),
        (&["-q", "good.txt", "--threads", "0"], "--threads"),
        (&["-q", "good.txt", "--timeout", "0s"], "--timeout"),
        (&["-q", "good.txt", "--timeout", "soon"], "soon"),
        (&["-q", "good.txt", "--json", "no/such/dir/run.json"], "--json"),
        (&["-q", "good.txt", "--json", "."], "--json"),
        (&["-u", "-q", "good.txt"], "-u"),
    ];
    for (flags, word) in cases {
        let mut args = vec!["fbench", "-n", "1"];
        if flags.contains(&"-n") || flags.contains(&"-o") {
            args.truncate(1);
        }
        args.extend(*flags);
        args.extend(["127.0.0.1", &port]);
        refused(place.run(args), word);
    }
    assert_eq!(server.connections(), 0, "load was sent in spite of bad input");
    assert!(!place.path().join("runs").exists(), "a record of nothing");
}

#[test]
fn hosts_and_ports() {
    let place = Place::new();
    files(&place);
    for (hosts, word) in [
        (&[][..], "HOST"),
        (&["127.0.0.1"], "no port"),
        (&["127.0.0.1", "80", "other"], "'other' has no port"),
        (&["127.0.0.1", "0"], "'0'"),
        (&["127.0.0.1", "http"], "'http'"),
        (&["127.0.0.1", "65536"], "65536"),
        (&["http://127.0.0.1", "80"], "without a scheme"),
        (&["", "80"], "host"),
        (&["a b", "80"], "host"),
    ] {
        let mut args = vec!["fbench", "-n", "1", "-r", "0", "-q", "good.txt"];
        args.extend(hosts);
        refused(place.run(args), word);
    }
}

/// `load` with the server's address and these flags.
fn load(place: &Place, server: &Server, flags: &[&str]) -> Ended {
    let url = format!("{}/", server.url());
    let mut args = vec!["load", url.as_str()];
    args.extend(flags);
    place.run(args)
}

#[test]
fn load_files_and_requests() {
    let (place, server) = (Place::new(), Server::ok());
    files(&place);
    let cases: &[(&[&str], &str)] = &[
        (&["--queries", "missing.txt"], "missing.txt"),
        (&["--queries", "empty.txt"], "empty.txt"),
        (&["--queries", "nul.txt"], "nul.txt:2"),
        (&["--queries", "bad.ndjson"], "bad.ndjson:2: unknown key \"pat\""),
        (&["--queries", "cut.ndjson"], "cut.ndjson:2"),
        (&["--queries", "post.txt", "--post"], "post.txt:1"),
        (&["--body", "@missing"], "missing"),
        (&["--header", "X: a\nY: b"], "control character"),
        (&["--header", "X: a\r\nY: b"], "control character"),
        (&["--header", "nothing"], "--header"),
        (&["--header", "Content-Length: 5"], "--header"),
        (&["--method", "GET /"], "--method"),
        (&["--order", "up"], "--order"),
        (&["--class", "noregex"], "noregex"),
        (&["--class", "a=("], "--class a: invalid regular expression: unclosed group"),
        (&["--check", "status=7"], "status=7"),
        (&["--check", "nonsense"], "nonsense"),
        (&["--check", "body=~a("], "invalid regular expression: unclosed group"),
        (&["--hits", "hits/total"], "--hits"),
        (&["--json", "no/such/dir/run.json"], "--json no/such/dir/run.json"),
        (&["--json", "."], "--json"),
        (&["--cacert", "ca.pem"], "https://"),
        (&["--insecure"], "https://"),
        (&["--sni", "name"], "--sni"),
        (&["--post"], "--queries"),
        (&["--queries", "."], ".: not a regular file"),
        (&["--rows", "missing.csv"], "missing.csv"),
        (&["--rows", "ragged.csv"], "ragged.csv:3: 1 values for 2 columns"),
        (&["--rows", "rows.csv"], "no request names one of its columns; write {{a}}"),
        (
            &["--rows", "rows.csv", "--header", "X: {{c}}"],
            "'{{c}}' is not a column of the rows; they have a, b",
        ),
        (
            &["--rows", "rows.csv", "--queries", "unknown.txt"],
            "unknown.txt:2: '{{c}}' is not a column",
        ),
        (&["--rows", "rows.csv", "--body", "{{a", "--order", "random"], "'{{a' is not closed"),
        (
            &["--rows", "rows.csv", "--queries", "raw.txt"],
            "rows.csv:3: column 'b': a value with a blank",
        ),
        (
            &["--rows", "rows.csv", "--rows-per", "user", "--body", "{{a}}"],
            "--rows-per user needs --users",
        ),
        (
            &["--rows", "open.csv", "--body", "{{a}}"],
            "open.csv:3: a quotation mark that opens a value is not closed",
        ),
        (&["--rows-order", "queue"], "--rows FILE"),
        (&["--header", "X: {{term}}"], "{{term}} needs rows; use --rows FILE"),
        (&["--queries", "unknown.txt"], "unknown.txt:1: {{a}} needs rows"),
        (&["--queries", "foreign.txt"], "foreign.txt:2: 'http://example.org/b' is not at http://"),
        (&["--queries", "bare.txt"], "bare.txt:2: 'ok' does not begin with '/'; write /ok"),
        (&["--queries", "methods.txt"], "methods.txt:1: 'GET /a' begins with a method"),
        (&["--queries", "array.ndjson"], "array.ndjson:1: "),
        (&["--check", "hits>=1", "--hits", "off"], "--hits off"),
        (&["--check", "time<5"], "time<500ms"),
        (&["--runs", "good.txt"], "--runs"),
    ];
    for (flags, word) in cases {
        refused(load(&place, &server, flags), word);
    }
    assert_eq!(server.connections(), 0, "load was sent in spite of bad input");
    assert!(!place.path().join("runs").exists(), "a record of nothing");
}

#[test]
fn a_query_file_that_would_be_sent_in_part_or_otherwise_is_rejected() {
    let (place, server) = (Place::new(), Server::ok());
    files(&place);
    let long = "long.txt: the URL of 1 records has 131072 bytes or more";
    refused(load(&place, &server, &["--queries", "long.txt"]), long);
    let own = "bad.ndjson:1: a line of NDJSON has its own method and body";
    refused(load(&place, &server, &["--queries", "bad.ndjson", "--method", "PUT"]), own);
    assert_eq!(server.connections(), 0);
}

#[test]
fn load_models_and_limits() {
    let (place, server) = (Place::new(), Server::ok());
    let cases: &[(&[&str], &str)] = &[
        (&["--rate", "10", "--clients", "2"], "--clients and --rate"),
        (&["--burst", "5", "--every", "1s", "--rate", "1"], "--rate and --burst"),
        (&["--rate-profile", "1:1s", "--rate", "1"], "--rate and --rate-profile"),
        (&["--rate", "10", "--think", "1s"], "--rate"),
        (&["--arrivals", "poisson"], "--arrivals"),
        (&["--burst", "5"], "--every"),
        (&["--every", "1s"], "--burst"),
        (&["--queue", "5"], "--slots"),
        (&["--slots", "0"], "--slots must be at least 1"),
        (&["--clients", "0"], "client"),
        (&["--rate", "0"], "rate"),
        (&["--rate", "-5"], "--rate: '-5' is not a rate; expected a number per second"),
        (&["--think", "1s", "--cycle", "1s"], "--think and --cycle"),
        (&["--clients", "4294967295"], "at most 100,000 clients"),
        (&["--clients", "ten"], "--clients: 'ten' is not a number"),
        (&["--rate", "10/week"], "such as 1000, 1.5k/s or 60/min"),
        (&["--connections", "4294967295"], "--connections"),
        (&["--burst", "4294967295", "--every", "1ns"], "10,000,000"),
        (&["--connect-timeout", "0"], "--connect-timeout"),
        (&["--duration", "-1s"], "see plimsoll load --help"),
        (&["--clinets", "5"], "unknown option '--clinets'; did you mean '--clients'?"),
        (&["--rate", "nan"], "rate"),
        (&["--users", "at once 5", "--rate", "1"], "--rate and --users"),
        (&["--users", "at once 5, concurrent 5 during 1s"], "--users: column 12: "),
        (&["--users", "ramp 100 for 10s"], "column 10: 'for' where 'during' should be"),
        (&["--users", "jump 5"], "'jump' is not a step"),
        (&["--users", "at once 5", "--cycle", "1s"], "--cycle"),
        (&["--users", "at once 5", "--think", "gamma 1s"], "is not a think time"),
        (&["--users", "at once 5", "--user-requests", "0"], "--user-requests must be at least 1"),
        (&["--users", "at once 5", "--passes", "0"], "--passes must be at least 1"),
        (&["--users", "at once 5", "--passes", "4000000000"], "more than 16000000"),
        (&["--users", "at once 5", "--order", "up"], "--order 'up'"),
        (&["--order", "block"], "--order block is an order for users"),
        (&["--passes", "2"], "--passes belongs to users"),
        (&["--pace", "1s", "--clients", "2"], "--pace belongs to users"),
        (&["--assert", "p95 < 5ms"], "'p95' is not a scope"),
        (&["--assert", "global p95 < 5"], "has no unit"),
        (&["--assert", "class x p95 < 5ms"], "unknown class 'x'; write one of all"),
        (&["--rate", "inf"], "rate"),
        (&["--burst", "0", "--every", "1s"], "burst"),
        (
            &["--rate-profile", "5:1s,0-5:1s", "--warmup", "2s"],
            "--warmup is as long as the whole profile",
        ),
        (&["--rate-profile", "5"], "--rate-profile '5'"),
        (&["--rate-profile", "5:fast"], "5:fast"),
        (&["--duration", "10 parsecs"], "parsecs"),
        (&["--duration", "0s"], "--duration"),
        (&["--requests", "0"], "--requests must be at least 1"),
        (&["--connections", "0"], "--connections must be at least 1"),
        (&["--connections", "4000000000", "--rate", "1"], "from 1 to 100,000"),
        (&["--clients", "4000000000"], "at most 100,000 clients"),
        (&["--slots", "2", "--threads", "3"], "--slots 2"),
        (
            &["--connections", "2", "--threads", "8", "--rate", "9"],
            "--connections 2 is less than one",
        ),
        (&["--connections", "1", "--threads", "4", "--clients", "9"], "use fewer --threads"),
        (&["--threads", "0"], "--threads"),
        (&["--threads", "5000"], "--threads"),
        (&["--timeout", "0s"], "--timeout"),
        (&["--seed", "x"], "'x'"),
        (&["--nosuchflag"], "--nosuchflag"),
    ];
    for (flags, word) in cases {
        refused(load(&place, &server, flags), word);
    }
    assert_eq!(server.connections(), 0, "load was sent in spite of bad input");
}

#[test]
fn urls() {
    let place = Place::new();
    files(&place);
    for (args, word) in [
        (&["load"][..], "URL"),
        (&["load", "127.0.0.1:8080/"], "has no scheme; write http://127.0.0.1:8080/"),
        (&["load", "localhost"], "no scheme"),
        (&["load", "ftp://127.0.0.1/"], "ftp"),
        (&["load", "http://"], "http://"),
        (&["load", "http://127.0.0.1/a\nb"], "a\\nb"),
        (&["load", "http://127.0.0.1:99999/"], "99999"),
        (&["load", "http://127.0.0.1:0/"], ":0"),
        (&["load", "http://127.0.0.1/a b"], "blank"),
        (&["load", "http://127.0.0.1/", "https://127.0.0.1/"], "https://"),
        (&["load", "http://127.0.0.1/path", "--queries", "good.txt"], "/path"),
        (&["load", "https://127.0.0.1/", "--cert", "good.txt"], "key"),
        (&["load", "https://127.0.0.1/", "--cacert", "missing.pem"], "missing.pem"),
        (&["load", "http://user:secret@127.0.0.1/"], "--header"),
    ] {
        refused(place.run(args), word);
    }
}

#[test]
fn scenarios_and_jobs() {
    let place = Place::new();
    let (unknown, wrong) = ("no-such-job", "wrong.toml");
    place.file(wrong, "job = \"x\"\ntargets = [\"http://127.0.0.1:1/\"]\nduraton = \"1s\"\n");
    place.file("syntax.toml", "targets = [\n");
    place.file("none.toml", "job = \"x\"\n");
    place.file("parts.txt", "/a\n/b\n");
    for (name, line) in [
        ("time.toml", "duration = \"0s\""),
        ("count.toml", "requests = 0"),
        ("unit.toml", "slo = [\"p95=100\"]"),
        ("twice.toml", "slo = [\"p95=100ms\", \"p95=1s\"]"),
        ("connections.toml", "connections = 0"),
        (
            "slots.toml",
            "admission = { mode = \"managed\", slots = 0, queue_max = 1, queue_timeout_ns = 1 }",
        ),
    ] {
        place.file(name, format!("targets = [\"http://127.0.0.1:1/\"]\n{line}\n"));
    }
    for (args, word) in [
        (&["run", unknown][..], "no-such-job"),
        (&["run"], "JOB"),
        (&["run", "missing.toml"], "missing.toml"),
        (&["run", wrong], "wrong.toml:3: unknown field `duraton`"),
        (&["run", "syntax.toml"], "syntax.toml:1"),
        (&["run", "none.toml"], "none.toml: no target"),
        (&["run", "time.toml"], "time.toml:2: `duration` must be above 0"),
        (&["run", "count.toml"], "count.toml:2: `requests` must be at least 1"),
        (
            &["run", "unit.toml"],
            "unit.toml:2: field `slo`: 'p95=100' is not a limit: a time needs its unit: p95=100ms",
        ),
        (&["run", "twice.toml"], "both limits of p95"),
        (&["run", "connections.toml"], "connections.toml:2: `connections` must be at least 1"),
        (&["run", "slots.toml"], "slots.toml: --slots must be at least 1"),
        (&["run", "quickstart", "--json", "x.json"], "two records"),
        (&["nosuchcommand"], "nosuchcommand"),
        (&["serve"], "elasticsearch, postgresql, voltdb, nats; see plimsoll serve --help"),
        (&["serve", "null", "--port", "70000"], "70000"),
        (&["serve", "null", "--threads", "0"], "thread"),
        (&["serve", "queue", "--service", "sometimes"], "sometimes"),
        (&["serve", "queue", "--rate", "0"], "--rate 0"),
        (&["serve", "queue", "--stall", "1s"], "--stall-every"),
        (&["serve", "queue", "--stall", "2s", "--stall-every", "1s"], "stall"),
        (&["serve", "queue", "--reject-status", "200"], "200"),
        (&["serve", "null", "--host", "not an address"], "not an address"),
        (&["corpus", "info", "--source", "internet"], "internet"),
        (&["corpus", "write", "--source", "bundled", "--manifest", "m.json"], "synthetic"),
        (&["corpus", "queries", "--format", "xml"], "xml"),
        (&["split-file", "0", "x.txt"], "x.txt"),
        (&["split-file", "4", "missing.txt"], "missing.txt"),
        (
            &["split-file", "-p", "no/such/q%d.txt", "2", "parts.txt"],
            "no/such/q0.txt: no such file or folder",
        ),
        (&["split-file", "-p", "one.txt", "4", "missing.txt"], "one.txt"),
    ] {
        // A part of 0 and a file that is missing are both wrong; either may be told.
        let word = if args == ["split-file", "0", "x.txt"] { "" } else { word };
        refused(place.run(args), word);
    }
    assert!(!Path::new(&place.path().join("m.json")).exists());
}

#[test]
fn a_port_in_use_is_one_line() {
    let (place, server) = (Place::new(), Server::ok());
    refused(place.run(["serve", "null", "--port", &server.port()]), &server.port());
}

#[test]
fn limits_of_load() {
    let (place, server) = (Place::new(), Server::ok());
    let cases: &[(&[&str], &str)] = &[
        (&["--slo", "p95"], "p95"),
        (&["--slo", "p95=100"], "p95=100ms"),
        (&["--slo", "mean=5"], "mean=5ms"),
        (&["--slo", "errors=1"], "errors=1%"),
        (&["--slo", "p95=1us", "--slo", "p95=10s"], "both limits of p95"),
        (&["--slo", "avg=1ms", "--slo", "mean=2ms"], "both limits of mean"),
        (&["--slo", "p0=5ms"], "p0"),
        (&["--slo", "p101=5ms"], "p101"),
        (&["--slo", "median=5ms"], "median"),
        (&["--slo", "p95=fast"], "p95=fast"),
        (&["--slo", "errors=200%"], "errors"),
    ];
    for (flags, word) in cases {
        refused(load(&place, &server, flags), word);
    }
    assert_eq!(server.connections(), 0, "load was sent in spite of bad input");
}

#[test]
fn limits_schemes_and_times_of_other_commands() {
    let place = Place::new();
    for (args, word) in [
        (&["seek", "http://127.0.0.1:1/", "--slo", "p95=100"][..], "p95=100ms"),
        (&["seek", "http://127.0.0.1:1/", "--slo", "p95=1s", "--slo", "p95=2s"], "both limits"),
        (&["rank", "--slo", "p95=500"], "p95=500ms"),
        (&["serve", "queue", "--service", "exponential:0"], "the mean in ns"),
        (&["serve", "queue", "--service", "gamma:2,0s"], "the mean in ns"),
        (
            &["load", "ftp://127.0.0.1/"],
            "write http:// or https://; plimsoll load and seek also know",
        ),
        (&["load", "unix:/x.sock"], "Unix sockets are not supported"),
        (
            &[
                "seek",
                "postgres://127.0.0.1/",
                "http://127.0.0.1/",
                "--slo",
                "p95=1s",
                "--body",
                "x",
            ],
            "some targets are postgres:// and some are not",
        ),
        (&["seek", "http://127.0.0.1:1/", "--slo", "p95=1s", "--confidence", "100"], "such as 95%"),
        (&["seek", "http://127.0.0.1:1/", "--slo", "p95=1s", "--rate", "10"], "--start-rate"),
        (
            &["seek", "http://127.0.0.1:1/", "--slo", "p95=1s", "--max-rate", "0"],
            "--max-rate must be above 0",
        ),
    ] {
        refused(place.run(args), word);
    }
}

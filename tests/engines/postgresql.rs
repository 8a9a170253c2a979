//! PostgreSQL as a target, and load on it.

use super::refused;
use crate::process::{PATIENCE, Place, Running, Target, expect_gone};
use crate::record::Record;
use plimsoll_engine::exchange::Exchange;
use plimsoll_wire::postgres::{Login, Postgres, Request, Statement};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);

/// A folder that the account of PostgreSQL can reach when the tests are root's.
pub(super) fn reachable() -> Place {
    let place = Place::new();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).unwrap();
    place
}

/// A connection to the role that `serve` has made.
fn connect(target: &Target, password: Option<&str>, statements: &[&str]) -> Exchange<Postgres> {
    let login = Login::new("plimsoll", password, "plimsoll", &[]).unwrap();
    let statements: Vec<_> = statements.iter().map(|sql| Statement::new(*sql).unwrap()).collect();
    let protocol = Postgres::new(login).with_statements(statements);
    let address = plimsoll_engine::target::Target::resolve(&target.host, target.port);
    Exchange::connect(protocol, &address, LIMIT).unwrap()
}

/// What a statement comes to: rows, first value, tag, and the SQLSTATE of an error.
type Answer = (u64, Option<String>, String, Option<String>);

#[track_caller]
fn ask(exchange: &mut Exchange<Postgres>, request: &Request) -> Answer {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    exchange
        .ask(request, |reply| {
            (
                reply.rows,
                reply.value(0).map(text),
                text(reply.tag),
                reply.error.map(|error| text(error.code())),
            )
        })
        .unwrap()
}

#[track_caller]
fn sql(exchange: &mut Exchange<Postgres>, sql: &str) -> Answer {
    let mut request = Request::default();
    request.query(sql).unwrap();
    ask(exchange, &request)
}

fn done(rows: u64, value: Option<&str>, tag: &str) -> Answer {
    (rows, value.map(str::to_owned), tag.to_owned(), None)
}

#[test]
fn statements_loads_and_errors_are_as_the_server_means_them() {
    let place = Place::new();
    let target = place.serve(&["postgresql", "--ready-file", "ready.txt", "--durability", "none"]);
    assert_eq!(place.read("ready.txt"), format!("ready postgresql {}\n", target.url));
    let own = [
        "INSERT INTO t VALUES ($1, $2)",
        "SELECT name FROM t WHERE id = $1",
        "SELECT $1::no",
        "COPY t FROM STDIN",
    ];
    let mut exchange = connect(&target, None, &own);
    let ask_sql = sql;
    assert_eq!(
        ask_sql(&mut exchange, "CREATE TABLE t (id int PRIMARY KEY, name text)"),
        done(0, None, "CREATE TABLE")
    );
    let mut request = Request::default();
    for (id, name) in [(&b"1"[..], Some(&b"one"[..])), (b"2", None)] {
        request.execute(0, &[Some(id), name]);
        assert_eq!(ask(&mut exchange, &request), done(0, None, "INSERT 0 1"));
    }
    request.execute(1, &[Some(b"1")]);
    assert_eq!(ask(&mut exchange, &request), done(1, Some("one"), "SELECT 1"));
    request.execute(1, &[Some(b"2")]);
    assert_eq!(ask(&mut exchange, &request), done(1, None, "SELECT 1"), "NULL");
    request.execute(0, &[Some(b"1"), None]);
    assert_eq!(ask(&mut exchange, &request).3.as_deref(), Some("23505"), "a duplicate");
    // A statement that cannot be parsed is an error each time, and the connection goes on.
    for _ in 0..2 {
        request.execute(2, &[Some(b"1")]);
        assert_eq!(ask(&mut exchange, &request).3.as_deref(), Some("42704"));
    }
    let mut rows = Vec::new();
    for id in 10..50_010 {
        rows.extend_from_slice(format!("{id}\tname {id}\n").as_bytes());
    }
    request.copy_in("COPY t FROM STDIN", &rows).unwrap();
    assert_eq!(ask(&mut exchange, &request), done(0, None, "COPY 50000"));
    request.copy_in("COPY no_such_table FROM STDIN", &rows).unwrap();
    assert_eq!(ask(&mut exchange, &request).3.as_deref(), Some("42P01"));
    // Rows that are asked for and do not come are refused at once, instead of waiting for ever.
    assert!(ask_sql(&mut exchange, "COPY t FROM STDIN").3.is_some());
    request.execute(3, &[]);
    assert_eq!(ask(&mut exchange, &request).3.as_deref(), Some("57014"));
    assert_eq!(
        ask_sql(&mut exchange, "SELECT name FROM t ORDER BY id"),
        done(50_002, Some("one"), "SELECT 50002")
    );
    assert_eq!(ask_sql(&mut exchange, "COPY t TO STDOUT").0, 50_002);
    assert_eq!(ask_sql(&mut exchange, "SELECT repeat('x', 3000000)").0, 1, "a long row");
    // What full-text search needs may be created by the role itself.
    assert_eq!(
        ask_sql(&mut exchange, "CREATE EXTENSION pg_trgm"),
        done(0, None, "CREATE EXTENSION")
    );
    // Two executions before one Sync are one transaction.
    request.clear();
    request.push_execute(0, &[Some(b"3"), None]);
    request.push_execute(0, &[Some(b"1"), None]);
    request.sync();
    assert_eq!(ask(&mut exchange, &request).3.as_deref(), Some("23505"));
    request.execute(1, &[Some(b"3")]);
    assert_eq!(ask(&mut exchange, &request).0, 0, "the first of them stayed");
    target.process.signal(Signal::TERM);
    let ended = target.process.wait(Duration::from_secs(10)).expect(0);
    assert_eq!(ended.stderr, "", "a client that stays does not keep it");
}

#[test]
fn load_of_both_kinds_counts_rows_and_failures() {
    let place = Place::new();
    let target = place.serve(&["postgresql", "--durability", "none"]);
    place.file("q.sql", "-- a file\nSELECT generate_series(1, 3)\nSELECT 1/(1-1)\n\nSELECT 'x'\n");
    for method in ["simple", "prepared"] {
        let args = [
            "load",
            &target.url,
            "--queries",
            "q.sql",
            "--sql-mode",
            method,
            "--clients",
            "2",
            "--requests",
            "300",
            "--threads",
            "2",
            "--class",
            "wrong=1/",
            "--json",
            "-",
            "--quiet",
        ];
        let ended = place.run(args);
        let record = Record::of(&ended);
        assert_eq!(record.count("/ledger/sent"), 300, "{}", ended.stderr);
        assert_eq!(record.count("/ledger/failed/app"), 100, "{method}");
        assert_eq!(record.ok(), 200);
        assert_eq!(record.count("/classes/wrong/failed/app"), 100);
        assert!(record.text("/target/url").starts_with("postgres://***@127.0.0.1:"));
    }
    let runs = std::fs::read_dir(place.path().join("runs")).unwrap();
    for run in runs.flatten() {
        let failures = std::fs::read_to_string(run.path().join("failures.ndjson")).unwrap();
        assert!(failures.contains("division by zero (SQLSTATE 22012)"), "{failures}");
        assert!(failures.contains("line 3: SELECT 1/(1-1)"), "{failures}");
    }
    // An open model whose connections must all log in first loses nothing.
    let args = [
        "load",
        &target.url,
        "--body",
        "SELECT 1",
        "--rate",
        "200",
        "--connections",
        "20",
        "--duration",
        "1s",
        "--json",
        "-",
        "--quiet",
    ];
    let record = Record::of(&place.run(args));
    assert_eq!((record.count("/ledger/scheduled"), record.ok()), (200, 200));
    for (args, word) in [
        (&["--body", "SELECT 1", "--header", "A: b"][..], "--header"),
        (&["--body", "SELECT 1", "--check", "status=2xx"], "--check"),
        (&["--body", "SELECT 1", "--method", "GET"], "write --sql-mode simple"),
        (&[], "needs SQL"),
        (&["--queries", "none.sql"], "none.sql"),
        (&["--body=-- nothing"], "no statement"),
    ] {
        let all = [&["load", target.url.as_str()], args].concat();
        refused(place.run(all), 64, &[word]);
    }
    let other = format!("postgres://plimsoll@127.0.0.1:{}/none", target.port);
    refused(place.run(["load", &other, "--body", "SELECT 1"]), 64, &["pg_hba.conf"]);
}

#[test]
fn users_ask_all_of_a_file_in_their_order() {
    let place = Place::new();
    let target = place.serve(&["postgresql", "--durability", "none"]);
    let mut exchange = connect(&target, None, &[]);
    sql(&mut exchange, "CREATE TABLE asked (at serial, what text)");
    let insert = |what| format!("INSERT INTO asked (what) VALUES ('{what}')\n");
    place.file("q.sql", [insert("a"), insert("b"), insert("c")].concat());
    let load = |own: &[&str]| {
        let args = ["load", &target.url, "--queries", "q.sql", "--json", "-", "--quiet"];
        place.run([&args[..], own].concat())
    };
    let one = ["--users", "at once 1", "--order", "block", "--passes", "2"];
    let record = Record::of(&load(&one));
    record.expect_balanced();
    assert_eq!((record.ok(), record.count("/scenario/load/requests")), (6, 6));
    let order = sql(&mut exchange, "SELECT string_agg(what, '' ORDER BY at) FROM asked").1;
    assert_eq!(order.as_deref(), Some("aabbcc"));
    // Each user asks the whole file, whichever thread it is on.
    let many = Record::of(&load(&["--users", "ramp 10 during 100ms", "--threads", "2"]));
    assert_eq!(many.ok(), 30);
    place.file("rows.csv", "w\n1\n");
    for (own, word) in [
        (&["--rows", "rows.csv"][..], "--rows fills HTTP requests"),
        (&["--passes", "2"], "--users"),
        (&["--assert", "class x failed.count is 0"], "unknown class 'x'"),
    ] {
        refused(load(own), 64, &[word]);
    }
}

#[test]
fn passwords_are_asked_for_in_every_way_and_data_is_kept() {
    let place = reachable();
    let serve = |method: &str| {
        let args = ["serve", "postgresql", "--data", "data", "--auth", method];
        let mut command = place.plimsoll(args);
        command.env("PGPASSWORD", "it's a secret");
        let running = Running::start(command, b"");
        let text = running.wait_for("ready ", Duration::from_secs(60));
        (running, text.trim().rsplit(' ').next().unwrap().to_owned())
    };
    for (count, method) in (1..).zip(["scram-sha-256", "md5", "password"]) {
        if method == "password" {
            // As a start leaves it that is cut off when it has made the role and has not noted it.
            std::fs::remove_file(place.path().join("data/cluster/plimsoll-role")).unwrap();
        }
        let (running, url) = serve(method);
        let second = place.run(["serve", "postgresql", "--data", "data"]);
        refused(second, 64, &["engine.log is the log of an engine that still runs"]);
        let load = |password: &str, file: &str| {
            let sql = "INSERT INTO kept DEFAULT VALUES";
            let args =
                ["load", &url, "--body", sql, "--clients", "1", "--requests", "1", "--json", file];
            let mut command = place.plimsoll(args);
            command.args(["--quiet", "--runs", "runs"]).env("PGPASSWORD", password);
            Running::start(command, b"").wait(PATIENCE)
        };
        refused(load("wrong", "-"), 64, &["password authentication failed for user \"plimsoll\""]);
        let port = url.rsplit(':').next().unwrap().parse().unwrap();
        let address = plimsoll_engine::target::Target::resolve("127.0.0.1", port);
        let login = Login::new("plimsoll", Some("it's a secret"), "plimsoll", &[]).unwrap();
        let mut exchange = Exchange::connect(Postgres::new(login), &address, LIMIT).unwrap();
        sql(&mut exchange, "CREATE TABLE IF NOT EXISTS kept (id serial)");
        assert_eq!(Record::of(&load("it's a secret", "-")).ok(), 1, "{method}");
        let kept = sql(&mut exchange, "SELECT count(*) FROM kept").1;
        assert_eq!(kept, Some(count.to_string()), "{method}: rows of the starts before");
        let processes = running.descendants();
        if method == "md5" {
            // Killed: the server goes with it, and recovers at the next start.
            running.signal(Signal::KILL);
            running.wait(PATIENCE);
        } else {
            running.signal(Signal::TERM);
            running.wait(Duration::from_secs(10)).expect(0);
        }
        expect_gone(&processes);
    }
    let log = place.read("data/engine.log");
    assert!(!log.contains("secret") && log.contains("database system"), "{log}");
    let kept = std::fs::read_dir(place.path().join("runs")).unwrap().flatten();
    for run in kept {
        let text = std::fs::read_to_string(run.path().join("run.json")).unwrap();
        assert!(!text.contains("secret"), "a password in the record");
    }
}

#[test]
fn what_stands_in_the_way_is_one_line() {
    let place = reachable();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    std::fs::create_dir_all(place.path().join("old/cluster")).unwrap();
    place.file("old/cluster/PG_VERSION", "9.6\n");
    for (args, word) in [
        (&["--port", &port][..], "cannot listen"),
        (&["--auth", "md5"], "set PGPASSWORD"),
        (&["--setting", "port=1"], "flags of their own"),
        (&["--data", "old"], "was made by PostgreSQL 9.6"),
    ] {
        refused(place.run([&["serve", "postgresql"], args].concat()), 64, &[word]);
    }
    let args = ["serve", "postgresql", "--setting", "no_such_setting=1"];
    refused(place.run(args), 1, &["postgresql ended by itself", "no_such_setting"]);
    if rustix::process::geteuid().is_root() {
        let closed = Place::new();
        let only_root = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(closed.path(), only_root).unwrap();
        let ended = closed.run(["serve", "postgresql", "--data", "data"]);
        refused(ended, 64, &["instead of root", "cannot enter"]);
    }
}

//! What cannot be run is told in one line, before any load.

use super::{database, line};
use crate::process::{Place, Running};
use plimsoll_wire::volt::{Call, LoginReply, ResponseWriter, Status, Welcome, frame_length};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

#[track_caller]
fn expect(place: &Place, code: i32, args: &[&str], part: &str) {
    let ended = place.run([&["voter"], args].concat()).expect(code);
    let told = line(&ended);
    assert!(told.contains(part), "{part:?} is missing in {told}");
    assert_eq!(ended.stdout, "");
}

#[test]
fn flags_that_make_no_run() {
    let place = Place::new();
    let cases: [(&[&str], &str); 16] = [
        (&["--contestants", "13"], "--contestants 13: use 1 to 12"),
        (&["--names", "a,b,c,d,e,f,g,h,i,j,k,l,m"], "--contestants 13: use 1 to 12"),
        (&["--mode", "managed", "--slots", "0"], "slots must be at least 1"),
        (&["--rhythm", "burst"], "a burst needs a delay"),
        (
            &[
                "run", "V", "voter", "100", "bursts", "10", "x", "direct", "x", "x", "x", "quiet",
                "200",
            ],
            "needs a delay",
        ),
        (&["--queue", "50"], "--queue goes with --mode managed"),
        (&["--limit", "5"], "--limit go with --rhythm burst"),
        (&["VBM", "--auto-tune", "p99=5ms"], "use --mode direct"),
        (&["VSE"], "unknown preset 'VSE'; did you mean 'VSD'?"),
        (
            &["db1"],
            "unknown preset 'db1'; write one of VSD, VSM, VBM, VBD, HSD, or a database: volt://",
        ),
        (&["--clients", "1", "--threads", "2"], "--clients: fewer than one for each thread"),
        (
            &["--clients", "3", "--threads", "2", "--processes", "2"],
            "fewer than one for each thread",
        ),
        (
            &["--client", "a-name-of-exactly-forty-characters-12345", "--processes", "2"],
            "use at most 38 characters",
        ),
        (&["run", "VSD", "voter"], "run needs 12 words and has 2"),
        (&["http://127.0.0.1:80"], "write volt://"),
        (&["--start-at", "2020-01-01T00:00:00Z"], "that time has passed"),
    ];
    for (args, part) in cases {
        expect(&place, 64, args, part);
    }
}

#[test]
fn nobody_and_somebody_else() {
    let place = Place::new();
    let closed = format!("volt://127.0.0.1:{}", crate::server::refusing_port());
    expect(&place, 4, &[&closed], "nothing is listening");
    let web = place.serve(&["null", "--port", "0"]);
    let other = format!("volt://127.0.0.1:{}", web.port);
    expect(&place, 64, &[&other], "it looks like a web server (HTTP)");
    let other = format!("postgres://127.0.0.1:{}/x", web.port);
    expect(&place, 64, &[&other], "it looks like a web server (HTTP)");
    let ended = place.run(["hello", "--names", "a,b"]).expect(64);
    assert!(line(&ended).contains("are the election's"), "{}", ended.stderr);
    // A number of IPv6 is told as it is written.
    expect(
        &place,
        4,
        &["volt://[::1]:1"],
        "volt://[::1]:1 cannot be reached: [::1]:1: connection refused: nothing is listening there",
    );
    // A listener that never says a word: told after its limits, and not hanging.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("volt://{}", silent.local_addr().unwrap());
    expect(
        &place,
        64,
        &[&url, "--connect-timeout", "300ms"],
        "accepts connections and sends nothing",
    );
}

#[test]
fn hosts_of_two_clusters() {
    let place = Place::new();
    let (one, other) = (database(&place, &[]), database(&place, &[]));
    let both = format!("{},127.0.0.1:{}", one.url, other.port);
    let told =
        format!("127.0.0.1:{} and 127.0.0.1:{} belong to different clusters", other.port, one.port);
    expect(&place, 64, &[&both], &told);
}

#[test]
fn a_wrong_password_and_the_right_one() {
    let place = Place::new();
    let target = database(&place, &["--user", "me:secret"]);
    let with = |user: &str| format!("volt://{user}@127.0.0.1:{}", target.port);
    let few = ["--calls", "50", "--clients", "2", "--no-record"];
    expect(&place, 64, &[&with("me:wrong")], "wrong user or password; give the password in");
    expect(&place, 64, &[&target.url], "wrong user or password");
    place.run([&["voter", &with("me:secret")], &few[..]].concat()).expect(0);
    let mut command = place.plimsoll([&["voter", &with("me")], &few[..]].concat());
    command.env("VOLTDB_PASSWORD", "secret");
    let ended = Running::start(command, b"").wait(Duration::from_secs(60)).expect(0);
    // Two processes get it without a word of it on their command lines.
    assert!(!ended.stdout.contains("secret"));
    let both = ["voter", &with("me:secret"), "--processes", "2", "--calls", "50", "--clients", "2"];
    let ended = place.run(both).expect(0);
    assert!(!ended.stdout.contains("secret") && !ended.stderr.contains("secret"));
    let grep = place.program("grep", ["-r", "secret", "runs"]);
    // Nothing is found in any record.
    Running::start(grep, b"").wait(Duration::from_secs(20)).expect(1);
}

/// A server of VoltDB's protocol without a single procedure of the benchmark.
fn without_procedures(mut stream: TcpStream) {
    let (mut input, mut buffer, mut logged_in) = (Vec::new(), [0; 4096], false);
    loop {
        while let Some(length) = frame_length(&input).unwrap() {
            let mut out = Vec::new();
            if logged_in {
                let call = Call::read(&input[4..length]).unwrap();
                if call.procedure == "@Ping" {
                    ResponseWriter::success(&mut out, call.handle, 0);
                } else {
                    let text = format!("Procedure {} was not found", call.procedure);
                    let status = Status::UNEXPECTED_FAILURE;
                    ResponseWriter::failure(&mut out, call.handle, status, &text, 0);
                }
            } else {
                logged_in = true;
                LoginReply::Welcome(Welcome {
                    host_id: 0,
                    connection_id: 1,
                    cluster_start_ms: 1,
                    leader_address: [127, 0, 0, 1],
                    build: "bare",
                })
                .put(&mut out);
            }
            input.drain(..length);
            stream.write_all(&out).unwrap();
        }
        match stream.read(&mut buffer) {
            Ok(read) if read > 0 => input.extend_from_slice(&buffer[..read]),
            _ => return,
        }
    }
}

#[test]
fn a_database_without_the_schema() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("volt://{}", listener.local_addr().unwrap());
    // It ends with the test's process.
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            std::thread::spawn(move || without_procedures(stream));
        }
    });
    let told = "Procedure Initialize was not found: the schema is missing; install it with plimsoll serve voltdb";
    expect(&place, 64, &[&url], told);
    let ended = place.run(["hello", &url]).expect(64);
    assert!(line(&ended).contains("the hello schema is missing"), "{}", ended.stderr);
}

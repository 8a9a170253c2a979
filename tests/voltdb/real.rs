//! VoltDB as an engine of ours: installed, started, asked by our own codec, and ended however its parent ends.

use super::NAMES;
use super::asking::Asking;
use crate::engines::{install, refused};
use crate::process::{PATIENCE, Place, Running, Target, curl, expect_gone};
use plimsoll_engine::exchange::ExchangeError;
use plimsoll_wire::volt::{Login, LoginForm, Value};
use rustix::process::Signal;
use std::net::TcpListener;
use std::time::Duration;

#[test]
fn voltdb_takes_votes_beside_a_second_one_and_ends_with_its_parent() {
    install("voltdb");
    let place = Place::busy();
    let http = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let http_port = http.to_string();
    let args = ["voltdb", "--data", "data", "--ready-file", "ready.txt", "--heap", "256MiB"];
    let target = place.serve(&[&args[..], &["--http-port", &http_port]].concat());
    assert_eq!(place.read("ready.txt"), format!("ready voltdb volt://127.0.0.1:{}\n", target.port));
    let mut volt = Asking::to(target.port);
    assert_eq!(volt.initialize(NAMES), 6);
    assert_eq!(volt.initialize("another,two"), 6, "contestants are made once");
    let phone = 2_125_550_001;
    let votes = [(phone, 1, 2), (phone, 1, 2), (phone, 2, 2), (phone, 7, 2), (9_990_000_000, 3, 1)];
    let told = votes.map(|(phone, contestant, most)| volt.vote(phone, contestant, most));
    assert_eq!(told, [0, 0, 2, 1, 0]);
    let results = volt.call("Results", &[]);
    assert_eq!(
        results.tables[0].rows,
        [
            ["String(\"Edwina Burnam\")", "1", "2"].map(str::to_owned),
            ["String(\"Kelly Clauss\")", "3", "1"].map(str::to_owned)
        ]
    );
    assert_eq!(volt.sql("SELECT COUNT(*) FROM votes").long(), 3);
    assert_eq!(volt.sql("SELECT COUNT(*) FROM votes WHERE state = 'XX'").long(), 1);
    assert_eq!(volt.sql("SELECT COUNT(DISTINCT state) FROM area_code_state").long(), 51);
    let greeting = ["French", "Bonjour", "Monde"].map(Value::String);
    assert_eq!(volt.call("Insert", &greeting).long(), 1);
    let told = volt.call("Select", &greeting[..1]);
    assert_eq!(told.tables[0].rows, [["String(\"Bonjour\")", "String(\"Monde\")"]]);
    let url = format!("http://127.0.0.1:{http}/api/1.0/?Procedure=Vote&Parameters=[{phone},1,9]");
    let (status, body) = curl(&["-g", &url]);
    assert!(status == 200 && body.contains("\"data\":[[0]]"), "{status} {body}");
    with_a_password(&place);
    let port = target.port.to_string();
    let second = place.run(["serve", "voltdb", "--port", &port]);
    refused(second, 64, &["cannot listen on 127.0.0.1 port", "take another --port"]);
    let second = place.run(["serve", "voltdb", "--http-port", &port]);
    refused(second, 64, &["cannot listen on 127.0.0.1 port", "take another --http-port"]);
    // Nothing but loopback.
    let open = listening(&target);
    assert!(open.len() >= 5, "{open:?}");
    assert!(open.iter().all(|address| address.ends_with("0100007F")), "{open:?}");
    let processes = target.process.descendants();
    target.process.signal(Signal::TERM);
    let ended = target.process.wait(Duration::from_secs(10)).expect(0);
    assert_eq!((ended.stdout.lines().count(), ended.stderr.as_str()), (1, ""));
    expect_gone(&processes);
    assert!(place.read("data/engine.log").contains("Server completed initialization"));
}

/// A second database while the first one runs: only one user gets in; who kills its parent kills it.
fn with_a_password(place: &Place) {
    let mut command = place.plimsoll(["serve", "voltdb", "--user", "ann", "--heap", "256MiB"]);
    command.env("VOLTDB_PASSWORD", "a <b> & \"c\"");
    let running = Running::start(command, b"");
    let text = running.wait_for("ready ", Duration::from_secs(120));
    let port = text.trim().rsplit_once(':').unwrap().1.parse().unwrap();
    for form in [LoginForm::V0, LoginForm::V1Sha1, LoginForm::V1Sha256] {
        let login = Login::with_form("ann", "a <b> & \"c\"", form);
        let mut volt = Asking::with_login(port, login).unwrap();
        assert_eq!(volt.initialize("a,b"), 2, "{form:?}");
        for (user, password) in [("ann", "wrong"), ("bob", "a <b> & \"c\""), ("", "")] {
            let login = Login::with_form(user, password, form);
            let told = Asking::with_login(port, login)
                .and_then(|mut volt| volt.try_call("@Ping", &[]))
                .unwrap_err();
            assert!(matches!(told, ExchangeError::Fault(_)), "{form:?}: {told}");
        }
    }
    let processes = running.descendants();
    assert!(processes.iter().any(|(_, line)| line.contains("VoltDBLauncher")), "{processes:?}");
    assert!(processes.iter().all(|(_, line)| !line.contains("<b>")), "a password is to be seen");
    running.signal(Signal::KILL);
    running.wait(PATIENCE);
    expect_gone(&processes);
}

/// The addresses, as the kernel writes them, on which a target's processes listen.
fn listening(target: &Target) -> Vec<String> {
    let sockets: Vec<String> = target
        .process
        .descendants()
        .iter()
        .flat_map(|(pid, _)| std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten())
        .filter_map(|file| std::fs::read_link(file.path()).ok())
        .filter_map(|link| {
            let link = link.to_str()?.strip_prefix("socket:[")?;
            Some(link.trim_end_matches(']').to_owned())
        })
        .collect();
    let tables = ["tcp", "tcp6"].map(|name| std::fs::read_to_string(format!("/proc/net/{name}")));
    let lines = tables.iter().flatten().flat_map(|table| table.lines().skip(1));
    lines
        .filter_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            // 0A: it listens. The tenth word is the socket.
            let is_ours = words[3] == "0A" && sockets.iter().any(|socket| socket == words[9]);
            is_ours.then(|| words[1].split(':').next().unwrap().to_owned())
        })
        .collect()
}

#[test]
fn wrong_flags_of_voltdb_are_one_line_and_start_nothing() {
    install("voltdb");
    let place = Place::busy();
    for (args, word) in [
        (&["--heap", "1MiB"][..], "--heap"),
        (&["--user", "ann"], "VOLTDB_PASSWORD"),
        (&["--user", ""], "--user"),
        (&["--log", "no/such/folder/log"], "--log"),
    ] {
        refused(place.run([&["serve", "voltdb"], args].concat()), 64, &[word]);
    }
    let told = place.run(["serve", "voltdb", "--partitions", "0"]).expect(64);
    assert!(told.stderr.contains("--partitions"), "{}", told.stderr);
}

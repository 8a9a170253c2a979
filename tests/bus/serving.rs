//! `plimsoll install nats` and `plimsoll serve nats`.

use super::{SOON, connect, folder, options};
use crate::certificates::Authority;
use crate::engines::{install, refused};
use crate::process::{Ended, Place, Running, engines_home, expect_gone, find_program, until};
use plimsoll_bus::{Bus, Credentials, Nats};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

fn run(command: Command) -> Ended {
    Running::start(command, b"").wait(Duration::from_secs(300))
}

/// A call of plimsoll that knows no programs but those in `bin`, and no installation.
fn with_programs(place: &Place, args: &[&str], bin: &Path) -> Command {
    let mut command = place.plimsoll(args);
    command.env("PATH", bin).env("PLIMSOLL_HOME", place.path().join("home"));
    command
}

fn bin(place: &Place, name: &str) -> PathBuf {
    let bin = place.path().join(name);
    std::fs::create_dir(&bin).unwrap();
    bin
}

#[test]
fn a_served_bus_is_ready_on_loopback_and_ends_in_order() {
    install("nats");
    let place = Place::new();
    let target = place.serve(&["nats", "--ready-file", "ready", "--log", "nats.log"]);
    assert_eq!(target.url, format!("nats://127.0.0.1:{}", target.port));
    assert_eq!(place.read("ready"), format!("ready nats {}\n", target.url));
    let mut info = String::new();
    let socket = TcpStream::connect(("127.0.0.1", target.port)).unwrap();
    BufReader::new(socket).read_line(&mut info).unwrap();
    assert!(!info.contains("jetstream"), "JetStream is on: {info}");
    let bus = connect(&options(&target.url));
    let subscription = bus.subscribe("a").unwrap();
    bus.publish("a", b"1").unwrap();
    assert!(subscription.next(SOON).unwrap().is_some());
    let servers = target.process.descendants();
    target.process.signal(Signal::TERM);
    target.process.wait(SOON).expect(0);
    expect_gone(&servers);
    until("the loss of the link", SOON, || !bus.state().is_connected());
    assert!(place.read("nats.log").contains("Server is ready"));
}

#[test]
fn serve_ends_with_its_server_and_the_server_with_serve() {
    install("nats");
    let place = Place::new();
    let target = place.serve(&["nats"]);
    let id = target.process.wait_for_descendant("nats.conf", SOON);
    let pid = rustix::process::Pid::from_raw(id as i32).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    let ended = target.process.wait(SOON).expect(1);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("nats ended by itself"), "{}", ended.stderr);
    let target = place.serve(&["nats"]);
    let servers = target.process.descendants();
    assert_eq!(servers.len(), 1, "{servers:?}");
    target.process.signal(Signal::KILL);
    target.process.wait(SOON);
    expect_gone(&servers);
}

#[test]
fn secrets_of_a_served_bus_are_on_no_command_line() {
    install("nats");
    let place = Place::new();
    let target = place.serve(&["nats", "--token-file", "bus.token"]);
    let token = place.read("bus.token");
    let mode = place.path().join("bus.token").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(target.process.stderr_so_far().contains("wrote a new token to bus.token"));
    let check = |target: &crate::process::Target, secret: &str, credentials: Credentials| {
        assert!(Nats::connect(&options(&target.url)).is_err(), "without credentials");
        let mut options = options(&target.url);
        options.credentials = credentials;
        connect(&options);
        for (_, line) in target.process.descendants() {
            assert!(line.contains("nats.conf") && !line.contains(secret), "{line}");
        }
        assert!(!target.process.stderr_so_far().contains(secret));
    };
    check(&target, token.trim(), Credentials::Token(token.trim().to_owned()));
    // The same file gives the same token again, and odd characters stay in their quotes.
    let odd = r#"se" } cret\ $HOME { "#;
    place.file("odd.token", odd);
    let target = place.serve(&["nats", "--token-file", "odd.token"]);
    check(&target, odd.trim(), Credentials::Token(odd.trim().to_owned()));
    let mut command = place.plimsoll(["serve", "nats", "--user", "ann", "--port"]);
    let port = crate::server::closed_port();
    command.arg(&port).env("NATS_PASSWORD", "hidden-word");
    let running = Running::start(command, b"");
    running.wait_for("ready ", SOON);
    let mut options = options(&format!("nats://127.0.0.1:{port}"));
    options.credentials =
        Credentials::User { name: "ann".to_owned(), password: "hidden-word".to_owned() };
    connect(&options);
    assert!(running.descendants().iter().all(|(_, line)| !line.contains("hidden-word")));
}

#[test]
fn a_served_bus_speaks_tls_with_the_given_certificate() {
    install("nats");
    let place = Place::new();
    let authority = Authority::new("bus");
    let (server, client) = (authority.server(&["127.0.0.1"]), authority.client());
    let ca = place.file("ca.pem", authority.pem());
    place.file("server.pem", &server.certificate);
    place.file("server.key", &server.key);
    let tls = ["nats", "--tls-cert", "server.pem", "--tls-key", "server.key", "--tls-ca", "ca.pem"];
    let target = place.serve(&tls);
    assert!(target.url.starts_with("tls://127.0.0.1:"), "{}", target.url);
    let mut options = options(&target.url);
    options.tls.ca = Some(ca);
    assert!(Nats::connect(&options).is_err(), "without a client certificate");
    options.tls.certificate = Some(place.file("client.pem", &client.certificate));
    options.tls.key = Some(place.file("client.key", &client.key));
    connect(&options);
}

#[test]
fn flags_that_cannot_work_are_reported_in_one_line() {
    let place = Place::new();
    place.file("two.token", "a\nb\n");
    for (args, words) in [
        (&["--host", "0.0.0.0"][..], &["other machines", "--token-file"][..]),
        (&["--host", "no such"], &["--host no such"]),
        (&["--token-file", "two.token"], &["two.token", "one line"]),
        (&["--token-file", "no/such/file"], &["--token-file no/such/file"]),
        (&["--user", "ann"], &["NATS_PASSWORD"]),
        (&["--nkey", "SUA"], &["--nkey", "56"]),
        (&["--tls-cert", "no.pem", "--tls-key", "no.key"], &["--tls-cert no.pem"]),
    ] {
        let mut all = vec!["serve", "nats"];
        all.extend(args);
        refused(place.run(all), 64, words);
    }
}

#[test]
fn a_port_that_is_in_use_is_named() {
    install("nats");
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    refused(place.run(["serve", "nats", "--port", &port]), 64, &[&port, "--port (0 takes any"]);
}

#[test]
fn without_an_installation_a_server_in_path_is_used_if_it_is_new_enough() {
    let place = Place::new();
    let none = bin(&place, "none");
    let ended = run(with_programs(&place, &["serve", "nats"], &none));
    refused(ended, 64, &["not installed", "run: plimsoll install nats"]);
    let old = bin(&place, "old");
    place.script("old/nats-server", "#!/bin/sh\necho 'nats-server: v2.9.10'\n");
    let ended = run(with_programs(&place, &["serve", "nats"], &old));
    refused(ended, 64, &["has version 2.9.10", "2.10 or later", "run: plimsoll install nats"]);
    let new = bin(&place, "new");
    symlink(folder().join("nats-server"), new.join("nats-server")).unwrap();
    let running = Running::start(with_programs(&place, &["serve", "nats"], &new), b"");
    let line = running.wait_for("\n", SOON);
    connect(&options(line.trim().strip_prefix("ready nats ").unwrap()));
}

#[test]
fn obstacles_to_an_installation_are_reported_in_one_line() {
    let place = Place::new();
    let none = bin(&place, "none");
    let ended = run(with_programs(&place, &["install", "nats"], &none));
    refused(ended, 64, &["needs Go", "install Go 1.26"]);
    let old = bin(&place, "old");
    place.script("old/go", "#!/bin/sh\necho go1.19.8\n");
    let ended = run(with_programs(&place, &["install", "nats"], &old));
    refused(ended, 64, &["has version 1.19.8", "too old for nats-server v2", "install Go 1.26"]);
    assert!(!place.path().join("home").exists(), "something was made for nothing");
    // Go itself, with a module proxy and a cache that lead nowhere.
    let mut command = place.plimsoll(["install", "nats"]);
    command.env("PLIMSOLL_HOME", place.path().join("home"));
    command.env("GOPROXY", "http://127.0.0.1:9").env("GOFLAGS", "-modcacherw");
    command.env("GOMODCACHE", place.path().join("modules"));
    let ended = run(command).expect(1);
    let last = ended.stderr.lines().last().unwrap();
    assert!(last.contains("cannot reach its module proxy"), "{}", ended.stderr);
    let left: Vec<_> = std::fs::read_dir(place.path().join("home/engines")).unwrap().collect();
    assert!(left.len() <= 1, "more than the lock was left: {left:?}");
}

#[test]
fn a_program_from_another_source_is_not_installed() {
    let place = Place::new();
    let bin = bin(&place, "bin");
    symlink(find_program("sh"), bin.join("sh")).unwrap();
    place.script(
        "bin/go",
        "#!/bin/sh\ncase $1 in env) echo go1.26.1 ;; install) echo x >\"$GOBIN/nats-server\" ;;\n\
         version) printf 'x\\n\\tmod\\tgithub.com/nats-io/nats-server/v2\\tv2.15.2\\th1:other=\\n' ;; esac\n",
    );
    let ended = run(with_programs(&place, &["install", "nats"], &bin)).expect(1);
    let last = ended.stderr.lines().last().unwrap();
    assert!(last.contains("hash differs") && last.contains("nothing was installed"), "{last}");
    let ended = run(with_programs(&place, &["serve", "nats"], &bin));
    refused(ended, 64, &["not installed"]);
}

#[test]
fn an_installation_is_made_once_listed_and_removed() {
    install("nats");
    let place = Place::new();
    assert_eq!(place.run(["install", "nats"]).expect(0).stdout, "nats: installed before\n");
    let shown = place.run(["info", "nats"]).expect(0).stdout;
    let installed = std::fs::read_dir(engines_home().join("engines")).unwrap().flatten();
    let installed = installed.map(|entry| entry.path());
    let installed = installed.into_iter().find(|path| path.join("nats-server").is_file()).unwrap();
    assert!(shown.contains(&installed.display().to_string()), "{shown}");
    let copy = place.path().join("home/engines").join(installed.file_name().unwrap());
    std::fs::create_dir_all(&copy).unwrap();
    for name in ["nats-server", "installed"] {
        std::fs::copy(installed.join(name), copy.join(name)).unwrap();
    }
    let command = |args: &[&str]| {
        let mut command = place.plimsoll(args);
        command.env("PLIMSOLL_HOME", place.path().join("home"));
        run(command).expect(0).stdout
    };
    assert_eq!(command(&["install", "nats"]), "nats: installed before\n");
    assert_eq!(command(&["clean", "nats"]), "nats: removed\n");
    assert!(!copy.exists());
    assert_eq!(command(&["clean", "nats"]), "nats: nothing to remove\n");
}

//! Values of the environment in headers reach the target, and nothing that is kept or printed.

use crate::process::{PATIENCE, Place, Running};
use crate::server::{Seen, Server, Step, reply};
use std::path::Path;

const SECRET: &str = "hunter2-of-the-test";

/// A server that repeats the header in a reply that is a failure.
fn echo() -> Server {
    Server::start(|seen: &Seen| {
        let text = seen.text();
        let line = text.lines().find(|line| line.starts_with("X-Kind:")).unwrap_or_default();
        vec![Step::Send(reply(503, "", format!("you sent {line}").as_bytes()))]
    })
}

/// Runs plimsoll with the secret in its environment.
fn run(place: &Place, args: &[&str]) -> crate::process::Ended {
    let mut command = place.plimsoll(args);
    command.env("SECRET_OF_TEST", SECRET);
    Running::start(command, b"").wait(PATIENCE)
}

/// All files under a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[track_caller]
fn expect_hidden(place: &Place, server: &Server, args: &[&str]) {
    let out =
        ["--junit", "out.xml", "--csv", "out.csv", "--json", "out.json", "--html", "out.html"];
    let ended = run(place, &[args, &out].concat());
    assert_eq!(ended.code, Some(4), "{}\n{}", ended.stdout, ended.stderr);
    let sent = server.seen().pop().unwrap().text();
    assert!(sent.contains(&format!("X-Kind: a {SECRET} b\r\n")), "{sent}");
    let folder = std::fs::read_dir(place.path().join("runs")).unwrap().next().unwrap().unwrap();
    let folder = folder.path().display().to_string();
    let mut printed = format!("{}{}", ended.stdout, ended.stderr);
    for format in ["text", "json", "csv", "junit", "html", "markdown"] {
        printed += &place.run(["report", &folder, "--format", format]).stdout;
    }
    assert!(printed.contains("503"), "{printed}");
    assert!(!printed.contains(SECRET), "{args:?}\n{printed}");
    let kept = files(place.path());
    let names: Vec<_> = kept.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    for name in ["run.json", "failures.ndjson", "out.xml", "out.csv", "out.json", "out.html"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for path in kept.iter().filter(|path| !path.ends_with("headers.txt")) {
        let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        assert!(!text.contains(SECRET), "a secret in {}\n{text}", path.display());
    }
}

#[test]
fn a_value_of_the_environment_is_sent_and_kept_nowhere() {
    let header = "X-Kind: a ${SECRET_OF_TEST} b";
    let server = echo();
    let url = server.url();
    let load = ["load", &url, "--clients", "1", "--requests", "5"];
    expect_hidden(&Place::new(), &server, &[&load[..], &["--header", header]].concat());

    let place = Place::new();
    place.file("headers.txt", format!("# of staging\nX-Kind: a {SECRET} b\n"));
    expect_hidden(&place, &server, &[&load[..], &["--header", "@headers.txt"]].concat());

    for text in [
        format!("url = \"{url}\"\nclients = 1\nrequests = 5\nheader = \"{header}\"\n"),
        format!(
            "targets = [\"{url}\"]\nrequests = 5\nheaders = [\"{header}\"]\n\
                 load = {{ model = \"closed\", clients = 1 }}\n"
        ),
    ] {
        let place = Place::new();
        place.file("s.toml", text);
        expect_hidden(&place, &server, &["run", "s.toml"]);
    }
}

/// Secrets that stand on the command line itself, and that the target repeats in its replies.
#[test]
fn secrets_of_headers_addresses_and_bodies_are_in_no_output() {
    let server = Server::start(|seen: &Seen| {
        let text = format!("you sent {} and {}", seen.body(), seen.text());
        vec![Step::Send(reply(503, "", text.as_bytes()))]
    });
    let place = Place::new();
    let url = format!("{}/?token=opensesame2&q=1", server.url());
    let body = "{\"user\": \"me\", \"password\": \"opensesame3\"}";
    let headers =
        ["--header", "Authorization: Bearer opensesame4", "--header=Cookie: s=opensesame5"];
    let more = ["--clients", "1", "--requests", "5", "--body", body];
    let out = ["--junit", "o.xml", "--csv", "o.csv", "--json", "o.json", "--html", "o.html"];
    let ended = place.run([&["load", &url], &headers[..], &more, &out].concat()).expect(4);
    let sent = server.seen().pop().unwrap().text();
    for secret in ["opensesame2", "opensesame3", "opensesame4", "opensesame5"] {
        assert!(sent.contains(secret), "{secret} is sent\n{sent}");
    }
    let mut printed = format!("{}{}", ended.stdout, ended.stderr);
    for format in ["text", "json", "csv", "junit", "html", "markdown"] {
        printed += &place.run(["report", "--format", format]).expect(0).stdout;
    }
    assert!(printed.contains("Authorization: ***") && !printed.contains("opensesame"), "{printed}");
    for path in files(place.path()) {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains("opensesame"), "a secret in {}\n{text}", path.display());
    }
}

#[test]
fn a_variable_that_is_not_set_is_an_error_that_names_the_field() {
    let place = Place::new();
    place.file("s.toml", "url = \"http://127.0.0.1:1/\"\nheader = [\"X: ${NO_SUCH_OF_TEST}\"]\n");
    let ended = place.run(["run", "s.toml"]).expect(64);
    let line =
        "plimsoll: s.toml:2: field `header`: the environment variable NO_SUCH_OF_TEST is not set\n";
    assert_eq!(ended.stderr, line);
}

#[test]
fn fbench_sends_a_value_of_the_environment_and_keeps_it_nowhere() {
    let (place, server) = (Place::new(), echo());
    place.file("q.txt", "/a\n");
    let port = server.port();
    let header = "X-Kind: a ${SECRET_OF_TEST} b";
    let args = ["fbench", "-n", "1", "-s", "1", "-q", "q.txt", "-c", "200", "-H", header];
    run(&place, &[&args[..], &["--json", "out.json", "127.0.0.1", &port]].concat());
    assert!(server.seen()[0].text().contains(SECRET));
    for path in files(place.path()) {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains(SECRET), "a secret in {}\n{text}", path.display());
    }
}

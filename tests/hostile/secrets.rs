//! Secrets: in no output, no record and no list of processes; records are for their owner only.

use crate::process::{PATIENCE, Place, Running, until};
use crate::server::{Seen, Server, Step, reply};
use plimsoll_sabotage::targets::server::{Language, Script, Server as Https};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All files under a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// A server that repeats the header in every form in which a service may write it.
fn echo(value: &'static str) -> Server {
    Server::start(move |seen: &Seen| {
        assert!(seen.text().contains(value), "the secret is sent");
        let json = serde_json::to_string(value).unwrap();
        let html = value.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
        let text = format!("you sent [{value}], {json}, <b>{html}</b> and x={value};");
        vec![Step::Send(reply(503, "", text.as_bytes()))]
    })
}

#[test]
fn a_short_value_of_the_environment_is_kept_nowhere() {
    for value in ["pw1", "x7!", "a\"b<c&d"] {
        let (place, server) = (Place::new(), echo(value));
        let url = server.url();
        let load =
            ["load", &url, "--clients", "1", "--requests", "5", "--header", "X-Kind: ${SHORT}"];
        let out = [
            "--junit", "o.xml", "--csv", "o.csv", "--json", "o.json", "--html", "o.html",
            "--stream", "o.ndjson",
        ];
        let mut command = place.plimsoll([&load[..], &out].concat());
        command.env("SHORT", value);
        let ended = Running::start(command, b"").wait(PATIENCE);
        assert_eq!(ended.code, Some(4), "{ended:?}");
        let mut texts = vec![ended.stdout, ended.stderr, place.run(["report", "--verbose"]).stdout];
        texts.extend(
            files(place.path())
                .iter()
                .map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()),
        );
        for text in texts {
            let around = |form: &str| {
                text.find(form)
                    .map(|at| text[at.saturating_sub(60)..].chars().take(160).collect::<String>())
            };
            for form in
                [format!("[{value}]"), format!("x={value};"), serde_json::to_string(value).unwrap()]
            {
                assert_eq!(around(&form), None, "{value}");
            }
        }
    }
}

#[test]
fn a_password_in_an_address_is_repeated_by_no_message() {
    let place = Place::new();
    for url in [
        "http://me:hunter2@127.0.0.1:1/",
        "http://me:hunter2@127.0.0.1:1/ a",
        "ftp://me:hunter2@127.0.0.1:1/",
        "https://me:hunter2@[::1/",
        "postgres://me:hunter2@127.0.0.1:1/db",
        "postgres://me:hunter2@127.0.0.1:1/db?sslmode=wrong",
        "postgres://me:hunter2@127.0.0.1:99999/db",
        "volt://me:hunter2@127.0.0.1:1",
        "volt://me:hunter2@127.0.0.1:wrong",
    ] {
        for line in [
            vec!["load", url, "--clients", "1", "--requests", "1", "--connect-timeout", "300ms"],
            vec!["seek", url, "--slo", "p95=1s", "--budget", "2s"],
            vec!["voter", url, "--duration", "1s", "--give-up", "1s"],
            vec!["visit", url, "--retries", "0"],
            vec!["load", "http://127.0.0.1:1/", "--requests", "1", "--otlp", url],
        ] {
            let ended = place.run(&line);
            let text = ended.stdout + &ended.stderr;
            assert!(!text.contains("hunter2"), "{line:?}: {text}");
        }
    }
    for path in files(place.path()) {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains("hunter2"), "{}: {text}", path.display());
    }
}

/// The processes of a run with several show no password that came in the environment.
#[test]
fn a_password_of_the_environment_stands_in_no_list_of_processes() {
    let place = Place::new();
    let target = place.serve(&["voter"]);
    let mut command = place.plimsoll([
        "voter",
        &target.url,
        "--processes",
        "2",
        "--duration",
        "3s",
        "--no-record",
    ]);
    command.env("VOLTDB_PASSWORD", "hunter2-of-the-test");
    let running = Running::start(command, b"");
    until("processes", Duration::from_secs(30), || {
        running.descendants().len() >= 2 || running.stderr_so_far().contains("refused")
    });
    for (_, line) in running.descendants() {
        assert!(!line.contains("hunter2"), "{line}");
    }
}

#[test]
fn only_its_owner_can_look_into_a_record() {
    let (place, server) = (Place::new(), Server::ok());
    place.run(["load", &server.url(), "--clients", "1", "--requests", "50", "--json", "out.json"]);
    let folder =
        std::fs::read_dir(place.path().join("runs")).unwrap().next().unwrap().unwrap().path();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700, "{}", folder.display());
    // A file that a flag names has the usual mode.
    let usual = place.file("usual", "");
    assert_eq!(mode(&place.path().join("out.json")), mode(&usual));
}

#[test]
fn a_link_beside_an_output_is_not_followed() {
    let (place, server) = (Place::new(), Server::ok());
    let precious = place.file("precious", "untouched");
    // Another user of a shared folder may know the number of the process: all likely ones lead elsewhere.
    let own = std::process::id();
    for pid in own..own + 3_000 {
        let _ =
            std::os::unix::fs::symlink(&precious, place.path().join(format!("out.json.{pid}.new")));
    }
    place.run([
        "load",
        &server.url(),
        "--clients",
        "1",
        "--requests",
        "50",
        "--json",
        "out.json",
        "--no-record",
    ]);
    assert_eq!(place.read("precious"), "untouched");
    assert!(place.read("out.json").contains("\"schema\""));
}

#[test]
fn a_certificate_that_was_not_verified_is_named_in_record_and_output() {
    let place = Place::new();
    let script = Script { language: Language::Https, body_bytes: 2, ..Script::default() };
    let server = Https::start(script, 0).unwrap();
    let url = format!("https://{}/", server.address);
    let load = ["load", &url, "--clients", "1", "--requests", "50"];
    let ended = place.run(load);
    assert_eq!(ended.code, Some(4), "certificates are verified: {ended:?}");
    let ended = place.run([&load[..], &["--insecure", "--json", "out.json"]].concat());
    let warning = "the certificate of the target was not verified";
    assert!(ended.stdout.contains(warning), "{ended:?}");
    let record: serde_json::Value = serde_json::from_str(&place.read("out.json")).unwrap();
    assert_eq!(record["scenario"]["tls"]["insecure"], true);
    assert!(record.to_string().contains(warning));
}

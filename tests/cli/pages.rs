//! The page of a run as HTML and as Markdown, made by the program from real runs.

use crate::process::Place;
use crate::server::{Seen, Server, Step, ok, reply};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::Read;
use std::path::PathBuf;

/// The only folder of a record.
pub fn folder(place: &Place) -> PathBuf {
    std::fs::read_dir(place.path().join("runs")).unwrap().next().unwrap().unwrap().path()
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&#39;", "'").replace("&amp;", "&")
}

/// Every number that names its place in the record is the number there, and each table has some. Returns how many there are.
#[track_caller]
pub fn expect_equal(page: &str, record: &Value) -> usize {
    let mut number = 0;
    for cell in page.split(" data-v=\"").skip(1) {
        let (value, rest) = cell.split_once('"').unwrap();
        let Some(place) = rest.strip_prefix(" data-from=\"") else { continue };
        let pointer = unescaped(place.split('"').next().unwrap());
        let recorded = record.pointer(&pointer).and_then(Value::as_f64);
        assert_eq!(recorded, value.parse().ok(), "{pointer}");
        number += 1;
    }
    number
}

/// The data block of a page.
pub fn data(page: &str) -> Value {
    let block = page.split("id=\"data\">").nth(1).unwrap().split('<').next().unwrap();
    let bytes = hex_of_base64(block);
    let mut text = String::new();
    GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Base64 by the program of the system, which shares no code with the page.
fn hex_of_base64(text: &str) -> Vec<u8> {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut child = Command::new("base64")
        .arg("-d")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = text.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output.stdout
}

/// A server that fails some requests.
fn unreliable() -> Server {
    Server::start(|seen: &Seen| {
        let answer = if seen.path().contains("bad") {
            reply(503, "", b"<script>alert(1)</script> busy")
        } else {
            ok("fine")
        };
        vec![Step::Send(answer)]
    })
}

#[test]
fn the_page_of_a_run_is_that_of_its_record_and_its_numbers_are_the_records() {
    let (place, server) = (Place::new(), unreliable());
    place.file("q.txt", "/good\n/good?x=1\n/bad\n/good\n/good\n");
    let flags =
        ["--queries", "q.txt", "--class", "bad=bad", "--class", "good=.", "--slo", "p95=5s"];
    let load = ["--rate", "200", "--duration", "3s", "--warmup", "1s", "--html", "page.html"];
    place.run([&["load", &server.url()], &flags[..], &load].concat());
    let page = place.read("page.html");
    let folder = folder(&place);
    let named = folder.to_str().unwrap();
    for _ in 0..2 {
        assert_eq!(place.run(["report", named, "--format", "html"]).expect(0).stdout, page);
    }
    let record: Value =
        serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap();
    let number = expect_equal(&page, &record);
    assert!(number > 150, "{number}");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt; busy"), "a sample of a failure");
    // Each second of the journal is a column.
    let data = data(&page);
    let journal = std::fs::read_to_string(folder.join("intervals.ndjson")).unwrap();
    let lines: Vec<Value> =
        journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failed = &data["arrays"]["failed"];
    assert_eq!(failed["d"].as_array().unwrap().len(), lines.len());
    // A reply that came late makes a column after the last second, which is too short for a rate.
    let is_late = |at: usize| failed["n"].as_array().is_some_and(|all| all.contains(&at.into()));
    assert!((0..3).all(|at| !is_late(at)), "{failed}");
    let mut sum = 0;
    for (at, (delta, line)) in failed["d"].as_array().unwrap().iter().zip(&lines).enumerate() {
        sum += delta.as_i64().unwrap();
        if is_late(at) {
            continue;
        }
        let shown = sum as f64 * failed["s"].as_f64().unwrap();
        let seconds = line["to_s"].as_f64().unwrap() - line["from_s"].as_f64().unwrap();
        let exact = line["ledger"]["failed"]["status"].as_f64().unwrap() / seconds;
        assert!((shown - exact).abs() <= exact * 1e-3, "{shown} {exact}");
    }
}

/// Every command that keeps a record writes the page, and it is the one that `report` makes of the record.
#[test]
fn other_commands_write_pages_too() {
    let server = Server::ok();
    let (url, port) = (server.url(), server.port());
    let commands: [&[&str]; 4] = [
        &["seek", &url, "--slo", "p95=1s", "--budget", "4s"],
        &["fbench", "-n", "2", "-s", "1", "-q", "q.txt", "127.0.0.1", &port],
        &["voter", "VSD", "--calls", "200"],
        &["run", "file.toml"],
    ];
    for command in commands {
        let place = Place::new();
        place.file("q.txt", "/a\n/b\n");
        place.file("file.toml", format!("url = \"{url}\"\nclients = 1\nrequests = 30\n"));
        // Flags of fbench stand before its hosts.
        let mut words = command.to_vec();
        words.splice(1..1, ["--html=page.html"]);
        let ended = place.run(&words);
        assert!(ended.code.is_some_and(|code| code <= 4), "{words:?}\n{}", ended.stderr);
        let page = place.read("page.html");
        let folder = folder(&place);
        let again = place.run(["report", folder.to_str().unwrap(), "--format", "html"]).expect(0);
        assert_eq!(again.stdout, page, "{words:?}");
        let record: Value =
            serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap();
        assert!(expect_equal(&page, &record) > 10, "{words:?}");
        let first = format!("plimsoll {} ", words[0]);
        assert!(page.contains(&format!("<pre class=\"command\">{first}")), "{words:?}");
    }
}

#[test]
fn a_run_of_a_second_without_a_record_has_a_page_with_data() {
    let (place, server) = (Place::new(), Server::ok());
    let load = ["--rate", "100", "--duration", "1s", "--no-record", "--html", "page.html"];
    place.run([&["load", &server.url()], &load[..]].concat());
    assert!(!place.path().join("runs").exists());
    let page = place.read("page.html");
    let data = data(&page);
    assert!(!data["arrays"]["p99"]["d"].as_array().unwrap().is_empty());
    for figure in ["throughput", "latency", "curve"] {
        let figure = page.split(&format!("id=\"plot-{figure}\"")).nth(1).unwrap();
        assert!(figure.split("</figure>").next().unwrap().contains("<svg"));
    }
}

/// A job of the catalogue completes its record after its command has ended; the page has what was added, and the command is the
/// one that the user called.
#[test]
fn the_page_of_a_job_is_made_of_the_complete_record() {
    let (place, server) = (Place::new(), Server::ok());
    let url = server.url();
    place.file(
        "mine.toml",
        format!("[job]\nname = \"mine\"\ndescription = \"x\"\ndefault_role = \"only\"\n[job.roles.only]\ncommand = [\"load\", \"{url}\", \"--clients\", \"1\", \"--requests\", \"5\"]\n"),
    );
    place.run(["run", "mine.toml", "--html", "page.html"]);
    let page = place.read("page.html");
    let folder = folder(&place);
    let again = place.run(["report", folder.to_str().unwrap(), "--format", "html"]).expect(0);
    assert_eq!(again.stdout, page);
    assert!(page.contains(">plimsoll run mine.toml --html page.html</pre>"), "the user's command");
}

#[test]
fn markdown_for_a_pull_request_has_verdict_limits_and_command() {
    let (place, server) = (Place::new(), unreliable());
    place.file("q.txt", "/good\n/bad\n");
    let flags = ["--queries", "q.txt", "--class", "bad|`@x`=bad", "--class", "good=."];
    let load = ["--clients", "1", "--requests", "200", "--slo", "errors=1%", "--slo", "p95=5s"];
    place.run([&["load", &server.url()], &flags[..], &load].concat());
    let text = place.run(["report", "--format", "markdown"]).expect(0).stdout;
    for part in
        ["## plimsoll ", "| **errors** | 50.0 % | 1% | MISSED |", "| **status** | 100 | 50 % |"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(text.contains("| **`` bad\\|`@x` ``** |"), "{text}");
    assert!(text.contains("```sh\nplimsoll load http://"), "{text}");
}

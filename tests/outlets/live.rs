//! `--live`: the page that follows a run, as a raw client sees it.

use crate::process::{PATIENCE, Place, Running, curl, until};
use crate::server::closed_port;
use plimsoll_core::clock::now_ns;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A run with a live page.
struct Followed {
    run: Running,
    host: String,
    token: String,
}

fn start(place: &Place, target: &str, flags: &[&str]) -> Followed {
    let run = place.start([&["load", target, "--rate=200"][..], flags].concat());
    until("the address of the live page", Duration::from_secs(30), || {
        run.stderr_so_far().contains("/?token=")
    });
    let said = run.stderr_so_far();
    let url = said.split_whitespace().find(|word| word.contains("/?token=")).unwrap();
    let (host, token) = url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
    Followed { host: host.to_owned(), token: token.to_owned(), run }
}

impl Followed {
    fn page(&self) -> String {
        let (status, page) = curl(&[&format!("http://{}/?token={}", self.host, self.token)]);
        assert_eq!(status, 200);
        page
    }

    /// The path at which this page follows the run.
    fn events(page: &str) -> String {
        let (_, rest) = page.split_once("data-live=\"").unwrap();
        rest.split('"').next().unwrap().replace("&amp;", "&")
    }

    fn follow(&self, path: &str) -> Events {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host);
        stream.write_all(request.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        Events { reader, text: String::new() }
    }
}

/// Server-sent events over HTTP's chunks.
struct Events {
    reader: BufReader<TcpStream>,
    text: String,
}

impl Events {
    /// Name, id and data of the next event; `None` at the end of the reply.
    fn next(&mut self) -> Option<(String, String, String)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| -> Vec<&str> {
                    event.lines().filter_map(|line| line.strip_prefix(name)).collect()
                };
                let read =
                    (field("event: ").concat(), field("id: ").concat(), field("data: ").join("\n"));
                self.text = rest.to_owned();
                if !read.0.is_empty() {
                    return Some(read);
                }
                continue;
            }
            let mut size = String::new();
            self.reader.read_line(&mut size).ok().filter(|read| *read > 0)?;
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.reader.read_exact(&mut chunk).unwrap();
            if size == 0 {
                return None;
            }
            self.text.push_str(std::str::from_utf8(&chunk[..size]).unwrap());
        }
    }

    /// Data and id of the next event of this name.
    fn wait_for(&mut self, name: &str) -> (String, String) {
        loop {
            let (found, id, data) =
                self.next().unwrap_or_else(|| panic!("no more events before {name}"));
            if found == name {
                return (data, id);
            }
        }
    }
}

/// The end of the time axis in an event, if it has a new one.
fn last_second(columns: &serde_json::Value) -> Option<f64> {
    columns["arrays"]["t"].as_array()?.last()?.as_f64()
}

#[test]
fn the_page_follows_the_run_and_becomes_the_report() {
    // The page has what the generator leaves: where others keep all cores busy, it shows no second before the end.
    let place = Place::quiet();
    let target = place.serve(&["queue", "--servers", "4", "--error-every", "20"]);
    let flags = ["--duration=12s", "--live", "--html=report.html", "--json=r.json"];
    let followed = start(&place, &target.url, &flags);
    let address = format!("http://{}", followed.host);
    for path in ["/", "/events", "/?token=00000000000000000000000000000000"] {
        assert_eq!(curl(&[&format!("{address}{path}")]).0, 403, "{path}");
    }
    assert_eq!(curl(&["-H", "Host: evil.example", &format!("{address}/metrics")]).0, 421);
    // Until the first second is over, the page has no plots; then it loads itself again.
    let mut page = followed.page();
    let mut columns = Vec::new();
    let mut last = String::new();
    let mut events = followed.follow(&Followed::events(&page));
    while columns.len() < 3 {
        let (name, id, data) = events.next().unwrap();
        match name.as_str() {
            "reload" => {
                page = followed.page();
                events = followed.follow(&Followed::events(&page));
                columns.clear();
            }
            "columns" => {
                let read: serde_json::Value = serde_json::from_str(&data).unwrap();
                // A second may come again when a late reply has changed it; only new ones count.
                if columns.is_empty() || last_second(&read).is_some() {
                    columns.push(read);
                }
            }
            _ => {}
        }
        last = if id.is_empty() { last } else { id };
    }
    assert!(page.contains("connect-src 'self'") && page.contains("id=\"plot-throughput\""));
    assert_eq!(columns[0]["reset"], true);
    let from: Vec<u64> = columns[1..].iter().map(|one| one["from"].as_u64().unwrap()).collect();
    assert!(from[0] > 0 && from[0] <= from[1], "{from:?}");
    assert!(last_second(&columns[1]) < last_second(&columns[2]), "{columns:#?}");
    // A lost connection resumes, by the event that was seen last.
    drop(events);
    let mut events = followed.follow(&format!("{}&last={last}", Followed::events(&page)));
    let (first, _) = events.wait_for("columns");
    assert!(!first.contains("\"reset\":true"), "{first}");
    let (_, scraped) = curl(&[&format!("{address}/metrics")]);
    assert!(scraped.contains("plimsoll_requests_scheduled_total{phase=\"steady\"}"), "{scraped}");
    let (report, _) = events.wait_for("end");
    assert!(events.next().is_none());
    let ended = followed.run.wait(PATIENCE);
    assert!(report == place.read("report.html"), "the last state is the file of --html");
    assert!(
        !ended.stdout.contains(&followed.token) && !place.read("r.json").contains(&followed.token)
    );
}

#[test]
fn the_button_ends_the_run_like_ctrl_c() {
    let place = Place::new();
    let target = place.serve(&["null"]);
    let live = format!("127.0.0.1:{}", closed_port());
    let followed = start(&place, &target.url, &["--duration=60s", "--live", &live]);
    assert_eq!(followed.host, live, "the address that was asked for");
    let stop = format!("http://{live}/stop");
    assert_eq!(curl(&["-X", "POST", &stop]).0, 403);
    std::thread::sleep(Duration::from_millis(1_500));
    let with_token = format!("{stop}?token={}", followed.token);
    assert_eq!(curl(&[&with_token]).0, 405, "a link cannot stop it");
    assert_eq!(curl(&["-X", "POST", &with_token]).0, 202);
    let ended = followed.run.wait(Duration::from_secs(20)).expect(3);
    assert!(ended.stdout.contains("partial"), "{}", ended.stdout);
    let kept = glob::glob(&format!("{}/runs/*/run.json", place.path().display())).unwrap();
    assert_eq!(kept.count(), 1, "its record is kept");
}

#[test]
fn fifty_pages_and_one_that_is_stopped_do_not_hold_up_the_run() {
    let place = Place::busy();
    let target = place.serve(&["null"]);
    let followed =
        start(&place, &target.url, &["--duration=5s", "--live", "--no-record", "--json=r.json"]);
    let path = Followed::events(&followed.page());
    // None of them reads: their connections fill up.
    let readers: Vec<Events> = (0..50).map(|_| followed.follow(&path)).collect();
    let before_ns = now_ns();
    let ended = followed.run.wait(Duration::from_secs(30));
    let took_s = (now_ns() - before_ns) as f64 / 1e9;
    assert!(took_s < 9.0, "{took_s} s: a goodbye of 1 s at most");
    let record: serde_json::Value = serde_json::from_str(&place.read("r.json")).unwrap();
    assert_eq!(record["ledger"]["scheduled"], 1_000, "{}", ended.stderr);
    drop(readers);
}

#[test]
fn an_address_that_is_taken_or_wrong_is_a_usage_error() {
    let place = Place::new();
    let target = place.serve(&["null"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (flag, word) in [
        (format!("--live={address}"), format!("--live {address}: ")),
        ("--live=example.com:80".to_owned(), "write 127.0.0.1:PORT".to_owned()),
    ] {
        let ended = place.run(["load", &target.url, "--duration=1s", &flag]).expect(64);
        assert!(ended.stderr.contains(&word), "{flag}: {}", ended.stderr);
    }
}

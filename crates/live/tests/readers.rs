//! The server as browsers see it, and as others try it.
#![allow(clippy::unwrap_used, missing_docs)]

use plimsoll_core::clock::now_ns;
use plimsoll_live::{Address, Board, Hooks, Live, Plots};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

struct Served {
    live: Live,
    stops: Arc<AtomicU32>,
    host: String,
    token: String,
}

fn serve() -> Served {
    let stops = Arc::new(AtomicU32::new(0));
    let stopped = stops.clone();
    let hooks = Hooks {
        stop: Box::new(move || {
            stopped.fetch_add(1, Ordering::SeqCst);
        }),
        renew: Box::new(|| ()),
        metrics: Box::new(|| "plimsoll_x 1\n".to_owned()),
        metrics_kind: "text/plain; version=0.0.4",
    };
    let live = Live::start(Address::default(), hooks).unwrap();
    let url = live.url();
    let (host, token) = url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
    Served { stops, host: host.to_owned(), token: token.to_owned(), live }
}

/// The page after so many seconds.
fn board(seconds: usize, text: &str) -> Board {
    let time = (0..seconds).map(|second| Some(second as f64)).collect();
    Board {
        structure: "a".to_owned(),
        page: format!("<!doctype html><p>{seconds}"),
        sections: vec![("a".to_owned(), text.to_owned())],
        plots: Plots { arrays: BTreeMap::from([("t".to_owned(), time)]), ..Plots::default() },
    }
}

impl Served {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Asks once over a connection of its own; returns status and body.
    fn ask(&self, line: &str, headers: &str) -> (u16, String) {
        let mut stream = self.connect();
        let request = format!("{line} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        (status, text.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.ask(&format!("GET {path}"), &format!("Host: {}\r\n", self.host))
    }

    /// Follows the events, after those that were seen.
    fn follow(&self, more: &str) -> BufReader<TcpStream> {
        let mut stream = self.connect();
        let (token, host) = (&self.token, &self.host);
        let request = format!("GET /events?token={token}{more} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/event-stream"), "{head}");
        reader
    }
}

/// Name, id and data of the next event; sizes of chunks are passed over.
fn next(reader: &mut impl BufRead) -> Option<(String, String, String)> {
    let (mut name, mut id, mut data) = (String::new(), String::new(), Vec::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end_matches(['\r', '\n']);
        if let Some(rest) = line.strip_prefix("event: ") {
            name = rest.to_owned();
        } else if let Some(rest) = line.strip_prefix("id: ") {
            id = rest.to_owned();
        } else if let Some(rest) = line.strip_prefix("data: ") {
            data.push(rest.to_owned());
        } else if line.is_empty() && !name.is_empty() {
            return Some((name, id, data.join("\n")));
        }
    }
}

#[test]
fn without_the_token_there_is_nothing_but_metrics() {
    let served = serve();
    served.live.publish(board(1, "x"));
    let wrong = "0".repeat(32);
    for path in ["/", "/events", "/stop", "/other"] {
        for query in [String::new(), format!("?token={wrong}"), "?token=".to_owned()] {
            assert_eq!(served.get(&format!("{path}{query}")).0, 403, "{path}{query}");
        }
    }
    let host = format!("Host: {}\r\n", served.host);
    assert_eq!(served.ask("POST /stop", &host).0, 403);
    assert_eq!(served.stops.load(Ordering::SeqCst), 0);
    assert_eq!(served.get("/metrics"), (200, "plimsoll_x 1\n".to_owned()));
    let (status, page) = served.get(&format!("/?token={}", served.token));
    assert_eq!((status, page.as_str()), (200, "<!doctype html><p>1"));
    assert_eq!(served.get(&format!("/other?token={}", served.token)).0, 404);
}

#[test]
fn whoever_has_the_token_reaches_the_page_beside_those_that_say_nothing() {
    let served = serve();
    // A reader that came before them stays.
    let mut reader = served.follow("");
    served.live.publish(board(1, "before"));
    let page = format!("/?token={}", served.token);
    let mut silent = Vec::new();
    for number in 0..1_500 {
        silent.push(served.connect());
        if number % 500 == 400 {
            assert_eq!(served.get("/metrics").0, 200);
            assert_eq!(served.get(&page).0, 200);
        }
    }
    served.live.publish(board(2, "after"));
    let mut events = std::iter::from_fn(|| next(&mut reader));
    assert!(events.any(|(_, _, data)| data.contains("after")), "the reader was dropped");
    // The first of them made room.
    silent[0].set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert!(matches!(silent[0].read(&mut [0]), Ok(0) | Err(_)));
}

#[test]
fn a_page_is_made_when_a_browser_opens_it() {
    let served = serve();
    let empty = Board { page: String::new(), ..board(1, "x") };
    served.live.publish(empty.clone());
    let (path, host) = (format!("/?token={}", served.token), served.host.clone());
    let asking = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(&host).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    });
    std::thread::sleep(Duration::from_millis(200));
    // A board without a page is not what it waits for, though a machine without idle time needs long for the first one.
    served.live.publish(empty);
    std::thread::sleep(Duration::from_millis(2500));
    served.live.publish(board(2, "x"));
    assert!(asking.join().unwrap().ends_with("<!doctype html><p>2"));
}

#[test]
fn a_name_that_somebody_else_points_here_is_refused() {
    let served = serve();
    served.live.publish(board(1, "x"));
    for line in [format!("GET /?token={}", served.token), "GET /metrics".to_owned()] {
        for host in ["Host: evil.example\r\n", "Host: evil.example:80\r\n", ""] {
            let status = served.ask(&line, host).0;
            assert!([400, 421].contains(&status), "{line} {host}: {status}");
        }
        assert_eq!(served.ask(&line, "Host: localhost\r\n").0, 200);
    }
}

#[test]
fn only_a_post_with_the_token_stops_the_run() {
    let served = serve();
    let (host, token) = (format!("Host: {}\r\n", served.host), &served.token);
    assert_eq!(served.ask(&format!("GET /stop?token={token}"), &host).0, 405);
    assert_eq!(served.stops.load(Ordering::SeqCst), 0);
    assert_eq!(served.ask(&format!("POST /stop?token={token}"), &host).0, 202);
    let bearer = format!("{host}Authorization: Bearer {token}\r\n");
    assert_eq!(served.ask("POST /stop", &bearer).0, 202);
    assert_eq!(served.stops.load(Ordering::SeqCst), 2);
}

#[test]
fn a_reader_sees_every_second_and_resumes_where_it_was() {
    let served = serve();
    served.live.publish(board(3, "three"));
    let mut reader = served.follow("");
    let (name, _, data) = next(&mut reader).unwrap();
    assert!(
        name == "columns" && data.contains("\"reset\":true") && data.contains("[0,1,2]"),
        "{data}"
    );
    let (name, seen, data) = next(&mut reader).unwrap();
    assert_eq!((name.as_str(), data.as_str()), ("sections", "{\"a\":\"three\"}"));
    served.live.publish(board(4, "four"));
    let (_, _, data) = next(&mut reader).unwrap();
    assert!(data.contains("\"from\":3") && data.contains("\"t\":[3]"), "{data}");
    drop(reader);
    served.live.publish(board(5, "five"));
    served.live.publish(board(6, "six"));
    // By the header of the browser, and by the parameter of the page.
    for more in [format!("&last={seen}"), format!("&last={seen}&page=0")] {
        let mut reader = served.follow(&more);
        let mut froms = Vec::new();
        for _ in 0..3 {
            let (name, _, data) = next(&mut reader).unwrap();
            assert_eq!(name, "columns");
            froms.push(data);
            assert_eq!(next(&mut reader).unwrap().0, "sections");
        }
        assert!(froms[0].contains("\"from\":3") && froms[2].contains("\"from\":5"), "{froms:?}");
    }
    let mut reader = served.follow("&last=1000000");
    assert!(next(&mut reader).unwrap().2.contains("\"reset\":true"), "of another run");
}

#[test]
fn a_page_of_another_structure_is_told_to_load_itself_again() {
    let served = serve();
    let first = board(1, "x");
    served.live.publish(first.clone());
    let old = served.live.events(&first);
    let (_, page) = old.rsplit_once("&page=").unwrap();
    let now = Board { structure: "b".to_owned(), ..board(2, "x") };
    served.live.publish(now.clone());
    assert_eq!(next(&mut served.follow(&format!("&page={page}"))).unwrap().0, "reload");
    let (_, page) = served
        .live
        .events(&now)
        .rsplit_once("&page=")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert_eq!(next(&mut served.follow(&format!("&page={page}"))).unwrap().0, "columns");
}

#[test]
fn the_end_is_the_report_byte_by_byte_and_comes_at_once() {
    let served = serve();
    served.live.publish(board(1, "x"));
    let mut readers: Vec<_> = (0..50).map(|_| served.follow("")).collect();
    for reader in &mut readers {
        assert_eq!(next(reader).unwrap().0, "columns");
        assert_eq!(next(reader).unwrap().0, "sections");
    }
    let report = format!("<!doctype html>\n<p>ü\u{202e}\n\n{}\n</html>\n", "x".repeat(300_000));
    let before_ns = now_ns();
    let reading = std::thread::spawn(move || -> Vec<_> {
        readers.iter_mut().map(|reader| (next(reader), next(reader))).collect()
    });
    served.live.end(&report);
    let took_ms = (now_ns() - before_ns) / 1_000_000;
    for (end, after) in reading.join().unwrap() {
        let (name, _, data) = end.unwrap();
        assert!(name == "end" && data == report);
        assert!(after.is_none(), "the connection is closed");
    }
    assert!(took_ms < 900, "{took_ms} ms");
}

#[test]
fn a_reader_that_takes_nothing_is_dropped_and_holds_nobody_up() {
    let served = serve();
    served.live.publish(board(1, "x"));
    let stopped = served.follow("");
    let mut other = served.follow("");
    let text = "x".repeat(400_000);
    let mut longest_ms = 0;
    for second in 2..80 {
        let before_ns = now_ns();
        served.live.publish(board(second, &format!("{second}{text}")));
        longest_ms = longest_ms.max((now_ns() - before_ns) / 1_000_000);
        // The other one reads on.
        while next(&mut other).unwrap().0 != "sections" {}
    }
    assert!(longest_ms < 1_000, "{longest_ms} ms");
    let until_ns = now_ns() + 20_000_000_000;
    while served.live.readers() > 1 && now_ns() < until_ns {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(served.live.readers(), 1, "the one that stopped is gone");
    drop(stopped);
    let before_ns = now_ns();
    served.live.end("end");
    assert!(now_ns() - before_ns < 3_000_000_000);
}

#[test]
fn a_reader_that_stops_at_the_end_delays_it_by_the_goodbye_at_most() {
    let served = serve();
    served.live.publish(board(1, "x"));
    let _stopped = served.follow("");
    let before_ns = now_ns();
    served.live.end(&"x".repeat(30_000_000));
    let took_ms = (now_ns() - before_ns) / 1_000_000;
    assert!((900..4_000).contains(&took_ms), "{took_ms} ms");
}

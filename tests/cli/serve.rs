//! plimsoll serve.

use crate::process::{PATIENCE, Place, curl, until};
use rustix::process::Signal;
use std::net::{IpAddr, TcpStream};
use std::time::Duration;

#[test]
fn says_when_it_is_ready_and_stops_when_told() {
    for kind in ["null", "queue", "search"] {
        for signal in [Signal::TERM, Signal::INT] {
            let place = Place::new();
            let target = place.serve(&[kind, "--ready-file", "ready.txt"]);
            assert_eq!(target.host, "127.0.0.1");
            let line = format!("ready {kind} {}\n", target.url);
            assert_eq!(place.read("ready.txt"), line);
            let path = if kind == "search" { "/state/v1/health" } else { "/_stats" };
            assert_eq!(curl(&[&format!("{}{path}", target.url)]).0, 200);
            target.process.signal(signal);
            let ended = target.process.wait(Duration::from_secs(10)).expect(0);
            assert_eq!(ended.stdout, line);
            assert_eq!(ended.stderr, "");
        }
    }
}

#[test]
fn is_on_loopback_unless_told() {
    let place = Place::new();
    let target = place.serve(&["null", "--host", "::1"]);
    assert!(target.url.starts_with("http://[::1]:"), "{}", target.url);
    assert_eq!(curl(&[&format!("{}/", target.url)]).0, 200);
}

#[test]
fn queue_prints_its_truth() {
    let place = Place::new();
    let running = place.start(["serve", "queue", "--service", "exponential:5ms", "--rate", "100"]);
    let text = running.wait_for("ready ", Duration::from_secs(30));
    // M/M/1 at a load of one half: the mean is 10 ms, the median ln 2 of it.
    assert!(text.contains("M/M/1") && text.contains("mean 10.000 ms"), "{text}");
    assert!(text.contains("p50 6.931 ms") && text.contains("p99 46.052 ms"), "{text}");
}

#[test]
fn search_keeps_its_documents_across_restarts() {
    let place = Place::new();
    let search = |url: &str| {
        let (status, body) =
            curl(&[&format!("{url}/search/?yql=select%20*%20from%20doc%20where%20true")]);
        assert_eq!(status, 200, "{body}");
        let reply: serde_json::Value = serde_json::from_str(&body).unwrap();
        reply.pointer("/root/fields/totalCount").unwrap().as_u64().unwrap()
    };
    let target = place.serve(&["search", "--data", "data"]);
    for i in 0..20 {
        let url = format!("{}/document/v1/plimsoll/doc/docid/{i}", target.url);
        let (status, body) = curl(&["-d", "{\"fields\":{\"title\":\"ship\"}}", &url]);
        assert_eq!(status, 200, "{body}");
    }
    until("documents are found", Duration::from_secs(10), || search(&target.url) == 20);
    target.process.signal(Signal::TERM);
    target.process.wait(PATIENCE).expect(0);
    let target = place.serve(&["search", "--data", "data"]);
    assert_eq!(search(&target.url), 20);
}

#[test]
fn search_with_a_folder_that_cannot_be_used_is_never_ready() {
    let place = Place::new();
    place.file("data", "a file in the way");
    let ended = place.run(["serve", "search", "--data", "data"]);
    assert!(matches!(ended.code, Some(1 | 64)), "{ended:?}");
    assert_eq!(ended.stdout, "", "ready, and then not");
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("data"), "{}", ended.stderr);
}

/// Clients that all come at once, while the server is held up: the kernel takes their connections for it.
#[test]
fn hundreds_of_connections_wait_to_be_accepted() {
    let place = Place::new();
    let target = place.serve(&["null"]);
    target.process.signal(Signal::STOP);
    let address = (target.host.parse::<IpAddr>().unwrap(), target.port).into();
    // The second attempt of a connection that the kernel dropped would come after a second.
    let limit = Duration::from_millis(900);
    let came: Vec<_> =
        (0..400).map_while(|_| TcpStream::connect_timeout(&address, limit).ok()).collect();
    target.process.signal(Signal::CONT);
    assert_eq!(came.len(), 400);
}

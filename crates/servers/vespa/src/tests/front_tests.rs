//! The front end: both versions of HTTP, several containers, too much at once, clients that go away.

use super::two::Two;
use super::{Blockable, Client, JSON, document, open, start, start_containers, start_with};
use crate::VespaConfig;
use crate::store::{Found, StoreError};
use crate::visit::{Collect, MAX_AHEAD, Reader, Wanted};
use plimsoll_core::clock::now_ns;
use plimsoll_documents::document::Values;
use plimsoll_front::{Durability, FrontConfig, processors};
use plimsoll_wire::vespa::ProgressToken;
use std::io::Read;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const BODY: &[u8] = br#"{"fields":{"title":"many"}}"#;

#[test]
fn both_versions_of_http_are_spoken_on_one_port() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let (mut one, mut two) = (server.client(), Two::connect(server.address));
    let path = document("x%2Fy+z");
    let stored = two.request("POST", &path, JSON, BODY);
    assert_eq!(
        (stored.status, &stored.body),
        (200, &one.get(&path).body.replace(",\"fields\":{\"title\":\"many\"}", ""))
    );
    assert_eq!(two.request("GET", &path, "", b"").body, one.get(&path).body);
    assert_eq!(two.request("GET", "/state/v1/health", "", b"").status, 200);
    assert_eq!(two.request("GET", "/search/?query=many", "", b"").status, 200);
    // A request body in both codings, over both.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, BODY).unwrap();
    let packed = packed.finish().unwrap();
    let gzip = format!("{JSON}Content-Encoding: gzip\r\n");
    assert_eq!(two.request("POST", &document("p2"), &gzip, &packed).status, 200);
    assert_eq!(one.request("POST", &document("p1"), &gzip, &packed).status, 200);
    assert_eq!(one.get(&document("p2")).json()["fields"]["title"], "many");
    server.stop();
    assert!(two.ended_in_order());
}

#[test]
fn a_connection_takes_512_requests_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut two = Two::connect(server.address);
    let requests: Vec<_> =
        (0..512).map(|n| ("POST", document(&n.to_string()), BODY.to_vec())).collect();
    for reply in two.all(&requests) {
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    let reads: Vec<_> = (0..512).map(|n| ("GET", document(&n.to_string()), Vec::new())).collect();
    assert!(two.all(&reads).iter().all(|reply| reply.status == 200));
}

#[test]
fn overload_is_answered_with_429_and_never_stalls() {
    let folder = tempfile::tempdir().unwrap();
    let config = VespaConfig {
        operations_under_way: 8,
        max_throttled: 4,
        ..VespaConfig::new(folder.path())
    };
    let server = Blockable::start(config);
    let held = server.vespa.app.store.block_writes();
    let address = server.address;
    let feeder = std::thread::spawn(move || {
        let mut two = Two::connect(address);
        let requests: Vec<_> =
            (0..50).map(|n| ("POST", document(&n.to_string()), BODY.to_vec())).collect();
        two.all(&requests)
    });
    let mut client = Client::connect(server.address);
    let refused = "plimsoll_search_rejected_total 38";
    let start_ns = now_ns();
    while !client.get("/metrics").body.contains(refused) {
        assert!(now_ns() - start_ns < 20_000_000_000, "{}", client.get("/metrics").body);
        std::thread::sleep(Duration::from_millis(5));
    }
    let reply = client.request("POST", &document("late"), JSON, BODY);
    let text = "Rejecting execution due to overload: 4 requests already enqueued";
    assert_eq!((reply.status, reply.message().as_str()), (429, text));
    // What is not about documents goes on, and visits too: they only read.
    assert_eq!(client.get("/state/v1/health").status, 200);
    assert_eq!(client.get("/document/v1/?cluster=plimsoll").status, 200);
    // A write that waits longer than its timeout says so.
    drop(held);
    let replies = feeder.join().unwrap();
    let count = |status| replies.iter().filter(|reply| reply.status == status).count();
    assert_eq!((count(200), count(429)), (12, 38));
    assert_eq!(client.request("POST", &document("late"), JSON, BODY).status, 200);
    let held = server.vespa.app.store.block_writes();
    let reply = client.request("POST", &format!("{}?timeout=50ms", document("slow")), JSON, BODY);
    assert_eq!((reply.status, reply.message().as_str()), (504, "Timeout after 50ms"));
    // Old work is a reason of its own.
    std::thread::sleep(Duration::from_millis(3200));
    let reply = client.request("POST", &document("late"), JSON, BODY);
    assert_eq!(reply.status, 429, "{}", reply.body);
    assert!(reply.message().ends_with(" seconds worth of work enqueued"), "{}", reply.body);
    drop(held);
}

#[test]
fn a_slow_upload_does_not_count_as_old_work() {
    let folder = tempfile::tempdir().unwrap();
    let server = Blockable::start(VespaConfig::new(folder.path()));
    let mut slow = Client::connect(server.address);
    let (path, length) = (document("slow"), BODY.len());
    let head = format!("POST {path} HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\n{JSON}\r\n");
    slow.send(head.as_bytes());
    slow.send(&BODY[..10]);
    std::thread::sleep(Duration::from_millis(3200));
    // The writing thread takes the write and is kept in its commit.
    let held = server.vespa.app.store.block_writes();
    slow.send(&BODY[10..]);
    std::thread::sleep(Duration::from_millis(100));
    let mut client = Client::connect(server.address);
    for number in 0..5 {
        let path = format!("{}?timeout=50ms", document(&number.to_string()));
        let reply = client.request("POST", &path, JSON, BODY);
        assert_eq!(reply.status, 504, "it waits and is not rejected: {}", reply.body);
    }
    drop(held);
    assert_eq!(slow.receive().unwrap().status, 200);
}

#[test]
fn a_container_stops_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (server, addresses) = start_containers(VespaConfig::new(folder.path()), 3);
    let mut clients: Vec<_> = addresses.iter().map(|at| Client::connect(*at)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.put(&number.to_string(), r#"{"title":"shared"}"#).status, 200);
    }
    for client in &mut clients {
        for number in 0..3 {
            assert_eq!(client.get(&document(&number.to_string())).status, 200);
        }
        // Counters are the container's own, documents are everybody's.
        let metrics = client.get("/metrics").body;
        assert!(metrics.contains("requests_total{kind=\"put\",status=\"200\"} 1\n"), "{metrics}");
        assert!(metrics.contains("plimsoll_search_documents 3\n"), "{metrics}");
    }
    let mut idle = Client::connect(addresses[1]);
    let two = Two::connect(addresses[1]);
    let reply = clients[1].request("POST", "/plimsoll/v1/container/stop", "", b"");
    assert_eq!((reply.status, reply.body.as_str()), (200, "{\"stopping\":1}"));
    // Both kinds of connection end, and nobody listens any more.
    assert!(clients[1].receive().is_none());
    assert!(idle.receive().is_none());
    let _ = two.ended_in_order();
    let start_ns = now_ns();
    while std::net::TcpStream::connect(addresses[1]).is_ok() {
        assert!(now_ns() - start_ns < 5_000_000_000, "the port is still open");
        std::thread::sleep(Duration::from_millis(5));
    }
    for number in [0, 2] {
        assert_eq!(clients[number].put("more", r#"{"title":"t"}"#).status, 200);
    }
    assert_eq!(clients[0].get("/plimsoll/v1/container/stop").status, 405);
    server.stop();
}

fn visits(client: &mut Client) -> String {
    let page = client.get("/metrics").body;
    page.lines().find(|line| line.starts_with("plimsoll_search_visits ")).unwrap().to_owned()
}

#[test]
fn visits_end_when_their_clients_go_away_or_do_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let server = start_with(VespaConfig {
        durability: Durability::None,
        front: FrontConfig { write_timeout: Duration::from_millis(700), ..FrontConfig::default() },
        ..VespaConfig::new(folder.path())
    });
    let mut client = server.client();
    let large = format!("{{\"body\":\"{}\"}}", "word ".repeat(200_000));
    for number in 0..40 {
        assert_eq!(client.put(&number.to_string(), &large).status, 200);
    }
    let get = b"GET /document/v1/?cluster=plimsoll&stream=true HTTP/1.1\r\nHost: t\r\n\r\n";
    let wait_for = |client: &mut Client, wanted: &str| {
        let start_ns = now_ns();
        while visits(client) != wanted {
            assert!(now_ns() - start_ns < 20_000_000_000, "{}", visits(client));
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    // Gone.
    let mut other = server.client();
    other.send(get);
    wait_for(&mut client, "plimsoll_search_visits 1");
    drop(other);
    wait_for(&mut client, "plimsoll_search_visits 0");
    // There, but not reading: cut off, so that the rest of the reply never comes.
    let mut other = server.client();
    other.send(get);
    wait_for(&mut client, "plimsoll_search_visits 1");
    wait_for(&mut client, "plimsoll_search_visits 0");
    let mut rest = Vec::new();
    let _ = other.stream().read_to_end(&mut rest);
    assert!(rest.len() < 40_000_000 && !rest.ends_with(b"0\r\n\r\n"), "{} bytes", rest.len());
    // A reader that takes its time is served to the end.
    let mut other = server.client();
    other.send(get);
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 4 << 20];
    while !bytes.ends_with(b"}\r\n0\r\n\r\n") {
        let count = other.stream().read(&mut chunk).unwrap();
        assert!(count > 0, "cut off after {} bytes", bytes.len());
        bytes.extend_from_slice(&chunk[..count]);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(bytes.len() > 40_000_000);
}

/// Takes documents and makes nothing of them.
struct Nothing;

impl Collect for Nothing {
    type Output = ();

    fn take(&mut self, _found: &Found<'_>, _values: Option<Values>) -> Result<(), StoreError> {
        Ok(())
    }

    fn bytes(&self) -> usize {
        0
    }

    fn finish(self) {}
}

#[test]
fn a_visit_that_was_given_up_keeps_its_place_while_its_scans_are_queued() {
    let folder = tempfile::tempdir().unwrap();
    let server = Blockable::start(VespaConfig::new(folder.path()));
    let app = &server.vespa.app;
    // All threads that scan wait until `release` is dropped.
    let (release, released) = channel::<()>();
    let released = Arc::new(Mutex::new(released));
    for _ in 0..processors() {
        let released = Arc::clone(&released);
        let wait = move || {
            let _ = released.lock().unwrap().recv();
        };
        app.scans.submit(wait).unwrap();
    }
    while app.scans.waiting() > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let free = app.visits.available_permits();
    let visit = Arc::clone(&app.visits).try_acquire_owned().unwrap();
    let token = ProgressToken::start(8, 1, 0).unwrap();
    let pace = (MAX_AHEAD, None);
    let mut reader = Reader::new(app, visit, Wanted::default(), token, pace, || Nothing);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let next = async { tokio::time::timeout(Duration::from_millis(10), reader.next()).await };
    assert!(runtime.block_on(next).is_err(), "no thread scans");
    drop(reader);
    assert_eq!((app.scans.waiting(), app.visits.available_permits()), (MAX_AHEAD, free - 1));
    drop(release);
    let start_ns = now_ns();
    while app.visits.available_permits() < free {
        assert!(now_ns() - start_ns < 20_000_000_000, "the place never comes back");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_folder_of_the_former_layout_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let former = redb::TableDefinition::<&str, u64>::new("ids");
    let db = redb::Database::create(folder.path().join("documents.redb")).unwrap();
    let transaction = db.begin_write().unwrap();
    transaction.open_table(former).unwrap().insert("id:a:doc::b", 1).unwrap();
    transaction.commit().unwrap();
    drop(db);
    let error = open(VespaConfig::new(folder.path())).err().unwrap().to_string();
    assert!(error.contains("earlier version of plimsoll"), "{error}");
    assert!(error.contains("--data") && !error.contains('\n'), "{error}");
}

#[test]
fn every_durability_keeps_what_a_clean_stop_leaves() {
    for durability in [Durability::Sync, Durability::Async, Durability::None] {
        let folder = tempfile::tempdir().unwrap();
        let config = || VespaConfig { durability, ..VespaConfig::new(folder.path()) };
        let server = start_with(config());
        let mut client = server.client();
        for number in 0..50 {
            assert_eq!(client.put(&number.to_string(), r#"{"title":"kept"}"#).status, 200);
            assert_eq!(client.get(&document(&number.to_string())).status, 200);
        }
        client.refresh();
        server.stop();
        let server = start_with(config());
        let mut client = server.client();
        assert_eq!(client.find("title contains 'kept'").total(), 50, "{durability:?}");
        assert_eq!(client.put("0", r#"{"title":"new"}"#).status, 200);
    }
}

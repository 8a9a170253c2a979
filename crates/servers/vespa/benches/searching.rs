//! Writing and searching: rates, times until a write is found, starts and stops. `cargo bench -p plimsoll-vespa --bench searching`

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use plimsoll_core::clock::now_ns;
use plimsoll_probe::{Client, Numbers, TestServer, document, encode};
use plimsoll_vespa::{VespaConfig, run};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const DOCUMENTS: usize = 100_000;

/// Words with frequencies about as in a language: the k-th is drawn with weight 1/k.
fn word(numbers: &mut Numbers, vocabulary: usize) -> String {
    let real = (numbers.below(1 << 30) as f64 + 1.0) / (1u64 << 30) as f64;
    let rank = (vocabulary as f64).powf(real) as usize;
    let mut name = String::from("w");
    // Rare words are long ones, as in a language.
    let mut rest = (rank * 7919 + 13) * if rank > 300 { 1_000_003 } else { 1 };
    while rest > 0 {
        name.push(char::from(b'a' + (rest % 26) as u8));
        rest /= 26;
    }
    name
}

fn body(numbers: &mut Numbers) -> String {
    let mut text =
        |length| (0..length).map(|_| word(numbers, 50_000)).collect::<Vec<_>>().join(" ");
    let (title, body) = (text(5), text(35));
    let (category, score) = (numbers.below(20), numbers.below(1000));
    format!(
        "{{\"fields\":{{\"title\":\"{title}\",\"body\":\"{body}\",\
         \"category\":\"c{category}\",\"author\":\"a{score}\",\"score\":{score}}}}}"
    )
}

fn start_with(config: VespaConfig) -> TestServer {
    TestServer::start(1, |listeners, stop| run(listeners, config, &stop)).0
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let server = start_with(VespaConfig::new(folder.path()));
    for connections in [1, 8, 32] {
        let count = if connections == 1 { 5_000 } else { DOCUMENTS / 2 };
        let feeding = AtomicBool::new(true);
        let (rate, delays_ms) = std::thread::scope(|scope| {
            let prober = scope.spawn(|| visibility(&server, connections, &feeding));
            let rate = feed(&server, connections, count);
            feeding.store(false, Ordering::Relaxed);
            (rate, prober.join().unwrap())
        });
        println!("feed: {connections} connections, {count} documents: {rate:.0}/s");
        let (middle, last) = (delays_ms[delays_ms.len() / 2], delays_ms[delays_ms.len() - 1]);
        println!("  acknowledged to found meanwhile: p50 {middle} ms, max {last} ms");
    }
    let mut client = server.client();
    let start_ns = now_ns();
    client.refresh();
    println!("refresh after it: {} ms", (now_ns() - start_ns) / 1_000_000);
    std::thread::sleep(std::time::Duration::from_secs(8));
    let metrics = client.get("/metrics").body;
    for line in metrics.lines().filter(|line| {
        line.contains("commits") || line.contains("segments") || line.contains("documents")
    }) {
        println!("{line}");
    }
    search_speed(&mut client);
    let crashed = tempfile::tempdir().unwrap();
    copy_folder(folder.path(), crashed.path());
    let start_ns = now_ns();
    let second = start_with(VespaConfig::new(crashed.path()));
    second.client().get("/status.html");
    println!("start after a crash: {} ms", (now_ns() - start_ns) / 1_000_000);
    second.stop();
    std::fs::remove_dir_all(crashed.path().join("index")).unwrap();
    let start_ns = now_ns();
    let second = start_with(VespaConfig::new(crashed.path()));
    second.client().get("/status.html");
    println!("start without an index: {} ms", (now_ns() - start_ns) / 1_000_000);
    second.stop();
    let start_ns = now_ns();
    server.stop();
    println!("stop: {} ms", (now_ns() - start_ns) / 1_000_000);
    let start_ns = now_ns();
    let server = start_with(VespaConfig::new(folder.path()));
    server.client().get("/status.html");
    println!("start again: {} ms", (now_ns() - start_ns) / 1_000_000);
}

/// Times a mix of searches on one connection.
fn search_speed(client: &mut Client) {
    for (name, filter) in [
        ("one frequent term", "title contains \"wn\""),
        ("one term", "default contains \"$\""),
        ("one term in body", "body contains \"$\""),
        ("two terms", "body contains \"$\" and body contains \"$\""),
        ("either of two", "body contains \"$\" or body contains \"$\""),
        ("phrase", "body contains phrase(\"$\", \"$\")"),
        ("fuzzy 1", "body contains ({maxEditDistance:1}fuzzy(\"$\"))"),
        ("prefix", "body contains ({prefix:true}\"$\")"),
        ("fuzzy 2", "body contains ({maxEditDistance:2}fuzzy(\"$\"))"),
        ("filter", "body contains \"$\" and score > 500 and category contains \"c3\""),
        ("no hit", "body contains \"zzzzzzzz\""),
        ("everything", "true"),
        ("ordered", "body contains \"$\" order by score desc"),
    ] {
        let mut numbers = Numbers(99);
        let mut times: Vec<u64> = Vec::new();
        let mut total = 0;
        for _ in 0..2000 {
            let mut text = filter.to_owned();
            while text.contains('$') {
                text = text.replacen('$', &word(&mut numbers, 50_000), 1);
            }
            let yql = encode(&format!("select * from doc where {text}"));
            let path = format!("/search/?hits=10&timeout=10s&yql={yql}");
            let start_ns = now_ns();
            let reply = client.get(&path);
            times.push(now_ns() - start_ns);
            assert_eq!(reply.status, 200);
            total += reply.total();
        }
        times.sort_unstable();
        let us = |share: f64| times[(share * 1999.0) as usize] / 1000;
        println!(
            "{name}: p50 {} us, p99 {} us, max {} us, mean total {}",
            us(0.5),
            us(0.99),
            us(1.0),
            total / 2000
        );
    }
}

/// How long acknowledged writes take until they are found, sorted, in milliseconds.
fn visibility(server: &TestServer, round: usize, feeding: &AtomicBool) -> Vec<u64> {
    let mut client = server.client();
    let mut delays_ms = Vec::new();
    while feeding.load(Ordering::Relaxed) || delays_ms.is_empty() {
        let word = format!("probe{round}x{}", delays_ms.len());
        let reply = client.put(&word, &format!("{{\"title\":\"{word}\"}}"));
        assert_eq!(reply.status, 200);
        let start_ns = now_ns();
        while client.find(&format!("title contains '{word}'")).total() == 0 {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        delays_ms.push((now_ns() - start_ns) / 1_000_000);
    }
    delays_ms.sort_unstable();
    delays_ms
}

/// Feeds from several connections; gives documents per second.
fn feed(server: &TestServer, connections: usize, count: usize) -> f64 {
    let start_ns = now_ns();
    std::thread::scope(|scope| {
        for connection in 0..connections {
            let address = server.address;
            scope.spawn(move || {
                let mut numbers = Numbers(connection as u64 * 7 + 1);
                let mut client = Client::connect(address);
                for number in 0..count / connections {
                    let path = document(&format!("{connections}-{connection}-{number}"));
                    let body = body(&mut numbers);
                    let reply = client.request("POST", &path, "", body.as_bytes());
                    assert_eq!(reply.status, 200, "{}", reply.body);
                }
            });
        }
    });
    count as f64 * 1e9 / (now_ns() - start_ns) as f64
}

//! Puts of 1 kB over HTTP/2 with each durability, and visits of what they wrote: rates, CPU time and commits.
//! `cargo bench -p plimsoll-vespa --bench writing`; `PUTS=N` for another number of documents.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

#[path = "../src/tests/two.rs"]
#[allow(dead_code)]
mod two;

use plimsoll_core::clock::now_ns;
use plimsoll_front::Durability;
use plimsoll_probe::{Client, TestReply, TestServer};
use plimsoll_vespa::{VespaConfig, run};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use two::Two;

fn start_with(config: VespaConfig) -> TestServer {
    TestServer::start(1, |listeners, stop| run(listeners, config, &stop)).0
}

/// Processor time of the process so far, in seconds.
fn cpu_s() -> f64 {
    let times = std::fs::read_to_string("/proc/self/stat").unwrap();
    let rest: Vec<&str> = times.rsplit(')').next().unwrap().split_whitespace().collect();
    (rest[11].parse::<f64>().unwrap() + rest[12].parse::<f64>().unwrap()) / 100.0
}

fn main() {
    let count = std::env::var("PUTS").map_or(100_000, |count| count.parse().unwrap());
    for durability in [Durability::Sync, Durability::Async, Durability::None] {
        let folder = tempfile::tempdir().unwrap();
        let server = start_with(VespaConfig { durability, ..VespaConfig::new(folder.path()) });
        let two = Two::connect(server.address);
        let next = Arc::new(AtomicUsize::new(0));
        let body = format!(
            "{{\"fields\":{{\"title\":\"a document of about a kilobyte\",\"body\":\"{}\",\"score\":7}}}}",
            "seventeen words that fill the body of it up to the size of which the table speaks "
                .repeat(11)
        );
        let (start_ns, start_cpu) = (now_ns(), cpu_s());
        let statuses = two.flood(256, move || {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let path = format!("/document/v1/test/doc/docid/{number}");
            (number < count).then(|| (path, body.clone().into_bytes()))
        });
        let seconds = (now_ns() - start_ns) as f64 / 1e9;
        assert!(statuses.iter().all(|status| *status == 200));
        let cpu_us = (cpu_s() - start_cpu) * 1e6 / count as f64;
        let rate = count as f64 / seconds;
        println!("{durability:?}: {rate:.0} puts/s, {cpu_us:.0} us of processor each (client too)");
        let mut client = Client::connect(server.address);
        let metrics = client.get("/metrics").body;
        let commits = metrics.lines().find(|l| l.starts_with("plimsoll_search_store_commits"));
        println!("  {}", commits.unwrap());
        for query in ["stream=true", "stream=true&concurrency=1", "wantedDocumentCount=1000000"] {
            let start_ns = now_ns();
            let path = format!("/document/v1/?cluster=plimsoll&{query}");
            let reply = client.get(&path);
            let seconds = (now_ns() - start_ns) as f64 / 1e9;
            let (rate, gbps) = (count as f64 / seconds, reply.raw.len() as f64 * 8e-9 / seconds);
            println!("  visit {query}: {rate:.0} documents/s, {gbps:.2} Gbps");
        }
    }
}

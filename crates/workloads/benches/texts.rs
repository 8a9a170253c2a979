//! The speed at which a synthetic text is written, and at which a reply of ten hits is passed over.
//! `cargo bench -p plimsoll-workloads --bench texts`

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use plimsoll_core::clock::now_ns;
use plimsoll_workloads::corpus::synthetic::{Size, Synthetic, SyntheticOptions};
use plimsoll_workloads::json_scan::Pointer;
use serde_json::json;

fn main() {
    writes_a_synthetic_text();
    passes_over_a_reply();
}

fn writes_a_synthetic_text() {
    let options = SyntheticOptions::new(5, Size::Bytes(500_000_000));
    let start = now_ns();
    let corpus = Synthetic::new(&options).unwrap();
    let ready = now_ns();
    let manifest = corpus.write_ndjson(&mut std::io::sink(), 1, &mut |_| {}).unwrap();
    let seconds = (now_ns() - ready) as f64 / 1e9;
    let megabytes = manifest.ndjson_bytes.unwrap() as f64 / 1e6;
    let prepared_ms = (ready - start) / 1_000_000;
    println!("synthetic text: {prepared_ms} ms to prepare, {:.0} MB/s", megabytes / seconds);
}

fn passes_over_a_reply() {
    let hit = json!({"id": "id:doc:doc::12345", "relevance": 0.381_749, "source": "plimsoll",
        "fields": {"sddocname": "doc", "documentid": "id:doc:doc::12345", "title": "a word, two",
            "body": "an area of sand \"sloping\" down to the water ".repeat(8), "score": 17}});
    let reply = json!({"root": {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": 42},
        "coverage": {"coverage": 100, "full": true}, "children": vec![hit; 10]}})
    .to_string();
    let errors = Pointer::parse("/root/errors").unwrap();
    let rounds = 20_000;
    let start = now_ns();
    for _ in 0..rounds {
        assert!(errors.find(std::hint::black_box(reply.as_bytes())).is_none());
    }
    let ns = (now_ns() - start) / rounds;
    println!(
        "a reply: {} bytes in {ns} ns: {:.2} GB/s",
        reply.len(),
        reply.len() as f64 / ns as f64
    );
}

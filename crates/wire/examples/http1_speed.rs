//! What the HTTP/1.1 codec costs per reply: `cargo run --release --example http1_speed`.
//!
//! Prints nanoseconds per reply, the best of several rounds, for the shapes of reply that a load
//! run sees most; and for the first of them what httparse alone takes for the head.
#![allow(clippy::print_stdout)]

use std::hint::black_box;

use plimsoll_core::clock::now_ns;
use plimsoll_wire::http1::{Http1, Keep, Request};
use plimsoll_wire::{Event, Protocol};

const ROUNDS: u32 = 100;
const REPLIES_PER_ROUND: u32 = 5_000;

fn main() {
    let nginx =
        b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sat, 21 Nov 2026 20:44:53 GMT\r\n\
        Content-Type: application/octet-stream\r\nContent-Length: 1024\r\n\
        Last-Modified: Fri, 20 Nov 2026 10:00:00 GMT\r\nConnection: keep-alive\r\n\
        ETag: \"674f0a10-400\"\r\nAccept-Ranges: bytes\r\n\r\n";
    let bodied = [&nginx[..], &[b'x'; 1024][..]].concat();
    let small = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".to_vec();
    let chunked = [
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n",
        &b"Transfer-Encoding: chunked\r\n\r\n400\r\n"[..],
        &[b'x'; 1024][..],
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    let nothing = Keep::default();
    let all = Keep { head: true, body: true, stream: false };
    let whole = usize::MAX;
    let shapes = [
        ("nginx, 8 headers, 1 KB", &bodied, nothing, whole),
        ("the same, kept", &bodied, all, whole),
        ("the same in 2 reads", &bodied, nothing, 800),
        ("the same in 2 reads, kept", &bodied, all, 800),
        ("the same in reads of 100", &bodied, all, 100),
        ("1 header, 2 bytes", &small, nothing, whole),
        ("chunked, 1 KB", &chunked, nothing, whole),
        ("chunked, 1 KB, kept", &chunked, all, whole),
    ];
    // All shapes take turns, so that a machine that is slow for a while is slow for all of them.
    let mut best_ns = [u64::MAX; 9];
    for _ in 0..ROUNDS {
        for (best, (_, reply, keep, piece)) in best_ns.iter_mut().zip(&shapes) {
            *best = (*best).min(time_ns(|| decode_many(reply, *keep, *piece)));
        }
        best_ns[8] = best_ns[8].min(time_ns(|| httparse_many(nginx)));
    }
    let names = shapes.iter().map(|shape| shape.0).chain(["httparse, the first's head"]);
    for (name, best) in names.zip(best_ns) {
        println!("{name:28} {:7.1} ns", best as f64 / f64::from(REPLIES_PER_ROUND));
    }
}

fn time_ns(round: impl FnOnce()) -> u64 {
    let start_ns = now_ns();
    round();
    now_ns() - start_ns
}

fn decode_many(reply: &[u8], keep: Keep, piece: usize) {
    let codec = Http1::default();
    let request = Request { bytes: Vec::new(), head: false, keep };
    let mut out = Vec::new();
    let mut conn = codec.open(&mut out);
    for tag in 0..REPLIES_PER_ROUND {
        codec.submit(&mut conn, &request, tag, &mut out);
        for part in reply.chunks(piece.min(reply.len())) {
            match codec.receive(&mut conn, black_box(part), &mut out) {
                Ok(Event::Reply { tag: answered, reply, .. }) => {
                    assert!(answered == tag && reply.status == 200);
                    black_box(&reply);
                }
                Ok(_) => {}
                Err(fault) => panic!("{fault:?}"),
            }
        }
    }
}

fn httparse_many(head: &[u8]) {
    for _ in 0..REPLIES_PER_ROUND {
        let mut headers = [httparse::EMPTY_HEADER; 16];
        let mut response = httparse::Response::new(&mut headers);
        assert!(response.parse(black_box(head)).is_ok());
        black_box(&response);
    }
}

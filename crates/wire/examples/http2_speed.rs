//! What both HTTP codecs cost per request and reply: `cargo run --release --example http2_speed`.
//!
//! Prints nanoseconds per exchange (a request submitted and its reply read), the best of several rounds. HTTP/2
//! is shown one request at a time and with fifty under way; the server's bytes are made beforehand, with its
//! tables in the state of a connection that has long been in use.
#![allow(clippy::print_stdout)]

use std::hint::black_box;

use plimsoll_core::clock::now_ns;
use plimsoll_wire::http1::{Http1, Keep, Request};
use plimsoll_wire::http2::Http2;
use plimsoll_wire::http2::vectors::Writer;
use plimsoll_wire::{Event, Protocol};

const ROUNDS: u32 = 60;
const EXCHANGES: u32 = 5_000;
const NOTHING: Keep = Keep { head: false, body: false, stream: false };
const ALL: Keep = Keep { head: true, body: true, stream: false };

const FIELDS: [(&str, &str); 5] = [
    ("server", "nginx/1.22.1"),
    ("date", "Sat, 21 Nov 2026 20:44:53 GMT"),
    ("content-type", "application/octet-stream"),
    ("content-length", "1024"),
    ("etag", "\"674f0a10-400\""),
];

/// One way of asking and answering.
struct Shape {
    name: &'static str,
    keep: Keep,
    /// Whether the path differs from request to request.
    changing: bool,
    /// Bytes of the request's body.
    asked: usize,
}

fn main() {
    let shapes = [
        Shape { name: "GET, 1 KB", keep: NOTHING, changing: false, asked: 0 },
        Shape { name: "GET, path differs, 1 KB", keep: NOTHING, changing: true, asked: 0 },
        Shape { name: "GET, path differs, 1 KB kept", keep: ALL, changing: true, asked: 0 },
        Shape { name: "POST 300 B, path differs", keep: NOTHING, changing: true, asked: 300 },
    ];
    println!("{:30} {:>9} {:>9} {:>9}", "ns per exchange", "HTTP/1.1", "HTTP/2", "50 at once");
    for shape in &shapes {
        let requests: Vec<_> = (0..100).map(|n| request(shape, n)).collect();
        let reply = reply1();
        let mut best_ns = [u64::MAX; 3];
        // All ways take turns, so that a machine that is slow for a while is slow for all of them.
        for _ in 0..ROUNDS {
            for (best, at_once) in best_ns.iter_mut().zip([0, 1, 50]) {
                let took =
                    if at_once == 0 { one(&requests, &reply) } else { two(&requests, at_once) };
                *best = (*best).min(took);
            }
        }
        let [one, two, many] = best_ns.map(|best| best as f64 / f64::from(EXCHANGES));
        println!("{:30} {one:9.1} {two:9.1} {many:9.1}", shape.name);
    }
    println!("{:30} {:9.2} ns", "HTTP/2, streamed, per KB", streamed_ns_per_kb());
}

fn request(shape: &Shape, n: usize) -> Request {
    let n = if shape.changing { n } else { 0 };
    let method = if shape.asked > 0 { "POST" } else { "GET" };
    let length = if shape.asked > 0 { "Content-Length: 300\r\n" } else { "" };
    let head = format!(
        "{method} /document/v1/ns/music/docid/doc-{n} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\
         User-Agent: plimsoll/0.1\r\nAccept: */*\r\nContent-Type: application/json\r\n{length}\r\n"
    );
    let bytes = [head.as_bytes(), &vec![b'y'; shape.asked]].concat();
    Request { bytes, head: false, keep: shape.keep }
}

fn reply1() -> Vec<u8> {
    let lines: Vec<_> = FIELDS.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", lines.concat());
    [head.as_bytes(), &[b'x'; 1024]].concat()
}

fn one(requests: &[Request], reply: &[u8]) -> u64 {
    let (codec, mut out) = (Http1::default(), Vec::new());
    let mut conn = codec.open(&mut out);
    let start_ns = now_ns();
    for tag in 0..EXCHANGES {
        out.clear();
        codec.submit(&mut conn, &requests[tag as usize % requests.len()], tag, &mut out);
        black_box(&out);
        match codec.receive(&mut conn, black_box(reply), &mut out) {
            Ok(Event::Reply { reply, .. }) => drop(black_box(&reply)),
            other => panic!("{other:?}"),
        }
    }
    now_ns() - start_ns
}

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    bytes.extend([kind, flags]);
    bytes.extend(id.to_be_bytes());
    bytes.extend(payload);
}

fn two(requests: &[Request], at_once: u32) -> u64 {
    let (codec, mut out) = (Http2::default(), Vec::new());
    let mut conn = codec.open(&mut out);
    let batches = server_batches(at_once);
    let mut tag = 0;
    let start_ns = now_ns();
    for batch in &batches {
        out.clear();
        for _ in 0..at_once {
            codec.submit(&mut conn, &requests[tag as usize % requests.len()], tag, &mut out);
            tag += 1;
        }
        black_box(&out);
        let (mut rest, mut ended) = (black_box(&batch[..]), 0);
        while let Ok(Event::Reply { reply, consumed, .. }) =
            codec.receive(&mut conn, rest, &mut out)
        {
            black_box(&reply);
            rest = &rest[consumed..];
            ended += 1;
        }
        assert_eq!(ended, at_once);
    }
    now_ns() - start_ns
}

/// What the server says to each batch of requests.
fn server_batches(at_once: u32) -> Vec<Vec<u8>> {
    let mut writer = Writer::default();
    let fields = [&[(":status", "200")], &FIELDS[..]].concat();
    let mut id = 1;
    let batch = |number: u32| {
        let mut bytes = Vec::new();
        if number == 0 {
            // The largest window there is, and then that of the connection.
            frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff], &mut bytes);
            frame(8, 0, 0, &0x7000_0000u32.to_be_bytes(), &mut bytes);
        }
        for _ in 0..at_once {
            frame(1, 4, id, &writer.write(&fields), &mut bytes);
            frame(0, 1, id, &[b'x'; 1024], &mut bytes);
            id += 2;
        }
        bytes
    };
    (0..EXCHANGES / at_once).map(batch).collect()
}

/// One long body in frames of 16 KiB and reads of 64 KiB.
fn streamed_ns_per_kb() -> f64 {
    let (codec, mut out) = (Http2::default(), Vec::new());
    let mut conn = codec.open(&mut out);
    let keep = Keep { stream: true, ..NOTHING };
    codec.submit(&mut conn, &Request { keep, ..request_of_nothing() }, 0, &mut out);
    let mut bytes = Vec::new();
    frame(4, 0, 0, &[], &mut bytes);
    frame(1, 4, 1, &[0x88], &mut bytes);
    for _ in 0..256 {
        frame(0, 0, 1, &[b'x'; 16_384], &mut bytes);
    }
    let mut best = f64::MAX;
    let mut from = 0;
    for _ in 0..ROUNDS {
        let (start_ns, mut seen) = (now_ns(), 0);
        for piece in bytes[from..].chunks(64 << 10) {
            let mut rest = black_box(piece);
            while let Ok(Event::Part { bytes, consumed, .. }) =
                codec.receive(&mut conn, rest, &mut out)
            {
                seen += black_box(bytes).len();
                rest = &rest[consumed..];
            }
        }
        // SETTINGS and the head come only once.
        from = 19;
        out.clear();
        assert_eq!(seen, 256 * 16_384);
        best = best.min((now_ns() - start_ns) as f64 / (seen as f64 / 1024.0));
    }
    best
}

fn request_of_nothing() -> Request {
    Request { bytes: b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(), ..Request::default() }
}

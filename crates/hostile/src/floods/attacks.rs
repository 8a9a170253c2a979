//! Floods of HTTP/1.1 and of connections.

use super::Ground;
use std::collections::VecDeque;
use std::time::Duration;

/// Bytes of a request that ends nowhere.
const HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n";

/// Connections that say nothing.
pub fn silent(ground: &Ground<'_>) {
    let mut held = Vec::new();
    while held.len() < ground.connections && !ground.is_over() {
        match ground.connect() {
            Ok(stream) => held.push(stream),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    ground.wait();
}

/// Connections that send a byte of a head from time to time, and open again when they are closed.
pub fn slow_heads(ground: &Ground<'_>) {
    let mut held = Vec::new();
    let mut turn = 0usize;
    while !ground.is_over() {
        if held.len() < ground.connections {
            if let Ok(mut stream) = ground.connect()
                && ground.send(&mut stream, HEAD)
            {
                held.push(stream);
            }
            continue;
        }
        turn = (turn + 1) % held.len();
        if !ground.send(&mut held[turn], b"X") {
            held.swap_remove(turn);
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Bodies of declared length that come by the byte.
pub fn slow_bodies(ground: &Ground<'_>) {
    let mut held = Vec::new();
    let mut turn = 0usize;
    while !ground.is_over() {
        if held.len() < ground.connections {
            let head = b"POST /_bulk HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n";
            if let Ok(mut stream) = ground.connect()
                && ground.send(&mut stream, head)
            {
                held.push(stream);
            }
            continue;
        }
        turn = (turn + 1) % held.len();
        if !ground.send(&mut held[turn], b"{") {
            held.swap_remove(turn);
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Bodies of 2 MB whose last byte does not come. Those that the server has ended may be closed, the oldest first.
pub fn unfinished_bodies(ground: &Ground<'_>) {
    const BYTES: usize = 2_000_000;
    const THREADS: usize = 8;
    let body = vec![b'a'; BYTES - 1];
    ground.on_threads(THREADS, || {
        let mut held = VecDeque::new();
        for path in ["/api/1.0/", "/_bulk"].iter().cycle() {
            if ground.is_over() {
                return;
            }
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {BYTES}\r\n\r\n"
            );
            if let Ok(mut stream) = ground.connect()
                && ground.send(&mut stream, head.as_bytes())
                && ground.send(&mut stream, &body)
            {
                held.push_back(stream);
            }
            if held.len() > ground.connections / THREADS {
                held.pop_front();
            }
        }
    });
}

/// Connections that open and close as fast as they can.
pub fn opens_and_closes(ground: &Ground<'_>) {
    ground.on_threads(4, || {
        while !ground.is_over() {
            let _ = ground.connect();
        }
    });
}

/// A head without end.
pub fn endless_heads(ground: &Ground<'_>) {
    ground.on_threads(16, || ground.pour(HEAD, b"X-More: of the same\r\n"));
}

/// One line of a head without end.
pub fn endless_lines(ground: &Ground<'_>) {
    ground.on_threads(16, || ground.pour(b"GET /", b"long"));
}

/// Requests one behind the other, whose replies are not read.
pub fn pipelined(ground: &Ground<'_>) {
    ground.on_threads(32, || {
        ground
            .pour(b"", b"GET /_stats HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n")
    });
}

/// Chunks with extensions without end.
pub fn chunk_extensions(ground: &Ground<'_>) {
    let head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;";
    ground.on_threads(16, || ground.pour(head, b"name=value;"));
}

/// A body of chunks without end.
pub fn endless_chunks(ground: &Ground<'_>) {
    let head = b"POST /_bulk HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n";
    ground.on_threads(8, || ground.pour(head, b"10\r\n0123456789abcdef\r\n"));
}

/// Bodies of declared lengths up to 2^63.
pub fn giant_bodies(ground: &Ground<'_>) {
    let lengths = ["104857599", "1073741824", "9223372036854775807"];
    std::thread::scope(|scope| {
        for length in lengths.iter().cycle().take(12) {
            scope.spawn(move || {
                let head = format!(
                    "POST /_bulk HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-ndjson\r\nContent-Length: {length}\r\n\r\n"
                );
                ground.pour(head.as_bytes(), b"{\"index\":{}}\n{\"t\":\"of many\"}\n");
            });
        }
    });
}

/// Bytes that are no protocol.
pub fn noise(ground: &Ground<'_>) {
    let noise: Vec<u8> =
        (0..60_000u64).map(|n| (plimsoll_core::rng::splitmix64(n) >> 32) as u8).collect();
    ground.on_threads(8, || ground.pour(b"", &noise));
}

/// Expectations of 100 Continue whose bodies never come.
pub fn expectations(ground: &Ground<'_>) {
    let head =
        b"POST /_bulk HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n";
    let mut held = Vec::new();
    while !ground.is_over() {
        if held.len() >= ground.connections {
            std::thread::sleep(Duration::from_millis(20));
        } else if let Ok(mut stream) = ground.connect() {
            ground.send(&mut stream, head);
            held.push(stream);
        }
    }
}

/// Pages and events asked for with tokens that are guessed.
pub fn guesses(ground: &Ground<'_>) {
    let guesses: String = (0..200u64)
        .map(|n| {
            let token = plimsoll_core::rng::splitmix64(n);
            format!(
                "GET /?token={token:032x} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n\
                 GET /events?token={token:032x} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            )
        })
        .collect();
    ground.on_threads(8, || ground.pour(b"", guesses.as_bytes()));
}

/// Scrapes, which need no token, one behind the other.
pub fn unread_scrapes(ground: &Ground<'_>) {
    let scrape = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    ground.on_threads(32, || ground.pour(b"", scrape));
}

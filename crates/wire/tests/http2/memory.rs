//! What the codec asks of the allocator, counted thread by thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use plimsoll_wire::http1::{Keep, Request};
use plimsoll_wire::http2::{Conn, Http2};
use plimsoll_wire::{Event, Protocol};

use crate::server::Server;
use crate::session::{KEEP_ALL, STREAM, request};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
    static MOST_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// The most that was live at once while `work` ran, above what was live before, bytes.
pub fn most_bytes(work: impl FnOnce()) -> i64 {
    let before = LIVE_BYTES.get();
    MOST_BYTES.set(before);
    work();
    MOST_BYTES.get() - before
}

// SAFETY: every call is passed on to the system's allocator; the counters do not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE_BYTES.set(LIVE_BYTES.get() + layout.size() as i64);
        MOST_BYTES.set(MOST_BYTES.get().max(LIVE_BYTES.get()));
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.set(LIVE_BYTES.get() - layout.size() as i64);
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Replies to the streams from `first`, `count` of them, as a server with its tables in order writes them.
fn replies(server: &mut Server, first: u32, count: u32, body: &[u8]) -> Vec<u8> {
    for n in 0..count {
        let length = body.len().to_string();
        let head =
            [(":status", "200"), ("content-type", "text/plain"), ("content-length", &length)];
        server.head(first + 2 * n, &head, false);
        for (place, piece) in body.chunks(16_384).enumerate() {
            server.data(first + 2 * n, piece, (place + 1) * 16_384 >= body.len());
        }
    }
    std::mem::take(&mut server.bytes)
}

/// Sends `count` requests and reads their replies in pieces; returns the bytes of bodies that were seen.
fn round(
    codec: &Http2,
    conn: &mut Conn,
    out: &mut Vec<u8>,
    request: &Request,
    count: u32,
    bytes: &[u8],
    piece: usize,
) -> usize {
    out.clear();
    for tag in 0..count {
        codec.submit(conn, request, tag, out);
    }
    let (mut ended, mut seen) = (0, 0);
    for part in bytes.chunks(piece) {
        let mut rest = part;
        loop {
            match codec.receive(conn, rest, out).unwrap() {
                Event::More => break,
                Event::Reply { reply, consumed, .. } => {
                    seen += reply.body.len();
                    ended += 1;
                    rest = &rest[consumed..];
                }
                Event::Part { bytes, consumed, .. } => {
                    seen += bytes.len();
                    rest = &rest[consumed..];
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(ended, count);
    seen
}

#[test]
fn ordinary_requests_and_replies_cost_no_allocation() {
    let codec = Http2::default();
    let mut out = Vec::with_capacity(200_000);
    let mut conn = codec.open(&mut out);
    let (mut server, mut next) = (Server::new(&[]), 1);
    // No body has to wait for a window.
    server.window(0, 0x7000_0000);
    let body = [b'x'; 1000];
    let mut tally = 0;
    // The same connection: nothing kept, all of it kept, given out in pieces; with and without a body.
    for keep in [Keep::default(), KEEP_ALL, STREAM] {
        for (method, sent) in [("GET", &b""[..]), ("POST", &[b'y'; 500])] {
            let request = request(method, keep, sent);
            for repeat in 0..20 {
                for (count, piece) in [(1, usize::MAX), (50, usize::MAX), (20, 700)] {
                    let bytes = replies(&mut server, next, count, &body);
                    next += 2 * count;
                    let before = ALLOCATIONS.get();
                    let seen = round(&codec, &mut conn, &mut out, &request, count, &bytes, piece);
                    if repeat > 1 {
                        tally += ALLOCATIONS.get() - before;
                    }
                    let whole = count as usize * body.len();
                    assert_eq!(seen, if keep == Keep::default() { 0 } else { whole });
                }
            }
        }
    }
    assert_eq!(tally, 0);
}

#[test]
fn a_connection_at_rest_holds_little() {
    let codec = Http2::default();
    let mut out = Vec::with_capacity(2 << 20);
    let mut conn = codec.open(&mut out);
    let mut server = Server::new(&[]);
    assert!(size_of::<Conn>() < 1000, "{}", size_of::<Conn>());
    let before = LIVE_BYTES.get();
    // A hundred replies of 300 kB, in pieces and kept; requests of 300 kB that have to wait.
    let request = request("POST", KEEP_ALL, &vec![b'y'; 300_000]);
    let bytes = replies(&mut server, 1, 100, &vec![b'x'; 300_000]);
    let server_bytes = bytes.len() as i64 + request.bytes.len() as i64;
    let seen = round(&codec, &mut conn, &mut out, &request, 100, &bytes, 100_000);
    assert_eq!(seen, 100 * 300_000);
    drop((bytes, request));
    let held = LIVE_BYTES.get() - before - (out.capacity() as i64 - (2 << 20));
    assert!(held < 120_000, "{held} of {server_bytes}");
}

#[test]
fn a_declared_length_is_not_believed_before_it_has_come() {
    let codec = Http2::default();
    let mut out = Vec::with_capacity(10_000);
    let mut conn = codec.open(&mut out);
    codec.submit(&mut conn, &request("GET", KEEP_ALL, b""), 1, &mut out);
    let mut server = Server::new(&[]);
    server.head(1, &[(":status", "200"), ("content-length", "1000000000")], false);
    server.data(1, b"x", false);
    let most = most_bytes(|| {
        assert_eq!(codec.receive(&mut conn, &server.bytes, &mut out), Ok(Event::More));
    });
    assert!(most <= 300 << 10, "{most}");
}

//! What the codec asks of the allocator, counted thread by thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use plimsoll_wire::http1::{Conn, Http1, Keep, Request};
use plimsoll_wire::{Event, Protocol};

use crate::session::{KEEP_ALL, get};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator; the counters do not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE_BYTES.set(LIVE_BYTES.get() + layout.size() as i64);
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

fn reply(body_bytes: usize) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: {body_bytes}\r\n\r\n");
    [head.into_bytes(), vec![b'x'; body_bytes]].concat()
}

/// Sends one request and reads `bytes` in pieces; returns the length of the body that was kept.
fn round(
    codec: &Http1,
    conn: &mut Conn,
    out: &mut Vec<u8>,
    request: &Request,
    bytes: &[u8],
    piece: usize,
) -> usize {
    out.clear();
    codec.submit(conn, request, 1, out);
    for part in bytes.chunks(piece) {
        if let Ok(Event::Reply { reply, .. }) = codec.receive(conn, part, out) {
            return reply.body.len();
        }
    }
    panic!("no reply");
}

#[test]
fn whole_replies_and_bodies_not_kept_cost_no_allocation() {
    let codec = Http1::default();
    let mut out = Vec::with_capacity(1000);
    let mut conn = codec.open(&mut out);
    let (bare, kept) = (get(Keep::default()), get(KEEP_ALL));
    let bytes = reply(1000);
    let before = ALLOCATIONS.get();
    for _ in 0..100 {
        assert_eq!(round(&codec, &mut conn, &mut out, &bare, &bytes, usize::MAX), 0);
        assert_eq!(round(&codec, &mut conn, &mut out, &kept, &bytes, usize::MAX), 1000);
        // The head is whole in the first piece; the body comes in several.
        assert_eq!(round(&codec, &mut conn, &mut out, &bare, &bytes, 100), 0);
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
}

#[test]
fn a_connection_at_work_again_has_given_a_large_buffer_back() {
    let codec = Http1::default();
    let mut out = Vec::with_capacity(1000);
    let mut conn = codec.open(&mut out);
    let kept = get(KEEP_ALL);
    let (large, small) = (reply(3 << 20), reply(10));
    let before = LIVE_BYTES.get();
    assert_eq!(round(&codec, &mut conn, &mut out, &kept, &large, 64 << 10), 3 << 20);
    assert!(LIVE_BYTES.get() - before >= 3 << 20);
    assert_eq!(round(&codec, &mut conn, &mut out, &kept, &small, usize::MAX), 10);
    assert_eq!(LIVE_BYTES.get() - before, 0);
    // A small one stays, so that split replies do not allocate each time.
    let split = reply(1000);
    round(&codec, &mut conn, &mut out, &kept, &split, 100);
    let before = ALLOCATIONS.get();
    for _ in 0..100 {
        round(&codec, &mut conn, &mut out, &kept, &split, 100);
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
}

#[test]
fn a_connection_at_rest_holds_no_large_buffer() {
    let codec = Http1::default();
    let mut out = Vec::with_capacity(1000);
    let mut conn = codec.open(&mut out);
    let (kept, large) = (get(KEEP_ALL), reply(3 << 20));
    let before = LIVE_BYTES.get();
    assert_eq!(round(&codec, &mut conn, &mut out, &kept, &large, 64 << 10), 3 << 20);
    // The reply has been looked at; the caller asks for what comes next, as the contract says.
    assert_eq!(codec.receive(&mut conn, b"", &mut out), Ok(Event::More));
    assert_eq!(LIVE_BYTES.get() - before, 0);
}

#[test]
fn a_declared_length_is_not_believed_before_it_has_come() {
    let codec = Http1::default();
    let mut out = Vec::with_capacity(1000);
    let mut conn = codec.open(&mut out);
    let before = LIVE_BYTES.get();
    codec.submit(&mut conn, &get(KEEP_ALL), 1, &mut out);
    let begin = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\nx";
    assert_eq!(codec.receive(&mut conn, begin, &mut out), Ok(Event::More));
    assert!(LIVE_BYTES.get() - before <= 300 << 10, "{}", LIVE_BYTES.get() - before);
}

//! What the codec asks of the allocator, counted thread by thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use plimsoll_wire::volt::{
    Call, FRAME_HEAD_BYTES, Login, Request, ResponseWriter, Value, Volt, frame_length,
};
use plimsoll_wire::{Event, Protocol};

use crate::session::{Session, welcome};

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

/// Answers all calls in `bytes`, as a server does, the last one first.
fn serve(mut bytes: &[u8], handles: &mut Vec<i64>, said: &mut Vec<u8>) {
    handles.clear();
    said.clear();
    while let Ok(Some(length)) = frame_length(bytes) {
        let call = Call::read(&bytes[FRAME_HEAD_BYTES..length]).unwrap();
        assert_eq!(call.procedure, "Vote");
        let sum: i64 = call.params().map(|param| param.unwrap().1.long().unwrap()).sum();
        assert!(sum > 2_000_000_000);
        handles.push(call.handle);
        bytes = &bytes[length..];
    }
    for handle in handles.iter().rev() {
        ResponseWriter::vote_like(said, *handle, 0, 3);
    }
}

#[test]
fn ordinary_calls_cost_no_allocation() {
    let codec = Volt::new(Login::default()).with_depth(50);
    let mut out = Vec::new();
    let mut conn = codec.open(&mut out);
    codec.receive(&mut conn, &welcome(), &mut out).unwrap();
    let (mut request, mut handles, mut said) = (Request::default(), Vec::new(), Vec::new());
    let mut tally = 0;
    for repeat in 0..20 {
        for (count, piece) in [(1, usize::MAX), (50, usize::MAX), (50, 40)] {
            let before = ALLOCATIONS.get();
            out.clear();
            for tag in 0..count {
                let phone = Value::BigInt(2_125_550_000 + i64::from(tag));
                request.call("Vote", &[phone, Value::Integer(4), Value::BigInt(2)]);
                codec.submit(&mut conn, &request, tag, &mut out);
            }
            serve(&out, &mut handles, &mut said);
            let mut ended = 0;
            for part in said.chunks(piece) {
                let mut rest = part;
                loop {
                    match codec.receive(&mut conn, rest, &mut out).unwrap() {
                        Event::More => break,
                        Event::Reply { tag, reply, consumed, .. } => {
                            assert_eq!((tag, reply.long()), (count - 1 - ended, Some(0)));
                            ended += 1;
                            rest = &rest[consumed..];
                        }
                        other => panic!("{other:?}"),
                    }
                }
            }
            assert_eq!(ended, count);
            if repeat > 1 {
                tally += ALLOCATIONS.get() - before;
            }
        }
    }
    assert_eq!(tally, 0);
}

#[test]
fn a_declared_length_is_not_believed_before_it_has_come() {
    let mut session = Session::open(1);
    let most = most_bytes(|| {
        session.feed(&(50u32 << 20).to_be_bytes());
        session.feed(&[0; 100]);
    });
    assert!(most <= 300 << 10, "{most}");
}

#[test]
fn a_connection_at_rest_holds_little() {
    let codec = Volt::new(Login::default());
    let (mut out, before) = (Vec::with_capacity(100), LIVE_BYTES.get());
    let mut conn = codec.open(&mut out);
    codec.receive(&mut conn, &welcome(), &mut out).unwrap();
    let mut request = Request::default();
    request.call("P", &[]);
    out.clear();
    codec.submit(&mut conn, &request, 0, &mut out);
    let handle = Call::read(&out[FRAME_HEAD_BYTES..]).unwrap().handle;
    let mut said = Vec::new();
    ResponseWriter::failure(&mut said, handle, -1, &"x".repeat(3 << 20), 0);
    let (one, other) = said.split_at(1 << 20);
    assert_eq!(codec.receive(&mut conn, one, &mut out), Ok(Event::More));
    let event = codec.receive(&mut conn, other, &mut out).unwrap();
    assert!(matches!(event, Event::Reply { .. }));
    // The engine asks once more behind the last byte.
    assert_eq!(codec.receive(&mut conn, &[], &mut out), Ok(Event::More));
    drop((said, request));
    let held = LIVE_BYTES.get() - before;
    assert!(held < 2_000, "{held}");
}

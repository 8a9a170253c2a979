//! What a server of HTTP/2 sends, in pieces, to requests that are under way. The first byte says how long the pieces
//! are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::http1::{Keep, Request};
use plimsoll_wire::http2::Http2;
use plimsoll_wire::{Event, Protocol};

fn request(keep: Keep) -> Request {
    let bytes = b"GET /a HTTP/1.1\r\nHost: h:1\r\nContent-Length: 0\r\n\r\n".to_vec();
    Request { bytes, head: false, keep }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let (codec, mut out) = (Http2::default(), Vec::new());
    let mut conn = codec.open(&mut out);
    let stream = Keep { stream: true, ..Keep::default() };
    for (tag, keep) in [Keep::default(), stream, Keep::default()].into_iter().enumerate() {
        if codec.capacity(&conn) > 0 {
            codec.submit(&mut conn, &request(keep), tag as u32, &mut out);
        }
    }
    for piece in bytes.chunks(usize::from(*size).max(1)) {
        let mut rest = piece;
        loop {
            let consumed = match codec.receive(&mut conn, rest, &mut out) {
                Ok(Event::More) => break,
                Ok(
                    Event::Progress { consumed }
                    | Event::Part { consumed, .. }
                    | Event::Reply { consumed, .. }
                    | Event::GivenUp { consumed, .. },
                ) => consumed,
                Err(_) => return,
            };
            rest = &rest[consumed..];
        }
    }
    let _ = codec.end(&mut conn);
});

//! What a server of PostgreSQL sends, in pieces, to a login and to requests that are under way. The first byte says how
//! long the pieces are, and whether the login comes first.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::postgres::{Login, Postgres, Request, Statement};
use plimsoll_wire::{Event, Protocol};

/// Trust, then ready.
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

fuzz_target!(|bytes: &[u8]| {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let (Ok(login), Ok(statement)) =
        (Login::new("u", Some("p"), "d", &[]), Statement::new("SELECT $1"))
    else {
        return;
    };
    let codec = Postgres::new(login).with_statements(vec![statement]).with_depth(3);
    let mut out = Vec::new();
    let mut conn = codec.open(&mut out);
    let mut request = Request::default();
    request.execute(0, &[None]);
    for tag in 0..3 {
        codec.submit(&mut conn, &request, tag, &mut out);
    }
    let welcome = if size & 1 == 0 { WELCOME } else { &[] };
    for piece in welcome.chunks(64).chain(bytes.chunks(usize::from(*size).max(1))) {
        let mut rest = piece;
        loop {
            let consumed = match codec.receive(&mut conn, rest, &mut out) {
                Ok(Event::More) => break,
                Ok(Event::Reply { consumed, reply, .. }) => {
                    let _ = (reply.value(1), reply.affected());
                    let _ = reply.error.map(|error| (error.is_fatal(), error.message().len()));
                    consumed
                }
                Ok(
                    Event::Progress { consumed }
                    | Event::Part { consumed, .. }
                    | Event::GivenUp { consumed, .. },
                ) => consumed,
                Err(_) => return,
            };
            rest = &rest[consumed..];
        }
    }
    let _ = codec.end(&mut conn);
});

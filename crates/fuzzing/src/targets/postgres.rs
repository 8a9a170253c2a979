//! PostgreSQL: messages of a server.

use crate::conversation::{Conversation, Differing, split_alike};
use crate::holds::choice;
use crate::memory::{Allowed, within};
use plimsoll_wire::Protocol as _;
use plimsoll_wire::postgres::{Conn, Login, Postgres, Reply, Request, Statement};

/// Trust, then ready.
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

fn shown(reply: &Reply<'_>) -> String {
    let error = reply.error.map(|error| {
        let (code, severity) = (error.code().to_vec(), error.severity().to_vec());
        (error.is_fatal(), error.message().into_owned(), code, severity)
    });
    let (values, affected) = ([reply.value(0), reply.value(1)], reply.affected());
    format!("{reply:?} {values:?} {affected:?} {error:?}")
}

fn nothing(_: &Postgres, _: &mut Conn, _: &mut Vec<u8>) {}

/// Bytes of a server of PostgreSQL to a login and to requests in flight. The first byte is the length of the pieces; if it is
/// even, the login is answered before.
///
/// # Panics
/// When a property does not hold.
pub fn messages(bytes: &[u8]) {
    let (size, bytes) = choice(bytes);
    let (Ok(login), Ok(statement)) =
        (Login::new("u", Some("p"), "d", &[]), Statement::new("SELECT $1"))
    else {
        return;
    };
    let codec = Postgres::new(login).with_statements(vec![statement]).with_depth(3);
    let mut request = Request::default();
    request.execute(0, &[None]);
    let welcome = if size & 1 == 0 { WELCOME } else { b"" };
    let all = [welcome, bytes].concat();
    let make = || {
        let mut out = Vec::new();
        let mut conn = codec.open(&mut out);
        for tag in 0..3 {
            codec.submit(&mut conn, &request, tag, &mut out);
        }
        Conversation::<Postgres> { codec: &codec, conn, shown, next: nothing }
    };
    // Names of the server's random numbers are in what is answered to a login by SCRAM: no two are the same.
    let allowed = Allowed { base: 100_000, each: 60 };
    within(all.len(), allowed, || split_alike(make, &all, size.into(), Differing::Answers));
}

//! Servers of PostgreSQL's protocol: lengths, logins and replies that do not end.

use crate::case::Case;
use crate::peer::Wire;
use std::io::Result;

const GROUP: &str = "PostgreSQL";
const LOAD: &str = "load postgres://me@127.0.0.1:PORT/db?sslmode=disable --queries queries.sql --clients 4 --duration DURATION --timeout 500ms --quiet";
const TLS: &str = "load postgres://me@127.0.0.1:PORT/db?sslmode=require --queries queries.sql --clients 4 --duration DURATION --timeout 500ms --quiet";

/// A message with a true length.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend((body.len() as u32 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

/// The head of a message with any length.
fn head(kind: u8, length: u32) -> Vec<u8> {
    [&[kind][..], &length.to_be_bytes()].concat()
}

/// Reads the first message of a client.
fn startup(wire: &mut Wire) -> Result<()> {
    let length = wire.take(4)?;
    let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]);
    wire.take(length.saturating_sub(4) as usize).map(drop)
}

/// Accepts the login.
fn log_in(wire: &mut Wire) -> Result<()> {
    startup(wire)?;
    wire.send(&message(b'R', &0u32.to_be_bytes()))?;
    wire.send(&message(b'Z', b"I"))
}

/// Serves the connection by which a run looks at its server before it begins.
fn honest(wire: &mut Wire) -> Result<()> {
    log_in(wire)?;
    loop {
        let head = wire.take(5)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        wire.take(length.saturating_sub(4) as usize)?;
        let (done, ready) = (message(b'C', b"SELECT 0\0"), message(b'Z', b"I"));
        wire.send(&match head[0] {
            b'P' => message(b'1', b""),
            b'B' => message(b'2', b""),
            b'D' => message(b'n', b""),
            b'E' => done,
            b'S' => ready,
            b'Q' => [done, ready].concat(),
            _ => Vec::new(),
        })?;
    }
}

/// Accepts the login and waits for a query; not on the first connection.
fn query(wire: &mut Wire) -> Result<()> {
    if wire.number == 0 {
        return honest(wire);
    }
    log_in(wire)?;
    wire.take(5).map(drop)
}

/// The description of one column.
fn columns() -> Vec<u8> {
    let mut body = vec![0, 1];
    body.extend(b"n\0");
    body.extend([0; 18]);
    message(b'T', &body)
}

fn row(bytes: usize) -> Vec<u8> {
    let mut body = vec![0, 1];
    body.extend((bytes as u32).to_be_bytes());
    body.extend(vec![b'x'; bytes]);
    message(b'D', &body)
}

fn login_of_2_31_bytes(wire: &mut Wire) -> Result<()> {
    startup(wire)?;
    wire.send(&head(b'R', 0x7fff_ffff))?;
    wire.repeat(b"x")
}

fn login_of_negative_length(wire: &mut Wire) -> Result<()> {
    startup(wire)?;
    wire.send(&head(b'R', u32::MAX))?;
    wire.repeat(b"x")
}

fn login_shorter_than_its_length(wire: &mut Wire) -> Result<()> {
    startup(wire)?;
    wire.send(&head(b'R', 3))?;
    wire.hold()
}

fn notices_at_login(wire: &mut Wire) -> Result<()> {
    startup(wire)?;
    wire.repeat(&message(b'N', b"SNOTICE\0Mwait a little\0\0"))
}

fn parameters_at_login(wire: &mut Wire) -> Result<()> {
    startup(wire)?;
    wire.repeat(&message(b'S', b"name\0value\0"))
}

/// Passwords are asked for without end, and no answer is read.
fn passwords_without_end(wire: &mut Wire) -> Result<()> {
    startup(wire)?;
    wire.repeat(&message(b'R', &3u32.to_be_bytes()))
}

fn scram_of_2_31_iterations(wire: &mut Wire) -> Result<()> {
    startup(wire)?;
    wire.send(&message(b'R', &[&10u32.to_be_bytes()[..], b"SCRAM-SHA-256\0\0"].concat()))?;
    let length = wire.take(5)?;
    let length = u32::from_be_bytes([length[1], length[2], length[3], length[4]]);
    let said = wire.take(length as usize - 4)?;
    let text = String::from_utf8_lossy(&said).into_owned();
    let nonce = text.rsplit("r=").next().unwrap_or_default();
    let first = format!("r={nonce}abc,s=c2FsdHNhbHQ=,i=2147483647");
    wire.send(&message(b'R', &[&11u32.to_be_bytes()[..], first.as_bytes()].concat()))?;
    wire.hold()
}

fn refusal_that_steers_a_terminal(wire: &mut Wire) -> Result<()> {
    startup(wire)?;
    let text = "SFATAL\0VFATAL\0C28P01\0M\u{1b}[2J\u{1b}]0;x\u{7}no\u{202e}\0\0";
    wire.send(&message(b'E', text.as_bytes()))?;
    wire.hold()
}

fn rows_without_end(wire: &mut Wire) -> Result<()> {
    query(wire)?;
    wire.send(&columns())?;
    wire.repeat(&row(1_000))
}

fn row_of_2_31_bytes(wire: &mut Wire) -> Result<()> {
    query(wire)?;
    wire.send(&columns())?;
    wire.send(&head(b'D', 0x7fff_ffff))?;
    wire.repeat(b"x")
}

fn row_below_the_limit(wire: &mut Wire) -> Result<()> {
    query(wire)?;
    wire.send(&columns())?;
    wire.send(&head(b'D', 0x3f00_0000))?;
    wire.repeat(b"x")
}

fn row_with_columns_of_negative_length(wire: &mut Wire) -> Result<()> {
    if wire.number == 0 {
        return honest(wire);
    }
    log_in(wire)?;
    let body = [
        &65_535u16.to_be_bytes()[..],
        &0x8000_0000u32.to_be_bytes(),
        &0x7fff_ffffu32.to_be_bytes(),
    ];
    let reply = [
        columns(),
        message(b'D', &body.concat()),
        message(b'C', b"SELECT 1\0"),
        message(b'Z', b"I"),
    ];
    loop {
        wire.take_until(b"\0")?;
        wire.send(&reply.concat())?;
    }
}

fn notices_without_end(wire: &mut Wire) -> Result<()> {
    query(wire)?;
    wire.repeat(&message(b'N', b"SNOTICE\0Mwait a little\0\0"))
}

fn notices_when_idle(wire: &mut Wire) -> Result<()> {
    log_in(wire)?;
    wire.repeat(&message(b'N', b"SNOTICE\0Mwait a little\0\0"))
}

fn errors_without_end(wire: &mut Wire) -> Result<()> {
    query(wire)?;
    wire.repeat(&message(b'E', b"SERROR\0VERROR\0CXX000\0Magain\0\0"))
}

fn error_that_steers_a_terminal(wire: &mut Wire) -> Result<()> {
    query(wire)?;
    let text = "SERROR\0VERROR\0CXX000\0M\u{1b}[2J\u{1b}]0;x\u{7}no\u{202e}\0\0";
    let reply = [message(b'E', text.as_bytes()), message(b'Z', b"I")].concat();
    loop {
        wire.send(&reply)?;
        wire.take_until(b"\0")?;
    }
}

fn copy_without_end(wire: &mut Wire) -> Result<()> {
    query(wire)?;
    wire.send(&message(b'H', &[0, 0, 0]))?;
    wire.repeat(&message(b'd', &[b'x'; 1_000]))
}

/// Rows are asked for without end, and no answer is read.
fn asks_for_rows_without_end(wire: &mut Wire) -> Result<()> {
    query(wire)?;
    wire.repeat(&message(b'G', &[0, 0, 0]))
}

fn tags_without_end(wire: &mut Wire) -> Result<()> {
    query(wire)?;
    wire.repeat(&message(b'C', &[b'x'; 5_000]))
}

fn ready_without_being_asked(wire: &mut Wire) -> Result<()> {
    log_in(wire)?;
    wire.repeat(&message(b'Z', b"I"))
}

fn tls_that_never_begins(wire: &mut Wire) -> Result<()> {
    wire.take(8)?;
    wire.repeat(b"S")
}

/// Bytes in clear behind the agreement to TLS, as a man in the middle would put there.
fn bytes_before_tls(wire: &mut Wire) -> Result<()> {
    wire.take(8)?;
    wire.send(&[b"S".to_vec(), message(b'R', &0u32.to_be_bytes()), message(b'Z', b"I")].concat())?;
    wire.hold()
}

/// TLS is refused: a client that requires it goes, and says no password.
fn no_tls(wire: &mut Wire) -> Result<()> {
    wire.take(8)?;
    wire.send(b"N")?;
    wire.send(&message(b'R', &3u32.to_be_bytes()))?;
    wire.hold()
}

/// The cases of this protocol.
pub const CASES: &[Case] = &[
    Case::new(
        (GROUP, "a login message of 2^31 - 1 bytes"),
        login_of_2_31_bytes,
        LOAD,
        "exceeds the limit",
    ),
    Case::new(
        (GROUP, "a login message of negative length"),
        login_of_negative_length,
        LOAD,
        "exceeds the limit",
    ),
    Case::new(
        (GROUP, "a message shorter than its length"),
        login_shorter_than_its_length,
        LOAD,
        "not those of a PostgreSQL server",
    ),
    Case::new((GROUP, "NOTICE without end at the login"), notices_at_login, LOAD, ""),
    Case::new((GROUP, "ParameterStatus without end at the login"), parameters_at_login, LOAD, ""),
    Case::new((GROUP, "the password is asked for without end"), passwords_without_end, LOAD, ""),
    Case::new((GROUP, "SCRAM with 2^31 - 1 iterations"), scram_of_2_31_iterations, LOAD, "SCRAM"),
    Case::new(
        (GROUP, "a refusal that steers a terminal"),
        refusal_that_steers_a_terminal,
        LOAD,
        "{1b}",
    ),
    Case::new((GROUP, "DataRow without end"), rows_without_end, LOAD, ""),
    Case::new((GROUP, "a row of 2^31 - 1 bytes"), row_of_2_31_bytes, LOAD, "exceeds the limit"),
    Case::new((GROUP, "a row of 1 GB"), row_below_the_limit, LOAD, ""),
    Case::new(
        (GROUP, "columns of negative and of impossible length"),
        row_with_columns_of_negative_length,
        LOAD,
        "",
    ),
    Case::new((GROUP, "NOTICE without end"), notices_without_end, LOAD, "timeout"),
    Case::new((GROUP, "NOTICE without end before a query"), notices_when_idle, LOAD, ""),
    Case::new((GROUP, "errors without end"), errors_without_end, LOAD, "timeout"),
    Case::new(
        (GROUP, "an error that steers a terminal"),
        error_that_steers_a_terminal,
        LOAD,
        "XX000",
    ),
    Case::new((GROUP, "COPY to the client without end"), copy_without_end, LOAD, ""),
    Case::new(
        (GROUP, "COPY from the client without end, answers not read"),
        asks_for_rows_without_end,
        LOAD,
        "",
    ),
    Case::new((GROUP, "tags of 5 kB without end"), tags_without_end, LOAD, "timeout"),
    Case::new((GROUP, "ReadyForQuery without a query"), ready_without_being_asked, LOAD, ""),
    Case::new((GROUP, "TLS that never begins"), tls_that_never_begins, TLS, ""),
    Case::new((GROUP, "bytes in clear before TLS"), bytes_before_tls, TLS, ""),
    Case::new((GROUP, "no TLS for a client that requires it"), no_tls, TLS, ""),
];

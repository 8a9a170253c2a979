//! PostgreSQL's frontend/backend protocol, as much of it as a query of one row needs.

use super::fate::Fate;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;

fn message(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
}

/// One row of one column, "1", and the end of the command.
fn row(out: &mut Vec<u8>, described: bool) {
    if described {
        description(out);
    }
    message(out, b'D', &[0, 1, 0, 0, 0, 1, b'1']);
    message(out, b'C', b"SELECT 1\0");
}

/// A column "n" of type int4.
fn description(out: &mut Vec<u8>) {
    message(
        out,
        b'T',
        &[0, 1, b'n', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 23, 0, 4, 255, 255, 255, 255, 0, 0],
    );
}

fn error(out: &mut Vec<u8>) {
    message(out, b'E', b"SERROR\0CXX000\0Mno\0\0");
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn log_in(from: &mut impl Read, to: &mut impl Write) -> std::io::Result<()> {
    loop {
        let mut head = [0; 8];
        from.read_exact(&mut head)?;
        let mut rest = vec![0; (number(&head[..4]) as usize).saturating_sub(8).min(10_000)];
        from.read_exact(&mut rest)?;
        if ![SSL_REQUEST, GSS_REQUEST].contains(&number(&head[4..])) {
            break;
        }
        to.write_all(b"N")?;
    }
    let mut out = Vec::new();
    message(&mut out, b'R', &[0; 4]);
    message(&mut out, b'S', b"server_version\x0016.0\0");
    message(&mut out, b'S', b"client_encoding\0UTF8\0");
    message(&mut out, b'K', &[0; 8]);
    message(&mut out, b'Z', b"I");
    to.write_all(&out)
}

/// Speaks to one client; `hold` takes the time of each query and says what comes of it.
///
/// # Errors
/// When the connection breaks.
pub fn speak(stream: TcpStream, hold: impl Fn(u64) -> (Fate, bool)) -> std::io::Result<()> {
    let mut to = stream.try_clone()?;
    let mut from = BufReader::new(stream);
    log_in(&mut from, &mut to)?;
    let (mut out, mut queries) = (Vec::new(), 0);
    loop {
        let mut head = [0; 5];
        from.read_exact(&mut head)?;
        let mut body = vec![0; (number(&head[1..]) as usize).saturating_sub(4).min(1 << 20)];
        from.read_exact(&mut body)?;
        let asked = matches!(head[0], b'Q' | b'E');
        let (fate, last) = if asked {
            queries += 1;
            hold(queries)
        } else {
            (Fate::Fine, false)
        };
        match fate {
            Fate::Hangs => {
                while from.read(&mut [0; 1024])? > 0 {}
                return Ok(());
            }
            Fate::Dropped | Fate::Cut => return Ok(()),
            Fate::Reset => return Err(std::io::ErrorKind::ConnectionReset.into()),
            Fate::Failed => error(&mut out),
            Fate::Fine => match head[0] {
                b'Q' => row(&mut out, true),
                b'E' => row(&mut out, false),
                b'P' => message(&mut out, b'1', &[]),
                b'B' => message(&mut out, b'2', &[]),
                b'C' => message(&mut out, b'3', &[]),
                b'D' if body.first() == Some(&b'S') => {
                    message(&mut out, b't', &[0, 0]);
                    description(&mut out);
                }
                b'D' => description(&mut out),
                b'X' => return Ok(()),
                _ => {}
            },
        }
        if matches!(head[0], b'Q' | b'S') {
            message(&mut out, b'Z', b"I");
        }
        if matches!(head[0], b'Q' | b'S' | b'H') {
            to.write_all(&out)?;
            out.clear();
        }
        if last {
            return Ok(());
        }
    }
}

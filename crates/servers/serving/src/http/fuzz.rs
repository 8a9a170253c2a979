//! The reading of requests without a socket, for the fuzz targets (`fuzz/`).

use super::body::{Body, Chunk};
use super::head::{self, Asked};
use super::refusal::Refusal;

/// A request whose head was read.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenHead {
    /// Bytes before its head, and of the head.
    pub start: usize,
    /// Bytes of the head.
    pub length: usize,
    /// Its meaning.
    pub asked: Asked,
    /// True if its body is in chunks.
    pub is_chunked: bool,
    /// End of its body in the bytes of the connection; nothing if more must come.
    pub end: Option<usize>,
}

/// Everything that was read on a connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The requests.
    pub heads: Vec<SeenHead>,
    /// Status of the answer that ends the connection, if the bytes are not HTTP/1.
    pub refused: Option<u16>,
}

/// Reads what a client sends, as the event loop does.
pub fn requests<'b>(pieces: impl Iterator<Item = &'b [u8]>) -> Seen {
    let mut seen = Seen::default();
    let (mut held, mut passed) = (Vec::new(), 0);
    let mut body: Option<Body> = None;
    for piece in pieces {
        held.extend_from_slice(piece);
        if body.is_none() && held.len() > piece.len() && !head::may_be_whole(&held, piece.len()) {
            continue;
        }
        if let Err(refusal) = consume(&mut held, &mut passed, &mut body, &mut seen) {
            seen.refused = Some(status(refusal));
            return seen;
        }
    }
    // A head that no empty line has ended is looked at when the connection ends, too.
    if let Err(refusal) = consume(&mut held, &mut passed, &mut body, &mut seen) {
        seen.refused = Some(status(refusal));
    }
    seen
}

fn consume(
    held: &mut Vec<u8>,
    passed: &mut usize,
    body: &mut Option<Body>,
    seen: &mut Seen,
) -> Result<(), Refusal> {
    let mut used = 0;
    while used < held.len() {
        match body {
            None => {
                let Some(head) = head::parse(&held[used..])? else { break };
                let start = *passed + used;
                used += head.length;
                let end = head.body.is_done().then_some(*passed + used);
                let (length, asked) = (head.length, head.asked);
                let is_chunked = matches!(head.body, Body::Chunked(_));
                seen.heads.push(SeenHead { start, length, asked, is_chunked, end });
                *body = Some(head.body).filter(|body| !body.is_done());
            }
            Some(open) => {
                used += open.take(&held[used..])?;
                if open.is_done() {
                    *body = None;
                    if let Some(last) = seen.heads.last_mut() {
                        last.end = Some(*passed + used);
                    }
                }
            }
        }
    }
    held.drain(..used);
    *passed += used;
    Ok(())
}

const fn status(refusal: Refusal) -> u16 {
    match refusal {
        Refusal::Malformed => 400,
        Refusal::HeadTooLarge => 431,
        Refusal::UnknownCoding => 501,
    }
}

/// The content of the body at the front of some bytes, which is whole in them: chunked, or without framing.
#[must_use]
pub fn content(bytes: &[u8], is_chunked: bool) -> Vec<u8> {
    if !is_chunked {
        return bytes.to_vec();
    }
    let (mut body, mut at, mut content) = (Body::chunked(), 0, Vec::new());
    while at < bytes.len() && !body.is_done() {
        let most = match body {
            Body::Chunked(Chunk::Data { left }) => usize::try_from(left).unwrap_or(usize::MAX),
            _ => 1,
        };
        let piece = &bytes[at..bytes.len().min(at + most.max(1))];
        let is_data = matches!(body, Body::Chunked(Chunk::Data { left: 1.. }));
        let Ok(taken) = body.take(piece) else { break };
        if is_data {
            content.extend_from_slice(&piece[..taken]);
        }
        at += taken;
    }
    content
}

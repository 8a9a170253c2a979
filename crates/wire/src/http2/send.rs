//! Requests out: header blocks, and bodies as far as the peer's windows let them.

use std::collections::VecDeque;

use super::Scheme;
use super::frame::{self, Head, flag, kind};
use super::hpack::Encoder;
use super::request::{self, Parts};
use super::streams::{Stream, Streams};

/// Header lines beyond this length are encoded for each request.
const SAME_BYTES_MAX: usize = 2 << 10;

/// The sending side of one connection.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) encoder: Encoder,
    /// Amount that may still be sent on the whole connection.
    pub(super) window: i64,
    /// Bytes that a new stream may send.
    pub(super) stream_window: u32,
    /// The longest payload that the peer takes.
    pub(super) payload_bytes_max: u32,
    /// Streams whose bodies wait for a window, the oldest first.
    waiting: VecDeque<u32>,
    lower: Vec<u8>,
    same: Same,
}

/// The header lines of the last request and what became of them: most requests of a run have the same.
#[derive(Debug, Default)]
struct Same {
    lines: Vec<u8>,
    encoded: Vec<u8>,
    /// The encoder's count of changes, if this can be used at all.
    changes: Option<u64>,
}

impl Default for Sender {
    fn default() -> Self {
        Sender {
            encoder: Encoder::default(),
            window: i64::from(frame::FIRST_WINDOW_BYTES),
            stream_window: frame::FIRST_WINDOW_BYTES,
            payload_bytes_max: frame::PAYLOAD_BYTES_MAX,
            waiting: VecDeque::new(),
            lower: Vec::new(),
            same: Same::default(),
        }
    }
}

impl Sender {
    /// Takes a request apart.
    #[inline]
    pub(super) fn parts<'a>(&self, text: &'a [u8]) -> Parts<'a> {
        Parts::of(text, &self.same.lines)
    }

    /// Appends the header block of a request, in as many frames as it takes.
    pub(super) fn put_head(
        &mut self,
        parts: &Parts<'_>,
        scheme: Scheme,
        id: u32,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        out.extend_from_slice(&[0; frame::HEAD_BYTES]);
        let encoder = &mut self.encoder;
        encoder.begin(out);
        encoder.field(b":method", parts.method, out);
        encoder.field(b":scheme", scheme.name(), out);
        encoder.field(b":path", parts.path, out);
        let same = parts.authority.is_none()
            && self.same.changes == Some(encoder.changes())
            && self.same.lines == parts.lines;
        if same {
            out.extend_from_slice(&self.same.encoded);
        } else {
            self.put_lines(parts, out);
        }
        let flags = if parts.body.is_empty() { flag::END_STREAM } else { 0 };
        let length = out.len() - start - frame::HEAD_BYTES;
        if length > self.payload_bytes_max as usize {
            return self.split(start, flags, id, out);
        }
        let flags = flags | flag::END_HEADERS;
        let head = Head { length: length as u32, kind: kind::HEADERS, flags, id };
        out[start..start + frame::HEAD_BYTES].copy_from_slice(&head.bytes());
    }

    /// Encodes authority and header lines, and remembers them if that added nothing to the table.
    fn put_lines(&mut self, parts: &Parts<'_>, out: &mut Vec<u8>) {
        let (start, before) = (out.len(), self.encoder.changes());
        if let Some(authority) = parts.authority() {
            self.encoder.field(b":authority", authority, out);
        }
        for (name, value) in request::fields(parts.lines) {
            self.lower.clear();
            self.lower.extend_from_slice(name);
            self.lower.make_ascii_lowercase();
            if !request::is_dropped(&self.lower) {
                self.encoder.field(&self.lower, value, out);
            }
        }
        let lasting = self.encoder.changes() == before
            && parts.authority.is_none()
            && parts.lines.len() <= SAME_BYTES_MAX;
        self.same.changes = lasting.then_some(before);
        if lasting {
            self.same.lines.clear();
            self.same.lines.extend_from_slice(parts.lines);
            self.same.encoded.clear();
            self.same.encoded.extend_from_slice(&out[start..]);
        }
    }

    /// Puts a block that is too long for one frame, and stands behind `start` and room for a head, into several.
    #[cold]
    fn split(&self, start: usize, flags: u8, id: u32, out: &mut Vec<u8>) {
        let block = out.split_off(start).split_off(frame::HEAD_BYTES);
        let pieces = block.chunks(self.payload_bytes_max as usize);
        let last = pieces.len() - 1;
        for (place, piece) in pieces.enumerate() {
            let end = if place == last { flag::END_HEADERS } else { 0 };
            match place {
                0 => frame::put(kind::HEADERS, flags | end, id, piece, out),
                _ => frame::put(kind::CONTINUATION, end, id, piece, out),
            }
        }
    }

    /// Sends the body of a request as far as it goes now; the rest is copied, and waits.
    pub(super) fn begin_body(
        &mut self,
        body: &[u8],
        streams: &mut Streams,
        slot: u32,
        out: &mut Vec<u8>,
    ) {
        let stream = streams.get(slot);
        let (id, mut window) = (stream.id, stream.window);
        let sent = self.put_body(body, id, &mut window, out);
        stream.window = window;
        if sent < body.len() {
            let mut unsent = streams.take_buffer();
            unsent.extend_from_slice(&body[sent..]);
            streams.get(slot).unsent = unsent;
            self.waiting.push_back(id);
        }
    }

    /// Appends what of `body` the windows let through and returns how much that was.
    fn put_body(&mut self, body: &[u8], id: u32, window: &mut i64, out: &mut Vec<u8>) -> usize {
        let mut sent = 0;
        while sent < body.len() {
            let room = self.window.min(*window).min(i64::from(self.payload_bytes_max)).max(0);
            let piece = (body.len() - sent).min(room as usize);
            if piece == 0 {
                break;
            }
            let flags = if sent + piece == body.len() { flag::END_STREAM } else { 0 };
            frame::put(kind::DATA, flags, id, &body[sent..sent + piece], out);
            sent += piece;
            self.window -= piece as i64;
            *window -= piece as i64;
        }
        sent
    }

    /// Continues with one body; returns whether all of it is sent now.
    fn go_on(&mut self, stream: &mut Stream, out: &mut Vec<u8>) -> bool {
        let mut window = stream.window;
        stream.sent += self.put_body(&stream.unsent[stream.sent..], stream.id, &mut window, out);
        stream.window = window;
        let all = stream.sent == stream.unsent.len();
        if all {
            stream.unsent = Vec::new();
            stream.sent = 0;
        }
        all
    }

    /// A window has opened: continues with all bodies that wait, the oldest first.
    pub(super) fn flush(&mut self, streams: &mut Streams, out: &mut Vec<u8>) {
        let mut place = 0;
        while self.window > 0
            && let Some(&id) = self.waiting.get(place)
        {
            let sent = streams.find(id).is_none_or(|slot| self.go_on(streams.get(slot), out));
            if sent {
                self.waiting.remove(place);
            } else {
                place += 1;
            }
        }
    }

    /// The window of one stream has opened.
    pub(super) fn flush_one(&mut self, streams: &mut Streams, slot: u32, out: &mut Vec<u8>) {
        let stream = streams.get(slot);
        let id = stream.id;
        if !stream.unsent.is_empty() && self.go_on(stream, out) {
            self.forget(id);
        }
    }

    /// The body of this stream waits no more.
    pub(super) fn forget(&mut self, id: u32) {
        self.waiting.retain(|&other| other != id);
    }
}

//! Replies in: heads, bodies and trailers, each stream's in its turn.

use super::conn::{Block, Broken, Conn, Data, Done, Place, Step, broken};
use super::frame::{self, Head, code, flag};
use super::head::Gathered;
use super::hpack::BadBlock;
use super::{CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES};
use crate::Fault;
use crate::http1::{BODY_TOO_LONG, Encoding, Limits, RETAINED_BYTES};

/// Room that is made at once for a body of declared length; what a server declares is not believed beyond.
const RESERVED_BYTES: u64 = 256 << 10;
/// Unfinished replies take all the memory that there is for them.
const NO_ROOM: Fault =
    Fault::Protocol("the heads of unfinished replies exceed the limit of all replies");
/// Number of frames that one header block may take.
const BLOCK_FRAMES: u32 = 64;

impl Conn {
    pub(super) fn headers(
        &mut self,
        limits: &Limits,
        head: Head,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, Broken> {
        const SHORT: Broken =
            broken(code::PROTOCOL_ERROR, "HEADERS are shorter than their padding");
        let mut fragment = payload;
        if head.has(flag::PADDED) {
            let (&padding, rest) = fragment.split_first().ok_or(SHORT)?;
            let length = rest.len().checked_sub(usize::from(padding)).ok_or(SHORT)?;
            fragment = &rest[..length];
        }
        if head.has(flag::PRIORITY) {
            fragment = fragment.get(5..).ok_or(SHORT)?;
        }
        let end_stream = head.has(flag::END_STREAM);
        if head.has(flag::END_HEADERS) {
            return self.whole_block(limits, head.id, end_stream, fragment, out);
        }
        let mut bytes = std::mem::take(&mut self.block.bytes);
        bytes.extend_from_slice(fragment);
        self.block = Block { id: head.id, end_stream, frames: 1, bytes };
        Ok(None)
    }

    #[cold]
    pub(super) fn continuation(
        &mut self,
        limits: &Limits,
        head: Head,
        fragment: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, Broken> {
        self.block.frames += 1;
        let length = self.block.bytes.len() + fragment.len();
        if self.block.frames > BLOCK_FRAMES || length > limits.head_bytes {
            let why = "the reply's head exceeds the limit";
            return Err(broken(code::ENHANCE_YOUR_CALM, why));
        }
        self.block.bytes.extend_from_slice(fragment);
        if !head.has(flag::END_HEADERS) {
            return Ok(None);
        }
        let mut block = std::mem::take(&mut self.block);
        let step = self.whole_block(limits, block.id, block.end_stream, &block.bytes, out);
        if block.bytes.capacity() <= RETAINED_BYTES {
            block.bytes.clear();
            self.block.bytes = block.bytes;
        }
        step
    }

    /// Decodes a header block: a final or interim head, or trailers. It is decoded even if it is no longer wanted,
    /// because the table must stay the same as the peer's.
    fn whole_block(
        &mut self,
        limits: &Limits,
        id: u32,
        end: bool,
        block: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, Broken> {
        const CODE: u32 = code::COMPRESSION_ERROR;
        let bad = |bad: BadBlock| (CODE, Fault::Protocol(bad.0));
        self.decoder.shrink(RETAINED_BYTES);
        let Some(slot) = self.streams.find(id) else {
            self.decoder.decode(block, |_, _, _| {}).map_err(bad)?;
            return Ok(None);
        };
        if self.streams.get(slot).begun {
            let mut none = Vec::new();
            let mut gathered = Gathered::new(&mut none, false, limits.head_bytes);
            self.decoder
                .decode(block, |m, name, value| gathered.take(m, name, value))
                .map_err(bad)?;
            return Ok(match gathered.finish_trailers() {
                Err(fault) => Some(self.refuse(slot, fault, out)),
                Ok(()) if end => Some(self.complete(slot, None, out)),
                Ok(()) => {
                    let fault = Fault::Protocol("a second head came inside of the reply's body");
                    Some(self.refuse(slot, fault, out))
                }
            });
        }
        let mut lines = self.streams.take_buffer();
        let keep = self.streams.get(slot).keep.head;
        let mut gathered = Gathered::new(&mut lines, keep, limits.head_bytes);
        self.decoder.decode(block, |m, name, value| gathered.take(m, name, value)).map_err(bad)?;
        let found = gathered.finish();
        let found = found.and_then(|head| self.begin_reply(limits, slot, head, end).map(|()| head));
        match found {
            Ok((200.., ..)) => {
                let stream = self.streams.get(slot);
                if !stream.hold.covers(lines.len()) {
                    return Ok(Some(self.refuse(slot, NO_ROOM, out)));
                }
                stream.head_len = lines.len();
                stream.kept = lines;
                Ok(if end { Some(self.complete(slot, None, out)) } else { None })
            }
            Ok(_) => {
                self.streams.give_buffer(lines);
                self.count_idle()?;
                Ok(None)
            }
            Err(fault) => {
                self.streams.give_buffer(lines);
                Ok(Some(self.refuse(slot, fault, out)))
            }
        }
    }

    /// Takes over what a head says.
    #[inline]
    fn begin_reply(
        &mut self,
        limits: &Limits,
        slot: u32,
        (status, encoding, length): (u16, Encoding, Option<u64>),
        end: bool,
    ) -> Result<(), Fault> {
        if status < 200 {
            return match (status, end) {
                (101, _) => Err(Fault::Protocol("101 Switching Protocols, which HTTP/2 lacks")),
                (_, true) => Err(Fault::Protocol("the reply ends with an interim head")),
                _ => Ok(()),
            };
        }
        let stream = self.streams.get(slot);
        let bodiless = stream.to_head || matches!(status, 204 | 304);
        stream.begun = true;
        stream.status = status;
        stream.encoding = encoding;
        stream.length = if bodiless { Some(0) } else { length };
        self.idle_frames = 0;
        let too_long = stream.length.is_some_and(|length| length > limits.body_bytes);
        if too_long && !stream.streams() { Err(BODY_TOO_LONG) } else { Ok(()) }
    }

    /// Behind the head of a DATA frame: all of it counts at once. The window is refilled long before it is
    /// used up, so that the peer always has at least half of it.
    #[inline]
    pub(super) fn enter_data(
        &mut self,
        limits: &Limits,
        head: Head,
        padding: u8,
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, Broken> {
        self.check_id(head.id)?;
        let around = if head.has(flag::PADDED) { 1 + u32::from(padding) } else { 0 };
        let why = "DATA are shorter than their padding";
        let left = head.length.checked_sub(around).ok_or(broken(code::PROTOCOL_ERROR, why))?;
        let end = head.has(flag::END_STREAM);
        self.place = Place::Data(Data { id: head.id, left, padding: u32::from(padding), end });
        self.received += head.length;
        if self.received >= CONNECTION_WINDOW_BYTES / 4 {
            frame::put_window_update(0, self.received, out);
            self.received = 0;
        }
        let Some(slot) = self.streams.find(head.id) else { return Ok(None) };
        let stream = self.streams.get(slot);
        stream.received += head.length;
        if stream.received >= STREAM_WINDOW_BYTES / 2 && !end {
            frame::put_window_update(head.id, stream.received, out);
            stream.received = 0;
        }
        if !stream.begun {
            let fault = Fault::Protocol("a body came before the reply's head");
            return Ok(Some(self.refuse(slot, fault, out)));
        }
        if let Err(fault) = stream.count_body(left, limits) {
            return Ok(Some(self.refuse(slot, fault, out)));
        }
        if left > 0 {
            self.idle_frames = 0;
        }
        Ok(None)
    }

    /// Reads on in a DATA frame.
    #[inline]
    pub(super) fn data(
        &mut self,
        limits: &Limits,
        mut data: Data,
        input: &[u8],
        at: &mut usize,
        out: &mut Vec<u8>,
    ) -> Option<Step> {
        let from = *at;
        let here = data.left.min((input.len() - from) as u32);
        *at += here as usize;
        data.left -= here;
        let found = self.streams.find(data.id);
        let mut borrowed = None;
        if let Some(slot) = found
            && here > 0
        {
            let stream = self.streams.get(slot);
            if stream.streams() {
                self.place = Place::Data(data);
                return Some(Step::Part { tag: stream.tag, from, to: *at });
            }
            let room = stream.room(limits);
            let whole = data.left == 0 && data.end && data.padding as usize <= input.len() - *at;
            if room > 0 && whole && stream.kept.len() == stream.head_len && !stream.truncated {
                // All of the body lies here: it is borrowed and not copied.
                let shown = room.min(here as usize);
                stream.truncated = shown < here as usize;
                borrowed = Some((from, from + shown));
            } else if room > 0 {
                self.keep_body(room, slot, &input[from..*at]);
            }
        }
        if data.left == 0 {
            let padding = data.padding.min((input.len() - *at) as u32);
            *at += padding as usize;
            data.padding -= padding;
        }
        if data.left > 0 || data.padding > 0 {
            self.place = Place::Data(data);
            return Some(Step::More);
        }
        self.place = Place::Head;
        found.filter(|_| data.end).map(|slot| self.complete(slot, borrowed, out))
    }

    /// Copies a piece of a body that is kept.
    fn keep_body(&mut self, room: usize, slot: u32, bytes: &[u8]) {
        if self.streams.get(slot).kept.capacity() == 0 {
            let buffer = self.streams.take_buffer();
            self.streams.get(slot).kept = buffer;
        }
        let stream = self.streams.get(slot);
        if stream.kept.len() == stream.head_len
            && let Some(length) = stream.length
        {
            stream.kept.reserve(length.min(room as u64).min(RESERVED_BYTES) as usize);
        }
        stream.push_body(bytes, room);
    }

    /// The stream has ended: gives out its reply.
    #[inline]
    fn complete(&mut self, slot: u32, body: Option<(usize, usize)>, out: &mut Vec<u8>) -> Step {
        let stream = self.streams.get(slot);
        if stream.length.is_some_and(|length| length != stream.body_bytes) {
            let why = "the reply's body is shorter than its Content-Length says";
            return self.refuse(slot, Fault::Protocol(why), out);
        }
        if !stream.unsent.is_empty() {
            // The peer has answered without waiting for the rest of the request.
            frame::put_reset(stream.id, code::CANCEL, out);
        }
        let done = Done {
            tag: stream.tag,
            status: stream.status,
            encoding: stream.encoding,
            body_bytes: stream.body_bytes,
            truncated: stream.truncated,
            head_len: stream.head_len,
            body,
        };
        self.shown = std::mem::take(&mut stream.kept);
        self.release(slot);
        Step::Done(done)
    }

    /// Gives up a request whose reply breaks the rules, or our limits; the connection goes on.
    #[cold]
    pub(super) fn refuse(&mut self, slot: u32, fault: Fault, out: &mut Vec<u8>) -> Step {
        let stream = self.streams.get(slot);
        let tag = stream.tag;
        let code = if fault == BODY_TOO_LONG { code::CANCEL } else { code::PROTOCOL_ERROR };
        frame::put_reset(stream.id, code, out);
        self.release(slot);
        Step::GivenUp { tag, fault, unprocessed: false }
    }
}

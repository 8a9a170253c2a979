//! One connection: where in its frames it stands.

mod control;

use super::Http2;
use super::frame::{self, Head, code, flag, kind};
use super::hpack::Decoder;
use super::send::Sender;
use super::streams::Streams;
use crate::http1::{Encoding, Limits, RETAINED_BYTES, Reply, Request};
use crate::{Event, Fault};

/// Number of streams that are begun before the peer has said how many it takes (RFC 9113 6.5.2 advises it this much).
const STREAMS_BEFORE_SETTINGS: u32 = 100;

/// The state of one connection. Around 700 bytes; tables and buffers come into being as they are used, and are
/// bounded: two tables of 8 KiB, eight buffers of 8 KiB when idle, and the kept bytes of unfinished replies.
#[derive(Debug)]
pub struct Conn {
    pub(super) place: Place,
    /// The beginning of a frame that was split over reads: its head, and the length of its padding.
    held: [u8; frame::HEAD_BYTES + 1],
    held_len: usize,
    /// The beginning of a payload that was split over reads. Never of DATA.
    partial: Vec<u8>,
    pub(super) block: Block,
    pub(super) decoder: Decoder,
    pub(super) streams: Streams,
    pub(super) sender: Sender,
    /// Number of streams that the peer allows; `None` until it has said so.
    pub(super) peer_streams_max: Option<u32>,
    /// The peer's SETTINGS have come.
    greeted: bool,
    pub(super) next_id: u32,
    /// Bytes received since the peer was last given more room on the connection.
    pub(super) received: u32,
    /// No further request goes out on this connection.
    pub(super) leaving: bool,
    /// The last stream that the peer takes, and why it goes.
    pub(super) goaway: Option<(u32, u32)>,
    /// Streams above the last one still have to be reported.
    pub(super) sweeping: bool,
    pub(super) idle_frames: u32,
    /// The bytes that the last reply borrows.
    pub(super) shown: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Before or inside the head of a frame.
    Head,
    /// Inside a payload that is gathered.
    Payload(Head),
    /// Inside a payload that means nothing here.
    Skip(u32),
    /// Inside DATA.
    Data(Data),
    /// A fault was reported, or the peer's goodbye was followed; nothing more is read.
    Dead,
}

/// A DATA frame that is being read: its stream, and the bytes of body and padding that are still to come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data {
    pub(super) id: u32,
    pub(super) left: u32,
    pub(super) padding: u32,
    pub(super) end: bool,
}

/// An unfinished header block.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Its stream, 0 when there is none.
    pub(super) id: u32,
    pub(super) end_stream: bool,
    pub(super) frames: u32,
    pub(super) bytes: Vec<u8>,
}

/// Reason why the connection cannot go on: the code for the peer and the fault for the caller.
pub(super) type Broken = (u32, Fault);

/// A broken rule, in words.
pub(super) const fn broken(code: u32, why: &'static str) -> Broken {
    (code, Fault::Protocol(why))
}

/// The result of one step over the input; positions count in it.
pub(super) enum Step {
    More,
    Part { tag: u32, from: usize, to: usize },
    Done(Done),
    GivenUp { tag: u32, fault: Fault, unprocessed: bool },
}

/// A reply that is complete. Its lines are in the connection's buffer; so is the body, unless it is in the input.
pub(super) struct Done {
    pub(super) tag: u32,
    pub(super) status: u16,
    pub(super) encoding: Encoding,
    pub(super) body_bytes: u64,
    pub(super) truncated: bool,
    pub(super) head_len: usize,
    pub(super) body: Option<(usize, usize)>,
}

impl Conn {
    pub(super) fn new() -> Self {
        Conn {
            place: Place::Head,
            held: [0; frame::HEAD_BYTES + 1],
            held_len: 0,
            partial: Vec::new(),
            block: Block::default(),
            decoder: Decoder::default(),
            streams: Streams::default(),
            sender: Sender::default(),
            peer_streams_max: None,
            greeted: false,
            next_id: 1,
            received: 0,
            leaving: false,
            goaway: None,
            sweeping: false,
            idle_frames: 0,
            shown: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn capacity(&self, streams_max: u32) -> u32 {
        if self.leaving || matches!(self.place, Place::Dead) {
            return 0;
        }
        let peer_streams_max = self.peer_streams_max.unwrap_or(STREAMS_BEFORE_SETTINGS);
        streams_max.min(peer_streams_max).saturating_sub(self.streams.active() as u32)
    }

    pub(super) fn submit(&mut self, http: &Http2, request: &Request, tag: u32, out: &mut Vec<u8>) {
        debug_assert!(!self.leaving && self.next_id <= frame::MOST, "no capacity");
        let id = self.next_id;
        self.next_id += 2;
        // Stream numbers are used up after a thousand million requests.
        self.leaving |= self.next_id > frame::MOST;
        self.idle_frames = 0;
        let slot = self.streams.begin(id);
        let stream = self.streams.get(slot);
        stream.tag = tag;
        stream.keep = request.keep;
        stream.to_head = request.head;
        stream.window = i64::from(self.sender.stream_window);
        let parts = self.sender.parts(&request.bytes);
        self.sender.put_head(&parts, http.scheme, id, out);
        if !parts.body.is_empty() {
            self.sender.begin_body(parts.body, &mut self.streams, slot, out);
        }
    }

    pub(super) fn cancel(&mut self, tag: u32, out: &mut Vec<u8>) -> bool {
        if matches!(self.place, Place::Dead) {
            return false;
        }
        let slot = self.streams.iter_mut().find(|(_, stream)| stream.tag == tag);
        if let Some(slot) = slot.map(|(slot, _)| slot) {
            frame::put_reset(self.streams.get(slot).id, code::CANCEL, out);
            self.release(slot);
        }
        !self.is_finished()
    }

    /// Returns true if nothing is in flight and nothing can be.
    pub(super) fn is_finished(&self) -> bool {
        self.leaving && self.streams.active() == 0
    }

    pub(super) fn release(&mut self, slot: u32) {
        let stream = self.streams.get(slot);
        let (id, waits) = (stream.id, !stream.unsent.is_empty());
        self.streams.release(slot);
        if waits {
            self.sender.forget(id);
        }
    }

    #[inline]
    pub(super) fn receive<'a>(
        &'a mut self,
        limits: &Limits,
        input: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Event<'a, Reply<'a>>, Fault> {
        if self.shown.capacity() > 0 {
            let shown = std::mem::take(&mut self.shown);
            self.streams.give_buffer(shown);
        }
        let mut at = 0;
        match self.run(limits, input, &mut at, out) {
            Ok(Step::More) => Ok(Event::More),
            Ok(Step::Part { tag, from, to }) => {
                Ok(Event::Part { tag, bytes: &input[from..to], consumed: at })
            }
            Ok(Step::GivenUp { tag, fault, unprocessed }) => {
                Ok(Event::GivenUp { tag, fault, unprocessed, consumed: at })
            }
            Ok(Step::Done(done)) => Ok(self.reply(&done, input, at)),
            Err((code, fault)) => {
                self.place = Place::Dead;
                if code != code::NO_ERROR {
                    frame::put_goaway(code, out);
                }
                Err(fault)
            }
        }
    }

    #[inline]
    fn reply<'a>(&'a self, done: &Done, input: &'a [u8], consumed: usize) -> Event<'a, Reply<'a>> {
        let (head, kept) = self.shown.split_at(done.head_len);
        let reply = Reply {
            status: done.status,
            head,
            body: done.body.map_or(kept, |(from, to)| &input[from..to]),
            encoding: done.encoding,
            body_bytes: done.body_bytes,
            truncated: done.truncated,
        };
        Event::Reply { tag: done.tag, reply, consumed, reusable: !self.is_finished() }
    }

    /// The peer has closed.
    pub(super) fn end(&mut self) -> Fault {
        let place = std::mem::replace(&mut self.place, Place::Dead);
        let first = &self.held[..self.held_len];
        if !self.greeted && !matches!(place, Place::Dead) && control::is_foreign(first) {
            return control::foreign(first);
        }
        let began = self.streams.iter_mut().any(|(_, stream)| stream.begun);
        self.closed(began)
    }

    /// Returns whether the reply to this request has begun.
    pub(super) fn began(&self, tag: u32) -> Option<bool> {
        self.streams.iter().find(|stream| stream.tag == tag).map(|stream| stream.begun)
    }

    /// The fault of requests in flight when the connection ends.
    pub(super) const fn closed(&self, began: bool) -> Fault {
        match self.goaway {
            Some((_, code)) if code != code::NO_ERROR => {
                Fault::Reset { began, why: frame::goaway_text(code) }
            }
            _ => Fault::Closed { began },
        }
    }

    /// Reads on from `at` to the next event.
    fn run(
        &mut self,
        limits: &Limits,
        input: &[u8],
        at: &mut usize,
        out: &mut Vec<u8>,
    ) -> Result<Step, Broken> {
        if self.sweeping
            && let Some(step) = self.sweep()
        {
            return Ok(step);
        }
        if self.is_finished() && !matches!(self.place, Place::Dead) {
            return Err((code::NO_ERROR, self.closed(false)));
        }
        loop {
            let step = match self.place {
                Place::Head => match self.head(input, at)? {
                    Some((head, padding)) => self.enter(limits, head, padding, out)?,
                    None => return Ok(Step::More),
                },
                Place::Data(data) => self.data(limits, data, input, at, out),
                Place::Payload(head) => {
                    let missing = head.length as usize - self.partial.len();
                    let here = missing.min(input.len() - *at);
                    let piece = &input[*at..*at + here];
                    *at += here;
                    if here < missing {
                        self.partial.extend_from_slice(piece);
                        return Ok(Step::More);
                    }
                    self.place = Place::Head;
                    self.gathered(limits, head, piece, out)?
                }
                Place::Skip(left) => {
                    let here = left.min((input.len() - *at) as u32);
                    *at += here as usize;
                    if here < left {
                        self.place = Place::Skip(left - here);
                        return Ok(Step::More);
                    }
                    self.place = Place::Head;
                    None
                }
                Place::Dead => {
                    return Err((
                        code::NO_ERROR,
                        Fault::Protocol("the connection has failed before"),
                    ));
                }
            };
            if let Some(step) = step {
                return Ok(step);
            }
        }
    }

    /// Reads the head of a frame and, of padded DATA, the length of the padding; `None` if it is not whole yet.
    #[inline]
    fn head(&mut self, input: &[u8], at: &mut usize) -> Result<Option<(Head, u8)>, Broken> {
        const HEAD: usize = frame::HEAD_BYTES;
        let rest = &input[*at..];
        if self.held_len == 0
            && let Some((bytes, _)) = rest.split_first_chunk::<HEAD>()
        {
            let head = Head::parse(bytes);
            if self.greeted && !is_padded_data(&head) {
                *at += HEAD;
                return Ok(Some((head, 0)));
            }
        }
        self.head_in_pieces(rest, at)
    }

    /// The long way: a head that is split over reads, the first one of all, or one with padding.
    #[cold]
    fn head_in_pieces(
        &mut self,
        rest: &[u8],
        at: &mut usize,
    ) -> Result<Option<(Head, u8)>, Broken> {
        for &byte in rest {
            self.held[self.held_len] = byte;
            self.held_len += 1;
            *at += 1;
            if self.held_len < frame::HEAD_BYTES {
                continue;
            }
            let [bytes @ .., padding] = &self.held;
            let head = Head::parse(bytes);
            if !self.greeted && (head.kind != kind::SETTINGS || head.has(flag::ACK) || head.id != 0)
            {
                return Err((code::PROTOCOL_ERROR, control::foreign(bytes)));
            }
            if self.held_len > frame::HEAD_BYTES || !is_padded_data(&head) {
                let padding = if self.held_len > frame::HEAD_BYTES { *padding } else { 0 };
                self.held_len = 0;
                self.greeted = true;
                return Ok(Some((head, padding)));
            }
            if head.length == 0 {
                return Err(broken(code::FRAME_SIZE_ERROR, "a padded frame without a payload"));
            }
        }
        Ok(None)
    }

    /// Behind the head of a frame.
    #[inline]
    fn enter(
        &mut self,
        limits: &Limits,
        head: Head,
        padding: u8,
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, Broken> {
        if head.length > frame::PAYLOAD_BYTES_MAX {
            return Err(broken(code::FRAME_SIZE_ERROR, "a frame is longer than 16384 bytes"));
        }
        let goes_on = head.kind == kind::CONTINUATION;
        if goes_on != (self.block.id != 0) || (goes_on && head.id != self.block.id) {
            let why = "a header block is interrupted, or goes on without having begun";
            return Err(broken(code::PROTOCOL_ERROR, why));
        }
        match head.kind {
            kind::DATA => return self.enter_data(limits, head, padding, out),
            kind::HEADERS | kind::RST_STREAM => self.check_id(head.id)?,
            kind::SETTINGS | kind::PING | kind::GOAWAY if head.id != 0 => {
                let why = "a frame about the connection names a stream";
                return Err(broken(code::PROTOCOL_ERROR, why));
            }
            kind::PUSH_PROMISE => {
                let why = "the peer pushes, although that was switched off";
                return Err(broken(code::PROTOCOL_ERROR, why));
            }
            kind::SETTINGS | kind::PING | kind::GOAWAY | kind::CONTINUATION => {}
            kind::WINDOW_UPDATE if head.id == 0 => {}
            kind::WINDOW_UPDATE => self.check_id(head.id)?,
            // PRIORITY and unknown kinds mean nothing to a client.
            _ => {
                self.place = Place::Skip(head.length);
                return Ok(None);
            }
        }
        self.place = Place::Payload(head);
        Ok(None)
    }

    /// Checks that a stream with this number was begun.
    #[inline]
    pub(super) fn check_id(&self, id: u32) -> Result<(), Broken> {
        if id & 1 == 1 && id < self.next_id {
            return Ok(());
        }
        Err(broken(code::PROTOCOL_ERROR, "a frame belongs to a stream that was never begun"))
    }

    /// Acts on a payload whose last piece this is.
    fn gathered(
        &mut self,
        limits: &Limits,
        head: Head,
        piece: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, Broken> {
        if self.partial.is_empty() {
            return self.payload(limits, head, piece, out);
        }
        let mut partial = std::mem::take(&mut self.partial);
        partial.extend_from_slice(piece);
        let step = self.payload(limits, head, &partial, out);
        if partial.capacity() <= RETAINED_BYTES {
            partial.clear();
            self.partial = partial;
        }
        step
    }

    #[inline]
    fn payload(
        &mut self,
        limits: &Limits,
        head: Head,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, Broken> {
        match head.kind {
            kind::HEADERS => self.headers(limits, head, payload, out),
            kind::CONTINUATION => self.continuation(limits, head, payload, out),
            _ => self.control(head, payload, out),
        }
    }
}

/// Returns true if the head of a frame is read with the byte behind it, the length of its padding.
#[inline]
const fn is_padded_data(head: &Head) -> bool {
    head.kind == kind::DATA && head.has(flag::PADDED)
}

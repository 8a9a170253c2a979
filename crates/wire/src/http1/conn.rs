//! One connection: where in its reply it stands, and what of the reply is kept.

use super::chunked::Chunked;
use super::head::{self, Framing, Head};
use super::{BODY_TOO_LONG, Encoding, Keep, Limits, Reply, Request};
use crate::{Event, Fault};
use plimsoll_core::holding::Hold;

/// A buffer above this many bytes is given back after the reply it grew for, so that ten thousand
/// connections at rest stay within 80 MB whatever they have kept before.
pub(crate) const RETAINED_BYTES: usize = 8 << 10;

/// Bytes that are reserved at once for a body of declared length. Beyond this a declaration is not
/// trusted until the bytes arrive.
const RESERVED_BYTES: usize = 256 << 10;

/// Bytes of the body of a reply that is not a success (not 2xx) that are kept by default: the text of a
/// refusal is the first thing that people want to see.
pub(crate) const REFUSAL_BYTES: usize = 512;

/// Number of bytes of empty lines that are passed over between two replies.
const BLANK_BYTES: u8 = 16;

/// The state of one connection. Around 120 bytes; a buffer of its own comes into being only when a
/// reply is split over reads or has to be assembled for keeping.
#[derive(Debug, Default)]
pub struct Conn {
    place: Place,
    tag: u32,
    status: u16,
    encoding: Encoding,
    keep: Keep,
    /// The request was HEAD.
    to_head: bool,
    /// The connection cannot be used again after the current reply.
    closing: bool,
    /// An interim reply has arrived for the request in flight.
    interim: bool,
    /// Bytes of empty lines since the last reply.
    blanks: u8,
    body_bytes: u64,
    kept: Kept,
}

#[derive(Clone, Copy, Debug, Default)]
enum Place {
    /// Nothing was asked.
    #[default]
    Idle,
    /// Before or inside a head; a part of one is in the buffer.
    Head,
    /// Inside a body of declared length, with this much to come.
    Length(u64),
    /// Inside a chunked body.
    Chunked(Chunked),
    /// Inside a body that the peer's closing ends.
    UntilClose,
    /// A fault was reported; nothing more is read.
    Dead,
}

/// The connection's own copy: an unfinished head, or what is kept of a reply.
#[derive(Debug, Default)]
struct Kept {
    /// The header lines, then the body.
    buffer: Vec<u8>,
    head_len: usize,
    truncated: bool,
    hold: Hold,
}

impl Kept {
    /// Forgets everything and gives back a buffer that has grown large.
    fn clear(&mut self) {
        if self.buffer.capacity() > RETAINED_BYTES {
            self.buffer = Vec::new();
        }
        self.buffer.clear();
        self.hold = Hold::default();
        self.head_len = 0;
        self.truncated = false;
    }

    /// Keeps what fits into `room`, the most that is kept of the whole body, and into the memory for all replies.
    fn push_body(&mut self, bytes: &[u8], room: usize) {
        let room = room.saturating_sub(self.buffer.len() - self.head_len);
        let mut taken = bytes.len().min(room);
        if self.truncated || !self.hold.covers(self.buffer.len() + taken) {
            taken = 0;
        }
        self.truncated |= taken < bytes.len();
        self.buffer.extend_from_slice(&bytes[..taken]);
    }
}

impl Conn {
    pub(super) fn capacity(&self) -> u32 {
        u32::from(matches!(self.place, Place::Idle) && !self.closing)
    }

    /// A request was sent: its reply comes next.
    pub(super) fn expect(&mut self, request: &Request, tag: u32) {
        debug_assert!(self.capacity() == 1, "one request at a time");
        self.kept.clear();
        self.place = Place::Head;
        self.tag = tag;
        self.keep = request.keep;
        self.to_head = request.head;
        self.interim = false;
    }

    #[inline]
    pub(super) fn receive<'a>(
        &'a mut self,
        limits: &Limits,
        input: &'a [u8],
    ) -> Result<Event<'a, Reply<'a>>, Fault> {
        let step = match self.place {
            Place::Head if self.kept.buffer.is_empty() => self.begin(limits, input),
            Place::Head => self.resume_head(limits, input),
            Place::Idle => self.idle(input),
            Place::Dead => Err(Fault::Protocol("the connection has failed before")),
            _ => self.body(limits, input, 0),
        };
        match step {
            Ok(Step::More) => Ok(Event::More),
            Ok(Step::Progress(consumed)) => Ok(Event::Progress { consumed }),
            Ok(Step::Part { from, to }) => {
                Ok(Event::Part { tag: self.tag, bytes: &input[from..to], consumed: to })
            }
            Ok(Step::Whole(head, length)) => Ok(self.whole(limits, input, &head, length)),
            Ok(Step::Assembled(consumed)) => Ok(self.assembled(consumed)),
            Err(fault) => {
                self.place = Place::Dead;
                Err(fault)
            }
        }
    }

    /// The peer has closed.
    pub(super) fn end(&mut self) -> Result<Event<'_, Reply<'_>>, Fault> {
        let began = match self.place {
            Place::UntilClose => return Ok(self.assembled(0)),
            Place::Idle | Place::Dead => false,
            Place::Head => self.interim || !self.kept.buffer.is_empty(),
            Place::Length(_) | Place::Chunked(_) => true,
        };
        self.place = Place::Dead;
        Err(Fault::Closed { began })
    }

    /// Bytes came though nothing was asked. Empty lines are an old server's bad habit.
    fn idle(&mut self, input: &[u8]) -> Result<Step, Fault> {
        self.kept.clear();
        if self.skip_blanks(input)? < input.len() {
            return Err(Fault::Protocol("bytes arrived that no request had asked for"));
        }
        Ok(Step::More)
    }

    /// Number of bytes at the front of `input` that belong to empty lines.
    #[inline]
    fn skip_blanks(&mut self, input: &[u8]) -> Result<usize, Fault> {
        if input.first().is_none_or(|&byte| byte == b'H') {
            return Ok(0);
        }
        let blanks = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let total = blanks + usize::from(self.blanks);
        if total > usize::from(BLANK_BYTES) {
            return Err(Fault::Protocol("empty lines without end instead of a reply"));
        }
        self.blanks = total as u8;
        Ok(blanks)
    }

    /// At the first byte of a reply: the usual way is that all of it is here.
    #[inline]
    fn begin(&mut self, limits: &Limits, input: &[u8]) -> Result<Step, Fault> {
        let skipped = self.skip_blanks(input)?;
        let rest = &input[skipped..];
        let Some(mut head) = head::parse(rest, self.to_head)? else {
            return self.stash_head(limits, rest);
        };
        if head.len > limits.head_bytes {
            return Err(HEAD_TOO_LONG);
        }
        if head.status < 200 {
            return self.interim(&head, skipped + head.len);
        }
        head.shift(skipped);
        match head.body {
            Framing::Length(length)
                if length <= (input.len() - head.len) as u64 && !self.streams(head.status) =>
            {
                if length > limits.body_bytes {
                    return Err(BODY_TOO_LONG);
                }
                Ok(Step::Whole(head, length))
            }
            _ => {
                if self.keep.head || is_refusal(head.status) {
                    let fields = &input[head.fields_from..head.fields_to];
                    self.kept.buffer.extend_from_slice(fields);
                    self.kept.head_len = fields.len();
                }
                self.enter_body(limits, &head)?;
                self.body(limits, input, head.len)
            }
        }
    }

    /// Puts the beginning of a head aside until the rest of it comes.
    fn stash_head(&mut self, limits: &Limits, part: &[u8]) -> Result<Step, Fault> {
        if part.len() > limits.head_bytes {
            return Err(HEAD_TOO_LONG);
        }
        self.kept.buffer.extend_from_slice(part);
        Ok(Step::More)
    }

    /// Continues with a head whose beginning is in the buffer.
    fn resume_head(&mut self, limits: &Limits, input: &[u8]) -> Result<Step, Fault> {
        let end = head_end(&self.kept.buffer, input);
        let part = &input[..end.unwrap_or(input.len())];
        if self.kept.buffer.len() + part.len() > limits.head_bytes {
            return Err(HEAD_TOO_LONG);
        }
        self.kept.buffer.extend_from_slice(part);
        if end.is_none() {
            head::refuse_early(&self.kept.buffer)?;
            return Ok(Step::More);
        }
        let Some(head) = head::parse(&self.kept.buffer, self.to_head)? else {
            return Err(Fault::Protocol("the head of the reply has no end"));
        };
        if head.status < 200 {
            self.kept.clear();
            return self.interim(&head, part.len());
        }
        if self.keep.head || is_refusal(head.status) {
            self.kept.buffer.truncate(head.fields_to);
            self.kept.buffer.drain(..head.fields_from);
            self.kept.head_len = self.kept.buffer.len();
        } else {
            self.kept.buffer.clear();
        }
        self.enter_body(limits, &head)?;
        self.body(limits, input, part.len())
    }

    /// An interim reply is passed over; the final one comes behind it.
    fn interim(&mut self, head: &Head, consumed: usize) -> Result<Step, Fault> {
        if head.status == 101 {
            return Err(Fault::Protocol("101 Switching Protocols, which no request had asked for"));
        }
        self.interim = true;
        Ok(Step::Progress(consumed))
    }

    /// The head is through and the body does not lie whole in the same read.
    fn enter_body(&mut self, limits: &Limits, head: &Head) -> Result<(), Fault> {
        self.status = head.status;
        self.encoding = head.encoding;
        self.closing = !head.reusable;
        self.body_bytes = 0;
        self.place = match head.body {
            Framing::Length(length) if length > limits.body_bytes && !self.streams(head.status) => {
                return Err(BODY_TOO_LONG);
            }
            Framing::Length(length) => {
                self.body_bytes = length;
                let room = self.room(head.status, limits);
                if room > 0 {
                    let kept = length.min(room as u64) as usize;
                    self.kept.buffer.reserve(kept.min(RESERVED_BYTES));
                }
                Place::Length(length)
            }
            Framing::Chunked => Place::Chunked(Chunked::default()),
            Framing::UntilClose => Place::UntilClose,
        };
        Ok(())
    }

    /// Reads on in a body, from `input[from..]`.
    fn body(&mut self, limits: &Limits, input: &[u8], from: usize) -> Result<Step, Fault> {
        if self.streams(self.status) {
            // Nothing of it is held here, so that it may be as long as it likes.
            return self.stream(&Limits { body_bytes: u64::MAX, ..*limits }, input, from);
        }
        let bytes = &input[from..];
        let room = self.room(self.status, limits);
        let (used, complete) = match &mut self.place {
            Place::Length(left) => {
                let here = (*left).min(bytes.len() as u64) as usize;
                *left -= here as u64;
                if room > 0 {
                    self.kept.push_body(&bytes[..here], room);
                }
                (here, *left == 0)
            }
            Place::Chunked(chunked) => {
                let kept = &mut self.kept;
                chunked.read(bytes, limits, &mut self.body_bytes, |piece| {
                    if room > 0 {
                        kept.push_body(piece, room);
                    }
                    true
                })?
            }
            _ => {
                self.until_close(limits, bytes.len())?;
                if room > 0 {
                    self.kept.push_body(bytes, room);
                }
                (bytes.len(), false)
            }
        };
        Ok(if complete { Step::Assembled(from + used) } else { Step::More })
    }

    /// Gives out the next piece of a body from `input[from..]`.
    fn stream(&mut self, limits: &Limits, input: &[u8], from: usize) -> Result<Step, Fault> {
        let bytes = &input[from..];
        let mut piece_len = 0;
        let (used, complete) = match &mut self.place {
            Place::Length(left) => {
                piece_len = (*left).min(bytes.len() as u64) as usize;
                *left -= piece_len as u64;
                (piece_len, *left == 0)
            }
            Place::Chunked(chunked) => {
                chunked.read(bytes, limits, &mut self.body_bytes, |piece| {
                    piece_len = piece.len();
                    false
                })?
            }
            _ => {
                self.until_close(limits, bytes.len())?;
                piece_len = bytes.len();
                (piece_len, false)
            }
        };
        let to = from + used;
        Ok(match (piece_len, complete) {
            (0, true) => Step::Assembled(to),
            (0, false) => Step::More,
            // What a piece completes is found when the codec is asked again.
            _ => Step::Part { from: to - piece_len, to },
        })
    }

    /// Counts bytes of a body that ends with the connection.
    fn until_close(&mut self, limits: &Limits, bytes: usize) -> Result<(), Fault> {
        self.body_bytes += bytes as u64;
        if self.body_bytes > limits.body_bytes { Err(BODY_TOO_LONG) } else { Ok(()) }
    }

    /// A reply that lies whole in the input: everything is borrowed from there.
    #[inline]
    fn whole<'a>(
        &mut self,
        limits: &Limits,
        input: &'a [u8],
        head: &Head,
        length: u64,
    ) -> Event<'a, Reply<'a>> {
        let consumed = head.len + length as usize;
        let room = self.room(head.status, limits);
        let body = if room > 0 { &input[head.len..consumed] } else { &[] };
        let keep_head = self.keep.head || is_refusal(head.status);
        let fields = if keep_head { &input[head.fields_from..head.fields_to] } else { &[] };
        let shown = body.len().min(room);
        self.rest(head.reusable);
        Event::Reply {
            tag: self.tag,
            reply: Reply {
                status: head.status,
                head: fields,
                body: &body[..shown],
                encoding: head.encoding,
                body_bytes: length,
                truncated: shown < body.len(),
            },
            consumed,
            reusable: head.reusable,
        }
    }

    /// A reply that came in pieces: what is kept of it lies in the connection's buffer.
    fn assembled(&mut self, consumed: usize) -> Event<'_, Reply<'_>> {
        let reusable = !self.closing;
        self.rest(reusable);
        let (head, body) = self.kept.buffer.split_at(self.kept.head_len);
        Event::Reply {
            tag: self.tag,
            reply: Reply {
                status: self.status,
                head,
                body,
                encoding: self.encoding,
                body_bytes: self.body_bytes,
                truncated: self.kept.truncated,
            },
            consumed,
            reusable,
        }
    }

    /// Part of the body of a reply with this status that is kept, bytes.
    #[inline]
    fn room(&self, status: u16, limits: &Limits) -> usize {
        match self.keep.body {
            true => limits.body_bytes_kept,
            false if is_refusal(status) => REFUSAL_BYTES.min(limits.body_bytes_kept),
            false => 0,
        }
    }

    /// Returns true if the body of a reply with this status is given out as it comes.
    #[inline]
    fn streams(&self, status: u16) -> bool {
        self.keep.stream && !is_refusal(status)
    }

    /// The reply is through.
    fn rest(&mut self, reusable: bool) {
        self.place = Place::Idle;
        self.closing = !reusable;
        self.blanks = 0;
    }
}

/// Returns true if a status is no success.
#[inline]
pub(crate) const fn is_refusal(status: u16) -> bool {
    !matches!(status, 200..=299)
}

const HEAD_TOO_LONG: Fault = Fault::Protocol("the reply's head exceeds the limit");

/// The result of one step over the input. The reply itself is made afterwards, because it borrows.
enum Step {
    More,
    Progress(usize),
    /// The reply lies in the input, from its status line to the last byte of a body this long.
    Whole(Head, u64),
    /// A piece of the body lies there in the input.
    Part {
        from: usize,
        to: usize,
    },
    /// The reply is complete after this many bytes of the input.
    Assembled(usize),
}

/// Position in `input` of the end of the head that began in `before` (which is not empty and does
/// not begin with a line end): behind the first empty line. Looks at every byte only once, however
/// small the pieces are.
fn head_end(before: &[u8], input: &[u8]) -> Option<usize> {
    let held = before.len();
    let at = |index: usize| if index < held { before[index] } else { input[index - held] };
    memchr::memchr_iter(b'\n', input).find_map(|lf| {
        let here = held + lf;
        let empty = match at(here - 1) {
            b'\n' => true,
            b'\r' => at(here - 2) == b'\n',
            _ => false,
        };
        empty.then_some(lf + 1)
    })
}

//! The client's side of one connection.

use super::{RESPONSE_HEADER_BYTES, Reply, Request, ResponseHeader};
use crate::{Event, Fault};

/// A buffer above this many bytes is given back before the next reply.
const RETAINED_BYTES: usize = 32 << 10;
/// Room that is made at once for a kept payload. A declared length is not believed beyond this.
const RESERVED_BYTES: usize = 256 << 10;

/// The state of one connection. A buffer comes into being only when a header is split over reads or
/// a payload that is kept is.
#[derive(Debug, Default)]
pub struct Conn {
    in_flight: Vec<InFlight>,
    place: Place,
    /// An unfinished header, or the payload so far if it is kept.
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    request_id: u64,
    tag: u32,
    keep: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum Place {
    /// Before or inside a header; a part of one is in the buffer.
    #[default]
    Header,
    /// Inside a payload, with this much to come.
    Payload { header: ResponseHeader, asked: InFlight, left: usize },
    /// The last reply was handed out and its payload may still be in the buffer.
    Between,
    /// A fault was reported; nothing more is read.
    Dead,
}

impl Conn {
    pub(super) fn capacity(&self, depth: u32) -> u32 {
        match self.place {
            Place::Dead => 0,
            // A request is in flight until the last byte of its reply.
            Place::Payload { .. } => self.room(depth).saturating_sub(1),
            Place::Header | Place::Between => self.room(depth),
        }
    }

    /// Number of requests that it takes beside those to which no reply has begun.
    fn room(&self, depth: u32) -> u32 {
        depth.max(1).saturating_sub(self.in_flight.len() as u32)
    }

    /// A request was sent: a reply to it comes some time.
    pub(super) fn expect(&mut self, request: &Request, tag: u32) {
        self.in_flight.push(InFlight { request_id: request.request_id, tag, keep: request.keep });
    }

    pub(super) fn receive<'a>(
        &'a mut self,
        payload_bytes_max: u32,
        input: &'a [u8],
    ) -> Result<Event<'a, Reply<'a>>, Fault> {
        if matches!(self.place, Place::Between) {
            self.begin();
        }
        match self.place {
            Place::Payload { header, asked, left } => {
                Ok(self.payload(header, asked, left, input, 0))
            }
            Place::Dead => Err(Fault::Protocol("the connection has failed before")),
            Place::Header | Place::Between => {
                let Some((header, used)) = self.header(input) else { return Ok(Event::More) };
                match self.accept(header, payload_bytes_max) {
                    Ok(asked) => {
                        self.buffer.clear();
                        let left = header.payload_bytes as usize;
                        Ok(self.payload(header, asked, left, input, used))
                    }
                    Err(fault) => {
                        self.place = Place::Dead;
                        Err(fault)
                    }
                }
            }
        }
    }

    fn begin(&mut self) {
        self.place = Place::Header;
        self.buffer.clear();
        if self.buffer.capacity() > RETAINED_BYTES {
            self.buffer = Vec::new();
        }
    }

    /// The header, once it is whole, and how many bytes of the input belonged to it.
    fn header(&mut self, input: &[u8]) -> Option<(ResponseHeader, usize)> {
        if self.buffer.is_empty()
            && let Some(bytes) = input.first_chunk()
        {
            return Some((ResponseHeader::decode(bytes), RESPONSE_HEADER_BYTES));
        }
        let used = (RESPONSE_HEADER_BYTES - self.buffer.len()).min(input.len());
        self.buffer.extend_from_slice(&input[..used]);
        self.buffer.first_chunk().map(|bytes| (ResponseHeader::decode(bytes), used))
    }

    /// Finds the request that a reply belongs to.
    fn accept(&mut self, header: ResponseHeader, most: u32) -> Result<InFlight, Fault> {
        let is_asked = |asked: &InFlight| asked.request_id == header.request_id;
        let Some(index) = self.in_flight.iter().position(is_asked) else {
            return Err(Fault::Protocol("a rank reply whose id is that of no request in flight"));
        };
        if header.payload_bytes > most {
            return Err(Fault::Protocol("the payload of the rank reply exceeds the limit"));
        }
        Ok(self.in_flight.remove(index))
    }

    /// Takes what there is of a payload from the input behind `used` bytes.
    fn payload<'a>(
        &'a mut self,
        header: ResponseHeader,
        asked: InFlight,
        left: usize,
        input: &'a [u8],
        used: usize,
    ) -> Event<'a, Reply<'a>> {
        let here = &input[used..];
        let taken = left.min(here.len());
        let is_whole_in_input = taken == header.payload_bytes as usize;
        if asked.keep && !is_whole_in_input {
            if self.buffer.is_empty() {
                self.buffer.reserve((header.payload_bytes as usize).min(RESERVED_BYTES));
            }
            self.buffer.extend_from_slice(&here[..taken]);
        }
        if taken < left {
            self.place = Place::Payload { header, asked, left: left - taken };
            return Event::More;
        }
        self.place = Place::Between;
        let payload = match (asked.keep, is_whole_in_input) {
            (false, _) => &[],
            (true, true) => &here[..taken],
            (true, false) => self.buffer.as_slice(),
        };
        let reply = Reply { header, payload };
        Event::Reply { tag: asked.tag, reply, consumed: used + taken, reusable: true }
    }

    /// The peer has closed: no reply ends that way.
    pub(super) fn end(&mut self) -> Fault {
        let began = match self.place {
            Place::Header => !self.buffer.is_empty(),
            Place::Payload { .. } => true,
            Place::Between | Place::Dead => false,
        };
        self.place = Place::Dead;
        Fault::Closed { began }
    }
}

//! The smallest protocol with many requests on a connection: it uses every event that the contract with the engine has.
//!
//! A frame has 17 bytes: its kind, a tag, and two numbers.

use super::{Answer, Heard, Request, Speaker};
use crate::asker::{Said, Tongue};
use crate::faults::Fault;
use crate::truth::Fate;
use plimsoll_core::outcome::Failure;
use plimsoll_core::rng::Rng;
use plimsoll_wire::{Event, Fault as WireFault, Protocol};
use std::collections::{BTreeMap, BTreeSet};

const FRAME_BYTES: usize = 17;
const ASK: u8 = b'?';
const CANCEL: u8 = b'c';
const PIECE: u8 = b'p';
const REPLY: u8 = b'r';
const REFUSE: u8 = b'n';
const RESET: u8 = b'x';
const UNPROCESSED: u8 = b'u';
/// The number of requests that the connection takes from now on is in the place of the tag.
const TAKES: u8 = b't';

fn frame(kind: u8, tag: u64, serial: u64) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(tag.to_le_bytes());
    bytes.extend(serial.to_le_bytes());
    bytes
}

fn numbers(frame: &[u8]) -> Option<(u8, u64, u64)> {
    let (kind, rest) = frame.split_first()?;
    let (tag, rest) = rest.split_first_chunk::<8>()?;
    let serial = rest.first_chunk::<8>()?;
    Some((*kind, u64::from_le_bytes(*tag), u64::from_le_bytes(*serial)))
}

/// The client's side, with how many requests a connection takes.
#[derive(Clone, Copy, Debug)]
pub struct Frames(pub u32);

/// The state of one connection.
#[derive(Debug, Default)]
pub struct Conn {
    /// The tag of each request in flight, by the handle that it has on the wire. No handle is used twice.
    tags: BTreeMap<u64, u32>,
    next_handle: u64,
    begun: BTreeSet<u32>,
    held: Vec<u8>,
    takes: Option<u32>,
}

impl Conn {
    fn forget(&mut self, handle: u64, tag: u32) {
        self.tags.remove(&handle);
        self.begun.remove(&tag);
    }
}

/// A reply: the number of its request, or none if it says no.
#[derive(Clone, Copy, Debug)]
pub struct Reply(Option<u64>);

impl Protocol for Frames {
    type Conn = Conn;
    type Request = u64;
    type Reply<'a> = Reply;

    fn open(&self, _out: &mut Vec<u8>) -> Conn {
        Conn::default()
    }

    fn depth(&self) -> u32 {
        self.0
    }

    fn capacity(&self, conn: &Conn) -> u32 {
        let takes = conn.takes.unwrap_or(self.0).min(self.0);
        takes.saturating_sub(conn.tags.len() as u32)
    }

    fn submit(&self, conn: &mut Conn, request: &u64, tag: u32, out: &mut Vec<u8>) {
        assert!(self.capacity(conn) > 0, "more requests than the connection takes");
        assert!(conn.tags.values().all(|own| *own != tag), "a tag is used twice at a time");
        conn.next_handle += 1;
        conn.tags.insert(conn.next_handle, tag);
        out.extend(frame(ASK, conn.next_handle, *request));
    }

    fn receive<'a>(
        &self,
        conn: &'a mut Conn,
        input: &'a [u8],
        _out: &mut Vec<u8>,
    ) -> Result<Event<'a, Reply>, WireFault> {
        let consumed = input.len().min(FRAME_BYTES - conn.held.len());
        conn.held.extend_from_slice(&input[..consumed]);
        let Some((kind, handle, serial)) = numbers(&conn.held) else { return Ok(Event::More) };
        conn.held.clear();
        if kind == TAKES {
            conn.takes = Some(handle as u32);
            return Ok(Event::Progress { consumed });
        }
        // It was given up before, or is said again.
        let Some(&tag) = conn.tags.get(&handle) else { return Ok(Event::Progress { consumed }) };
        let began = conn.begun.contains(&tag);
        match kind {
            PIECE => {
                conn.begun.insert(tag);
                Ok(Event::Part { tag, bytes: &input[..consumed], consumed })
            }
            REPLY | REFUSE => {
                conn.forget(handle, tag);
                let reply = Reply((kind == REPLY).then_some(serial));
                Ok(Event::Reply { tag, reply, consumed, reusable: true })
            }
            RESET | UNPROCESSED => {
                conn.forget(handle, tag);
                let fault = WireFault::Closed { began };
                Ok(Event::GivenUp {
                    tag,
                    fault,
                    unprocessed: kind == UNPROCESSED && !began,
                    consumed,
                })
            }
            _ => Err(WireFault::Protocol("no such frame")),
        }
    }

    fn end<'a>(&self, conn: &'a mut Conn) -> Result<Event<'a, Reply>, WireFault> {
        Err(WireFault::Closed { began: !conn.begun.is_empty() })
    }

    fn began(&self, conn: &Conn, tag: u32) -> Option<bool> {
        Some(conn.begun.contains(&tag))
    }

    fn cancel(&self, conn: &mut Conn, tag: u32, out: &mut Vec<u8>) -> bool {
        let handle = conn.tags.iter().find(|(_, own)| **own == tag).map(|(handle, _)| *handle);
        if let Some(handle) = handle {
            conn.forget(handle, tag);
            out.extend(frame(CANCEL, handle, 0));
        }
        true
    }
}

impl Tongue for Frames {
    fn ask(request: &mut u64, serial: u64, rng: &mut Rng) -> bool {
        *request = serial;
        rng.below(2) == 0
    }

    fn said(reply: &Reply) -> (Said, u16) {
        (reply.0.map_or(Said::No(Failure::App), Said::Done), 0)
    }
}

/// The server's side.
#[derive(Debug, Default)]
pub struct FramesSpeaker;

/// One connection of it.
#[derive(Debug, Default)]
pub struct Line {
    held: Vec<u8>,
    /// Tags in flight, with the number of their request.
    open: BTreeMap<u64, u64>,
}

impl Speaker for FramesSpeaker {
    type Line = Line;
    const ORDERED: bool = false;
    const FAULTS: &'static [Fault] = &[
        Fault::Stalled,
        Fault::Late,
        Fault::Reset,
        Fault::Closed,
        Fault::ResetInside,
        Fault::CutInside,
        Fault::Garbage,
        Fault::Twice,
        Fault::Stranger,
        Fault::Refusal,
        Fault::StreamReset,
        Fault::StreamRefused,
        Fault::ErrorInside,
        Fault::Unasked,
    ];

    fn open(&mut self, _: &mut Rng) -> Line {
        Line::default()
    }

    fn hear(&mut self, line: &mut Line, bytes: &[u8], heard: &mut Heard, _: &mut Rng) {
        line.held.extend_from_slice(bytes);
        while let Some((kind, tag, serial)) = line.held.get(..FRAME_BYTES).and_then(numbers) {
            line.held.drain(..FRAME_BYTES);
            if kind == CANCEL {
                line.open.remove(&tag);
                heard.given_up.push(tag);
                continue;
            }
            if kind != ASK {
                heard.offence = Some(format!("a frame of kind {kind}"));
            }
            if line.open.insert(tag, serial).is_some() {
                heard.offence = Some(format!("tag {tag} was in flight already"));
            }
            heard.requests.push(Request {
                serial,
                handle: tag,
                is_whole: true,
                ..Request::default()
            });
        }
    }

    fn answer(
        &mut self,
        line: &mut Line,
        request: &Request,
        fault: Option<Fault>,
        rng: &mut Rng,
    ) -> Answer {
        let (tag, serial) = (request.handle, request.serial);
        line.open.remove(&tag);
        let mut before = Vec::new();
        if rng.below(8) == 0 {
            // Less than before, and as much as before soon after.
            before.extend(frame(TAKES, 1 + rng.below(3), 0));
            before.extend(frame(TAKES, 1 << 20, 0));
        }
        let pieces = |last: Vec<u8>, rng: &mut Rng| {
            let mut pieces: Vec<_> = (0..rng.below(3)).map(|_| frame(PIECE, tag, serial)).collect();
            pieces.push(last);
            pieces[0].splice(0..0, before);
            pieces
        };
        let whole = |kind: u8| frame(kind, tag, serial);
        match fault {
            None => Answer::right(pieces(whole(REPLY), rng)),
            Some(Fault::Refusal) => {
                Answer::right(pieces(whole(REFUSE), rng)).with(Fate::No(Failure::App))
            }
            Some(Fault::Stranger) => {
                Answer::right(vec![frame(REPLY, tag, serial ^ 1)]).with(Fate::No(Failure::Check))
            }
            Some(Fault::StreamReset) => Answer::right(vec![whole(RESET)]).with(Fate::Broken),
            Some(Fault::StreamRefused) => {
                Answer::right(vec![whole(UNPROCESSED)]).with(Fate::Unprocessed)
            }
            Some(Fault::ErrorInside) => {
                let pieces = vec![frame(PIECE, tag, serial), whole(RESET)];
                Answer::right(pieces).with(Fate::Broken)
            }
            Some(Fault::Twice) => Answer::right(vec![whole(REPLY)]).twice(),
            // A tag that nobody uses; not as a piece of its own, with which the answer would begin.
            Some(_) => Answer::right(vec![[frame(REPLY, u64::MAX, serial), whole(REPLY)].concat()]),
        }
    }
}

//! The client's side of one connection.

use super::calls::{Asked, Calls};
use super::frame::{FRAME_HEAD_BYTES, declared_bytes};
use super::kind::DecodeError;
use super::login::{LoginCode, LoginReply};
use super::request::Request;
use super::response::Response;
use crate::{Event, Fault};
use plimsoll_core::holding::Hold;

/// Longest answer to a login, bytes.
const LOGIN_BYTES_MAX: u32 = 64 << 10;
/// A buffer above this many bytes is given back before the next message.
const RETAINED_BYTES: usize = 32 << 10;
/// Room that is made at once for a message. A declared length is not believed beyond this.
const RESERVED_BYTES: usize = 256 << 10;

const FOREIGN: Fault = Fault::Protocol(
    "what answered the login does not speak VoltDB's protocol; is this the client port (21212)?",
);
/// Unfinished responses take all the memory that there is for them.
const NO_ROOM: Fault =
    Fault::Protocol("the unfinished responses of VoltDB exceed the limit of all responses");
const SILENT: &str = "closed without an answer to the login; is it VoltDB that listens there?";

/// The state of one connection. A buffer comes into being only when a message is split over reads.
#[derive(Debug, Default)]
pub struct Conn {
    stage: Stage,
    calls: Calls,
    /// A message that is not whole; or the one that the last event was made of.
    partial: Vec<u8>,
    hold: Hold,
    /// The bytes in the buffer were handed out.
    is_given: bool,
    host: Option<Host>,
}

/// The host that a connection leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its number in the cluster, by which partition leaders are named.
    pub id: i32,
    /// Time at which the cluster was started, ms since 1970.
    pub cluster_start_ms: i64,
    /// The address of the cluster's leader; with the start it names the cluster.
    pub leader_address: [u8; 4],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// The login is not answered; calls go out behind it all the same.
    #[default]
    Login,
    Open,
    /// A fault was reported; nothing more is read.
    Dead,
}

/// Position of a complete message.
struct Whole {
    /// Bytes used from the front of the input.
    consumed: usize,
    is_in_input: bool,
}

impl Conn {
    /// The host at the other end, once the login is through.
    #[must_use]
    pub const fn host(&self) -> Option<Host> {
        self.host
    }

    pub(super) fn is_ready(&self) -> bool {
        self.stage == Stage::Open
    }

    #[inline]
    pub(super) fn capacity(&self, depth: u32) -> u32 {
        match self.stage {
            Stage::Dead => 0,
            Stage::Login | Stage::Open => depth.max(1).saturating_sub(self.calls.len()),
        }
    }

    #[inline]
    pub(super) fn submit(&mut self, request: &Request, tag: u32, out: &mut Vec<u8>) {
        request.put(self.calls.begin(tag), out);
    }

    /// Gives up a call. A server that has not even answered the login meanwhile is given up with it.
    pub(super) fn cancel(&mut self, tag: u32) -> bool {
        self.calls.give_up(tag) && self.stage == Stage::Open
    }

    #[inline]
    pub(super) fn receive<'a>(
        &'a mut self,
        message_bytes_max: u32,
        input: &'a [u8],
    ) -> Result<Event<'a, Response<'a>>, Fault> {
        let Some(Whole { consumed, is_in_input }) = self.gather(message_bytes_max, input)? else {
            return Ok(Event::More);
        };
        let message = if is_in_input { &input[..consumed] } else { &self.partial };
        let body = &message[FRAME_HEAD_BYTES..];
        let read = match self.stage {
            Stage::Open => answered(&mut self.calls, body),
            _ => welcomed(body).map(|host| {
                self.host = Some(host);
                self.stage = Stage::Open;
                None
            }),
        };
        match read {
            Ok(Some((tag, reply))) => Ok(Event::Reply { tag, reply, consumed, reusable: true }),
            Ok(None) => Ok(Event::Progress { consumed }),
            Err(fault) => {
                self.stage = Stage::Dead;
                Err(fault)
            }
        }
    }

    /// Finds the end of the next message; `None` when all of the input was kept.
    #[inline]
    fn gather(&mut self, message_bytes_max: u32, input: &[u8]) -> Result<Option<Whole>, Fault> {
        if self.is_given {
            self.forget();
        }
        let (most, too_long) = match self.stage {
            Stage::Login => (LOGIN_BYTES_MAX, FOREIGN),
            Stage::Open => (
                message_bytes_max,
                Fault::Protocol("the length of VoltDB's message is not possible or over the limit"),
            ),
            Stage::Dead => return Err(Fault::Protocol("the connection has failed before")),
        };
        if input.is_empty() {
            return Ok(None);
        }
        let found = if self.partial.is_empty() {
            match declared_bytes(input, most) {
                Ok(Some(bytes)) if bytes <= input.len() => {
                    return Ok(Some(Whole { consumed: bytes, is_in_input: true }));
                }
                other => {
                    other.map_err(|_| too_long).and_then(|_| self.collect(most, too_long, input))
                }
            }
        } else {
            self.collect(most, too_long, input)
        };
        match found {
            Ok(consumed) => {
                self.is_given = consumed.is_some();
                Ok(consumed.map(|consumed| Whole { consumed, is_in_input: false }))
            }
            Err(fault) => {
                self.stage = Stage::Dead;
                self.give_room_back();
                Err(fault)
            }
        }
    }

    fn give_room_back(&mut self) {
        self.partial = Vec::new();
        self.hold = Hold::default();
    }

    /// Keeps what there is of a message that is split over reads. Returns the bytes of the input up to its end, once it is whole.
    #[cold]
    fn collect(
        &mut self,
        most: u32,
        too_long: Fault,
        input: &[u8],
    ) -> Result<Option<usize>, Fault> {
        let mut at = 0;
        let mut keep = |partial: &mut Vec<u8>, until: usize| {
            let piece = (until - partial.len()).min(input.len() - at);
            partial.extend_from_slice(&input[at..at + piece]);
            at += piece;
            at
        };
        if self.partial.len() < FRAME_HEAD_BYTES {
            keep(&mut self.partial, FRAME_HEAD_BYTES);
        }
        let declared = declared_bytes(&self.partial, most).map_err(|_| too_long)?;
        let Some(bytes) = declared else { return Ok(None) };
        if !self.hold.covers(bytes.min(self.partial.len() + input.len())) {
            return Err(NO_ROOM);
        }
        if self.partial.len() == FRAME_HEAD_BYTES {
            self.partial.reserve((bytes - FRAME_HEAD_BYTES).min(RESERVED_BYTES));
        }
        let used = keep(&mut self.partial, bytes);
        Ok((self.partial.len() == bytes).then_some(used))
    }

    fn forget(&mut self) {
        self.is_given = false;
        self.partial.clear();
        if self.partial.capacity() > RETAINED_BYTES {
            self.give_room_back();
        }
    }

    /// The peer has closed: no message ends that way.
    pub(super) fn end(&mut self) -> Fault {
        let began = !self.partial.is_empty() && !self.is_given;
        match std::mem::replace(&mut self.stage, Stage::Dead) {
            // Something else may well say something shorter than a length, and close.
            Stage::Login => Fault::Reset { began: false, why: SILENT },
            Stage::Open => Fault::Closed { began },
            Stage::Dead => Fault::Closed { began: false },
        }
    }
}

/// Reads a response, and finds its call. `None` if the call was given up.
#[inline]
fn answered<'a>(calls: &mut Calls, body: &'a [u8]) -> Result<Option<(u32, Response<'a>)>, Fault> {
    let response = Response::read(body).map_err(unreadable)?;
    match calls.end(response.handle) {
        Asked::By(tag) => Ok(Some((tag, response))),
        Asked::GivenUp => Ok(None),
        Asked::Never if response.handle == 0 && !response.is_success() => {
            Err(Fault::Protocol("VoltDB could not read a call, and does not say which"))
        }
        Asked::Never => {
            Err(Fault::Protocol("VoltDB's response has the handle of no call in flight"))
        }
    }
}

#[cold]
fn unreadable(error: DecodeError) -> Fault {
    Fault::Protocol(match error {
        DecodeError::Version(_) => "VoltDB's response is of a version that is not known",
        DecodeError::Utf8 => "a text of VoltDB's response is not UTF-8",
        DecodeError::Length(_) => "VoltDB's response has a length that is not possible",
        _ => "VoltDB's response ends before its last part",
    })
}

/// Reads the answer to the login.
fn welcomed(body: &[u8]) -> Result<Host, Fault> {
    match LoginReply::read(body) {
        Ok(LoginReply::Welcome(welcome)) => Ok(Host {
            id: welcome.host_id,
            cluster_start_ms: welcome.cluster_start_ms,
            leader_address: welcome.leader_address,
        }),
        Ok(LoginReply::Refused(code)) if LoginCode::is_for_now(code) => {
            Err(Fault::Unready(LoginCode::text(code)))
        }
        Ok(LoginReply::Refused(code)) => Err(Fault::Refused(LoginCode::text(code))),
        Err(DecodeError::Version(2)) => {
            Err(Fault::Protocol("VoltDB asks for Kerberos, which plimsoll does not speak"))
        }
        Err(_) => Err(FOREIGN),
    }
}

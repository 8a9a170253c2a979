//! The client's side of one connection.

use super::login::{Authentication, Login, refusal};
use super::reply::{Reply, ServerError, Transaction};
use super::request::{Request, Statement, message};
use crate::{Event, Fault};
use std::collections::VecDeque;

/// Bytes of a message's kind and length.
const HEADER_BYTES: usize = 5;
/// Longest message of a login, bytes.
const LOGIN_BYTES_MAX: u32 = 64 << 10;
/// Part of the first row that is kept, bytes.
const ROW_BYTES_KEPT: usize = 64 << 10;
/// Part of an error that is kept, bytes.
const ERROR_BYTES_KEPT: usize = 4 << 10;
/// Part of a command's tag that is kept; the server's own buffer is as long.
const TAG_BYTES: usize = 64;
/// A buffer above this many bytes is given back before the next reply.
const RETAINED_BYTES: usize = 32 << 10;

/// The state of one connection.
#[derive(Debug)]
pub struct Conn {
    stage: Stage,
    in_flight: VecDeque<InFlight>,
    /// Statements that the server was asked to parse and has not answered for, in their order.
    parsing: VecDeque<u32>,
    /// A bit for each statement that this connection has prepared, or is about to.
    prepared: Vec<u64>,
    /// Requests that wait for the end of the login.
    held: Vec<u8>,
    place: Place,
    growing: Growing,
    /// The first row, the error, or a message of the login.
    kept: Vec<u8>,
    /// The last reply was handed out and may still be looked at.
    is_given: bool,
}

#[derive(Debug)]
enum Stage {
    Login(Authentication),
    Open,
    Dead,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    tag: u32,
    /// Statements that it has the server parse and that are not answered.
    parses: u32,
    copies: bool,
    /// True if it executes prepared statements.
    is_prepared: bool,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// Before or inside a message's header, of which `len` bytes are here.
    Header { bytes: [u8; HEADER_BYTES], len: usize },
    /// Inside a message of this kind, with `left` bytes to come, of which the first `keep` are kept.
    Body { kind: u8, left: usize, keep: usize, to: Keep },
}

impl Place {
    const START: Self = Self::Header { bytes: [0; HEADER_BYTES], len: 0 };
}

/// Destination of a message's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    Nowhere,
    Kept,
    Tag,
    Status,
}

/// A reply that is not complete.
#[derive(Debug)]
struct Growing {
    rows: u64,
    bytes: u64,
    /// Range of the first row in the kept bytes.
    first: (usize, usize),
    /// Range of the first error in the kept bytes.
    error: Option<(usize, usize)>,
    tag: [u8; TAG_BYTES],
    tag_len: usize,
    status: u8,
}

impl Default for Growing {
    fn default() -> Self {
        Self {
            rows: 0,
            bytes: 0,
            first: (0, 0),
            error: None,
            tag: [0; TAG_BYTES],
            tag_len: 0,
            status: b'I',
        }
    }
}

impl Default for Conn {
    fn default() -> Self {
        Self {
            stage: Stage::Login(Authentication::default()),
            in_flight: VecDeque::new(),
            parsing: VecDeque::new(),
            prepared: Vec::new(),
            held: Vec::new(),
            place: Place::START,
            growing: Growing::default(),
            kept: Vec::new(),
            is_given: false,
        }
    }
}

/// The result of one step over the input. The reply itself is made afterwards, because it borrows.
enum Step {
    More,
    Progress(usize),
    Reply { tag: u32, consumed: usize, reusable: bool },
}

impl Conn {
    pub(super) fn is_ready(&self) -> bool {
        !matches!(self.stage, Stage::Login(_))
    }

    pub(super) fn capacity(&self, depth: u32) -> u32 {
        match self.stage {
            Stage::Dead => 0,
            _ => depth.max(1).saturating_sub(self.in_flight.len() as u32),
        }
    }

    /// Writes a request, and before it what prepares the statements that it is the first to execute here.
    pub(super) fn submit(
        &mut self,
        statements: &[Statement],
        request: &Request,
        tag: u32,
        out: &mut Vec<u8>,
    ) {
        let mut held = std::mem::take(&mut self.held);
        let to = if self.is_ready() { out } else { &mut held };
        let mut parses = 0;
        for &index in &request.statements {
            // An unknown one is left to the server, whose error names it.
            let Some(statement) = statements.get(index as usize) else { continue };
            if self.mark(index) {
                statement.parse(index, to);
                self.parsing.push_back(index);
                parses += 1;
            }
        }
        to.extend_from_slice(&request.messages);
        self.held = held;
        let is_prepared = !request.statements.is_empty();
        self.in_flight.push_back(InFlight { tag, parses, copies: request.copies, is_prepared });
    }

    /// Notes that a statement is prepared. Returns true if it was not before.
    fn mark(&mut self, index: u32) -> bool {
        let (word, bit) = (index as usize / 64, 1u64 << (index % 64));
        if self.prepared.len() <= word {
            self.prepared.resize(word + 1, 0);
        }
        let is_new = self.prepared[word] & bit == 0;
        self.prepared[word] |= bit;
        is_new
    }

    fn unmark(&mut self, index: u32) {
        self.prepared[index as usize / 64] &= !(1u64 << (index % 64));
    }

    pub(super) fn receive<'a>(
        &'a mut self,
        login: &Login,
        message_bytes_max: u32,
        input: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Event<'a, Reply<'a>>, Fault> {
        if self.is_given {
            self.begin();
        }
        match self.step(login, message_bytes_max, input, out) {
            Ok(Step::More) => Ok(Event::More),
            Ok(Step::Progress(consumed)) => Ok(Event::Progress { consumed }),
            Ok(Step::Reply { tag, consumed, reusable }) => {
                self.is_given = true;
                Ok(Event::Reply { tag, reply: self.reply(), consumed, reusable })
            }
            Err(fault) => {
                self.stage = Stage::Dead;
                Err(fault)
            }
        }
    }

    /// Forgets the last reply and gives back a buffer that has grown large.
    fn begin(&mut self) {
        self.is_given = false;
        self.growing = Growing::default();
        if self.kept.capacity() > RETAINED_BYTES {
            self.kept = Vec::new();
        }
        self.kept.clear();
    }

    fn reply(&self) -> Reply<'_> {
        let own = &self.growing;
        Reply {
            rows: own.rows,
            tag: &own.tag[..own.tag_len],
            error: own.error.map(|(from, to)| ServerError { fields: &self.kept[from..to] }),
            transaction: match own.status {
                b'T' => Transaction::Open,
                b'E' => Transaction::Failed,
                _ => Transaction::None,
            },
            bytes: own.bytes,
            first: &self.kept[own.first.0..own.first.1],
        }
    }

    /// Reads messages up to the end of one that matters, or of the input.
    fn step(
        &mut self,
        login: &Login,
        message_bytes_max: u32,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step, Fault> {
        if matches!(self.stage, Stage::Dead) {
            return Err(Fault::Protocol("the connection has failed before"));
        }
        let mut at = 0;
        loop {
            if let Place::Header { bytes, len } = &mut self.place {
                let taken = (HEADER_BYTES - *len).min(input.len() - at);
                bytes[*len..*len + taken].copy_from_slice(&input[at..at + taken]);
                *len += taken;
                at += taken;
                if *len < HEADER_BYTES {
                    return Ok(Step::More);
                }
                let header = *bytes;
                self.begin_message(header, message_bytes_max)?;
            }
            let Place::Body { kind, left, keep, to } = &mut self.place else { continue };
            let taken = (*left).min(input.len() - at);
            let kept = taken.min(*keep);
            let (kind, to) = (*kind, *to);
            *keep -= kept;
            *left -= taken;
            let is_whole = *left == 0;
            self.growing.keep(&mut self.kept, to, &input[at..at + kept]);
            at += taken;
            if !is_whole {
                return Ok(Step::More);
            }
            self.place = Place::START;
            if let Some(step) = self.end_message(kind, to, login, at, out)? {
                return Ok(step);
            }
        }
    }

    /// A header is whole: whether such a message may come now, and what of it is kept.
    fn begin_message(
        &mut self,
        header: [u8; HEADER_BYTES],
        message_bytes_max: u32,
    ) -> Result<(), Fault> {
        let [kind, length @ ..] = header;
        let is_login = !self.is_ready();
        let is_known = if is_login {
            matches!(kind, b'R' | b'E' | b'N' | b'S' | b'K' | b'Z' | b'v')
        } else {
            b"123ACDEGHINSTZcdnst".contains(&kind)
        };
        let most = if is_login { LOGIN_BYTES_MAX } else { message_bytes_max };
        let length = u32::from_be_bytes(length).checked_sub(4);
        let Some(length) = length.filter(|_| is_known) else {
            return Err(Fault::Protocol("the bytes are not those of a PostgreSQL server"));
        };
        if length > most {
            return Err(Fault::Protocol("a message of the PostgreSQL server exceeds the limit"));
        }
        let is_notice = matches!(kind, b'N' | b'S' | b'A');
        if self.in_flight.is_empty() && !is_login && !is_notice && kind != b'E' {
            return Err(Fault::Protocol("a message arrived that no request had asked for"));
        }
        if !self.in_flight.is_empty() {
            self.growing.bytes += u64::from(length) + HEADER_BYTES as u64;
        }
        let (keep, to) = match kind {
            b'R' => (LOGIN_BYTES_MAX as usize, Keep::Kept),
            b'D' | b'd' => {
                self.growing.rows += 1;
                if self.growing.rows == 1 {
                    self.growing.first = (self.kept.len(), self.kept.len());
                    (ROW_BYTES_KEPT, Keep::Kept)
                } else {
                    (0, Keep::Nowhere)
                }
            }
            b'E' if self.growing.error.is_none() => (ERROR_BYTES_KEPT, Keep::Kept),
            b'C' => {
                self.growing.tag_len = 0;
                (TAG_BYTES, Keep::Tag)
            }
            b'Z' => (1, Keep::Status),
            _ => (0, Keep::Nowhere),
        };
        if kind == b'E' && to == Keep::Kept {
            self.growing.error = Some((self.kept.len(), self.kept.len()));
        }
        self.place = Place::Body { kind, left: length as usize, keep, to };
        Ok(())
    }

    /// A message is whole.
    fn end_message(
        &mut self,
        kind: u8,
        to: Keep,
        login: &Login,
        at: usize,
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, Fault> {
        match (kind, to) {
            (b'D' | b'd', Keep::Kept) => self.growing.first.1 = self.kept.len(),
            (b'R', _) => {
                let Stage::Login(authentication) = &mut self.stage else { return Ok(None) };
                authentication.answer(login, &self.kept, out)?;
                self.kept.clear();
                return Ok(Some(Step::Progress(at)));
            }
            (b'Z', _) => return self.ready(at, out).map(Some),
            (b'E', Keep::Kept) => return self.error(at),
            (b'1', _) => self.parsed()?,
            (b'C', _) => {
                // The tag ends with a NUL.
                let tag = &self.growing.tag[..self.growing.tag_len];
                self.growing.tag_len = memchr::memchr(0, tag).unwrap_or(tag.len());
            }
            // The server waits for rows that this request does not have.
            (b'G', _) => return Ok(self.refuse_rows(out).then_some(Step::Progress(at))),
            _ => {}
        }
        Ok(None)
    }

    /// The server waits for rows. Returns true if the request has none; `out` then refuses them.
    fn refuse_rows(&self, out: &mut Vec<u8>) -> bool {
        let Some(asked) = self.in_flight.front().filter(|asked| !asked.copies) else {
            return false;
        };
        message(out, b'f', |out| out.extend_from_slice(b"no rows come with this request\0"));
        // While it waited for rows, the server passed over the Sync of a prepared statement. Now it waits for one.
        if asked.is_prepared {
            message(out, b'S', |_| {});
        }
        true
    }

    /// The server has nothing left to say: a reply is complete, or the login.
    fn ready(&mut self, at: usize, out: &mut Vec<u8>) -> Result<Step, Fault> {
        if let Stage::Login(authentication) = &self.stage {
            if !authentication.is_done() {
                return Err(Fault::Protocol("PostgreSQL is ready before the login has ended"));
            }
            self.stage = Stage::Open;
            out.append(&mut self.held);
            self.held = Vec::new();
            self.begin();
            return Ok(Step::Progress(at));
        }
        match self.in_flight.pop_front() {
            Some(InFlight { tag, parses: 0, .. }) => {
                Ok(Step::Reply { tag, consumed: at, reusable: true })
            }
            Some(_) => Err(Fault::Protocol("PostgreSQL is ready and has not parsed a statement")),
            None => Err(Fault::Protocol("a message arrived that no request had asked for")),
        }
    }

    fn error(&mut self, at: usize) -> Result<Option<Step>, Fault> {
        let Some((from, _)) = self.growing.error else { return Ok(None) };
        self.growing.error = Some((from, self.kept.len()));
        let error = ServerError { fields: &self.kept[from..] };
        if self.is_ready() && !error.is_fatal() && !self.in_flight.is_empty() {
            self.forget_unparsed();
            return Ok(None);
        }
        let why = refusal(error.code());
        // The server closes after such an error and is never ready again: the first request in flight gets it as its reply.
        match self.in_flight.pop_front() {
            Some(InFlight { tag, .. }) => {
                self.stage = Stage::Dead;
                Ok(Some(Step::Reply { tag, consumed: at, reusable: false }))
            }
            None if !self.is_ready() => Err(Fault::Refused(why)),
            None => Err(Fault::Reset { began: false, why }),
        }
    }

    /// A statement was parsed.
    fn parsed(&mut self) -> Result<(), Fault> {
        let asked = self.in_flight.front_mut().filter(|asked| asked.parses > 0);
        let asked = asked.ok_or(Fault::Protocol("PostgreSQL parsed what it was not asked to"))?;
        asked.parses -= 1;
        self.parsing.pop_front();
        Ok(())
    }

    /// After an error the server passes over the rest of a request, and so over statements it was to parse.
    fn forget_unparsed(&mut self) {
        let Some(asked) = self.in_flight.front_mut() else { return };
        for _ in 0..std::mem::take(&mut asked.parses) {
            if let Some(index) = self.parsing.pop_front() {
                self.unmark(index);
            }
        }
    }

    /// Replies come in order: none but the first can have begun. Where the server ended the connection, what the fault says holds for
    /// that one; the client itself ends it, too, when another request has timed out.
    pub(super) fn began(&self, tag: u32) -> Option<bool> {
        let is_first = self.in_flight.front().is_some_and(|asked| asked.tag == tag);
        if !is_first {
            return Some(false);
        }
        (matches!(self.stage, Stage::Open) && self.has_begun()).then_some(true)
    }

    /// Returns true if a part of the next reply is there.
    fn has_begun(&self) -> bool {
        let is_inside = match self.place {
            Place::Header { len, .. } => len > 0,
            Place::Body { .. } => true,
        };
        is_inside || (!self.is_given && self.growing.bytes > 0)
    }

    /// The peer has closed: no reply ends that way.
    pub(super) fn end(&mut self) -> Fault {
        let began = matches!(self.stage, Stage::Open) && self.has_begun();
        self.stage = Stage::Dead;
        Fault::Closed { began }
    }
}

impl Growing {
    fn keep(&mut self, kept: &mut Vec<u8>, to: Keep, bytes: &[u8]) {
        match to {
            Keep::Nowhere => {}
            Keep::Kept => kept.extend_from_slice(bytes),
            Keep::Tag => {
                self.tag[self.tag_len..self.tag_len + bytes.len()].copy_from_slice(bytes);
                self.tag_len += bytes.len();
            }
            Keep::Status => self.status = bytes.first().copied().unwrap_or(self.status),
        }
    }
}

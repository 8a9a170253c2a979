//! A server of HTTP/2: frames, header compression, windows, and what can be wrong with each.

use super::application::{Application, Content, SERIAL};
use super::{Answer, Heard, Request, Speaker};
use crate::faults::Fault;
use crate::truth::Fate;
use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::rng::Rng;
use plimsoll_wire::http2::vectors::{Reader, Writer};
use std::collections::{BTreeMap, VecDeque};

mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
    pub const UNKNOWN: u8 = 0xbe;
}

mod flag {
    pub const ACK: u8 = 1;
    pub const END_STREAM: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD_BYTES: usize = 9;
const FIRST_WINDOW: i64 = 65_535;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
const REFUSED_STREAM: u32 = 7;
const LAST_STREAM: u32 = (1 << 31) - 1;
/// Largest payload of DATA that is said, bytes.
const DATA_MAX: u64 = 16_384;

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &id.to_be_bytes(), payload].concat()
}

fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (name, value) in values {
        payload.extend(name.to_be_bytes());
        payload.extend(value.to_be_bytes());
    }
    frame(kind::SETTINGS, 0, 0, &payload)
}

/// The server's side, with what it says.
#[derive(Debug)]
pub struct Http2Speaker<A> {
    /// The application behind it.
    pub application: A,
    /// Share of the connections that have no window for bodies at first, or never, per mille.
    pub windows_zero: u64,
}

#[derive(Debug)]
struct Stream {
    request: Request,
    /// Bytes that the client may still send on it.
    window: i64,
}

/// Settings that the client has not acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    window: Option<i64>,
    streams_max: Option<usize>,
}

/// One connection.
pub struct Line {
    held: Vec<u8>,
    greeted: bool,
    reader: Reader,
    writer: Writer,
    /// A header block that is not complete: its stream, whether the stream ends with it, its bytes.
    block: Option<(u32, bool, Vec<u8>)>,
    /// Streams whose request is not complete.
    reading: BTreeMap<u32, Stream>,
    /// Streams that are not answered.
    open: BTreeMap<u32, ()>,
    last_id: u32,
    window: i64,
    stream_window: i64,
    streams_max: usize,
    pending: VecDeque<Pending>,
    own: Vec<(u16, u32)>,
    /// Time after which windows open that are closed at first, ns; none: never.
    opens_after_ns: Option<u64>,
    is_closed: bool,
}

impl Line {
    fn offence(heard: &mut Heard, what: impl Into<String>) {
        heard.offence.get_or_insert(what.into());
    }

    fn frame(&mut self, head: [u8; HEAD_BYTES], payload: &[u8], heard: &mut Heard) {
        let [.., kind, flags, i0, i1, i2, i3] = head;
        let id = u32::from_be_bytes([i0, i1, i2, i3]);
        if self.block.is_some() && kind != kind::CONTINUATION {
            Self::offence(heard, "a header block is interrupted");
        }
        match kind {
            kind::HEADERS => {
                if id <= self.last_id || id.is_multiple_of(2) {
                    Self::offence(heard, format!("stream {id} comes behind {}", self.last_id));
                }
                self.last_id = id;
                self.block = Some((id, flags & flag::END_STREAM != 0, payload.to_vec()));
                self.end_block(flags, heard);
            }
            kind::CONTINUATION => {
                match &mut self.block {
                    Some((own, _, block)) if *own == id => block.extend_from_slice(payload),
                    _ => Self::offence(heard, "CONTINUATION without HEADERS"),
                }
                self.end_block(flags, heard);
            }
            kind::DATA => self.data(id, flags, payload, heard),
            kind::RST_STREAM => {
                self.reading.remove(&id);
                self.open.remove(&id);
                heard.given_up.push(u64::from(id));
            }
            kind::SETTINGS if flags & flag::ACK != 0 => self.acknowledged(),
            kind::SETTINGS => heard.at_once.extend(frame(kind::SETTINGS, flag::ACK, 0, &[])),
            kind::PING if flags & flag::ACK == 0 => {
                heard.at_once.extend(frame(kind::PING, flag::ACK, 0, payload));
            }
            kind::PING | kind::GOAWAY | kind::WINDOW_UPDATE | kind::PRIORITY => {}
            _ => Self::offence(heard, format!("a frame of kind {kind}")),
        }
    }

    /// The client goes by the next of our settings from now on.
    fn acknowledged(&mut self) {
        let Some(pending) = self.pending.pop_front() else { return };
        if let Some(window) = pending.window {
            let change = window - self.stream_window;
            self.stream_window = window;
            self.reading.values_mut().for_each(|stream| stream.window += change);
        }
        self.streams_max = pending.streams_max.unwrap_or(self.streams_max);
    }

    fn end_block(&mut self, flags: u8, heard: &mut Heard) {
        if flags & flag::END_HEADERS == 0 {
            return;
        }
        let Some((id, ends, block)) = self.block.take() else { return };
        let fields = match self.reader.read(&block) {
            Ok(fields) => fields,
            Err(why) => return Self::offence(heard, format!("a header block: {why}")),
        };
        let field = |name: &str| {
            let found = fields.iter().find(|(own, _)| own == name.as_bytes());
            found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
        };
        let (method, path) = (field(":method"), field(":path"));
        let serial = field(SERIAL).and_then(|serial| serial.parse().ok());
        let (Some(method), Some(path), Some(serial)) = (method, path, serial) else {
            return Self::offence(
                heard,
                format!("a request without method, path or number: {fields:?}"),
            );
        };
        self.open.insert(id, ());
        if self.open.len() > self.streams_max {
            Self::offence(heard, format!("{} streams at a time", self.open.len()));
        }
        // As HTTP/1.1 would have it: applications read one form.
        let mut text = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
        for (name, value) in fields.iter().filter(|(name, _)| !name.starts_with(b":")) {
            text.extend([&name[..], b": ", value, b"\r\n"].concat());
        }
        let request =
            Request { serial, handle: u64::from(id), text, is_whole: true, ..Request::default() };
        if ends {
            heard.requests.push(request);
        } else {
            heard.requests.push(Request { is_whole: false, ..request.clone() });
            self.reading.insert(id, Stream { request, window: self.stream_window });
        }
    }

    fn data(&mut self, id: u32, flags: u8, payload: &[u8], heard: &mut Heard) {
        let bytes = payload.len() as i64;
        self.window -= bytes;
        if self.window < 0 {
            Self::offence(heard, "more bytes than the window of the connection lets through");
        }
        if bytes > 0 {
            self.window += bytes;
            let more = (bytes as u32).to_be_bytes();
            heard.at_once.extend(frame(kind::WINDOW_UPDATE, 0, 0, &more));
        }
        let Some(stream) = self.reading.get_mut(&id) else { return };
        stream.window -= bytes;
        if stream.window < 0 {
            Self::offence(heard, "more bytes than the window of the stream lets through");
        }
        if flags & flag::END_STREAM != 0 {
            let stream = self.reading.remove(&id);
            heard.requests.extend(stream.map(|stream| stream.request));
        } else if bytes > 0 && self.stream_window > 0 {
            stream.window += bytes;
            let more = (bytes as u32).to_be_bytes();
            heard.at_once.extend(frame(kind::WINDOW_UPDATE, 0, id, &more));
        }
    }

    /// The client has said its preface: settings are said, and others later.
    fn greet(&mut self, heard: &mut Heard) {
        self.greeted = true;
        heard.at_once.extend(settings(&self.own));
        if self.is_closed {
            heard.faults.push(Fault::WindowZero);
        }
        if let Some(after_ns) = self.opens_after_ns {
            let window = FIRST_WINDOW as u32;
            heard.later.push((after_ns, settings(&[(INITIAL_WINDOW_SIZE, window)])));
            self.pending.push_back(Pending { window: Some(FIRST_WINDOW), streams_max: None });
        }
    }

    /// A header block in one frame or several.
    fn block(&mut self, id: u32, ends: bool, fields: &[(&str, String)], rng: &mut Rng) -> Vec<u8> {
        let block = self.writer.write(fields);
        let end = if ends { flag::END_STREAM } else { 0 };
        if rng.below(4) > 0 {
            return frame(kind::HEADERS, flag::END_HEADERS | end, id, &block);
        }
        let (first, rest) = block.split_at(rng.below(block.len() as u64 + 1) as usize);
        let mut out = frame(kind::HEADERS, end, id, first);
        out.extend(frame(kind::CONTINUATION, flag::END_HEADERS, id, rest));
        out
    }

    /// A reply in pieces; other streams may speak between them.
    fn written(&mut self, id: u32, content: &Content, length: i64, rng: &mut Rng) -> Vec<Vec<u8>> {
        let mut first = Vec::new();
        match rng.below(12) {
            0 => first.extend(frame(kind::PING, 0, 0, b"are-you?")),
            1 => first.extend(frame(kind::UNKNOWN, 0xff, id, b"?")),
            2 => first.extend(frame(kind::PRIORITY, 0, id, &[0, 0, 0, 0, 7])),
            3 => first.extend(self.block(id, false, &[(":status", "103".to_owned())], rng)),
            _ => {}
        }
        let mut fields = vec![(":status", content.status.to_string())];
        fields.extend(content.headers.iter().map(|(name, value)| (*name, value.clone())));
        if length != 0 || rng.below(2) == 0 {
            let said = (content.body.len() as i64 + length).max(0);
            fields.push(("content-length", said.to_string()));
        }
        let mut body = &content.body[..];
        first.extend(self.block(id, body.is_empty(), &fields, rng));
        let mut pieces = vec![first];
        while !body.is_empty() {
            let size = 1 + rng.below((body.len() as u64).min(DATA_MAX - 256)) as usize;
            let (part, rest) = body.split_at(size);
            body = rest;
            let mut flags = if rest.is_empty() { flag::END_STREAM } else { 0 };
            let mut payload = part.to_vec();
            if rng.below(6) == 0 {
                let padding = rng.below(200) as u8;
                payload.insert(0, padding);
                payload.resize(payload.len() + usize::from(padding), 0);
                flags |= flag::PADDED;
            }
            pieces.push(frame(kind::DATA, flags, id, &payload));
        }
        pieces
    }
}

impl<A: Application> Speaker for Http2Speaker<A> {
    type Line = Line;
    const ORDERED: bool = false;
    const FAULTS: &'static [Fault] = &[
        Fault::Stalled,
        Fault::Late,
        Fault::Reset,
        Fault::Closed,
        Fault::HalfClosed,
        Fault::ResetInside,
        Fault::CutInside,
        Fault::Garbage,
        Fault::Flipped,
        Fault::Twice,
        Fault::Stranger,
        Fault::TooLong,
        Fault::TooShort,
        Fault::Refusal,
        Fault::Empty,
        Fault::StreamReset,
        Fault::StreamRefused,
        Fault::GoAway,
        Fault::ErrorInside,
        Fault::Unasked,
        Fault::IdleClosed,
    ];

    fn open(&mut self, rng: &mut Rng) -> Line {
        let mut own = Vec::new();
        let mut first = Pending::default();
        if rng.below(3) > 0 {
            let streams_max = 1 + rng.below(40) as usize;
            own.push((MAX_CONCURRENT_STREAMS, streams_max as u32));
            first.streams_max = Some(streams_max);
        }
        let is_closed = rng.below(1000) < self.windows_zero;
        let window = if is_closed { 0 } else { 1 + rng.below(100_000) as i64 };
        if is_closed || rng.below(2) == 0 {
            own.push((INITIAL_WINDOW_SIZE, window as u32));
            first.window = Some(window);
        }
        let opens = is_closed && rng.below(3) > 0;
        Line {
            held: Vec::new(),
            greeted: false,
            reader: Reader::default(),
            writer: Writer::default(),
            block: None,
            reading: BTreeMap::new(),
            open: BTreeMap::new(),
            last_id: 0,
            window: FIRST_WINDOW,
            stream_window: FIRST_WINDOW,
            streams_max: usize::MAX,
            pending: VecDeque::from([first]),
            own,
            opens_after_ns: opens.then(|| rng.below(150) * MILLISECOND_NS),
            is_closed,
        }
    }

    fn hear(&mut self, line: &mut Line, bytes: &[u8], heard: &mut Heard, _: &mut Rng) {
        line.held.extend_from_slice(bytes);
        if !line.greeted {
            if line.held.len() < PREFACE.len() {
                return;
            }
            if !line.held.starts_with(PREFACE) {
                Line::offence(heard, "no preface");
            }
            line.held.drain(..PREFACE.len());
            line.greet(heard);
        }
        let held = std::mem::take(&mut line.held);
        let mut rest = &held[..];
        while let Some((head, behind)) = rest.split_first_chunk::<HEAD_BYTES>() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let Some((payload, behind)) = behind.split_at_checked(length) else { break };
            line.frame(*head, payload, heard);
            rest = behind;
        }
        line.held = rest.to_vec();
    }

    fn begun(&mut self, request: &Request) {
        self.application.begun(request);
    }

    fn forsaken(&mut self, request: &Request, rng: &mut Rng) {
        self.application.forsaken(request, rng);
    }

    fn answer(
        &mut self,
        line: &mut Line,
        request: &Request,
        fault: Option<Fault>,
        rng: &mut Rng,
    ) -> Answer {
        let id = request.handle as u32;
        line.open.remove(&id);
        let reset = |code: u32| frame(kind::RST_STREAM, 0, id, &code.to_be_bytes());
        match fault {
            Some(Fault::StreamReset) => {
                let code = [1, 2, 5, 8, 11, 99][rng.below(6) as usize];
                return Answer::right(vec![reset(code)]).with(Fate::Broken);
            }
            Some(Fault::StreamRefused) => {
                return Answer::right(vec![reset(REFUSED_STREAM)]).with(Fate::Unprocessed);
            }
            _ => {}
        }
        let refuses = fault == Some(Fault::Refusal);
        let mut content =
            self.application.reply(request, refuses, fault == Some(Fault::Empty), rng);
        if fault == Some(Fault::Stranger) {
            content = self.application.stranger(request, rng);
        }
        let wrong = match fault {
            Some(Fault::TooLong) => 1 + rng.below(20) as i64,
            Some(Fault::TooShort) => -(1 + rng.below(content.body.len().max(1) as u64) as i64),
            _ => 0,
        };
        let mut pieces = line.written(id, &content, wrong, rng);
        if fault == Some(Fault::ErrorInside) {
            pieces.pop();
            // Not as one that was refused unprocessed.
            pieces.push(reset([0, 1, 2, 8][rng.below(4) as usize]));
            return Answer::right(pieces).with(Fate::Broken);
        }
        let mut answer = Answer::right(pieces).with(content.fate);
        match fault {
            Some(Fault::TooLong | Fault::TooShort) => answer.fate = Fate::Wrong,
            Some(Fault::Twice) => answer.extra = frame(kind::DATA, flag::END_STREAM, id, b"again"),
            Some(Fault::GoAway) => {
                let last = if rng.below(2) == 0 { id } else { LAST_STREAM };
                let code = if rng.below(2) == 0 { 0 } else { rng.below(14) as u32 };
                let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
                answer.extra = frame(kind::GOAWAY, 0, 0, &payload);
                answer.last_handle = Some(u64::from(last));
            }
            Some(Fault::Unasked) => {
                let far = (line.last_id + 2000) | 1;
                answer.extra = match rng.below(2) {
                    0 => frame(kind::DATA, 0, far, b"unasked"),
                    _ => frame(kind::PUSH_PROMISE, flag::END_HEADERS, id, &[0, 0, 0, 2]),
                };
                answer.ruins = true;
            }
            _ => {}
        }
        answer
    }
}

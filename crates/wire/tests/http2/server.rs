//! A server's bytes, written by hand.

use plimsoll_wire::http2::vectors::Writer;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
pub const PRIORITY: u8 = 0x20;

/// One frame.
pub fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &id.to_be_bytes(), payload].concat()
}

/// The frames in `bytes`: kind, flags, stream, payload.
pub fn frames(bytes: &[u8]) -> Vec<(u8, u8, u32, &[u8])> {
    let mut rest = bytes;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
        let id = u32::from_be_bytes(rest[5..9].try_into().unwrap());
        found.push((rest[3], rest[4], id, &rest[9..9 + length]));
        rest = &rest[9 + length..];
    }
    found
}

/// What a server has said so far.
#[derive(Default)]
pub struct Server {
    pub bytes: Vec<u8>,
    writer: Writer,
}

impl Server {
    /// One that has said its SETTINGS.
    pub fn new(settings: &[(u16, u32)]) -> Self {
        let mut server = Server::default();
        server.settings(settings);
        server
    }

    pub fn settings(&mut self, settings: &[(u16, u32)]) -> &mut Self {
        let mut payload = Vec::new();
        for (name, value) in settings {
            payload.extend(name.to_be_bytes());
            payload.extend(value.to_be_bytes());
        }
        self.frame(SETTINGS, 0, 0, &payload)
    }

    pub fn frame(&mut self, kind: u8, flags: u8, id: u32, payload: &[u8]) -> &mut Self {
        self.bytes.extend(frame(kind, flags, id, payload));
        self
    }

    /// The block of a head or of trailers; names and values.
    pub fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        self.writer.write(fields)
    }

    /// HEADERS in one frame.
    pub fn head(&mut self, id: u32, fields: &[(&str, &str)], end: bool) -> &mut Self {
        let block = self.block(fields);
        self.frame(HEADERS, END_HEADERS | u8::from(end), id, &block)
    }

    /// A head of this status and one field, with the body to come.
    pub fn status(&mut self, id: u32, status: &str) -> &mut Self {
        self.head(id, &[(":status", status), ("server", "s")], false)
    }

    pub fn data(&mut self, id: u32, bytes: &[u8], end: bool) -> &mut Self {
        self.frame(DATA, u8::from(end), id, bytes)
    }

    pub fn reset(&mut self, id: u32, code: u32) -> &mut Self {
        self.frame(RST_STREAM, 0, id, &code.to_be_bytes())
    }

    pub fn goaway(&mut self, last: u32, code: u32) -> &mut Self {
        let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
        self.frame(GOAWAY, 0, 0, &payload)
    }

    pub fn window(&mut self, id: u32, bytes: u32) -> &mut Self {
        self.frame(WINDOW_UPDATE, 0, id, &bytes.to_be_bytes())
    }
}

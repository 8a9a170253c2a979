//! Frames: their heads, and the few whole ones that a client says (RFC 9113 4 and 6).

/// Length of the head of a frame.
pub(super) const HEAD_BYTES: usize = 9;
/// The longest payload that we allow; the default, which no SETTINGS need announce.
pub(super) const PAYLOAD_BYTES_MAX: u32 = 16_384;
/// The window of the connection, and of each stream, until something else is said.
pub(super) const FIRST_WINDOW_BYTES: u32 = 65_535;
/// The largest window, and the largest stream identifier.
pub(super) const MOST: u32 = 0x7fff_ffff;
/// The first bytes of a client (RFC 9113 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

pub(super) mod flag {
    pub const ACK: u8 = 1;
    pub const END_STREAM: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
    pub const PRIORITY: u8 = 0x20;
}

pub(super) mod setting {
    pub const HEADER_TABLE_SIZE: u16 = 1;
    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    pub const MAX_FRAME_SIZE: u16 = 5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
}

pub(super) mod code {
    pub const NO_ERROR: u32 = 0;
    pub const PROTOCOL_ERROR: u32 = 1;
    pub const FLOW_CONTROL_ERROR: u32 = 3;
    pub const FRAME_SIZE_ERROR: u32 = 6;
    pub const REFUSED_STREAM: u32 = 7;
    pub const CANCEL: u32 = 8;
    pub const COMPRESSION_ERROR: u32 = 9;
    pub const ENHANCE_YOUR_CALM: u32 = 11;
}

macro_rules! reasons {
    ($name:ident, $doc:literal, $before:literal) => {
        #[doc = $doc]
        pub(super) const fn $name(code: u32) -> &'static str {
            match code {
                0 => concat!($before, "NO_ERROR"),
                1 => concat!($before, "PROTOCOL_ERROR"),
                2 => concat!($before, "INTERNAL_ERROR"),
                3 => concat!($before, "FLOW_CONTROL_ERROR"),
                4 => concat!($before, "SETTINGS_TIMEOUT"),
                5 => concat!($before, "STREAM_CLOSED"),
                6 => concat!($before, "FRAME_SIZE_ERROR"),
                7 => concat!($before, "REFUSED_STREAM"),
                8 => concat!($before, "CANCEL"),
                9 => concat!($before, "COMPRESSION_ERROR"),
                10 => concat!($before, "CONNECT_ERROR"),
                11 => concat!($before, "ENHANCE_YOUR_CALM"),
                12 => concat!($before, "INADEQUATE_SECURITY"),
                13 => concat!($before, "HTTP_1_1_REQUIRED"),
                _ => concat!($before, "a code that HTTP/2 does not know"),
            }
        }
    };
}

reasons!(reset_text, "Why one request was given up.", "the peer reset the request: ");
reasons!(goaway_text, "Why a connection was given up.", "the peer gave up the connection: ");

/// The nine bytes before each payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// Length of the payload, bytes.
    pub(super) length: u32,
    pub(super) kind: u8,
    pub(super) flags: u8,
    /// The stream, 0 for the connection.
    pub(super) id: u32,
}

impl Head {
    #[inline]
    pub(super) const fn parse(bytes: &[u8; HEAD_BYTES]) -> Self {
        let [l0, l1, l2, kind, flags, i0, i1, i2, i3] = *bytes;
        Head {
            length: u32::from_be_bytes([0, l0, l1, l2]),
            kind,
            flags,
            id: u32::from_be_bytes([i0, i1, i2, i3]) & MOST,
        }
    }

    pub(super) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    #[inline]
    pub(super) const fn bytes(&self) -> [u8; HEAD_BYTES] {
        let [_, l0, l1, l2] = self.length.to_be_bytes();
        let [i0, i1, i2, i3] = self.id.to_be_bytes();
        [l0, l1, l2, self.kind, self.flags, i0, i1, i2, i3]
    }
}

#[inline]
pub(super) fn put(kind: u8, flags: u8, id: u32, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&Head { length: payload.len() as u32, kind, flags, id }.bytes());
    out.extend_from_slice(payload);
}

pub(super) fn put_settings(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    let head = Head { length: 6 * settings.len() as u32, kind: kind::SETTINGS, flags: 0, id: 0 };
    out.extend_from_slice(&head.bytes());
    for (name, value) in settings {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Gives the peer `bytes` more to send on a stream, or on the connection (0).
pub(super) fn put_window_update(id: u32, bytes: u32, out: &mut Vec<u8>) {
    put(kind::WINDOW_UPDATE, 0, id, &bytes.to_be_bytes(), out);
}

pub(super) fn put_reset(id: u32, code: u32, out: &mut Vec<u8>) {
    put(kind::RST_STREAM, 0, id, &code.to_be_bytes(), out);
}

/// Says goodbye; no stream of the peer's was ever taken.
pub(super) fn put_goaway(code: u32, out: &mut Vec<u8>) {
    put(kind::GOAWAY, 0, 0, &u64::from(code).to_be_bytes(), out);
}

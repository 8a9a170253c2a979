//! A client's connection whose server is a test.

use plimsoll_wire::volt::{
    Call, Conn, FRAME_HEAD_BYTES, Login, LoginReply, Request, Volt, Welcome, frame_length,
};
use plimsoll_wire::{Event, Fault, Protocol};

/// What an event looked like, with everything that was borrowed copied.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    Reply {
        tag: u32,
        status: i8,
        text: Option<String>,
        ms: i32,
        tables: Vec<Vec<u8>>,
        bytes: usize,
    },
    Fault(Fault),
}

pub struct Session {
    pub codec: Volt,
    pub conn: Conn,
    /// What the client has said.
    pub out: Vec<u8>,
    pub seen: Vec<Seen>,
}

impl Session {
    /// A connection whose login is not answered.
    pub fn new(depth: u32) -> Self {
        let codec = Volt::new(Login::new("me", "secret")).with_depth(depth);
        let mut out = Vec::new();
        let conn = codec.open(&mut out);
        assert_eq!(out, codec.login.message());
        out.clear();
        Self { codec, conn, out, seen: Vec::new() }
    }

    /// A connection that is logged in.
    pub fn open(depth: u32) -> Self {
        let mut session = Self::new(depth);
        session.feed(&welcome());
        assert_eq!(session.seen, []);
        assert!(session.codec.is_ready(&session.conn));
        session
    }

    pub fn submit(&mut self, request: &Request, tag: u32) {
        self.codec.submit(&mut self.conn, request, tag, &mut self.out);
    }

    /// Submits a call without parameters and returns its handle.
    pub fn ask(&mut self, tag: u32) -> i64 {
        self.out.clear();
        self.submit(&ping(), tag);
        handles(&self.out)[0]
    }

    pub fn cancel(&mut self, tag: u32) -> bool {
        let before = self.out.len();
        let goes_on = self.codec.cancel(&mut self.conn, tag, &mut self.out);
        assert_eq!(self.out.len(), before, "there is nothing to say about it");
        goes_on
    }

    pub fn capacity(&self) -> u32 {
        self.codec.capacity(&self.conn)
    }

    /// Reads a piece to its end, or to the fault.
    pub fn feed(&mut self, mut piece: &[u8]) {
        if matches!(self.seen.last(), Some(Seen::Fault(_))) {
            return;
        }
        let before = self.out.len();
        loop {
            match self.codec.receive(&mut self.conn, piece, &mut self.out) {
                Ok(Event::More) => break,
                Ok(Event::Progress { consumed }) => piece = &piece[consumed..],
                Ok(Event::Reply { tag, reply, consumed, reusable }) => {
                    assert!(reusable);
                    // Those that cannot be read end the list.
                    let tables = reply.tables.map_while(Result::ok);
                    self.seen.push(Seen::Reply {
                        tag,
                        status: reply.status,
                        text: reply.status_text.map(str::to_owned),
                        ms: reply.round_trip_ms,
                        tables: tables.map(|table| table.bytes().to_vec()).collect(),
                        bytes: reply.bytes,
                    });
                    piece = &piece[consumed..];
                }
                Ok(other) => panic!("{other:?}"),
                Err(fault) => {
                    self.seen.push(Seen::Fault(fault));
                    break;
                }
            }
        }
        assert_eq!(self.out.len(), before, "a client of VoltDB answers nothing by itself");
    }

    /// The text of the fault that was the last thing seen.
    pub fn fault(&self) -> &'static str {
        let Some(Seen::Fault(fault)) = self.seen.last() else { panic!("{:?}", self.seen) };
        fault.text()
    }

    /// The tags that were answered, in the order of the answers.
    pub fn answered(&self) -> Vec<u32> {
        let tag = |seen: &Seen| match seen {
            Seen::Reply { tag, .. } => *tag,
            Seen::Fault(fault) => panic!("{fault:?}"),
        };
        self.seen.iter().map(tag).collect()
    }

    pub fn end(&mut self) -> Fault {
        self.codec.end(&mut self.conn).unwrap_err()
    }
}

/// The answer of a server that lets everybody in.
pub fn welcome() -> Vec<u8> {
    let mut bytes = Vec::new();
    let welcome = Welcome {
        host_id: 3,
        connection_id: 77,
        cluster_start_ms: 1_795_000_000_000,
        leader_address: [127, 0, 0, 1],
        build: "test",
    };
    LoginReply::Welcome(welcome).put(&mut bytes);
    bytes
}

/// A call without parameters.
pub fn ping() -> Request {
    let mut request = Request::default();
    request.call("@Ping", &[]);
    request
}

/// The messages that follow each other in these bytes, without their lengths.
pub fn messages(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let Some(length) = frame_length(bytes).unwrap() {
        found.push(&bytes[FRAME_HEAD_BYTES..length]);
        bytes = &bytes[length..];
    }
    assert!(bytes.is_empty(), "{bytes:?} are left");
    found
}

/// The handles of calls.
pub fn handles(bytes: &[u8]) -> Vec<i64> {
    messages(bytes).into_iter().map(|body| Call::read(body).unwrap().handle).collect()
}

/// Bytes from hexadecimal digits and texts in quotes.
pub fn hex(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (place, part) in text.split('"').enumerate() {
        if place % 2 == 1 {
            bytes.extend_from_slice(part.as_bytes());
            continue;
        }
        let digits: Vec<u8> = part.bytes().filter(u8::is_ascii_hexdigit).collect();
        for pair in digits.chunks(2) {
            bytes.push(u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap());
        }
    }
    bytes
}

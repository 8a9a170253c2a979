//! Servers of HTTP/2: header compression, control frames, streams and windows.

use crate::case::Case;
use crate::peer::Wire;
use std::io::Result;

const GROUP: &str = "HTTP/2";
const LOAD: &str =
    "load http://127.0.0.1:PORT/ --http2 --clients 4 --duration DURATION --timeout 500ms --quiet";
const POST: &str = "load http://127.0.0.1:PORT/ --http2 --clients 4 --duration DURATION --timeout 500ms --body @body.bin --quiet";
const KEEPING: &str = "load http://127.0.0.1:PORT/ --http2 --clients 200 --connections 4 --duration DURATION --timeout 3s --check body~needle --quiet";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200`, from the static table.
const STATUS_200: u8 = 0x88;

/// A frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Bytes of one setting.
fn setting(name: u16, value: u32) -> Vec<u8> {
    [&name.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

/// Reads the preface, greets with these settings, and returns the first stream that the client opens.
fn greet(wire: &mut Wire, settings: &[u8]) -> Result<u32> {
    wire.take(24)?;
    wire.send(&frame(SETTINGS, 0, 0, settings))?;
    next_stream(wire)
}

/// Reads frames up to the next HEADERS of a client; its stream.
fn next_stream(wire: &mut Wire) -> Result<u32> {
    loop {
        let head = wire.take(9)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        wire.take(length as usize)?;
        if head[3] == HEADERS {
            return Ok(u32::from_be_bytes([head[5], head[6], head[7], head[8]]));
        }
    }
}

/// Greets, and says these frames again and again.
fn flood(wire: &mut Wire, make: impl Fn(u32) -> Vec<u8>) -> Result<()> {
    let stream = greet(wire, &[])?;
    let frames = make(stream);
    wire.repeat(&frames)
}

fn settings_flood(wire: &mut Wire) -> Result<()> {
    flood(wire, |_| frame(SETTINGS, 0, 0, &setting(3, 100)))
}

fn ping_flood(wire: &mut Wire) -> Result<()> {
    flood(wire, |_| frame(PING, 0, 0, b"are you?"))
}

/// Pings between bytes of a body, whose answers are never read: the count of useless frames begins again at each byte.
fn pings_between_bytes(wire: &mut Wire) -> Result<()> {
    let stream = greet(wire, &[])?;
    wire.send(&frame(HEADERS, END_HEADERS, stream, &[STATUS_200]))?;
    let pings = frame(PING, 0, 0, b"are you?").repeat(5_000);
    let round = [pings, frame(DATA, 0, stream, b"x")].concat();
    loop {
        wire.send(&round)?;
    }
}

fn refuses_every_stream(wire: &mut Wire) -> Result<()> {
    let mut stream = greet(wire, &[])?;
    loop {
        wire.send(&frame(RST_STREAM, 0, stream, &7u32.to_be_bytes()))?;
        stream = next_stream(wire)?;
    }
}

fn resets_every_stream(wire: &mut Wire) -> Result<()> {
    let mut stream = greet(wire, &[])?;
    loop {
        wire.send(&frame(RST_STREAM, 0, stream, &2u32.to_be_bytes()))?;
        stream = next_stream(wire)?;
    }
}

fn reset_flood(wire: &mut Wire) -> Result<()> {
    flood(wire, |stream| frame(RST_STREAM, 0, stream, &8u32.to_be_bytes()))
}

fn continuation_flood(wire: &mut Wire) -> Result<()> {
    let stream = greet(wire, &[])?;
    wire.send(&frame(HEADERS, 0, stream, &[STATUS_200]))?;
    wire.repeat(&frame(CONTINUATION, 0, stream, b""))
}

fn continuation_of_large_frames(wire: &mut Wire) -> Result<()> {
    let stream = greet(wire, &[])?;
    wire.send(&frame(HEADERS, 0, stream, &[STATUS_200]))?;
    wire.repeat(&frame(CONTINUATION, 0, stream, &[STATUS_200; 16_384]))
}

/// An entry of 4,000 bytes in the table, named sixteen thousand times in each frame.
fn hpack_bomb(wire: &mut Wire) -> Result<()> {
    let mut stream = greet(wire, &[])?;
    let mut entry = vec![STATUS_200, 0x40, 1, b'b', 0x7f];
    // 4,000 as an integer with a prefix of seven bits.
    entry.extend([0xa1, 0x1e]);
    entry.extend([b'b'; 4_000]);
    wire.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &entry))?;
    let mut bomb = vec![STATUS_200];
    bomb.extend([0xbe; 16_000]);
    loop {
        stream = next_stream(wire)?;
        wire.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &bomb))?;
    }
}

fn hpack_integer_overflow(wire: &mut Wire) -> Result<()> {
    let stream = greet(wire, &[])?;
    let mut block = vec![STATUS_200, 0x40, 0x7f];
    block.extend([0xff; 60]);
    wire.send(&frame(HEADERS, END_HEADERS, stream, &block))?;
    wire.hold()
}

fn hpack_table_of_4_gib(wire: &mut Wire) -> Result<()> {
    let stream = greet(wire, &[])?;
    // The size of the table as 2^32 - 1.
    wire.send(&frame(
        HEADERS,
        END_HEADERS,
        stream,
        &[0x3f, 0xe0, 0xff, 0xff, 0xff, 0x0f, STATUS_200],
    ))?;
    wire.hold()
}

fn header_list_beyond_the_limit(wire: &mut Wire) -> Result<()> {
    let mut stream = greet(wire, &[])?;
    let field = |name: &[u8], value: &[u8]| {
        let mut field = vec![0, name.len() as u8];
        field.extend(name);
        field.extend([0x7f, 0x81, 0x76]);
        field.extend(value);
        field
    };
    // 15,232 bytes of value: 127 + 1 + 118 * 128.
    let block = field(b"x-more", &[b'v'; 15_232]);
    loop {
        wire.send(&frame(HEADERS, 0, stream, &[STATUS_200]))?;
        for _ in 0..5 {
            wire.send(&frame(CONTINUATION, 0, stream, &block))?;
        }
        wire.send(&frame(CONTINUATION, END_HEADERS, stream, &[]))?;
        stream = next_stream(wire)?;
    }
}

fn pushes(wire: &mut Wire) -> Result<()> {
    flood(wire, |stream| {
        let promised = [&2u32.to_be_bytes()[..], &[0x82]].concat();
        frame(PUSH_PROMISE, END_HEADERS, stream, &promised)
    })
}

fn data_on_closed_streams(wire: &mut Wire) -> Result<()> {
    let stream = greet(wire, &[])?;
    wire.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &[STATUS_200]))?;
    wire.repeat(&frame(DATA, 0, stream, &[0; 16_384]))
}

fn data_on_streams_never_begun(wire: &mut Wire) -> Result<()> {
    flood(wire, |_| frame(DATA, 0, 999_999, b"x"))
}

fn empty_data_without_end(wire: &mut Wire) -> Result<()> {
    let stream = greet(wire, &[])?;
    wire.send(&frame(HEADERS, END_HEADERS, stream, &[STATUS_200]))?;
    wire.repeat(&frame(DATA, 0, stream, b""))
}

fn data_without_end(wire: &mut Wire) -> Result<()> {
    let stream = greet(wire, &[])?;
    wire.send(&frame(HEADERS, END_HEADERS, stream, &[STATUS_200]))?;
    wire.repeat(&frame(DATA, 0, stream, &[b'x'; 16_384]))
}

fn window_beyond_2_31(wire: &mut Wire) -> Result<()> {
    flood(wire, |_| frame(WINDOW_UPDATE, 0, 0, &0x7fff_ffffu32.to_be_bytes()))
}

fn windows_by_the_byte(wire: &mut Wire) -> Result<()> {
    let stream = greet(wire, &setting(4, 0))?;
    let one = frame(WINDOW_UPDATE, 0, stream, &1u32.to_be_bytes());
    let both = [one, frame(WINDOW_UPDATE, 0, 0, &1u32.to_be_bytes())].concat();
    wire.repeat(&both)
}

fn window_of_zero(wire: &mut Wire) -> Result<()> {
    greet(wire, &setting(4, 0))?;
    wire.hold()
}

fn no_streams(wire: &mut Wire) -> Result<()> {
    wire.take(24)?;
    wire.send(&frame(SETTINGS, 0, 0, &setting(3, 0)))?;
    wire.hold()
}

fn windows_up_and_down(wire: &mut Wire) -> Result<()> {
    let up_and_down = [setting(4, 0x7fff_ffff), setting(4, 0)].concat();
    flood(wire, |_| frame(SETTINGS, 0, 0, &up_and_down.repeat(1_300)))
}

fn goaway_at_once(wire: &mut Wire) -> Result<()> {
    greet(wire, &[])?;
    wire.send(&frame(GOAWAY, 0, 0, &[0; 8]))?;
    wire.hold()
}

fn goaway_flood(wire: &mut Wire) -> Result<()> {
    let mut last = 0x7fff_ffffu32;
    greet(wire, &[])?;
    loop {
        let frames: Vec<u8> = (0..1_000)
            .flat_map(|_| {
                last -= 1;
                frame(GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat())
            })
            .collect();
        wire.send(&frames)?;
    }
}

fn unknown_frames(wire: &mut Wire) -> Result<()> {
    flood(wire, |_| frame(0xee, 0xff, 77, &[0; 16_384]))
}

fn priorities(wire: &mut Wire) -> Result<()> {
    flood(wire, |_| frame(PRIORITY, 0, 1, &[0; 5]))
}

fn frame_of_16_mib(wire: &mut Wire) -> Result<()> {
    let stream = greet(wire, &[])?;
    wire.send(&frame(HEADERS, END_HEADERS, stream, &[STATUS_200]))?;
    wire.send(&[0xff, 0xff, 0xff, DATA, 0])?;
    wire.send(&stream.to_be_bytes())?;
    wire.repeat(b"x")
}

fn interim_heads(wire: &mut Wire) -> Result<()> {
    // `:status: 103`, without the table.
    flood(wire, |stream| frame(HEADERS, END_HEADERS, stream, &[0x08, 3, b'1', b'0', b'3']))
}

fn text_that_steers_a_terminal(wire: &mut Wire) -> Result<()> {
    let mut stream = greet(wire, &[])?;
    loop {
        // `:status: 500`, and a body.
        wire.send(&frame(HEADERS, END_HEADERS, stream, &[0x8e]))?;
        wire.send(&frame(DATA, END_STREAM, stream, "\u{1b}[2J\u{1b}]0;x\u{7}\u{202e}".as_bytes()))?;
        stream = next_stream(wire)?;
    }
}

/// Two hundred streams keep four MiB each of replies that do not end.
fn unfinished_replies(wire: &mut Wire) -> Result<()> {
    let mut streams = vec![greet(wire, &[])?];
    for _ in 1..50 {
        streams.push(next_stream(wire)?);
    }
    for stream in &streams {
        wire.send(&frame(HEADERS, END_HEADERS, *stream, &[STATUS_200]))?;
    }
    for _ in 0..256 {
        for stream in &streams {
            wire.send(&frame(DATA, 0, *stream, &[b'x'; 16_384]))?;
        }
    }
    wire.hold()
}

/// The cases of this protocol.
pub const CASES: &[Case] = &[
    Case::new((GROUP, "SETTINGS without end"), settings_flood, LOAD, "a flood of PING, SETTINGS"),
    Case::new((GROUP, "PING without end"), ping_flood, LOAD, "a flood of PING, SETTINGS"),
    Case::new(
        (GROUP, "PING between bytes of a body, answers not read"),
        pings_between_bytes,
        LOAD,
        "",
    ),
    Case::new((GROUP, "every stream refused, to be sent again"), refuses_every_stream, LOAD, ""),
    Case::new((GROUP, "every stream reset"), resets_every_stream, LOAD, "INTERNAL_ERROR"),
    Case::new((GROUP, "RST_STREAM without end"), reset_flood, LOAD, "CANCEL"),
    Case::new(
        (GROUP, "empty CONTINUATION without end"),
        continuation_flood,
        LOAD,
        "head exceeds the limit",
    ),
    Case::new(
        (GROUP, "CONTINUATION of 16 KiB without end"),
        continuation_of_large_frames,
        LOAD,
        "head exceeds the limit",
    ),
    Case::new((GROUP, "an HPACK bomb: 64 MB in 16 kB"), hpack_bomb, LOAD, "head exceeds the limit"),
    Case::new((GROUP, "an HPACK integer without end"), hpack_integer_overflow, LOAD, ""),
    Case::new((GROUP, "an HPACK table of 4 GiB"), hpack_table_of_4_gib, LOAD, ""),
    Case::new(
        (GROUP, "a list of headers beyond the limit"),
        header_list_beyond_the_limit,
        LOAD,
        "head exceeds the limit",
    ),
    Case::new((GROUP, "PUSH_PROMISE"), pushes, LOAD, "the peer pushes"),
    Case::new((GROUP, "DATA on a closed stream without end"), data_on_closed_streams, LOAD, ""),
    Case::new(
        (GROUP, "DATA on a stream that was never begun"),
        data_on_streams_never_begun,
        LOAD,
        "never begun",
    ),
    Case::new((GROUP, "empty DATA without end"), empty_data_without_end, LOAD, "timeout"),
    Case::new((GROUP, "DATA without end"), data_without_end, LOAD, ""),
    Case::new((GROUP, "a window beyond 2^31 - 1"), window_beyond_2_31, LOAD, "beyond 2^31 - 1"),
    Case::new((GROUP, "windows opened by the byte"), windows_by_the_byte, POST, ""),
    Case::new((GROUP, "a window of 0 for a request of 1 MB"), window_of_zero, POST, "timeout"),
    Case::new((GROUP, "no streams allowed"), no_streams, LOAD, ""),
    Case::new((GROUP, "windows opened and closed without end"), windows_up_and_down, POST, ""),
    Case::new((GROUP, "GOAWAY on each connection"), goaway_at_once, LOAD, ""),
    Case::new((GROUP, "GOAWAY without end"), goaway_flood, LOAD, ""),
    Case::new((GROUP, "frames of an unknown kind without end"), unknown_frames, LOAD, "timeout"),
    Case::new((GROUP, "PRIORITY without end"), priorities, LOAD, "timeout"),
    Case::new((GROUP, "a frame of 16 MiB"), frame_of_16_mib, LOAD, "longer than 16384 bytes"),
    Case::new(
        (GROUP, "interim heads without end"),
        interim_heads,
        LOAD,
        "a flood of PING, SETTINGS",
    ),
    Case::new((GROUP, "text that steers a terminal"), text_that_steers_a_terminal, LOAD, "500"),
    Case::new((GROUP, "200 unfinished replies of 4 MiB"), unfinished_replies, KEEPING, "")
        .within(700 << 20),
];

//! HTTP/2: frames of a server, and header blocks.

use crate::conversation::{Conversation, Differing, split_alike};
use crate::holds::choice;
use crate::memory::{Allowed, within};
use crate::reference::http2;
use plimsoll_wire::Protocol as _;
use plimsoll_wire::http1::{Keep, Reply, Request};
use plimsoll_wire::http2::vectors::{Reader, Writer};
use plimsoll_wire::http2::{Conn, Http2};

/// Requests in flight; their streams are 1, 3, 5.
const REQUESTS: u32 = 3;

fn request(keep: Keep) -> Request {
    let bytes = b"GET /a HTTP/1.1\r\nHost: h:1\r\nContent-Length: 0\r\n\r\n".to_vec();
    Request { bytes, head: false, keep }
}

fn shown(reply: &Reply<'_>) -> String {
    format!("{reply:?}")
}

fn nothing(_: &Http2, _: &mut Conn, _: &mut Vec<u8>) {}

fn conversation(codec: &Http2, keeps: [Keep; 3]) -> Conversation<'_, Http2> {
    let mut out = Vec::new();
    let mut conn = codec.open(&mut out);
    for (tag, keep) in (0..REQUESTS).zip(keeps) {
        codec.submit(&mut conn, &request(keep), tag, &mut out);
    }
    Conversation { codec, conn, shown, next: nothing }
}

/// Bytes of a server of HTTP/2 to requests in flight. The first byte is the length of the pieces.
///
/// # Panics
/// When a property does not hold.
pub fn frames(bytes: &[u8]) {
    let (size, bytes) = choice(bytes);
    let codec = Http2::default();
    let stream = Keep { stream: true, ..Keep::default() };
    let keeps = [Keep::default(), stream, Keep { head: true, body: true, stream: false }];
    let allowed = Allowed { base: 900_000, each: 120 };
    within(bytes.len(), allowed, || {
        split_alike(|| conversation(&codec, keeps), bytes, size.into(), Differing::Nothing)
    });
    compare(&codec, bytes);
}

/// Both readers must read the same reply, if both have a whole one.
fn compare(codec: &Http2, bytes: &[u8]) {
    let kept = Keep { head: false, body: false, stream: true };
    let log = conversation(codec, [kept; 3]).read(std::iter::once(bytes));
    let other = http2::replies(bytes, REQUESTS);
    for ended in &log.ended {
        let (Ok(reply), Some((status, body))) = (&ended.result, other.get(&(2 * ended.tag + 1)))
        else {
            continue;
        };
        assert!(reply.contains(&format!("status: {status},")), "h2 reads {status}: {reply}");
        if (200..300).contains(status) {
            let (own, theirs) = (ended.parts.escape_ascii(), body.escape_ascii());
            assert_eq!(own.to_string(), theirs.to_string(), "h2 reads another body");
        }
    }
}

/// Header blocks of one connection, one behind the other: each has its length before it, in two bytes.
///
/// # Panics
/// When a property does not hold.
pub fn header_blocks(bytes: &[u8]) {
    let (mut reader, mut again) = (Reader::default(), Reader::default());
    let (mut writer, mut other) = (Writer::default(), http2::Blocks::default());
    let allowed = Allowed { base: 200_000, each: 10_000 };
    let (mut rest, mut is_alike) = (bytes, true);
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length) & 0xfff).min(behind.len());
        let (block, behind) = behind.split_at(length);
        rest = behind;
        let read = within(block.len(), allowed, || reader.read(block));
        assert!(reader.table_bytes() <= 4096, "the table has {} bytes", reader.table_bytes());
        let fields = match read {
            Ok(fields) => fields,
            Err(error) => return crate::holds::one_line(&error),
        };
        // The other reader wants a field behind a change of the table's size, and is behind then.
        is_alike &= !fields.is_empty();
        if is_alike {
            assert_eq!(other.read(block).as_ref(), Some(&fields), "another reader differs");
        }
        assert_eq!(again.read(&writer.write(&fields)).as_ref(), Ok(&fields));
        assert_eq!(again.table_bytes(), writer.table_bytes());
    }
}

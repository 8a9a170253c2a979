//! The ranking benchmark: frames of both sides, and replies of the server.

use crate::conversation::{Conversation, Differing, split_alike};
use crate::holds::{choice, one_line, pieces};
use crate::memory::{Allowed, within};
use plimsoll_wire::Protocol as _;
use plimsoll_wire::rank::{
    Conn, Incoming, REQUEST_HEADER_BYTES, Rank, Reply, Request, RequestHeader, RequestReader,
};

fn shown(reply: &Reply<'_>) -> String {
    format!("{reply:?}")
}

fn nothing(_: &Rank, _: &mut Conn, _: &mut Vec<u8>) {}

/// Bytes of either side. The first byte is the length of the pieces.
///
/// # Panics
/// When a property does not hold.
pub fn frames(bytes: &[u8]) {
    let (size, bytes) = choice(bytes);
    let codec = Rank { depth: 3, payload_bytes_max: 100_000 };
    let make = || {
        let (mut out, mut conn) = (Vec::new(), Conn::default());
        for tag in 0..3 {
            let request = Request { request_id: tag.into(), keep: tag > 0, ..Request::default() };
            codec.submit(&mut conn, &request, tag, &mut out);
        }
        Conversation::<Rank> { codec: &codec, conn, shown, next: nothing }
    };
    let allowed = Allowed { base: 700_000, each: 60 };
    within(bytes.len(), allowed, || split_alike(make, bytes, size.into(), Differing::Nothing));
    assert_eq!(requests(pieces(bytes, size.into())), requests(std::iter::once(bytes)));
    if let Some(reply) = plimsoll_ranker::fuzz::reply(bytes) {
        one_line(&reply);
    }
    if let Some((header, _)) = bytes.split_first_chunk::<REQUEST_HEADER_BYTES>() {
        assert_eq!(RequestHeader::decode(header).encode(), *header);
    }
}

fn requests<'b>(pieces: impl Iterator<Item = &'b [u8]>) -> (Vec<RequestHeader>, bool) {
    let (mut reader, mut seen) = (RequestReader::new(100_000), Vec::new());
    for piece in pieces {
        let mut rest = piece;
        loop {
            match reader.receive(rest) {
                Ok(Incoming::Request { header, consumed }) => {
                    seen.push(header);
                    rest = &rest[consumed..];
                }
                Ok(Incoming::More) => break,
                Err(error) => {
                    one_line(&error);
                    return (seen, false);
                }
            }
        }
    }
    (seen, true)
}

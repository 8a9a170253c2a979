//! Rank frames, both sides: against bytes written by hand, cut at every place, and at random.

#![allow(clippy::unwrap_used)]

use plimsoll_wire::rank::{
    FrameError, Incoming, KIND_REFUSED, Rank, Reply, Request, RequestHeader, RequestReader,
    ResponseHeader,
};
use plimsoll_wire::{Event, Fault, Protocol};
use proptest::prelude::*;

/// A request as the original's driver would write it, by hand.
const REQUEST: [u8; 27] = [
    0, 0, 0, 0, //
    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, //
    0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, //
    0, 0, 0, 3, //
    b'a', b'b', b'c',
];

/// What a client must make of a reply: tag, header and payload.
type Got = (u32, ResponseHeader, Vec<u8>);

fn response(request_id: u64, payload: &[u8]) -> (ResponseHeader, Vec<u8>) {
    let header = ResponseHeader {
        kind: 0,
        request_id,
        start_time_ns: 7,
        processing_time_ns: 9,
        payload_bytes: payload.len() as u32,
    };
    let mut bytes = header.encode().to_vec();
    bytes.extend_from_slice(payload);
    (header, bytes)
}

fn asking(protocol: &Rank, ids: &[u64], keep: bool) -> <Rank as Protocol>::Conn {
    let mut conn = protocol.open(&mut Vec::new());
    for (tag, id) in ids.iter().enumerate() {
        let request = Request { request_id: *id, keep, ..Request::default() };
        protocol.submit(&mut conn, &request, tag as u32, &mut Vec::new());
    }
    conn
}

/// Feeds the pieces one after another, as the engine does.
fn replies<'p>(
    protocol: &Rank,
    conn: &mut <Rank as Protocol>::Conn,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Result<Vec<Got>, Fault> {
    let mut got = Vec::new();
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            match protocol.receive(conn, rest, &mut Vec::new())? {
                Event::More => break,
                Event::Progress { consumed } => rest = &rest[consumed..],
                Event::Reply { tag, reply, consumed, reusable } => {
                    let Reply { header, payload } = reply;
                    assert!(reusable);
                    got.push((tag, header, payload.to_vec()));
                    rest = &rest[consumed..];
                }
                other => panic!("{other:?} in frames that come whole"),
            }
        }
    }
    Ok(got)
}

fn requests<'p>(
    reader: &mut RequestReader,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Result<Vec<RequestHeader>, FrameError> {
    let mut got = Vec::new();
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            match reader.receive(rest)? {
                Incoming::More => break,
                Incoming::Request { header, consumed } => {
                    got.push(header);
                    rest = &rest[consumed..];
                }
            }
        }
    }
    Ok(got)
}

#[test]
fn a_request_has_the_bytes_that_the_original_sends() {
    let protocol = Rank::default();
    let mut out = Vec::new();
    let mut conn = protocol.open(&mut out);
    let request = Request {
        request_id: 0x1112_1314_1516_1718,
        start_time_ns: 0x2122_2324_2526_2728,
        payload: b"abc".to_vec(),
        keep: false,
    };
    protocol.submit(&mut conn, &request, 5, &mut out);
    assert_eq!(out, REQUEST);
    assert_eq!(protocol.capacity(&conn), 0);
    let expected = RequestHeader {
        kind: 0,
        request_id: request.request_id,
        start_time_ns: request.start_time_ns,
        payload_bytes: 3,
    };
    let got = requests(&mut RequestReader::new(3), [REQUEST.as_slice()]).unwrap();
    assert_eq!(got, [expected]);
}

#[test]
fn a_reply_header_has_the_bytes_that_the_original_sends() {
    let bytes: Vec<u8> = (0..32).collect();
    let header = ResponseHeader::decode(bytes.first_chunk().unwrap());
    assert_eq!(header.kind, 0x0001_0203);
    assert_eq!(header.request_id, 0x0405_0607_0809_0a0b);
    assert_eq!(header.start_time_ns, 0x0c0d_0e0f_1011_1213);
    assert_eq!(header.processing_time_ns, 0x1415_1617_1819_1a1b);
    assert_eq!(header.payload_bytes, 0x1c1d_1e1f);
    assert_eq!(header.encode(), bytes.as_slice());
}

#[test]
fn a_request_cut_anywhere_is_the_same_request() {
    let twice = [REQUEST, REQUEST].concat();
    let expected = requests(&mut RequestReader::new(9), [twice.as_slice()]).unwrap();
    assert_eq!(expected.len(), 2);
    for cut in 0..=twice.len() {
        let (left, right) = twice.split_at(cut);
        let mut reader = RequestReader::new(9);
        assert_eq!(requests(&mut reader, [left, right]).unwrap(), expected, "cut at {cut}");
        assert!(reader.is_between_requests());
    }
    let mut reader = RequestReader::new(9);
    assert_eq!(requests(&mut reader, twice.chunks(1)).unwrap(), expected);
    assert_eq!(requests(&mut reader, [&REQUEST[..1]]).unwrap(), []);
    assert!(!reader.is_between_requests());
}

#[test]
fn a_reply_cut_anywhere_is_the_same_reply() {
    let protocol = Rank { depth: 2, ..Rank::default() };
    let (first, mut bytes) = response(1, b"hello, ranking");
    let (second, more) = response(2, b"");
    bytes.extend(more);
    for keep in [true, false] {
        let payload: &[u8] = if keep { b"hello, ranking" } else { b"" };
        let expected = vec![(0, first, payload.to_vec()), (1, second, Vec::new())];
        for cut in 0..=bytes.len() {
            let (left, right) = bytes.split_at(cut);
            let mut conn = asking(&protocol, &[1, 2], keep);
            let got = replies(&protocol, &mut conn, [left, right]).unwrap();
            assert_eq!(got, expected, "cut at {cut}");
            assert_eq!(protocol.capacity(&conn), 2);
        }
        let mut conn = asking(&protocol, &[1, 2], keep);
        assert_eq!(replies(&protocol, &mut conn, bytes.chunks(1)).unwrap(), expected);
    }
}

#[test]
fn replies_find_their_requests_in_any_order() {
    let protocol = Rank { depth: 3, ..Rank::default() };
    let mut conn = asking(&protocol, &[10, 20, 30], true);
    assert_eq!(protocol.capacity(&conn), 0);
    let bytes = [response(30, b"c").1, response(10, b"a").1, response(20, b"b").1].concat();
    let got = replies(&protocol, &mut conn, [bytes.as_slice()]).unwrap();
    let got: Vec<_> = got.iter().map(|(tag, h, p)| (*tag, h.request_id, p.as_slice())).collect();
    assert_eq!(got, [(2, 30, b"c".as_slice()), (0, 10, b"a"), (1, 20, b"b")]);
}

#[test]
fn a_refusal_is_a_reply_of_its_own_kind() {
    let protocol = Rank::default();
    let mut conn = asking(&protocol, &[4], true);
    let header = ResponseHeader { kind: KIND_REFUSED, request_id: 4, ..ResponseHeader::default() };
    let got = replies(&protocol, &mut conn, [header.encode().as_slice()]).unwrap();
    assert_eq!(got, [(0, header, Vec::new())]);
}

#[test]
fn what_is_no_reply_ends_the_connection() {
    let protocol = Rank { depth: 2, payload_bytes_max: 4 };
    for (ids, bytes) in [
        (&[1][..], response(2, b"a").1),
        (&[], response(1, b"a").1),
        (&[1], response(1, b"12345").1),
        (&[1], [response(1, b"a").1, response(1, b"a").1].concat()),
    ] {
        let mut conn = asking(&protocol, ids, false);
        let fault = replies(&protocol, &mut conn, [bytes.as_slice()]).unwrap_err();
        assert!(matches!(fault, Fault::Protocol(_)), "{fault:?}");
        assert_eq!(protocol.capacity(&conn), 0);
        assert!(replies(&protocol, &mut conn, [bytes.as_slice()]).is_err());
    }
}

#[test]
fn what_is_no_request_ends_the_connection() {
    let mut reader = RequestReader::new(2);
    let long = FrameError::PayloadTooLong { bytes: 3, most: 2 };
    assert_eq!(reader.receive(&REQUEST), Err(long));
    let mut huge = REQUEST;
    huge[20..24].fill(0xff);
    let long = FrameError::PayloadTooLong { bytes: u32::MAX, most: 64 };
    assert_eq!(RequestReader::new(64).receive(&huge), Err(long));
    let kind = RequestReader::new(64).receive(&[0, 0, 0, 9]);
    assert_eq!(kind, Err(FrameError::Kind(9)));
    assert_eq!(kind.unwrap_err().to_string(), "a rank request of kind 9; the only kind is 0");
}

#[test]
fn an_end_is_a_cut_only_inside_a_reply() {
    let protocol = Rank::default();
    let bytes = response(1, b"abc").1;
    for sent in 0..bytes.len() {
        let mut conn = asking(&protocol, &[1], false);
        assert_eq!(replies(&protocol, &mut conn, [&bytes[..sent]]).unwrap(), []);
        let began = sent > 0;
        assert_eq!(protocol.end(&mut conn).unwrap_err(), Fault::Closed { began }, "{sent} bytes");
    }
}

fn pieces<'b>(bytes: &'b [u8], cuts: &[prop::sample::Index]) -> Vec<&'b [u8]> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(&ends).map(|(start, end)| &bytes[start..*end]).collect()
}

proptest! {
    #[test]
    fn any_replies_in_any_order_and_pieces_arrive_whole(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..9),
        order in any::<prop::sample::Index>(),
        keep in any::<bool>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let ids: Vec<u64> = (0..payloads.len() as u64).map(|i| i * 77 + 5).collect();
        let protocol = Rank { depth: ids.len() as u32, ..Rank::default() };
        let mut conn = asking(&protocol, &ids, keep);
        let shift = order.index(ids.len());
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for i in (0..ids.len()).map(|i| (i + shift) % ids.len()) {
            let (header, frame) = response(ids[i], &payloads[i]);
            bytes.extend(frame);
            let payload = if keep { payloads[i].clone() } else { Vec::new() };
            expected.push((i as u32, header, payload));
        }
        let got = replies(&protocol, &mut conn, pieces(&bytes, &cuts)).unwrap();
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn no_bytes_make_either_side_panic_or_grow(
        bytes in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..2_000),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let protocol = Rank { depth: 4, payload_bytes_max: 512 };
        let mut conn = asking(&protocol, &[0, 1, 2, 3], true);
        let _ = replies(&protocol, &mut conn, pieces(&bytes, &cuts));
        let _ = protocol.end(&mut conn);
        let _ = requests(&mut RequestReader::new(512), pieces(&bytes, &cuts));
    }
}

/// The next request goes out when the last byte of a reply is there, and not while it arrives.
#[test]
fn a_connection_is_taken_until_the_last_byte_of_a_reply() {
    let protocol = Rank::default();
    let mut conn = asking(&protocol, &[7], false);
    let (_, bytes) = response(7, b"payload");
    let (half, rest) = bytes.split_at(bytes.len() - 3);
    assert!(replies(&protocol, &mut conn, [half]).unwrap().is_empty());
    assert_eq!(protocol.capacity(&conn), 0);
    assert_eq!(replies(&protocol, &mut conn, [rest]).unwrap().len(), 1);
    assert_eq!(protocol.capacity(&conn), 1);
}

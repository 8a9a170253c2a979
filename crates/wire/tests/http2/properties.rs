//! What must hold for every stream of bytes, well formed or not.

use plimsoll_core::rng::Rng;
use plimsoll_wire::http1::Keep;
use plimsoll_wire::http2::Http2;
use proptest::prelude::*;

use crate::memory::most_bytes;
use crate::server::*;
use crate::session::{KEEP_ALL, STREAM, Session, get, request};

/// How many requests are under way in each of these sessions.
const REQUESTS: u32 = 8;

/// A session with requests of all kinds under way.
fn session() -> Session {
    let mut session = Session::new(Http2::default());
    for tag in 0..REQUESTS {
        let keep = [Keep::default(), KEEP_ALL, STREAM][tag as usize % 3];
        let request = match tag % 4 {
            0 => request("HEAD", keep, b""),
            1 => request("POST", keep, &[b'y'; 30_000]),
            _ => get(keep),
        };
        session.submit(&request, tag);
    }
    session.out.clear();
    session
}

/// Frames of a server that answers in any order, mostly rightly.
fn stream(rng: &mut Rng) -> Vec<u8> {
    let mut server = Server::new(&[(3, 50), (1, 4096)]);
    for _ in 0..rng.below(40) {
        let never_begun = u64::from(rng.below(20) == 0);
        let id = 1 + 2 * rng.below(u64::from(REQUESTS) + never_begun) as u32;
        let length = [0, 1, 50, 2000][rng.below(4) as usize];
        let body = vec![b'b'; length];
        let end = rng.below(3) == 0;
        match rng.below(22) {
            0..6 => {
                let status = ["200", "200", "204", "404", "103"][rng.below(5) as usize];
                let value = rng.below(3).to_string();
                let fields = [(":status", status), ("x-a", &value), ("server", "some server")];
                if rng.below(4) > 0 {
                    server.head(id, &fields, end);
                } else {
                    let block = server.block(&fields);
                    let (one, other) = block.split_at(rng.below(block.len() as u64 + 1) as usize);
                    server.frame(HEADERS, u8::from(end), id, one);
                    server.frame(CONTINUATION, END_HEADERS, id, other);
                }
            }
            6..13 => {
                server.data(id, &body, end);
            }
            13..15 => {
                let padding = rng.below(4) as u8;
                let padded = [&[padding][..], &body, &vec![0; padding.into()]].concat();
                server.frame(DATA, PADDED | u8::from(end), id, &padded);
            }
            15 => {
                server.reset(id, rng.below(9) as u32);
            }
            16 => {
                server.window(id, 1 + rng.below(5000) as u32);
            }
            17 => {
                server.window(0, 1 + rng.below(50_000) as u32);
            }
            18 => {
                server.frame(PING, 0, 0, &[3; 8]);
            }
            19 => {
                server.settings(&[(4, rng.below(100_000) as u32)]);
            }
            20 => {
                server.frame(200, 1, id, &body);
            }
            _ if rng.below(4) == 0 => {
                server.goaway(id, 0);
            }
            _ => {}
        }
    }
    server.bytes
}

/// `bytes` in pieces of random length.
fn pieces<'a>(rng: &mut Rng, bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let bound = [2, 10, 100, 3000][rng.below(4) as usize];
    let mut rest = bytes;
    let mut made = Vec::new();
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rng.below(bound + 1).min(rest.len() as u64) as usize);
        made.push(piece);
        rest = behind;
    }
    made
}

/// Reads `bytes` whole, in pieces and byte by byte: the same must come of it, and the same be answered.
fn compare(rng: &mut Rng, bytes: &[u8]) -> Session {
    let mut whole = session();
    whole.feed(bytes);
    for cut in [pieces(rng, bytes), bytes.chunks(1).collect()] {
        let mut other = session();
        for piece in cut {
            other.feed(piece);
        }
        assert_eq!(other.ended, whole.ended, "{}", bytes.escape_ascii());
        assert_eq!(other.fault, whole.fault, "{}", bytes.escape_ascii());
        assert_eq!(other.out, whole.out, "{}", bytes.escape_ascii());
        if whole.fault.is_none() {
            assert_eq!(other.end(), session_end(bytes));
        }
    }
    whole
}

fn session_end(bytes: &[u8]) -> plimsoll_wire::Fault {
    let mut whole = session();
    whole.feed(bytes);
    whole.end()
}

/// No bytes make the codec take much more memory than they have themselves.
fn bounded(bytes: &[u8]) {
    let most = most_bytes(|| {
        let mut session = session();
        session.feed(bytes);
    });
    let allowed = 300_000 + 60 * bytes.len() as i64;
    assert!(most <= allowed, "{most} for {}", bytes.len());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn events_survive_any_cutting(seed: u64) {
        let mut rng = Rng::new(seed);
        let bytes = stream(&mut rng);
        compare(&mut rng, &bytes);
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        seed: u64,
    ) {
        let mut rng = Rng::new(seed);
        compare(&mut rng, &bytes);
        let behind = [&Server::new(&[]).bytes[..], &bytes].concat();
        compare(&mut rng, &behind);
        bounded(&behind);
    }

    #[test]
    fn arbitrary_frames_do_no_harm(
        made in prop::collection::vec(
            (0..12u8, any::<u8>(), 0..20u32, prop::collection::vec(any::<u8>(), 0..60)),
            0..40
        ),
        seed: u64,
    ) {
        let mut bytes = Server::new(&[]).bytes;
        for (kind, flags, id, payload) in made {
            bytes.extend(frame(kind, flags, id, &payload));
        }
        compare(&mut Rng::new(seed), &bytes);
        bounded(&bytes);
    }
}

/// Bytes flipped, removed and doubled in streams that were valid. The seed is fixed, so that a failure comes
/// again.
#[test]
fn mutated_streams_do_no_harm() {
    let mut rng = Rng::new(20_261_122);
    let (mut broken, mut given_up, mut replied) = (0, 0, 0);
    for _ in 0..4_000 {
        let mut bytes = stream(&mut rng);
        for _ in 0..rng.below(4) {
            let place = rng.below(bytes.len() as u64) as usize;
            match rng.below(4) {
                0 => bytes[place] ^= 1 << rng.below(8),
                1 => {
                    bytes.remove(place);
                }
                2 => bytes.insert(place, rng.next_u64() as u8),
                _ => bytes[place] = [0, 1, 4, 9, 0x80, 0xff][rng.below(6) as usize],
            }
        }
        let session = compare(&mut rng, &bytes);
        bounded(&bytes);
        broken += u32::from(session.fault.is_some());
        for ended in &session.ended {
            match ended {
                crate::session::Ended::Reply(_) => replied += 1,
                crate::session::Ended::GivenUp { .. } => given_up += 1,
            }
        }
    }
    // A loop that never gets past the first frame would prove nothing.
    assert!(broken > 500 && given_up > 500 && replied > 500, "{broken} {given_up} {replied}");
}

/// Fields that name a large entry of the table again and again: short on the wire, long when written out.
#[test]
fn a_block_that_grows_when_it_is_read_is_refused_before_it_has_grown() {
    let mut server = Server::new(&[]);
    let large = "v".repeat(3900);
    server.head(1, &[(":status", "200"), ("accept", &large)], false);
    let mut block = vec![0x88];
    block.extend([0xbe; 16_000]);
    server.frame(HEADERS, END_HEADERS, 3, &block);
    let most = most_bytes(|| {
        let mut session = session();
        session.feed(&server.bytes);
        assert_eq!((session.fault, session.ended.len()), (None, 1));
    });
    // 16,000 times 3,900 bytes are 62 MB.
    assert!(most < 700_000, "{most}");
}

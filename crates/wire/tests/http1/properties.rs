//! What must hold for every stream of bytes, well formed or not.

use plimsoll_core::rng::Rng;
use plimsoll_wire::Fault;
use plimsoll_wire::http1::{Http1, Keep, Limits};
use proptest::prelude::*;

use crate::reference::{self, End};
use crate::session::{KEEP_ALL, Log, Seen, converse, drip, get, head};
use crate::{render, session};

fn requests(to_head: &[bool], keep: Keep) -> Vec<plimsoll_wire::http1::Request> {
    to_head.iter().map(|&is_head| if is_head { head(keep) } else { get(keep) }).collect()
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

/// How much of the body of a reply that is not 2xx is kept unasked.
const REFUSAL_BYTES: usize = 512;

/// `expected`, as it must look when only `keep` was asked for.
fn as_kept(expected: &[Seen], keep: Keep) -> Vec<Seen> {
    let mut expected = expected.to_vec();
    for reply in &mut expected {
        let refused = !(200..300).contains(&reply.status);
        if !keep.head && !refused {
            reply.head.clear();
        }
        if !keep.body && refused {
            reply.truncated |= reply.body.len() > REFUSAL_BYTES;
            reply.body.truncate(REFUSAL_BYTES);
        } else if !keep.body && !keep.stream {
            reply.body.clear();
        }
    }
    expected
}

/// Whether the codec's log is what the reference read in the same bytes.
fn agrees(log: &Log, read: &(Vec<Seen>, End)) -> bool {
    let end = match (read.1, log.fault) {
        (End::Clean, fault) => fault.is_none(),
        (End::Protocol, fault) => matches!(fault, Some(Fault::Protocol(_) | Fault::NotHttp1)),
        (End::Closed { began }, fault) => fault == Some(Fault::Closed { began }),
        (End::InsideLine, fault) => {
            matches!(
                fault,
                Some(Fault::Protocol(_) | Fault::NotHttp1 | Fault::Closed { began: true })
            )
        }
    };
    end && log.replies == read.0
}

/// Reads `bytes` whole and in pieces, with the codec and with the reference.
fn compare(rng: &mut Rng, bytes: &[u8], to_head: &[bool]) {
    let codec = Http1::default();
    let read = reference::read(bytes, to_head, &Limits::default());
    let asked = requests(to_head, KEEP_ALL);
    let shown = || bytes.escape_ascii().to_string();
    for cut in [vec![bytes], pieces(rng, bytes)] {
        let log = converse(&codec, &asked, &cut);
        assert!(agrees(&log, &read), "{}\n{log:?}\n{read:?}", shown());
    }
    let bare = converse(&codec, &requests(to_head, Keep::default()), &pieces(rng, bytes));
    assert_eq!(bare.replies, as_kept(&read.0, Keep::default()), "{}", shown());
    compare_with_httparse(bytes, &read);
}

/// Where httparse, which is stricter, accepts a head, it must be the same head.
fn compare_with_httparse(bytes: &[u8], (replies, _): &(Vec<Seen>, End)) {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let complete = response.parse(bytes).is_ok_and(|status| status.is_complete());
    let (Some(first), Some(status)) = (replies.first(), response.code) else { return };
    if !complete || status < 200 {
        return;
    }
    assert_eq!(first.status, status);
    let reply = session::reply(first);
    let ours: Vec<_> = reply.headers().collect();
    let theirs: Vec<_> =
        response.headers.iter().map(|field| (field.name.as_bytes(), field.value)).collect();
    assert_eq!(ours, theirs, "{}", bytes.escape_ascii());
}

proptest! {
    // What fails once becomes a case by hand, so no file of failures is kept.
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn replies_survive_any_cutting(
        seed: u64,
        keep_head: bool,
        keep_body: bool,
        stream: bool,
    ) {
        let mut rng = Rng::new(seed);
        let made = render::stream(&mut rng);
        let keep = Keep { head: keep_head, body: keep_body, stream };
        let asked = requests(&made.requests, keep);
        let expected = as_kept(&made.expected, keep);
        let by_bytes = drip(&made.bytes);
        for cut in [vec![&made.bytes[..]], pieces(&mut rng, &made.bytes), by_bytes] {
            let log = converse(&Http1::default(), &asked, &cut);
            prop_assert_eq!(&log.replies, &expected);
            let clean = matches!(log.fault, None | Some(Fault::Closed { began: false }));
            prop_assert!(clean, "{:?}", log.fault);
        }
    }

    #[test]
    fn arbitrary_bytes_are_read_as_the_reference_reads_them(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        seed: u64,
    ) {
        compare(&mut Rng::new(seed), &bytes, &[false]);
        let after = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &bytes[..]].concat();
        compare(&mut Rng::new(seed), &after, &[false, true]);
    }

    #[test]
    fn words_of_the_protocol_in_any_order_are_read_as_the_reference_reads_them(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..30),
        seed: u64,
    ) {
        let bytes = words.concat().into_bytes();
        compare(&mut Rng::new(seed), &bytes, &[false, false, true]);
        let after = format!("HTTP/1.1 200 OK\r\n{}", words.concat()).into_bytes();
        compare(&mut Rng::new(seed), &after, &[false, false, true]);
    }
}

const WORDS: &[&str] = &[
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.0 404 Not Found\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 204 No\r\n",
    "Content-Length",
    "Content-Length: 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Content-Encoding: gzip\r\n",
    "\r\n",
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    ":",
    ": ",
    " ",
    "\t",
    ",",
    ";",
    "0\r\n",
    "3\r\nabc\r\n",
    "abc",
    "chunked",
    "identity",
    "gzip",
    "0",
    "3",
    "X: y\r\n",
    "\0",
];

/// Bytes flipped, removed, doubled, moved and cut in streams that were valid. The seed is fixed, so
/// that a failure comes again.
#[test]
fn mutated_streams_are_read_as_the_reference_reads_them() {
    let mut rng = Rng::new(20_261_121);
    let mut differing_ends = [0u32; 4];
    for _ in 0..15_000 {
        let made = render::stream(&mut rng);
        let mut bytes = made.bytes;
        bytes.truncate(3000);
        for _ in 0..1 + rng.below(4) {
            mutate(&mut rng, &mut bytes);
        }
        compare(&mut rng, &bytes, &made.requests);
        let end = reference::read(&bytes, &made.requests, &Limits::default()).1;
        differing_ends[match end {
            End::Clean => 0,
            End::Protocol => 1,
            End::Closed { .. } => 2,
            End::InsideLine => 3,
        }] += 1;
    }
    // A loop that never gets past the status line would prove nothing.
    assert!(differing_ends.iter().all(|&count| count > 200), "{differing_ends:?}");
}

fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    let mut place = |bytes: &[u8]| rng.below(bytes.len() as u64) as usize;
    let (one, other) = (place(bytes), place(bytes));
    let (from, to) = (one.min(other), (one.max(other)).min(one.min(other) + 40));
    const TELLING: &[u8] = b"\r\n\r\n\0 \t:;,0159aAfFxH-+\x7f\x80\xff";
    let telling = TELLING[rng.below(TELLING.len() as u64) as usize];
    match rng.below(7) {
        0 => bytes[one] ^= 1 << rng.below(8),
        1 => bytes[one] = telling,
        2 => bytes.insert(one, telling),
        3 => drop(bytes.drain(from..to)),
        4 => {
            let copy = bytes[from..to].to_vec();
            bytes.splice(other..other, copy);
        }
        5 => bytes.swap(one, other),
        _ => bytes.truncate(one.max(bytes.len() / 2)),
    }
}

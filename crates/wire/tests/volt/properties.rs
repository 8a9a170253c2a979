//! What must hold for every stream of bytes, well formed or not.

use plimsoll_core::rng::Rng;
use plimsoll_wire::volt::{
    ArrayView, Call, FRAME_HEAD_BYTES, LoginCall, LoginReply, Response, Ring, TableView, Topology,
    Value, frame_length,
};
use proptest::prelude::*;

use crate::made::{self, Parts};
use crate::memory::most_bytes;
use crate::session::{Seen, Session, handles, ping, welcome};

/// How many calls are under way in each of these sessions, and how many of them were given up.
const CALLS: u32 = 8;
const GIVEN_UP: u32 = 2;

/// A session whose login is not answered, with calls under way.
fn session() -> (Session, Vec<i64>) {
    let mut session = Session::new(CALLS);
    for tag in 0..CALLS {
        session.submit(&ping(), tag);
    }
    for tag in 0..GIVEN_UP {
        // The session goes on as far as the codec is concerned.
        session.cancel(tag);
    }
    let handles = handles(&session.out);
    session.out.clear();
    (session, handles)
}

fn feed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Seen>, plimsoll_wire::Fault) {
    let (mut session, _) = session();
    for piece in pieces {
        session.feed(piece);
    }
    let end = session.end();
    (session.seen, end)
}

/// What a server says to all of these calls, in an order of its own.
fn script(parts: &[Parts], rng: &mut Rng) -> Vec<u8> {
    let (_, mut handles) = session();
    rng.shuffle(&mut handles);
    let answers = parts.iter().zip(handles).map(|(parts, handle)| parts.bytes(handle));
    [welcome()].into_iter().chain(answers).collect::<Vec<_>>().concat()
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

/// Reads `bytes` whole, in pieces and byte by byte: the same must come of it.
fn compare(rng: &mut Rng, bytes: &[u8]) -> Vec<Seen> {
    let whole = feed([bytes]);
    assert_eq!(feed(pieces(rng, bytes)), whole, "{}", bytes.escape_ascii());
    assert_eq!(feed(bytes.chunks(1)), whole, "{}", bytes.escape_ascii());
    whole.0
}

fn look_at_array(array: ArrayView<'_>) -> usize {
    array.iter().map_while(Result::ok).map(look_at).sum::<usize>() + array.len()
}

fn look_at_table(table: TableView<'_>) -> usize {
    assert_eq!(table.columns().count(), table.column_count());
    let rows = table.rows().map_while(Result::ok).flat_map(|row| row.values());
    rows.map_while(Result::ok).map(look_at).sum::<usize>() + usize::from(table.long().is_some())
}

/// Looks at everything there is in a value.
fn look_at(value: Value<'_>) -> usize {
    match value {
        Value::Table(table) => look_at_table(table),
        Value::Array(array) => look_at_array(array),
        Value::String(text) => text.len(),
        other => usize::from(other.long().is_some()),
    }
}

/// Reads bytes as everything that they might be.
fn read_all(bytes: &[u8]) -> usize {
    let mut seen = 0;
    if let Ok(Some(length)) = frame_length(bytes) {
        assert!(length > FRAME_HEAD_BYTES && length <= bytes.len());
        seen += length;
    }
    if let Ok(call) = Call::read(bytes) {
        seen += call.params().map_while(Result::ok).map(|(_, value)| look_at(value)).sum::<usize>();
    }
    if let Ok(response) = Response::read(bytes) {
        seen += response.tables.map_while(Result::ok).map(look_at_table).sum::<usize>();
        seen += usize::from(Topology::read(&response).is_ok() || response.long().is_some());
    }
    seen += TableView::read(bytes).map_or(0, look_at_table);
    seen += usize::from(LoginCall::read(bytes).is_ok_and(|call| call.is_digest_whole()));
    seen += usize::from(LoginReply::read(bytes).is_ok());
    seen + Ring::read(bytes).map_or(0, |ring| ring.partition_of_long(1) as usize & 1)
}

/// Changes some of the bytes, removes some, doubles some.
fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..rng.below(4) {
        if bytes.is_empty() {
            return;
        }
        let place = rng.below(bytes.len() as u64) as usize;
        match rng.below(4) {
            0 => bytes[place] ^= 1 << rng.below(8),
            1 => {
                bytes.remove(place);
            }
            2 => bytes.insert(place, rng.next_u64() as u8),
            _ => bytes[place] = [0, 1, 6, 9, 0x7f, 0x80, 0x9d, 0xff][rng.below(8) as usize],
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn events_survive_any_cutting(
        parts in prop::collection::vec(made::response(), CALLS as usize),
        seed: u64,
    ) {
        let mut rng = Rng::new(seed);
        let bytes = script(&parts, &mut rng);
        let seen = compare(&mut rng, &bytes);
        prop_assert_eq!(seen.len() as u32, CALLS - GIVEN_UP);
        let is_reply = |seen: &Seen| matches!(seen, Seen::Reply { .. });
        prop_assert!(seen.iter().all(is_reply));
    }

    #[test]
    fn every_single_cut_gives_the_same(
        parts in prop::collection::vec(made::response(), 2..3),
        seed: u64,
    ) {
        let bytes = script(&parts, &mut Rng::new(seed));
        let whole = feed([&bytes[..]]);
        for cut in 0..bytes.len() {
            let (one, other) = bytes.split_at(cut);
            prop_assert_eq!(&feed([one, other]), &whole);
        }
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        seed: u64,
    ) {
        let mut rng = Rng::new(seed);
        read_all(&bytes);
        compare(&mut rng, &bytes);
        // A length that is possible in front, and a login that was answered.
        let framed = [&welcome()[..], &(bytes.len() as u32).to_be_bytes(), &bytes].concat();
        compare(&mut rng, &framed);
        let most = most_bytes(|| {
            feed([&framed[..]]);
        });
        prop_assert!(most <= 300_000 + 60 * bytes.len() as i64, "{}", most);
    }

    #[test]
    fn mutated_messages_do_no_harm(
        parts in prop::collection::vec(made::response(), 4),
        form in made::form(),
        params in prop::collection::vec(made::param(), 0..4),
        seed: u64,
    ) {
        let mut rng = Rng::new(seed);
        let mut bytes = script(&parts, &mut rng);
        mutate(&mut rng, &mut bytes);
        compare(&mut rng, &bytes);
        let call = made::call("P", &form, &params, 1);
        for message in [&parts[0].bytes(1), &call] {
            let mut body = message[FRAME_HEAD_BYTES..].to_vec();
            mutate(&mut rng, &mut body);
            read_all(&body);
        }
        for table in parts.iter().flat_map(|parts| &parts.tables) {
            let mut bytes = table.bytes[4..].to_vec();
            mutate(&mut rng, &mut bytes);
            read_all(&bytes);
        }
    }
}

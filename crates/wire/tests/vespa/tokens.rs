//! Progress tokens, byte for byte as the real handler gives them.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use plimsoll_core::rng::Rng;
use plimsoll_wire::vespa::{
    Bucket, MAX_PENDING, MAX_TOKEN_BYTES, ProgressError, ProgressToken, Step,
};
use proptest::prelude::*;

const AT_35: &str = "AAAACAAAAAAAAAAjAAAAAAAAACMAAAAAAAABAAAAAAA=";
const AT_34: &str = "AAAACAAAAAAAAAAiAAAAAAAAACIAAAAAAAABAAAAAAA=";
const MID_BUCKET: &str = "AAAACAAAAAAAAAAkAAAAAAAAACMAAAAAAAABAAAAAAEgAAAAAAAAxAAAAAAAAAAA";

/// The bytes of a token of these fields.
fn bytes(bits: u32, numbers: [u64; 3], pending: &[(u64, u64)]) -> Vec<u8> {
    let mut bytes = bits.to_be_bytes().to_vec();
    numbers.iter().for_each(|number| bytes.extend(number.to_be_bytes()));
    bytes.extend((pending.len() as u32).to_be_bytes());
    for (bucket, progress) in pending {
        bytes.extend(bucket.to_be_bytes());
        bytes.extend(progress.to_be_bytes());
    }
    bytes
}

fn decode(bytes: &[u8]) -> Result<ProgressToken, ProgressError> {
    ProgressToken::decode(URL_SAFE.encode(bytes))
}

/// Visits superbuckets one by one until none is left; gives their positions.
fn visit(token: &mut ProgressToken, limit: usize) -> Vec<u64> {
    let mut positions = Vec::new();
    while positions.len() < limit {
        let Some(step) = token.next_bucket() else { break };
        assert!(token.finish_bucket(step.bucket));
        positions.push(step.bucket.position());
    }
    positions
}

#[test]
fn tokens_seen_on_the_real_handler() {
    let token = ProgressToken::decode(AT_35).unwrap();
    assert_eq!((token.distribution_bits(), token.cursor()), (8, 35));
    assert_eq!((token.finished(), token.total(), token.pending().count()), (35, 256, 0));
    assert_eq!(token.encode(), AT_35);
    assert_eq!(ProgressToken::decode(AT_34).unwrap().percent_finished(), 13.28125);

    let token = ProgressToken::decode(MID_BUCKET).unwrap();
    let bucket = Bucket::nth(35, 8);
    assert_eq!(token.pending().collect::<Vec<_>>(), [Step { bucket, done: None }]);
    assert_eq!((token.cursor(), token.finished()), (36, 35));
    assert_eq!(token.percent_finished(), 13.671875);
    assert_eq!(token.encode(), MID_BUCKET);

    // What is pending comes first, and then the visit goes on.
    let mut token = token.resume(1, 0).unwrap();
    assert_eq!(visit(&mut token, 3), [35, 36, 37]);
}

#[test]
fn a_visit_gives_those_tokens() {
    let mut token = ProgressToken::start(8, 1, 0).unwrap();
    assert_eq!((token.percent_finished(), token.is_done()), (0.0, false));
    assert_eq!(visit(&mut token, 34), (0..34).collect::<Vec<_>>());
    assert_eq!(token.encode(), AT_34);
    assert_eq!(visit(&mut token, 1), [34]);
    assert_eq!(token.encode(), AT_35);
    // One that is out is written as pending: nothing of it is known to have arrived.
    let step = token.next_bucket().unwrap();
    assert_eq!(token.encode(), MID_BUCKET);
    assert!(token.finish_bucket(step.bucket));
    assert!(!token.finish_bucket(step.bucket));
    assert_eq!(visit(&mut token, 1000).len(), 220);
    assert!(token.is_done());
    assert_eq!((token.percent_finished(), token.cursor()), (100.0, 256));
    let done = ProgressToken::decode(token.encode()).unwrap().resume(1, 0).unwrap();
    assert!(done.is_done());
}

#[test]
fn lenient_as_javas_decoders() {
    let token = ProgressToken::decode(AT_35).unwrap();
    assert_eq!(ProgressToken::decode(AT_35.trim_end_matches('=')), Ok(token));
    let raw = bytes(8, [36, 35, 256], &[(0x2000_0000_0000_00c4, 0xfbff_effb_ffef_fbff)]);
    let url = ProgressToken::decode(URL_SAFE.encode(&raw)).unwrap();
    let old = STANDARD.encode(&raw);
    assert!(old.contains(['+', '/']));
    assert_eq!(ProgressToken::decode(&old), Ok(url.clone()));
    let (first, second) = old.split_at(30);
    assert_eq!(ProgressToken::decode(format!("{first}\r\n{second}")), Ok(url.clone()));
    // Progress is kept bit for bit, sensible or not.
    assert_eq!(url.encode(), URL_SAFE.encode(&raw));
}

#[test]
fn what_is_no_token() {
    let message = |text: &str| ProgressToken::decode(text).unwrap_err().to_string();
    assert_eq!(message("zzz"), "Failed parsing 'zzz': BufferUnderflowException");
    assert_eq!(message(""), "Failed parsing '': BufferUnderflowException");
    assert!(message("a").contains("not base64"));
    assert!(message("=A==").contains("not base64"));
    let wrong = [
        (bytes(0, [0, 0, 1], &[]), "0 distribution bits"),
        (bytes(59, [0, 0, 1], &[]), "59 distribution bits"),
        (bytes(8, [257, 0, 256], &[]), "cursor 257"),
        (bytes(8, [0, 257, 256], &[]), "finished 257"),
        (bytes(8, [0, 0, u64::MAX], &[]), "total"),
        (bytes(8, [1, 0, 256], &[(0, 0)]), "no bucket is 0x0"),
        (bytes(8, [2, 0, 256], &[(1 << 61, 0), (1 << 61, 0)]), "pending twice"),
        ([bytes(8, [0, 0, 256], &[]), vec![0]].concat(), "behind the last bucket"),
        (bytes(8, [1, 0, 256], &[(1 << 61, 0)])[..47].to_vec(), "BufferUnderflow"),
    ];
    for (bytes, part) in wrong {
        let error = decode(&bytes).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    // The count alone must not make room for what is not there.
    let mut claim = bytes(8, [0, 0, 256], &[]);
    claim[28..].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(decode(&claim).unwrap_err().to_string().contains("pending buckets"));
    let many: Vec<_> = (0..=MAX_PENDING as u64).map(|n| (Bucket::nth(n, 16).raw(), 0)).collect();
    let most = bytes(16, [9000, 0, 65_536], &many[1..]);
    assert_eq!(decode(&most).unwrap().pending().count(), MAX_PENDING);
    assert!(URL_SAFE.encode(&most).len() < MAX_TOKEN_BYTES);
    assert!(decode(&bytes(16, [9000, 0, 65_536], &many)).is_err());
    let long = "A".repeat(MAX_TOKEN_BYTES + 1);
    assert!(message(&long).contains("more than a token"));
    assert!(message(&long).len() < 300);
}

#[test]
fn slices_that_do_not_exist_and_tokens_of_other_visits() {
    let start = |bits, slices, slice| {
        ProgressToken::start(bits, slices, slice).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(start(8, 2, 2), "sliceId must be in [0, 2), but was 2");
    assert_eq!(start(8, 0, 0), "slices must be positive, but was 0");
    assert_eq!(start(0, 1, 0), "distribution bits must be from 1 to 32, but were 0");
    assert_eq!(start(33, 1, 0), "distribution bits must be from 1 to 32, but were 33");
    // A visit of a number in Vespa: one bucket in all, and it is pending.
    let explicit = bytes(8, [0, 0, 1], &[((32 << 58) | 7, 0)]);
    let explicit = decode(&explicit).unwrap();
    assert_eq!(explicit.percent_finished(), 0.0);
    assert_eq!(explicit.resume(1, 0), Err(ProgressError::Inconsistent));
    // More pending than were ever given out.
    let odd = decode(&bytes(8, [0, 0, 256], &[(1 << 61, 0)])).unwrap();
    assert_eq!(odd.resume(1, 0), Err(ProgressError::Inconsistent));
}

#[test]
fn a_slice_passes_over_the_others() {
    let fields = |token: &ProgressToken| (token.cursor(), token.finished());
    let mut first = ProgressToken::start(8, 3, 0).unwrap();
    assert_eq!(fields(&first), (0, 0));
    assert_eq!(visit(&mut first, 2), [0, 3]);
    // Superbuckets up to the next own one are counted, so percentages are of the whole space.
    assert_eq!(fields(&first), (6, 6));
    let last = ProgressToken::start(8, 3, 2).unwrap();
    assert_eq!(fields(&last), (2, 2));
    assert_eq!(last.percent_finished(), 100.0 * 2.0 / 256.0);
    // More slices than superbuckets leave empty ones.
    let mut none = ProgressToken::start(2, 9, 4).unwrap();
    assert!(none.is_done() && none.next_bucket().is_none());
    assert_eq!((fields(&none), none.percent_finished()), ((4, 4), 100.0));
    let mut huge = ProgressToken::start(2, u64::MAX, 3).unwrap();
    assert_eq!(visit(&mut huge, 9), [3]);
    assert!(huge.is_done());
}

#[test]
fn pinned_visits_have_one_superbucket() {
    let location = 7;
    for slices in [1, 3, 300] {
        let mut visited = Vec::new();
        for slice in 0..slices {
            let mut token = ProgressToken::start(8, slices, slice).unwrap();
            token.pin(location);
            visited.extend(visit(&mut token, 999));
            assert!(token.is_done());
            assert_eq!((token.cursor(), token.finished()), (256, 256));
        }
        // Each document once, whatever the slices: 7 lies in superbucket 224.
        assert_eq!(visited, [224]);
    }
}

#[test]
fn fractions_of_a_superbucket() {
    let fraction = |bits: u8, location| {
        let progress = Bucket::of_location(location, bits).raw();
        let token = decode(&bytes(1, [1, 0, 2], &[(Bucket::nth(0, 1).raw(), progress)]));
        token.unwrap().percent_finished() / 50.0
    };
    // Split once, the half with the bit unset comes first.
    assert_eq!((fraction(2, 0b00), fraction(2, 0b10)), (0.5, 1.0));
    assert_eq!((fraction(3, 0b000), fraction(3, 0b100)), (0.25, 0.5));
    assert_eq!((fraction(3, 0b010), fraction(3, 0b110)), (0.75, 1.0));
    assert_eq!(fraction(1, 0), 1.0);
    // Progress of another bucket counts for nothing.
    assert_eq!(fraction(3, 0b001), 0.0);
    assert_eq!(fraction(58, 0), 2f64.powi(-57));
}

#[test]
fn what_is_left_of_a_superbucket() {
    let bucket = Bucket::nth(1, 1);
    let keys = |done| Step { bucket, done }.keys();
    assert_eq!(keys(None), 1 << 63..=u64::MAX);
    assert_eq!(keys(Some(Bucket::nth(0b10, 2))), 0b11 << 62..=u64::MAX);
    assert!(keys(Some(Bucket::nth(0b11, 2))).is_empty());
    assert_eq!(keys(Some(Bucket::nth(0, 2))), 1 << 63..=u64::MAX);
    // Bits above the location's are unknown here; that part is visited again.
    let deep = Bucket::nth((0b10 << 56) | 5, 58);
    assert_eq!(keys(Some(deep)), 1 << 63..=u64::MAX);
}

proptest! {
    #[test]
    fn slices_share_the_space(bits in 1u8..=10, slices in 1u64..40) {
        let mut all: Vec<u64> = Vec::new();
        for slice in 0..slices {
            let mut token = ProgressToken::start(bits, slices, slice).unwrap();
            let own = visit(&mut token, usize::MAX);
            prop_assert!(own.iter().all(|n| n % slices == slice));
            prop_assert!(token.is_done());
            prop_assert_eq!(token.percent_finished(), 100.0);
            all.extend(own);
        }
        all.sort_unstable();
        prop_assert_eq!(all, (0..1 << bits).collect::<Vec<u64>>());
    }

    /// Stopped anywhere, with anything out, and resumed from the text: nothing is missed, and
    /// only what was out comes twice.
    #[test]
    fn resumed_visits_miss_nothing(
        bits in 1u8..=7,
        slices in 1u64..5,
        seed: u64,
    ) {
        let mut rng = Rng::new(seed);
        let slice = rng.below(slices);
        let mut token = ProgressToken::start(bits, slices, slice).unwrap();
        let mut out: Vec<Step> = Vec::new();
        let mut finished: Vec<u64> = Vec::new();
        let mut percent = 0.0;
        for _ in 0..2000 {
            match rng.below(5) {
                0 => {
                    out.clear();
                    token = ProgressToken::decode(token.encode()).unwrap();
                    token = token.resume(slices, slice).unwrap();
                }
                1 | 2 => out.extend(token.next_bucket()),
                _ if out.is_empty() => {}
                _ => {
                    let step = out.swap_remove(rng.below(out.len() as u64) as usize);
                    prop_assert!(token.finish_bucket(step.bucket));
                    finished.push(step.bucket.position());
                }
            }
            prop_assert!(token.percent_finished() >= percent);
            percent = token.percent_finished();
            prop_assert_eq!(token.is_done(), percent == 100.0);
        }
        prop_assert!(token.is_done());
        finished.sort_unstable();
        let own: Vec<u64> = (0..1 << bits).filter(|n| n % slices == slice).collect();
        prop_assert_eq!(finished, own);
    }

    #[test]
    fn any_bytes_are_a_token_or_an_error(bytes: Vec<u8>) {
        let _ = ProgressToken::decode(&bytes);
        if let Ok(token) = decode(&bytes) {
            prop_assert_eq!(decode(&URL_SAFE.decode(token.encode()).unwrap()), Ok(token));
        }
    }

    #[test]
    fn sensible_fields_come_back_and_end(
        bits in 1u32..=10,
        cursor in 0u64..1100,
        buckets in prop::collection::vec((any::<u64>(), any::<u64>()), 0..5),
    ) {
        let raw = bytes(bits, [cursor, 0, 1 << bits], &buckets);
        if let Ok(token) = decode(&raw) {
            prop_assert_eq!(&ProgressToken::decode(token.encode()).unwrap(), &token);
            let percent = token.percent_finished();
            prop_assert!((0.0..=600.0).contains(&percent), "{}", percent);
            if let Ok(mut token) = token.resume(3, 1) {
                visit(&mut token, usize::MAX);
                prop_assert!(token.is_done());
            }
        }
    }
}

#[test]
fn bytes_changed_at_random_never_break_the_reader() {
    let mut rng = Rng::new(11);
    let seed = bytes(8, [36, 35, 256], &[(0x2000_0000_0000_00c4, 0x2400_0000_0000_00c4)]);
    for _ in 0..20_000 {
        let mut bytes = seed.clone();
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.below(256) as u8;
        }
        let Ok(token) = decode(&bytes) else { continue };
        assert_eq!(ProgressToken::decode(token.encode()), Ok(token.clone()));
        assert!(token.percent_finished() >= 0.0);
        // Steps are bounded by hand: a changed token may have 2^58 superbuckets.
        if let Ok(mut token) = token.resume(1 + rng.below(9), 0) {
            visit(&mut token, 50);
        }
    }
}

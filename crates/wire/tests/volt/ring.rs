//! The ring that deals out keys to partitions.

use plimsoll_wire::volt::Ring;
use proptest::prelude::*;

use crate::session::hex;

/// A ring with these tokens and partitions.
fn ring(tokens: &[(i32, i32)]) -> Vec<u8> {
    let mut bytes = (tokens.len() as i32).to_be_bytes().to_vec();
    for (token, partition) in tokens {
        bytes.extend(token.to_be_bytes());
        bytes.extend(partition.to_be_bytes());
    }
    bytes
}

#[test]
fn an_even_ring_has_the_tokens_of_voltdb() {
    for partitions in [1, 2, 3, 8] {
        let ring = Ring::even(partitions);
        let bytes = ring.to_bytes();
        assert_eq!(bytes.len(), 4 + 8 * 16_384);
        assert_eq!(bytes[..16], hex("00004000 80000000 00000000 80040000"));
        assert_eq!(Ring::read(&bytes), Ok(ring.clone()));
        assert_eq!(ring.tokens().count(), 16_384);
        let mut calls = vec![0; partitions as usize];
        for key in 0..30_000 {
            calls[ring.partition_of_long(key) as usize] += 1;
        }
        let fair = 30_000 / partitions as i32;
        assert!(calls.iter().all(|calls| (calls - fair).abs() < fair / 10), "{calls:?}");
        let keys = ring.keys();
        assert_eq!(keys.len(), partitions as usize);
        for (place, (partition, key)) in keys.into_iter().enumerate() {
            assert_eq!((partition, ring.partition_of_long(key.into())), (place as i32, partition));
        }
    }
    assert_eq!(Ring::even(0), Ring::even(1));
}

#[test]
fn keys_are_hashed_by_their_value() {
    let even = Ring::even(7);
    // A number is hashed as its eight bytes, the least first, whatever its width was.
    for key in [0, 1, -1, 2_125_550_001, i64::MAX] {
        assert_eq!(even.partition_of_long(key), even.partition_of_bytes(&key.to_le_bytes()));
    }
    assert_eq!(even.partition_of_str("hello"), even.partition_of_bytes(b"hello"));
    // The hash of `hello` is cbd8a7b341bd9b02...: its first half, as a number with a sign, is -874,993,741.
    let split = |token| Ring::read(&ring(&[(i32::MIN, 4), (token, 5)])).unwrap();
    assert_eq!(split(-874_993_741).partition_of_str("hello"), 5);
    assert_eq!(split(-874_993_740).partition_of_str("hello"), 4);
    // Null belongs to partition 0, wherever its bits would be.
    let nowhere = Ring::read(&ring(&[(i32::MIN, 3)])).unwrap();
    assert_eq!((nowhere.partition_of_long(i64::MIN), nowhere.partition_of_long(5)), (0, 3));
}

#[test]
fn wrong_rings_are_refused() {
    for bytes in [
        vec![],
        hex("00000000"),
        hex("ffffffff"),
        hex("00000001 80000000"),
        hex("7fffffff 80000000 00000000"),
        ring(&[(0, 0)]),
        ring(&[(i32::MIN, 0), (5, 1), (5, 0)]),
        ring(&[(i32::MIN, 0), (6, 1), (5, 0)]),
    ] {
        assert!(Ring::read(&bytes).is_err(), "{bytes:?}");
    }
}

proptest! {
    /// The partition is that of the largest token that is not above the hash, however the tokens lie.
    #[test]
    fn any_ring_deals_as_its_tokens_say(
        tokens in prop::collection::btree_map(any::<i32>(), 0..20, 0..40),
        evenly in prop::option::of(0..12u32),
        keys in prop::collection::vec(any::<i64>(), 1..50),
    ) {
        let mut tokens = tokens;
        if let Some(bits) = evenly {
            let step = (1i64 << 32) >> bits;
            let token = |index: i64| (i64::from(i32::MIN) + index * step) as i32;
            tokens = (0..1 << bits).map(|index| (token(index), (index % 5) as i32)).collect();
        }
        tokens.insert(i32::MIN, 9);
        let tokens: Vec<_> = tokens.into_iter().collect();
        let made = Ring::read(&ring(&tokens)).unwrap();
        prop_assert_eq!(made.to_bytes(), ring(&tokens));
        prop_assert!(made.tokens().eq(tokens.iter().copied()));
        // A ring of one partition for each token tells which token was taken.
        let numbered: Vec<_> = (0..).zip(&tokens).map(|(index, (token, _))| (*token, index)).collect();
        let numbered = Ring::read(&ring(&numbered)).unwrap();
        for key in keys {
            let index = numbered.partition_of_long(key) as usize;
            prop_assert_eq!(made.partition_of_long(key), if key == i64::MIN { 0 } else { tokens[index].1 });
        }
    }
}

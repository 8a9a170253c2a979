//! Shard that a document is on: Elasticsearch's own rule, so that both put it on the same one.

use murmurhash32::murmurhash3_with_seed;

/// The shard of a document, by its routing value, which is its id unless the request says otherwise.
pub(crate) fn shard(routing: &str, shards: usize) -> usize {
    if shards <= 1 {
        return 0;
    }
    // The hash is over UTF-16, and over a number of slots that splitting the index keeps.
    let mut bytes = Vec::with_capacity(routing.len() * 2);
    bytes.extend(routing.encode_utf16().flat_map(u16::to_le_bytes));
    let hash = i64::from(murmurhash3_with_seed::<0>(&bytes) as i32);
    let slots = slots(shards) as i64;
    (hash.rem_euclid(slots) / (slots / shards as i64)) as usize
}

/// The shards times the highest power of two that leaves no more than 1024, and 2 at least.
fn slots(shards: usize) -> usize {
    let log = usize::BITS - (shards - 1).leading_zeros();
    shards << 10u32.saturating_sub(log).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_elasticsearch() {
        let hash = |text: &str| {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            murmurhash3_with_seed::<0>(&bytes)
        };
        let known = [
            ("hell", 0x5a0c_b7c3_u32),
            ("hello", 0xd7c3_1989),
            ("hello w", 0x22ab_2984),
            ("hello wo", 0xdf0c_a123),
            ("hello wor", 0xe774_4d61),
            ("The quick brown fox jumps over the lazy dog", 0xe07d_b09c),
            ("The quick brown fox jumps over the lazy cog", 0x4e63_d2ad),
        ];
        for (text, wanted) in known {
            assert_eq!(hash(text), wanted, "{text}");
        }
    }

    #[test]
    fn every_shard_gets_its_share() {
        assert_eq!((slots(1), slots(2), slots(5), slots(1024)), (1024, 1024, 640, 2048));
        for shards in [1, 2, 3, 5, 7, 64] {
            let mut counts = vec![0; shards];
            for id in 0..20_000 {
                counts[shard(&id.to_string(), shards)] += 1;
            }
            let mean = 20_000 / shards;
            assert!(counts.iter().all(|count| *count > mean / 2), "{shards}: {counts:?}");
        }
    }
}

//! Sets of ids, to know one that comes a second time.

use siphasher::sip128::SipHasher13;
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::LazyLock;

/// A number for an id: a keyed hash of 128 bits, so that no two ids of a corpus have the same. The key differs between
/// processes.
pub fn number_of(id: &str) -> u128 {
    static KEYED: LazyLock<SipHasher13> = LazyLock::new(|| {
        // The standard library does not give out its random keys; a hash made with them is as random.
        let random = || RandomState::new().hash_one(());
        SipHasher13::new_with_keys(random(), random())
    });
    KEYED.hash(id.as_bytes()).as_u128()
}

/// The low half of such a number is as good as any hash.
#[derive(Default)]
pub struct LowHalf(u64);

impl Hasher for LowHalf {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, number: u128) {
        self.0 = number as u64;
    }
}

/// A set of ids, by their numbers.
pub type IdSet = HashSet<u128, BuildHasherDefault<LowHalf>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_has_a_number_of_its_own_and_keeps_it() {
        let ids = || (0..10_000).map(|i| format!("id:n:t::{i}"));
        let set: IdSet = ids().map(|id| number_of(&id)).collect();
        assert_eq!(set.len(), 10_000);
        assert!(ids().all(|id| set.contains(&number_of(&id))));
        assert!(!set.contains(&number_of("id:n:t::10000")));
        let low: HashSet<u64> = set.iter().map(|number| *number as u64).collect();
        let high: HashSet<u64> = set.iter().map(|number| (*number >> 64) as u64).collect();
        assert!(low.len() == 10_000 && high.len() == 10_000 && low != high);
    }
}

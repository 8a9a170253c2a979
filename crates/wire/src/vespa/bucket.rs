//! Buckets: the documents whose locations end in the same bits.

use md5::{Digest, Md5};
use std::ops::RangeInclusive;

/// The most bits that a bucket can use; the six bits above them hold their number.
pub const MAX_BUCKET_BITS: u8 = 58;
/// Bits of a bucket that come from the location. Vespa takes those above from the global id.
pub const LOCATION_BITS: u8 = 32;

/// The location that the name of a document or its group gives: the first eight bytes of its MD5,
/// the first byte being the lowest.
#[must_use]
pub fn hash_location(name: &[u8]) -> u64 {
    let digest: [u8; 16] = Md5::digest(name).into();
    let mut low = [0; 8];
    low.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(low)
}

/// The place of a location in the order of visits.
#[must_use]
pub const fn key(location: u64) -> u64 {
    location.reverse_bits()
}

/// The bits of a location that count for a bucket of this many bits.
const fn mask(used_bits: u8) -> u64 {
    u64::MAX >> (64 - used_bits as u32)
}

/// A bucket, whole or a part of a superbucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bucket {
    used_bits: u8,
    id: u64,
}

impl Bucket {
    /// The bucket of this many bits that holds a location.
    ///
    /// # Panics
    /// Unless `used_bits` is 1 to [`MAX_BUCKET_BITS`].
    #[must_use]
    pub const fn of_location(location: u64, used_bits: u8) -> Self {
        assert!(used_bits >= 1 && used_bits <= MAX_BUCKET_BITS);
        Self { used_bits, id: location & mask(used_bits) }
    }

    /// The `position`-th bucket of this many bits in the order of visits; positions past the last
    /// one begin again at the first.
    ///
    /// # Panics
    /// Unless `used_bits` is 1 to [`MAX_BUCKET_BITS`].
    #[must_use]
    pub const fn nth(position: u64, used_bits: u8) -> Self {
        assert!(used_bits >= 1 && used_bits <= MAX_BUCKET_BITS);
        Self { used_bits, id: (position << (64 - used_bits as u32)).reverse_bits() }
    }

    /// Reads Vespa's form: the number of bits in the highest six, the bits themselves below. Bits
    /// in between are dropped. Nothing when the number is not 1 to [`MAX_BUCKET_BITS`].
    #[must_use]
    pub const fn from_raw(raw: u64) -> Option<Self> {
        let used_bits = (raw >> MAX_BUCKET_BITS) as u8;
        if used_bits == 0 || used_bits > MAX_BUCKET_BITS {
            return None;
        }
        Some(Self { used_bits, id: raw & mask(used_bits) })
    }

    /// Vespa's form, as [`Bucket::from_raw`] reads it.
    #[must_use]
    pub const fn raw(self) -> u64 {
        ((self.used_bits as u64) << MAX_BUCKET_BITS) | self.id
    }

    /// Number of bits that all its locations share, 1 to [`MAX_BUCKET_BITS`].
    #[must_use]
    pub const fn used_bits(self) -> u8 {
        self.used_bits
    }

    /// Its number in the order of visits among the buckets of as many bits.
    #[must_use]
    pub const fn position(self) -> u64 {
        self.id.reverse_bits() >> (64 - self.used_bits as u32)
    }

    /// Returns true if everything in the other one is in this one.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        other.used_bits >= self.used_bits && other.id & mask(self.used_bits) == self.id
    }

    /// The [`key`]s of its documents. A bucket of more than [`LOCATION_BITS`] bits gives the keys
    /// of the larger bucket around it, for further bits say nothing about locations.
    #[must_use]
    pub fn keys(self) -> RangeInclusive<u64> {
        let bits = self.used_bits.min(LOCATION_BITS);
        let first = (self.id & mask(bits)).reverse_bits();
        first..=first | !0 >> bits
    }

    /// The sort key of tokens: the reversed bits, then the smaller number of bits.
    pub(super) const fn sort_key(self) -> u64 {
        self.id.reverse_bits() | self.used_bits as u64
    }

    /// Part of this bucket that is done when everything up to and with `part` is: 0 to 1.
    pub(super) fn fraction_done(self, part: Self) -> f64 {
        if !self.contains(part) {
            return 0.0;
        }
        match part.used_bits - self.used_bits {
            0 => 1.0,
            splits => {
                let reversed = (part.id.reverse_bits() << self.used_bits) >> (64 - splits);
                (reversed + 1) as f64 / (1u64 << splits) as f64
            }
        }
    }
}

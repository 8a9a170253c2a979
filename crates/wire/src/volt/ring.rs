//! Partition that a key belongs to: VoltDB's elastic hash ring.

use super::kind::DecodeError;
use super::murmur::murmur3_x64_128_first;
use super::scan::Scan;

/// Number of places that [`Ring::even`] has, as many as VoltDB's own.
const TOKENS: u32 = 16_384;

/// The ring: each partition owns the hashes from its tokens up to the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// In ascending order, the first is the least number there is.
    tokens: Vec<i32>,
    /// The owner of each.
    partitions: Vec<i32>,
    /// Number of bits by which a hash is shifted to the index of its token, if all tokens are equally far apart.
    shift: Option<u32>,
}

impl Ring {
    /// The ring that is dealt out to `partitions` partitions, at least 1, in turn.
    #[must_use]
    pub fn even(partitions: u32) -> Self {
        let step = u64::from(u32::MAX).div_ceil(TOKENS.into()) as u32;
        let token = |index: u32| (i64::from(i32::MIN) + i64::from(index * step)) as i32;
        let partitions = partitions.max(1);
        let owners = (0..TOKENS).map(|index| (index % partitions) as i32).collect();
        Self::new((0..TOKENS).map(token).collect(), owners)
    }

    fn new(tokens: Vec<i32>, partitions: Vec<i32>) -> Self {
        let step = (1u64 << 32) / tokens.len() as u64;
        let is_even = tokens.len().is_power_of_two()
            && tokens.iter().zip(0u64..).all(|(&token, index)| place(token) == index * step);
        let shift = is_even.then(|| step.trailing_zeros());
        Self { tokens, partitions, shift }
    }

    /// Reads the ring as `@Statistics TOPO` has it in HASHCONFIG, not compressed.
    ///
    /// # Errors
    /// Bytes that end too soon, no tokens at all, or tokens that are not in order from the least number up.
    pub fn read(hash_config: &[u8]) -> Result<Self, DecodeError> {
        let mut scan = Scan::new(hash_config);
        let count = scan.i32()?;
        let wrong = DecodeError::Length(count);
        if count < 1 || count as usize != scan.rest().len() / 8 {
            return Err(wrong);
        }
        let (mut tokens, mut partitions) = (Vec::new(), Vec::new());
        for _ in 0..count {
            tokens.push(scan.i32()?);
            partitions.push(scan.i32()?);
        }
        if tokens[0] != i32::MIN || !tokens.is_sorted_by(|one, next| one < next) {
            return Err(wrong);
        }
        Ok(Self::new(tokens, partitions))
    }

    /// The ring as HASHCONFIG has it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 + 8 * self.tokens.len());
        bytes.extend_from_slice(&(self.tokens.len() as i32).to_be_bytes());
        for (token, partition) in self.tokens() {
            bytes.extend_from_slice(&token.to_be_bytes());
            bytes.extend_from_slice(&partition.to_be_bytes());
        }
        bytes
    }

    /// Its tokens in ascending order, each with its partition.
    pub fn tokens(&self) -> impl Iterator<Item = (i32, i32)> + '_ {
        self.tokens.iter().copied().zip(self.partitions.iter().copied())
    }

    /// The partition of a whole number of whatever width; null, the least of 64 bits, belongs to partition 0.
    #[inline]
    #[must_use]
    pub fn partition_of_long(&self, key: i64) -> i32 {
        if key == i64::MIN {
            return 0;
        }
        self.partition_of_bytes(&key.to_le_bytes())
    }

    /// The partition of a text.
    #[must_use]
    pub fn partition_of_str(&self, key: &str) -> i32 {
        self.partition_of_bytes(key.as_bytes())
    }

    /// The partition of bytes.
    #[inline]
    #[must_use]
    pub fn partition_of_bytes(&self, key: &[u8]) -> i32 {
        let hash = (murmur3_x64_128_first(key) >> 32) as u32 as i32;
        let index = match self.shift {
            Some(shift) => (place(hash) >> shift) as usize,
            // The first token is the least of all numbers: there is always one.
            None => self.tokens.partition_point(|&token| token <= hash) - 1,
        };
        self.partitions[index]
    }

    /// A number for each partition that belongs to it, the least from 0 up: what `@GetPartitionKeys` tells.
    #[must_use]
    pub fn keys(&self) -> Vec<(i32, i32)> {
        let mut owners = self.partitions.clone();
        owners.sort_unstable();
        owners.dedup();
        let mut keys = Vec::new();
        // A partition may own so little that no number is in it: the search has an end.
        for key in 0..1 << 20 {
            let partition = self.partition_of_long(key.into());
            if let Ok(at) = owners.binary_search(&partition) {
                owners.remove(at);
                keys.push((partition, key));
            }
            if owners.is_empty() {
                break;
            }
        }
        keys.sort_unstable();
        keys
    }
}

/// Distance of a token from the least.
#[inline]
fn place(token: i32) -> u64 {
    (i64::from(token) - i64::from(i32::MIN)) as u64
}

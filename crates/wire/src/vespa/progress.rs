//! Progress tokens: how far a visit has come, in Vespa's own bytes.
//!
//! | field | bytes, big-endian |
//! |---|---|
//! | distribution bits | 4 |
//! | cursor: the next superbucket in the order of visits | 8 |
//! | superbuckets that are finished | 8 |
//! | all superbuckets | 8 |
//! | number of pending ones | 4 |
//! | each pending one, and how far into it the visit came | 8 + 8 |
//!
//! The whole is base64 with the URL alphabet and padding. The slice of a visit is no part of the
//! token; the one who resumes names it again.

use super::bucket::{Bucket, LOCATION_BITS, MAX_BUCKET_BITS};
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::general_purpose::GeneralPurpose;
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use base64::{DecodeError, Engine};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The most superbuckets that a token can have begun and not finished.
pub const MAX_PENDING: usize = 4096;
/// Longer tokens are refused unread. [`MAX_PENDING`] entries take 87 kB, and MIME has line ends.
pub const MAX_TOKEN_BYTES: usize = 96 * 1024;

const HEADER_BYTES: usize = 32;
const ENTRY_BYTES: usize = 16;

/// As lenient as Java's decoders: padding may be missing.
const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::Indifferent);
const URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, CONFIG);
const MIME: GeneralPurpose = GeneralPurpose::new(&STANDARD, CONFIG);

/// Reason why a visit cannot begin or go on so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgressError {
    /// The text is no token.
    #[error("Failed parsing '{token}': {reason}")]
    Token {
        /// The token, shortened.
        token: String,
        /// Reason why it cannot be read.
        reason: String,
    },
    /// The token is of a visit with an explicit list of buckets, or was changed.
    #[error(
        "Total bucket count in existing progress is not consistent with that of the current \
         document selection"
    )]
    Inconsistent,
    /// The number of distribution bits is out of range.
    #[error("distribution bits must be from 1 to {LOCATION_BITS}, but were {0}")]
    Bits(u64),
    /// There is no slice.
    #[error("slices must be positive, but was {0}")]
    Slices(u64),
    /// There is no slice of this number.
    #[error("sliceId must be in [0, {slices}), but was {slice}")]
    Slice {
        /// The number of slices.
        slices: u64,
        /// The number of the slice.
        slice: u64,
    },
}

/// A superbucket to visit, and what is already done of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The superbucket.
    pub bucket: Bucket,
    /// Everything up to and with this part of it was visited.
    pub done: Option<Bucket>,
}

impl Step {
    /// The keys of the documents to visit. A part that Vespa split by bits other than the
    /// location's is visited again.
    #[must_use]
    pub fn keys(&self) -> RangeInclusive<u64> {
        let keys = self.bucket.keys();
        let done = self.done.filter(|part| self.bucket.contains(*part));
        let Some(part) = done else { return keys };
        if part.used_bits() > LOCATION_BITS {
            return *part.keys().start()..=*keys.end();
        }
        match part.keys().end().checked_add(1) {
            Some(first) => first..=*keys.end(),
            // An empty range: the whole was visited.
            None => RangeInclusive::new(1, 0),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pending {
    /// In Vespa's form, bit for bit as it was read; 0 is nothing done.
    progress: u64,
    is_out: bool,
}

/// Progress of a visit.
///
/// [`ProgressToken::next_bucket`] gives out superbuckets, [`ProgressToken::finish_bucket`] takes
/// them back. One that is out is written as pending, so a token never loses an unfinished bucket.
/// To visit several at a time but answer in order, keep two tokens: one to give out, and one
/// that takes the same steps when their turn has come, and so never has anything pending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressToken {
    bits: u8,
    cursor: u64,
    finished: u64,
    total: u64,
    /// By [`Bucket::sort_key`], which is the order in which they are written.
    pending: BTreeMap<u64, (Bucket, Pending)>,
    slices: u64,
    slice: u64,
    /// The only superbucket of interest.
    pinned: Option<u64>,
}

impl ProgressToken {
    /// The beginning of a slice of a visit; `start(bits, 1, 0)` is the whole.
    ///
    /// # Errors
    /// When the bits are not 1 to [`LOCATION_BITS`], or there is no such slice.
    pub fn start(bits: u8, slices: u64, slice: u64) -> Result<Self, ProgressError> {
        if bits == 0 || bits > LOCATION_BITS {
            return Err(ProgressError::Bits(bits.into()));
        }
        let total = 1 << bits;
        let pending = BTreeMap::new();
        let token = Self {
            bits,
            cursor: 0,
            finished: 0,
            total,
            pending,
            slices: 1,
            slice: 0,
            pinned: None,
        };
        token.resume(slices, slice)
    }

    /// Reads a token.
    ///
    /// # Errors
    /// When the text is none. Whether it fits a visit is for [`ProgressToken::resume`] to say.
    pub fn decode(text: impl AsRef<[u8]>) -> Result<Self, ProgressError> {
        let text = text.as_ref();
        Self::read(text).map_err(|reason| {
            let token: String = String::from_utf8_lossy(text).chars().take(100).collect();
            ProgressError::Token { token, reason }
        })
    }

    fn read(text: &[u8]) -> Result<Self, String> {
        if text.len() > MAX_TOKEN_BYTES {
            return Err(format!("{} bytes are more than a token can have", text.len()));
        }
        let bytes = base64_bytes(text).map_err(|error| format!("not base64: {error}"))?;
        let mut rest = bytes.as_slice();
        if rest.len() < HEADER_BYTES {
            // Named as Vespa names it; clients' tests look for the word.
            return Err("BufferUnderflowException".to_owned());
        }
        let bits = take_u32(&mut rest);
        let [cursor, finished, total] = [0; 3].map(|_: u64| take_u64(&mut rest));
        let count = take_u32(&mut rest) as usize;
        if bits == 0 || bits > u32::from(MAX_BUCKET_BITS) {
            return Err(format!("{bits} distribution bits"));
        }
        if cursor > total || finished > total || total > 1 << MAX_BUCKET_BITS {
            return Err(format!("cursor {cursor}, finished {finished} and total {total}"));
        }
        if count > MAX_PENDING {
            return Err(format!("{count} pending buckets; at most {MAX_PENDING} are allowed"));
        }
        match rest.len().cmp(&(count * ENTRY_BYTES)) {
            std::cmp::Ordering::Less => return Err("BufferUnderflowException".to_owned()),
            std::cmp::Ordering::Greater => return Err("bytes behind the last bucket".to_owned()),
            std::cmp::Ordering::Equal => {}
        }
        let mut pending = BTreeMap::new();
        for _ in 0..count {
            let (bucket, progress) = (take_u64(&mut rest), take_u64(&mut rest));
            let bucket =
                Bucket::from_raw(bucket).ok_or_else(|| format!("no bucket is {bucket:#x}"))?;
            let entry = (bucket, Pending { progress, is_out: false });
            if pending.insert(bucket.sort_key(), entry).is_some() {
                return Err(format!("the bucket {:#x} is pending twice", bucket.raw()));
            }
        }
        let bits = bits as u8;
        Ok(Self { bits, cursor, finished, total, pending, slices: 1, slice: 0, pinned: None })
    }

    /// The token of the same progress as part of a slice: superbuckets of other slices count as
    /// finished once the cursor passes them, so percentages run over the whole space.
    ///
    /// # Errors
    /// When there is no such slice, or the token is not one of a visit of the whole space.
    pub fn resume(mut self, slices: u64, slice: u64) -> Result<Self, ProgressError> {
        if slices == 0 {
            return Err(ProgressError::Slices(slices));
        }
        if slice >= slices {
            return Err(ProgressError::Slice { slices, slice });
        }
        let pending = self.pending.len() as u64;
        let fits = self.bits <= LOCATION_BITS
            && self.total == 1 << self.bits
            && pending <= self.cursor
            && self.pending.values().all(|(bucket, _)| bucket.used_bits() <= LOCATION_BITS);
        if !fits {
            return Err(ProgressError::Inconsistent);
        }
        self.finished = self.cursor - pending;
        (self.slices, self.slice) = (slices, slice);
        self.pass_over();
        Ok(self)
    }

    /// From here on, only the superbucket of this location is visited, if the slice has it; the
    /// others count as finished. Pending ones are given out all the same.
    pub fn pin(&mut self, location: u64) {
        self.pinned = Some(Bucket::of_location(location, self.bits).position());
        self.pass_over();
    }

    /// Moves the cursor to the next superbucket of interest.
    fn pass_over(&mut self) {
        let rest = self.cursor % self.slices;
        let ahead = match self.slice.checked_sub(rest) {
            Some(ahead) => ahead,
            None => self.slices - (rest - self.slice),
        };
        let mut next = self.cursor.saturating_add(ahead).min(self.total);
        if let Some(pinned) = self.pinned {
            let is_own = pinned >= self.cursor && pinned % self.slices == self.slice;
            next = if is_own { pinned } else { self.total };
        }
        self.finished += next - self.cursor;
        self.cursor = next;
    }

    /// The next superbucket to visit: first those that are pending, then the one at the cursor.
    /// Nothing when all are out or finished.
    pub fn next_bucket(&mut self) -> Option<Step> {
        let waiting = self.pending.values_mut().find(|(_, pending)| !pending.is_out);
        if let Some((bucket, pending)) = waiting {
            pending.is_out = true;
            return Some(Step { bucket: *bucket, done: Bucket::from_raw(pending.progress) });
        }
        if self.total != 1 << self.bits || self.cursor >= self.total {
            return None;
        }
        let bucket = Bucket::nth(self.cursor, self.bits);
        let pending = Pending { progress: 0, is_out: true };
        self.pending.insert(bucket.sort_key(), (bucket, pending));
        self.cursor += 1;
        self.pass_over();
        Some(Step { bucket, done: None })
    }

    /// Counts a superbucket as finished; says whether it was one of those begun.
    pub fn finish_bucket(&mut self, bucket: Bucket) -> bool {
        let is_known = self.pending.remove(&bucket.sort_key()).is_some();
        self.finished += u64::from(is_known && self.finished < self.total);
        is_known
    }

    /// Returns true if everything was visited.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.pending.is_empty() && self.finished == self.total
    }

    /// The position in the bucket space, 0 to 100. Not the share of documents or bytes.
    #[must_use]
    pub fn percent_finished(&self) -> f64 {
        if self.total == self.finished {
            return 100.0;
        }
        let total = self.total as f64;
        let parts = self.pending.values().filter_map(|(bucket, pending)| {
            Some(100.0 / total * bucket.fraction_done(Bucket::from_raw(pending.progress)?))
        });
        self.finished as f64 / total * 100.0 + parts.sum::<f64>()
    }

    /// The token as text.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        self.encode_into(&mut text);
        text
    }

    /// Appends the token to a text.
    pub fn encode_into(&self, text: &mut String) {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + ENTRY_BYTES * self.pending.len());
        bytes.extend_from_slice(&u32::from(self.bits).to_be_bytes());
        for number in [self.cursor, self.finished, self.total] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.extend_from_slice(&(self.pending.len() as u32).to_be_bytes());
        for (bucket, pending) in self.pending.values() {
            bytes.extend_from_slice(&bucket.raw().to_be_bytes());
            bytes.extend_from_slice(&pending.progress.to_be_bytes());
        }
        URL.encode_string(&bytes, text);
    }

    /// The number of bits that name a superbucket.
    #[must_use]
    pub fn distribution_bits(&self) -> u8 {
        self.bits
    }

    /// The next superbucket in the order of visits.
    #[must_use]
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Superbuckets that are finished, those of other slices below the cursor included.
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.finished
    }

    /// All superbuckets.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Superbuckets begun and not finished, in the order of visits.
    pub fn pending(&self) -> impl Iterator<Item = Step> + '_ {
        self.pending.values().map(|(bucket, pending)| Step {
            bucket: *bucket,
            done: Bucket::from_raw(pending.progress),
        })
    }
}

/// Decodes the URL form or, when that fails, MIME: the old alphabet, everything else ignored.
fn base64_bytes(text: &[u8]) -> Result<Vec<u8>, DecodeError> {
    URL.decode(text).or_else(|_| {
        let is_kept = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
        MIME.decode(text.iter().copied().filter(is_kept).collect::<Vec<_>>())
    })
}

/// The length was checked by the caller; a short rest would read as zero.
fn take_u64(rest: &mut &[u8]) -> u64 {
    let Some((bytes, after)) = rest.split_first_chunk() else { return 0 };
    *rest = after;
    u64::from_be_bytes(*bytes)
}

fn take_u32(rest: &mut &[u8]) -> u32 {
    let Some((bytes, after)) = rest.split_first_chunk() else { return 0 };
    *rest = after;
    u32::from_be_bytes(*bytes)
}

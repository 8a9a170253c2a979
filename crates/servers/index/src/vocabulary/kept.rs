//! Vocabularies that are in memory, and when one is made.

use super::{Vocabulary, WORDS_A_LOOKUP};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use tantivy::index::SegmentId;
use tantivy::schema::Field;
use tantivy::{InvertedIndexReader, SegmentReader, TantivyError};

/// Largest size of all kept vocabularies in memory, bytes.
pub(super) const CACHE_BYTES: usize = 64 << 20;
/// Largest number of kept vocabularies, including those that are being made.
const CACHE_ENTRIES: usize = 4096;

/// The vocabulary of a field of a segment, made or not.
#[derive(Default)]
struct Slot {
    /// Empty: the words take too much memory.
    made: OnceLock<Option<Arc<Vocabulary>>>,
    /// Lookups that the dictionary on the disk has answered.
    lookups: AtomicUsize,
    making: AtomicBool,
}

impl Slot {
    fn make(
        &self,
        inverted: &InvertedIndexReader,
    ) -> Result<Option<Arc<Vocabulary>>, TantivyError> {
        let made = Vocabulary::read(inverted)?.map(Arc::new);
        let made = self.made.get_or_init(|| made).clone();
        cache().make_room(0);
        Ok(made)
    }

    fn size(&self) -> usize {
        self.made.get().and_then(Option::as_ref).map_or(0, |made| made.size())
    }
}

struct Kept {
    slot: Arc<Slot>,
    /// Time of its last use, in requests.
    used: u64,
}

#[derive(Default)]
struct Cache {
    kept: HashMap<(SegmentId, Field), Kept>,
    requests: u64,
}

static CACHE: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);

impl Cache {
    fn slot(&mut self, segment: SegmentId, field: Field) -> Arc<Slot> {
        self.requests += 1;
        let used = self.requests;
        if let Some(kept) = self.kept.get_mut(&(segment, field)) {
            kept.used = used;
            return Arc::clone(&kept.slot);
        }
        self.make_room(1);
        let slot = Arc::<Slot>::default();
        self.kept.insert((segment, field), Kept { slot: Arc::clone(&slot), used });
        slot
    }

    /// Drops what was not asked for the longest, segments that are gone before all others, so that as many more may come.
    fn make_room(&mut self, more: usize) {
        let mut bytes = self.kept.values().map(|kept| kept.slot.size()).sum::<usize>();
        while bytes > CACHE_BYTES || self.kept.len() + more > CACHE_ENTRIES {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used);
            let Some(oldest) = oldest.map(|(key, _)| *key) else { return };
            let gone = self.kept.remove(&oldest);
            bytes -= gone.map_or(0, |kept| kept.slot.size());
        }
    }
}

fn cache() -> MutexGuard<'static, Cache> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn slot(reader: &SegmentReader, field: Field) -> Arc<Slot> {
    cache().slot(reader.segment_id(), field)
}

/// The vocabulary for a walk over many words, made now if need be; `None` if it would be too large.
pub(super) fn for_walk(
    reader: &SegmentReader,
    inverted: &InvertedIndexReader,
    field: Field,
) -> Result<Option<Arc<Vocabulary>>, TantivyError> {
    let slot = slot(reader, field);
    match slot.made.get() {
        Some(made) => Ok(made.clone()),
        // Two that come at once make it twice: that is rare, and neither waits.
        None => slot.make(inverted),
    }
}

/// The vocabulary for one word; `None` while it is cheaper to look the word up on the disk.
///
/// It is made when the lookups on the disk have cost as much as making it. So a segment that is merged away soon, or
/// rarely asked, costs at most twice what it must.
pub(super) fn for_lookup(
    reader: &SegmentReader,
    inverted: &InvertedIndexReader,
    field: Field,
) -> Result<Option<Arc<Vocabulary>>, TantivyError> {
    let slot = slot(reader, field);
    if let Some(made) = slot.made.get() {
        return Ok(made.clone());
    }
    let lookups = slot.lookups.fetch_add(1, Ordering::Relaxed);
    let early = lookups.saturating_mul(WORDS_A_LOOKUP) < inverted.terms().num_terms();
    // The others need not wait for the one that makes it.
    if early || slot.making.swap(true, Ordering::Relaxed) {
        return Ok(None);
    }
    let made = slot.make(inverted);
    slot.making.store(false, Ordering::Relaxed);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_the_least_recently_used_vocabularies() {
        let mut cache = Cache::default();
        let segment = SegmentId::generate_random();
        let field = Field::from_field_id;
        for number in 0..3 {
            let slot = cache.slot(segment, field(number));
            let bytes = vec![0; CACHE_BYTES / 3 + 1];
            let vocabulary = Vocabulary { bytes, ..Vocabulary::default() };
            assert!(slot.made.set(Some(Arc::new(vocabulary))).is_ok());
        }
        cache.slot(segment, field(0));
        cache.make_room(0);
        let mut left: Vec<u32> = cache.kept.keys().map(|(_, field)| field.field_id()).collect();
        left.sort_unstable();
        assert_eq!(left, [0, 2]);
        for number in 0..2 * CACHE_ENTRIES as u32 {
            cache.slot(SegmentId::generate_random(), field(number));
        }
        assert_eq!(cache.kept.len(), CACHE_ENTRIES);
    }
}

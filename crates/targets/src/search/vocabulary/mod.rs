//! The words of a field of a segment, laid out to be compared with a word one after the other.
//!
//! A term dictionary is made to be looked up: a walk with two edits and more visits most of its upper nodes. Here words
//! lie by their length, each with a set of its letters. An edit changes the length by one at most, and the set by one
//! letter that comes and one that goes; so nearly all words are passed over at a nanosecond each, and
//! what is left is compared. Segments do not change, so that this is made once for each, when it is first asked for.

use super::automaton::TermAutomaton;
use super::near::{FAR, LANES};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tantivy::index::SegmentId;
use tantivy::postings::TermInfo;
use tantivy::schema::Field;
use tantivy::{SegmentReader, TantivyError};

/// What all words that are kept may take in memory, bytes.
const CACHE_BYTES: usize = 64 << 20;
/// Larger dictionaries are walked.
const MAX_WORDS: usize = 1_000_000;
/// Words as long as this or longer lie together, characters.
const LONG: usize = 64;

/// The words of one field of one segment, by length.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    bytes: Vec<u8>,
    /// Where each word ends in `bytes`; the first one starts at 0.
    ends: Vec<u32>,
    letters: Vec<u32>,
    /// Where their documents are.
    infos: Vec<TermInfo>,
    /// Where the words of each length start.
    lengths: Vec<usize>,
}

/// A set of letters: those of ASCII by themselves, all others in five groups.
fn letters(word: &str) -> u32 {
    word.chars().fold(0, |set, letter| {
        let bit = if letter.is_ascii_lowercase() {
            u32::from(letter) & 31
        } else {
            27 + u32::from(letter) % 5
        };
        set | 1 << bit
    })
}

fn length(word: &str) -> usize {
    word.chars().count().min(LONG)
}

impl Vocabulary {
    /// Reads the dictionary.
    fn read(reader: &SegmentReader, field: Field) -> Result<Self, TantivyError> {
        let inverted = reader.inverted_index(field)?;
        let mut all: Vec<Vec<(String, TermInfo)>> = vec![Vec::new(); LONG + 1];
        let mut terms = inverted.terms().stream()?;
        while terms.advance() {
            let Ok(word) = std::str::from_utf8(terms.key()) else { continue };
            all[length(word)].push((word.to_owned(), terms.value().clone()));
        }
        let mut made = Self::default();
        for words in all {
            made.lengths.push(made.ends.len());
            for (word, info) in words {
                made.bytes.extend_from_slice(word.as_bytes());
                made.ends.push(made.bytes.len() as u32);
                made.letters.push(letters(&word));
                made.infos.push(info);
            }
        }
        made.lengths.push(made.ends.len());
        Ok(made)
    }

    /// Bytes of memory.
    fn size(&self) -> usize {
        self.bytes.len() + (8 + size_of::<TermInfo>()) * self.ends.len()
    }

    fn word(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] as usize };
        &self.bytes[start..self.ends[number] as usize]
    }

    /// Calls `visit` with every word that the automaton of `wanted` accepts, where its documents are, and
    /// how many edits away it is.
    fn each(
        &self,
        wanted: &str,
        edits: usize,
        automaton: &TermAutomaton,
        mut visit: impl FnMut(&[u8], &TermInfo, u8),
    ) {
        let (length, letters) = (length(wanted), letters(wanted));
        let (least, most) = (length.saturating_sub(edits), (length + edits).min(LONG));
        let lanes = automaton.lanes();
        let mut candidates = Vec::new();
        let mut columns = [[0; LANES]; LONG];
        for length in least..=most {
            let range = self.lengths[length]..self.lengths[length + 1];
            candidates.clear();
            similar(&self.letters, range, letters, edits as u32, &mut candidates);
            let mut near = |number: u32, edits: Option<u8>| {
                if let Some(edits) = edits {
                    visit(self.word(number as usize), &self.infos[number as usize], edits);
                }
            };
            let Some(lanes) = lanes.as_ref().filter(|_| length < LONG) else {
                candidates.iter().for_each(|c| near(*c, automaton.edits(self.word(*c as usize))));
                continue;
            };
            for together in candidates.chunks(LANES) {
                for (lane, number) in together.iter().enumerate() {
                    let word = self.word(*number as usize);
                    columns.iter_mut().zip(word).for_each(|(column, byte)| column[lane] = *byte);
                }
                let found = lanes.edits(&columns[..length]);
                for (number, edits) in together.iter().zip(found) {
                    let word = self.word(*number as usize);
                    // Words of ASCII have a byte for each character.
                    let ascii = word.len() == length;
                    let edits =
                        if ascii { (edits != FAR).then_some(edits) } else { automaton.edits(word) };
                    near(*number, edits);
                }
            }
        }
    }
}

/// The numbers of the sets in a range that lack at most `edits` of the letters, and have at most as many others.
fn similar(
    sets: &[u32],
    range: std::ops::Range<usize>,
    letters: u32,
    edits: u32,
    out: &mut Vec<u32>,
) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("popcnt") {
        // SAFETY: the processor has the instruction.
        unsafe { similar_popcnt(sets, range, letters, edits, out) };
        return;
    }
    similar_any(sets, range, letters, edits, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn similar_popcnt(
    sets: &[u32],
    range: std::ops::Range<usize>,
    letters: u32,
    edits: u32,
    out: &mut Vec<u32>,
) {
    similar_any(sets, range, letters, edits, out);
}

#[inline(always)]
fn similar_any(
    sets: &[u32],
    range: std::ops::Range<usize>,
    letters: u32,
    edits: u32,
    out: &mut Vec<u32>,
) {
    let first = range.start;
    for (at, &set) in sets[range].iter().enumerate() {
        if (set & !letters).count_ones() <= edits && (letters & !set).count_ones() <= edits {
            out.push((first + at) as u32);
        }
    }
}

/// One vocabulary that is kept, or is being made.
struct Kept {
    segment: SegmentId,
    field: Field,
    made: Arc<OnceLock<Arc<Vocabulary>>>,
    /// When it was last asked for, in requests.
    used: u64,
}

#[derive(Default)]
struct Cache {
    kept: Vec<Kept>,
    requests: u64,
}

static CACHE: Mutex<Cache> = Mutex::new(Cache { kept: Vec::new(), requests: 0 });

impl Cache {
    fn slot(&mut self, segment: SegmentId, field: Field) -> Arc<OnceLock<Arc<Vocabulary>>> {
        self.requests += 1;
        let used = self.requests;
        if let Some(kept) =
            self.kept.iter_mut().find(|kept| kept.segment == segment && kept.field == field)
        {
            kept.used = used;
            return Arc::clone(&kept.made);
        }
        // What was not asked for the longest goes: the segments that are gone, before all others.
        let size = |kept: &Kept| kept.made.get().map_or(0, |made| made.size());
        while self.kept.iter().map(size).sum::<usize>() > CACHE_BYTES || self.kept.len() > 4096 {
            let oldest = self.kept.iter().enumerate().min_by_key(|(_, kept)| kept.used);
            let Some((oldest, _)) = oldest else { break };
            self.kept.swap_remove(oldest);
        }
        let made = Arc::new(OnceLock::new());
        self.kept.push(Kept { segment, field, made: Arc::clone(&made), used });
        made
    }
}

fn of(reader: &SegmentReader, field: Field) -> Result<Arc<Vocabulary>, TantivyError> {
    let slot =
        CACHE.lock().unwrap_or_else(PoisonError::into_inner).slot(reader.segment_id(), field);
    if let Some(made) = slot.get() {
        return Ok(Arc::clone(made));
    }
    // Two that come at once make it twice: that is rare, and neither waits.
    let made = Arc::new(Vocabulary::read(reader, field)?);
    Ok(Arc::clone(slot.get_or_init(|| made)))
}

/// Calls `visit` with every word of a field that is near, where its documents are in the segment, and how many
/// edits away it is. The order is any.
///
/// # Errors
/// When the dictionary cannot be read.
pub(crate) fn each_near(
    reader: &SegmentReader,
    field: Field,
    wanted: &str,
    edits: u64,
    automaton: &TermAutomaton,
    mut visit: impl FnMut(&[u8], &TermInfo, u8),
) -> Result<(), TantivyError> {
    let inverted = reader.inverted_index(field)?;
    let dictionary = inverted.terms();
    if dictionary.num_terms() > MAX_WORDS {
        let mut terms = dictionary.search(automaton).into_stream()?;
        while terms.advance() {
            // Of long words the automaton lets more pass than is near.
            if let Some(edits) = automaton.edits(terms.key()) {
                visit(terms.key(), terms.value(), edits);
            }
        }
        return Ok(());
    }
    let edits = usize::try_from(edits).unwrap_or(LONG);
    of(reader, field)?.each(wanted, edits, automaton, visit);
    Ok(())
}

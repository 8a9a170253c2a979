//! The words of a field of a segment in memory: the one dictionary that queries of both dialects use.
//!
//! A term dictionary on the disk is cheap to write and to merge, but a lookup unpacks a whole block of it, and a walk with
//! two edits most of its blocks. Segments do not change, so the words of each are read once, when queries want them.
//!
//! Words lie by their length, and within a length in the order of their bytes, each with a set of its letters. A word, or
//! the words that begin with a text, are found by bisection. An edit changes the length by one at most, and the set
//! by one letter that comes and one that goes; nearly all words are passed over at a nanosecond each, and what is
//! left is compared.

mod kept;

use super::automaton::TermAutomaton;
use super::near::{FAR, LANES};
use std::ops::Range;
use tantivy::postings::TermInfo;
use tantivy::schema::Field;
use tantivy::{InvertedIndexReader, SegmentReader, TantivyError};

/// Dictionaries with more words stay on the disk.
const MAX_WORDS: usize = 1_000_000;
/// Vocabularies that would take more memory are not made, bytes.
const MAX_BYTES: usize = kept::CACHE_BYTES / 2;
/// Words as long as this or longer lie together, characters.
const LONG: usize = 64;
/// Words of a dictionary that one lookup on the disk unpacks, about.
const WORDS_A_LOOKUP: usize = 512;

/// The words of one field of one segment, by length.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    bytes: Vec<u8>,
    /// Place where each word ends in `bytes`; the first one starts at 0.
    ends: Vec<u32>,
    letters: Vec<u32>,
    /// Place where their documents are.
    infos: Vec<TermInfo>,
    /// Place where the words of each length start.
    lengths: Vec<usize>,
}

/// A set of letters: those of ASCII by themselves, all others in five groups.
fn letters(word: &[u8]) -> u32 {
    std::str::from_utf8(word).unwrap_or_default().chars().fold(0, |set, letter| {
        let bit = if letter.is_ascii_lowercase() {
            u32::from(letter) & 31
        } else {
            27 + u32::from(letter) % 5
        };
        set | 1 << bit
    })
}

/// The group of a word. Terms that are no text, such as numbers, lie with the longest words.
fn length(word: &[u8]) -> usize {
    std::str::from_utf8(word).map_or(LONG, |word| word.chars().count().min(LONG))
}

impl Vocabulary {
    /// Reads the dictionary; `None` if its words would take too much memory.
    fn read(inverted: &InvertedIndexReader) -> Result<Option<Self>, TantivyError> {
        let dictionary = inverted.terms();
        if dictionary.num_terms() > MAX_WORDS {
            return Ok(None);
        }
        let mut sorted = Self::default();
        let mut lengths = Vec::with_capacity(dictionary.num_terms());
        let mut terms = dictionary.stream()?;
        while terms.advance() {
            lengths.push(length(terms.key()));
            sorted.push(terms.key(), terms.value().clone());
            if sorted.size() > MAX_BYTES {
                return Ok(None);
            }
        }
        Ok(Some(sorted.by_length(&lengths)))
    }

    fn push(&mut self, word: &[u8], info: TermInfo) {
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len() as u32);
        self.letters.push(letters(word));
        self.infos.push(info);
    }

    /// The same words by their lengths, in the same order within each.
    fn by_length(&self, lengths: &[usize]) -> Self {
        let mut starts = vec![0; LONG + 2];
        lengths.iter().for_each(|length| starts[length + 1] += 1);
        for length in 0..=LONG {
            starts[length + 1] += starts[length];
        }
        let mut next = starts.clone();
        let mut order = vec![0; lengths.len()];
        for (number, length) in lengths.iter().enumerate() {
            order[next[*length]] = number;
            next[*length] += 1;
        }
        let mut made = Self {
            bytes: Vec::with_capacity(self.bytes.len()),
            ends: Vec::with_capacity(order.len()),
            letters: order.iter().map(|number| self.letters[*number]).collect(),
            infos: order.iter().map(|number| self.infos[*number].clone()).collect(),
            lengths: starts,
        };
        for number in order {
            made.bytes.extend_from_slice(self.word(number));
            made.ends.push(made.bytes.len() as u32);
        }
        made
    }

    /// Bytes of memory.
    fn size(&self) -> usize {
        self.bytes.len() + (8 + size_of::<TermInfo>()) * self.ends.len()
    }

    /// The words of a length.
    fn group(&self, length: usize) -> Range<usize> {
        self.lengths[length]..self.lengths[length + 1]
    }

    /// The first word of a range that `before` does not accept, which accepts those up to some word.
    fn bisect(&self, range: Range<usize>, before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low.midpoint(high);
            if before(self.word(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Returns where the documents of a word are, if it is there.
    fn find(&self, word: &[u8]) -> Option<&TermInfo> {
        let group = self.group(length(word));
        let end = group.end;
        let at = self.bisect(group, |other| other < word);
        (at < end && self.word(at) == word).then(|| &self.infos[at])
    }

    /// The words of a length that begin with a text.
    fn beginning(&self, length: usize, text: &[u8]) -> Range<usize> {
        let group = self.group(length);
        if text.is_empty() {
            return group;
        }
        let end = group.end;
        let start = self.bisect(group, |other| other < text);
        start..self.bisect(start..end, |other| other.starts_with(text))
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
        let (length, letters) = (length(wanted.as_bytes()), letters(wanted.as_bytes()));
        let (least, most) = (length.saturating_sub(edits), (length + edits).min(LONG));
        let lanes = automaton.lanes();
        let head = automaton.head();
        let mut candidates = Vec::new();
        let mut columns = [[0; LANES]; LONG];
        for length in least..=most {
            let range = self.beginning(length, head);
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

/// Returns where the documents of a term of a field are in a segment, if it has the term.
///
/// # Errors
/// When the dictionary cannot be read.
pub(crate) fn find(
    reader: &SegmentReader,
    inverted: &InvertedIndexReader,
    field: Field,
    term: &[u8],
) -> Result<Option<TermInfo>, TantivyError> {
    let dictionary = inverted.terms();
    // Of a dictionary that is too large there will be no vocabulary.
    if dictionary.num_terms() > MAX_WORDS {
        return Ok(dictionary.get(term)?);
    }
    match kept::for_lookup(reader, inverted, field)? {
        Some(vocabulary) => Ok(vocabulary.find(term).cloned()),
        None => Ok(dictionary.get(term)?),
    }
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
    let Some(vocabulary) = kept::for_walk(reader, &inverted, field)? else {
        let mut terms = inverted.terms().search(automaton).into_stream()?;
        while terms.advance() {
            // Of long words the automaton lets more pass than is near.
            if let Some(edits) = automaton.edits(terms.key()) {
                visit(terms.key(), terms.value(), edits);
            }
        }
        return Ok(());
    };
    let edits = usize::try_from(edits).unwrap_or(LONG);
    vocabulary.each(wanted, edits, automaton, visit);
    Ok(())
}

/// Calls `visit` with where the documents of every word are that begins with a text. The order is any.
///
/// # Errors
/// When the dictionary cannot be read.
pub(crate) fn each_beginning(
    reader: &SegmentReader,
    field: Field,
    text: &str,
    mut visit: impl FnMut(&TermInfo),
) -> Result<(), TantivyError> {
    let inverted = reader.inverted_index(field)?;
    let Some(vocabulary) = kept::for_walk(reader, &inverted, field)? else {
        let mut terms = inverted.terms().range().ge(text.as_bytes()).into_stream()?;
        while terms.advance() && terms.key().starts_with(text.as_bytes()) {
            visit(terms.value());
        }
        return Ok(());
    };
    for length in length(text.as_bytes())..=LONG {
        let range = vocabulary.beginning(length, text.as_bytes());
        vocabulary.infos[range].iter().for_each(&mut visit);
    }
    Ok(())
}

#[cfg(test)]
mod tests;

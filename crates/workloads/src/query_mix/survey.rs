//! Words of a corpus, and their numbers of documents.

use std::collections::{HashMap, HashSet};

use plimsoll_core::rng::Rng;

use crate::corpus::{CorpusError, Document, Documents};

/// Different words that are counted; those met first after this many are left out.
const WORDS_MAX: usize = 2_000_000;
/// Documents that queries are made from: a uniform sample.
const SAMPLE_DOCUMENTS: usize = 4000;
/// Letters of a word that can be asked for.
const LETTERS: std::ops::RangeInclusive<usize> = 3..=20;
/// Fewest documents with a word that is asked for.
const DOCUMENTS_MIN: u64 = 3;
/// At most one document in this many has it.
const DOCUMENTS_ONE_IN: u64 = 20;

/// The words of a text as start, end and lower case. Words are runs of letters and digits; only
/// those that every tokenizer sees alike (ASCII letters, of a usual length) are given, others only
/// part them.
pub(super) fn terms(text: &str) -> impl Iterator<Item = (usize, usize, String)> {
    tokens(text).filter_map(|(start, token)| {
        let plain =
            LETTERS.contains(&token.len()) && token.bytes().all(|b| b.is_ascii_alphabetic());
        plain.then(|| (start, start + token.len(), token.to_ascii_lowercase()))
    })
}

fn tokens(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &text[at..];
        let start = at + rest.find(char::is_alphanumeric)?;
        let length = text[start..].find(|c: char| !c.is_alphanumeric());
        at = length.map_or(text.len(), |length| start + length);
        Some((start, &text[start..at]))
    })
}

/// Result of one pass over a corpus.
pub(super) struct Survey {
    pub documents: u64,
    pub sample: Vec<Document>,
    /// Words that no document has.
    pub absent: Vec<String>,
    words: HashMap<Box<str>, Count>,
}

struct Count {
    documents: u64,
    last: u64,
}

impl Survey {
    /// Reads all documents, and finds `absent` words that none has.
    pub fn of(all: Documents, absent: usize, rng: &mut Rng) -> Result<Self, CorpusError> {
        let mut candidates = made_up(absent, rng);
        let mut found =
            Self { documents: 0, sample: Vec::new(), absent: vec![], words: HashMap::new() };
        let mut seen = HashSet::new();
        for document in all {
            let document = document?;
            found.documents += 1;
            for text in [&document.title, &document.body] {
                found.count(text, &candidates, &mut seen);
            }
            // Reservoir sampling: each document so far is in the sample with the same odds.
            if found.sample.len() < SAMPLE_DOCUMENTS {
                found.sample.push(document);
            } else if let Some(place) = found.sample.get_mut(rng.below(found.documents) as usize) {
                *place = document;
            }
        }
        candidates.retain(|word| !seen.contains(word));
        found.absent = candidates.into_iter().collect();
        // A set has no order of its own; the queries must not depend on it.
        found.absent.sort_unstable();
        rng.shuffle(&mut found.absent);
        Ok(found)
    }

    fn count(&mut self, text: &str, absent: &HashSet<String>, seen: &mut HashSet<String>) {
        for (_, _, word) in terms(text) {
            if absent.contains(&word) {
                seen.insert(word.clone());
            }
            let room = self.words.len() < WORDS_MAX;
            match self.words.get_mut(word.as_str()) {
                Some(count) if count.last == self.documents => {}
                Some(count) => {
                    count.documents += 1;
                    count.last = self.documents;
                }
                None if room => {
                    let count = Count { documents: 1, last: self.documents };
                    self.words.insert(word.into_boxed_str(), count);
                }
                None => {}
            }
        }
    }

    /// Number of documents that have a word.
    pub fn documents_with(&self, word: &str) -> u64 {
        self.words.get(word).map_or(0, |count| count.documents)
    }

    /// Neither a stop word nor a rarity.
    pub fn fits(&self, word: &str) -> bool {
        let most = (self.documents / DOCUMENTS_ONE_IN).max(DOCUMENTS_MIN);
        (DOCUMENTS_MIN..=most).contains(&self.documents_with(word))
    }

    /// The words of a document that can be asked for, in the order of its text.
    pub fn fit_words(&self, document: &Document) -> Vec<String> {
        let both = terms(&document.title).chain(terms(&document.body));
        both.map(|(_, _, word)| word).filter(|word| self.fits(word)).collect()
    }
}

/// Pronounceable words of 12 letters, half again as many as wanted; a text may have some of them.
fn made_up(wanted: usize, rng: &mut Rng) -> HashSet<String> {
    const CONSONANTS: &[u8] = b"bdfgklmnprstvz";
    const VOWELS: &[u8] = b"aeiou";
    let mut words = HashSet::new();
    while words.len() < wanted + wanted.div_ceil(2) {
        let letter = |i: u32, rng: &mut Rng| {
            let from = if i.is_multiple_of(2) { CONSONANTS } else { VOWELS };
            char::from(from[rng.below(from.len() as u64) as usize])
        };
        words.insert((0..12).map(|i| letter(i, rng)).collect());
    }
    words
}

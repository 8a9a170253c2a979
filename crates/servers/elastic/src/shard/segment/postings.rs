//! The values of one field of the documents of a segment in the making, and how they become its postings.

use super::terms::Terms;
use std::io;
use tantivy::DocId;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::FieldSerializer;

/// Positions between the end of a value and the beginning of the next one of the same document, as in
/// Elasticsearch: a phrase whose words may move less does not reach from one into the other.
pub(super) const GAP: u32 = 100;
/// The place of a document that is not written.
pub(super) const GONE: DocId = DocId::MAX;

/// A value: where its words begin.
struct Value {
    document: DocId,
    first: u32,
    /// The position of the first word.
    position: u32,
}

/// All values of a field as numbers of words, one after the other.
pub(super) struct Values {
    pub(super) terms: Terms,
    words: Vec<u32>,
    values: Vec<Value>,
    /// Position of the next value of the same document.
    next_position: u32,
    /// Every word of a document counts, and its position; otherwise only that it is there.
    positions: bool,
}

/// The occurrences of the words, put together by word.
struct Occurrences {
    /// Ends of the positions of each word; those of the first one begin at 0.
    ends: Vec<u32>,
    /// Document and position, rising.
    all: Vec<(DocId, u32)>,
}

impl Values {
    pub(super) fn new(positions: bool) -> Self {
        let (words, values) = (Vec::new(), Vec::new());
        Self { terms: Terms::new(), words, values, next_position: 0, positions }
    }

    /// Bytes of memory, with those that it takes to write them.
    pub(super) fn size(&self) -> usize {
        self.terms.size() + 12 * self.words.len() + size_of::<Value>() * self.values.len()
    }

    /// Begins a value of a document.
    pub(super) fn begin(&mut self, document: DocId) {
        let same = self.values.last().is_some_and(|last| last.document == document);
        let position = if same { self.next_position } else { 0 };
        self.values.push(Value { document, first: self.words.len() as u32, position });
    }

    /// Adds a word to the value; gives its number.
    pub(super) fn add(&mut self, word: &[u8]) -> u32 {
        let number = self.terms.number(word);
        self.words.push(number);
        number
    }

    /// Ends the value.
    pub(super) fn end(&mut self) {
        if let Some(value) = self.values.last() {
            let length = self.words.len() as u32 - value.first;
            // Of tens of millions of values the last ones stand in one place.
            self.next_position = value.position.saturating_add(length).saturating_add(GAP);
        }
    }

    /// The values of the documents that are written: the place of the document, the first position, the words.
    pub(super) fn each<'a>(
        &'a self,
        places: &'a [DocId],
    ) -> impl Iterator<Item = (DocId, u32, &'a [u32])> {
        let ends = self.values.iter().skip(1).map(|value| value.first as usize);
        let ends = ends.chain([self.words.len()]);
        self.values.iter().zip(ends).filter_map(|(value, end)| {
            let place = places[value.document as usize];
            let words = &self.words[value.first as usize..end];
            (place != GONE).then_some((place, value.position, words))
        })
    }

    /// Number of words that each document has, as a segment keeps it, and all together.
    pub(super) fn norms(&self, places: &[DocId], documents: usize) -> (Vec<u8>, u64) {
        let mut lengths = vec![0; documents];
        let mut total = 0;
        for (place, _, words) in self.each(places) {
            lengths[place as usize] += words.len() as u32;
            total += words.len() as u64;
        }
        (lengths.into_iter().map(FieldNormReader::fieldnorm_to_id).collect(), total)
    }

    fn occurrences(&self, places: &[DocId]) -> Occurrences {
        let mut ends = vec![0_u32; self.terms.len()];
        for (_, _, words) in self.each(places) {
            for word in words {
                ends[*word as usize] += 1;
            }
        }
        let mut total = 0;
        for end in &mut ends {
            total += std::mem::replace(end, total);
        }
        // Each word's end is where it begins, until its occurrences have been put there.
        let mut all = vec![(0, 0); total as usize];
        for (place, position, words) in self.each(places) {
            for (at, word) in words.iter().enumerate() {
                let end = &mut ends[*word as usize];
                all[*end as usize] = (place, position.saturating_add(at as u32));
                *end += 1;
            }
        }
        Occurrences { ends, all }
    }

    /// Writes the words and where they are.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(super) fn write(
        &self,
        places: &[DocId],
        mut serializer: FieldSerializer<'_>,
    ) -> io::Result<()> {
        let Occurrences { ends, all } = self.occurrences(places);
        let mut deltas = Vec::new();
        for number in self.terms.sorted() {
            let start = if number == 0 { 0 } else { ends[number as usize - 1] };
            let found = &all[start as usize..ends[number as usize] as usize];
            if found.is_empty() {
                // Only documents that are gone had it.
                continue;
            }
            let of_documents = || found.chunk_by(|one, other| one.0 == other.0);
            let documents = of_documents().count() as u32;
            serializer.new_term(self.terms.word(number), documents, self.positions)?;
            for one in of_documents() {
                deltas.clear();
                if self.positions {
                    let mut last = 0;
                    deltas.extend(one.iter().map(|(_, at)| at - std::mem::replace(&mut last, *at)));
                }
                serializer.write_doc(one[0].0, deltas.len() as u32, &deltas);
            }
            serializer.close_term()?;
        }
        serializer.close()
    }
}

//! Documents one behind the other, and sets of them.

/// Documents in one run of bytes, in order.
#[derive(Clone, Copy, Debug)]
pub struct Corpus<'a> {
    text: &'a [u8],
    ends: &'a [u64],
}

/// Reason why bytes and ends do not make a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CorpusError {
    /// Ends must not decrease.
    #[error("document {document} ends at byte {end}, before the one ahead of it")]
    Order {
        /// Index of the document, from 0.
        document: usize,
        /// Stated end.
        end: u64,
    },
    /// The last document must end where the text does.
    #[error("the last document ends at byte {end}, the text at byte {length}")]
    End {
        /// End of the last document; 0 without documents.
        end: u64,
        /// Length of the text.
        length: usize,
    },
}

impl<'a> Corpus<'a> {
    /// Documents in `text`: the first starts at 0, each ends at its entry of `ends` (the byte behind its last),
    /// where the next one starts.
    ///
    /// # Errors
    ///
    /// Ends that decrease, or a last end that is not the end of the text.
    pub fn new(text: &'a [u8], ends: &'a [u64]) -> Result<Self, CorpusError> {
        if let Some(at) = ends.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(CorpusError::Order { document: at + 1, end: ends[at + 1] });
        }
        let end = ends.last().copied().unwrap_or(0);
        if usize::try_from(end) != Ok(text.len()) {
            return Err(CorpusError::End { end, length: text.len() });
        }
        Ok(Self { text, ends })
    }

    /// Number of documents.
    pub fn documents(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of all documents.
    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    /// The bytes of one document.
    ///
    /// # Panics
    ///
    /// If there is no such document.
    pub fn document(&self, document: usize) -> &'a [u8] {
        &self.text[self.start(document)..self.end(document)]
    }

    /// Returns the start of a document.
    pub(crate) fn start(&self, document: usize) -> usize {
        if document == 0 { 0 } else { self.ends[document - 1] as usize }
    }

    /// Returns the end of a document.
    pub(crate) fn end(&self, document: usize) -> usize {
        self.ends[document] as usize
    }

    /// The document that byte `at` belongs to, which is `from` or behind it.
    pub(crate) fn document_of(&self, at: usize, from: usize) -> usize {
        // Steps that double: the document asked for is mostly near the last one.
        let at = at as u64;
        let (mut low, mut step) = (from, 1);
        while low + step < self.ends.len() && self.ends[low + step - 1] <= at {
            low += step;
            step *= 2;
        }
        let high = (low + step).min(self.ends.len());
        low + self.ends[low..high].partition_point(|&end| end <= at)
    }
}

/// A set of documents of a corpus, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    words: Vec<u64>,
    documents: usize,
}

impl Found {
    /// An empty set, for a corpus of this many documents.
    pub fn new(documents: usize) -> Self {
        Self { words: vec![0; documents.div_ceil(64)], documents }
    }

    /// Adds one document.
    ///
    /// # Panics
    ///
    /// If the number is not below the count of the set.
    pub fn insert(&mut self, document: usize) {
        assert!(document < self.documents, "document {document} of {}", self.documents);
        self.words[document / 64] |= 1 << (document % 64);
    }

    /// Returns true if the document is in the set.
    pub fn contains(&self, document: usize) -> bool {
        self.words.get(document / 64).is_some_and(|word| word >> (document % 64) & 1 == 1)
    }

    /// Number of documents that are in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The documents in the set, in rising order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            std::iter::successors(Some(word), |rest| Some(rest & (rest.wrapping_sub(1))))
                .take_while(|&rest| rest != 0)
                .map(move |rest| at * 64 + rest.trailing_zeros() as usize)
        })
    }
}

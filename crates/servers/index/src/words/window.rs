//! Any of several words, gathered window by window.
//!
//! Each word writes its documents of a window into one set; then the set is walked. A document of a frequent word so
//! costs the same however many words there are.

use super::WordScorer;
use tantivy::query::Scorer;
use tantivy::{DocId, DocSet, Score, TERMINATED};

/// Documents of a window.
const WINDOW: usize = 4096;

/// Walks the documents of any of some words.
pub(super) struct Gathered {
    /// Those that have documents behind the window.
    words: Vec<WordScorer>,
    /// A bit for each document of the window that is still to come.
    docs: Box<[u64; WINDOW / 64]>,
    sums: Box<[Score; WINDOW]>,
    /// The highest score of each document, and the share of the others that counts; otherwise the sums count.
    best: Option<(Box<[Score; WINDOW]>, Score)>,
    /// The first document of the window.
    start: DocId,
    /// The part of the window that the walk is at.
    at: usize,
    doc: DocId,
    score: Score,
    size: u32,
}

impl Gathered {
    pub(super) fn new(words: Vec<WordScorer>, tie_breaker: Option<Score>) -> Self {
        let size = words.iter().map(DocSet::size_hint).fold(0, u32::saturating_add);
        let mut gathered = Self {
            words,
            docs: Box::new([0; WINDOW / 64]),
            sums: Box::new([0.0; WINDOW]),
            best: tie_breaker.map(|tie_breaker| (Box::new([0.0; WINDOW]), tie_breaker)),
            start: 0,
            at: WINDOW / 64,
            doc: 0,
            score: 0.0,
            size,
        };
        gathered.advance();
        gathered
    }

    /// Gathers the next window; `false` when there is none.
    fn gather(&mut self) -> bool {
        self.words.retain(|word| word.doc() != TERMINATED);
        let Some(start) = self.words.iter().map(DocSet::doc).min() else { return false };
        (self.start, self.at) = (start, 0);
        for word in &mut self.words {
            loop {
                let place = (word.doc() - start) as usize;
                if place >= WINDOW {
                    break;
                }
                let score = word.score();
                self.docs[place / 64] |= 1 << (place % 64);
                self.sums[place] += score;
                if let Some((best, _)) = &mut self.best {
                    best[place] = best[place].max(score);
                }
                word.advance();
            }
        }
        true
    }

    /// Takes a document out of the window.
    fn take(&mut self, place: usize) {
        self.doc = self.start + place as DocId;
        let sum = std::mem::take(&mut self.sums[place]);
        self.score = match &mut self.best {
            None => sum,
            Some((best, tie_breaker)) => {
                let best = std::mem::take(&mut best[place]);
                best + (sum - best) * *tie_breaker
            }
        };
    }
}

impl DocSet for Gathered {
    fn advance(&mut self) -> DocId {
        loop {
            while let Some(docs) = self.docs.get_mut(self.at) {
                if *docs != 0 {
                    let place = self.at * 64 + docs.trailing_zeros() as usize;
                    *docs &= *docs - 1;
                    self.take(place);
                    return self.doc;
                }
                self.at += 1;
            }
            if !self.gather() {
                self.doc = TERMINATED;
                return TERMINATED;
            }
        }
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if target >= self.start.saturating_add(WINDOW as DocId) {
            self.docs.fill(0);
            self.sums.fill(0.0);
            if let Some((best, _)) = &mut self.best {
                best.fill(0.0);
            }
            self.at = WINDOW / 64;
            for word in self.words.iter_mut().filter(|word| word.doc() < target) {
                word.seek(target);
            }
            return self.advance();
        }
        while self.doc < target {
            self.advance();
        }
        self.doc
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.size
    }
}

impl Scorer for Gathered {
    fn score(&mut self) -> Score {
        self.score
    }
}

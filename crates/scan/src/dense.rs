//! Dense matches: every document from its start, each in a lane of its own, until its first match.
//!
//! The streams of [`kernel::run`](crate::kernel::run) read all of the text whatever they find. If most documents
//! match somewhere near their start, most of the text need not be read at all. Documents are taken by pieces that
//! overlap as far as a match may reach: a lane whose piece had no match gives the next piece of its document back.

#![allow(clippy::needless_range_loop, reason = "see `Vector`: iterators are not always inlined")]

use crate::corpus::{Corpus, Found};
use crate::kernel::State;
use crate::metric::Metric;
use crate::pattern::Pattern;
use crate::plan::{MAX_ROWS, Plan};
use crate::sink::MAX_STREAMS;
use crate::vector::{BLOCK, Vector};

/// Documents that are looked at, and those found among them.
pub(crate) struct Pieces<'a> {
    corpus: Corpus<'a>,
    found: &'a mut Found,
    pattern: &'a Pattern,
    /// The next document, and the one behind the last.
    next: usize,
    behind: usize,
    /// Pieces that are left over: document and start.
    rest: Vec<(usize, usize)>,
    /// A piece and what two of them have in common, bytes.
    piece: usize,
    common: usize,
    /// The document of each lane, where its piece starts, and how much of the document is left from there.
    documents: [usize; MAX_STREAMS],
    starts: [usize; MAX_STREAMS],
    left: [usize; MAX_STREAMS],
}

impl<'a> Pieces<'a> {
    /// The documents from `first` to the one before `behind`. The plan's piece is the whole pattern.
    pub(crate) fn new(
        corpus: Corpus<'a>,
        pattern: &'a Pattern,
        plan: &Plan,
        (first, behind): (usize, usize),
        found: &'a mut Found,
    ) -> Self {
        // What is read twice is a quarter at most.
        let common = plan.reach() - 1;
        let piece = (4 * common).next_multiple_of(BLOCK).max(BLOCK);
        Self {
            corpus,
            found,
            pattern,
            next: first,
            behind,
            rest: Vec::new(),
            piece,
            common,
            documents: [0; MAX_STREAMS],
            starts: [0; MAX_STREAMS],
            left: [0; MAX_STREAMS],
        }
    }

    /// Gives a piece to each lane, as far as there are any. Returns how many have one; the others repeat it.
    #[inline(never)]
    fn fill(&mut self, lanes: usize) -> usize {
        let mut filled = 0;
        while filled < lanes {
            let (document, start) = match self.rest.pop() {
                Some(piece) => piece,
                None if self.next < self.behind => {
                    self.next += 1;
                    (self.next - 1, self.corpus.start(self.next - 1))
                }
                None => break,
            };
            let end = self.corpus.end(document);
            if end - start < self.pattern.least_bytes() || self.found.contains(document) {
                continue;
            }
            if start + self.piece > self.corpus.text().len() {
                if self.pattern.matches(&self.corpus.text()[start..end]) {
                    self.found.insert(document);
                }
                continue;
            }
            self.documents[filled] = document;
            self.starts[filled] = start;
            self.left[filled] = end - start;
            filled += 1;
        }
        if filled > 0 {
            for lane in filled..lanes {
                self.starts[lane] = self.starts[0];
                self.left[lane] = 0;
            }
        }
        filled
    }

    /// Takes the results of the first lanes: a bit for each one that has a match.
    #[inline(never)]
    fn settle(&mut self, filled: usize, hits: u64) {
        for lane in 0..filled {
            if hits >> lane & 1 == 1 {
                self.found.insert(self.documents[lane]);
            } else if self.left[lane] > self.piece {
                let next = self.starts[lane] + self.piece - self.common;
                self.rest.push((self.documents[lane], next));
            }
        }
    }
}

/// Looks at all the documents; returns how many bytes that took.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn run<V: Vector, const G: usize>(plan: &Plan, pieces: &mut Pieces<'_>) -> u64 {
    assert!(plan.rows <= MAX_ROWS, "a piece that fits the tables");
    let lanes = V::LANES * G;
    let text = pieces.corpus.text().as_ptr();
    // Without insertions nothing ends before it could begin.
    let whole = plan.metric == Metric::Hamming || plan.distance == 0;
    let too_early = if whole { (1_u64 << (plan.rows - 1)) - 1 } else { 0 };
    let mut read = 0;
    // SAFETY: the caller vouches for the instructions; `fill` makes sure that every piece lies within the text.
    unsafe {
        let mut state = State::<V, G>::new();
        loop {
            let filled = pieces.fill(lanes);
            if filled == 0 {
                return read;
            }
            state.restart(plan);
            let mut hits = 0_u64;
            let mut at = 0;
            while at < pieces.piece {
                let ends = state.next(plan, text, &pieces.starts, at);
                let early = if at == 0 { too_early } else { 0 };
                for g in 0..G {
                    if ends[g].any() {
                        let words = ends[g].words();
                        for lane in 0..V::LANES {
                            let left = pieces.left[g * V::LANES + lane].saturating_sub(at);
                            let within = if left < BLOCK { (1 << left) - 1 } else { u64::MAX };
                            let hit = words[lane] & within & !early != 0;
                            hits |= u64::from(hit) << (g * V::LANES + lane);
                        }
                    }
                }
                at += BLOCK;
            }
            pieces.settle(filled, hits);
            read += (lanes * pieces.piece) as u64;
        }
    }
}

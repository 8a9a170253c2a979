//! The action at a match of the piece: the document is found, and the whole pattern is
//! tested around the position.

use crate::corpus::{Corpus, Found};
use crate::metric::Metric;
use crate::pattern::Pattern;
use crate::plan::Plan;
use crate::vector::BLOCK;

/// The most streams that a kernel reads at a time.
pub(crate) const MAX_STREAMS: usize = 16;

/// Takes the places that kernels propose, for one stretch of a corpus.
pub(crate) struct Sink<'a> {
    pub(crate) corpus: Corpus<'a>,
    pub(crate) found: &'a mut Found,
    pattern: &'a Pattern,
    /// Bytes of the pattern before and behind the piece, with the errors allowed.
    before: usize,
    behind: usize,
    /// After this many bytes of a document a match of the piece is one of the pattern; `None` if the piece is
    /// not the whole pattern.
    sure_behind: Option<usize>,
    /// For each stream, a document that none of its later places lies before.
    cursor: [usize; MAX_STREAMS],
    /// For each stream, the place before which nothing is news.
    skip_until: [usize; MAX_STREAMS],
    /// Bytes that were looked at in vain.
    pub(crate) wasted_bytes: u64,
}

impl<'a> Sink<'a> {
    /// A sink for streams whose first document is `first`, or behind it.
    pub(crate) fn new(
        corpus: Corpus<'a>,
        pattern: &'a Pattern,
        plan: &Plan,
        first: usize,
        found: &'a mut Found,
    ) -> Self {
        let errors = match plan.metric {
            Metric::Edits => pattern.distance as usize,
            Metric::Hamming => 0,
        };
        let length = pattern.bytes.len();
        Self {
            corpus,
            found,
            pattern,
            before: plan.offset + plan.rows + errors,
            behind: length - plan.offset - plan.rows + errors,
            sure_behind: plan.is_whole(pattern).then_some(length + errors),
            cursor: [first; MAX_STREAMS],
            skip_until: [0; MAX_STREAMS],
            wasted_bytes: 0,
        }
    }

    /// A match of the piece ends with the byte `last`, which lies in the block up to `block_end`.
    fn hit(&mut self, stream: usize, last: usize, block_end: usize) {
        let document = self.corpus.document_of(last, self.cursor[stream]);
        self.cursor[stream] = document;
        let (start, end) = (self.corpus.start(document), self.corpus.end(document));
        if end - start < self.pattern.least_bytes() || self.found.contains(document) {
            self.skip_until[stream] = end;
            return;
        }
        let sure = self.sure_behind.is_some_and(|reach| last + 1 >= start + reach);
        // What is not there up to the end of the block need not be looked for again in this block.
        let low = start.max((last + 1).saturating_sub(self.before));
        let high = end.min(block_end + self.behind);
        if sure || self.pattern.matches(&self.corpus.text()[low..high]) {
            self.found.insert(document);
            self.skip_until[stream] = end;
        } else {
            self.wasted_bytes += (high - low) as u64;
            self.skip_until[stream] = end.min(block_end);
        }
    }

    /// The set bits of `ends` are the last bytes of matches, in the block that starts at `start`.
    pub(crate) fn ends(&mut self, stream: usize, start: usize, ends: u64) {
        let mut rest = ends;
        loop {
            let done = self.skip_until[stream].saturating_sub(start);
            if done >= BLOCK {
                return;
            }
            rest &= u64::MAX << done;
            if rest == 0 {
                return;
            }
            self.hit(stream, start + rest.trailing_zeros() as usize, start + BLOCK);
        }
    }
}

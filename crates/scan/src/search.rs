//! A search: stretches of a corpus, each through the kernel that suits this processor.

use crate::anchors::Anchors;
use crate::corpus::{Corpus, Found};
use crate::dense::{self, Pieces};
use crate::instructions::Kernel;
use crate::kernel;
use crate::pattern::Pattern;
use crate::plan::{MAX_ROWS, Plan};
use crate::sink::Sink;
use crate::vector::portable::Words;
use std::ops::Range;

/// The bytes of a stretch: the streams of a kernel lie this close together, and the plan may change as often.
/// Longer documents are not cut.
const STRETCH_BYTES: usize = 1 << 20;

/// The same as long as nothing is known of how rare the pattern is.
const TRIAL_BYTES: usize = 1 << 16;

/// If more than one byte in this number is compared in vain, the plan takes more rows.
const WASTE_ONE_IN: u64 = 200;

/// Fewer documents than this are not worth lanes of their own.
const MIN_DENSE_DOCUMENTS: usize = 32;

/// A pattern with so few bytes that must be equal matches nearly everywhere.
const DENSE_EQUAL_BYTES: usize = 2;

impl Pattern {
    /// A search for this pattern, with the fastest kernel that this processor has.
    pub fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    /// The documents of the corpus that contain a match, in rising order.
    pub fn documents(&self, corpus: &Corpus<'_>, each: &mut dyn FnMut(usize)) {
        let mut found = Found::new(corpus.documents());
        self.scan().documents(corpus, &mut found);
        found.iter().for_each(each);
    }
}

/// A search for one pattern; it may go over several corpora, and learns from each how rare the pattern is.
pub struct Scan<'p> {
    pattern: &'p Pattern,
    plans: Vec<Plan>,
    /// Parts of the pattern to look for instead, as long as that is faster.
    anchors: Option<Anchors>,
    kernel: Kernel,
    /// True if most documents match early, as far as that is known.
    dense: Option<bool>,
    /// The plans were good enough for the last stretch.
    settled: bool,
}

impl<'p> Scan<'p> {
    /// A search with the fastest kernel.
    pub(crate) fn new(pattern: &'p Pattern) -> Self {
        let kernel = Kernel::available().last().copied().unwrap_or(Kernel::Bytes);
        let equal = pattern.bytes.len().saturating_sub(pattern.distance as usize);
        let dense = (equal <= DENSE_EQUAL_BYTES).then_some(true);
        let plans = Plan::all(pattern);
        let by_planes_ps = plans.iter().map(Plan::text_ps).sum();
        let hope = if dense.is_none() { Some(by_planes_ps) } else { None };
        let anchors = hope.and_then(|otherwise_ps| Anchors::new(pattern, otherwise_ps));
        Self { pattern, plans, anchors, kernel, dense, settled: false }
    }

    /// The same with another kernel, as tests and measurements want it.
    ///
    /// # Panics
    ///
    /// If the processor cannot run it.
    #[must_use]
    pub fn with_kernel(mut self, kernel: Kernel) -> Self {
        assert!(Kernel::available().contains(&kernel), "{kernel:?} is not for this processor");
        self.kernel = kernel;
        self
    }

    /// The same with a piece of this many bytes of the pattern to begin with, for tests and measurements.
    /// The result is the same with any.
    #[must_use]
    pub fn with_rows(mut self, rows: usize) -> Self {
        let (pattern, rows) = (self.pattern, rows.clamp(1, MAX_ROWS));
        self.plans = vec![Plan::new(pattern, 0..pattern.bytes.len(), pattern.distance, rows)];
        self.anchors = None;
        self
    }

    /// The same with lanes for documents to begin with, or without them, as tests and measurements want it. The
    /// result is the same.
    #[must_use]
    pub fn with_dense(mut self, dense: bool) -> Self {
        self.dense = Some(dense);
        self.anchors = None;
        self
    }

    /// The same with this many bytes of each piece of the pattern that must be exact, 2 to 4, for tests and
    /// measurements want it. The result is the same.
    #[must_use]
    pub fn with_anchors(mut self, probes: usize) -> Self {
        self.anchors = Anchors::with_probes(self.pattern, probes);
        self
    }

    /// Returns true if parts of the pattern are looked for that must be there as they are.
    pub fn is_anchored(&self) -> bool {
        self.anchors.is_some()
    }

    /// Number of bytes of the pattern that the kernel looks for.
    pub fn rows(&self) -> usize {
        self.plans.iter().map(|plan| plan.rows).sum()
    }

    /// Adds the documents that contain a match to `found`, whose numbers are those of the corpus. Earlier
    /// entries are kept.
    ///
    /// # Panics
    ///
    /// If `found` was made for fewer documents than the corpus has.
    pub fn documents(&mut self, corpus: &Corpus<'_>, found: &mut Found) {
        let mut next = 0;
        while next < corpus.documents() {
            next = self.step(corpus, next, found);
        }
    }

    /// The same for one stretch of about a mebibyte of documents, from document `first`. Returns the first
    /// document behind it.
    ///
    /// # Panics
    ///
    /// As [`documents`](Self::documents).
    pub fn step(&mut self, corpus: &Corpus<'_>, first: usize, found: &mut Found) -> usize {
        if first >= corpus.documents() {
            return corpus.documents();
        }
        let from = corpus.start(first);
        let aim = from + if self.settled { STRETCH_BYTES } else { TRIAL_BYTES };
        let behind = if aim >= corpus.text().len() {
            corpus.documents()
        } else {
            corpus.document_of(aim, first).max(first + 1)
        };
        let length = corpus.end(behind - 1) - from;
        let documents = (first, behind);
        if self.pattern.distance as usize >= self.pattern.bytes.len() {
            // Whatever is long enough matches, by edits even an empty document.
            let least = self.pattern.least_bytes();
            let long = |document: &usize| corpus.document(*document).len() >= least;
            (first..behind).filter(long).for_each(|document| found.insert(document));
        } else if !self.anchored(corpus, first, from..from + length, found)
            && !self.dense(corpus, documents, length, found)
            && !self.streams(corpus, documents, (from, length), found)
        {
            for document in first..behind {
                if self.pattern.matches(corpus.document(document)) {
                    found.insert(document);
                }
            }
        }
        behind
    }

    /// Looks for parts of the pattern, if that is likely to pay. Tells whether it did.
    fn anchored(
        &mut self,
        corpus: &Corpus<'_>,
        first: usize,
        stretch: Range<usize>,
        found: &mut Found,
    ) -> bool {
        let Some(anchors) = &mut self.anchors else { return false };
        let done = anchors.documents(self.kernel, (self.pattern, corpus), first, stretch, found);
        self.settled |= done;
        if !done || !anchors.pay() {
            let by_planes_ps = self.plans.iter().map(Plan::text_ps).sum();
            let rarer = done.then(|| anchors.rarer(self.pattern, by_planes_ps));
            self.anchors = rarer.flatten();
            self.settled = false;
        }
        done
    }

    /// Takes documents one by one, if that is likely to pay. Tells whether it did.
    fn dense(
        &mut self,
        corpus: &Corpus<'_>,
        (first, behind): (usize, usize),
        length: usize,
        found: &mut Found,
    ) -> bool {
        let [plan] = self.plans.as_slice() else { return false };
        let whole = plan.is_whole(self.pattern) && plan.rows as u32 > plan.distance;
        let few = behind - first < MIN_DENSE_DOCUMENTS;
        if self.dense != Some(true) || !whole || few || self.kernel == Kernel::Bytes {
            return false;
        }
        let mut pieces = Pieces::new(*corpus, self.pattern, plan, (first, behind), found);
        let read = match self.kernel {
            Kernel::Bytes => return false,
            // SAFETY: words need no special instructions.
            Kernel::Portable => unsafe { dense::run::<Words<4>, 1>(plan, &mut pieces) },
            // SAFETY: the kernel was among those that `Kernel::available` found.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { dense_avx2(plan, &mut pieces) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { dense_avx512(plan, &mut pieces) },
        };
        // Pieces overlap: as many bytes as there are take longer so than in streams.
        self.dense = Some(read < length as u64);
        true
    }

    /// Reads all of the text, as streams. `false` when it is too short for that, or the pattern too vague; then some
    /// matches may have been found.
    fn streams(
        &mut self,
        corpus: &Corpus<'_>,
        (first, behind): (usize, usize),
        (from, length): (usize, usize),
        found: &mut Found,
    ) -> bool {
        let least = self.pattern.least_bytes();
        let short = |document: usize| corpus.document(document).len() < least;
        if least > MAX_ROWS && (first..behind).all(short) {
            return true;
        }
        self.settled = true;
        for number in 0..self.plans.len() {
            let plan = &self.plans[number];
            let mut sink = Sink::new(*corpus, self.pattern, plan, first, found);
            if plan.rows as u32 <= plan.distance || !self.run(plan, (from, length), &mut sink) {
                return false;
            }
            // Too much was looked at in vain: longer pieces are rarer.
            let excess = sink.wasted_bytes * WASTE_ONE_IN / length.max(1) as u64;
            if let Some(doublings) = excess.checked_ilog2()
                && let Some(longer) = plan.longer(self.pattern, 2 + 2 * doublings as usize)
            {
                self.plans[number] = longer;
                self.settled = false;
            }
        }
        if self.dense.is_none() {
            let documents = behind - first;
            let hits = (first..behind).filter(|document| found.contains(*document)).count();
            self.dense = (hits * 2 > documents).then_some(true);
        }
        true
    }

    fn run(&self, plan: &Plan, stretch: (usize, usize), sink: &mut Sink<'_>) -> bool {
        match self.kernel {
            Kernel::Bytes => false,
            // SAFETY: words need no special instructions.
            Kernel::Portable => unsafe { kernel::run::<Words<4>, 1>(plan, stretch, sink) },
            // SAFETY: the kernel was among those that `Kernel::available` found.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { run_avx2(plan, stretch, sink) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { run_avx512(plan, stretch, sink) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn run_avx2(plan: &Plan, stretch: (usize, usize), sink: &mut Sink<'_>) -> bool {
    // SAFETY: this function is only called where AVX2 is.
    unsafe { kernel::run::<crate::vector::avx2::Avx2, 2>(plan, stretch, sink) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512bitalg,gfni,bmi1,bmi2,popcnt"
)]
fn run_avx512(plan: &Plan, stretch: (usize, usize), sink: &mut Sink<'_>) -> bool {
    // SAFETY: this function is only called where all of these are.
    unsafe { kernel::run::<crate::vector::avx512::Avx512, 2>(plan, stretch, sink) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn dense_avx2(plan: &Plan, pieces: &mut Pieces<'_>) -> u64 {
    // SAFETY: this function is only called where AVX2 is.
    unsafe { dense::run::<crate::vector::avx2::Avx2, 2>(plan, pieces) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512bitalg,gfni,bmi1,bmi2,popcnt"
)]
fn dense_avx512(plan: &Plan, pieces: &mut Pieces<'_>) -> u64 {
    // SAFETY: this function is only called where all of these are.
    unsafe { dense::run::<crate::vector::avx512::Avx512, 2>(plan, pieces) }
}

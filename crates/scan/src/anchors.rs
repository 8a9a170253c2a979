//! Parts of the pattern that stand in the text as they are.
//!
//! Of `k + 1` disjoint parts of a pattern, `k` errors leave one untouched. So where a pattern is long and errors are few, it is
//! enough to look for the parts: two to four of the rarest bytes of each are compared with the text, 64 places at a
//! time, and what is around the few places where they all stand is looked at. This reads the text about as fast as it
//! comes from memory. Where parts are short or frequent it is given up.

use crate::corpus::{Corpus, Found};
use crate::instructions::Kernel;
use crate::metric::{Case, Metric};
use crate::pattern::Pattern;
use crate::plan::rarity;
use crate::vector::BLOCK;
use std::ops::Range;

/// The most bytes of a part that are compared at a time.
const MAX_PROBES: usize = 4;
/// Bytes that are compared at each place, all parts together: they have to stay in registers.
const MAX_COMPARED: usize = 16;
/// Cost of a byte of text at least, as fast as memory is, and for each byte that is compared with it, picoseconds. Measured
/// on a Zen 4, as everything here: it only decides what is tried first.
const TEXT_PS: u64 = 55;
const PROBE_PS: u64 = 8;
/// Distance of the prefetch: it is one stream, and a block takes less time than memory does to answer.
#[cfg(target_arch = "x86_64")]
const AHEAD_BYTES: usize = 3072;
/// Blocks of text between two looks at what was found.
const BLOCKS: usize = 64;
/// Cost of a position that is tested, and of a byte that is compared with errors, picoseconds.
const PLACE_PS: u64 = 20_000;
const BYTE_PS: u64 = 3_000;
/// Budget before any measurement.
const ADVANCE_PS: u64 = 100_000_000;

/// More than anything costs for each byte of text: what was asked for by hand is not given up.
const UNLIMITED_PS: u64 = 1_000_000;

/// A byte of a part.
#[derive(Clone, Copy, Debug, Default)]
struct Probe {
    /// Bytes behind the first one of the part that is compared.
    gap: usize,
    value: u8,
}

/// A part of the pattern.
#[derive(Clone, Debug)]
struct Part {
    /// Range of bytes in the pattern.
    range: Range<usize>,
    /// Position of the first probe in the pattern.
    first: usize,
    probes: [Probe; MAX_PROBES],
}

/// All parts of a pattern.
#[derive(Clone, Debug)]
pub(crate) struct Anchors {
    parts: Vec<Part>,
    /// Number of bytes of each part that are compared.
    probes: usize,
    /// Bits that do not count when they are: the case of letters. Other characters are taken for one another then, which the
    /// second look tells apart.
    fold: u8,
    /// The farthest of them behind the first.
    reach: usize,
    /// The cost so far, and the budget.
    spent_ps: u64,
    allowed_ps: u64,
    allowed_a_byte_ps: u64,
}

/// The places of a block where the probes of a part stand.
#[derive(Clone, Copy)]
struct Places {
    block: usize,
    part: usize,
    bits: u64,
}

impl Part {
    fn new(pattern: &Pattern, range: Range<usize>, probes: usize) -> Self {
        let mut order: Vec<usize> = range.clone().collect();
        order.sort_by_key(|at| std::cmp::Reverse(rarity(pattern.bytes[*at])));
        order.truncate(probes);
        order.sort_unstable();
        let first = order[0];
        let mut all = [Probe::default(); MAX_PROBES];
        for (probe, at) in all.iter_mut().zip(order) {
            *probe = Probe { gap: at - first, value: pattern.bytes[at] };
        }
        Self { range, first, probes: all }
    }

    /// The part, and where it begins if it is there whole and its first probe at a place.
    fn begin(&self, pattern: &Pattern, text: &[u8], at: usize) -> Option<(Range<usize>, usize)> {
        let begin = (at + self.range.start).checked_sub(self.first)?;
        let here = text.get(begin..begin + self.range.len())?;
        let wanted = &pattern.bytes[self.range.clone()];
        let same = |(one, other): (&u8, &u8)| pattern.case.fold(*one) == *other;
        here.iter().zip(wanted).all(same).then(|| (self.range.clone(), begin))
    }

    /// In how many places of a text the probes stand once, by the rarity of their bytes.
    fn rarity(&self, probes: usize) -> f64 {
        let tenths: u32 = self.probes[..probes].iter().map(|probe| rarity(probe.value)).sum();
        (f64::from(tenths) / 10.0).exp2()
    }
}

impl Anchors {
    /// The pieces of a pattern, if this is likely to be faster than a method with the given cost for each byte of text.
    pub(crate) fn new(pattern: &Pattern, otherwise_ps: u64) -> Option<Self> {
        let possible = (2..=MAX_PROBES).filter_map(|probes| Self::with_probes(pattern, probes));
        let expected = possible.map(|all| (all.expected_ps(), all));
        let (least, all) = expected.min_by_key(|(expected, _)| *expected)?;
        // Texts differ: whether it pays is seen soon.
        (least < 2 * otherwise_ps).then(|| all.instead_of(otherwise_ps))
    }

    /// The same, with the cost for each byte of text at which it is given up.
    fn instead_of(self, otherwise_ps: u64) -> Self {
        Self { allowed_a_byte_ps: otherwise_ps.saturating_sub(self.text_ps()), ..self }
    }

    /// The same with one byte more of each part, if they have as many.
    pub(crate) fn rarer(&self, pattern: &Pattern, otherwise_ps: u64) -> Option<Self> {
        let rarer = Self::with_probes(pattern, self.probes + 1)?;
        (rarer.text_ps() < otherwise_ps).then(|| rarer.instead_of(otherwise_ps))
    }

    /// Cost of a byte of text as long as nothing is found.
    fn text_ps(&self) -> u64 {
        TEXT_PS.max(PROBE_PS * (self.parts.len() * self.probes) as u64)
    }

    /// Expected cost of a byte of text.
    fn expected_ps(&self) -> u64 {
        let chance: f64 = self.parts.iter().map(|part| 1.0 / part.rarity(self.probes)).sum();
        self.text_ps() + (chance * PLACE_PS as f64) as u64
    }

    /// The pieces of a pattern, with the number of bytes of each that are compared at a time; `None` if they are too
    /// short, or too many.
    pub(crate) fn with_probes(pattern: &Pattern, probes: usize) -> Option<Self> {
        let (length, count) = (pattern.bytes.len(), pattern.distance as usize + 1);
        let few = count.saturating_mul(probes) <= MAX_COMPARED;
        if !few || length / count < probes || !(2..=MAX_PROBES).contains(&probes) {
            return None;
        }
        let range = |part: usize| part * length / count..(part + 1) * length / count;
        let parts: Vec<Part> =
            (0..count).map(|part| Part::new(pattern, range(part), probes)).collect();
        let reach = parts.iter().map(|part| part.probes[probes - 1].gap).max().unwrap_or(0);
        let fold = if pattern.case == Case::IgnoreAscii { 0x20 } else { 0 };
        let (spent_ps, allowed_ps, allowed_a_byte_ps) = (0, ADVANCE_PS, UNLIMITED_PS);
        Some(Self { parts, probes, fold, reach, spent_ps, allowed_ps, allowed_a_byte_ps })
    }

    /// Returns true if it was worth it so far.
    pub(crate) fn pay(&self) -> bool {
        self.spent_ps <= self.allowed_ps
    }

    /// Puts the documents of a stretch that contain a match into `found`; the stretch begins with document `first`.
    /// `false` when this processor has no vectors for it, and nothing was done.
    pub(crate) fn documents(
        &mut self,
        kernel: Kernel,
        (pattern, corpus): (&Pattern, &Corpus<'_>),
        first: usize,
        stretch: Range<usize>,
        found: &mut Found,
    ) -> bool {
        let blocks: fn(&Self, &[u8], Range<usize>, &mut Vec<Places>) = match kernel {
            Kernel::Bytes | Kernel::Portable => return false,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => x86::avx2,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => x86::avx512,
        };
        let text = corpus.text();
        let whole = stretch.len().saturating_sub(self.reach) / BLOCK;
        let (mut places, mut document, mut at) = (Vec::new(), first, stretch.start);
        let end = stretch.start + whole * BLOCK;
        while at < end {
            let to = end.min(at + BLOCKS * BLOCK);
            places.clear();
            blocks(self, text, at..to, &mut places);
            self.look(pattern, corpus, (&mut document, &places), found);
            at = to;
        }
        // What is left is less than a block and the reach of the probes.
        places.clear();
        for block in (end..stretch.end).step_by(BLOCK) {
            for part in 0..self.parts.len() {
                let stands = |at: &usize| self.stands(part, &text[block + at..stretch.end]);
                let here = BLOCK.min(stretch.end - block);
                let bits = (0..here).filter(stands).fold(0, |bits, at| bits | 1 << at);
                places.push(Places { block, part, bits });
            }
        }
        self.look(pattern, corpus, (&mut document, &places), found);
        self.allowed_ps += self.allowed_a_byte_ps * stretch.len() as u64;
        true
    }

    /// Returns true if the probes of a part stand at the beginning of a text.
    fn stands(&self, part: usize, text: &[u8]) -> bool {
        let mut probes = self.parts[part].probes[..self.probes].iter();
        let same = |probe: &Probe, byte: &u8| byte | self.fold == probe.value | self.fold;
        probes.all(|probe| text.get(probe.gap).is_some_and(|byte| same(probe, byte)))
    }

    /// Looks at what is around places.
    fn look(
        &mut self,
        pattern: &Pattern,
        corpus: &Corpus<'_>,
        (document, places): (&mut usize, &[Places]),
        found: &mut Found,
    ) {
        for Places { block, part, bits } in places {
            let mut rest = *bits;
            while rest != 0 {
                let at = block + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                self.spent_ps += PLACE_PS;
                let part = &self.parts[*part];
                let Some(begin) = part.begin(pattern, corpus.text(), at) else { continue };
                // Places of other parts in the same block may lie before this one.
                *document = corpus.document_of(*block, *document);
                let here = corpus.document_of(at, *document);
                if !found.contains(here) && self.matches(pattern, corpus, here, begin) {
                    found.insert(here);
                }
            }
        }
    }

    /// Returns true if a document matches around a part of the pattern that begins somewhere.
    fn matches(
        &mut self,
        pattern: &Pattern,
        corpus: &Corpus<'_>,
        document: usize,
        (part, begin): (Range<usize>, usize),
    ) -> bool {
        let (start, end) = (corpus.start(document), corpus.end(document));
        let behind = begin + part.len();
        if begin < start || behind > end {
            return false;
        }
        if pattern.distance == 0 {
            return true;
        }
        let errors = match pattern.metric {
            Metric::Edits => pattern.distance as usize,
            Metric::Hamming => 0,
        };
        let low = start.max(begin.saturating_sub(part.start + errors));
        let high = end.min(behind + (pattern.bytes.len() - part.end) + errors);
        let matches = pattern.matches(&corpus.text()[low..high]);
        self.spent_ps += if matches { 0 } else { BYTE_PS * (high - low) as u64 };
        matches
    }
}

/// The compared bytes of all pieces stay in registers: so the numbers of pieces and of bytes are known to the compiler.
#[cfg(target_arch = "x86_64")]
#[allow(clippy::needless_range_loop, reason = "iterators are not always inlined")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;

    /// Calls a function for as many parts, and bytes of each, as there are.
    macro_rules! of_so_many {
        ($function:ident, $anchors:ident, $text:ident, $blocks:ident, $out:ident: $($parts:literal x $probes:literal),*) => {
            match ($anchors.parts.len(), $anchors.probes) {
                $(($parts, $probes) => $function::<$parts, $probes>($anchors, $text.as_ptr(), $blocks, $out),)*
                (parts, probes) => unreachable!("{parts} parts of {probes} bytes"),
            }
        };
        ($function:ident, $anchors:ident, $text:ident, $blocks:ident, $out:ident) => {
            of_so_many!(
                $function, $anchors, $text, $blocks, $out: 1 x 2, 2 x 2, 3 x 2, 4 x 2, 5 x 2, 6 x 2, 7 x 2, 8 x 2,
                1 x 3, 2 x 3, 3 x 3, 4 x 3, 5 x 3, 1 x 4, 2 x 4, 3 x 4, 4 x 4
            )
        };
    }

    /// Adds the places of whole blocks to `out`.
    pub(super) fn avx512(
        anchors: &Anchors,
        text: &[u8],
        blocks: Range<usize>,
        out: &mut Vec<Places>,
    ) {
        assert!(blocks.end + anchors.reach <= text.len() && blocks.len().is_multiple_of(BLOCK));
        // SAFETY: the kernel was among those that `Kernel::available` found; what is read lies within the text.
        unsafe { of_so_many!(blocks_avx512, anchors, text, blocks, out) }
    }

    /// The same, 32 places at a time.
    pub(super) fn avx2(
        anchors: &Anchors,
        text: &[u8],
        blocks: Range<usize>,
        out: &mut Vec<Places>,
    ) {
        assert!(blocks.end + anchors.reach <= text.len() && blocks.len().is_multiple_of(BLOCK));
        // SAFETY: as above.
        unsafe { of_so_many!(blocks_avx2, anchors, text, blocks, out) }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    fn blocks_avx512<const PARTS: usize, const PROBES: usize>(
        anchors: &Anchors,
        text: *const u8,
        blocks: Range<usize>,
        out: &mut Vec<Places>,
    ) {
        let fold = _mm512_set1_epi8(anchors.fold as i8);
        let mut value = [[fold; PROBES]; PARTS];
        let mut gap = [[0; PROBES]; PARTS];
        for part in 0..PARTS {
            for probe in 0..PROBES {
                let wanted = anchors.parts[part].probes[probe];
                value[part][probe] = _mm512_set1_epi8((wanted.value | anchors.fold) as i8);
                gap[part][probe] = wanted.gap;
            }
        }
        let mut block = blocks.start;
        while block < blocks.end {
            let (mut any, mut bits) = (0, [0; PARTS]);
            // SAFETY: the caller has made sure that the block and the reach of the probes lie within the text.
            unsafe {
                let here = text.add(block);
                _mm_prefetch::<_MM_HINT_T0>(here.wrapping_add(AHEAD_BYTES).cast());
                let first = _mm512_or_si512(_mm512_loadu_si512(here.cast()), fold);
                for part in 0..PARTS {
                    let mut equal = _mm512_cmpeq_epi8_mask(first, value[part][0]);
                    for probe in 1..PROBES {
                        let other = _mm512_loadu_si512(here.add(gap[part][probe]).cast());
                        let folded = _mm512_or_si512(other, fold);
                        equal = _mm512_mask_cmpeq_epi8_mask(equal, folded, value[part][probe]);
                    }
                    bits[part] = equal;
                    any |= equal;
                }
            }
            if any != 0 {
                push(&bits, block, out);
            }
            block += BLOCK;
        }
    }

    #[target_feature(enable = "avx2")]
    fn blocks_avx2<const PARTS: usize, const PROBES: usize>(
        anchors: &Anchors,
        text: *const u8,
        blocks: Range<usize>,
        out: &mut Vec<Places>,
    ) {
        let fold = _mm256_set1_epi8(anchors.fold as i8);
        let mut value = [[fold; PROBES]; PARTS];
        let mut gap = [[0; PROBES]; PARTS];
        for part in 0..PARTS {
            for probe in 0..PROBES {
                let wanted = anchors.parts[part].probes[probe];
                value[part][probe] = _mm256_set1_epi8((wanted.value | anchors.fold) as i8);
                gap[part][probe] = wanted.gap;
            }
        }
        let mut block = blocks.start;
        while block < blocks.end {
            let mut bits = [0; PARTS];
            let (mut any, mut half) = (0, 0);
            while half < BLOCK {
                // SAFETY: as above.
                unsafe {
                    let here = text.add(block + half);
                    _mm_prefetch::<_MM_HINT_T0>(here.wrapping_add(AHEAD_BYTES).cast());
                    let first = _mm256_or_si256(_mm256_loadu_si256(here.cast()), fold);
                    for part in 0..PARTS {
                        let mut equal = _mm256_cmpeq_epi8(first, value[part][0]);
                        for probe in 1..PROBES {
                            let other = _mm256_loadu_si256(here.add(gap[part][probe]).cast());
                            let folded = _mm256_or_si256(other, fold);
                            let same = _mm256_cmpeq_epi8(folded, value[part][probe]);
                            equal = _mm256_and_si256(equal, same);
                        }
                        let equal = _mm256_movemask_epi8(equal) as u32;
                        bits[part] |= u64::from(equal) << half;
                        any |= equal;
                    }
                }
                half += 32;
            }
            if any != 0 {
                push(&bits, block, out);
            }
            block += BLOCK;
        }
    }

    #[cold]
    #[inline(never)]
    fn push(bits: &[u64], block: usize, out: &mut Vec<Places>) {
        for (part, bits) in bits.iter().enumerate().filter(|(_, bits)| **bits != 0) {
            out.push(Places { block, part, bits: *bits });
        }
    }
}

//! Parts of the pattern that stand in the text as they are.
//!
//! Of `k + 1` disjoint parts of a pattern, `k` errors leave one untouched. So where a pattern is long and errors are few, it is
//! enough to look for the parts: two or three of the rarest bytes of each are compared with the text, 64 places at a
//! time, and what is around the few places where they all stand is looked at. This reads the text about as fast as it
//! comes from memory. Where parts are short or frequent it is given up.

use crate::corpus::{Corpus, Found};
use crate::pattern::{Case, Metric, Pattern};
use crate::plan::rarity;
use crate::search::Kernel;
use crate::vector::BLOCK;
use std::ops::Range;

/// The most parts: of more, too many bytes would be compared.
const MAX_PARTS: usize = MAX_COMPARED / 2;
/// The most bytes of a part that are compared at a time.
const MAX_PROBES: usize = 3;
/// Bytes that are compared at each place, all parts together, up to which this is faster than bit planes are: with 18 of them
/// it took a third longer.
const MAX_COMPARED: usize = 16;
/// How rare two bytes of each part have to be, all parts together, that a third is not looked at: places.
const RARE: f64 = 16_384.0;
/// How rare what is compared has to be at all.
const LEAST_RARE: f64 = 256.0;
/// How far ahead the text is fetched: it is one stream, and a block takes less time than memory does to answer.
#[cfg(target_arch = "x86_64")]
const AHEAD_BYTES: usize = 3072;
/// Blocks of text between two looks at what was found.
const BLOCKS: usize = 64;
/// What a place costs that is looked at, and a byte that is compared with errors, picoseconds.
const PLACE_PS: u64 = 20_000;
const BYTE_PS: u64 = 3_000;
/// What a byte of text may cost besides.
const ALLOWED_PS: u64 = 150;
/// What may be spent before anything is known.
const ADVANCE_PS: u64 = 100_000_000;

/// A byte of a part: equal to `value` once the bits of `fold` are set.
#[derive(Clone, Copy, Debug, Default)]
struct Probe {
    /// Bytes behind the first one of the part that is compared.
    gap: usize,
    value: u8,
    fold: u8,
}

/// A part of the pattern.
#[derive(Clone, Debug)]
struct Part {
    /// Which bytes of the pattern it is.
    range: Range<usize>,
    /// Where in the pattern the first probe is.
    first: usize,
    probes: [Probe; MAX_PROBES],
}

/// All parts of a pattern.
#[derive(Clone, Debug)]
pub(crate) struct Anchors {
    parts: Vec<Part>,
    /// How many bytes of each part are compared.
    probes: usize,
    /// The farthest of them behind the first.
    reach: usize,
    /// What was looked at so far has cost so much, and may have.
    spent_ps: u64,
    allowed_ps: u64,
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
            let value = pattern.bytes[at];
            let either = pattern.case == Case::IgnoreAscii && value.is_ascii_alphabetic();
            *probe = Probe { gap: at - first, value, fold: if either { 0x20 } else { 0 } };
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
    /// The parts of a pattern, if there is hope that they are rare.
    pub(crate) fn new(pattern: &Pattern) -> Option<Self> {
        let most = MAX_PROBES.min(pattern.bytes.len() / (pattern.distance as usize + 1));
        let rare = |probes: usize| {
            if (pattern.distance as usize + 1) * probes > MAX_COMPARED {
                return None;
            }
            let all = Self::with_probes(pattern, probes)?;
            let chance: f64 = all.parts.iter().map(|part| 1.0 / part.rarity(probes)).sum();
            let least = if probes == most { LEAST_RARE } else { RARE };
            (chance <= 1.0 / least).then_some(all)
        };
        (2..=most).find_map(rare)
    }

    /// The parts of a pattern, of each of which so many bytes are compared at a time; nothing when they are shorter.
    pub(crate) fn with_probes(pattern: &Pattern, probes: usize) -> Option<Self> {
        let (length, count) = (pattern.bytes.len(), pattern.distance as usize + 1);
        if count > MAX_PARTS || length / count < probes || !(2..=MAX_PROBES).contains(&probes) {
            return None;
        }
        let range = |part: usize| part * length / count..(part + 1) * length / count;
        let parts: Vec<Part> =
            (0..count).map(|part| Part::new(pattern, range(part), probes)).collect();
        let reach = parts.iter().map(|part| part.probes[probes - 1].gap).max().unwrap_or(0);
        Some(Self { parts, probes, reach, spent_ps: 0, allowed_ps: ADVANCE_PS })
    }

    /// Whether it was worth it so far.
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
        self.allowed_ps += ALLOWED_PS * stretch.len() as u64;
        true
    }

    /// Whether the probes of a part stand at the beginning of a text.
    fn stands(&self, part: usize, text: &[u8]) -> bool {
        let mut probes = self.parts[part].probes[..self.probes].iter();
        probes.all(|probe| text.get(probe.gap).is_some_and(|b| b | probe.fold == probe.value))
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

    /// Whether a document matches around a part of the pattern that begins somewhere.
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

/// Plain loops over indices, as in the kernels: what the compiler does not inline is compiled without the vectors.
#[cfg(target_arch = "x86_64")]
#[allow(clippy::needless_range_loop, reason = "iterators may not be inlined")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;

    /// The probes of a part as vectors.
    #[derive(Clone, Copy)]
    struct Wide<V> {
        gap: [usize; MAX_PROBES],
        value: [V; MAX_PROBES],
        fold: [V; MAX_PROBES],
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
        unsafe {
            match anchors.probes {
                2 => blocks_avx512::<2>(&anchors.parts, text.as_ptr(), blocks, out),
                _ => blocks_avx512::<3>(&anchors.parts, text.as_ptr(), blocks, out),
            }
        }
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
        unsafe {
            match anchors.probes {
                2 => blocks_avx2::<2>(&anchors.parts, text.as_ptr(), blocks, out),
                _ => blocks_avx2::<3>(&anchors.parts, text.as_ptr(), blocks, out),
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    fn blocks_avx512<const PROBES: usize>(
        parts: &[Part],
        text: *const u8,
        blocks: Range<usize>,
        out: &mut Vec<Places>,
    ) {
        let none = _mm512_setzero_si512();
        let empty = Wide { gap: [0; MAX_PROBES], value: [none; 3], fold: [none; 3] };
        let mut wide = [empty; MAX_PARTS];
        for (wide, part) in wide.iter_mut().zip(parts) {
            for probe in 0..MAX_PROBES {
                let Probe { gap, value, fold } = part.probes[probe];
                wide.gap[probe] = gap;
                wide.value[probe] = _mm512_set1_epi8(value as i8);
                wide.fold[probe] = _mm512_set1_epi8(fold as i8);
            }
        }
        let (count, mut bits) = (parts.len().min(MAX_PARTS), [0; MAX_PARTS]);
        let mut block = blocks.start;
        while block < blocks.end {
            let mut any = 0;
            // SAFETY: the caller has made sure that the block and the reach of the probes lie within the text.
            unsafe {
                let here = text.add(block);
                _mm_prefetch::<_MM_HINT_T0>(here.wrapping_add(AHEAD_BYTES).cast());
                let first = _mm512_loadu_si512(here.cast());
                for number in 0..count {
                    let part = &wide[number];
                    let folded = _mm512_or_si512(first, part.fold[0]);
                    let mut equal = _mm512_cmpeq_epi8_mask(folded, part.value[0]);
                    for probe in 1..PROBES {
                        let other = _mm512_loadu_si512(here.add(part.gap[probe]).cast());
                        let folded = _mm512_or_si512(other, part.fold[probe]);
                        equal = _mm512_mask_cmpeq_epi8_mask(equal, folded, part.value[probe]);
                    }
                    bits[number] = equal;
                    any |= equal;
                }
            }
            if any != 0 {
                push(&bits[..count], block, out);
            }
            block += BLOCK;
        }
    }

    #[target_feature(enable = "avx2")]
    fn blocks_avx2<const PROBES: usize>(
        parts: &[Part],
        text: *const u8,
        blocks: Range<usize>,
        out: &mut Vec<Places>,
    ) {
        let none = _mm256_setzero_si256();
        let empty = Wide { gap: [0; MAX_PROBES], value: [none; 3], fold: [none; 3] };
        let mut wide = [empty; MAX_PARTS];
        for (wide, part) in wide.iter_mut().zip(parts) {
            for probe in 0..MAX_PROBES {
                let Probe { gap, value, fold } = part.probes[probe];
                wide.gap[probe] = gap;
                wide.value[probe] = _mm256_set1_epi8(value as i8);
                wide.fold[probe] = _mm256_set1_epi8(fold as i8);
            }
        }
        let count = parts.len().min(MAX_PARTS);
        let mut block = blocks.start;
        while block < blocks.end {
            let mut bits = [0; MAX_PARTS];
            let (mut any, mut half) = (0, 0);
            while half < BLOCK {
                // SAFETY: as above.
                unsafe {
                    let here = text.add(block + half);
                    _mm_prefetch::<_MM_HINT_T0>(here.wrapping_add(AHEAD_BYTES).cast());
                    let first = _mm256_loadu_si256(here.cast());
                    for number in 0..count {
                        let part = &wide[number];
                        let folded = _mm256_or_si256(first, part.fold[0]);
                        let mut equal = _mm256_cmpeq_epi8(folded, part.value[0]);
                        for probe in 1..PROBES {
                            let other = _mm256_loadu_si256(here.add(part.gap[probe]).cast());
                            let folded = _mm256_or_si256(other, part.fold[probe]);
                            let same = _mm256_cmpeq_epi8(folded, part.value[probe]);
                            equal = _mm256_and_si256(equal, same);
                        }
                        let equal = _mm256_movemask_epi8(equal) as u32;
                        bits[number] |= u64::from(equal) << half;
                        any |= equal;
                    }
                }
                half += 32;
            }
            if any != 0 {
                push(&bits[..count], block, out);
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

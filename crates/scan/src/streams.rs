//! Beginnings of the kernels' lanes in a stretch of text.

use crate::sink::MAX_STREAMS;
use crate::vector::BLOCK;

/// Streams that are an odd multiple of this apart lie in different sets of a processor's caches: of those that are a power of two
/// apart, a few ways of a few sets have to hold everything.
const APART: usize = 256;

/// Streams that are closer are short, and rounding would make them much longer.
const LEAST_APART: usize = 16 * APART;

/// The streams of a stretch of text: they start at different places, are equally long, and overlap so far that
/// every match lies in one of them whole.
pub(crate) struct Streams {
    pub(crate) starts: [usize; MAX_STREAMS],
    pub(crate) blocks: usize,
}

impl Streams {
    /// `count` streams over a stretch of text, whose place and length are given, for matches of at most `reach` bytes. The
    /// text itself begins at an address that is so far behind a multiple of a block. `None` when that is too little text.
    pub(crate) fn new(
        (from, length): (usize, usize),
        count: usize,
        reach: usize,
        misplaced: usize,
    ) -> Option<Self> {
        let mut step = length.saturating_sub(reach).div_ceil(count);
        let mut ahead = 0;
        if step >= LEAST_APART {
            step = (step.div_ceil(APART) | 1) * APART;
            ahead = (misplaced + from) % BLOCK;
        }
        let each = (step + reach + ahead).next_multiple_of(BLOCK);
        if each > length || each <= 2 * reach {
            return None;
        }
        let last = from + length - each;
        let mut starts = [from; MAX_STREAMS];
        for (at, start) in starts.iter_mut().enumerate().take(count).skip(1) {
            *start = (from + at * step - ahead).min(last);
        }
        Some(Self { starts, blocks: each / BLOCK })
    }

    /// Start of a block in `lanes` streams from `first`.
    #[inline(always)]
    pub(crate) fn at(&self, first: usize, lanes: usize, block: usize) -> [usize; 8] {
        let mut starts = [0; 8];
        for (start, stream) in starts.iter_mut().zip(&self.starts[first..first + lanes]) {
            *start = stream + block * BLOCK;
        }
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_match_lies_in_a_stream_whole(
            from in 0_usize..500, length in 0_usize..400_000, count in 2_usize..=MAX_STREAMS,
            reach in 1_usize..300, misplaced in 0_usize..BLOCK,
        ) {
            let Some(streams) = Streams::new((from, length), count, reach, misplaced) else {
                prop_assert!(length < 3 * count * reach + count * BLOCK, "long enough for streams");
                return Ok(());
            };
            let each = streams.blocks * BLOCK;
            let mut behind = from;
            for start in &streams.starts[..count] {
                prop_assert!(*start >= from && start + each <= from + length, "within the stretch");
                // What begins up to `reach` bytes before the end of a stream may end in the next one only.
                prop_assert!(*start <= behind, "a match that begins at {behind} is cut at {start}");
                behind = behind.max(start + each - reach + 1);
            }
            prop_assert_eq!(behind + reach - 1, from + length, "up to the end");
            // Those that are long begin where a block does, but for the first and what is moved to the end.
            let long = length / count > 32 * APART;
            let aligned = |start: &&usize| (*start + misplaced).is_multiple_of(BLOCK);
            let others = streams.starts[1..count].iter().filter(aligned).count();
            prop_assert!(!long || others + 2 >= count, "{others} of {count} are aligned");
        }
    }
}

//! The kernels: a piece of a pattern against many streams of text at once.

#![allow(clippy::needless_range_loop, reason = "see `Vector`: iterators are not always inlined")]

use crate::Metric;
use crate::plan::{Class, HIGHS, MAX_ROWS, PAIRS, Plan, ROWS, TABLE};
use crate::sink::{MAX_STREAMS, Sink};
use crate::streams::Streams;
use crate::vector::{BLOCK, Vector};

/// Runs the kernel that the plan asks for on a stretch of the sink's corpus. `false` when the stretch is too
/// short for it, and nothing was done.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn run<V: Vector, const G: usize>(
    plan: &Plan,
    (from, length): (usize, usize),
    sink: &mut Sink<'_>,
) -> bool {
    assert!(from + length <= sink.corpus.text().len(), "a stretch of the text");
    assert!(plan.rows <= MAX_ROWS, "a piece that fits the tables");
    let text = sink.corpus.text().as_ptr();
    let misplaced = text.addr() % BLOCK;
    let streams = Streams::new((from, length), V::LANES * G, plan.reach(), misplaced);
    let Some(streams) = streams else { return false };
    // SAFETY: the caller vouches for the instructions; streams lie within the stretch, which lies within the
    // text.
    unsafe {
        let mut state = State::<V, G>::new();
        state.restart(plan);
        for block in 0..streams.blocks {
            let ends = state.next(plan, text, &streams.starts, block * BLOCK);
            for g in 0..G {
                if ends[g].any() {
                    let first = g * V::LANES;
                    let starts = streams.at(first, V::LANES, block);
                    report(sink, first, &starts, ends[g].words());
                }
            }
        }
    }
    true
}

/// Hands the places where matches end in a group of lanes to the sink.
#[cold]
#[inline(never)]
fn report(sink: &mut Sink<'_>, first: usize, starts: &[usize; 8], words: [u64; 8]) {
    for (lane, (&start, &word)) in starts.iter().zip(&words).enumerate() {
        if word != 0 {
            sink.ends(first + lane, start, word);
        }
    }
}

/// The way a row differs from the one above in the last column so far.
#[derive(Clone, Copy)]
struct Row<V, const G: usize> {
    up: [V; G],
    down: [V; G],
}

/// The state of a kernel from one block of its streams to the next.
pub(crate) struct State<V, const G: usize> {
    bits: Bits<V, G>,
    even: Block<V, G>,
    odd: Block<V, G>,
    /// The block before the first.
    nothing: Block<V, G>,
    rows: [Row<V, G>; ROWS],
    /// The distance of the last row there, in every byte.
    distance: [V; G],
    blocks: usize,
}

impl<V: Vector, const G: usize> State<V, G> {
    /// A state that has to be restarted.
    ///
    /// # Safety
    ///
    /// As for [`run`].
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let none = V::splat(0);
            Self {
                bits: Bits::new(),
                even: Block::new(),
                odd: Block::new(),
                nothing: Block::new(),
                rows: [Row { up: [none; G], down: [none; G] }; ROWS],
                distance: [none; G],
                blocks: 0,
            }
        }
    }

    /// Before the text of all streams: there the rows differ by one each.
    ///
    /// # Safety
    ///
    /// As for [`run`].
    #[inline(always)]
    pub(crate) unsafe fn restart(&mut self, plan: &Plan) {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            for row in 0..plan.rows {
                let (up, down) = ([V::splat(u64::MAX); G], [V::splat(0); G]);
                self.rows[row % ROWS] = Row { up, down };
            }
            self.distance = [V::splat(plan.rows as u64 * 0x0101_0101_0101_0101); G];
            self.blocks = 0;
        }
    }

    /// Goes on by a block: the last bytes of matches of the piece, as bits of the 64 bytes that lie `at` places
    /// behind the start of each stream. For replacements, what would begin before the streams counts as different.
    ///
    /// # Safety
    ///
    /// As for [`run`]; 64 bytes from there lie within the streams, and `at` grows by 64 from call to call.
    #[inline(always)]
    pub(crate) unsafe fn next(
        &mut self,
        plan: &Plan,
        text: *const u8,
        starts: &[usize; MAX_STREAMS],
        at: usize,
    ) -> [V; G] {
        // SAFETY: the caller vouches for the instructions and the bytes.
        unsafe {
            self.bits.read(plan, text, starts, at);
            if plan.metric == Metric::Edits && plan.distance > 0 {
                return edits(plan, &self.bits, &mut self.rows, &mut self.distance);
            }
            let (now, before) = match self.blocks {
                0 => (&mut self.even, &self.nothing),
                blocks if blocks % 2 == 0 => (&mut self.even, &self.odd),
                _ => (&mut self.odd, &self.even),
            };
            self.blocks += 1;
            now.find(plan, &self.bits);
            if plan.distance == 0 { exact(plan, now, before) } else { hamming(plan, now, before) }
        }
    }
}

/// The bits of a block of text, two at a time.
struct Bits<V, const G: usize> {
    pairs: [[V; G]; PAIRS],
    highs: [[V; G]; HIGHS],
}

/// Positions of the bytes of each class in a block.
struct Block<V, const G: usize> {
    equal: [[V; G]; TABLE],
}

impl<V: Vector, const G: usize> Block<V, G> {
    /// Nothing anywhere.
    ///
    /// # Safety
    ///
    /// As for [`run`].
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the caller vouches for the instructions.
        Self { equal: [[unsafe { V::splat(0) }; G]; TABLE] }
    }

    /// Finds the classes of the plan in a block.
    ///
    /// # Safety
    ///
    /// As for [`run`].
    #[inline(always)]
    unsafe fn find(&mut self, plan: &Plan, bits: &Bits<V, G>) {
        for at in 0..plan.class_count {
            for group in 0..G {
                // SAFETY: the caller vouches for the instructions.
                self.equal[at % TABLE][group] = unsafe { bits.equal(plan, at, group) };
            }
        }
    }
}

impl<V: Vector, const G: usize> Bits<V, G> {
    /// Those of nothing.
    ///
    /// # Safety
    ///
    /// As for [`run`].
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the caller vouches for the instructions.
        let none = unsafe { [V::splat(0); G] };
        Self { pairs: [none; PAIRS], highs: [none; HIGHS] }
    }

    /// Those of the bytes `at` places behind the start of each stream.
    ///
    /// # Safety
    ///
    /// As for [`run`]; 64 bytes from there lie within the streams.
    #[inline(always)]
    unsafe fn read(
        &mut self,
        plan: &Plan,
        text: *const u8,
        starts: &[usize; MAX_STREAMS],
        at: usize,
    ) {
        for group in 0..G {
            // SAFETY: the caller vouches for the instructions, and for 64 bytes of each stream.
            unsafe {
                let mut addresses = [text; 8];
                let mut lane = 0;
                while lane < V::LANES {
                    addresses[lane] = text.add(starts[group * V::LANES + lane] + at);
                    lane += 1;
                }
                let plane = V::planes(&addresses[..V::LANES]);
                self.pair(0, group, plane[0], plane[1]);
                self.pair(4, group, plane[2], plane[3]);
                self.pair(8, group, plane[4], plane[5]);
                self.pair(14, group, plane[6], plane[7]);
                self.pairs[12][group] = plane[4].not();
                self.pairs[13][group] = plane[4];
            }
        }
        for at in 0..plan.high_count {
            let [a, b] = plan.highs[at % HIGHS];
            let (a, b) = (a as usize % PAIRS, b as usize % PAIRS);
            for group in 0..G {
                // SAFETY: the caller vouches for the instructions.
                let both = unsafe { self.pairs[a][group].and(self.pairs[b][group]) };
                self.highs[at % HIGHS][group] = both;
            }
        }
    }

    /// Positions of a class.
    ///
    /// # Safety
    ///
    /// As for [`run`].
    #[inline(always)]
    unsafe fn equal(&self, plan: &Plan, class: usize, group: usize) -> V {
        let Class { low: [a, b], high } = plan.classes[class % TABLE];
        let (a, b) = (self.pairs[a as usize % PAIRS][group], self.pairs[b as usize % PAIRS][group]);
        // SAFETY: the caller vouches for the instructions.
        unsafe { a.and3(b, self.highs[high as usize % HIGHS][group]) }
    }

    /// The four values of two bits.
    ///
    /// # Safety
    ///
    /// As for [`run`].
    #[inline(always)]
    unsafe fn pair(&mut self, first: usize, group: usize, low: V, high: V) {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let (no_low, no_high) = (low.not(), high.not());
            self.pairs[first][group] = no_low.and(no_high);
            self.pairs[first + 1][group] = low.and(no_high);
            self.pairs[first + 2][group] = no_low.and(high);
            self.pairs[first + 3][group] = low.and(high);
        }
    }
}

/// Edit distances: a row of the table for each byte of the piece, 64 columns of text to a word.
///
/// # Safety
///
/// As for [`run`].
#[inline(always)]
unsafe fn edits<V: Vector, const G: usize>(
    plan: &Plan,
    bits: &Bits<V, G>,
    rows: &mut [Row<V, G>; ROWS],
    distance: &mut [V; G],
) -> [V; G] {
    let limit = plan.distance as i8;
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let none = V::splat(0);
        // How a column differs from the one before, in the row above: not at all above the first row.
        let (mut plus, mut minus) = ([none; G], [none; G]);
        for row in 0..plan.rows {
            let class = usize::from(plan.row_class[row % ROWS]);
            let row = &mut rows[row % ROWS];
            for g in 0..G {
                // Most classes are those of one row: a table of them would only be written and read again.
                let equals = bits.equal(plan, class, g);
                let (up_before, down_before) = (row.up[g], row.down[g]);
                let carry = down_before.top();
                let same = equals.or(carry);
                let sum = equals.or_and(carry, plus[g]).add(plus[g]);
                let diagonal = sum.xor_or(plus[g], same);
                let up = minus[g].or_nor(diagonal, plus[g]);
                let down = plus[g].and(diagonal);
                row.up[g] = up;
                row.down[g] = down;
                let (up, down) = (up.shift_one(up_before), down.shift_one(down_before));
                let either = equals.or(minus[g]);
                plus[g] = down.or_nor(either, up);
                minus[g] = up.and(either);
            }
        }
        let mut matches = [none; G];
        for g in 0..G {
            let gains = plus[g].count_bytes();
            let losses = minus[g].count_bytes();
            let change = gains.sub_bytes(losses);
            let sums = change.add_bytes(change.up::<8>());
            let sums = sums.add_bytes(sums.up::<16>());
            let ends = sums.add_bytes(sums.up::<32>()).add_bytes(distance[g]);
            // In a byte, all losses may come before all gains.
            if ends.sub_bytes(gains).at_most(limit).any() {
                // The distance before each byte of the block, then behind each of its bits.
                let mut now = ends.sub_bytes(change);
                step::<V, 0>(plus[g], minus[g], limit, &mut now, &mut matches[g]);
                step::<V, 1>(plus[g], minus[g], limit, &mut now, &mut matches[g]);
                step::<V, 2>(plus[g], minus[g], limit, &mut now, &mut matches[g]);
                step::<V, 3>(plus[g], minus[g], limit, &mut now, &mut matches[g]);
                step::<V, 4>(plus[g], minus[g], limit, &mut now, &mut matches[g]);
                step::<V, 5>(plus[g], minus[g], limit, &mut now, &mut matches[g]);
                step::<V, 6>(plus[g], minus[g], limit, &mut now, &mut matches[g]);
                step::<V, 7>(plus[g], minus[g], limit, &mut now, &mut matches[g]);
            }
            distance[g] = ends.spread_top_byte();
        }
        matches
    }
}

/// Goes on by bit `BIT` of every byte: the distances there, and whether they are within the limit.
///
/// # Safety
///
/// As for [`run`].
#[inline(always)]
unsafe fn step<V: Vector, const BIT: u32>(
    plus: V,
    minus: V,
    limit: i8,
    now: &mut V,
    matches: &mut V,
) {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let (gain, loss) = (plus.bit_of_bytes::<BIT>(), minus.bit_of_bytes::<BIT>());
        *now = now.add_bytes(gain).sub_bytes(loss);
        let here = V::splat(0x0101_0101_0101_0101 << BIT);
        *matches = matches.or(now.at_most(limit).and(here));
    }
}

/// No errors: the rows of the piece, each moved to where the piece would end.
///
/// # Safety
///
/// As for [`run`].
#[inline(always)]
unsafe fn exact<V: Vector, const G: usize>(
    plan: &Plan,
    now: &Block<V, G>,
    before: &Block<V, G>,
) -> [V; G] {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let mut ends = [V::splat(u64::MAX); G];
        for row in 0..plan.rows {
            let class = plan.row_class[row % ROWS] as usize % TABLE;
            let places = (plan.rows - 1 - row) as u64 % BLOCK as u64;
            for g in 0..G {
                let moved = now.equal[class][g].shift_in(before.equal[class][g], places);
                ends[g] = ends[g].and(moved);
            }
        }
        ends
    }
}

/// Replacements: the rows that match are counted for each place where the piece would end, in six planes of one
/// bit.
///
/// # Safety
///
/// As for [`run`].
#[inline(always)]
unsafe fn hamming<V: Vector, const G: usize>(
    plan: &Plan,
    now: &Block<V, G>,
    before: &Block<V, G>,
) -> [V; G] {
    let enough = plan.rows.saturating_sub(plan.distance as usize);
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let none = V::splat(0);
        let mut ends = [none; G];
        for g in 0..G {
            let mut count = [none; 6];
            // Four rows at a time; those that are missing match nowhere.
            let mut row = 0;
            while row < plan.rows {
                let mut four = [none; 4];
                let mut at = 0;
                while at < 4 {
                    let class = plan.row_class[(row + at) % ROWS] as usize % TABLE;
                    let places = plan.rows.saturating_sub(1 + row + at) as u64 % BLOCK as u64;
                    four[at] = now.equal[class][g].shift_in(before.equal[class][g], places);
                    at += 1;
                }
                let (ones, a) = count[0].full_add(four[0], four[1]);
                let (ones, b) = ones.full_add(four[2], four[3]);
                let (twos, mut carry) = count[1].full_add(a, b);
                count[0] = ones;
                count[1] = twos;
                let mut plane = 2;
                while plane < 6 {
                    let sum = count[plane].xor(carry);
                    carry = count[plane].and(carry);
                    count[plane] = sum;
                    plane += 1;
                }
                row += 4;
            }
            ends[g] = at_least(&count, enough);
        }
        ends
    }
}

/// Positions at which the number with the bits in `count` is at least `limit`.
///
/// # Safety
///
/// As for [`run`].
#[inline(always)]
unsafe fn at_least<V: Vector>(count: &[V; 6], limit: usize) -> V {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let (mut more, mut same) = (V::splat(0), V::splat(u64::MAX));
        let mut bit = 6;
        while bit > 0 {
            bit -= 1;
            if limit >> bit & 1 == 1 {
                same = same.and(count[bit]);
            } else {
                more = more.or(same.and(count[bit]));
                same = same.and(count[bit].not());
            }
        }
        more.or(same)
    }
}

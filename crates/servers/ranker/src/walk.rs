//! The instruction walk: a hundred thousand distinct functions, called in an order that no
//! prefetcher knows, so that fetching and decoding instructions is the work.
//!
//! The functions are written by the assembler, because a compiler merges functions that do the
//! same and takes minutes for those that do not. Each adds its own number to its argument and takes
//! 16 bytes, as an empty function does that a compiler has aligned: 1.6 MB of text together.

use plimsoll_core::rng::Rng;

/// Number of functions.
pub(crate) const FUNCTIONS: usize = 100_000;
/// Bytes from one function to the next.
const STRIDE_BYTES: usize = 16;

/// True if this machine's instructions are known here.
pub(crate) const IS_SUPPORTED: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text.plimsoll_rank_walk,\"ax\",@progbits",
    ".p2align 6",
    ".globl plimsoll_rank_walk",
    ".hidden plimsoll_rank_walk",
    "plimsoll_rank_walk:",
    ".set plimsoll_rank_number, 0",
    ".rept 100000",
    // lea rax, [rdi + number]
    ".byte 0x48, 0x8d, 0x87",
    ".long plimsoll_rank_number",
    // ret, then traps up to the next function.
    ".byte 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc",
    ".set plimsoll_rank_number, plimsoll_rank_number + 1",
    ".endr",
    ".popsection",
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".pushsection .text.plimsoll_rank_walk,\"ax\",@progbits",
    ".p2align 6",
    ".globl plimsoll_rank_walk",
    ".hidden plimsoll_rank_walk",
    "plimsoll_rank_walk:",
    ".set plimsoll_rank_number, 0",
    ".rept 100000",
    // movz w1, low half; movk w1, high half, lsl 16; add x0, x0, x1; ret
    ".inst 0x52800001 | ((plimsoll_rank_number & 0xffff) << 5)",
    ".inst 0x72a00001 | ((plimsoll_rank_number >> 16) << 5)",
    ".inst 0x8b010000",
    ".inst 0xd65f03c0",
    ".set plimsoll_rank_number, plimsoll_rank_number + 1",
    ".endr",
    ".popsection",
);

type Leaf = unsafe extern "C" fn(u64) -> u64;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn leaf(number: usize) -> Leaf {
    unsafe extern "C" {
        #[link_name = "plimsoll_rank_walk"]
        static FIRST: u8;
    }
    assert!(number < FUNCTIONS);
    // SAFETY: the assembler has put one function of `STRIDE_BYTES` bytes for each number behind the
    // label, and each follows the C calling convention with one integer in and one out.
    unsafe {
        let address = (&raw const FIRST).add(number * STRIDE_BYTES);
        std::mem::transmute::<*const u8, Leaf>(address)
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn leaf(_number: usize) -> Leaf {
    unsafe extern "C" fn identity(value: u64) -> u64 {
        value
    }
    identity
}

/// The functions in a shuffled order.
#[derive(Debug)]
pub(crate) struct Walk {
    order: Vec<Leaf>,
}

impl Walk {
    /// Shuffles all functions.
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let mut order: Vec<Leaf> = (0..FUNCTIONS).map(leaf).collect();
        rng.shuffle(&mut order);
        Self { order }
    }

    /// Calls `calls` functions, round and round from a position in the order; returns the sum of their
    /// numbers, modulo 2^64.
    pub(crate) fn run(&self, from: usize, calls: u64) -> u64 {
        let (mut sum, mut left) = (0, calls);
        let mut part = &self.order[from % self.order.len()..];
        while left > 0 {
            let taken = left.min(part.len() as u64);
            for leaf in &part[..taken as usize] {
                // SAFETY: every entry is one of the functions above, which touch no memory.
                sum = unsafe { leaf(sum) };
            }
            left -= taken;
            part = &self.order;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The machine code of the function of a number, written independently of the assembler.
    #[cfg(target_arch = "x86_64")]
    fn machine_code(number: u32) -> [u8; 8] {
        let [a, b, c, d] = number.to_le_bytes();
        [0x48, 0x8d, 0x87, a, b, c, d, 0xc3]
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_text_holds_every_function_apart() {
        for number in 0..FUNCTIONS {
            let address = leaf(number) as usize;
            assert_eq!(address, leaf(0) as usize + number * STRIDE_BYTES);
            // SAFETY: functions are readable memory, and each has 16 bytes of its own.
            let code = unsafe { std::slice::from_raw_parts(address as *const u8, 8) };
            assert_eq!(code, machine_code(number as u32));
        }
        let text_bytes = leaf(FUNCTIONS - 1) as usize + STRIDE_BYTES - leaf(0) as usize;
        assert_eq!(text_bytes, 1_600_000);
    }

    #[test]
    fn every_function_adds_its_own_number() {
        for number in [0, 1, 2, 65_535, 65_536, 99_999] {
            // SAFETY: it touches no memory.
            assert_eq!(unsafe { leaf(number)(7) }, 7 + number as u64);
        }
    }

    #[test]
    fn a_walk_round_the_table_calls_each_once() {
        let walk = Walk::new(&mut Rng::new(3));
        let all: u64 = (0..FUNCTIONS as u64).sum();
        assert_eq!(walk.run(0, FUNCTIONS as u64), all);
        assert_eq!(walk.run(99_000, 3 * FUNCTIONS as u64), 3 * all);
        assert_eq!(walk.run(5, 0), 0);
        // Two halves make a whole wherever the walk begins.
        assert_eq!(walk.run(99_990, 60_000) + walk.run(159_990, 40_000), all);
        let other = Walk::new(&mut Rng::new(4));
        assert_ne!(walk.run(0, 1_000), other.run(0, 1_000));
    }
}

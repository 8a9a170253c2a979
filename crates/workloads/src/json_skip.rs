//! Finds the end of a JSON object or array without looking at each byte on its own.
//!
//! Takes 64 bytes at a time as bit masks, one bit a byte: quotes, backslashes, opening and closing
//! brackets. Bits inside strings are masked out, and the rest only needs to be counted. This is the
//! first stage of simdjson (Langdale and Lemire, "Parsing gigabytes of JSON per second", 2019).

const BLOCK: usize = 64;

/// Positions of characters in a block: bit i is byte i.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Masks {
    quote: u64,
    backslash: u64,
    open: u64,
    close: u64,
}

/// The length of the object or array that `json` begins with; `None` if it does not end.
pub fn container_length(json: &[u8]) -> Option<usize> {
    ContainerEnd::default().find(json)
}

/// Looks for the end of an object or array of which more and more arrives.
#[derive(Clone, Debug, Default)]
pub struct ContainerEnd {
    skip: Skip,
    /// Number of bytes that need not be looked at again; whole blocks.
    passed: usize,
}

impl ContainerEnd {
    /// The length of the container, once it lies whole in `json`: all that has arrived of it so far.
    pub fn find(&mut self, json: &[u8]) -> Option<usize> {
        let (blocks, rest) = json.get(self.passed..)?.as_chunks::<BLOCK>();
        for block in blocks {
            if let Some(end) = self.skip.block(block) {
                return Some(self.passed + end);
            }
            self.passed += BLOCK;
        }
        // What follows the rest is not known: it is looked at again when it has come.
        let mut last = [b' '; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        self.skip.clone().block(&last).map(|end| self.passed + end)
    }
}

#[derive(Clone, Debug, Default)]
struct Skip {
    depth: u64,
    /// All ones if the block before ended inside a string.
    in_string: u64,
    /// 1 if the block before ended with a backslash that escapes the next byte.
    escaped: u64,
}

impl Skip {
    /// The end of the container, if it lies in this block.
    #[inline]
    fn block(&mut self, block: &[u8; BLOCK]) -> Option<usize> {
        let masks = masks(block);
        let mut quote = masks.quote;
        if masks.backslash | self.escaped != 0 {
            quote &= !self.escaped_bytes(masks.backslash);
        }
        // Each quote flips all bits from itself on: what remains set is inside a string.
        let string = prefix_xor(quote) ^ self.in_string;
        self.in_string = ((string as i64) >> 63) as u64;
        let (open, close) = (masks.open & !string, masks.close & !string);
        let closes = u64::from(close.count_ones());
        if self.depth > closes {
            self.depth = self.depth + u64::from(open.count_ones()) - closes;
            return None;
        }
        let mut brackets = open | close;
        while brackets != 0 {
            let at = brackets.trailing_zeros();
            if open >> at & 1 == 1 {
                self.depth += 1;
            } else {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    return Some(at as usize + 1);
                }
            }
            brackets &= brackets - 1;
        }
        None
    }

    /// The bytes that a backslash escapes. Backslashes are rare, so one at a time is fast enough.
    fn escaped_bytes(&mut self, backslash: u64) -> u64 {
        let mut escaped = std::mem::take(&mut self.escaped);
        let mut left = backslash & !escaped;
        while left != 0 {
            let at = left.trailing_zeros();
            if at == 63 {
                self.escaped = 1;
                break;
            }
            escaped |= 2 << at;
            left &= !(3 << at);
        }
        escaped
    }
}

fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// SSE2 is part of x86_64 itself, so no check of the processor is needed.
#[cfg(target_arch = "x86_64")]
#[inline]
fn masks(block: &[u8; BLOCK]) -> Masks {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };
    let mut found = Masks { quote: 0, backslash: 0, open: 0, close: 0 };
    for part in 0..4 {
        // SAFETY: the sixteen bytes from part * 16 on lie within the block's 64, an unaligned load
        // may read any address, and SSE2 is always there on this architecture.
        let (quote, backslash, open, close) = unsafe {
            let bytes = _mm_loadu_si128(block.as_ptr().add(part * 16).cast::<__m128i>());
            // 0x20 set makes one of '[' and '{', and one of ']' and '}'.
            let folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
            let equal = |bytes, byte: u8| {
                let mask = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8)));
                u64::from(mask as u32)
            };
            (equal(bytes, b'"'), equal(bytes, b'\\'), equal(folded, b'{'), equal(folded, b'}'))
        };
        found.quote |= quote << (part * 16);
        found.backslash |= backslash << (part * 16);
        found.open |= open << (part * 16);
        found.close |= close << (part * 16);
    }
    found
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn masks(block: &[u8; BLOCK]) -> Masks {
    plain_masks(block)
}

/// The same on any processor; on x86_64 the tests compare both.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn plain_masks(block: &[u8; BLOCK]) -> Masks {
    let mut found = Masks { quote: 0, backslash: 0, open: 0, close: 0 };
    for (at, byte) in block.iter().enumerate() {
        found.quote |= u64::from(*byte == b'"') << at;
        found.backslash |= u64::from(*byte == b'\\') << at;
        found.open |= u64::from(byte | 0x20 == b'{') << at;
        found.close |= u64::from(byte | 0x20 == b'}') << at;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One byte after the other.
    fn reference(json: &[u8]) -> Option<usize> {
        let (mut depth, mut string, mut escaped) = (0usize, false, false);
        for (at, byte) in json.iter().enumerate() {
            // Outside strings there are no backslashes in JSON; there, only quotes are escaped.
            if std::mem::take(&mut escaped) && (string || matches!(byte, b'"' | b'\\')) {
                continue;
            }
            match byte {
                b'\\' => escaped = true,
                b'"' => string = !string,
                b'{' | b'[' if !string => depth += 1,
                b'}' | b']' if !string => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn agrees_with_a_byte_by_byte_look(
            picks in prop::collection::vec(
                prop::sample::select(b"{}[]\"\\a ,\xff".to_vec()), 0..400),
            calm in prop::collection::vec(0usize..400, 0..12),
        ) {
            let mut text = vec![b'{'];
            text.extend(picks);
            // Calm stretches let the container reach beyond its first block.
            for at in calm {
                let at = at.min(text.len() - 1) + 1;
                text.splice(at..at, std::iter::repeat_n(b'[', 20));
            }
            prop_assert_eq!(container_length(&text), reference(&text));
            let mut arriving = ContainerEnd::default();
            let ends: Vec<_> = (1..=text.len()).filter_map(|to| arriving.find(&text[..to])).collect();
            prop_assert_eq!(ends.first().copied(), reference(&text));
        }

        #[test]
        fn masks_do_not_depend_on_the_processor(block in prop::array::uniform32(any::<u8>())) {
            let mut whole = [0; BLOCK];
            whole[..32].copy_from_slice(&block);
            whole[32..].copy_from_slice(&block.map(|byte| byte.wrapping_add(1)));
            prop_assert_eq!(masks(&whole), plain_masks(&whole));
        }
    }

    #[test]
    fn long_containers_end_where_they_end() {
        let mut text = format!("[{}]", "{\"a\\\\\":\"]}\\\"\"},".repeat(1000));
        let length = text.len();
        text.push_str(",[]}");
        assert_eq!(container_length(text.as_bytes()), Some(length));
        assert_eq!(container_length(&text.as_bytes()[..length - 1]), None);
    }
}

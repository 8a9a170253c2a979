//! One byte for each character, so that an edit of one character counts as one.
//!
//! ASCII and the rest of Latin-1 keep their numbers. Every other character becomes one of the 32 bytes from
//! 0x80 to 0x9F, by its number; two of them may become the same. Texts that have none of those are compared
//! exactly; where both text and pattern have some, what matches is to be looked at again in the original.

/// Appends one byte for each character of `text`. Returns whether characters beyond Latin-1 are among them.
pub fn append(text: &str, out: &mut Vec<u8>) -> bool {
    if text.is_ascii() {
        out.extend_from_slice(text.as_bytes());
        return false;
    }
    let mut beyond = false;
    out.extend(text.chars().map(|letter| {
        let (byte, other) = of(letter);
        beyond |= other;
        byte
    }));
    beyond
}

/// The byte of a character, and whether others may share it.
pub fn of(letter: char) -> (u8, bool) {
    match u32::from(letter) {
        number @ (0..=0x7f | 0xa0..=0xff) => (number as u8, false),
        number => (0x80 | (number.wrapping_mul(0x9e37_79b1) >> 27) as u8, true),
    }
}

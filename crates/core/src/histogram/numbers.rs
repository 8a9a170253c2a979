//! Numbers of HdrHistogram's V2 form: zigzag LEB128 of at most nine bytes.

/// Appends a number.
pub(super) fn put(number: i64, out: &mut Vec<u8>) {
    let mut left = ((number << 1) ^ (number >> 63)) as u64;
    for _ in 0..8 {
        if left < 0x80 {
            return out.push(left as u8);
        }
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

/// The number at a place, which moves behind it.
#[inline(always)]
pub(super) fn take(bytes: &[u8], at: &mut usize) -> Option<i64> {
    match bytes.get(*at) {
        // Most counts are short.
        Some(&byte) if byte < 0x80 => {
            *at += 1;
            Some(i64::from(byte >> 1) ^ -i64::from(byte & 1))
        }
        _ => take_long(bytes, at),
    }
}

#[inline(never)]
fn take_long(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let mut number = 0u64;
    for place in 0..9 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        // The ninth byte has eight bits of its own.
        let bits = if place < 8 { byte & 0x7f } else { byte };
        number |= u64::from(bits) << (7 * place);
        if byte < 0x80 {
            break;
        }
    }
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

//! The header fields that decide about framing, and the lexical rules they share.

use super::Encoding;

/// What may stand in a field name: `tchar` of RFC 9110 5.6.2.
const TOKEN: [bool; 256] = token_table();

const fn token_table() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let c = byte as u8;
        table[byte] = c.is_ascii_alphanumeric()
            || matches!(
                c,
                b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_'
            )
            || matches!(c, b'`' | b'|' | b'~');
        byte += 1;
    }
    table
}

/// Blanks around values; line ends count, because a folded value holds them.
pub(super) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// `bytes` without the blanks at both ends.
pub(super) fn trim(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let [first, tail @ ..] = rest
        && is_blank(*first)
    {
        rest = tail;
    }
    while let [head @ .., last] = rest
        && is_blank(*last)
    {
        rest = head;
    }
    rest
}

/// The length of the field at the front of `bytes` with its line end and all its folded lines, if
/// it is complete. The byte behind is needed to know, so a last line without one is incomplete
/// unless it is the end of a head that was cut out.
pub(super) fn line_end(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let end = from + memchr::memchr(b'\n', &bytes[from..])? + 1;
        if !matches!(bytes.get(end), Some(b' ' | b'\t')) {
            return Some(end);
        }
        from = end;
    }
}

/// Splits a field line into the length of its name and the place of its colon.
pub(super) fn name(line: &[u8]) -> Option<(usize, usize)> {
    let length = line.iter().position(|&byte| !TOKEN[byte as usize])?;
    let mut colon = length;
    while matches!(line.get(colon), Some(b' ' | b'\t')) {
        colon += 1;
    }
    (length > 0 && line.get(colon) == Some(&b':')).then_some((length, colon))
}

/// What the framing fields of one head say, gathered line by line.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) length: Length,
    pub(super) transfer: Transfer,
    pub(super) encoding: Encoding,
    pub(super) close: bool,
    pub(super) keep_alive: bool,
}

/// The sum of all `Content-Length` lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Length {
    #[default]
    Absent,
    Known(u64),
    /// Not believable; only a fault if the length is needed at all.
    Bad(&'static str),
}

/// The sum of all `Transfer-Encoding` lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Transfer {
    /// Some coding other than `identity` was named.
    pub(super) present: bool,
    /// The last coding was `chunked`, so that the body shows its own end.
    pub(super) chunked: bool,
    /// `chunked` was named and something came behind it, which no recipient can undo.
    pub(super) tangled: bool,
    /// What lies below the chunks.
    pub(super) below: Encoding,
}

impl Fields {
    /// Takes one field into account; fields without a meaning for framing are passed over.
    #[inline]
    pub(super) fn take(&mut self, name: &[u8], value: &[u8]) {
        match name.len() {
            10 if name.eq_ignore_ascii_case(b"connection") => self.take_connection(value),
            14 if name.eq_ignore_ascii_case(b"content-length") => self.take_length(value),
            16 if name.eq_ignore_ascii_case(b"content-encoding") => {
                for coding in tokens(value) {
                    self.encoding = on_top(self.encoding, coding);
                }
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.take_transfer(value),
            _ => {}
        }
    }

    fn take_connection(&mut self, value: &[u8]) {
        for token in tokens(value) {
            self.close |= token.eq_ignore_ascii_case(b"close");
            self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn take_length(&mut self, value: &[u8]) {
        for element in value.split(|&byte| byte == b',') {
            self.length = match (self.length, decimal(trim(element))) {
                (Length::Bad(why), _) => Length::Bad(why),
                (_, Err(why)) => Length::Bad(why),
                (Length::Absent, Ok(length)) => Length::Known(length),
                (Length::Known(before), Ok(length)) if before == length => Length::Known(length),
                (Length::Known(_), Ok(_)) => {
                    Length::Bad("the reply has two different Content-Length values")
                }
            };
        }
    }

    fn take_transfer(&mut self, value: &[u8]) {
        for token in tokens(value) {
            // A coding may carry parameters, which mean nothing for the codings known here.
            let coding = trim(token.split(|&byte| byte == b';').next().unwrap_or(token));
            if coding.eq_ignore_ascii_case(b"identity") {
                continue;
            }
            let transfer = &mut self.transfer;
            transfer.present = true;
            transfer.tangled |= transfer.chunked;
            transfer.chunked = coding.eq_ignore_ascii_case(b"chunked");
            if !transfer.chunked {
                transfer.below = on_top(transfer.below, coding);
            }
        }
    }
}

/// The coding that results when `coding` is put on top of `below`.
fn on_top(below: Encoding, coding: &[u8]) -> Encoding {
    let named = |name: &[u8]| coding.eq_ignore_ascii_case(name);
    let above = if named(b"gzip") || named(b"x-gzip") {
        Encoding::Gzip
    } else if named(b"deflate") {
        Encoding::Deflate
    } else if named(b"identity") {
        Encoding::Identity
    } else {
        Encoding::Other
    };
    stack(below, above)
}

/// Two codings, one on top of the other.
pub(super) fn stack(below: Encoding, above: Encoding) -> Encoding {
    match (below, above) {
        (one, Encoding::Identity) | (Encoding::Identity, one) => one,
        _ => Encoding::Other,
    }
}

/// The elements of a comma-separated list; empty elements are passed over (RFC 9110 5.6.1.2).
fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim).filter(|token| !token.is_empty())
}

/// An unsigned decimal number: digits and nothing else, so no sign either.
fn decimal(digits: &[u8]) -> Result<u64, &'static str> {
    if digits.is_empty() {
        return Err("the reply's Content-Length is empty");
    }
    let mut number = 0u64;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return Err("the reply's Content-Length is not a number");
        }
        number = number
            .checked_mul(10)
            .and_then(|n| n.checked_add(u64::from(byte - b'0')))
            .ok_or("the reply's Content-Length does not fit in 64 bits")?;
    }
    Ok(number)
}

//! The header fields that decide about framing, and the lexical rules they share.

use super::Encoding;

/// Blanks around values; line ends count, because a folded value holds them.
pub(super) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// `bytes` without the blanks at both ends.
#[inline]
pub(crate) fn trim(bytes: &[u8]) -> &[u8] {
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

/// The framing fields of one head, gathered line by line.
#[derive(Default)]
pub(crate) struct Fields {
    pub(crate) length: Length,
    pub(super) transfer: Transfer,
    pub(crate) encoding: Encoding,
    pub(super) close: bool,
    pub(super) keep_alive: bool,
}

/// The length that all `Content-Length` lines of a head give together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Length {
    #[default]
    Absent,
    Known(u64),
    /// Not believable; only a fault if the length is needed at all.
    Bad(&'static str),
}

/// The codings that all `Transfer-Encoding` lines of a head give together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Transfer {
    /// Some coding other than `identity` was named.
    pub(super) present: bool,
    /// The last coding was `chunked`, so that the body shows its own end.
    pub(super) chunked: bool,
    /// `chunked` was named and something came behind it, which no recipient can undo.
    pub(super) tangled: bool,
    /// The coding below the chunks.
    pub(super) below: Encoding,
}

impl Fields {
    /// Takes one field into account; fields without a meaning for framing are passed over.
    #[inline]
    pub(super) fn take(&mut self, name: &[u8], value: &[u8]) {
        // The length tells the four names apart; the usual spelling is compared in whole words.
        match name.len() {
            10 if is(name, b"Connection") => self.take_connection(value),
            14 if is(name, b"Content-Length") => self.take_length(value),
            16 if is(name, b"Content-Encoding") => self.take_encoding(value),
            17 if is(name, b"Transfer-Encoding") => self.take_transfer(value),
            _ => {}
        }
    }

    #[inline]
    fn take_connection(&mut self, value: &[u8]) {
        if trim(value) == b"keep-alive" {
            self.keep_alive = true;
            return;
        }
        self.take_connection_list(value);
    }

    #[cold]
    fn take_connection_list(&mut self, value: &[u8]) {
        for token in tokens(value) {
            self.close |= token.eq_ignore_ascii_case(b"close");
            self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    #[inline]
    pub(crate) fn take_length(&mut self, value: &[u8]) {
        if let (Length::Absent, Ok(length)) = (self.length, decimal(trim(value))) {
            self.length = Length::Known(length);
            return;
        }
        self.take_lengths(value);
    }

    /// The long way: a list, a repeated line, or a fault.
    #[cold]
    fn take_lengths(&mut self, value: &[u8]) {
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

    pub(crate) fn take_encoding(&mut self, value: &[u8]) {
        for coding in tokens(value) {
            self.encoding = on_top(self.encoding, coding);
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

#[inline]
fn is<const N: usize>(name: &[u8], usual: &[u8; N]) -> bool {
    name == usual || name.eq_ignore_ascii_case(usual)
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
#[inline]
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

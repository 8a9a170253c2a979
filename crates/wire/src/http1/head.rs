//! The head of a reply: status line and header lines, reduced to what the framing needs.

use super::Encoding;
use super::fields::{self, Fields, Length};
use super::scan;
use crate::Fault;

/// The way every reply begins.
const VERSION: &[u8] = b"HTTP/1.";

const NOT_A_FIELD: Fault = Fault::Protocol("a header line is not of the form `name: value`");

/// A complete head. Positions count from the first byte of the status line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    /// Beginning of the header lines, after the status line.
    pub(super) fields_from: usize,
    /// End of the header lines, before the empty line.
    pub(super) fields_to: usize,
    /// Beginning of the body, after the empty line.
    pub(super) len: usize,
    pub(super) body: Framing,
    pub(super) encoding: Encoding,
    /// True if the connection may be used again once the body is through.
    pub(super) reusable: bool,
}

impl Head {
    /// Moves all positions by `bytes`, to count from before the status line.
    pub(super) fn shift(&mut self, bytes: usize) {
        self.fields_from += bytes;
        self.fields_to += bytes;
        self.len += bytes;
    }
}

/// The way the end of the body is known (RFC 9112 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// Reads the head at the front of `input`; `None` if it is not complete yet. `to_head` says that
/// the request was HEAD.
///
/// # Errors
/// A [`Fault::Protocol`] when this cannot become a reply, whatever follows.
#[inline]
pub(super) fn parse(input: &[u8], to_head: bool) -> Result<Option<Head>, Fault> {
    let Some(line) = status_line(input)? else { return Ok(None) };
    let mut fields = Fields::default();
    let mut at = line.len;
    let len = loop {
        match input.get(at) {
            None => return Ok(None),
            Some(b'\n') => break at + 1,
            Some(b'\r') => match input.get(at + 1) {
                None => return Ok(None),
                Some(b'\n') => break at + 2,
                Some(_) => return Err(Fault::Protocol("a header line begins with a bare CR")),
            },
            Some(_) => {}
        }
        match field(input, at, &mut fields)? {
            Some(end) => at = end,
            None => return Ok(None),
        }
    };
    let body = framing(line.status, &fields, to_head)?;
    Ok(Some(Head {
        status: line.status,
        fields_from: line.len,
        fields_to: at,
        len,
        body,
        encoding: fields::stack(fields.encoding, fields.transfer.below),
        reusable: reusable(&line, &fields, body),
    }))
}

/// Reads the header field that begins at `from` and returns where it ends, behind its line end.
#[inline]
fn field(input: &[u8], from: usize, fields: &mut Fields) -> Result<Option<usize>, Fault> {
    let Some(stop) = scan::name_stop(input, from) else { return Ok(None) };
    let colon = if input[stop] == b':' { stop } else { late_colon(input, stop)? };
    if stop == from {
        return Err(NOT_A_FIELD);
    }
    let mut line = colon;
    let end = loop {
        let Some(end) = scan::line_stop(input, line) else { return Ok(None) };
        if input[end] == 0 {
            return Err(Fault::Protocol("a header line holds a NUL byte"));
        }
        // Whether the field goes on in a folded line is known only from the byte behind.
        match input.get(end + 1) {
            None => return Ok(None),
            Some(b' ' | b'\t') => line = end + 1,
            Some(_) => break end,
        }
    };
    if matches!(input[from] | 0x20, b'c' | b't') {
        fields.take(&input[from..stop], &input[colon + 1..end]);
    }
    Ok(Some(end + 1))
}

/// The colon behind a name with blanks behind it, which the RFC forbids and some servers send.
#[cold]
fn late_colon(input: &[u8], name_end: usize) -> Result<usize, Fault> {
    let blanks = input[name_end..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    match input.get(name_end + blanks) {
        // Without the rest of the line it is too early to say.
        None => Ok(name_end),
        Some(b':') => Ok(name_end + blanks),
        Some(_) => Err(NOT_A_FIELD),
    }
}

/// Refuses an unfinished head whose status line is wrong already, instead of waiting for an end
/// that another protocol would never send.
///
/// # Errors
/// A [`Fault::Protocol`], as [`parse`] would give it at the end of the head.
pub(super) fn refuse_early(part: &[u8]) -> Result<(), Fault> {
    status_line(&part[..part.len().min(32)]).map(|_| ())
}

struct StatusLine {
    status: u16,
    /// HTTP/1.0, where connections close unless the server says otherwise.
    old: bool,
    /// Length with the line end.
    len: usize,
}

#[inline]
fn status_line(input: &[u8]) -> Result<Option<StatusLine>, Fault> {
    let known = input.len().min(VERSION.len());
    if input[..known] != VERSION[..known] {
        return Err(Fault::NotHttp1);
    }
    // The shortest status line is `HTTP/1.1 200` and a line feed.
    let Some((front, rest)) = input.split_first_chunk::<12>() else { return Ok(None) };
    let [.., minor, blank, hundreds, tens, ones] = *front;
    let digits = minor.is_ascii_digit()
        && hundreds.is_ascii_digit()
        && tens.is_ascii_digit()
        && ones.is_ascii_digit();
    let separated = rest.first().is_none_or(|next| matches!(next, b' ' | b'\r' | b'\n'));
    if blank != b' ' || !digits || !separated || hundreds == b'0' {
        return Err(Fault::Protocol("the status line is not `HTTP/1.x` and three digits"));
    }
    let Some(end) = scan::line_stop(input, front.len()) else { return Ok(None) };
    if input[end] == 0 {
        return Err(Fault::Protocol("the status line holds a NUL byte"));
    }
    let digit = |byte: u8| u16::from(byte - b'0');
    Ok(Some(StatusLine {
        status: digit(hundreds) * 100 + digit(tens) * 10 + digit(ones),
        old: minor == b'0',
        len: end + 1,
    }))
}

/// The rules of RFC 9112 6.3, in their order.
fn framing(status: u16, fields: &Fields, to_head: bool) -> Result<Framing, Fault> {
    if to_head || status < 200 || matches!(status, 204 | 304) {
        return Ok(Framing::Length(0));
    }
    if fields.transfer.tangled {
        return Err(Fault::Protocol("`chunked` is not the last Transfer-Encoding"));
    }
    if fields.transfer.present {
        return Ok(if fields.transfer.chunked { Framing::Chunked } else { Framing::UntilClose });
    }
    match fields.length {
        Length::Known(length) => Ok(Framing::Length(length)),
        Length::Absent => Ok(Framing::UntilClose),
        Length::Bad(why) => Err(Fault::Protocol(why)),
    }
}

fn reusable(line: &StatusLine, fields: &Fields, body: Framing) -> bool {
    // Two lengths that may differ, or chunks where the version knows none: the body is read as the
    // RFC says, but what comes behind it is not trusted.
    let doubtful = fields.transfer.present && (fields.length != Length::Absent || line.old);
    let kept = if line.old { fields.keep_alive } else { true };
    kept && !fields.close && !doubtful && body != Framing::UntilClose
}

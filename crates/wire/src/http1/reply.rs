//! A reply, as a session sees it.

use super::{Encoding, fields};

/// One complete reply. The slices point into the read buffer or into the connection's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The final status, `200..=999`; interim (1xx) replies are passed over.
    pub status: u16,
    /// The header lines as they came, each with its line end, without the status line and without
    /// the empty line. Empty unless [`Keep::head`](super::Keep::head) was asked for or the status is
    /// not 2xx.
    pub head: &'a [u8],
    /// The body without chunk framing, still content-encoded. Empty unless
    /// [`Keep::body`](super::Keep::body) was asked for; its first 512 bytes when the status is not 2xx.
    pub body: &'a [u8],
    /// The way the body is coded.
    pub encoding: Encoding,
    /// Length of the body as transferred, without chunk framing, in bytes; known even when the
    /// body was not kept.
    pub body_bytes: u64,
    /// True if `body` is only the beginning, because it was longer than what is
    /// kept: 512 bytes as above, or [`Limits::body_bytes_kept`](super::Limits::body_bytes_kept).
    pub truncated: bool,
}

impl<'a> Reply<'a> {
    /// The value of the first header line of this name, compared without regard to case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers().find(|(key, _)| key.eq_ignore_ascii_case(name.as_bytes())).map(|(_, v)| v)
    }

    /// All header lines in their order: names in the server's spelling, values without the blanks
    /// around them. A folded value still holds its line breaks.
    #[must_use]
    pub fn headers(&self) -> Headers<'a> {
        Headers { rest: self.head }
    }
}

/// Iterator over the header lines of a [`Reply`].
#[derive(Clone, Debug)]
pub struct Headers<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let end = field_end(self.rest);
            let (line, rest) = self.rest.split_at(end);
            self.rest = rest;
            // The head was checked when it was read, so that every line has its colon.
            if let Some(colon) = memchr::memchr(b':', line) {
                return Some((fields::trim(&line[..colon]), fields::trim(&line[colon + 1..])));
            }
        }
        None
    }
}

/// The length of the first field of `head`, with its line end and all its folded lines.
fn field_end(head: &[u8]) -> usize {
    let ends = memchr::memchr_iter(b'\n', head).map(|line_feed| line_feed + 1);
    let mut unfolded = ends.filter(|&end| !matches!(head.get(end), Some(b' ' | b'\t')));
    unfolded.next().unwrap_or(head.len())
}

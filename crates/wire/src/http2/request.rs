//! A request as HTTP/1.1 renders it, taken apart.

use crate::http1::trim;

/// The parts of a request's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts<'a> {
    pub(super) method: &'a [u8],
    /// Path and query, or `*`.
    pub(super) path: &'a [u8],
    /// The authority of a target in absolute form, which goes before the Host line.
    pub(super) authority: Option<&'a [u8]>,
    /// The header lines, without the empty line.
    pub(super) lines: &'a [u8],
    pub(super) body: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Splits a request. Missing fields are empty; the path is then `/`. Nothing is rejected, because
    /// requests are checked where they are made: the peer reports an error. Header lines that are
    /// the same as `before`, those of another request, are not searched for their end.
    pub(super) fn of(text: &'a [u8], before: &[u8]) -> Self {
        let (line, rest) = split_line(text);
        let (method, rest_of_line) = split_at_blank(line);
        let (target, _) = split_at_blank(rest_of_line);
        let (authority, path) = split_target(target);
        let behind = rest.strip_prefix(before).filter(|_| before.ends_with(b"\n"));
        let end = match behind {
            Some([b'\r', b'\n', ..]) => before.len(),
            _ => lines_end(rest),
        };
        let body = split_line(&rest[end..]).1;
        Parts { method, path, authority, lines: &rest[..end], body }
    }

    /// The authority that the request is for: that of its target, or of its Host line.
    pub(super) fn authority(&self) -> Option<&'a [u8]> {
        let host = || fields(self.lines).find(|(name, _)| name.eq_ignore_ascii_case(b"host"));
        self.authority.or_else(|| host().map(|(_, value)| value))
    }
}

/// The header lines as names and values; what has no colon is passed over.
pub(super) fn fields(lines: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = lines;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let (line, behind) = split_line(rest);
            rest = behind;
            if let Some(colon) = memchr::memchr(b':', line) {
                return Some((trim(&line[..colon]), trim(&line[colon + 1..])));
            }
        }
        None
    })
}

/// Returns true if a field (in lower case) speaks about the connection, or is said otherwise in HTTP/2.
pub(super) fn is_dropped(name: &[u8]) -> bool {
    matches!(
        name,
        b"host"
            | b"connection"
            | b"proxy-connection"
            | b"keep-alive"
            | b"transfer-encoding"
            | b"upgrade"
            | b"te"
            | b"http2-settings"
            | b""
    ) || name.first() == Some(&b':')
}

/// The first line without its end, and what is behind its end.
fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    let Some(line_feed) = memchr::memchr(b'\n', text) else { return (text, &[]) };
    let line = &text[..line_feed];
    (line.strip_suffix(b"\r").unwrap_or(line), &text[line_feed + 1..])
}

fn split_at_blank(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b' ', text) {
        Some(blank) => (&text[..blank], &text[blank + 1..]),
        None => (text, &[]),
    }
}

/// Position of the empty line that ends the header lines.
fn lines_end(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match text[at..] {
            [] | [b'\n', ..] | [b'\r', b'\n', ..] => return at,
            _ => {}
        }
        match memchr::memchr(b'\n', &text[at..]) {
            Some(line_feed) => at += line_feed + 1,
            None => return text.len(),
        }
    }
}

/// Authority and path of a target in origin form (`/a?b`), absolute form (`http://h/a?b`) or `*`.
fn split_target(target: &[u8]) -> (Option<&[u8]>, &[u8]) {
    if matches!(target, [b'/' | b'*', ..]) {
        return (None, target);
    }
    let behind = target.strip_prefix(b"http://").or_else(|| target.strip_prefix(b"https://"));
    match behind {
        Some(behind) => {
            let stop = behind.iter().position(|byte| matches!(byte, b'/' | b'?'));
            let (authority, path) = behind.split_at(stop.unwrap_or(behind.len()));
            (Some(authority), if path.is_empty() { b"/" } else { path })
        }
        None if target.is_empty() => (None, b"/"),
        None => (None, target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let parts = Parts::of(text.as_bytes(), b"Host: h\r\n");
        let authority = parts.authority().map(String::from_utf8_lossy);
        let lines = fields(parts.lines).map(|(name, value)| {
            format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
        });
        format!(
            "{} {} @{} [{}] {}",
            String::from_utf8_lossy(parts.method),
            String::from_utf8_lossy(parts.path),
            authority.unwrap_or_default(),
            lines.collect::<Vec<_>>().join(";"),
            String::from_utf8_lossy(parts.body)
        )
    }

    #[test]
    fn texts_are_taken_apart() {
        let cases = [
            (
                "GET /a?b=c HTTP/1.1\r\nHost: h:1\r\nX:  y \r\n\r\n",
                "GET /a?b=c @h:1 [Host=h:1;X=y] ",
            ),
            ("POST / HTTP/1.1\nhOST:h\n\na\r\n\r\nb", "POST / @h [hOST=h] a\r\n\r\nb"),
            ("GET http://p:8/x HTTP/1.1\r\nHost: h\r\n\r\n", "GET /x @p:8 [Host=h] "),
            ("GET https://p HTTP/1.1\r\n\r\nbody", "GET / @p [] body"),
            ("OPTIONS * HTTP/1.1\r\nno colon\r\n\r\n", "OPTIONS * @ [] "),
            ("GET", "GET / @ [] "),
            ("", " / @ [] "),
            ("GET / HTTP/1.1\r\nA: b", "GET / @ [A=b] "),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }
}

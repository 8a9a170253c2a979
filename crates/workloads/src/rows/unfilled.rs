//! Places for values in requests that no row fills.

use crate::render::RenderedSet;

/// The first `{{name}}` in the URL or a header of a request, and the request's line. Bodies are not looked at: they may
/// hold such braces for the server, as search templates do.
#[must_use]
pub fn place_in_a_head(set: &RenderedSet) -> Option<(u64, String)> {
    (0..set.len()).find_map(|index| {
        let bytes = set.bytes(index);
        let head = memchr::memmem::find(bytes, b"\r\n\r\n").unwrap_or(bytes.len());
        place_in(&bytes[..head]).map(|place| (set.line(index), place))
    })
}

fn place_in(text: &[u8]) -> Option<String> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-. ".contains(byte);
    memchr::memmem::find_iter(text, b"{{").find_map(|at| {
        let rest = &text[at + 2..];
        let name = &rest[..memchr::memmem::find(rest, b"}}")?];
        let name = name.strip_prefix(b"{").unwrap_or(name);
        let sound = !name.is_empty() && name.iter().all(is_name);
        sound.then(|| format!("{{{{{}}}}}", String::from_utf8_lossy(name)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_url_and_headers_are_found_and_those_in_bodies_left() {
        let mut set = RenderedSet::default();
        let mut push = |line, text: &str| {
            set.push(0, line, |out| out.extend_from_slice(text.as_bytes()));
        };
        push(1, "POST /_search/template HTTP/1.1\r\nHost: h\r\n\r\n{\"source\":\"{{q}}\"}");
        push(2, "GET /a?q=%7B%7Bx%7D%7D&r={{\"a\"}}&s={{ HTTP/1.1\r\n\r\n");
        assert_eq!(place_in_a_head(&set), None);
        let mut set = set.clone();
        set.push(0, 3, |out| out.extend_from_slice(b"GET /a?q={{{term}}} HTTP/1.1\r\n\r\n"));
        assert_eq!(place_in_a_head(&set), Some((3, "{{term}}".to_owned())));
        assert_eq!(place_in(b"GET / HTTP/1.1\r\nX: {{ user }}"), Some("{{ user }}".to_owned()));
    }
}

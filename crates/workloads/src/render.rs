//! Requests as the bytes of HTTP/1.1.
//!
//! Two forms: [`FbenchForm`] writes what vespa-fbench writes, header for header in its order, and
//! [`HttpForm`] is plimsoll's own. Both are prepared once and then only copy bytes. [`RenderedSet`]
//! holds the requests of a whole file ready to send.

use crate::authority::Authority;
use crate::header::{check_header, check_verbatim};
use crate::query_file::check_target;

/// plimsoll's name in `User-Agent`.
pub const USER_AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));
/// The original's name; servers' logs are filtered by it.
pub const FBENCH_USER_AGENT: &str = "fbench/4.2.10";

/// Parts of a request besides the form's own headers.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestParts<'a> {
    /// The method.
    pub method: &'a str,
    /// The request target.
    pub target: &'a [u8],
    /// Headers of this request; one replaces the form's header of the same name.
    pub headers: &'a [(String, String)],
    /// The body; an empty one is sent as `Content-Length: 0`.
    pub body: Option<&'a [u8]>,
}

/// plimsoll's own requests: request line, `Host`, `User-Agent`, headers, then for a body
/// `Content-Type` (`application/json` unless given) and `Content-Length`, and `Connection: close`
/// when connections are not kept.
#[derive(Clone, Debug)]
pub struct HttpForm {
    /// Name and value of `Host`, `User-Agent` and the headers of every request.
    headers: Vec<(String, String)>,
    close: bool,
}

impl HttpForm {
    /// Prepares requests to a host. A header of the user's replaces `Host` or `User-Agent`.
    ///
    /// # Errors
    /// One line about a header or host that would break the request.
    pub fn new(
        authority: &Authority,
        headers: &[(String, String)],
        close: bool,
    ) -> Result<Self, String> {
        let host = authority.host_header();
        check_host(&host)?;
        let mut all = vec![("Host".to_owned(), host)];
        all.push(("User-Agent".to_owned(), USER_AGENT.to_owned()));
        for (name, value) in headers {
            check_header(name, value)?;
            // RFC 6265 has one such header a request, with all of its cookies.
            let cookies = all.iter_mut().find(|(own, _)| own.eq_ignore_ascii_case("Cookie"));
            if let Some(own) = cookies.filter(|_| name.eq_ignore_ascii_case("Cookie")) {
                own.1 = format!("{}; {value}", own.1);
                continue;
            }
            match all[..2].iter_mut().find(|(own, _)| own.eq_ignore_ascii_case(name)) {
                Some(own) => value.clone_into(&mut own.1),
                None => all.push((name.clone(), value.clone())),
            }
        }
        Ok(Self { headers: all, close })
    }

    /// Appends a request to `out`. The parts must have been checked (query files and NDJSON are).
    pub fn render(&self, parts: &RequestParts<'_>, out: &mut Vec<u8>) {
        put(out, &[parts.method.as_bytes(), b" ", parts.target, b" HTTP/1.1\r\n"]);
        let own = |name: &str| parts.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        for (name, value) in self.headers.iter().filter(|(name, _)| !own(name)) {
            put(out, &[name.as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        }
        for (name, value) in parts.headers {
            put(out, &[name.as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        }
        // A server may wait for a body after these methods unless its length is said to be 0.
        let expected = matches!(parts.method, "POST" | "PUT" | "PATCH");
        if let Some(body) = parts.body.or(expected.then_some(b"".as_slice())) {
            let typed = self.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case("Content-Type"));
            if !body.is_empty() && !typed && !own("Content-Type") {
                out.extend_from_slice(b"Content-Type: application/json\r\n");
            }
            put_length(out, body.len());
        }
        if self.close {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(parts.body.unwrap_or_default());
    }
}

/// Request options of vespa-fbench's command line.
#[derive(Clone, Debug, Default)]
pub struct FbenchOptions<'a> {
    /// Value of `Host`: the authority of `-A`, or the host and port connected to.
    pub host: String,
    /// The lines of `-H`.
    pub headers: &'a [String],
    /// `-a`: appended to every target.
    pub append: &'a str,
    /// `-P`.
    pub post: bool,
    /// `-y`.
    pub coverage: bool,
    /// `-k`: do not keep connections.
    pub close: bool,
}

/// vespa-fbench's requests, byte for byte.
#[derive(Clone, Debug)]
pub struct FbenchForm {
    post: bool,
    append: Vec<u8>,
    /// From the end of the target to `Content-Length`.
    head: Vec<u8>,
    /// From there to the empty line.
    tail: Vec<u8>,
}

impl FbenchForm {
    /// Prepares requests.
    ///
    /// # Errors
    /// One line about a flag's value that would break the request.
    pub fn new(options: &FbenchOptions<'_>) -> Result<Self, String> {
        check_host(&options.host)?;
        check_target(options.append.as_bytes()).map_err(|problem| format!("-a: {problem}"))?;
        let head = format!(" HTTP/1.1\r\nHost: {}\r\n", options.host).into_bytes();
        let (mut tail, mut content_type) = (String::new(), "Content-type:application/json");
        for line in options.headers {
            let name = check_verbatim(line).map_err(|problem| format!("-H: {problem}"))?;
            if name.eq_ignore_ascii_case("host") {
                return Err("-H: do not override the Host header, use -A instead".into());
            }
            if name.eq_ignore_ascii_case("content-type") {
                content_type = line;
            } else {
                // Verbatim, as the original sends it: spelling and blanks may be what is tested.
                tail.push_str(line);
                tail.push_str("\r\n");
            }
        }
        if options.post {
            tail.push_str(content_type);
            tail.push_str("\r\n");
        }
        tail.push_str("X-Yahoo-Vespa-Benchmarkdata: true\r\n");
        if options.coverage {
            tail.push_str("X-Yahoo-Vespa-Benchmarkdata-Coverage: true\r\n");
        }
        if options.close {
            tail.push_str("Connection: close\r\n");
        }
        tail.push_str(&format!("User-Agent: {FBENCH_USER_AGENT}\r\n\r\n"));
        let append = options.append.as_bytes().to_vec();
        Ok(Self { post: options.post, append, head, tail: tail.into_bytes() })
    }

    /// Appends the request for a record to `out`; the body counts only in POST mode.
    pub fn render(&self, target: &[u8], body: &[u8], out: &mut Vec<u8>) {
        let method: &[u8] = if self.post { b"POST " } else { b"GET " };
        put(out, &[method, target, &self.append, &self.head]);
        if self.post {
            put_length(out, body.len());
        }
        out.extend_from_slice(&self.tail);
        if self.post {
            out.extend_from_slice(body);
        }
    }
}

fn check_host(host: &str) -> Result<(), String> {
    let bad = |c: char| c.is_control() || c.is_whitespace() || "/?#@\\".contains(c);
    if host.is_empty() || host.contains(bad) {
        let shown = host.escape_debug();
        return Err(format!("'{shown}' is not a host name or address; write host or host:port"));
    }
    Ok(())
}

fn put(out: &mut Vec<u8>, pieces: &[&[u8]]) {
    for piece in pieces {
        out.extend_from_slice(piece);
    }
}

/// Appends the header without formatting: this runs for every request of a streamed file.
fn put_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(b"Content-Length: ");
    put_decimal(out, length);
    out.extend_from_slice(b"\r\n");
}

/// Appends a number in decimal digits.
pub(crate) fn put_decimal(out: &mut Vec<u8>, length: usize) {
    let mut digits = [0u8; 20];
    let (mut at, mut rest) = (digits.len(), length);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Requests rendered once, to be sent as bytes as often as wanted. They share one piece of memory.
#[derive(Clone, Debug, Default)]
pub struct RenderedSet {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    end: usize,
    line: u32,
    class: u8,
}

impl RenderedSet {
    /// Adds a request: `write` appends its bytes. `line` is where it stands in its file, `class`
    /// the index that [`crate::classes::Classes::classify`] gave it.
    pub fn push(&mut self, class: u8, line: u64, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        self.entries.push(Entry { end: self.bytes.len(), line, class });
    }

    /// Number of requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bytes of the request at an index below [`RenderedSet::len`].
    ///
    /// # Panics
    /// When the index is not below the length.
    #[inline]
    #[must_use]
    pub fn bytes(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.entries[index - 1].end };
        &self.bytes[start..self.entries[index].end]
    }

    /// The request's class.
    ///
    /// # Panics
    /// When the index is not below the length.
    #[inline]
    #[must_use]
    pub fn class(&self, index: usize) -> u8 {
        self.entries[index].class
    }

    /// The request's line in its file.
    ///
    /// # Panics
    /// When the index is not below the length.
    #[must_use]
    pub fn line(&self, index: usize) -> u64 {
        u64::from(self.entries[index].line)
    }

    /// Bytes of memory the requests take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<Entry>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority(host: &str, port: u16, tls: bool) -> Authority {
        Authority { host: host.into(), port, tls }
    }

    #[test]
    fn host_headers() {
        for (host, port, tls, expected) in [
            ("a.example", 80, false, "a.example"),
            ("a.example", 80, true, "a.example:80"),
            ("a.example", 443, true, "a.example"),
            ("::1", 8080, false, "[::1]:8080"),
            ("[::1]", 80, false, "[::1]"),
            ("127.0.0.1", 8080, false, "127.0.0.1:8080"),
        ] {
            assert_eq!(authority(host, port, tls).host_header(), expected);
        }
    }

    #[test]
    fn fbench_requests_have_the_order_of_the_original() {
        let mut out = Vec::new();
        let mut options = FbenchOptions { host: "h:8080".into(), ..Default::default() };
        FbenchForm::new(&options).unwrap().render(b"/a?b", b"", &mut out);
        let get = "GET /a?b HTTP/1.1\r\nHost: h:8080\r\nX-Yahoo-Vespa-Benchmarkdata: true\r\n\
            User-Agent: fbench/4.2.10\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&out), get);

        out.clear();
        let lines = ["content-TYPE: text/x ", "X-A:  1", "Connection:  x"].map(str::to_owned);
        options = FbenchOptions {
            headers: &lines,
            append: "&x=1",
            post: true,
            coverage: true,
            close: true,
            ..options
        };
        FbenchForm::new(&options).unwrap().render(b"/a", b"body", &mut out);
        let post = "POST /a&x=1 HTTP/1.1\r\nHost: h:8080\r\nContent-Length: 4\r\nX-A:  1\r\n\
            Connection:  x\r\ncontent-TYPE: text/x \r\nX-Yahoo-Vespa-Benchmarkdata: true\r\n\
            X-Yahoo-Vespa-Benchmarkdata-Coverage: true\r\nConnection: close\r\n\
            User-Agent: fbench/4.2.10\r\n\r\nbody";
        assert_eq!(String::from_utf8_lossy(&out), post);
    }

    #[test]
    fn fbench_flags_that_would_break_requests_are_refused() {
        let refused = |headers: &[String], append: &str, host: &str| {
            let options =
                FbenchOptions { host: host.into(), headers, append, ..Default::default() };
            FbenchForm::new(&options).unwrap_err()
        };
        assert!(refused(&["hOsT: x".into()], "", "h").contains("use -A"));
        assert!(refused(&["X: a\r\nY: b".into()], "", "h").contains("control character"));
        assert!(refused(&[], "&a b", "h").contains("-a: blank"));
        assert!(refused(&[], "", "h\r\nX: y").contains("not a host name"));
    }

    #[test]
    fn own_requests_replace_defaults_and_count_bodies() {
        let all = [("X-A".to_owned(), "1".to_owned()), ("user-agent".to_owned(), "me".to_owned())];
        let form = HttpForm::new(&authority("::1", 80, false), &all, true).unwrap();
        let own = [("x-a".to_owned(), "2".to_owned())];
        let mut out = Vec::new();
        let body = Some(b"{}".as_slice());
        form.render(&RequestParts { method: "POST", target: b"/", headers: &own, body }, &mut out);
        let expected = "POST / HTTP/1.1\r\nHost: [::1]\r\nUser-Agent: me\r\nx-a: 2\r\n\
            Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
        assert_eq!(String::from_utf8_lossy(&out), expected);

        out.clear();
        let form = HttpForm::new(&authority("a", 81, false), &[], false).unwrap();
        form.render(&RequestParts { method: "GET", target: b"/x", ..Default::default() }, &mut out);
        let expected = format!("GET /x HTTP/1.1\r\nHost: a:81\r\nUser-Agent: {USER_AGENT}\r\n\r\n");
        assert_eq!(String::from_utf8_lossy(&out), expected);

        out.clear();
        form.render(&RequestParts { method: "PUT", target: b"/", ..Default::default() }, &mut out);
        assert!(String::from_utf8_lossy(&out).contains("\r\nContent-Length: 0\r\n"));
    }

    #[test]
    fn headers_that_come_twice_are_sent_twice_and_cookies_together() {
        let all = [("Cookie", "a=1"), ("X-A", "1"), ("cookie", "b=2"), ("X-A", "2")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let form = HttpForm::new(&authority("h", 80, false), &all, false).unwrap();
        let mut out = Vec::new();
        form.render(&RequestParts { method: "GET", target: b"/", ..Default::default() }, &mut out);
        let text = String::from_utf8_lossy(&out).into_owned();
        assert!(text.contains("\r\nCookie: a=1; b=2\r\nX-A: 1\r\nX-A: 2\r\n"), "{text}");
    }

    #[test]
    fn a_rendered_set_gives_back_what_was_put_in() {
        let mut set = RenderedSet::default();
        for i in 0..10u8 {
            set.push(i % 3, u64::from(i) + 1, |out| {
                out.extend(std::iter::repeat_n(i, usize::from(i)));
            });
        }
        assert_eq!(set.len(), 10);
        assert_eq!((set.bytes(0), set.bytes(3)), (b"".as_slice(), [3u8, 3, 3].as_slice()));
        assert_eq!((set.class(5), set.line(5)), (2, 6));
    }

    #[test]
    fn lengths_are_decimal() {
        for length in [0, 7, 10, 123_456_789, usize::MAX] {
            let mut out = Vec::new();
            put_length(&mut out, length);
            assert_eq!(out, format!("Content-Length: {length}\r\n").into_bytes());
        }
    }
}

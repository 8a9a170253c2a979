//! The way an operation becomes a request.

use super::operation::Kind;
use flate2::{Compress, Compression, Crc, FlushCompress};
use plimsoll_workloads::render::{HttpForm, RequestParts};

/// Choice of the bodies to compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    /// Never.
    Never,
    /// Those longer than this, bytes.
    Above(usize),
}

/// Bodies longer than this are packed with `--compression auto`, bytes; as in `vespa feed`.
pub const PACKED_ABOVE_BYTES: usize = 512;

/// The head lines of requests to one target, made once.
#[derive(Clone, Debug)]
pub struct FeedForm {
    lines: Vec<u8>,
    content_type: &'static [u8],
    /// HTTP/2 frames bodies by itself, and head lines that are all the same are encoded once.
    with_length: bool,
    packed: Packed,
}

impl FeedForm {
    /// From the head lines that requests to this target have anyhow.
    #[must_use]
    pub fn new(http: &HttpForm, http2: bool, packed: Packed) -> Self {
        let mut text = Vec::new();
        let parts = RequestParts { method: "GET", target: b"/", ..RequestParts::default() };
        http.render(&parts, &mut text);
        let from = memchr::memchr(b'\n', &text).map_or(0, |end| end + 1);
        let lines = text[from..text.len() - 2].to_vec();
        let lower = lines.to_ascii_lowercase();
        let typed =
            lower.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"content-type:"));
        let content_type: &[u8] =
            if typed { b"" } else { b"Content-Type: application/json; charset=utf-8\r\n" };
        Self { lines, content_type, with_length: !http2, packed }
    }

    /// Appends the request of an operation. Returns the length of its body as it is sent, bytes.
    pub fn render(
        &self,
        kind: Kind,
        target: &[u8],
        body: &[u8],
        packer: &mut Packer,
        out: &mut Vec<u8>,
    ) -> usize {
        put(out, &[kind.method().as_bytes(), b" ", target, b" HTTP/1.1\r\n", &self.lines]);
        if kind == Kind::Remove {
            out.extend_from_slice(b"\r\n");
            return 0;
        }
        out.extend_from_slice(self.content_type);
        let body = match self.packed {
            Packed::Above(length) if body.len() > length => {
                out.extend_from_slice(b"Content-Encoding: gzip\r\n");
                packer.pack(body)
            }
            _ => body,
        };
        if self.with_length {
            put_length(out, body.len());
        }
        put(out, &[b"\r\n", body]);
        body.len()
    }
}

fn put(out: &mut Vec<u8>, pieces: &[&[u8]]) {
    for piece in pieces {
        out.extend_from_slice(piece);
    }
}

fn put_length(out: &mut Vec<u8>, length: usize) {
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
    put(out, &[b"Content-Length: ", &digits[at..], b"\r\n"]);
}

/// Packs bodies with gzip (RFC 1952), with memory that is used again.
pub struct Packer {
    deflate: Compress,
    out: Vec<u8>,
}

impl Default for Packer {
    fn default() -> Self {
        Self { deflate: Compress::new(Compression::fast(), false), out: Vec::new() }
    }
}

impl Packer {
    /// The body, packed.
    pub fn pack(&mut self, body: &[u8]) -> &[u8] {
        self.out.clear();
        // Deflate, no flags, no time, fastest, system unknown.
        self.out.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff]);
        self.deflate.reset();
        loop {
            self.out.reserve((body.len() / 2).max(256));
            let from = self.deflate.total_in() as usize;
            let status =
                self.deflate.compress_vec(&body[from..], &mut self.out, FlushCompress::Finish);
            // Packing memory into memory fails only when it is called wrongly; then it would fail for ever.
            if !matches!(status, Ok(flate2::Status::Ok | flate2::Status::BufError)) {
                break;
            }
        }
        let mut crc = Crc::new();
        crc.update(body);
        self.out.extend_from_slice(&crc.sum().to_le_bytes());
        self.out.extend_from_slice(&(body.len() as u32).to_le_bytes());
        &self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_workloads::authority::Authority;
    use std::io::Read;

    fn form(http2: bool, packed: Packed, headers: &[(String, String)]) -> FeedForm {
        let authority = Authority { host: "h".to_owned(), port: 8080, tls: false };
        FeedForm::new(&HttpForm::new(&authority, headers, false).unwrap(), http2, packed)
    }

    fn text(form: &FeedForm, kind: Kind, body: &[u8]) -> String {
        let mut out = Vec::new();
        form.render(kind, b"/t", body, &mut Packer::default(), &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn requests_have_what_their_version_needs() {
        let one = form(false, Packed::Never, &[]);
        let put = text(&one, Kind::Put, b"{}");
        assert!(
            put.starts_with("POST /t HTTP/1.1\r\nHost: h:8080\r\nUser-Agent: plimsoll/"),
            "{put}"
        );
        let end = "Content-Type: application/json; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}";
        assert!(put.ends_with(end), "{put}");
        let remove = text(&one, Kind::Remove, b"");
        assert!(remove.starts_with("DELETE /t ") && remove.ends_with("\r\n\r\n"), "{remove}");
        assert!(!remove.contains("Content-"));
        let headers = [("content-type".to_owned(), "text/x".to_owned())];
        let two = text(&form(true, Packed::Never, &headers), Kind::Update, b"{}");
        assert!(two.starts_with("PUT /t "), "{two}");
        assert!(two.contains("content-type: text/x\r\n") && !two.contains("application/json"));
        assert!(!two.contains("Content-Length"), "{two}");
    }

    #[test]
    fn packed_bodies_unpack_to_what_they_were() {
        let mut packer = Packer::default();
        for length in [0, 1, 513, 100_000, 20] {
            let body: Vec<u8> =
                (0..length).map(|i| b"some words, again and again "[i % 28]).collect();
            let mut unpacked = Vec::new();
            let packed = packer.pack(&body);
            flate2::read::GzDecoder::new(packed).read_to_end(&mut unpacked).unwrap();
            assert_eq!(unpacked, body);
        }
        // What cannot be packed still is whole.
        let mut rng = plimsoll_core::rng::Rng::new(1);
        let noise: Vec<u8> = (0..50_000).map(|_| rng.next_u64() as u8).collect();
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(packer.pack(&noise)).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, noise);
        let form = form(false, Packed::Above(512), &[]);
        assert!(!text(&form, Kind::Put, &[b' '; 512]).contains("gzip"));
        assert!(text(&form, Kind::Put, &[b' '; 513]).contains("\r\nContent-Encoding: gzip\r\n"));
    }
}

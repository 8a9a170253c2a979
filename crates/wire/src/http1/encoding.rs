//! Codings of a body.

/// The way a body is coded: its `Content-Encoding`, or a `Transfer-Encoding` below `chunked`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// No coding.
    #[default]
    Identity,
    /// `gzip` or `x-gzip` (RFC 1952).
    Gzip,
    /// `deflate`: zlib (RFC 1950), or the bare deflate stream (RFC 1951) that some servers send.
    Deflate,
    /// Anything else (`br`, `zstd`), or several codings on top of each other.
    Other,
}

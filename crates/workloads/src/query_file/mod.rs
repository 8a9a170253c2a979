//! Query files in vespa-fbench's format: records of a URL and, for POST, a body.
//!
//! * Line ends are `\n`, `\r`, `\r\n` and `\n\r`. There are no comments and no escapes.
//! * GET: each line that is not empty is a request target, sent verbatim; where [`ReadOptions::own`] names the server,
//!   a path on it or a whole URL of it.
//! * POST: a line that starts with `/` is a URL; the lines up to the next such line are the body,
//!   joined by `\n` without a final one. Empty lines inside a body count.
//!
//! Files may be gzip. A file of at most [`PRELOAD_MAX_BYTES`] is read into a [`RequestSet`]; a
//! larger one is streamed by [`RecordReader`] in memory that does not grow with it.

mod lines;
mod origin;
mod parser;
mod pattern;
mod reader;
mod set;
mod source;
mod split;
#[cfg(test)]
mod tests;

pub use lines::{LineInfo, LineReader};
pub(crate) use origin::to_path;
pub use parser::{ReadOptions, Record, RecordKind, RecordParser, check_target};
pub use pattern::FilePattern;
pub use reader::{ByteRange, Passes, RecordReader, Scan, scan};
pub use set::{PRELOAD_MAX_BYTES, Queries, RequestRef, RequestSet};
pub use source::{SourceFile, unpack_stream};
pub use split::{PARTS_MAX, SplitOptions, SplitSummary, split, split_stdin};

/// Longest line by default, as in the original: a line of this many bytes or more is skipped and
/// counted.
pub const LINE_MAX_BYTES: usize = 131_072;
/// Smallest value for the longest line; smaller ones are raised to it, as in the original.
pub const LINE_MAX_BYTES_MIN: usize = 1024;
/// A POST body may have this many times the longest line; a larger one is skipped and counted.
pub const BODY_LINES_MAX: usize = 16;

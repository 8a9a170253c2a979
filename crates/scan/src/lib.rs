//! Approximate matching over raw bytes: which documents of a text contain something within `k` of a pattern?
//!
//! The documents lie one behind the other in one run of bytes ([`Corpus`]); a [`Pattern`] is looked for as a
//! substring, with at most `k` errors in all: edits (insert, delete, replace) or replacements only
//! ([`Metric`]). A match never reaches from one document into the next. There is no index: every byte is
//! looked at, at several gigabytes a second on one core, whatever `k` is.
//!
//! ```
//! use plimsoll_scan::{Case, Corpus, Found, Metric, Pattern};
//!
//! let text = b"Make Amerca great again.Hello kitty";
//! let corpus = Corpus::new(text, &[24, 35])?;
//! let pattern = Pattern::new(b"make america", Metric::Edits, 1, Case::IgnoreAscii)?;
//! let mut found = Found::new(corpus.documents());
//! pattern.scan().documents(&corpus, &mut found);
//! assert_eq!(found.iter().collect::<Vec<_>>(), [0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How
//!
//! Of `k + 1` disjoint parts of a pattern, `k` errors leave one untouched: where the parts are long and rare enough, they are
//! looked for, by two to four bytes each, and the rest around them (see `anchors`). Everywhere else:
//!
//! Text is turned into *bit planes*: a word holds one bit of 64 consecutive bytes, and the lanes of a vector
//! are streams that start at different places. Where a byte of the pattern occurs is then a few ANDs, and a
//! row of the table of edit distances (one byte of the pattern against 64 bytes of text) is a dozen
//! operations: Myers' bit-parallel recurrence, with the roles of pattern and text exchanged, so that the words
//! are always full however short the pattern is. The cost grows with the rows, not with `k`; and only as many
//! rows are computed as it takes to make chance matches rare, the rest is looked at where those match
//! (see `plan`). Replacements alone are counted with adders of one bit.
//!
//! Myers 1999, "A fast bit-vector algorithm for approximate string matching based on dynamic programming",
//! JACM 46(3); Hyyrö 2003, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances".
//!
//! The unit is the byte. [`letters`] makes one byte of each character where characters are to be the unit.
//!
//! This crate opens nothing, starts no thread and reads no clock.

mod anchors;
mod corpus;
mod dense;
mod distance;
mod instructions;
mod kernel;
pub mod letters;
mod metric;
mod pattern;
mod plan;
mod search;
mod sink;
mod streams;
mod vector;

pub use corpus::{Corpus, CorpusError, Found};
pub use instructions::Kernel;
pub use metric::{Case, Metric};
pub use pattern::{MAX_PATTERN_BYTES, Pattern, PatternError};
pub use search::Scan;

#[cfg(test)]
mod tests;

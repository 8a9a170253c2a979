//! Vespa's document ids, buckets, tokens and paths, against what the real handler did.

#![allow(clippy::unwrap_used)]

mod ids;
mod paths;
mod tokens;

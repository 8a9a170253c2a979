//! Visits: reading the documents of a slice of the bucket space, in order and in bounded memory.
//!
//! The space is cut into spans of a few buckets. Threads of a pool scan some of them at a time, and
//! the documents are returned in the order of the buckets: so an interrupted visit resumes
//! from a bucket, without a list of unfinished ones.

mod reader;
mod scan;

pub(crate) use reader::{MAX_AHEAD, Reader};
pub(crate) use scan::{Collect, VisitError, Wanted};

//! Visits: reading the documents of a slice of the bucket space, in order and in bounded memory.
//!
//! The space is cut into spans of a few buckets. Threads of a pool scan some of them at a time, and
//! what they find is given out in the order of the buckets: so a visit that was broken off goes on
//! from a bucket, with no list of those that were under way.

mod reader;
mod scan;

pub(crate) use reader::{MAX_AHEAD, Reader};
pub(crate) use scan::{Collect, VisitError, Wanted};

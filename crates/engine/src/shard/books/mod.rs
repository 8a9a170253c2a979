//! The books of a shard: what is written down while requests run.

pub(super) mod marks;
pub(super) mod noticing;
pub(super) mod samples;

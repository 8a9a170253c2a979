//! The connections of a shard: which are open, which are idle, and how many more are needed.

pub(super) mod closed;
pub(super) mod connection;
pub(super) mod growing;
pub(super) mod idle;

//! Comparing search engines over users, corpus sizes and queries: what a matrix leaves behind, and its arithmetic.

pub mod record;
pub mod statistics;

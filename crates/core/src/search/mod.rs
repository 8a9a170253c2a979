//! The arithmetic of comparing search engines over users, corpus sizes and queries.

pub mod statistics;

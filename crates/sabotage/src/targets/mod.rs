//! Targets whose truth is known.

pub mod station;

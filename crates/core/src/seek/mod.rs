//! The load line: the highest rate at which every limit holds.

pub mod fit;
pub mod plant;
pub mod search;

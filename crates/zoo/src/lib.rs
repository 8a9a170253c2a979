//! Plants with known load lines.

pub mod draw;
pub mod plant;

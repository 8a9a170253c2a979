//! Bars of a page: quantities side by side, each divided into parts. They are a picture in the markup itself.

use super::table::Table;

/// Most bars of one picture.
pub const BARS_MAX: usize = 64;

/// Bars with their table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// Meaning of the quantities.
    pub caption: String,
    /// Name and colour by meaning of the parts of each bar, from left to right.
    pub parts: Vec<(String, &'static str)>,
    /// Bars, at most [`BARS_MAX`]: name, one number a part, and the text at its end.
    pub bars: Vec<Bar>,
    /// The same numbers, and those of bars that are not drawn.
    pub twin: Table,
}

/// One bar.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bar {
    /// Name.
    pub name: String,
    /// One number a part, in one unit for all bars.
    pub values: Vec<f64>,
    /// The whole as people read it, with its unit.
    pub text: String,
}

//! The distance between texts, and the letters that are the same.

/// The errors that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Metric {
    /// A byte inserted, deleted or replaced (Levenshtein's distance).
    #[default]
    Edits,
    /// A byte replaced: what matches is as long as the pattern.
    Hamming,
}

/// Treatment of capital letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Case {
    /// Bytes are equal or they are not.
    #[default]
    Exact,
    /// The letters A to Z equal a to z; all other bytes are as they are.
    IgnoreAscii,
}

impl Case {
    /// The byte that stands for all bytes equal to this one.
    pub(crate) fn fold(self, byte: u8) -> u8 {
        match self {
            Self::Exact => byte,
            Self::IgnoreAscii => byte.to_ascii_lowercase(),
        }
    }
}

//! Patterns.

use crate::distance::Checker;
use crate::metric::{Case, Metric};

/// The longest pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 4096;

/// Reason why something is no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// There is nothing to look for.
    #[error("the pattern is empty; give at least one character to look for")]
    Empty,
    /// It is longer than [`MAX_PATTERN_BYTES`].
    #[error("the pattern has {length} bytes, more than {MAX_PATTERN_BYTES}; look for a part of it")]
    Long {
        /// Its length in bytes.
        length: usize,
    },
}

/// A pattern, a metric, and how many errors are allowed.
#[derive(Clone, Debug)]
pub struct Pattern {
    pub(crate) bytes: Vec<u8>,
    pub(crate) metric: Metric,
    pub(crate) distance: u32,
    pub(crate) case: Case,
    pub(crate) checker: Checker,
}

impl Pattern {
    /// A pattern that matches wherever some substring is within `distance` of it, by `metric`. Any distance
    /// is allowed; one of the pattern's length or more matches every document by edits, and every document
    /// that is long enough by replacements.
    ///
    /// # Errors
    ///
    /// An empty pattern, or one longer than [`MAX_PATTERN_BYTES`].
    pub fn new(
        bytes: &[u8],
        metric: Metric,
        distance: u32,
        case: Case,
    ) -> Result<Self, PatternError> {
        if bytes.is_empty() {
            return Err(PatternError::Empty);
        }
        if bytes.len() > MAX_PATTERN_BYTES {
            return Err(PatternError::Long { length: bytes.len() });
        }
        let bytes: Vec<u8> = bytes.iter().map(|&byte| case.fold(byte)).collect();
        let checker = Checker::new(&bytes, metric, case);
        Ok(Self { bytes, metric, distance, case, checker })
    }

    /// The bytes looked for, in lower case where case does not matter.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the errors that are counted.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Number of errors that are allowed.
    pub fn distance(&self) -> u32 {
        self.distance
    }

    /// Bytes of the shortest match there can be.
    pub(crate) fn least_bytes(&self) -> usize {
        match self.metric {
            Metric::Edits => self.bytes.len().saturating_sub(self.distance as usize),
            Metric::Hamming => self.bytes.len(),
        }
    }

    /// Returns true if the document contains a match.
    pub fn matches(&self, document: &[u8]) -> bool {
        self.checker.best(document, self.distance).is_some_and(|best| best <= self.distance)
    }

    /// The errors of the best match in the document, if it has a match at all. It takes about 3 ns a byte for
    /// patterns of up to 64 bytes: meant for documents that were found.
    pub fn best_distance(&self, document: &[u8]) -> Option<u32> {
        self.checker.best(document, 0).filter(|&best| best <= self.distance)
    }
}

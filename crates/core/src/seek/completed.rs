//! The rate that a target completes under overload, with its error.

/// Rate that the target completes under overload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Capacity {
    /// Requests per second.
    pub per_s: f64,
    /// Standard error as a share.
    pub error: f64,
    /// The same from a few long parts: completions of one part that are missing in the next make it larger.
    pub long_error: f64,
    /// Variance of the completions in a long part over their mean: near 1 for exponential services, more for heavy tails.
    pub index: f64,
}

#[cfg(test)]
impl Capacity {
    /// A capacity with exponential services and this standard error.
    pub fn of(per_s: f64, error: f64) -> Self {
        Self { per_s, error, long_error: error, index: 1.0 }
    }
}

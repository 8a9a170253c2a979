//! Settings of a search for the load line of calls.

use plimsoll_core::schedule::Arrivals;
use plimsoll_job::method::Method;

/// Rate to begin with, calls per second.
pub const START_PER_S: f64 = 200.0;
/// Highest rate to offer.
const MOST_PER_S: f64 = 2e6;

/// The settings of the search.
pub struct Search {
    /// Half-width of the interval.
    pub width: String,
    /// Confidence of the interval.
    pub confidence: String,
    /// Rate to begin with, calls per second.
    pub start_per_s: f64,
    /// Highest rate to offer, calls per second.
    pub most_per_s: f64,
    /// Arrivals of calls.
    pub arrivals: Arrivals,
    /// Method of the search.
    pub method: Method,
    /// True if the line is followed.
    pub watches: bool,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            width: "5%".to_owned(),
            confidence: "95%".to_owned(),
            start_per_s: START_PER_S,
            most_per_s: MOST_PER_S,
            arrivals: Arrivals::Poisson,
            method: Method::Plimsoll,
            watches: false,
        }
    }
}

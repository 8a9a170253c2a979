//! Reasons why a percentile has no interval.

use std::fmt;

/// The reason why a percentile has no interval. Its text is the end of a sentence that begins with "no interval:".
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// The run has too few periods.
    Short {
        /// Its length, s.
        run_s: f64,
        /// Shortest length, s.
        needed_s: f64,
    },
    /// The run has too few requests for this percentile.
    Few {
        /// Successful requests.
        requests: u64,
        /// Fewest requests.
        needed: u64,
    },
    /// Requests on the rarer side of the percentile came in too few groups.
    Groups {
        /// Independent requests that have the same variance.
        groups: f64,
        /// Fewest of them.
        needed: f64,
    },
    /// The target forgets its state too slowly.
    Memory {
        /// Longest time over which requests may depend on each other, s.
        memory_s: f64,
        /// Shortest length of a run, s.
        needed_s: f64,
    },
    /// Batches of the largest size depend on each other.
    Correlated,
    /// The times have a trend.
    Trend {
        /// True if they rise.
        rises: bool,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Short { run_s, needed_s } => {
                write!(
                    f,
                    "a run of {} is too short; it takes {}",
                    seconds(run_s),
                    seconds(needed_s)
                )
            }
            Self::Few { requests, needed } => {
                write!(f, "{requests} successful requests are too few; it takes {needed}")
            }
            Self::Groups { groups, needed } => write!(
                f,
                "slow requests came in about {groups:.0} independent groups; it takes {needed:.0}; run longer"
            ),
            Self::Memory { memory_s, needed_s } => write!(
                f,
                "requests may depend on each other for {}; it takes a run of about {}",
                seconds(memory_s),
                seconds(needed_s)
            ),
            Self::Correlated => {
                write!(
                    f,
                    "neighbouring parts of the run depend on each other at every batch size; run longer"
                )
            }
            Self::Trend { rises } => {
                let way = if rises { "rise" } else { "fall" };
                write!(f, "the times {way} during the run; use a longer --warmup or a steady load")
            }
        }
    }
}

/// A length in seconds, rounded up to two digits.
fn seconds(s: f64) -> String {
    let step = 10f64.powf(s.max(1e-9).log10().floor() - 1.0);
    let rounded = (s / step - 1e-9).ceil() * step;
    let decimals = (-step.log10()).clamp(0.0, 9.0).round() as usize;
    let text = format!("{rounded:.decimals$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} s")
}

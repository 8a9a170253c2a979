//! Figures of one part of a run.

use plimsoll_core::ledger::Ledger;
use plimsoll_core::seek::plant::Pace;
use plimsoll_engine::plant::pace_of;
use plimsoll_engine::run::RunEnd;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Figures of one part, for the table of agents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Its ledger.
    pub ledger: Ledger,
    /// Length of its measured stretch, s.
    pub measured_s: f64,
    /// 50th, 95th and 99th percentile of its response times, successful requests, ns.
    pub response_ns: [u64; 3],
    /// 99th percentile of its lag, ns.
    pub lag_p99_ns: u64,
    /// The lag as a search judges it: 0 if too few requests were sent.
    pace: Pace,
    /// CPU time, s.
    pub cpu_s: f64,
    /// Successful requests that ended in the measured stretch.
    pub ok_in_time: u64,
}

impl Figures {
    /// The part's lag, as a search judges it.
    #[must_use]
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Those of a part that has ended.
    #[must_use]
    pub fn of(end: &RunEnd) -> Self {
        let all = match &end.totals.classes[..] {
            [only] => Cow::Borrowed(only),
            _ => Cow::Owned(end.totals.all_classes()),
        };
        Self {
            ledger: end.totals.ledger,
            measured_s: end.measured_s,
            response_ns: [0.5, 0.95, 0.99].map(|quantile| all.response.quantile_ns(quantile)),
            lag_p99_ns: end.totals.lag.quantile_ns(0.99),
            pace: pace_of(end),
            cpu_s: end.cpu_s,
            ok_in_time: end.totals.counters.ok_in_time,
        }
    }
}

//! The crew that carries out the orders of a search: this process, or agents.

use super::{ns, windows_in};
use crate::run::RunEnd;
use crate::shard::ShardPlan;
use crate::windows::{WindowCounts, sums_of};
use plimsoll_core::clock::{MILLISECOND_NS, now_ns};
use plimsoll_core::seek::plant::{Order, Pace, Trial, Window};
use plimsoll_wire::{Protocol, Sessions};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Interval at which an order that may be ended early is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Requests that an order must have sent before its lag says something about the generator.
const LAG_COUNT_MIN: u64 = 200;

/// Everything that all processes of a search begin an order with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Brief {
    /// The order.
    pub order: Order,
    /// Time since the beginning of the search, ns.
    pub offset_ns: u64,
}

/// An order that was carried out.
pub struct Shift {
    /// Measurements of this process, or, where others send the load, of all of them; none if nothing was measured.
    pub end: Option<RunEnd>,
    /// Outcome of all processes together.
    pub trial: Trial,
}

impl Shift {
    /// An order that was not carried out because the search ends.
    #[must_use]
    pub fn ended() -> Self {
        Self { end: None, trial: Trial { interrupted: true, ..Trial::default() } }
    }
}

/// Processes that carry out the orders of a search.
pub trait Crew<P: Protocol> {
    /// Error that ends the search.
    type Error;

    /// Agrees on the next order: `own`, or the one of the process that leads the search. Nothing if the search ends.
    ///
    /// # Errors
    /// The run has ended.
    fn brief(&mut self, own: Brief) -> Result<Option<Brief>, Self::Error>;

    /// Carries an order out, and returns what all processes saw of it.
    ///
    /// # Errors
    /// Nothing was measured.
    fn carry_out(
        &mut self,
        plan: &ShardPlan,
        sessions: Vec<Box<dyn Sessions<P> + Send>>,
        lookout: &Lookout<'_>,
    ) -> Result<Shift, Self::Error>;

    /// The search is over.
    ///
    /// # Errors
    /// Another process of the run is not at the end of the search.
    fn end(&mut self) -> Result<(), Self::Error>;
}

/// A place from which an order is looked at while it is carried out.
pub struct Lookout<'a> {
    /// The order.
    pub order: &'a Order,
    /// Counts of this process, one of each shard.
    pub counts: &'a [Arc<WindowCounts>],
    /// Longest response time that a limit allows, ns: after it a request's verdict is known.
    pub limit_ns: u64,
    /// Time at which the order began, ns.
    pub began_ns: u64,
}

impl Lookout<'_> {
    /// Number of windows of an order.
    #[must_use]
    pub fn windows_of(order: &Order) -> usize {
        order.segments.iter().map(|s| windows_in(s.duration_s, order.window_s)).sum()
    }

    /// Number of windows whose verdicts are known.
    fn known(&self) -> usize {
        let Some(start_ns) = self.counts.iter().filter_map(|own| own.started_ns()).max() else {
            return 0;
        };
        let known_ns = now_ns().saturating_sub(start_ns + self.limit_ns + MILLISECOND_NS);
        let known = (known_ns / ns(self.order.window_s).max(1)) as usize;
        known.min(Self::windows_of(self.order))
    }

    /// Returns true if the order's abort rule ends it, after these windows.
    #[must_use]
    pub fn is_bad(&self, known: &[Window]) -> bool {
        self.order.abort.is_some_and(|abort| abort.is_due(known, &self.order.allowed))
    }

    /// Does `work`, and calls `look` with all windows that are known whenever there are more of them. Once it returns true,
    /// `end_early` is set; the result has the number of windows that were known then. An order without an abort rule is not
    /// looked at.
    pub fn during<T>(
        &self,
        end_early: Option<&AtomicBool>,
        look: &mut (dyn FnMut(&[Window]) -> bool + Send),
        work: impl FnOnce() -> T,
    ) -> (T, Option<usize>) {
        let Some(end_early) = end_early else { return (work(), None) };
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let mut judged = 0;
                while !done.load(Ordering::Relaxed) {
                    std::thread::sleep(LOOK_EVERY);
                    let known = self.known();
                    if known <= judged {
                        continue;
                    }
                    judged = known;
                    if look(&sums_of(self.counts)[..known]) {
                        end_early.store(true, Ordering::Relaxed);
                        return Some(known);
                    }
                }
                None
            });
            let result = work();
            done.store(true, Ordering::Relaxed);
            (result, watcher.join().ok().flatten())
        })
    }

    /// The outcome of an order that ended with these windows.
    #[must_use]
    pub fn trial(
        &self,
        mut windows: Vec<Window>,
        aborted_at: Option<usize>,
        is_interrupted: bool,
        pace: Pace,
    ) -> Trial {
        windows.truncate(aborted_at.unwrap_or(windows.len()));
        Trial {
            windows,
            elapsed_s: now_ns().saturating_sub(self.began_ns) as f64 / 1e9,
            aborted: aborted_at.is_some(),
            interrupted: is_interrupted,
            pace,
        }
    }
}

/// The generator's part in an order.
#[must_use]
pub fn pace_of(end: &RunEnd) -> Pace {
    let lag = &end.totals.lag;
    // Of fewer, the 99th percentile is the luck of one request.
    let is_known = lag.count() >= LAG_COUNT_MIN;
    Pace { lag_p99_s: if is_known { lag.quantile_ns(0.99) as f64 / 1e9 } else { 0.0 } }
}

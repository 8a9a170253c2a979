//! Bounds on the error that the generator's own delays may have added to a run's figures.
//!
//! A measured time is M = T + D: what the target took, and what this process added. D is known as several marginal
//! distributions over the same requests (lag, reading of replies, waiting for a processor), not request by request.
//! For any dependence, P(T > m - d) >= P(M > m) - P(D > d), so that for every share a of the requests
//!
//! > Q_T(q) >= Q_M(q - a) - Q_D(1 - a),
//!
//! the bound of Makarov (1981) for sums with known marginals. The best a gives the lower end; under an open load the upper
//! end is what was measured, because a delay is never negative. Under a closed load clients that waited for this process
//! asked less, and the target may have been quicker for that: there the upper end has the delays on top. Requests sent in the aftermath of a stall met a target that was
//! asked more than the schedule says: for them D has no bound.
//!
//! Rates follow from Little's law: N requests in flight at x per second stay N/x each; without the mean delay they
//! would have gone round faster.

use crate::delays::NOTICED_NS;
use crate::histogram::Histogram;
use crate::interval::Interval;
use serde::{Deserialize, Serialize};

/// An interval in which a figure lies that an ideal generator would have measured: the low and the high end.
pub type Bound = [f64; 2];

/// The bounds of the headline figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Bounds {
    /// Median of the response time, ms.
    pub p50_ms: Bound,
    /// 95th percentile of the response time, ms.
    pub p95_ms: Bound,
    /// 99th percentile of the response time, ms.
    pub p99_ms: Bound,
    /// Successful requests per second.
    pub ok_per_s: Bound,
}

impl Bounds {
    /// The percentiles, with their names and quantiles.
    #[must_use]
    pub const fn percentiles(&self) -> [(&'static str, f64, Bound); 3] {
        [("p50", 0.5, self.p50_ms), ("p95", 0.95, self.p95_ms), ("p99", 0.99, self.p99_ms)]
    }

    /// True if the target may do twice as many requests as were measured, or more: the rate is a lower bound.
    #[must_use]
    pub fn leaves_open(&self, ok_per_s: f64) -> bool {
        ok_per_s > 0.0 && self.ok_per_s[1] >= 2.0 * ok_per_s
    }
}

/// One kind of delay over the requests of a stretch.
pub(super) struct Marginal<'a> {
    /// Its values; requests that are not among them were delayed by less than the least that is noticed.
    pub times: &'a Histogram,
    /// Number of requests that the shares are of.
    pub count: u64,
}

impl Marginal<'_> {
    /// Value that at most one request in a hundred exceeded, ns.
    pub fn exceeded_by_one_percent(&self) -> f64 {
        self.exceeded_by(0.01)
    }

    /// The delay that at most `share` of the requests exceeded, ns.
    fn exceeded_by(&self, share: f64) -> f64 {
        let beyond = (share * self.count as f64).floor().max(0.0) as u64;
        let noticed = self.times.count();
        if beyond >= noticed {
            return if noticed == 0 { 0.0 } else { NOTICED_NS as f64 };
        }
        // Of those that were noticed, all but `beyond` are at most this.
        self.times.at_rank_ns(noticed - beyond) as f64
    }
}

/// Shares of the requests that are tried as a.
const SHARES: [f64; 18] = [
    0.0, 1e-5, 1e-4, 3e-4, 1e-3, 2e-3, 4e-3, 7e-3, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.18, 0.25,
    0.35, 0.45,
];

/// The lowest that the `quantile` of the target's own times can be, ns.
///
/// `disturbed` is the share of requests whose delay has no bound.
pub(super) fn least_quantile_ns(
    measured: &Histogram,
    quantile: f64,
    delays: &[Marginal<'_>],
    disturbed: f64,
) -> f64 {
    let parts = delays.iter().filter(|delay| !delay.times.is_empty()).count().max(1);
    let mut least = 0.0f64;
    for share in SHARES {
        let rank = quantile - disturbed - share;
        if rank <= 0.0 {
            break;
        }
        let shown_ns = measured.quantile_ns(rank) as f64;
        // The share is dealt out evenly, or nearly all of it to one kind of delay.
        let even = |_: usize| share / parts as f64;
        let mut delay_ns = sum_ns(delays, even);
        for favourite in 0..delays.len() {
            let mostly = |at: usize| {
                if at == favourite { 0.9 * share } else { 0.1 * share / parts as f64 }
            };
            delay_ns = delay_ns.min(sum_ns(delays, mostly));
        }
        least = least.max(shown_ns - delay_ns);
    }
    least.min(measured.quantile_ns(quantile) as f64)
}

/// The highest that the `quantile` of the target's own times can be, ns, under a closed load: clients that this process
/// keeps from asking leave the target with less to do. Requests that were kept, the target may have taken.
///
/// `mean_ns` is what a round of a client took of this process on average.
pub(super) fn most_quantile_ns(
    measured: &Histogram,
    quantile: f64,
    delays: &[Marginal<'_>],
    mean_ns: f64,
) -> f64 {
    let parts = delays.iter().filter(|delay| !delay.times.is_empty()).count().max(1);
    let with = |share: f64| {
        let shown_ns = measured.quantile_ns((quantile + share).min(1.0)) as f64;
        shown_ns + sum_ns(delays, |_| share / parts as f64)
    };
    let most = SHARES.into_iter().map(with).fold(f64::INFINITY, f64::min);
    most.max(measured.quantile_ns(quantile) as f64 + mean_ns)
}

fn sum_ns(delays: &[Marginal<'_>], share: impl Fn(usize) -> f64) -> f64 {
    delays.iter().enumerate().map(|(at, delay)| delay.exceeded_by(share(at))).sum()
}

/// Number of [`own_delays`] before the wait for a connection, which comes last.
pub(super) const WITHOUT_WAIT: usize = 4;

/// The delays of this process in a stretch, the lag of sending first, as shares of its successful requests: the worst
/// case is that every delay fell on one of those. Waiting for a connection is among them, whoever set their number: an ideal generator has one for
/// each request that is due.
pub(super) fn own_delays(totals: &Interval, may_wait: bool) -> Vec<Marginal<'_>> {
    let count = totals.ledger.ok.max(1);
    let delays = &totals.delays;
    let opening = may_wait.then_some(&delays.connection);
    let own = [&totals.lag, &delays.receive, &delays.send, &delays.starved];
    let times = own.into_iter().chain(opening);
    times.map(|times| Marginal { times, count }).collect()
}

/// Mean time that this process added to a request, ns, the wait for a connection among it where it counts. Waiting for a
/// processor is not in it: as a share of all time it is in [`super::Health`].
pub(super) fn mean_delay_ns(totals: &Interval, may_wait: bool) -> f64 {
    let sum = |times: &Histogram| times.mean_ns() * times.count() as f64;
    let delays = &totals.delays;
    let connection = if may_wait { sum(&delays.connection) } else { 0.0 };
    (sum(&totals.lag) + sum(&delays.receive) + sum(&delays.send) + connection)
        / totals.ledger.sent.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|ns| histogram.record(ns));
        histogram
    }

    /// Checks that, for any delays and any way in which they depend on the target's times, the target's own percentile lies in the bounds.
    #[test]
    fn the_truth_is_never_below_the_bound() {
        let mut rng = Rng::new(7);
        for case in 0..300 {
            let n = 200 + rng.below(2_000);
            let stalls = rng.below(4);
            let (mut own, mut lag, mut receive, mut shown) = (vec![], vec![], vec![], vec![]);
            for _ in 0..n {
                let target_ns = 100_000 + rng.below(20_000_000);
                // Long delays that fall on the slowest or on the fastest requests, or anywhere.
                let hit = match case % 3 {
                    0 => target_ns > 18_000_000,
                    1 => target_ns < 2_000_000,
                    _ => rng.below(20) < stalls,
                };
                let lag_ns = if hit { rng.below(30_000_000) } else { rng.below(9_000) };
                let receive_ns = if rng.below(10) == 0 { rng.below(3_000_000) } else { 0 };
                own.push(target_ns);
                lag.push(lag_ns);
                if receive_ns >= NOTICED_NS {
                    receive.push(receive_ns);
                }
                shown.push(target_ns + lag_ns + receive_ns);
            }
            let (own, shown) = (histogram(own), histogram(shown));
            let (lag, receive) = (histogram(lag), histogram(receive));
            let count = n;
            let delays = [Marginal { times: &lag, count }, Marginal { times: &receive, count }];
            for quantile in [0.5, 0.95, 0.99] {
                let least = least_quantile_ns(&shown, quantile, &delays, 0.0);
                let truth = own.quantile_ns(quantile) as f64;
                // Three digits of each of the three histograms.
                assert!(least <= truth * 1.003 + 60_000.0, "case {case}: {least} above {truth}");
                assert!(truth <= shown.quantile_ns(quantile) as f64 * 1.001, "case {case}");
            }
        }
    }

    /// A generator that is on time says so: the bound is next to what was measured.
    #[test]
    fn without_delays_the_bound_is_tight() {
        let shown = histogram((1..=10_000).map(|i| i * 1_000));
        let lag = histogram((1..=10_000).map(|i| i % 9_000));
        let delays = [Marginal { times: &lag, count: 10_000 }];
        for quantile in [0.5, 0.95, 0.99] {
            let least = least_quantile_ns(&shown, quantile, &delays, 0.0);
            let measured = shown.quantile_ns(quantile) as f64;
            assert!(measured - least < 15_000.0, "{quantile}: {least} of {measured}");
        }
    }

    /// One long stall in three hundred requests moves the 99th percentile by as much as one rank, and not by its length.
    #[test]
    fn one_hiccup_costs_one_rank() {
        let shown = histogram((0..300).map(|i| if i == 0 { 80_000_000 } else { 10_000_000 }));
        let lag = histogram((0..300).map(|i| if i == 0 { 70_000_000 } else { 5_000 }));
        let delays = [Marginal { times: &lag, count: 300 }];
        let least = least_quantile_ns(&shown, 0.99, &delays, 0.0);
        assert!((9_900_000.0..10_100_000.0).contains(&least), "{least}");
    }

    /// Requests in the aftermath of a stall may have taken any time.
    #[test]
    fn disturbed_requests_have_no_bound() {
        let shown = histogram((0..1000).map(|i| if i < 20 { 50_000_000 } else { 1_000_000 }));
        let lag = histogram([1_000; 1000]);
        let delays = [Marginal { times: &lag, count: 1000 }];
        assert!(least_quantile_ns(&shown, 0.99, &delays, 0.0) > 49_000_000.0);
        assert!(least_quantile_ns(&shown, 0.99, &delays, 0.02) < 1_100_000.0);
        assert_eq!(least_quantile_ns(&shown, 0.5, &delays, 0.6), 0.0);
    }
}

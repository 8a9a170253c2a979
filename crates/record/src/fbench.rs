//! Results of an fbench run: the figures of vespa-fbench's summary.

use plimsoll_core::interval::{ClassPart, Interval};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Percentiles that the summary prints.
pub const PERCENTILES: [f64; 12] =
    [25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.6, 99.7, 99.8, 99.9];

/// Options of the call that the summary prints.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FbenchOptions {
    /// `-n`.
    pub clients: u32,
    /// `-s` when the run took its time; after an interrupt the whole seconds that passed.
    pub ran_for_s: i64,
    /// `-c`, ms; negative means "as long as the answer took".
    pub cycle_ms: i64,
    /// `-l`.
    pub lower_limit_bytes: u64,
    /// Keep-alive in use, that is: no `-k`.
    pub keepalive: bool,
}

/// Exact sums of the clients, which histograms do not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FbenchSums {
    /// Clients that ran to their end.
    pub clients_ended: u32,
    /// Time between start and end of logging, summed over those clients, ns.
    pub elapsed_ns: u64,
    /// Lines of the query files that were longer than `-m`.
    pub skipped: u64,
}

/// The figures of the summary; stored in the record under `fbench`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FbenchResult {
    /// Clients (`-n`).
    pub clients: u32,
    /// Time that was asked for (`-s`), or whole seconds until the run was stopped, s.
    pub ran_for_s: i64,
    /// Cycle time (`-c`), ms; negative: as long as the answer took.
    pub cycle_ms: i64,
    /// Shortest reply that counts (`-l`), bytes.
    pub lower_limit_bytes: u64,
    /// Lines of the query files that were too long.
    pub skipped: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that succeeded.
    pub ok: u64,
    /// Requests that took as long as the cycle or longer; all of them when the cycle is 0.
    pub cycles_not_held: u64,
    /// Requests answered on a connection that had carried one before.
    pub reuse_count: u64,
    /// True if connections were kept (no `-k`).
    pub keepalive: bool,
    /// Shortest service time of the successful requests, exact, ms.
    pub min_ms: f64,
    /// Longest service time of the successful requests, exact, ms.
    pub max_ms: f64,
    /// Mean service time of the successful requests, exact, ms.
    pub avg_ms: f64,
    /// Distribution of the service times.
    pub percentiles: Vec<Percentile>,
    /// Successful requests per second of the clients' mean elapsed time.
    pub rate_per_s: f64,
    /// Share of the clients' time that was spent inside successful requests, percent.
    pub utilization_pct: f64,
    /// Successful requests without a hit.
    pub zero_hits: u64,
    /// Share of these, percent.
    pub zero_hit_pct: f64,
    /// Requests by status; 0 is "no answer".
    pub statuses: BTreeMap<u16, u64>,
}

/// One point of the distribution of service times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Percentile {
    /// The percentile, 0 to 100.
    pub percentile: f64,
    /// Service time that it has, ms.
    pub ms: f64,
}

impl FbenchResult {
    /// The figures of a run.
    ///
    /// `actual query rate = clients * ok / elapsed` and `utilization = 100 * service / elapsed`, both sums over
    /// the clients (the original's formulas, `fbench.cpp`).
    #[must_use]
    pub fn new(options: &FbenchOptions, totals: &Interval, sums: &FbenchSums) -> Self {
        let all = totals.all_classes();
        let ok = all.service.count();
        let ms = |ns: f64| ns / 1e6;
        let (min_ns, max_ns, sum_ns) = exact_times(&all);
        let elapsed_s = sums.elapsed_ns as f64 / 1e9;
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let percentile = |&percentile: &f64| Percentile {
            percentile,
            // The histogram's cells are a little wider than the exact extremes that stand beside them.
            ms: ms((all.service.quantile_ns(percentile / 100.0) as f64).clamp(min_ns, max_ns)),
        };
        Self {
            clients: options.clients,
            ran_for_s: options.ran_for_s,
            cycle_ms: options.cycle_ms,
            lower_limit_bytes: options.lower_limit_bytes,
            skipped: sums.skipped,
            failed: totals.ledger.failed.total(),
            ok,
            cycles_not_held: match options.cycle_ms {
                0 => totals.ledger.finished(),
                ..0 => 0,
                _ => totals.counters.cycles_late,
            },
            reuse_count: totals.counters.reused,
            keepalive: options.keepalive,
            min_ms: ms(min_ns),
            max_ms: ms(max_ns),
            avg_ms: ms(share(sum_ns, ok as f64)),
            percentiles: PERCENTILES.iter().map(percentile).collect(),
            rate_per_s: share(f64::from(sums.clients_ended) * ok as f64, elapsed_s),
            utilization_pct: 100.0 * share(sum_ns / 1e9, elapsed_s),
            zero_hits: all.zero_hits,
            zero_hit_pct: 100.0 * share(all.zero_hits as f64, ok as f64),
            statuses: statuses_with_unanswered(totals),
        }
    }
}

/// Exact smallest, largest and sum in ns; from the histogram when the recorder kept none.
fn exact_times(all: &ClassPart) -> (f64, f64, f64) {
    if all.service_max_ns > 0 {
        return (all.service_min_ns as f64, all.service_max_ns as f64, all.service_sum_ns as f64);
    }
    let sum_ns = all.service.mean_ns() * all.service.count() as f64;
    (all.service.min_ns() as f64, all.service.max_ns() as f64, sum_ns)
}

/// Every ended request has a line: those without any reply are status 0.
fn statuses_with_unanswered(totals: &Interval) -> BTreeMap<u16, u64> {
    let mut statuses = totals.statuses.clone();
    let answered: u64 = statuses.values().sum();
    let unanswered = totals.ledger.finished().saturating_sub(answered);
    if unanswered > 0 {
        *statuses.entry(0).or_default() += unanswered;
    }
    statuses
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::ledger::Ledger;

    #[test]
    fn the_formulas_are_the_originals() {
        let mut totals = Interval::new(2);
        // Two clients for 1 s each: 3 requests ok (100, 200, 300 ms), one refused, one 503.
        for (class, service_ms) in [(0, 100u64), (0, 200), (1, 300)] {
            totals.classes[class].record_ok(900_000_000, service_ms * 1_000_000 + 7);
            totals.classes[class].ledger.ok += 1;
        }
        totals.classes[1].zero_hits = 1;
        totals.ledger = Ledger { scheduled: 5, sent: 5, ok: 3, ..Ledger::default() };
        totals.ledger.failed.connect = 1;
        totals.ledger.failed.status = 1;
        totals.statuses = BTreeMap::from([(200, 3), (503, 1)]);
        totals.counters.cycles_late = 2;
        let options =
            FbenchOptions { clients: 2, ran_for_s: 1, cycle_ms: 250, ..FbenchOptions::default() };
        let sums = FbenchSums { clients_ended: 2, elapsed_ns: 2_000_000_000, skipped: 4 };
        let result = FbenchResult::new(&options, &totals, &sums);
        assert_eq!((result.ok, result.failed, result.skipped), (3, 2, 4));
        assert_eq!(result.cycles_not_held, 2);
        assert_eq!((result.min_ms, result.max_ms), (100.000_007, 300.000_007));
        assert!((result.avg_ms - 200.000_007).abs() < 1e-9);
        assert!((result.rate_per_s - 3.0).abs() < 1e-9);
        assert!((result.utilization_pct - 30.000_001_05).abs() < 1e-9);
        assert!((result.zero_hit_pct - 100.0 / 3.0).abs() < 1e-9);
        assert_eq!(result.statuses, BTreeMap::from([(0, 1), (200, 3), (503, 1)]));
        assert_eq!(result.percentiles[11].ms, result.max_ms);
        let median = result.percentiles[1].ms;
        assert!((median - 200.0).abs() < 0.2, "{median}");

        let always = FbenchOptions { cycle_ms: 0, ..options };
        assert_eq!(FbenchResult::new(&always, &totals, &sums).cycles_not_held, 5);
        let never = FbenchOptions { cycle_ms: -1, ..options };
        assert_eq!(FbenchResult::new(&never, &totals, &sums).cycles_not_held, 0);
    }
}

//! The statements of a run, compared with the arrivals that an observer saw.
//!
//! Two things must never be: a run that calls itself valid although requests came later at the target, against the schedule, than
//! its own lag says; and a response time that is better than the observer's: from when a request was due to when its answer
//! was handed over.

use super::Range;
use crate::targets::closed_form::quantile;
use crate::targets::observer::Arrival;
use serde_json::Value;

/// The percentiles that are compared, as the record names them.
const SHARES: [(&str, f64); 3] = [("p50", 0.50), ("p95", 0.95), ("p99", 0.99)];
/// Uncertainty of a time: loopback and the resolution of histograms, ms and share.
const TOLERANCE: (f64, f64) = (0.1, 0.02);
/// Share of requests for which the generator may have lost its processor between reading the clock and sending: for these, its
/// own statement is the time of sending in the record's bounds, not the lag.
const BETWEEN: f64 = 0.005;

/// Arrivals against the schedule, ms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Requests that came.
    pub count: usize,
    /// From when each was due to when it came: p50, p95, p99.
    pub lag_ms: [f64; 3],
    /// The longest of them.
    pub lag_max_ms: f64,
    /// From when each was due to when its answer was handed over, of those that succeeded: as many as the run says, and the
    /// fastest, as the observer does not know which answer came too late for its client.
    pub response_ms: [f64; 3],
    /// From when each came to when its answer was handed over.
    pub held_ms: [f64; 3],
}

/// Returns the percentiles of the arrivals of a uniform open load, whose request with the number n is due at n / rate. The start
/// of the schedule is not known to the observer: it takes the earliest that fits, so that its lags are at most the true ones. `ok`
/// is the number of successes that the run reports.
#[must_use]
pub fn seen(arrivals: &[Arrival], rate_per_s: f64, ok: u64) -> Seen {
    let due_ns = |arrival: &Arrival| (arrival.number as f64 * 1e9 / rate_per_s) as i64;
    let start = arrivals.iter().map(|one| one.came_ns as i64 - due_ns(one)).min().unwrap_or(0);
    let sorted = |time_ns: &dyn Fn(&Arrival) -> i64| {
        let mut all: Vec<u64> = arrivals.iter().map(|one| time_ns(one).max(0) as u64).collect();
        all.sort_unstable();
        all
    };
    let at =
        |all: &[u64], less: f64| SHARES.map(|(_, share)| quantile(all, share - less) as f64 / 1e6);
    let lag = sorted(&|one| one.came_ns as i64 - due_ns(one) - start);
    let mut response = sorted(&|one| one.answered_ns as i64 - due_ns(one) - start);
    response.truncate(ok as usize);
    Seen {
        count: arrivals.len(),
        lag_ms: at(&lag, BETWEEN),
        lag_max_ms: lag.last().map_or(0.0, |ns| *ns as f64 / 1e6),
        response_ms: at(&response, 0.0),
        held_ms: at(&sorted(&|one| one.answered_ns as i64 - one.came_ns as i64), 0.0),
    }
}

impl Seen {
    /// The figures of an ideal generator: no slower than the target was here. It may have been faster there, because requests
    /// that were held up by the generator came together.
    #[must_use]
    pub fn figures(&self) -> [Option<Range>; 4] {
        let times = self.held_ms.map(|ms| Some(Range { low: 0.0, high: ms }));
        [times[0], times[1], times[2], None]
    }

    /// Returns the lag that was seen beside the one that the record states, in words.
    #[must_use]
    pub fn words(&self, record: &Value) -> String {
        let [seen, stated] = [self.lag_ms[2], own_lag_ms(record, 2)];
        let longest = self.lag_max_ms;
        format!("p99 of lag {stated:.3} ms, seen {seen:.3} ms, at most {longest:.1} ms")
    }

    /// Returns the statement of a record that is too good, if there is one. `is_valid` is its verdict, within bounds or not.
    #[must_use]
    pub fn contradicts(&self, record: &Value, is_valid: bool) -> Option<String> {
        let number = |pointer: &str| record.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
        if self.count == 0 {
            return (number("/ledger/ok") > 0.0).then(|| "it saw no request".to_owned());
        }
        (0..SHARES.len()).find_map(|at| {
            let name = SHARES[at].0;
            let own = own_lag_ms(record, at);
            if is_valid && self.lag_ms[at] > slack(own) {
                return Some(format!(
                    "{name} of lag is {own:.3} ms at most, and requests came {:.3} ms late",
                    self.lag_ms[at]
                ));
            }
            let response = number(&format!("/latency_ms/response/{name}"));
            let is_shown = number("/ledger/ok") >= 100.0;
            (is_shown && slack(response) < self.response_ms[at]).then(|| {
                format!("{name} is {response:.3} ms, in truth {:.3} at least", self.response_ms[at])
            })
        })
    }
}

fn slack(ms: f64) -> f64 {
    ms * (1.0 + TOLERANCE.1) + TOLERANCE.0
}

/// The lateness that a record admits at a percentile: its lag. If requests waited for a connection, too, it is the sum of the next
/// higher percentiles of both: the shares of requests beyond them together are smaller than the share beyond the percentile.
fn own_lag_ms(record: &Value, at: usize) -> f64 {
    let of = |what: &str, name: &str| {
        record.pointer(&format!("/generator/{what}/{name}")).and_then(Value::as_f64).unwrap_or(0.0)
    };
    if of("connection_wait_ms", "count") == 0.0 {
        return of("lag_ms", SHARES[at].0);
    }
    let higher = ["p90", "p99", "p99_9"][at];
    of("lag_ms", higher) + of("connection_wait_ms", higher)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A thousand requests a second; each came `late(n)` ms after it was due and was answered 1 ms later.
    fn arrivals(late_ms: impl Fn(u64) -> u64) -> Vec<Arrival> {
        let one = |number| {
            let came_ns = 5_000_000_000 + (number + late_ms(number)) * 1_000_000;
            Arrival { number, came_ns, answered_ns: came_ns + 1_000_000 }
        };
        (0..1_000).map(one).collect()
    }

    fn record(lag_ms: f64, response_ms: f64) -> Value {
        let all = |ms: f64| json!({"count": 1000, "p50": ms, "p90": ms, "p95": ms, "p99": ms, "p99_9": ms});
        json!({
            "ledger": {"ok": 1000},
            "latency_ms": {"response": all(response_ms)},
            "generator": {"lag_ms": all(lag_ms), "connection_wait_ms": {"count": 0}}
        })
    }

    #[test]
    fn lateness_is_that_against_the_schedule() {
        let seen = seen(&arrivals(|number| if number % 10 == 0 { 20 } else { 0 }), 1_000.0, 1_000);
        assert_eq!((seen.count, seen.lag_ms, seen.lag_max_ms), (1_000, [0.0, 20.0, 20.0], 20.0));
        assert_eq!((seen.response_ms, seen.held_ms), ([1.0, 21.0, 21.0], [1.0; 3]));
    }

    #[test]
    fn a_run_that_says_less_than_the_observer_saw_is_found() {
        let late = seen(&arrivals(|number| number % 2 * 10), 1_000.0, 1_000);
        // Honest about both: the lag in its lag, and the waiting in its response times.
        assert_eq!(late.contradicts(&record(10.0, 11.1), true), None);
        let lag = late.contradicts(&record(0.2, 11.1), true).unwrap();
        assert!(lag.starts_with("p95 of lag is 0.200 ms at most"), "{lag}");
        // Only a valid verdict claims that the lag is small; a response time is claimed by every one.
        assert_eq!(late.contradicts(&record(0.2, 11.1), false), None);
        let better = late.contradicts(&record(10.0, 1.1), false).unwrap();
        assert!(better.contains("in truth 11.000 at least"), "{better}");
    }

    #[test]
    fn an_answer_that_came_after_the_timeout_is_in_no_response_time() {
        let late = arrivals(|number| if number < 100 { 5_000 } else { 0 });
        let seen = seen(&late, 1_000.0, 900);
        assert_eq!(seen.response_ms, [1.0; 3]);
        assert_eq!(seen.lag_ms[2], 5_000.0);
    }

    #[test]
    fn a_wait_for_a_connection_is_lateness_that_was_admitted() {
        let late = seen(&arrivals(|number| number % 2 * 10), 1_000.0, 1_000);
        let mut waited = record(0.1, 11.1);
        waited["generator"]["connection_wait_ms"] =
            json!({"count": 500, "p90": 10.0, "p99": 10.0, "p99_9": 10.0});
        assert_eq!(late.contradicts(&waited, true), None);
    }

    #[test]
    fn an_observer_that_saw_nothing_contradicts_every_success() {
        let nothing = seen(&[], 1_000.0, 0);
        assert!(nothing.contradicts(&record(0.0, 1.0), true).is_some());
        assert_eq!(nothing.contradicts(&json!({"ledger": {"ok": 0}}), false), None);
    }
}

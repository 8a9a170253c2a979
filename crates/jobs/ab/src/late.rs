//! Answers where the generator's own delays were large: the pairs at equal delays.
//!
//! Delays from outside, such as a host that runs another machine, hit both blocks of a pair by chance, and what they add to the noise of
//! the pairs is in each interval already. Only delays that one side has more of throughout could be taken for a difference of the
//! targets. So the ratio of each percentile is stated at equal delays ([`restated`]), and a side that has clearly more of them is a limit.

use crate::measured::{Measured, totals};
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::Interval;
use plimsoll_decide::pairs::Pairs;
use plimsoll_decide::pairs::at_equal::restated;
use plimsoll_record::ab::AbPair;

/// A generator whose delays are a larger share of the response times than this measured itself.
const SMALL: f64 = 0.2;

/// Returns true if answers on this metric can be stated at equal delays: times that grow with each delay.
#[must_use]
pub fn is_of_times(metric: &str) -> bool {
    metric == "mean" || metric.strip_prefix('p').is_some_and(|rest| rest.parse::<f64>().is_ok())
}

/// Returns the mean time that the generator added to a request, as a share of `unit_ns`; a delay counts for at most that time, as a
/// longer one moves no percentile further than past the others.
fn share(block: &Interval, unit_ns: f64) -> f64 {
    let delays = [&block.lag, &block.delays.receive, &block.delays.send];
    let sum = |times: &Histogram| -> f64 {
        times.cells().map(|(ns, count)| (ns as f64).min(unit_ns) * count as f64).sum()
    };
    delays.into_iter().map(sum).sum::<f64>() / unit_ns / block.ledger.sent.max(1) as f64
}

fn mean_ns(block: &Interval) -> Option<f64> {
    let response = block.all_classes().response;
    (!response.is_empty()).then(|| response.mean_ns())
}

/// Returns the delays of both blocks of a pair, in mean response times of the pair.
#[must_use]
pub fn delays(both: &[Box<Measured>; 2]) -> Option<(f64, f64)> {
    let measured = |block: &Measured| match (&block.cut, &block.record) {
        (Some(cut), _) => Some(cut.clone()),
        (None, record) => record.as_deref().map(totals),
    };
    let (a, b) = (measured(&both[0])?, measured(&both[1])?);
    let unit_ns = 0.5 * (mean_ns(&a)? + mean_ns(&b)?);
    Some((share(&a, unit_ns), share(&b, unit_ns)))
}

/// Returns true if the delays are small beside the response times, so that a ratio is still that of the targets.
#[must_use]
pub fn are_small(all: &Interval) -> bool {
    mean_ns(all).is_some_and(|unit_ns| share(all, unit_ns) <= SMALL)
}

/// Returns the delays of the pairs that count and have them, and what B's are above A's.
#[must_use]
pub fn differences(pairs: &[AbPair]) -> (Vec<(f64, f64)>, Vec<f64>) {
    let counted = pairs.iter().filter(|pair| pair.left_out.is_empty());
    let delays: Vec<(f64, f64)> = counted.filter_map(|pair| pair.delays).collect();
    let differences = delays.iter().map(|(a, b)| b - a).collect();
    (delays, differences)
}

/// Returns the comparison at equal delays.
///
/// `columns` are the log ratios of the metrics that are decided, none for one that cannot be stated in this way; `delays` are those of the
/// same pairs.
#[must_use]
pub fn at_equal_delays(
    decision: &Pairs,
    columns: &[Option<&[Option<f64>]>],
    delays: &[Option<(f64, f64)>],
) -> Pairs {
    let differences: Vec<_> = delays.iter().map(|both| both.map(|(a, b)| b - a)).collect();
    restated(decision, columns, &differences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_decide::pairs::{Direction, Kind, Metric, Terms};
    use plimsoll_report::samples;

    /// A hundred requests of 10 ms, of which some were sent 5 ms late.
    fn block(late: u64) -> Box<Measured> {
        let mut cut = samples::second(0, 0, 0);
        cut.ledger.sent = 100;
        cut.classes[0].response = Histogram::new();
        cut.classes[0].response.record_many(10_000_000, 100);
        (cut.lag, cut.delays) = Default::default();
        cut.lag.record_many(5_000_000, late);
        Box::new(Measured { cut: Some(cut), ..Measured::default() })
    }

    #[test]
    fn delays_are_shares_of_a_response_and_at_most_one() {
        let (a, b) = delays(&[block(0), block(10)]).unwrap();
        assert!(a.abs() < 1e-9 && (b - 0.05).abs() < 1e-3, "{a} {b}");
        let mut stalled = block(0);
        stalled.cut.as_mut().unwrap().lag.record_many(2_000_000_000, 10);
        assert!((delays(&[block(0), stalled]).unwrap().1 - 0.1).abs() < 1e-3);
        assert_eq!(delays(&[block(0), Box::default()]), None);
    }

    #[test]
    fn delays_of_half_a_response_are_not_small() {
        assert!(are_small(block(10).cut.as_ref().unwrap()));
        assert!(!are_small(block(100).cut.as_ref().unwrap()));
    }

    /// B's generator is later than A's in most pairs, by different amounts, and that is all that makes B look slower.
    #[test]
    fn delays_of_one_side_are_no_difference_of_the_targets() {
        let metric = Metric { name: "p50".to_owned(), direction: Direction::LowerIsBetter };
        let terms = Terms { error: 0.05, margin: 0.05, pairs_most: 40 };
        let noise = |at: usize| 0.01 * ((at * 7 % 11) as f64 - 5.0) / 5.0;
        let answer = |of_target: f64| {
            let delays: Vec<_> =
                (0..40).map(|at| Some((0.01, 0.01 + 0.02 * (at % 5) as f64))).collect();
            let ratios: Vec<_> = (0..40)
                .map(|at| Some(of_target + 1.5 * 0.02 * (at % 5) as f64 + noise(at)))
                .collect();
            let mut decision = Pairs::new(terms, vec![metric.clone()]);
            ratios.iter().for_each(|ratio| decision.add(&[*ratio]));
            let equal = at_equal_delays(&decision, &[Some(&ratios[..])], &delays);
            (decision.findings()[0].kind, equal.findings()[0].kind)
        };
        assert_eq!(answer(0.0), (Kind::Worse, Kind::Same));
        assert_eq!(answer(0.06), (Kind::Worse, Kind::Worse));
    }

    #[test]
    fn only_times_are_stated_at_equal_delays() {
        assert!(["mean", "p50", "p99.9"].into_iter().all(is_of_times));
        assert!(!["max", "rate", "cpu", "errors", "max-rate"].into_iter().any(is_of_times));
    }
}

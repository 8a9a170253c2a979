//! Rules that other tools merge by, and are wrong: each would give another result here than the merge does.

use super::*;
use crate::end::EndLine;
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::histogram::{Histogram, LARGEST_NS};

/// An agent's part: the response times of each second, ms.
struct Made {
    seconds: Vec<Interval>,
    totals: Interval,
}

fn made(seconds: &[(u64, Vec<u64>)]) -> Made {
    let mut part = Made { seconds: Vec::new(), totals: Interval::new(1) };
    let mut from_ns = 0;
    for (to_s, times_ms) in seconds {
        let mut second = Interval::new(1);
        (second.from_ns, second.to_ns) = (from_ns, to_s * SECOND_NS);
        from_ns = second.to_ns;
        for &time_ms in times_ms {
            let ledger = &mut second.ledger;
            (ledger.scheduled, ledger.sent, ledger.ok) =
                (ledger.scheduled + 1, ledger.sent + 1, ledger.ok + 1);
            second.counters.ok_in_time += 1;
            second.classes[0].record_ok(time_ms * MILLISECOND_NS, time_ms * MILLISECOND_NS);
        }
        part.totals.merge(&second);
        part.seconds.push(second);
    }
    part
}

fn ended(part: &Made, measured_s: f64, seconds: usize) -> Ended {
    let end = RunEnd { totals: part.totals.clone(), measured_s, ..RunEnd::default() };
    Ended { phase: 0, seconds: seconds as u64, end: Ok(EndLine::from(&end)), windows: Vec::new() }
}

/// Merges parts whose seconds come in turn, and returns the seconds that were shown and the whole.
fn merged(parts: &[Made], measured_s: f64) -> (Vec<Interval>, Whole) {
    let mut gathering = Gathering::of(parts.len());
    let mut shown = Vec::new();
    let most = parts.iter().map(|part| part.seconds.len()).max().unwrap_or(0);
    for second in 0..most {
        for (index, part) in parts.iter().enumerate() {
            if let Some(second) = part.seconds.get(second) {
                shown.extend(gathering.second(index, &Compact::from(second)).unwrap());
            }
        }
    }
    for (index, part) in parts.iter().enumerate() {
        let end = ended(part, measured_s, part.seconds.len());
        shown.extend(gathering.ended(index, end, 7).unwrap());
    }
    assert!(gathering.is_over());
    (shown, gathering.finish())
}

fn p(histogram: &Histogram, quantile: f64) -> f64 {
    histogram.quantile_ns(quantile) as f64 / MILLISECOND_NS as f64
}

/// The fast agent answered 990 requests in 10 ms, the slow one ten in 1,000 ms: the p95 of all is 10 ms.
fn fast_and_slow() -> [Made; 2] {
    [made(&[(1, vec![10; 990])]), made(&[(1, vec![1_000; 10])])]
}

fn all(parts: &[Made]) -> Histogram {
    let mut all = Histogram::new();
    for part in parts {
        all.merge(&part.totals.all_classes().response);
    }
    all
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= other * 0.002
}

#[test]
fn a_percentile_is_not_the_average_of_percentiles() {
    let parts = fast_and_slow();
    let average =
        parts.iter().map(|part| p(&all(std::slice::from_ref(part)), 0.95)).sum::<f64>() / 2.0;
    let (_, whole) = merged(&parts, 1.0);
    let merged = p(&whole.end.totals.all_classes().response, 0.95);
    assert!(near(merged, 10.0), "{merged}");
    assert!(near(average, 505.0), "the wrong rule says {average}");
}

#[test]
fn a_percentile_is_not_the_maximum_of_percentiles() {
    let parts = fast_and_slow();
    let most =
        parts.iter().map(|part| p(&all(std::slice::from_ref(part)), 0.95)).fold(0.0, f64::max);
    let (_, whole) = merged(&parts, 1.0);
    assert!(near(p(&whole.end.totals.all_classes().response, 0.95), 10.0));
    assert!(near(most, 1_000.0), "the wrong rule says {most}");
}

#[test]
fn a_percentile_is_not_the_percentile_of_percentiles() {
    // Of four agents three are idle and fast; half of all requests are with the slow one.
    let idle = || made(&[(1, vec![1; 10])]);
    let parts = [idle(), idle(), idle(), made(&[(1, vec![100; 30])])];
    let mut medians: Vec<f64> =
        parts.iter().map(|part| p(&all(std::slice::from_ref(part)), 0.5)).collect();
    medians.sort_by(f64::total_cmp);
    let wrong = medians[1];
    let (_, whole) = merged(&parts, 1.0);
    let response = whole.end.totals.all_classes().response;
    assert!(near(p(&response, 0.75), 100.0) && near(wrong, 1.0));
    assert_eq!(response.count(), 60);
}

#[test]
fn a_rate_is_over_the_time_of_the_run_and_not_of_the_merge() {
    let parts = [
        made(&[(1, vec![1; 800]), (2, vec![1; 800])]),
        made(&[(1, vec![1; 200]), (2, vec![1; 200])]),
    ];
    let (_, whole) = merged(&parts, 2.0);
    let rate_per_s = whole.end.totals.counters.ok_in_time as f64 / whole.end.measured_s;
    assert!((rate_per_s - 1_000.0).abs() < 1e-9, "{rate_per_s}");
    assert!((whole.end.totals.seconds() - 2.0).abs() < 1e-9);
}

/// An agent that was busy makes one interval of two seconds; added by position, its third second would fall into the second one.
#[test]
fn intervals_of_unequal_length_are_added_by_time_and_not_by_position() {
    let even = made(&[(1, vec![1; 10]), (2, vec![1; 10]), (3, vec![1; 10])]);
    let busy = made(&[(2, vec![1; 20]), (3, vec![1; 5])]);
    let (shown, whole) = merged(&[even, busy], 3.0);
    let rows: Vec<(u64, u64)> =
        shown.iter().map(|it| (it.to_ns / SECOND_NS, it.ledger.ok)).collect();
    assert_eq!(rows, [(1, 10), (2, 30), (3, 15)]);
    assert_eq!(whole.end.totals.ledger.ok, 55);
}

/// The last second of a load ends with the last request of each agent. Shown by themselves, each end would look like a fall of the rate.
#[test]
fn the_last_seconds_of_all_agents_are_one_second_though_they_end_at_different_moments() {
    let part = |ends_ns: u64, offset_ns: u64| {
        let mut part = made(&[(1, vec![1; 10]), (2, vec![1; 10])]);
        part.seconds[1].to_ns = ends_ns;
        for second in &mut part.seconds {
            (second.from_ns, second.to_ns) = (second.from_ns + offset_ns, second.to_ns + offset_ns);
            second.phase = 3;
        }
        part
    };
    for offset_ns in [0, 345_678_901] {
        let ends_ns = [1_990_000_000, 1_993_000_000, 1_200_000_000];
        let (shown, whole) = merged(&ends_ns.map(|ns| part(ns, offset_ns)), 2.0);
        let rows: Vec<(u64, u64, u64, u32)> = shown
            .iter()
            .map(|it| (it.from_ns - offset_ns, it.to_ns - offset_ns, it.ledger.ok, it.phase))
            .collect();
        let expected = [(0, SECOND_NS, 30, 3), (SECOND_NS, 1_993_000_000, 30, 3)];
        assert_eq!(rows, expected);
        assert_eq!(whole.end.totals.ledger.ok, 60);
    }
}

/// A tree of merges gives the same as one merge, and drops nothing.
#[test]
fn a_merge_of_merges_is_the_merge_of_all() {
    let parts: Vec<Made> = (1..=8)
        .map(|agent| {
            made(&[(1, (0..agent * 10).map(|at| at * agent).collect()), (2, vec![agent; 7])])
        })
        .collect();
    let (_, flat) = merged(&parts, 2.0);
    let halves: Vec<Made> = parts
        .chunks(3)
        .map(|some| {
            let (seconds, whole) = merged(some, 2.0);
            Made { seconds, totals: whole.end.totals }
        })
        .collect();
    let (shown, nested) = merged(&halves, 2.0);
    assert_eq!(nested.end.totals, flat.end.totals);
    assert_eq!(shown.iter().map(|second| second.ledger.ok).sum::<u64>(), flat.end.totals.ledger.ok);
}

/// A second that comes after the others' is in the sum. One that never comes is not forgiven.
#[test]
fn a_late_second_is_counted_and_a_missing_one_is_an_error() {
    let parts =
        [made(&[(1, vec![1; 5]), (2, vec![1; 5])]), made(&[(1, vec![1; 5]), (2, vec![1; 5])])];
    let mut gathering = Gathering::of(2);
    let mut shown = 0;
    for second in &parts[0].seconds {
        shown += gathering.second(0, &Compact::from(second)).unwrap().len();
    }
    shown += gathering.ended(0, ended(&parts[0], 2.0, 2), 0).unwrap().len();
    assert_eq!(shown, 0, "the seconds wait for the other part");
    gathering.second(1, &Compact::from(&parts[1].seconds[0])).unwrap();
    let why = gathering.ended(1, ended(&parts[1], 2.0, 2), 0).unwrap_err();
    assert!(why.contains("1 of its 2 seconds arrived"), "{why}");
    gathering.lost(1);
    let whole = gathering.finish();
    assert_eq!(whole.end.totals.ledger.ok, 15, "what came is shown");
    assert!(whole.end.interrupted && whole.parts[1].is_none());
    whole.end.totals.ledger.balance().unwrap();
}

/// The second came, with another content than its agent counted.
#[test]
fn seconds_that_do_not_add_up_to_the_whole_are_an_error() {
    let part = made(&[(1, vec![5; 9])]);
    let mut changed = part.seconds[0].clone();
    changed.classes[0].response = Histogram::new();
    changed.classes[0].response.record_many(6 * MILLISECOND_NS, 9);
    let mut gathering = Gathering::of(1);
    gathering.second(0, &Compact::from(&changed)).unwrap();
    let why = gathering.ended(0, ended(&part, 1.0, 1), 0).unwrap_err();
    assert!(why.contains("do not add up"), "{why}");
}

/// There is one scale: values that are too large for it are counted at its end, in each part as in the whole.
#[test]
fn values_beyond_the_scale_stay_in_the_count() {
    let beyond_ms = LARGEST_NS / MILLISECOND_NS * 3;
    let parts = [made(&[(1, vec![1, beyond_ms])]), made(&[(1, vec![2, 3])])];
    let (_, whole) = merged(&parts, 1.0);
    let response = whole.end.totals.all_classes().response;
    assert_eq!(response.count(), 4);
    assert!(response.max_ns() >= LARGEST_NS, "{}", response.max_ns());
}

#[test]
fn seconds_of_an_agent_that_is_far_behind_do_not_fill_the_memory() {
    let mut gathering = Gathering::of(2);
    for number in 0..=WAITING_MAX as u64 {
        let part = made(&[(number + 1, vec![1])]);
        gathering.second(0, &Compact::from(&part.seconds[0])).unwrap();
    }
    assert_eq!(gathering.laggard(), Some(1));
    assert_eq!(gathering.lost(1).len(), WAITING_MAX + 1);
    assert_eq!(gathering.laggard(), None);
}

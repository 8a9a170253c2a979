use super::*;
use plimsoll_core::histogram::Histogram;
use plimsoll_core::rng::Rng;
use proptest::prelude::*;

const ALL: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// Periods of `count` response times each, ns.
fn periods(number: usize, count: usize, mut draw: impl FnMut(usize) -> f64) -> Vec<Packed> {
    let mut period = |at| {
        let mut times = Histogram::new();
        (0..count).for_each(|_| times.record((1e6 * draw(at)) as u64));
        Packed::of(&times)
    };
    (0..number).map(&mut period).collect()
}

fn exponential(number: usize, count: usize, seed: u64) -> Vec<Packed> {
    let mut rng = Rng::new(seed);
    periods(number, count, |_| 10.0 * rng.exponential())
}

#[test]
fn independent_times_have_the_interval_of_order_statistics() {
    let found = intervals(&exponential(60, 1_000, 2), 1.0, &ALL);
    for (quantile, answer) in ALL.iter().zip(found) {
        let interval = answer.unwrap();
        let true_ns = -10e6 * (1.0 - quantile).ln();
        assert!(
            interval.low_ns < true_ns && true_ns < interval.high_ns,
            "{quantile}: {interval:?}"
        );
        // A share of 60,000 independent requests has this standard error; a quantile divides it by the density.
        let error_ns = (quantile * (1.0 - quantile) / 60_000.0).sqrt() * 10e6 / (1.0 - quantile);
        let width = (interval.high_ns - interval.low_ns) / error_ns;
        assert!((2.5..6.5).contains(&width), "{quantile}: {width}");
        assert_eq!(interval.batches, 30);
    }
}

#[test]
fn a_short_run_has_no_interval_and_says_how_long_it_takes() {
    let found = intervals(&exponential(2, 1_000, 1), 1.0, &ALL);
    assert!(found.iter().all(|one| *one == Err(Reason::Short { run_s: 2.0, needed_s: 30.0 })));
    assert_eq!(found[0].unwrap_err().to_string(), "a run of 2 s is too short; it takes 30 s");
    assert!(intervals(&[], 1.0, &ALL).iter().all(Result::is_err));
}

#[test]
fn a_percentile_of_few_requests_has_no_interval() {
    let found = intervals(&exponential(30, 10, 1), 1.0, &ALL);
    assert!(found[0].is_ok() && found[2].is_ok(), "{found:?}");
    assert_eq!(found[3], Err(Reason::Few { requests: 300, needed: 1_000 }));
    assert_eq!(
        found[4].unwrap_err().to_string(),
        "300 successful requests are too few; it takes 10000"
    );
}

#[test]
fn times_that_rise_have_no_interval() {
    let mut rng = Rng::new(3);
    let rising = periods(60, 500, |at| (10.0 + 0.05 * at as f64) * rng.exponential());
    let answers = intervals(&rising, 1.0, &[0.5]);
    assert!(answers[0].is_err(), "{answers:?}");
}

#[test]
fn a_level_that_wanders_slowly_has_no_interval() {
    let (mut rng, mut level) = (Rng::new(5), 0.0f64);
    let levels: Vec<f64> = (0..60)
        .map(|_| {
            level = 0.9 * level + 0.3 * (rng.uniform() - 0.5);
            level.exp()
        })
        .collect();
    let wandering = periods(60, 500, |at| 10.0 * levels[at] * rng.exponential());
    for answer in intervals(&wandering, 1.0, &ALL[..3]) {
        assert!(answer.is_err(), "{answer:?}");
    }
}

#[test]
fn a_constant_time_is_its_own_interval() {
    let found = intervals(&periods(40, 100, |_| 5.0), 1.0, &[0.5, 0.95]);
    for answer in found {
        let interval = answer.unwrap();
        for end_ns in [interval.low_ns, interval.high_ns] {
            assert!((end_ns / 5e6 - 1.0).abs() < 1e-3, "{interval:?}");
        }
    }
}

#[test]
fn correlated_requests_have_a_wider_interval_than_independent_ones() {
    let mut rng = Rng::new(11);
    // Groups of 20 requests share one factor, as behind a pause of the target.
    let (mut left, mut factor) = (0, 1.0);
    let grouped = periods(240, 1_000, |_| {
        if left == 0 {
            (left, factor) = (20, 1.0 + rng.exponential());
        }
        left -= 1;
        factor * (1.0 + 0.01 * rng.uniform())
    });
    let grouped = intervals(&grouped, 1.0, &[0.5])[0].unwrap();
    assert!((6_000.0..24_000.0).contains(&grouped.independent), "{grouped:?}");
}

#[test]
fn reasons_name_lengths_in_two_digits() {
    let memory = Reason::Memory { memory_s: 0.1234, needed_s: 812.0 };
    assert_eq!(
        memory.to_string(),
        "requests may depend on each other for 0.13 s; it takes a run of about 820 s"
    );
}

proptest! {
    #[test]
    fn ends_enclose_the_percentile_of_the_run(
        times in proptest::collection::vec(proptest::collection::vec(1_000u64..9_000_000_000, 0..40), 0..90),
        quantile in 0.01f64..0.9999,
    ) {
        let mut whole = Histogram::new();
        let periods: Vec<Packed> = times
            .iter()
            .map(|period| {
                let mut own = Histogram::new();
                period.iter().for_each(|&ns| own.record(ns));
                whole.merge(&own);
                Packed::of(&own)
            })
            .collect();
        if let Ok(interval) = intervals(&periods, 1.0, &[quantile])[0] {
            let estimate_ns = whole.quantile_ns(quantile) as f64;
            prop_assert!(interval.low_ns <= estimate_ns && estimate_ns <= interval.high_ns);
            prop_assert!(interval.low_ns > 0.0 && interval.high_ns <= whole.max_ns() as f64);
            prop_assert!(interval.batches >= BATCHES_LEAST && interval.batches < 2 * BATCHES_LEAST);
        }
    }
}

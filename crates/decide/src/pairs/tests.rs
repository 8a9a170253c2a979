use super::*;
use plimsoll_core::rng::Rng;

fn metrics(names: &[&str]) -> Vec<Metric> {
    let one =
        |name: &&str| Metric { name: (*name).to_owned(), direction: Direction::LowerIsBetter };
    names.iter().map(one).collect()
}

fn terms(pairs_most: usize) -> Terms {
    Terms { error: 0.05, margin: 0.05, pairs_most }
}

fn normal(rng: &mut Rng) -> f64 {
    (2.0 * rng.exponential()).sqrt() * (std::f64::consts::TAU * rng.uniform()).cos()
}

/// Adds values until the comparison is settled.
fn settle(pairs: &mut Pairs, mut value: impl FnMut() -> f64) -> Finding {
    while !pairs.settled() {
        pairs.add(&[Some(value())]);
    }
    pairs.findings()[0]
}

#[test]
fn a_clear_difference_ends_at_the_first_look_that_can_find_it() {
    let mut rng = Rng::new(1);
    let mut pairs = Pairs::new(terms(88), metrics(&["p95"]));
    let finding = settle(&mut pairs, || 0.2 + 0.05 * normal(&mut rng));
    assert_eq!((finding.kind, pairs.pairs()), (Kind::Worse, 22));
    assert!(finding.low > 1.15 && finding.high < 1.3, "{finding:?}");
    assert!(finding.p_value <= 0.05 && finding.why.is_none() && finding.pairs_needed.is_none());
}

#[test]
fn what_is_good_decides_between_better_and_worse() {
    for (direction, kind) in
        [(Direction::LowerIsBetter, Kind::Better), (Direction::HigherIsBetter, Kind::Worse)]
    {
        let mut rng = Rng::new(2);
        let metric = Metric { name: "rate".to_owned(), direction };
        let mut pairs = Pairs::new(terms(30), vec![metric]);
        assert_eq!(settle(&mut pairs, || -0.3 + 0.02 * normal(&mut rng)).kind, kind);
    }
}

#[test]
fn equal_sides_are_the_same_within_the_margin_which_holds_the_interval() {
    let mut rng = Rng::new(3);
    let mut pairs = Pairs::new(terms(88), metrics(&["p95"]));
    let finding = settle(&mut pairs, || 0.05 * normal(&mut rng));
    assert_eq!(finding.kind, Kind::Same);
    assert!(finding.low > 1.0 / 1.05 && finding.high < 1.05, "{finding:?}");
    assert!(pairs.pairs() < 88);
}

#[test]
fn fewer_than_six_pairs_never_claim() {
    for most in [1, 5, 40] {
        let mut pairs = Pairs::new(terms(most), metrics(&["p95"]));
        for _ in 0..5.min(most) {
            pairs.add(&[Some(3.0)]);
        }
        pairs.close();
        let finding = pairs.findings()[0];
        assert_eq!((finding.kind, finding.why), (Kind::CannotTell, Some(Why::FewPairs)), "{most}");
    }
    let mut pairs = Pairs::new(terms(40), metrics(&["p95"]));
    assert!(pairs.findings()[0].ratio.is_nan());
    for at in 0..6 {
        pairs.add(&[Some(3.0 + 0.01 * f64::from(at))]);
    }
    assert!(!pairs.settled());
    pairs.close();
    assert_eq!(pairs.findings()[0].kind, Kind::Worse);
}

#[test]
fn a_metric_without_a_value_in_more_than_a_tenth_of_the_pairs_has_no_answer() {
    let mut pairs = Pairs::new(terms(20), metrics(&["p95", "cpu"]));
    for at in 0..20 {
        let noise = f64::from(at % 3) * 0.01;
        pairs.add(&[
            (at != 4).then_some(0.5 + noise),
            (at % 5 != 0).then_some(f64::NAN.max(0.5 + noise)),
        ]);
    }
    let findings = pairs.findings();
    assert_eq!((findings[0].kind, findings[0].pairs), (Kind::Worse, 19));
    assert_eq!((findings[1].kind, findings[1].why), (Kind::CannotTell, Some(Why::Missing(4))));
}

#[test]
fn what_it_would_take_is_enough_nine_times_in_ten() {
    let spread = 0.25;
    let mut rng = Rng::new(5);
    let mut pairs = Pairs::new(terms(40), metrics(&["p95"]));
    let finding = settle(&mut pairs, || spread * normal(&mut rng));
    assert_eq!((finding.kind, finding.why), (Kind::CannotTell, Some(Why::Spread)));
    let needed = finding.pairs_needed.unwrap();
    assert!((200..600).contains(&needed), "{needed}");
    let found = (0..100)
        .filter(|_| {
            let mut pairs = Pairs::new(terms(needed), metrics(&["p95"]));
            settle(&mut pairs, || 0.05f64.ln_1p() + spread * normal(&mut rng)).kind == Kind::Worse
        })
        .count();
    assert!(found >= 80, "{found} of 100 with {needed} pairs");
}

#[test]
fn false_claims_stay_below_the_error_with_heavy_tails_and_drift_and_many_metrics() {
    let mut rng = Rng::new(6);
    for heavy in [false, true] {
        let mut claims = 0;
        for _ in 0..400 {
            let mut pairs = Pairs::new(terms(40), metrics(&["p50", "p95", "p99", "mean"]));
            let mut drift = 0.0;
            while !pairs.settled() {
                let before = drift;
                drift = 0.8 * drift + 0.1 * normal(&mut rng);
                // The order within the pair is random.
                let drifted = (drift - before) * (rng.uniform() - 0.5).signum();
                let shared = 0.05 * normal(&mut rng);
                let tail = if heavy { rng.exponential().powi(5) * 0.1 } else { 0.05 };
                let mut value = || Some(drifted + shared + tail * normal(&mut rng));
                let values = [value(), value(), value(), value()];
                pairs.add(&values);
            }
            let claimed = |f: &Finding| matches!(f.kind, Kind::Better | Kind::Worse);
            claims += usize::from(pairs.findings().iter().any(claimed));
        }
        // 5 % of 400 are 20; this many or more have a probability below 0.001.
        assert!(claims < 35, "{claims} of 400 sessions, heavy tails: {heavy}");
    }
}

#[test]
fn the_t_test_alone_is_not_enough_for_a_claim() {
    // One huge pair: its sign says nothing, and neither test believes it.
    let mut pairs = Pairs::new(terms(12), metrics(&["p95"]));
    for at in 0..12 {
        pairs.add(&[Some(if at == 3 { 5.0 } else { 0.0 })]);
    }
    assert_eq!(pairs.findings()[0].kind, Kind::CannotTell);
    // Six equal pairs: t is infinite, and half of 1/32 of the signs do as well; two metrics are too many for that.
    let mut pairs = Pairs::new(terms(6), metrics(&["p50", "p95"]));
    for at in 0..6 {
        pairs.add(&[Some(0.3 + 1e-9 * f64::from(at)), Some(0.3 + 1e-9 * f64::from(at))]);
    }
    assert!(pairs.findings().iter().all(|finding| finding.kind == Kind::CannotTell));
}

#[test]
fn holm_adjusts_as_in_the_paper() {
    let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
    for (value, wanted) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
        assert!((value - wanted).abs() < 1e-12, "{adjusted:?}");
    }
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    assert!(holm(&[]).is_empty());
}

#[test]
fn pairs_after_the_end_are_dropped() {
    let mut pairs = Pairs::new(terms(6), metrics(&["p95"]));
    for _ in 0..10 {
        pairs.add(&[Some(0.1)]);
    }
    assert_eq!(pairs.pairs(), 6);
    pairs.close();
    assert_eq!(pairs.findings()[0].pairs, 6);
}

#[test]
fn the_error_of_a_scale_widens_an_interval_and_never_reaches_0() {
    let mut rng = Rng::new(11);
    let values: Vec<f64> = (0..40).map(|_| 0.2 + 0.2 * normal(&mut rng)).collect();
    let mut pairs = Pairs::new(terms(40), metrics(&["max rate"]));
    for value in &values {
        pairs.add(&[Some(*value)]);
    }
    let mut before = pairs.findings()[0];
    let claim = before.kind;
    for error in [0.05, 0.2, 0.4, 0.6, 5.0, f64::INFINITY] {
        pairs.restate(0, &values, error);
        let wider = pairs.findings()[0];
        assert!(wider.low <= before.low && before.high <= wider.high, "{error}: {wider:?}");
        assert!(wider.low >= 1.0 && wider.ratio == before.ratio, "{error}: {wider:?}");
        assert_eq!((wider.kind, wider.high.is_finite()), (claim, error < 0.45), "{error}");
        before = wider;
    }
    // Without a difference, an unknown scale leaves nothing known.
    let none: Vec<f64> = values.iter().map(|value| value - 0.2).collect();
    pairs.restate(0, &none, 3.0);
    let unknown = pairs.findings()[0];
    assert_eq!((unknown.low, unknown.high), (0.0, f64::INFINITY));
}

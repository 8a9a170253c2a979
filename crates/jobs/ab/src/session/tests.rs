use super::*;

/// A comparison of p50 whose first look showed B as clearly worse.
fn looked() -> Done {
    let metric = Metric { name: "p50".to_owned(), is_higher_better: false, is_named: true };
    let wish = Wish {
        metrics: vec![metric],
        error: 0.05,
        margin: 0.05,
        budget_s: 180.0,
        seed: 1,
        halves: None,
        asked_s: (None, None),
    };
    let mut done = Done::new(&wish, AbPlan::default(), [Seen::default(); 2], 80);
    (0..20).for_each(|at| done.decision.add(&[Some(0.5 + 0.01 * f64::from(at % 3))]));
    assert!(done.decision.has_looked() && done.decision.settled());
    done
}

#[test]
fn delays_of_one_side_may_be_chance_until_the_last_pair() {
    let mut done = looked();
    assert!(done.is_settled());
    done.is_one_sided = true;
    assert!(!done.is_settled());
    done.planned = 20;
    assert!(done.is_settled());
}

#[test]
fn a_late_generator_needs_the_answer_at_equal_delays() {
    let mut done = looked();
    done.late = Some(done.decision.clone());
    assert!(done.is_settled());
    done.late = Some(done.decision.again(&vec![vec![None]; 20]));
    assert!(!done.is_settled());
}

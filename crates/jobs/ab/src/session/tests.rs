use super::*;

/// A metric of which lower is better, and that gets an answer.
pub fn named(name: &str) -> Metric {
    Metric { name: name.to_owned(), is_higher_better: false, is_named: true }
}

/// A comparison of these metrics.
pub fn wish(metrics: Vec<Metric>) -> Wish {
    Wish {
        metrics,
        error: 0.05,
        margin: 0.05,
        budget_s: 180.0,
        seed: 1,
        halves: None,
        asked_s: (None, None),
    }
}

/// Twenty pairs in which each metric of B is above that of A by this logarithm, nearly; with a look after the last one.
pub fn looked(wish: &Wish, above: f64) -> Done {
    let mut done = Done::new(wish, AbPlan::default(), [Seen::default(); 2], 80);
    for at in 0..20 {
        let ratio = Some(above + 0.01 * (f64::from(at % 3) - 1.0));
        done.log_ratios.iter_mut().for_each(|all| all.push(ratio));
        done.decision.add(&vec![ratio; wish.decided().count()]);
    }
    assert!(done.decision.has_looked() && done.decision.settled());
    done
}

/// A comparison of p50 whose first look showed B as clearly worse.
fn worse() -> Done {
    looked(&wish(vec![named("p50")]), 0.5)
}

#[test]
fn delays_of_one_side_may_be_chance_until_the_last_pair() {
    let mut done = worse();
    assert!(done.is_settled());
    done.is_one_sided = true;
    assert!(!done.is_settled());
    done.planned = 20;
    assert!(done.is_settled());
}

#[test]
fn a_late_generator_needs_the_answer_at_equal_delays() {
    let mut done = worse();
    done.late = Some(done.decision.clone());
    assert!(done.is_settled());
    done.late = Some(done.decision.again(&vec![vec![None]; 20]));
    assert!(!done.is_settled());
}

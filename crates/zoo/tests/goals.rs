//! Goals of all kinds on a plant whose line is known.

use plimsoll_core::seek::finding::{Event, Finding, Phase, Verdict};
use plimsoll_core::seek::goal::{Goal, Limit};
use plimsoll_core::seek::plant::{Order, Plant, Trial};
use plimsoll_core::seek::rivals::{self, RATIOS, Rival, Task};
use plimsoll_core::seek::search::seek;
use plimsoll_zoo::draw::Draw;
use plimsoll_zoo::oracles::{line, mmk_late};
use plimsoll_zoo::plant::{Arrivals, Queue, QueuePlant};
use plimsoll_zoo::quirk::Quirk;

/// M/M/4 of 20 ms: p95 of 100 ms is at 163.04/s.
fn mm4() -> Queue {
    Queue {
        servers: 4,
        service: Draw::Exponential(0.02),
        delay_s: 0.0,
        arrivals: Arrivals::Poisson,
        quirk: Quirk::None,
    }
}

fn search(queue: Queue, limits_s: &[f64], goal: &Goal) -> Finding {
    seek(&mut QueuePlant::new(queue, limits_s, goal.seed + 77), goal, &mut |_| ())
}

/// A plant that somebody interrupts at a given order.
struct Interrupted {
    inner: QueuePlant,
    orders: u32,
}

impl Plant for Interrupted {
    fn run(&mut self, order: &Order) -> Trial {
        let mut trial = self.inner.run(order);
        trial.interrupted = self.orders == 0;
        self.orders = self.orders.saturating_sub(1);
        trial
    }

    fn limits(&self) -> usize {
        self.inner.limits()
    }
}

#[test]
fn the_limit_that_breaks_first_is_the_one_that_is_told() {
    // p99 within 130 ms breaks before p95 within 100 ms does.
    let p99 = line(200.0, 0.01, |rate| mmk_late(4, 0.02, rate, 0.13));
    assert!(p99 < 160.0);
    let goal = Goal {
        limits: vec![Limit::late("p95=100ms", 0.05), Limit::late("p99=130ms", 0.01)],
        limit_s: 0.13,
        ..Goal::late(0.05, 0.1, 300.0, 5)
    };
    let found = search(mm4(), &[0.1, 0.13], &goal);
    assert_eq!(found.binding.as_deref(), Some("p99=130ms"));
    let interval = found.interval_per_s.expect("a fit");
    assert!(interval.0 <= p99 && p99 <= interval.1, "{p99} in {interval:?}");
}

#[test]
fn a_limit_on_the_mean_has_its_line() {
    // M/M/1 of 20 ms: the mean is 100 ms at 40/s. The plant's own limit is only how long a verdict is open.
    let queue = Queue { servers: 1, ..mm4() };
    let goal =
        Goal { limits: vec![Limit::mean("mean=100ms", 0.1)], ..Goal::late(0.05, 0.1, 300.0, 3) };
    let near = (0..5).filter(|seed| {
        let found = search(queue, &[0.1], &Goal { seed: *seed, ..goal.clone() });
        let estimate = found.estimate_per_s.expect("a fit");
        let interval = found.interval_per_s.expect("a fit");
        eprintln!("{estimate} {interval:?}");
        (estimate / 40.0 - 1.0).abs() < 0.15 && interval.0 <= 40.0 && 40.0 <= interval.1
    });
    assert!(near.count() >= 4);
}

#[test]
fn an_interrupted_search_ends_in_every_phase_with_what_it_knows() {
    let mut seen = Vec::new();
    for orders in 0..40 {
        let mut plant = Interrupted { inner: QueuePlant::new(mm4(), &[0.1], 1), orders };
        let mut phase = Phase::WarmUp;
        let found = seek(&mut plant, &Goal::late(0.05, 0.1, 300.0, 1), &mut |event| {
            if let Event::Phase { phase: next, .. } = event {
                phase = *next;
            }
        });
        if found.verdict != Verdict::Interrupted {
            break;
        }
        assert!(found.elapsed_s > 0.0 && !found.phases.is_empty());
        assert!(orders < 8 || !found.curve.is_empty());
        seen.push(phase);
    }
    seen.dedup();
    assert!(seen.len() >= 6, "{seen:?}");
}

#[test]
fn the_budget_is_kept_however_small() {
    for budget_s in [0.05, 0.3, 1.0, 5.0, 20.0, 60.0] {
        for seed in 0..5 {
            let goal = Goal::late(0.05, 0.1, budget_s, seed);
            let found = search(mm4(), &[0.1], &goal);
            // A ramp that doubles may leave a backlog of a few seconds to wait for.
            assert!(found.elapsed_s <= budget_s + 6.0, "{budget_s}: {}", found.elapsed_s);
            if budget_s < 5.0 {
                assert_eq!(found.verdict, Verdict::BudgetTooSmall, "{}", found.reason);
            }
        }
    }
}

/// One look at the highest rate holds by chance now and then; a run does not, where the limit breaks.
#[test]
fn a_highest_rate_above_the_line_is_not_said_to_hold() {
    let mut said = 0;
    for seed in 0..200 {
        // The line of M/M/4 with 20 ms and p95 <= 100 ms is 163.04/s.
        let goal = Goal { most_per_s: 1.15 * 163.04, ..Goal::late(0.05, 0.1, 60.0, seed) };
        let found = search(mm4(), &[0.1], &goal);
        said += u32::from(matches!(found.verdict, Verdict::NeverViolated { .. }));
        assert!(found.curve.iter().all(|seen| seen.rate_per_s <= goal.most_per_s), "{seed}");
    }
    assert!(said <= 2, "{said} of 200");
    for seed in 0..10 {
        let goal = Goal { most_per_s: 0.7 * 163.04, ..Goal::late(0.05, 0.1, 60.0, seed) };
        let found = search(mm4(), &[0.1], &goal);
        let is_certified = found.certified.is_some_and(|run| run.rate_per_s == goal.most_per_s);
        let is_held = matches!(found.verdict, Verdict::NeverViolated { .. });
        assert!(is_held && is_certified, "{seed}: {:?}, {}", found.verdict, found.reason);
    }
}

#[test]
fn a_rate_of_a_million_and_a_goal_of_nothing_end_in_a_sentence() {
    let fast = Queue { servers: 64, service: Draw::Fixed(1e-6), ..mm4() };
    let mut goal = Goal::late(0.05, 0.01, 30.0, 1);
    goal.start_per_s = 1e5;
    goal.most_per_s = 1e6;
    let found = search(fast, &[0.01], &goal);
    assert_eq!(found.verdict, Verdict::NeverViolated { at_least_per_s: 1e6 }, "{}", found.reason);
    for (broken, word) in [
        (Goal { limits: Vec::new(), ..goal.clone() }, "limits"),
        (Goal { limit_s: 0.0, ..goal.clone() }, "time limit"),
        (Goal { budget_s: f64::NAN, ..goal.clone() }, "budget"),
        (Goal { confidence: 1.0, ..goal.clone() }, "confidence"),
    ] {
        let found = search(mm4(), &[0.01], &broken);
        assert_eq!(found.verdict, Verdict::Infeasible);
        assert!(found.reason.contains(word), "{}", found.reason);
    }
}

#[test]
fn the_same_seed_finds_the_same() {
    let goal = Goal::late(0.05, 0.1, 120.0, 9);
    assert_eq!(search(mm4(), &[0.1], &goal), search(mm4(), &[0.1], &goal));
}

#[test]
fn the_headline_was_measured_and_held() {
    for seed in 0..10 {
        let found = search(mm4(), &[0.1], &Goal::late(0.05, 0.1, 300.0, seed));
        let certified = found.certified.expect("a certified rate");
        assert!(certified.late_share[0] <= 0.05 && certified.seconds > 0.0);
        assert!(certified.rate_per_s <= found.estimate_per_s.expect("a fit") * 1.05);
        let failing = found.failing.expect("a failing rate");
        assert!(failing.rate_per_s > certified.rate_per_s && failing.late_share[0] > 0.05);
        assert!(found.curve.windows(2).all(|w| w[0].rate_per_s < w[1].rate_per_s));
    }
}

#[test]
fn feedsims_own_search_takes_half_an_hour_and_is_a_little_low() {
    let limits_s = RATIOS.map(|ratio| ratio * 0.1);
    let errors: Vec<f64> = (0..8)
        .map(|seed| {
            let mut plant = QueuePlant::new(mm4(), &limits_s, seed);
            let task = Task {
                allowed: 0.05,
                limit: 1,
                limit_s: 0.1,
                seed,
                start_per_s: 8.0,
                most_per_s: 1e6,
            };
            let answer = rivals::search(Rival::Feedsim, &mut plant, task);
            assert!((1500.0..3000.0).contains(&answer.elapsed_s), "{}", answer.elapsed_s);
            answer.rate_per_s / 163.04 - 1.0
        })
        .collect();
    let median = plimsoll_zoo::table::quantile(errors.into_iter(), 0.5);
    assert!((-0.04..0.02).contains(&median), "{median}");
}

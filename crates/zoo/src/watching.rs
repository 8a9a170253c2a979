//! Plants whose line is followed over time: does the interval of a stretch hold the line of the state that the plant was
//! in then?

use crate::draw::Draw;
use crate::models::{self, Model};
use crate::oracles::{line, mmk_late};
use crate::plant::{Arrivals, Queue, QueuePlant};
use crate::quirk::Quirk;
use crate::table::quantile;
use plimsoll_core::seek::finding::Finding;
use plimsoll_core::seek::goal::Goal;
use plimsoll_core::seek::plant::{Order, Plant, Trial};
use plimsoll_core::seek::watch::watch;

/// Limit of the plants that change, s, for 95 % of the requests, and the mean service time of a server, s.
const LIMIT_S: f64 = 0.1;
const SERVICE_S: f64 = 0.02;

/// A plant with a line for every moment.
#[derive(Clone, Debug)]
pub struct Followed {
    /// Short name.
    pub name: &'static str,
    queue: Queue,
    goal: Goal,
    /// From when on, s, which line holds, requests per second.
    lines: Vec<(f64, f64)>,
    /// Length, in budgets.
    longer: f64,
    /// Until when the plant changes without a break, s.
    restless_until_s: f64,
}

/// The result of one plant that was followed.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Stretches, and those of them in which the plant did not change.
    pub stretches: usize,
    /// Of these.
    pub settled: usize,
    /// Settled stretches with an interval, and those whose interval holds the line.
    pub intervals: usize,
    /// Of these.
    pub covering: usize,
    /// States that the plant was said to have.
    pub states: u32,
    /// Half of the last interval's width over its line.
    pub half_width: f64,
    /// From the plant's last change to the end of the first stretch whose interval holds the new line, s.
    pub delay_s: f64,
}

/// A plant that notes when it had how many servers.
struct Noted {
    inner: QueuePlant,
    now_s: f64,
    /// Orders during which servers came: from, until, s, and how many there were then.
    came: Vec<(f64, f64, usize)>,
}

impl Plant for Noted {
    fn run(&mut self, order: &Order) -> Trial {
        let (before, from_s) = (self.inner.servers(), self.now_s);
        let trial = self.inner.run(order);
        self.now_s += trial.elapsed_s;
        if self.inner.servers() != before {
            self.came.push((from_s, self.now_s, self.inner.servers()));
        }
        trial
    }

    fn limits(&self) -> usize {
        self.inner.limits()
    }
}

impl Followed {
    /// Follows it with one seed.
    #[must_use]
    pub fn follow(&self, seed: u64, budget_s: f64) -> (Outcome, Finding) {
        let limit_s = self.goal.limit_s;
        let inner = QueuePlant::new(self.queue, &[limit_s], seed.wrapping_mul(0x9e37_79b9) + 7);
        let mut plant = Noted { inner, now_s: 0.0, came: Vec::new() };
        let goal = Goal { budget_s: budget_s * self.longer, seed, ..self.goal.clone() };
        let found = watch(&mut plant, &goal, &mut |_| ());
        (self.outcome(&found, &plant.came), found)
    }

    fn outcome(&self, found: &Finding, came: &[(f64, f64, usize)]) -> Outcome {
        let mut lines = self.lines.clone();
        lines.extend(came.iter().map(|(_, until_s, servers)| (*until_s, mmk(*servers, 1.0))));
        let line_at = |at_s: f64| lines.iter().rev().find(|(from_s, _)| *from_s <= at_s);
        let mut outcome = Outcome { delay_s: f64::NAN, half_width: f64::NAN, ..Outcome::default() };
        let last_s = lines.last().map_or(0.0, |(from_s, _)| from_s.max(self.restless_until_s));
        for one in found.watch.iter().flatten() {
            outcome.stretches += 1;
            outcome.states = outcome.states.max(one.state);
            let within = |at_s: f64| one.from_s < at_s && at_s < one.until_s;
            let grew = came
                .iter()
                .any(|(from_s, until_s, _)| *from_s < one.until_s && one.from_s < *until_s);
            if grew || one.from_s < self.restless_until_s || lines.iter().any(|l| within(l.0)) {
                continue;
            }
            outcome.settled += 1;
            let truth = line_at(0.5 * (one.from_s + one.until_s)).map_or(f64::NAN, |line| line.1);
            if let Some((low, high)) = one.interval_per_s {
                outcome.intervals += 1;
                let covers = low <= truth && truth <= high;
                outcome.covering += usize::from(covers);
                outcome.half_width = 0.5 * (high - low) / truth;
                if covers && outcome.delay_s.is_nan() && one.from_s >= last_s {
                    outcome.delay_s = one.until_s - last_s;
                }
            }
        }
        outcome
    }
}

/// Late after half a second, and slower by `factor` after 150 s.
fn patient(name: &'static str, factor: f64) -> Followed {
    const LIMIT_S: f64 = 0.5;
    let line_of = |slower: f64| {
        let service_s = SERVICE_S * slower;
        line(4.0 / service_s, 0.05, |rate| mmk_late(4, service_s, rate, LIMIT_S))
    };
    let step = Quirk::Step { at_s: 150.0, factor };
    let plain = changing(name, step, &[(0.0, line_of(1.0)), (150.0, line_of(factor))]);
    Followed { goal: Goal::late(0.05, LIMIT_S, 600.0, 0), longer: 3.0, ..plain }
}

fn mmk(servers: usize, slower: f64) -> f64 {
    let service_s = SERVICE_S * slower;
    line(servers as f64 / service_s, 0.05, |rate| mmk_late(servers, service_s, rate, LIMIT_S))
}

fn stationary(model: &Model) -> Followed {
    Followed {
        name: model.name,
        queue: model.queue,
        goal: model.goal(0),
        lines: vec![(0.0, model.line_per_s)],
        longer: 1.0,
        restless_until_s: 0.0,
    }
}

fn changing(name: &'static str, quirk: Quirk, lines: &[(f64, f64)]) -> Followed {
    let service = Draw::Exponential(SERVICE_S);
    Followed {
        name,
        queue: Queue { servers: 4, service, delay_s: 0.0, arrivals: Arrivals::Poisson, quirk },
        goal: Goal::late(0.05, LIMIT_S, 600.0, 0),
        lines: lines.to_vec(),
        longer: 1.0,
        restless_until_s: 0.0,
    }
}

/// All of them: those that change are M/M/4 of 20 ms with p95 of 100 ms.
#[must_use]
pub fn all() -> Vec<Followed> {
    let step = |at_s, factor| Quirk::Step { at_s, factor };
    let cold = |until_s, factor| Quirk::Cold { factor, until_s };
    let (plain, slow, fast) = (mmk(4, 1.0), mmk(4, 4.0 / 3.0), mmk(4, 0.75));
    let leak = Quirk::Drift { share: 0.3, over_s: 300.0 };
    let scales = Quirk::ScalesOut { most: 8, after_s: 40.0 };
    let mut set: Vec<Followed> = models::tuning().iter().map(stationary).collect();
    set.extend([
        changing("-25 % at 150s", step(150.0, 4.0 / 3.0), &[(0.0, plain), (150.0, slow)]),
        changing("+33 % at 150s", step(150.0, 0.75), &[(0.0, plain), (150.0, fast)]),
        changing("cold 1.5x 30s", cold(30.0, 1.5), &[(0.0, mmk(4, 1.5)), (30.0, plain)]),
        changing("cold 1.5x 150s", cold(150.0, 1.5), &[(0.0, mmk(4, 1.5)), (150.0, plain)]),
        // While it is cold, a service alone is late more often than one time in twenty.
        changing("cold 2x 150s", cold(150.0, 2.0), &[(0.0, 0.0), (150.0, plain)]),
        changing("scales out 4-8", scales, &[(0.0, plain)]),
        patient("/5 at 150s", 5.0),
        patient("x5 at 150s", 0.2),
        Followed {
            restless_until_s: 300.0,
            ..changing("leaks 30 %", leak, &[(0.0, plain), (300.0, mmk(4, 1.3))])
        },
    ]);
    set
}

/// The table's head for [`line_of()`]: stretches a search; of those in which the plant did not change the share with an
/// interval and the share of intervals that hold the line; states; half-width of the last interval; time from the last
/// change to an interval that holds the new line.
pub const HEAD: &str = "plant          | stretches settled | interval % covers %  seeds <93 | states | half % | delay med/p95 s";

/// One line of the table.
#[must_use]
pub fn line_of(name: &str, outcomes: &[Outcome]) -> String {
    let sum = |of: &dyn Fn(&Outcome) -> usize| outcomes.iter().map(of).sum::<usize>() as f64;
    let n = outcomes.len().max(1) as f64;
    let (settled, intervals) = (sum(&|o| o.settled), sum(&|o| o.intervals));
    let delay = |share| quantile(outcomes.iter().map(|o| o.delay_s), share);
    let missing = sum(&|o| usize::from(100 * o.covering < 93 * o.intervals));
    format!(
        "{name:14} | {:9.1} {:7.1} | {:10.1} {:8.1} {missing:10.0} | {:6.2} | {:6.1} | {:5.0} {:4.0}",
        sum(&|o| o.stretches) / n,
        settled / n,
        100.0 * intervals / settled.max(1.0),
        100.0 * sum(&|o| o.covering) / intervals.max(1.0),
        outcomes.iter().map(|o| f64::from(o.states)).sum::<f64>() / n,
        100.0 * quantile(outcomes.iter().map(|o| o.half_width), 0.5),
        delay(0.5),
        delay(0.95),
    )
}

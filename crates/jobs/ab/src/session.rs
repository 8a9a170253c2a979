//! The comparison: pilots, then pairs of blocks until all is decided or the time is over.

use crate::arms::Arm;
use crate::blocks::{Blocks, Ended, Order, Running};
use crate::duet::{Half, set};
use crate::generator::{Side, judged};
use crate::jobs::{Kind, Length};
use crate::late::{at_equal_delays, delays, is_of_times};
use crate::measured::{Measured, value};
use crate::metrics::Metric;
use crate::pilot::{self, Seen};
use crate::ratios::{count, log_ratio, shares};
use crate::sought::{Limit, limit};
use crate::steps::{self, APPROACH_PAIRS};
use anyhow::Result;
use plimsoll_core::clock::now_ns;
use plimsoll_core::rng::derive_seed;
use plimsoll_decide::pairs::failures::Count;
use plimsoll_decide::pairs::steps::{Step, Steps};
use plimsoll_decide::pairs::{Direction, Metric as Named, Pairs, Terms};
use plimsoll_job::usage::usage;
use plimsoll_record::ab::{AbEnd, AbPair, AbPlan};

/// The metric that is a share of counts.
pub const ERRORS: &str = "errors";
/// The metric that steps of a search measure.
const MAX_RATE: &str = "max-rate";
/// Fewest pairs from which anything is claimed.
const PAIRS_LEAST: usize = 6;
/// Pairs that a comparison of whole searches makes room for, and the least time of one search, s.
const SEARCHES: (f64, f64) = (8.0, 10.0);
/// Length of a pilot if both lengths of the blocks are given, s.
const SHORT_PILOT_S: f64 = 1.0;
/// Seeds that the user sees are short.
const SEEDS: u64 = 1_000_000_000;

/// The sides and the terms of a comparison.
pub struct Wish {
    /// Metrics, the named ones first.
    pub metrics: Vec<Metric>,
    /// Largest chance of a wrong claim.
    pub error: f64,
    /// Relative difference below which both are the same.
    pub margin: f64,
    /// Time for all, s.
    pub budget_s: f64,
    /// Seed.
    pub seed: u64,
    /// Processors of each side, if both run at once.
    pub halves: Option<[Half; 2]>,
    /// Lengths that the user asked for, s.
    pub asked_s: (Option<f64>, Option<f64>),
}

impl Wish {
    /// Errors are counts, and have a test of their own at the end: it gets its share of the error.
    #[must_use]
    pub fn error_of_failures(&self) -> f64 {
        let named = self.metrics.iter().filter(|metric| metric.is_named).count();
        match self.names_errors() {
            true => self.error / named.max(1) as f64,
            false => 0.0,
        }
    }

    fn error_of_pairs(&self) -> f64 {
        let left = self.error - self.error_of_failures();
        // Without another metric nothing is claimed by the pairs.
        if left > 0.0 { left } else { self.error }
    }

    /// The highest quantile that is named, 0 to 1; 0 without any.
    fn quantile(&self) -> f64 {
        let named = self.metrics.iter().filter(|metric| metric.is_named);
        let of = |metric: &Metric| metric.name.strip_prefix('p')?.parse::<f64>().ok();
        named.filter_map(of).fold(0.0, f64::max).min(99.9) / 100.0
    }

    /// Metrics that the pairs decide: those that are named, without errors.
    fn decided(&self) -> impl Iterator<Item = usize> {
        let all = self.metrics.iter().enumerate();
        all.filter(|(_, metric)| metric.is_named && metric.name != ERRORS).map(|(index, _)| index)
    }

    /// True if errors get an answer.
    #[must_use]
    pub fn names_errors(&self) -> bool {
        self.metrics.iter().any(|metric| metric.is_named && metric.name == ERRORS)
    }
}

/// The result of a comparison.
pub struct Done {
    /// The plan.
    pub plan: AbPlan,
    /// Findings of the pilots.
    pub seen: [Seen; 2],
    /// Pairs that fit the time.
    pub planned: usize,
    /// All pairs.
    pub pairs: Vec<AbPair>,
    /// The decision on the named metrics.
    pub decision: Pairs,
    /// The same at equal delays, if the generator was late at the last look.
    pub late: Option<Pairs>,
    /// At the last look one side had more of its delays. More pairs may show that this was chance.
    pub is_one_sided: bool,
    /// Log ratios of all metrics in the pairs that count.
    pub log_ratios: Vec<Vec<Option<f64>>>,
    /// Failed and sent requests of the pairs that count.
    pub counts: Vec<(Count, Count)>,
    /// All blocks of each side.
    pub sides: [Side; 2],
    /// The reason for the end.
    pub ended: AbEnd,
    /// The error of the block that could not be measured.
    pub failure: Option<anyhow::Error>,
    /// Time since the beginning, s.
    pub spent_s: f64,
}

/// Observer of the progress of a comparison.
pub trait Watcher {
    /// A pilot begins.
    fn pilot(&self, letter: char);
    /// The pairs that are done, and the most there can be; the time that has passed and the whole time, s.
    fn pairs(&self, done: &Done, budget_s: f64);
}

/// Compares.
///
/// # Errors
/// A pilot that cannot be run, or a budget in which six pairs have no place.
pub fn compare(
    blocks: &Blocks,
    arms: &[Arm; 2],
    wish: &Wish,
    watcher: &dyn Watcher,
    check: impl FnOnce(&[Seen; 2]) -> Result<()>,
) -> Result<Option<Done>> {
    let begun_ns = now_ns();
    let Some((seen, steps)) = pilots(blocks, arms, wish, watcher)? else { return Ok(None) };
    check(&seen)?;
    let spent_s = since_s(begun_ns);
    let left_s = (wish.budget_s - spent_s).max(0.0);
    let mut plan = pilot::planned(
        blocks,
        &seen,
        wish.asked_s,
        (left_s, wish.quantile()),
        wish.halves.is_some(),
    );
    plan.pilot_s = spent_s;
    let approach = if steps.is_some() { APPROACH_PAIRS } else { 0 };
    let planned = ((left_s / plan.pair_s.max(1e-3)) as usize).saturating_sub(approach);
    if planned < PAIRS_LEAST {
        if let Some(side) = seen.iter().position(|seen| seen.is_limited) {
            return Err(limited(&arms[side], &seen[side]));
        }
        let needed_s = spent_s + (PAIRS_LEAST + approach) as f64 * plan.pair_s;
        return Err(usage(format!(
            "--budget {:.0}s has room for {planned} pairs and an answer takes at least {PAIRS_LEAST}; use --budget {:.0}s or \
             more",
            wish.budget_s,
            (needed_s * 1.1).ceil()
        )));
    }
    let done = Done::new(wish, plan, seen, planned);
    let mut running = Session { blocks, arms, wish, steps, stepped: Vec::new(), begun_ns, done };
    running.pairs(watcher);
    Ok(Some(running.done))
}

fn limited(arm: &Arm, seen: &Seen) -> anyhow::Error {
    usage(format!(
        "the pilot of {}: the generator was the limit, and sent {:.0} requests/s; ask for less, or give it more --threads, so \
         that blocks end in time",
        arm.letter,
        seen.per_s.unwrap_or(0.0)
    ))
}

fn since_s(begun_ns: u64) -> f64 {
    now_ns().saturating_sub(begun_ns) as f64 / 1e9
}

/// The steps of a search, and its limit.
type Stepping = Option<(Steps, Limit)>;
type Pilots = ([Seen; 2], Stepping);

fn pilots(
    blocks: &Blocks,
    arms: &[Arm; 2],
    wish: &Wish,
    watcher: &dyn Watcher,
) -> Result<Option<Pilots>> {
    let begun_ns = now_ns();
    let length_s = plimsoll_decide::pilot::length_s(wish.budget_s);
    let seed = derive_seed(wish.seed, "ab pilot") % SEEDS;
    if let (Kind::Seek, Some(limit)) = (blocks.kind, limit(&arms[0].words)) {
        watcher.pilot('A');
        let found = steps::begin(blocks, arms, (length_s, seed))?;
        return Ok(found.map(|(steps, seen)| (seen, Some((steps, limit)))));
    }
    let length_s = match (search_s(blocks, wish), wish.asked_s) {
        (Some(length_s), _) => length_s,
        // Nothing is to be found out but whether the targets are there.
        (None, (Some(_), Some(_))) => SHORT_PILOT_S,
        (None, _) => length_s,
    };
    let mut seen = [Seen::default(); 2];
    for (side, arm) in arms.iter().enumerate() {
        watcher.pilot(arm.letter);
        let own = if blocks.kind.shares_seed() { seed } else { seed + side as u64 };
        let Some(found) = pilot::fly(blocks, arm, length_s, own)? else { return Ok(None) };
        seen[side] = found;
        // The other pilot would take as long, and change nothing: that time alone leaves no room for pairs.
        let left_s = wish.budget_s - since_s(begun_ns);
        let least_s = PAIRS_LEAST as f64 * pilot::around_s(&seen[..=side], wish.halves.is_some());
        if found.is_limited && left_s < least_s {
            return Err(limited(arm, &found));
        }
    }
    Ok(Some((seen, None)))
}

/// Length of a whole search, s.
fn search_s(blocks: &Blocks, wish: &Wish) -> Option<f64> {
    let is_search = blocks.kind == Kind::Seek && blocks.length == Length::Whole;
    let own = (wish.budget_s / (2.0 * SEARCHES.0 + 2.0)).max(SEARCHES.1);
    is_search.then_some(wish.asked_s.0.unwrap_or(own))
}

impl Done {
    fn new(wish: &Wish, plan: AbPlan, seen: [Seen; 2], planned: usize) -> Self {
        let named = wish.decided().map(|index| Named {
            name: wish.metrics[index].name.clone(),
            direction: match wish.metrics[index].is_higher_better {
                true => Direction::HigherIsBetter,
                false => Direction::LowerIsBetter,
            },
        });
        let terms =
            Terms { error: wish.error_of_pairs(), margin: wish.margin, pairs_most: planned };
        Self {
            plan,
            seen,
            planned,
            pairs: Vec::new(),
            decision: Pairs::new(terms, named.collect()),
            late: None,
            is_one_sided: false,
            log_ratios: vec![Vec::new(); wish.metrics.len()],
            counts: Vec::new(),
            sides: [Side::default(), Side::default()],
            ended: AbEnd::Budget,
            failure: None,
            spent_s: 0.0,
        }
    }
}

impl Done {
    fn is_settled(&self) -> bool {
        let is_over = self.decision.pairs() >= self.planned;
        let is_open = self.is_one_sided || self.late.as_ref().is_some_and(|late| !late.settled());
        self.decision.settled() && (is_over || !is_open)
    }
}

struct Session<'a> {
    blocks: &'a Blocks,
    arms: &'a [Arm; 2],
    wish: &'a Wish,
    steps: Stepping,
    /// Pairs near the line that count, and where they stand among all.
    stepped: Vec<(usize, Step)>,
    begun_ns: u64,
    done: Done,
}

/// Blocks of a pair, A's first; `None` if the user stopped it.
type Both = Option<[Box<Measured>; 2]>;

impl Session<'_> {
    fn pairs(&mut self, watcher: &dyn Watcher) {
        loop {
            let spent_s = since_s(self.begun_ns);
            self.done.spent_s = spent_s;
            watcher.pairs(&self.done, self.wish.budget_s);
            let is_settled = match self.wish.names_errors() {
                // Errors are judged once, after a number of pairs that does not depend on them.
                true => self.done.decision.pairs() >= self.done.planned,
                false => self.done.is_settled(),
            };
            if is_settled {
                self.done.ended = AbEnd::Settled;
                return;
            }
            if spent_s + self.done.plan.pair_s > self.wish.budget_s {
                // The time is up whatever the pairs say.
                self.close();
                return;
            }
            match self.pair(spent_s) {
                Ok(true) => {}
                Ok(false) => {
                    self.close();
                    self.done.ended = AbEnd::Stopped;
                    return;
                }
                Err(error) => {
                    self.done.ended = AbEnd::Failed;
                    self.done.failure = Some(error);
                    return;
                }
            }
        }
    }

    /// Runs a pair and adds it; false if the user stopped it.
    fn pair(&mut self, at_s: f64) -> Result<bool> {
        let index = self.done.pairs.len();
        let b_first = derive_seed(self.wish.seed, &format!("ab order {index}")) & 1 == 1;
        let seed = derive_seed(self.wish.seed, &format!("ab pair {index}")) % SEEDS;
        let both = match &self.wish.halves {
            Some(halves) => self.at_once(halves, seed, index)?,
            None => self.in_turn(b_first, seed)?,
        };
        let Some(both) = both else { return Ok(false) };
        self.add(&both, b_first, at_s);
        Ok(true)
    }

    fn order(&self, side: usize, seed: u64) -> Order {
        let own = if self.blocks.kind.shares_seed() { seed } else { (seed + side as u64) % SEEDS };
        let plan = &self.done.plan;
        Order {
            length_s: search_s(self.blocks, self.wish).or(plan.block_s),
            discard_s: plan.discard_s,
            rate_per_s: self.steps.as_ref().map(|(steps, _)| steps.rates_per_s()[side]),
            seed: own,
            wants_seconds: false,
        }
    }

    fn ended(&self, side: usize, running: Running) -> Result<Option<Box<Measured>>> {
        let Ended::Measured(mut measured, _) = self.blocks.finish(running)? else {
            return Ok(None);
        };
        if let Some((steps, limit)) = &self.steps {
            let over = steps::over(&measured, *limit);
            let line = |over: f64| steps.rates_per_s()[side] * over.powf(-1.0 / steps.slope());
            measured.max_rate = over.map(line);
        }
        Ok(Some(measured))
    }

    fn in_turn(&mut self, b_first: bool, seed: u64) -> Result<Both> {
        let mut found: [Option<Box<Measured>>; 2] = [None, None];
        for side in if b_first { [1, 0] } else { [0, 1] } {
            let running = self.blocks.start(&self.arms[side], self.order(side, seed), None)?;
            found[side] = self.ended(side, running)?;
            if found[side].is_none() {
                return Ok(None);
            }
        }
        let [a, b] = found;
        Ok(a.zip(b).map(|(a, b)| [a, b]))
    }

    /// Runs both blocks of a pair at the same time; the sides change their processors from pair to pair.
    fn at_once(&mut self, halves: &[Half; 2], seed: u64, index: usize) -> Result<Both> {
        let mut running = Vec::new();
        for side in 0..2 {
            let half = &halves[(side + index) % 2];
            if let Some(server) =
                self.arms[side].server.as_ref().filter(|_| !half.target.is_empty())
            {
                server.bind(&set(&half.target));
            }
            let order = self.order(side, seed);
            running.push(self.blocks.start(&self.arms[side], order, Some(set(&half.generator)))?);
        }
        let (b, a) = (running.pop(), running.pop());
        let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
        // Both are waited for, so that none goes on alone.
        let (a, b) = (self.ended(0, a), self.ended(1, b));
        Ok(a?.zip(b?).map(|(a, b)| [a, b]))
    }

    fn add(&mut self, both: &[Box<Measured>; 2], b_first: bool, at_s: f64) {
        let stepped = self.steps.as_mut().map(|(steps, limit)| {
            steps.add([steps::over(&both[0], *limit), steps::over(&both[1], *limit)])
        });
        let metrics = &self.wish.metrics;
        let values = |side: usize| -> Vec<Option<f64>> {
            metrics.iter().map(|metric| value(&both[side], &metric.name)).collect()
        };
        let (a, b) = (values(0), values(1));
        let mut pair =
            AbPair { b_first, at_s, a, b, delays: delays(both), left_out: String::new() };
        for (side, measured) in both.iter().enumerate() {
            let limit = self.done.sides[side].add(measured);
            if let Some(limit) = limit.filter(|_| !self.blocks.are_generators)
                && pair.left_out.is_empty()
            {
                pair.left_out = format!("{}: {limit}", self.arms[side].letter);
            }
        }
        if stepped == Some(None) && pair.left_out.is_empty() {
            "the line is approached".clone_into(&mut pair.left_out);
        }
        let counts = pair.left_out.is_empty();
        if let Some(step) = stepped.flatten().filter(|_| counts) {
            self.stepped.push((self.done.pairs.len(), step));
        }
        self.done.pairs.push(pair);
        if counts {
            self.done.counts.push((count(&both[0]), count(&both[1])));
            self.restate();
            self.decide(both);
        }
    }

    /// States the lines of all pairs with the slope that is known by now.
    fn restate(&mut self) {
        let metrics = &self.wish.metrics;
        let Some((steps, _)) = &self.steps else { return };
        let Some(index) = metrics.iter().position(|metric| metric.name == MAX_RATE) else { return };
        let slope = steps.found();
        for (at, step) in &self.stepped {
            let [a, b] = step.lines_per_s(slope);
            let pair = &mut self.done.pairs[*at];
            (pair.a[index], pair.b[index]) = (Some(a), Some(b));
        }
        let ratios: Vec<f64> = self.stepped.iter().map(|(_, step)| step.log_ratio(slope)).collect();
        let known = self.done.log_ratios[index].iter_mut().flatten();
        known.zip(&ratios).for_each(|(own, better)| *own = *better);
        if let Some(named) = self.wish.decided().position(|index| metrics[index].name == MAX_RATE) {
            self.done.decision.restate(named, &ratios, slope.relative_error);
        }
    }

    /// Adds the log ratios of the newest pair.
    fn decide(&mut self, both: &[Box<Measured>; 2]) {
        let Some(pair) = self.done.pairs.last() else { return };
        let ratio = |(index, metric): (usize, &Metric)| match metric.name.as_str() {
            ERRORS => shares(both),
            _ => log_ratio(pair.a[index], pair.b[index]),
        };
        let ratios: Vec<Option<f64>> = self.wish.metrics.iter().enumerate().map(ratio).collect();
        for (all, one) in self.done.log_ratios.iter_mut().zip(&ratios) {
            all.push(*one);
        }
        let decided: Vec<Option<f64>> = self.wish.decided().map(|index| ratios[index]).collect();
        self.done.decision.add(&decided);
        self.look_again();
    }

    fn close(&mut self) {
        self.done.decision.close();
        self.look_again();
    }

    /// After a look: if the generator was late, looks at the pairs at equal delays.
    fn look_again(&mut self) {
        let done = &mut self.done;
        if !done.decision.has_looked() {
            return;
        }
        let generator = judged(&done.sides, &done.pairs, self.blocks.are_generators);
        done.is_one_sided = generator.is_one_sided;
        done.late = generator.is_late.then(|| {
            let metrics = &self.wish.metrics;
            let column = |index: usize| {
                is_of_times(&metrics[index].name).then(|| &done.log_ratios[index][..])
            };
            let columns: Vec<_> = self.wish.decided().map(column).collect();
            let counted = done.pairs.iter().filter(|pair| pair.left_out.is_empty());
            let delays: Vec<_> = counted.map(|pair| pair.delays).collect();
            at_equal_delays(&done.decision, &columns, &delays)
        });
    }
}

#[cfg(test)]
pub mod tests;

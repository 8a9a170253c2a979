//! Many searches of one model, as a line of the table.

use crate::models::Model;
use crate::plant::{Queue, QueuePlant};
use plimsoll_core::seek::finding::{Finding, Verdict};
use plimsoll_core::seek::goal::Goal;
use plimsoll_core::seek::rivals::{self, RATIOS, Rival, Task};
use plimsoll_core::seek::search::seek;

/// The kept figures of one search.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// The rate it names, over the line, less one; not a number if it names none.
    pub error: f64,
    /// The certified rate's, likewise; not a number if none is certified.
    pub certified_error: f64,
    /// True if there is an interval.
    pub has_interval: bool,
    /// True if it holds the line.
    pub covers: bool,
    /// True if the verdict is that the line was found.
    pub is_ok: bool,
    /// True if the verdict is that the target changed.
    pub is_unstable: bool,
    /// Half-width of the interval as a share.
    pub half_width: f64,
    /// Time it took, s.
    pub elapsed_s: f64,
    /// The first forecast of the measuring time for the wanted width, s.
    pub forecast_s: f64,
    /// The last one, s.
    pub forecast_last_s: f64,
}

/// Searches a model once, usually for [`Model::goal`].
#[must_use]
pub fn search(model: &Model, goal: &Goal) -> (Outcome, Finding) {
    let mut plant = model.plant(plant_seed(goal.seed));
    let found = seek(&mut plant, goal, &mut |_| ());
    (outcome(model.line_per_s, &found), found)
}

/// Part of a finding that the table needs, against the line.
#[must_use]
pub fn outcome(line_per_s: f64, found: &Finding) -> Outcome {
    let off = |rate: Option<f64>| rate.unwrap_or(f64::NAN) / line_per_s - 1.0;
    Outcome {
        error: off(found.estimate_per_s),
        certified_error: off(Some(found.certified.as_ref().map_or(f64::NAN, |run| run.rate_per_s))),
        covers: found
            .interval_per_s
            .is_some_and(|(low, high)| low <= line_per_s && line_per_s <= high),
        has_interval: found.interval_per_s.is_some(),
        is_ok: found.verdict == Verdict::Ok,
        is_unstable: matches!(found.verdict, Verdict::Drifting | Verdict::NonMonotone),
        half_width: found.half_width.unwrap_or(f64::NAN),
        elapsed_s: found.elapsed_s,
        forecast_s: found.forecast_first.map_or(f64::INFINITY, |f| f.measuring_s),
        forecast_last_s: found.forecast.map_or(f64::INFINITY, |f| f.measuring_s),
    }
}

/// One search in a line: seed, errors, interval, certified run and how it ended, to find the odd ones.
#[must_use]
pub fn each(seed: u64, outcome: &Outcome, found: &Finding) -> String {
    let run = found.certified.as_ref().map_or((0.0, f64::NAN), |run| {
        (run.seconds, run.late_share.first().copied().unwrap_or(f64::NAN))
    });
    format!(
        "  {seed} estimate {:+.1} % certified {:+.1} % in {:.0} s with {:.4} late, last {}; half {:.1} % covers {}; \
         {:.0} s, forecasts {:.0} {:.0} s: {}",
        100.0 * outcome.error,
        100.0 * outcome.certified_error,
        run.0,
        run.1,
        found.certified_last,
        100.0 * outcome.half_width,
        outcome.covers,
        outcome.elapsed_s,
        outcome.forecast_s,
        outcome.forecast_last_s,
        found.reason
    )
}

/// Lets a rival search a queue with one seed.
#[must_use]
pub fn rival_answer(
    rival: Rival,
    (queue, limit_s, allowed): (Queue, f64, f64),
    seed: u64,
) -> rivals::Answer {
    let limits_s = RATIOS.map(|ratio| ratio * limit_s);
    let mut plant = QueuePlant::new(queue, &limits_s, plant_seed(seed));
    let (start_per_s, most_per_s) = (8.0, 1e6);
    let task = Task { allowed, limit: 1, limit_s, seed, start_per_s, most_per_s };
    rivals::search(rival, &mut plant, task)
}

/// Lets a rival search a model with one seed.
#[must_use]
pub fn rival(rival: Rival, model: &Model, seed: u64) -> Outcome {
    let answer = rival_answer(rival, (model.queue, model.limit_s, model.allowed), seed);
    let error = answer.rate_per_s / model.line_per_s - 1.0;
    Outcome { error, certified_error: error, elapsed_s: answer.elapsed_s, ..Outcome::default() }
}

/// The table's head for [`rival_line()`]; after the shares stands the error of the one within 5 %.
pub const RIVAL_HEAD: &str =
    "method and model         |        p5/med/p95 %     <3%   <5%  >20% |      | time med/p95 s";

/// One line of the rivals' table.
#[must_use]
pub fn rival_line(name: &str, outcomes: &[Outcome]) -> String {
    let time = |share| quantile(outcomes.iter().map(|o| o.elapsed_s), share);
    let within = share(outcomes, |o| o.error.abs() <= 0.05);
    format!(
        "{name:24} | {} | ±{:3.1} | {:5.0} {:5.0}",
        errors(outcomes, |o| o.error),
        100.0 * binomial_error(within, outcomes.len()),
        time(0.5),
        time(0.95)
    )
}

fn plant_seed(seed: u64) -> u64 {
    seed.wrapping_mul(0x9e37_79b9).wrapping_add(1000)
}

/// A value at a share of the sorted values; what is not a number is left out.
#[must_use]
pub fn quantile(values: impl Iterator<Item = f64>, share: f64) -> f64 {
    let mut sorted: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        return f64::NAN;
    }
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

/// Share of the values for which something holds.
#[must_use]
pub fn share(values: &[Outcome], holds: impl Fn(&Outcome) -> bool) -> f64 {
    values.iter().filter(|value| holds(value)).count() as f64 / values.len().max(1) as f64
}

/// Half-width of a share's binomial 95 % interval.
#[must_use]
pub fn binomial_error(share: f64, n: usize) -> f64 {
    // Agresti and Coull (1998): two successes and two failures more, so that 100 % has an error too.
    let n = n as f64 + 4.0;
    let p = (share * (n - 4.0) + 2.0) / n;
    1.96 * (p * (1.0 - p) / n).sqrt()
}

/// Errors as p5 / median / p95 %, and the shares within 3 %, within 5 %, and off by more than 20 %.
#[must_use]
pub fn errors(outcomes: &[Outcome], error: impl Fn(&Outcome) -> f64) -> String {
    let at = |share| 100.0 * quantile(outcomes.iter().map(&error), share);
    let within = |width: f64| 100.0 * share(outcomes, |o| error(o).abs() <= width);
    format!(
        "{:+5.1}/{:+5.1}/{:+5.1} {:5.1} {:5.1} {:4.1}",
        at(0.05),
        at(0.5),
        at(0.95),
        within(0.03),
        within(0.05),
        100.0 * share(outcomes, |o| error(o).abs() > 0.2)
    )
}

/// The table's head for [`line()`]. Coverage is that of the intervals that were printed; `ok` and `early` are the searches
/// that ended with the verdict ok, and those of them that took less than two thirds of the budget.
pub const HEAD: &str = "model          | estimate p5/med/p95 %  <3%   <5%  >20% | certified p5/med/p95 %  >10% none | \
                        interval covers %    half % |   ok covers % | early covers % | unstable | time med/p95 s";

/// One line of the table.
#[must_use]
pub fn line(name: &str, outcomes: &[Outcome], budget_s: f64) -> String {
    let covered = |of: &dyn Fn(&Outcome) -> bool| {
        let chosen: Vec<Outcome> = outcomes.iter().filter(|o| of(o)).copied().collect();
        let share_of = 100.0 * chosen.len() as f64 / outcomes.len().max(1) as f64;
        let covers = share(&chosen, |o| o.covers);
        let error = 100.0 * binomial_error(covers, chosen.len());
        let covers = if chosen.is_empty() { f64::NAN } else { 100.0 * covers };
        (share_of, covers, error)
    };
    let (printed, covers, error) = covered(&|o| o.has_interval);
    let (ok, ok_covers, _) = covered(&|o| o.is_ok);
    let (early, early_covers, _) = covered(&|o| o.is_ok && o.elapsed_s < budget_s / 1.5);
    let time = |share| quantile(outcomes.iter().map(|o| o.elapsed_s), share);
    let certified = |share| 100.0 * quantile(outcomes.iter().map(|o| o.certified_error), share);
    format!(
        "{name:14} | {} | {:+5.1}/{:+5.1}/{:+5.1} {:5.1} {:4.1} | {printed:5.1} {covers:5.1} ±{error:3.1} {:5.1} | \
         {ok:5.1} {ok_covers:5.1} | {early:5.1} {early_covers:5.1} | {:5.1} | {:4.0} {:4.0}",
        errors(outcomes, |o| o.error),
        certified(0.05),
        certified(0.5),
        certified(0.95),
        100.0 * share(outcomes, |o| o.certified_error > 0.1),
        100.0 * share(outcomes, |o| o.certified_error.is_nan()),
        100.0 * quantile(outcomes.iter().map(|o| o.half_width), 0.5),
        100.0 * share(outcomes, |o| o.is_unstable),
        time(0.5),
        time(0.95),
    )
}

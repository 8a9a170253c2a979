//! The highest rate under a limit, by steps in turn: both blocks of a pair are loads near the line. Their judgement is in
//! `plimsoll_decide::pairs::steps`.

use crate::arms::Arm;
use crate::blocks::{Blocks, Ended, Order};
use crate::measured::{Measured, quantile_ms, value};
use crate::pilot::{Seen, memory};
use crate::sought::Limit;
use anyhow::Result;
use plimsoll_decide::pairs::steps::Steps;
use plimsoll_decide::pilot::BELOW_LINE;
use plimsoll_job::usage::usage;

/// Length of the search in a pilot, in lengths of a pilot.
const SEARCH: f64 = 2.0;
/// Guesses of the line from the capacity, and from the first rate that broke a limit.
const BELOW_CAPACITY: f64 = 0.7;
const BELOW_BROKEN: f64 = 0.5;
/// Pairs that the approach to the line takes, for which the plan leaves room.
pub const APPROACH_PAIRS: usize = 10;

/// Searches the line of both sides for a rate to begin with, and measures the relaxation near it. `None` if the user stopped it.
///
/// # Errors
/// As a block, or a search that finds no rate.
pub fn begin(
    blocks: &Blocks,
    arms: &[Arm; 2],
    (pilot_s, seed): (f64, u64),
) -> Result<Option<(Steps, [Seen; 2])>> {
    let mut rates = [0.0; 2];
    for (rate, arm) in rates.iter_mut().zip(arms) {
        let order = Order { length_s: Some(SEARCH * pilot_s), seed, ..Order::default() };
        let Ended::Measured(found, _) = blocks.run(arm, order)? else { return Ok(None) };
        *rate = start_per_s(&found).ok_or_else(|| {
            usage(format!(
                "the pilot of {} found no rate that holds the limit within {:.0} s; use a larger --budget or another limit",
                arm.letter,
                SEARCH * pilot_s
            ))
        })?;
    }
    let rate_per_s = (rates[0] * rates[1]).sqrt();
    let mut all = [Seen::default(); 2];
    for ((own, arm), per_s) in all.iter_mut().zip(arms).zip(rates) {
        let order = Order {
            length_s: Some(pilot_s),
            rate_per_s: Some(BELOW_LINE * per_s),
            seed,
            wants_seconds: true,
            ..Order::default()
        };
        let Ended::Measured(block, seconds) = blocks.run(arm, order)? else { return Ok(None) };
        *own = Seen {
            per_s: Some(per_s),
            around_s: (block.wall_s - pilot_s).max(0.0),
            is_here: block.record.as_ref().is_some_and(|record| record.target.same_host),
            // A search does not offer more than the generator can send.
            is_limited: false,
            memory: memory(&seconds),
        };
    }
    Ok(Some((Steps::new(rate_per_s), all)))
}

/// A rate to begin with, requests per second: the line of a search, or a guess from what a short one saw of it.
fn start_per_s(found: &Measured) -> Option<f64> {
    let line = value(found, "max-rate");
    let seek = &found.record.as_deref()?.job_results.seek()?.finding;
    let capacity = seek.capacity_per_s.map(|per_s| BELOW_CAPACITY * per_s);
    let broke = seek.broke.as_ref().map(|run| BELOW_BROKEN * run.rate_per_s);
    line.or(capacity).or(broke).filter(|per_s| *per_s > 0.0)
}

/// The quantile of a block over the limit.
#[must_use]
pub fn over(measured: &Measured, limit: Limit) -> Option<f64> {
    quantile_ms(measured, 1.0 - limit.late).map(|ms| ms * 1e6 / limit.ns as f64)
}

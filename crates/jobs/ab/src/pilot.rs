//! The pilot: one run of each side, from which the length of blocks and of their beginnings follows.
//!
//! Its findings, and the plan that follows from them, are decided in [`plimsoll_decide::pilot`].

use crate::arms::Arm;
use crate::blocks::{Blocks, Ended, Order};
use crate::jobs::{Kind, Length, value};
use anyhow::Result;
use plimsoll_core::clock::now_ns;
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::Interval;
use plimsoll_core::units::Span;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_decide::pilot::{self, Memory, Second};
use plimsoll_job::usage::usage;
use plimsoll_record::RunRecord;
use plimsoll_record::ab::AbPlan;

/// Added where the budget is too small for blocks of the length that the relaxation asks for.
const SHORT: &str = "; longer blocks would leave room for too few pairs, so a ratio may be smaller than in a long run";

/// Share of the offered rate below which the blocks of a limited generator end late, and not only look worse.
const SENT_LEAST: f64 = 0.95;

/// Findings of the pilot of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Memory of the target, and the seconds that differ from the rest.
    pub memory: Memory,
    /// Time that a block takes beyond its own length, s; of a whole run its time.
    pub around_s: f64,
    /// Requests that ended per second; `None` if unknown.
    pub per_s: Option<f64>,
    /// True if the target is on this machine.
    pub is_here: bool,
    /// True if the generator was the limit, and sent clearly less than was asked: then blocks end late.
    pub is_limited: bool,
}

/// Reads what the seconds of a pilot show.
#[must_use]
pub fn memory(seconds: &[Interval]) -> Memory {
    let whole = seconds.iter().filter(|second| second.seconds() > 0.9);
    let second = |second: &Interval| {
        let response: Histogram = second.all_classes().response;
        let (mean, deviation) = (response.mean_ns(), response.deviation_ns());
        Second { count: response.count() as f64, mean, deviation }
    };
    let seconds: Vec<Second> = whole.map(second).filter(|second| second.count > 0.0).collect();
    pilot::memory(&seconds)
}

/// Runs the pilot of one side; `None` if the user stopped it.
///
/// # Errors
/// As a block.
pub fn fly(blocks: &Blocks, arm: &Arm, length_s: f64, seed: u64) -> Result<Option<Seen>> {
    let order = Order {
        length_s: Some(length_s),
        seed,
        wants_seconds: !is_whole(blocks),
        ..Order::default()
    };
    let begun_ns = now_ns();
    let Ended::Measured(measured, seconds) = blocks.run(arm, order)? else { return Ok(None) };
    let took_s = now_ns().saturating_sub(begun_ns) as f64 / 1e9;
    let record = measured.record.as_deref();
    let is_here = record.is_some_and(|record| record.target.same_host);
    let is_limited = record.is_some_and(is_limited);
    let per_s = record.map(|record| record.rate.achieved_per_s).filter(|per_s| *per_s > 0.0);
    let whole_s = if blocks.kind.whole_seconds() { length_s.ceil() } else { length_s };
    Ok(Some(match blocks.length {
        Length::Whole => Seen { around_s: took_s, is_here, is_limited, per_s, ..Seen::default() },
        _ => {
            let around_s = (took_s - whole_s).max(0.0);
            Seen { memory: memory(&seconds), around_s, is_here, is_limited, per_s }
        }
    }))
}

fn is_limited(record: &RunRecord) -> bool {
    let rate = &record.rate;
    record.verdict.kind == VerdictKind::GeneratorLimited
        && rate.achieved_per_s < SENT_LEAST * rate.offered_per_s
}

fn is_whole(blocks: &Blocks) -> bool {
    blocks.length == Length::Whole
}

/// Lengths that the user asked for after `--`, s: of a block, and of its beginning.
///
/// # Errors
/// A text that is not a time.
pub fn asked(kind: Kind, length: Length, words: &[String]) -> Result<(Option<f64>, Option<f64>)> {
    if length == Length::Whole || kind == Kind::Seek {
        return Ok((None, None));
    }
    let read = |flag: &str| -> Result<Option<f64>> {
        let Some(text) = value(words, flag) else { return Ok(None) };
        let span: Span = text.parse().map_err(|error| usage(format!("{flag}: {error}")))?;
        Ok(Some(span.as_seconds()))
    };
    let warmup = if length == Length::Planned { read(kind.warmup_flag())? } else { None };
    Ok((read(kind.length_flag())?, warmup))
}

/// Time that a pair takes beside its blocks, as far as these pilots show it, s.
#[must_use]
pub fn around_s(seen: &[Seen], at_once: bool) -> f64 {
    let in_turn_s = seen.iter().map(|seen| seen.around_s).sum::<f64>();
    if at_once { in_turn_s / 2.0 } else { in_turn_s }
}

/// Plans the blocks for the rest of the time.
#[must_use]
pub fn planned(
    blocks: &Blocks,
    seen: &[Seen; 2],
    (asked_s, asked_discard_s): (Option<f64>, Option<f64>),
    (left_s, quantile): (f64, f64),
    at_once: bool,
) -> AbPlan {
    let around_s = around_s(seen, at_once);
    if blocks.length == Length::Whole {
        return AbPlan {
            block_s: None,
            discard_s: 0.0,
            pair_s: around_s,
            reason: "a block is a whole run of the job, of which nothing is left out".to_owned(),
            ..AbPlan::default()
        };
    }
    // Without a known rate no block is made longer for its quantile.
    let slowest = seen.iter().filter_map(|seen| seen.per_s).fold(f64::INFINITY, f64::min);
    let sides = seen.map(|seen| seen.memory);
    let own = pilot::blocks(&sides, left_s.max(1e-3), quantile, slowest);
    let discard_s = asked_discard_s.unwrap_or(own.discard_s);
    let block_s = asked_s.unwrap_or(own.block_s - own.discard_s);
    let is_cut = blocks.length == Length::Cut;
    let is_whole = is_cut || blocks.kind.whole_seconds();
    let round = |seconds: f64| if is_whole { seconds.ceil() } else { seconds };
    let (block_s, discard_s) = (round(block_s), round(discard_s));
    let in_turn = if at_once { 1.0 } else { 2.0 };
    AbPlan {
        block_s: Some(block_s),
        discard_s,
        pair_s: in_turn * (block_s + discard_s) + around_s,
        pilot_s: 0.0,
        reason: reason(asked_s, asked_discard_s, &sides)
            + if own.enough || asked_s.is_some() { "" } else { SHORT },
    }
}

fn reason(asked_s: Option<f64>, discard_s: Option<f64>, sides: &[Memory]) -> String {
    let longest = |of: fn(&Memory) -> f64| sides.iter().map(of).fold(0.0, f64::max);
    let relaxation_s = longest(|side| side.relaxation_s.unwrap_or(0.0));
    let begun_s = longest(|side| side.beginning_s);
    let measured = format!(
        "the measured relaxation time is {}{}",
        plimsoll_report::number::lasting(relaxation_s),
        if begun_s > 0.0 {
            format!(", and the first {begun_s} s of a pilot differed from the rest")
        } else {
            String::new()
        }
    );
    match (asked_s, discard_s) {
        (Some(_), Some(_)) => "both times stand after -- and are not measured".to_owned(),
        (Some(_), None) => format!("the length stands after --; {measured}"),
        (None, Some(_)) => format!("the warm-up stands after --; {measured}"),
        (None, None) => measured,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_report::samples;

    /// Other programs may delay a generator that sends all that was asked: then its blocks end in time.
    #[test]
    fn a_pilot_is_limited_where_less_was_sent_than_asked() {
        let mut record = samples::good();
        record.verdict.kind = VerdictKind::GeneratorLimited;
        record.rate.offered_per_s = 100.0;
        for (achieved_per_s, limited) in [(100.0, false), (97.0, false), (50.0, true)] {
            record.rate.achieved_per_s = achieved_per_s;
            assert_eq!(is_limited(&record), limited, "{achieved_per_s}");
        }
        record.verdict.kind = VerdictKind::Valid;
        assert!(!is_limited(&record));
    }

    #[test]
    fn asked_times_are_read_from_the_job() {
        let words: Vec<String> =
            ["load", "--duration", "2s", "--warmup=500ms"].map(String::from).to_vec();
        let asked_of = |length| asked(Kind::Load, length, &words).unwrap();
        assert_eq!(asked_of(Length::Planned), (Some(2.0), Some(0.5)));
        assert_eq!(asked_of(Length::Whole), (None, None));
    }
}

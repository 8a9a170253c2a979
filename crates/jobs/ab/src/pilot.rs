//! The pilot: one run of each side, from which the length of blocks and of their beginnings follows.
//!
//! A pilot has its response times by the second. Two figures come from them:
//!
//! * The beginning: the seconds before the first one whose mean is within three standard deviations of the second half.
//! * The relaxation time, by batch means (Conway, "Some tactical problems in digital simulation", 1963): of independent requests,
//!   means over T seconds have the variance s^2/n, with n requests in T and s their standard deviation. If the target remembers
//!   its state for a relaxation time tau, it is s^2 * 2 tau / T. So tau = T * Var(means) / (2 s^2), also if it is far below T.

use crate::arms::Arm;
use crate::blocks::{Blocks, Ended, Order};
use crate::jobs::{Kind, Length, value};
use anyhow::Result;
use plimsoll_core::clock::now_ns;
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::Interval;
use plimsoll_core::units::Span;
use plimsoll_decide::relaxation::plan;
use plimsoll_job::usage::usage;
use plimsoll_record::ab::AbPlan;

/// Share of the budget that each pilot gets.
const PILOT_SHARE: f64 = 0.05;
/// Least and most length of a pilot, s.
const PILOT_S: (f64, f64) = (4.0, 20.0);
/// Fewest seconds behind the beginning from which a relaxation time is estimated.
const SECONDS_LEAST: usize = 3;
/// Standard deviations beyond which a second belongs to the beginning.
const BEGINNING: f64 = 3.0;
/// Longest share of a pilot that may be its beginning.
const BEGINNING_MOST: f64 = 0.5;

/// Added where the budget is too small for blocks of the length that the relaxation asks for.
const SHORT: &str =
    "; the blocks are shorter than 20 times that, since the budget holds no 10 pairs of them";

/// Requests of a block beyond the highest named quantile, on average.
const BEYOND: f64 = 2.0;

/// Findings of the pilot of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Relaxation time, s; `None` if it cannot be estimated.
    pub relaxation_s: Option<f64>,
    /// Seconds that differ from the rest.
    pub beginning_s: f64,
    /// Time that a block takes beyond its own length, s; of a whole run its time.
    pub around_s: f64,
    /// Requests that ended per second; `None` if unknown.
    pub per_s: Option<f64>,
    /// True if the target is on this machine.
    pub is_here: bool,
}

/// Seconds of a pilot: requests, their mean and standard deviation, ns.
fn slices(seconds: &[Interval]) -> Vec<(f64, f64, f64)> {
    let whole = seconds.iter().filter(|second| second.seconds() > 0.9);
    whole
        .map(|second| {
            let response: Histogram = second.all_classes().response;
            (response.count() as f64, response.mean_ns(), response.deviation_ns())
        })
        .filter(|(count, ..)| *count > 0.0)
        .collect()
}

/// Longest relaxation time that seconds of a pilot can show, s.
const RELAXATION_MOST_S: f64 = 20.0;

/// Mean and standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}

/// Returns how many seconds the beginning takes.
fn beginning(means: &[f64]) -> usize {
    let half = means.len() / 2;
    if half < SECONDS_LEAST {
        return 0;
    }
    let (mean, deviation) = moments(&means[half..]);
    let most = (means.len() as f64 * BEGINNING_MOST) as usize;
    // Of few seconds the deviation may be small by chance: a difference of a twentieth is none.
    let allowed = (BEGINNING * deviation).max(mean * 0.05);
    means.iter().take(most).take_while(|value| (**value - mean).abs() > allowed).count()
}

/// Relaxation time of seconds, s; `None` for too few of them.
fn relaxation(slices: &[(f64, f64, f64)]) -> Option<f64> {
    if slices.len() < SECONDS_LEAST {
        return None;
    }
    let means: Vec<f64> = slices.iter().map(|slice| slice.1).collect();
    let (mean, of_means) = moments(&means);
    let all: f64 = slices.iter().map(|slice| slice.0).sum();
    let square = |slice: &(f64, f64, f64)| slice.0 * (slice.2.powi(2) + (slice.1 - mean).powi(2));
    let variance = slices.iter().map(square).sum::<f64>() / all;
    // Independent requests remember nothing for longer than half the gap between them.
    let least = 0.5 * slices.len() as f64 / all;
    let tau = if variance > 0.0 { forgotten_s(of_means.powi(2) / variance) } else { least };
    Some(tau.max(least))
}

/// Relaxation time of a process whose correlation fades exponentially, s, from the variance of its means over a second as a share
/// of its variance: the inverse of 2 x (1 - x (1 - exp(-1/x))), which is 2 x for a short time. At most 20 s.
fn forgotten_s(share: f64) -> f64 {
    let of = |x: f64| 2.0 * x * (1.0 - x * (1.0 - (-1.0 / x).exp()));
    let (mut low, mut high) = (0.0, RELAXATION_MOST_S);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if of(middle) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Reads what the seconds of a pilot show.
#[must_use]
pub fn seen(seconds: &[Interval]) -> Seen {
    let slices = slices(seconds);
    let means: Vec<f64> = slices.iter().map(|slice| slice.1).collect();
    let first = beginning(&means);
    Seen {
        relaxation_s: relaxation(&slices[first..]),
        beginning_s: first as f64,
        ..Seen::default()
    }
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
    let per_s = record.map(|record| record.rate.achieved_per_s).filter(|per_s| *per_s > 0.0);
    let whole_s = if blocks.kind.whole_seconds() { length_s.ceil() } else { length_s };
    Ok(Some(match blocks.length {
        Length::Whole => Seen { around_s: took_s, is_here, per_s, ..Seen::default() },
        _ => Seen { around_s: (took_s - whole_s).max(0.0), is_here, per_s, ..seen(&seconds) },
    }))
}

fn is_whole(blocks: &Blocks) -> bool {
    blocks.length == Length::Whole
}

/// Length of a pilot, s.
#[must_use]
pub fn length_s(budget_s: f64) -> f64 {
    (budget_s * PILOT_SHARE).clamp(PILOT_S.0, PILOT_S.1).round()
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

/// Plans the blocks for the rest of the time.
#[must_use]
pub fn planned(
    blocks: &Blocks,
    seen: &[Seen; 2],
    (asked_s, asked_discard_s): (Option<f64>, Option<f64>),
    (left_s, quantile): (f64, f64),
    at_once: bool,
) -> AbPlan {
    let around_s = seen[0].around_s + seen[1].around_s;
    let around_s = if at_once { around_s / 2.0 } else { around_s };
    if blocks.length == Length::Whole {
        return AbPlan {
            block_s: None,
            discard_s: 0.0,
            pair_s: around_s,
            reason: "a block is a whole run of the job, of which nothing is left out".to_owned(),
            ..AbPlan::default()
        };
    }
    let longest = |of: fn(&Seen) -> f64| of(&seen[0]).max(of(&seen[1]));
    let relaxation_s = longest(|seen| seen.relaxation_s.unwrap_or(0.0));
    let beginning_s = longest(|seen| seen.beginning_s);
    let slowest = seen.iter().filter_map(|seen| seen.per_s).fold(f64::INFINITY, f64::min);
    // Without a known rate nothing is asked for.
    let least_s = BEYOND / (1.0 - quantile) / slowest.max(1e-3);
    let own = plan(relaxation_s.max(1e-6), left_s.max(1e-3)).at_least(least_s, left_s);
    let discard_s = asked_discard_s.unwrap_or(own.discard_s.max(beginning_s));
    let block_s = asked_s.unwrap_or(own.block_s - own.discard_s);
    let is_cut = blocks.length == Length::Cut;
    let is_whole = is_cut || blocks.kind.whole_seconds();
    let round = |seconds: f64| if is_whole { seconds.ceil() } else { seconds };
    let (block_s, discard_s) = (round(block_s), round(discard_s));
    let sides = if at_once { 1.0 } else { 2.0 };
    AbPlan {
        block_s: Some(block_s),
        discard_s,
        pair_s: sides * (block_s + discard_s) + around_s,
        pilot_s: 0.0,
        reason: reason(asked_s, asked_discard_s, relaxation_s, beginning_s)
            + if own.enough || asked_s.is_some() { "" } else { SHORT },
    }
}

fn reason(asked_s: Option<f64>, discard_s: Option<f64>, relaxation_s: f64, begun_s: f64) -> String {
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
    use plimsoll_core::rng::Rng;

    /// Slices of requests whose means follow an AR(1) process with this relaxation time, s.
    fn slices_of(tau_s: f64, seconds: usize, per_s: usize) -> Vec<(f64, f64, f64)> {
        let mut rng = Rng::new(7);
        let keep = (-1.0 / (per_s as f64 * tau_s)).exp();
        let mut state = 0.0f64;
        (0..seconds)
            .map(|_| {
                let values: Vec<f64> = (0..per_s)
                    .map(|_| {
                        let noise = rng.exponential() - 1.0;
                        state = keep * state + (1.0 - keep * keep).sqrt() * noise;
                        10.0 + state
                    })
                    .collect();
                let (mean, deviation) = moments(&values);
                (per_s as f64, mean, deviation)
            })
            .collect()
    }

    #[test]
    fn a_relaxation_time_far_below_a_second_is_found_from_seconds() {
        for tau_s in [0.02, 0.1, 0.4] {
            let found = relaxation(&slices_of(tau_s, 400, 500)).unwrap();
            assert!((0.7..1.4).contains(&(found / tau_s)), "{tau_s}: {found}");
        }
        assert_eq!(relaxation(&slices_of(0.1, 2, 500)), None);
    }

    #[test]
    fn the_beginning_ends_where_the_seconds_are_like_the_rest() {
        assert_eq!(beginning(&[9.0, 5.0, 1.0, 1.01, 0.99, 1.0, 1.02, 1.0]), 2);
        assert_eq!(beginning(&[1.0, 1.01, 0.99, 1.0, 1.02, 1.0]), 0);
        assert_eq!(beginning(&[9.0, 1.0, 1.0]), 0);
    }

    #[test]
    fn asked_times_are_read_from_the_job() {
        let words: Vec<String> =
            ["load", "--duration", "2s", "--warmup=500ms"].map(String::from).to_vec();
        let asked_of = |length| asked(Kind::Load, length, &words).unwrap();
        assert_eq!(asked_of(Length::Planned), (Some(2.0), Some(0.5)));
        assert_eq!(asked_of(Length::Whole), (None, None));
        assert_eq!((length_s(180.0), length_s(20.0), length_s(3600.0)), (9.0, 4.0, 20.0));
    }
}

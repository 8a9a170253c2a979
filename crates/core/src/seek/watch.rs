//! The line over time: load goes on around it for as long as the budget lasts, and each stretch says where it was.
//!
//! It begins as [`super::search::seek`] does, up to the first blocks near the line. Then come stretches: blocks on both
//! sides of the line, and a short look at what the target completes under overload. As long as the capacity and the lines
//! of the stretches differ by no more than their errors, the target is in the same state, and a line is fitted to all
//! blocks of that state. When they do differ, the state is over: the stretch in which that showed has no line, and the
//! blocks before it are forgotten.

use super::finding::{Event, Finding, Phase, Verdict};
use super::fit::Fit;
use super::goal::Goal;
use super::plant::Plant;
use super::search::{Search, Stop, round_to};
use super::stretches::{Known, Shown, over};
pub use super::watched::Watched;

/// Budget of which the phases before the first stretch take their shares, s, however long the target is followed.
const START_S: f64 = 300.0;
/// Blocks of a budget that is too short for longer ones.
const BLOCKS: f64 = 96.0;
/// Intervals are this many times as wide as those of one fit; the zoo says so.
const WIDER: f64 = 1.2;
/// The generator may be late in this many stretches, one after the other.
const LATE_MAX: u32 = 5;

/// Follows the line of `plant` until the budget is over or the user asks for the end, and tells `observe` on the way.
///
/// The finding has the curve under [`Finding::watch`] and no certified rate: the target may have changed.
pub fn watch(plant: &mut dyn Plant, goal: &Goal, observe: &mut dyn FnMut(&Event)) -> Finding {
    let begins = Goal { budget_s: goal.budget_s.min(START_S), ..goal.clone() };
    // What a stretch shows is reported once it is known whether the target stayed the same.
    let mut observe = |event: &Event| match event {
        Event::Forecast(_) | Event::Estimate { .. } => (),
        event => observe(event),
    };
    let mut search = Search::new(plant, &begins, &mut observe);
    if let Err(reason) = goal.check() {
        return search.finding(Err(Stop::Infeasible), Some(reason));
    }
    search.ends_s = goal.budget_s;
    search.is_followed = true;
    let block_s = (16.0 * goal.limit_s).max((goal.budget_s / BLOCKS).clamp(1.0, 4.0));
    search.block_s = round_to(block_s, search.window_s);
    let mut following =
        Following { watched: Vec::new(), state: 1, late: 0, near_per_s: 0.0, starts: Vec::new() };
    let outcome = match search.before_the_first() {
        Err(Stop::Infeasible) => following.run(&mut search, Known::Lost(goal.start_per_s)),
        began => began.and_then(|()| {
            let center = search.center();
            following.run(&mut search, Known::Near(center))
        }),
    };
    search.enter(None);
    let finding = search.finding(outcome, None);
    following.conclude(finding, &search)
}

struct Following {
    watched: Vec<Watched>,
    state: u32,
    /// Stretches without a break in which the generator was late.
    late: u32,
    /// Last estimate of the line.
    near_per_s: f64,
    /// Beginnings of the state's stretches, s.
    starts: Vec<f64>,
}

impl Following {
    fn run(&mut self, search: &mut Search<'_>, mut known: Known) -> Result<(), Stop> {
        let mut from_s = search.phases.last().map_or(0.0, |span| span.from_s);
        self.near_per_s = match known {
            Known::Near(rate) | Known::Lost(rate) | Known::Capacity(_, rate) => rate,
        };
        search.enter(Some(Phase::Watch));
        loop {
            let before = search.capacity;
            self.starts.push(from_s);
            let offered =
                search.near(known).and_then(|center| search.offer_stretch(center, &self.starts));
            let shown = match offered {
                Ok(Some(shown)) => shown,
                // What is left is too short for another one.
                Ok(None) => return Ok(()),
                Err(Stop::Budget) if !self.watched.is_empty() => return Ok(()),
                Err(stop) => self.without_a_line(stop)?,
            };
            let reported = match &shown {
                Shown::Same => self.with_a_line(from_s, search),
                Shown::Changed { note, .. } => self.reported(from_s, search, Some(note.clone())),
            };
            search.tell(&Event::Watched(reported.clone()));
            self.watched.push(reported);
            known = match shown {
                Shown::Same => {
                    self.near_per_s = search.center();
                    Known::Near(self.near_per_s)
                }
                Shown::Changed { next, keep_from_s, .. } => {
                    self.state += 1;
                    self.starts.retain(|start_s| *start_s >= keep_from_s);
                    search.forget((from_s, keep_from_s), before, next);
                    next
                }
            };
            from_s = search.elapsed_s;
        }
    }

    /// A stretch in which no line was found, if the load may go on.
    fn without_a_line(&mut self, stop: Stop) -> Result<Shown, Stop> {
        let note = match stop {
            Stop::GeneratorLimited if self.late < LATE_MAX => {
                self.late += 1;
                "no line: the generator was late".to_owned()
            }
            Stop::NeverViolated => {
                "no line: the limits hold at the highest rate allowed".to_owned()
            }
            Stop::Infeasible => "no line: the limits held at no rate".to_owned(),
            stop => return Err(stop),
        };
        Ok(over(Known::Lost(self.near_per_s), note))
    }

    fn reported(&self, from_s: f64, search: &Search<'_>, note: Option<String>) -> Watched {
        Watched {
            from_s,
            until_s: search.elapsed_s,
            state: self.state,
            line_per_s: None,
            interval_per_s: None,
            capacity_per_s: search.capacity.map(|capacity| capacity.per_s),
            blocks: 0,
            blocks_from_s: from_s,
            note,
        }
    }

    fn with_a_line(&mut self, from_s: f64, search: &Search<'_>) -> Watched {
        self.late = 0;
        let fit = search.fit.map(|(fit, _)| fit);
        let late_below = fit.and_then(|fit| search.late_below(fit.estimate_per_s));
        let is_founded = search.is_founded() && late_below.is_none();
        let is_new = self.watched.last().is_none_or(|last| last.state != self.state);
        let note = match (is_founded, is_new) {
            (false, _) => Some(late_below.unwrap_or_else(|| search.what_it_takes())),
            (true, true) if self.state > 1 => Some("a new state of the target".to_owned()),
            (true, _) => None,
        };
        Watched {
            line_per_s: fit.map(|fit| fit.estimate_per_s),
            interval_per_s: fit.filter(|_| is_founded).map(|fit| wider(&fit)),
            blocks: search.blocks.len() as u64,
            blocks_from_s: search.blocks.first().map_or(from_s, |block| block.at_s),
            ..self.reported(from_s, search, note)
        }
    }

    /// The finding of the whole: a curve, and nothing that only one state would have.
    fn conclude(self, found: Finding, search: &Search<'_>) -> Finding {
        let has_interval = self.watched.iter().any(|one| one.interval_per_s.is_some());
        let stays = matches!(found.verdict, Verdict::TargetFailed);
        let (verdict, reason) = match found.verdict {
            verdict if stays => (verdict, found.reason),
            _ if has_interval => (Verdict::Ok, how_it_went(&self.watched)),
            Verdict::Ok | Verdict::BudgetTooSmall => {
                (Verdict::BudgetTooSmall, search.what_it_takes())
            }
            verdict => (verdict, found.reason),
        };
        Finding {
            verdict,
            reason,
            certified: None,
            certified_last: false,
            failing: None,
            broke: None,
            estimate_per_s: None,
            interval_per_s: None,
            half_width: None,
            slope: None,
            forecast: None,
            forecast_first: None,
            watch: Some(self.watched),
            ..found
        }
    }
}

/// The fit's interval, for one that is printed again and again: where one of many lies beside the line by chance, so do
/// those after it.
fn wider(fit: &Fit) -> (f64, f64) {
    let (low, high) = fit.interval_per_s;
    let line = fit.estimate_per_s;
    (line * (low / line).powf(WIDER), line * (high / line).powf(WIDER))
}

/// The whole in a sentence: where the line stayed, or from where to where it moved.
fn how_it_went(watched: &[Watched]) -> String {
    // The last interval of a state is its narrowest.
    let mut states: Vec<(&Watched, f64, (f64, f64))> = Vec::new();
    for one in watched {
        let Some((line, interval)) = one.line_per_s.zip(one.interval_per_s) else { continue };
        match states.last_mut() {
            Some(last) if last.0.state == one.state => *last = (one, line, interval),
            _ => states.push((one, line, interval)),
        }
    }
    let low = states.iter().map(|state| state.2.0).fold(0.0, f64::max);
    let high = states.iter().map(|state| state.2.1).fold(f64::INFINITY, f64::min);
    if low <= high {
        let low = states.iter().map(|state| state.2.0).fold(f64::INFINITY, f64::min);
        let high = states.iter().map(|state| state.2.1).fold(0.0, f64::max);
        return format!("the line stayed between {low:.1}/s and {high:.1}/s");
    }
    let lines: Vec<f64> = states.iter().map(|state| state.1).collect();
    let (first, last) = (lines[0], lines[lines.len() - 1]);
    let lowest = lines.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = lines.iter().copied().fold(0.0, f64::max);
    let between = if lowest < 0.97 * first.min(last) || highest > 1.03 * first.max(last) {
        format!(", and was between {lowest:.1}/s and {highest:.1}/s meanwhile")
    } else {
        String::new()
    };
    format!("the line moved from {first:.1}/s to {last:.1}/s{between}")
}

#[cfg(test)]
mod tests;

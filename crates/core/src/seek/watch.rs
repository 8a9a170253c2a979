//! The line over time: load goes on around it for as long as the budget lasts, and each stretch says where it was.
//!
//! It begins as [`super::search::seek`] does, up to the first blocks near the line. Then come stretches: blocks on both
//! sides of the line, and a short look at what the target completes under overload. As long as the capacity and the lines
//! of the stretches differ by no more than their errors, the target is in the same state, and a line is fitted to all
//! blocks of that state. When they do differ, the state is over: the stretch in which that showed has no line, and the
//! blocks before it are forgotten.

use super::bracket::{Capacity, Look, Overload};
use super::finding::{Change, Event, Finding, Phase, Verdict};
use super::fit::Fit;
use super::focus::{LEAST_BACKLOGS, LEAST_BLOCKS};
use super::goal::{Goal, Limit};
use super::plant::{Abort, Plant};
use super::search::{Search, Stop, Stretch};
use super::steady::{differs, together};
use crate::normal;
use serde::{Deserialize, Serialize};

/// Budget of which the phases before the first stretch take their shares, s, however long the target is followed.
const START_S: f64 = 300.0;
/// Standard errors between the lines of a stretch and of those before it that make it another state.
const ERRORS: f64 = 3.0;
/// Share of requests that are late where all are, and for how many natural times of the backlog they must be.
const ALL_LATE: f64 = 0.9;
const LATE_BACKLOGS: f64 = 8.0;
const LATE_BLOCKS: f64 = 3.0;
/// A stretch with a share of late requests this far from what is allowed is not near the line.
const FAR: (f64, f64) = (0.1, 4.0);
/// Ratio of rates on the way to a line that is nowhere near, and most steps.
const RATIO: f64 = 1.6;
const STEPS: usize = 24;
/// No line is looked for this far below where it was.
const FAR_BELOW: f64 = 0.01;
/// A state is known by its newest blocks, and the curve by its newest looks.
const BLOCKS_MAX: usize = 600;
const CURVE_MAX: usize = 2_000;
/// The generator may be late in so many stretches, one after the other.
const LATE_MAX: u32 = 5;

/// One stretch of a target that is followed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// Its beginning, s since the start of the search.
    pub from_s: f64,
    /// Its end.
    pub until_s: f64,
    /// Number of the target's state at its beginning, from 1.
    pub state: u32,
    /// The line, requests per second, from all blocks of the state so far.
    pub line_per_s: Option<f64>,
    /// The interval that holds it with the wanted confidence.
    pub interval_per_s: Option<(f64, f64)>,
    /// What the target completed at the end of the stretch when overloaded, requests per second.
    pub capacity_per_s: Option<f64>,
    /// Blocks that the line was fitted to.
    pub blocks: u64,
    /// When the first of them began, s.
    pub blocks_from_s: f64,
    /// What changed, or why there is no interval.
    pub note: Option<String>,
}

/// What is known of the line when a stretch begins.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    /// Blocks near it, or nothing but a rate to offer them at.
    Near(f64),
    /// What the target completes, and a rate below the line.
    Capacity(Capacity, f64),
    /// A rate at which to look for it.
    Lost(f64),
}

/// How a stretch came out.
enum Shown {
    Same,
    Changed { next: Known, note: String },
}

/// Follows the line of `plant` until the budget is over or somebody asks for the end, and tells `observe` on the way.
///
/// The finding has the curve under [`Finding::watch`] and no certified rate: the target may have changed.
pub fn watch(plant: &mut dyn Plant, goal: &Goal, observe: &mut dyn FnMut(&Event)) -> Finding {
    let begins = Goal { budget_s: goal.budget_s.min(START_S), ..goal.clone() };
    let mut search = Search::new(plant, &begins, observe);
    if let Err(reason) = goal.check() {
        return search.finding(Err(Stop::Infeasible), Some(reason));
    }
    search.ends_s = goal.budget_s;
    let mut following = Following { watched: Vec::new(), state: 1, late: 0, near_per_s: 0.0 };
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
    /// Where the line was thought to be last.
    near_per_s: f64,
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
            let shown = match search.near(known).and_then(|center| search.offer_stretch(center)) {
                Ok(Some(shown)) => shown,
                // What is left is too short for another one.
                Ok(None) => return Ok(()),
                Err(Stop::Budget) if !self.watched.is_empty() => return Ok(()),
                Err(stop) => self.without_a_line(stop)?,
            };
            let told = match &shown {
                Shown::Same => self.with_a_line(from_s, search),
                Shown::Changed { note, .. } => self.told(from_s, search, Some(note.clone())),
            };
            search.tell(&Event::Watched(told.clone()));
            self.watched.push(told);
            known = match shown {
                Shown::Same => {
                    self.near_per_s = search.center();
                    Known::Near(self.near_per_s)
                }
                Shown::Changed { next, .. } => {
                    self.state += 1;
                    search.forget(from_s, before, next);
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
            Stop::Infeasible => "no line: no rate was found that holds the limits".to_owned(),
            stop => return Err(stop),
        };
        Ok(Shown::Changed { next: Known::Lost(self.near_per_s), note })
    }

    fn told(&self, from_s: f64, search: &Search<'_>, note: Option<String>) -> Watched {
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
        let is_founded = search.is_founded();
        let is_new = self.watched.last().is_none_or(|last| last.state != self.state);
        let note = match (is_founded, is_new) {
            (false, _) => Some(search.what_it_takes()),
            (true, true) if self.state > 1 => Some("a new state of the target".to_owned()),
            (true, _) => None,
        };
        Watched {
            line_per_s: fit.map(|fit| fit.estimate_per_s),
            interval_per_s: fit.filter(|_| is_founded).map(|fit| fit.interval_per_s),
            blocks: search.blocks.len() as u64,
            blocks_from_s: search.blocks.first().map_or(from_s, |block| block.at_s),
            ..self.told(from_s, search, note)
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

impl Search<'_> {
    fn before_the_first(&mut self) -> Result<(), Stop> {
        self.enter(Some(Phase::WarmUp));
        self.warm_up()?;
        self.enter(Some(Phase::Ramp));
        self.ramp()?;
        self.enter(Some(Phase::Capacity));
        self.overload()?;
        self.enter(Some(Phase::Bracket));
        self.narrow()?;
        self.look_below()?;
        self.enter(Some(Phase::Pilot));
        self.pilot()
    }

    /// The rate that blocks were last offered around.
    fn center(&self) -> f64 {
        self.bracket.0 / 0.8
    }

    /// Finds the line again, roughly, and returns a rate to offer blocks around.
    fn near(&mut self, known: Known) -> Result<f64, Stop> {
        match known {
            Known::Near(center) => return Ok(center),
            Known::Capacity(capacity, low) => {
                self.bracket = (low, capacity.per_s * (1.0 + capacity.error));
                self.capacity = Some(capacity);
            }
            Known::Lost(rate) => {
                self.capacity = None;
                self.bracket_from(rate)?;
                self.overload()?;
            }
        }
        self.narrow()?;
        self.look_below()?;
        self.pilot()?;
        Ok(self.center())
    }

    /// Moves by a factor until one rate holds and the next one does not.
    fn bracket_from(&mut self, rate_per_s: f64) -> Result<(), Stop> {
        self.bracket = (0.0, f64::INFINITY);
        let (limit_s, most) = (self.goal.limit_s, self.goal.most_per_s);
        for _ in 0..STEPS {
            let (low, high) = self.bracket;
            let rate = match (low > 0.0, high.is_finite()) {
                (true, true) => return Ok(()),
                (true, false) if low >= most => return Err(Stop::NeverViolated),
                (true, false) => (RATIO * low).min(most),
                (false, true) if high < FAR_BELOW * rate_per_s => return Err(Stop::Infeasible),
                (false, true) => high / RATIO,
                (false, false) => rate_per_s.min(most),
            };
            match self.look(rate, limit_s, self.step_s(rate), true)? {
                Look::Held => self.bracket.0 = rate,
                Look::Broke => self.bracket.1 = rate,
                Look::Starved => return Err(Stop::GeneratorLimited),
            }
        }
        Err(Stop::Infeasible)
    }

    /// Blocks on either side of the line in the next stretch; nothing if there is no time for one.
    fn next_half(&self) -> Option<usize> {
        let look_s = self.capacity.map_or(0.0, |c| 1.5 * self.overload_s(c.per_s));
        let spent_s = self.order_s(0) + look_s;
        let wanted = (self.least_near_s() / self.block_s).ceil().max(LEAST_BLOCKS as f64);
        let stretches = (self.left_s() / (spent_s + wanted * self.block_s)).floor().max(1.0);
        let half = (self.left_s() / stretches - spent_s) / (2.0 * self.block_s);
        (half >= 1.0).then_some(half as usize)
    }

    /// Load near the line that an interval needs, s.
    fn least_near_s(&self) -> f64 {
        let backlogs_s = self
            .fit
            .map_or(0.0, |(fit, limit)| LEAST_BACKLOGS * self.backlog_s(limit, fit.estimate_per_s));
        backlogs_s.max(LEAST_BLOCKS as f64 * self.block_s)
    }

    fn what_it_takes(&self) -> String {
        let seconds: f64 = self.blocks.iter().map(|block| block.seconds).sum();
        format!(
            "no interval: it takes {:.0} s of load near the line while the target stays the same, and there were {seconds:.0} s",
            self.least_near_s()
        )
    }

    /// Blocks around `center` and a look at the capacity. Nothing if there is no time for them.
    fn offer_stretch(&mut self, center: f64) -> Result<Option<Shown>, Stop> {
        let Some(half) = self.next_half() else { return Ok(None) };
        let earlier = self.blocks.len();
        let found = self.fit.map(|(fit, _)| fit);
        let rates = match found {
            Some(fit) => {
                let step = (0.4 / fit.slope).min(fit.half_width().max(0.2 / fit.slope));
                let step = step.clamp(0.003, 0.05);
                [center * (-step).exp(), (center * step.exp()).max(self.beyond(&fit))]
            }
            None => [0.95 * center, 1.05 * center],
        };
        let kept = self.offer_runs(&rates, half, Some(self.nearly_all_late(center)))?;
        let known = self.capacity;
        let after = match known {
            Some(before) => match self.look_at_capacity(before.per_s)? {
                Overload::Saturated(after) => Some(after),
                Overload::Beyond(rate) => return Ok(Some(far_faster(before, rate))),
                Overload::Unknown => None,
            },
            None => None,
        };
        if let Some((before, after)) = known.zip(after) {
            if differs(before, after) {
                let ratio =
                    found.map_or(0.5, |fit| (0.8 * fit.estimate_per_s / before.per_s).min(0.5));
                let how = if after.per_s > before.per_s { "faster" } else { "slower" };
                let note = format!(
                    "the target got {how}: it completes {:.0}/s under overload, before {:.0}/s",
                    after.per_s, before.per_s
                );
                self.capacity = Some(after);
                return Ok(Some(Shown::Changed {
                    next: Known::Capacity(after, ratio * after.per_s),
                    note,
                }));
            }
            self.capacity = Some(together(before, after));
        }
        if !kept {
            let note = "nearly all requests were late where the line was".to_owned();
            return Ok(Some(Shown::Changed { next: Known::Lost(center / RATIO), note }));
        }
        Ok(Some(self.judge(earlier, center)))
    }

    /// Whether the blocks from `earlier` on are of the same state as those before, all of which are fitted then.
    fn judge(&mut self, earlier: usize, center: f64) -> Shown {
        let split = self.fit.filter(|_| earlier >= LEAST_BLOCKS).map(|(_, limit)| {
            let (before, own) = self.blocks.split_at(earlier);
            (self.fit_of(before, limit, center), self.fit_of(own, limit, center))
        });
        self.estimate(center);
        let own_center = |fit: &Fit| fit.estimate_per_s.clamp(0.94 * center, 1.12 * center);
        if let Some((before, own)) = split.filter(|(before, own)| self.are_apart(before, own)) {
            let note = format!(
                "the line moved without the capacity: {:.1}/s, before {:.1}/s",
                own.estimate_per_s, before.estimate_per_s
            );
            let runs = &self.runs[self.runs.len().saturating_sub(2)..];
            let excess = |at: usize| runs.get(at).map_or(1.0, |run| self.excess(&run.counts));
            let is_far = excess(1) < FAR.0 || excess(0) > FAR.1;
            let near = own_center(&own);
            let next = if is_far { Known::Lost(near) } else { Known::Near(near) };
            return Shown::Changed { next, note };
        }
        let near = self.fit.map_or(center, |(fit, _)| own_center(&fit));
        if let Some(note) = self.unsteadiness() {
            return Shown::Changed { next: Known::Near(near), note };
        }
        self.bracket = (0.8 * near, 1.25 * near);
        self.keep_the_newest();
        Shown::Same
    }

    fn are_apart(&self, before: &Fit, own: &Fit) -> bool {
        let deviations = normal::quantile(0.5 + self.goal.confidence / 2.0);
        let error = before.half_width().hypot(own.half_width()) / deviations;
        let apart = (own.estimate_per_s / before.estimate_per_s).ln().abs();
        before.is_known() && own.is_known() && apart > ERRORS * error
    }

    fn keep_the_newest(&mut self) {
        let old = |kept: &Vec<Stretch>, most: usize| kept.len().saturating_sub(most);
        self.blocks.drain(..old(&self.blocks, BLOCKS_MAX));
        self.runs.drain(..old(&self.runs, BLOCKS_MAX));
        self.curve.drain(..old(&self.curve, CURVE_MAX));
    }

    /// When an order ends early: nearly all requests are late, and for longer than a backlog that comes and goes.
    fn nearly_all_late(&self, center: f64) -> Abort {
        let strictest = self.goal.limits.iter().map(Limit::allowed).fold(1.0, f64::min);
        let backlog_s = self.fit.map_or(self.block_s, |(_, limit)| self.backlog_s(limit, center));
        let late_s = (LATE_BACKLOGS * backlog_s).max(LATE_BLOCKS * self.block_s);
        let late = center * late_s;
        Abort { excess: ALL_LATE / strictest, late_min: late.max(100.0) as u64 }
    }

    /// Forgets what a state showed that is over.
    fn forget(&mut self, from_s: f64, before: Option<Capacity>, next: Known) {
        if let (Some(before), Known::Capacity(after, _)) = (before, next) {
            let change = Change {
                from_s,
                until_s: self.elapsed_s,
                before_per_s: before.per_s,
                after_per_s: after.per_s,
            };
            self.changes.push(change);
            self.tell(&Event::Changed(change));
        }
        self.blocks.clear();
        self.runs.clear();
        self.curve.clear();
        self.fit = None;
        self.since_s = self.elapsed_s;
        if let Known::Near(center) = next {
            self.bracket = (0.8 * center, 1.25 * center);
        }
    }
}

/// Overload that was none: what was known of the target says nothing any more.
fn far_faster(before: Capacity, rate_per_s: f64) -> Shown {
    let note = format!(
        "the target got faster: it completes more than {rate_per_s:.0}/s, before {:.0}/s",
        before.per_s
    );
    Shown::Changed { next: Known::Lost(rate_per_s), note }
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

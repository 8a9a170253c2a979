//! The search as a whole: its phases in order, its time, and what every order leaves behind.

use super::completed::Capacity;
use super::finding::{Change, Event, Finding, Forecast, Measured, Phase, PhaseSpan};
use super::fit::Fit;
use super::goal::Goal;
use super::plant::{Abort, Order, Plant, Segment, Trial, Window};
use super::steps::Steps;
use crate::rng::splitmix64;

/// Lag of the generator, at its 99th percentile, above which an offer is not judged: a share of the limit, and s.
const LAG: f64 = 0.2;
const LAG_FLOOR_S: f64 = 0.005;
/// A generator that is late in this many offers of the same load, one after the other, cannot send it.
const TRIES: u32 = 3;
/// The same for offers that take longer than this share of the budget.
const TRIES_LONG: u32 = 2;
const LONG: f64 = 0.04;
/// Blocks of the shortest run that certifies a rate.
pub(super) const LEAST_RUN: usize = 2;

/// Reason why the phases ended before the last one was done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stop {
    Budget,
    Interrupted,
    TargetFailed,
    Infeasible,
    NeverViolated,
    GeneratorLimited,
    /// The target changed too often, or too late.
    Unstable,
}

/// A contiguous stretch of load at one rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub rate_per_s: f64,
    pub counts: Window,
    pub seconds: f64,
    /// Time at which it began, s since the start of the search.
    pub at_s: f64,
}

/// Knowledge of a search so far, and the means to learn more.
pub(super) struct Search<'a> {
    plant: &'a mut dyn Plant,
    pub goal: &'a Goal,
    observe: &'a mut dyn FnMut(&Event),
    pub elapsed_s: f64,
    /// Time at which the load ends, s since the start: the goal's budget, or later where the target is followed.
    pub ends_s: f64,
    orders: u64,
    pub window_s: f64,
    pub block_s: f64,
    pub settle_s: f64,
    /// Everything that was measured, for the curve.
    pub curve: Vec<Stretch>,
    /// Blocks near the line, from the pilot on.
    pub blocks: Vec<Stretch>,
    /// Runs at one rate that were judged as a whole.
    pub runs: Vec<Stretch>,
    /// The rate that it completes under overload.
    pub capacity: Option<Capacity>,
    /// The most that it completes, if that is more.
    pub peak: Option<Capacity>,
    /// True once that was looked for.
    pub is_peak_known: bool,
    /// True if it is more than chance makes it.
    pub is_peak_clear: bool,
    /// The most that it completed in the search for that, requests per second.
    pub completes_per_s: f64,
    /// Highest rate that held and lowest that did not.
    pub bracket: (f64, f64),
    /// Mean response time at the lowest load, s.
    pub floor_s: f64,
    pub fit: Option<(Fit, usize)>,
    pub forecast: Option<Forecast>,
    pub forecast_first: Option<Forecast>,
    pub certified: Option<Stretch>,
    /// True if the certified rate's run is that of the last phase.
    pub certified_last: bool,
    /// Lowest rate at which the generator could not send as planned.
    pub starved_at_per_s: f64,
    /// Orders that were offered once more because the generator was late in them.
    pub repeated: u32,
    /// Rate at which a look for that alone showed that the limits hold, requests per second.
    pub holds_at_per_s: Option<f64>,
    pub non_monotone: bool,
    /// True if load was tried as a remedy for a target that no low rate holds.
    pub heated: bool,
    /// Time at which the capacity was measured last, s.
    pub looked_s: f64,
    /// Measurements of the capacity: when they ended, s, and requests per second.
    pub capacities: Vec<(f64, f64)>,
    /// The largest lag of the generator in what was judged, at its 99th percentile, s.
    pub lag_p99_s: f64,
    pub changes: Vec<Change>,
    /// Changes of these that warmed it before the search for the line began.
    pub warmed: usize,
    /// Capacities measured since then: time, s, and requests per second.
    pub looks: Vec<(f64, Capacity)>,
    /// Since when everything that is kept was measured, s.
    pub since_s: f64,
    pub started_over: bool,
    /// True if the target is followed, and not searched once.
    pub is_followed: bool,
    pub width_reached: bool,
    pub phases: Vec<PhaseSpan>,
    pub steps: Steps,
}

pub(super) fn round_to(value: f64, step: f64) -> f64 {
    (value / step).round().max(1.0) * step
}

/// Length of a block, s. It holds many times the limit, because lateness comes in bursts of about its length. A budget that
/// is too small for that is too small: shorter blocks would show a line that is not there.
fn block_s(goal: &Goal) -> f64 {
    (16.0 * goal.limit_s).max((goal.budget_s / 24.0).clamp(1.0, 4.0))
}

/// Length of the shortest run that certifies a rate, s.
#[must_use]
pub fn least_run_s(goal: &Goal) -> f64 {
    LEAST_RUN as f64 * block_s(goal)
}

/// Searches the load line of `plant`, and tells `observe` on the way.
///
/// A goal that makes no sense ends as infeasible with the reason; see [`Goal::check`] to know before.
pub fn seek(plant: &mut dyn Plant, goal: &Goal, observe: &mut dyn FnMut(&Event)) -> Finding {
    let mut search = Search::new(plant, goal, observe);
    if let Err(reason) = goal.check() {
        return search.finding(Err(Stop::Infeasible), Some(reason));
    }
    let mut outcome = search.phases_in_order();
    if let Err(Stop::GeneratorLimited) = outcome {
        // That there is no time left to certify a rate does not unsay why the search ended.
        match search.certify_below(search.bracket.0) {
            Ok(()) | Err(Stop::Budget) => (),
            Err(stop) => outcome = Err(stop),
        }
    }
    if search.certified.is_none() {
        search.certify_from_before();
    }
    if search.fit.is_some() && !search.is_reported() {
        search.certified = None;
    }
    let is_known = search.certified.is_some() || search.is_reported();
    if matches!(outcome, Ok(()) | Err(Stop::Budget)) && !is_known && search.fails_at_all_rates() {
        outcome = Err(Stop::Infeasible);
    }
    search.enter(None);
    search.finding(outcome, None)
}

impl<'a> Search<'a> {
    pub(super) fn new(
        plant: &'a mut dyn Plant,
        goal: &'a Goal,
        observe: &'a mut dyn FnMut(&Event),
    ) -> Search<'a> {
        let window_s = (goal.limit_s / 2.0).clamp(0.05, 1.0);
        let block_s = block_s(goal);
        let settle_s = (2.0 * goal.limit_s).max(0.5).min(block_s / 4.0);
        Search {
            plant,
            goal,
            observe,
            elapsed_s: 0.0,
            ends_s: goal.budget_s,
            orders: 0,
            window_s,
            block_s: round_to(block_s, window_s),
            settle_s: round_to(settle_s, window_s),
            curve: Vec::new(),
            blocks: Vec::new(),
            runs: Vec::new(),
            capacity: None,
            peak: None,
            is_peak_known: false,
            is_peak_clear: false,
            completes_per_s: 0.0,
            bracket: (0.0, f64::INFINITY),
            floor_s: f64::INFINITY,
            fit: None,
            forecast: None,
            forecast_first: None,
            certified: None,
            certified_last: false,
            starved_at_per_s: f64::INFINITY,
            repeated: 0,
            holds_at_per_s: None,
            non_monotone: false,
            heated: false,
            looked_s: 0.0,
            capacities: Vec::new(),
            lag_p99_s: 0.0,
            changes: Vec::new(),
            warmed: 0,
            looks: Vec::new(),
            since_s: 0.0,
            started_over: false,
            is_followed: false,
            width_reached: false,
            phases: Vec::new(),
            steps: Steps::default(),
        }
    }

    fn phases_in_order(&mut self) -> Result<(), Stop> {
        self.enter(Some(Phase::WarmUp));
        self.warm_up()?;
        self.enter(Some(Phase::Ramp));
        self.ramp()?;
        self.enter(Some(Phase::Capacity));
        self.overload()?;
        self.warm_near_capacity()?;
        self.enter(Some(Phase::Bracket));
        self.narrow()?;
        if self.is_too_short() {
            self.enter(Some(Phase::Certify));
            return self.certify_modestly();
        }
        self.look_below()?;
        self.enter(Some(Phase::Pilot));
        self.pilot()?;
        self.enter(Some(Phase::Focus));
        self.focus()?;
        while self.look_again(true)? {
            self.focus()?;
        }
        self.confirm_below()?;
        self.enter(Some(Phase::Certify));
        self.certify()
    }

    /// Ends the phase that is on and begins the next one.
    pub(super) fn enter(&mut self, phase: Option<Phase>) {
        let at_s = self.elapsed_s;
        if let Some(last) = self.phases.last_mut() {
            last.until_s = at_s;
        }
        if let Some(phase) = phase {
            self.phases.push(PhaseSpan { phase, from_s: at_s, until_s: at_s });
            self.tell(&Event::Phase { phase, at_s });
        }
    }

    /// Keeps the step that an event is, and hands it to whoever watches.
    pub fn tell(&mut self, event: &Event) {
        if let Some(step) = event.step(self.elapsed_s) {
            self.steps.take(step);
        }
        (self.observe)(event);
    }

    pub fn left_s(&self) -> f64 {
        self.ends_s - self.elapsed_s
    }

    pub fn measured(&self, stretch: &Stretch) -> Measured {
        let limits = self.goal.limits.len();
        Measured::new(stretch.rate_per_s, stretch.seconds, limits, &stretch.counts)
    }

    /// Ratio of the worst limit's value to the allowed one.
    pub fn excess(&self, counts: &Window) -> f64 {
        self.goal.excess(counts).0
    }

    /// Offers segments for as long as the budget lasts, and adds up their number, their time and the largest lag.
    pub fn offer(&mut self, segments: &[Segment], abort: Option<Abort>) -> Result<Trial, Stop> {
        let mut left_s = self.left_s();
        if left_s < self.window_s {
            return Err(Stop::Budget);
        }
        let mut affordable = Vec::with_capacity(segments.len());
        for segment in segments {
            let whole = (left_s / self.window_s).floor() * self.window_s;
            let duration_s = segment.duration_s.min(whole);
            if duration_s < 0.5 * self.window_s {
                break;
            }
            left_s -= duration_s;
            affordable.push(Segment {
                rate_per_s: segment.rate_per_s.min(self.goal.most_per_s),
                duration_s,
            });
        }
        self.orders += 1;
        let trial = self.plant.run(&Order {
            segments: affordable,
            window_s: self.window_s,
            seed: splitmix64(self.goal.seed ^ splitmix64(self.orders)),
            abort,
            allowed: self.goal.limits.iter().map(super::goal::Limit::allowed).collect(),
        });
        self.elapsed_s += trial.elapsed_s;
        self.lag_p99_s = self.lag_p99_s.max(trial.pace.lag_p99_s);
        if trial.interrupted {
            return Err(Stop::Interrupted);
        }
        if self.dead(&trial) {
            return Err(Stop::TargetFailed);
        }
        Ok(trial)
    }

    /// Offers segments until the generator sends them as planned, a few times at most: a machine that stood still
    /// for a moment says nothing of the target, nor of what the generator can. Of all but the last nothing is kept.
    pub fn offer_on_time(
        &mut self,
        segments: &[Segment],
        abort: Option<Abort>,
    ) -> Result<Trial, Stop> {
        let lag_p99_s = self.lag_p99_s;
        let mut trial = self.offer(segments, abort)?;
        let is_long = trial.elapsed_s > LONG * self.goal.budget_s;
        for _ in 1..if is_long { TRIES_LONG } else { TRIES } {
            if !self.starved(&trial) {
                break;
            }
            self.repeated += 1;
            self.lag_p99_s = lag_p99_s;
            trial = self.offer(segments, abort)?;
        }
        if self.starved(&trial) {
            // Nothing is judged by it.
            self.lag_p99_s = lag_p99_s;
        }
        Ok(trial)
    }

    /// Returns true if the target, having answered before, answers nothing any more: at the end of the trial every
    /// request failed and nothing was completed, for long enough to be sure.
    fn dead(&self, trial: &Trial) -> bool {
        let mut last = Window::default();
        for window in trial.windows.iter().rev() {
            if window.failed < window.scheduled || window.completed > 0 {
                break;
            }
            last.add(window);
        }
        let before = self.curve.iter().any(|s| s.counts.failed < s.counts.scheduled);
        before && last.scheduled >= 30 && last.failed == last.scheduled
    }

    /// The windows from `at` on, `count` of them or as many as there are, as one stretch; None if there are none.
    pub fn stretch(
        &self,
        trial: &Trial,
        rate_per_s: f64,
        at: usize,
        count: usize,
    ) -> Option<Stretch> {
        let from = at.min(trial.windows.len());
        let windows = &trial.windows[from..at.saturating_add(count).min(trial.windows.len())];
        let mut counts = Window::default();
        windows.iter().for_each(|window| counts.add(window));
        let began_s = self.elapsed_s - trial.elapsed_s;
        (counts.scheduled > 0).then_some(Stretch {
            // What was offered: never more than may be.
            rate_per_s: rate_per_s.min(self.goal.most_per_s),
            counts,
            seconds: windows.len() as f64 * self.window_s,
            at_s: began_s + at as f64 * self.window_s,
        })
    }

    /// Windows in this many seconds.
    pub fn windows_in(&self, seconds: f64) -> usize {
        (seconds / self.window_s).round() as usize
    }

    /// Returns true if the generator sent too late to say anything of the target. A request that it could not send, the target did not
    /// miss; a lag below this is in the response times, which count from the intended time, and on the safe side.
    pub fn starved(&self, trial: &Trial) -> bool {
        trial.pace.lag_p99_s > self.lag_tolerated_s()
    }

    /// Lag of the generator above which an offer is not judged, s.
    pub fn lag_tolerated_s(&self) -> f64 {
        (LAG * self.goal.limit_s).max(LAG_FLOOR_S)
    }

    /// The curve: stretches of the same rate together, in ascending order.
    pub fn curve_by_rate(&self) -> Vec<Stretch> {
        let mut sorted = self.curve.clone();
        sorted.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
        let mut merged: Vec<Stretch> = Vec::new();
        for stretch in sorted {
            match merged.last_mut() {
                Some(last) if stretch.rate_per_s < last.rate_per_s * 1.0005 => {
                    last.counts.add(&stretch.counts);
                    last.seconds += stretch.seconds;
                }
                _ => merged.push(stretch),
            }
        }
        merged
    }
}

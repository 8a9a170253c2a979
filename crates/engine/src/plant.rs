//! A real target as a plant: what a search for the load line drives.
//!
//! Each order of the search is a part of one run: a profile of steps whose requests are counted by when they were
//! due. The parts' totals are merged, so that the run's books hold every request of the search.

mod crew;
mod users;

pub use crew::{Brief, Crew, Lookout, Shift, pace_of};
pub use users::PlantUsers;

use crate::run::{RunEnd, RunError};
use crate::shard::{Part, ShardPlan};
use crate::windows::{WindowCounts, WindowLimit};
use plimsoll_core::clock::{SECOND_NS, now_ns};
use plimsoll_core::interval::Interval;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{Arrivals, LoadModel, ModelError, Step};
use plimsoll_core::seek::plant::{Order, Plant, Segment, Trial, Window};
use plimsoll_core::verdict::Health;
use plimsoll_wire::{Protocol, Sessions};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Fewest connections of an order whose number was left to the plant.
const CONNECTIONS_MIN: f64 = 32.0;
/// Most of them.
const CONNECTIONS_MAX: f64 = 4096.0;

/// Sessions for all shards of one part, from a seed of their own.
pub type MakeSessions<'a, P> = dyn FnMut(u64) -> Vec<Box<dyn Sessions<P> + Send>> + 'a;

/// Settings that all periods of the search share.
pub struct PlantPlan {
    /// Targets, timeouts and the like; model, seed, limits, part and, unless they are fixed, connections are the
    /// order's.
    pub base: ShardPlan,
    /// Arrivals of requests, or of users.
    pub arrivals: Arrivals,
    /// Users who come at the order's rate over the requests of each; none: the requests come by themselves.
    pub users: Option<PlantUsers>,
    /// The limits that requests are counted by.
    pub limits: Vec<WindowLimit>,
    /// True if the base's number of connections is to be kept.
    pub connections_fixed: bool,
    /// Threads.
    pub shards: u32,
    /// Requests that a connection carries at a time.
    pub depth: u32,
}

impl PlantPlan {
    /// The longest response time that a limit allows, ns; one second where only failures count.
    fn longest_ns(&self) -> u64 {
        let finite = self.limits.iter().map(|limit| limit.limit_ns).filter(|&ns| ns < u64::MAX);
        finite.max().unwrap_or(SECOND_NS)
    }

    /// Returns true if only limits on other classes have a time, so that requests of some class may take as long as they like.
    fn has_class_without_time(&self) -> bool {
        let timed = |class: u16| {
            let mut of_it =
                self.limits.iter().filter(|limit| limit.class.is_none_or(|own| own == class));
            of_it.any(|limit| limit.limit_ns < u64::MAX)
        };
        self.limits.iter().any(|limit| limit.class.is_some())
            && !(0..self.base.classes as u16).all(timed)
    }
}

/// A stretch of load at one rate, with everything that was recorded in it.
pub struct Stretch {
    /// Its start, s since the plant was made.
    pub from_s: f64,
    /// Its length, s.
    pub seconds: f64,
    /// Its requests by due time, all windows together.
    pub counts: Window,
    /// The limits that the counts are judged by, ns.
    pub limits: Vec<u64>,
    /// Everything recorded.
    pub totals: Interval,
    /// The generator's own health in it.
    pub health: Health,
    /// True if the user asked for the end.
    pub interrupted: bool,
}

/// A real target under open-loop load.
pub struct EnginePlant<'a, P: Protocol, E> {
    plan: PlantPlan,
    sessions: &'a mut MakeSessions<'a, P>,
    crew: &'a mut dyn Crew<P, Error = E>,
    began_ns: u64,
    parts: u32,
    /// Mean response time of the last part, at most the longest limit, ns.
    answer_ns: u64,
    end: Option<RunEnd>,
    /// Measurements of a period that is judged separately.
    apart: Option<(Interval, Health)>,
    error: Option<E>,
}

impl<'a, P: Protocol, E: From<RunError>> EnginePlant<'a, P, E> {
    /// A plant whose orders a crew carries out.
    pub fn new(
        plan: PlantPlan,
        sessions: &'a mut MakeSessions<'a, P>,
        crew: &'a mut dyn Crew<P, Error = E>,
    ) -> Self {
        Self {
            plan,
            sessions,
            crew,
            began_ns: now_ns(),
            parts: 0,
            answer_ns: 0,
            end: None,
            apart: None,
            error: None,
        }
    }

    /// Everything that was measured, all parts together; nothing when no part took place.
    ///
    /// # Errors
    /// Error that ended the search.
    pub fn finish(self) -> Result<Option<RunEnd>, E> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.crew.end()?;
        Ok(self.end)
    }

    /// Number of connections that this part of an order begins with, and how many it may come to need: as many as requests can be
    /// in flight while the slowest of them is still in time (Little 1961), and half as many again. A request that waits for
    /// one of them is late anyway; where a class has no limit on its time, that one is its timeout.
    fn connections(&self, order: &Order) -> (u32, u32) {
        if self.plan.connections_fixed {
            return (self.plan.base.connections, self.plan.base.connections);
        }
        let fastest = order.segments.iter().map(|s| s.rate_per_s).fold(0.0, f64::max);
        // Of a protocol that carries several requests on a connection, as few as `load` would open.
        let streams = self.plan.depth.clamp(1, Scenario::STREAMS);
        let needed = |longest_ns: u64| {
            let at_a_time = (1.5 * fastest * longest_ns as f64 / 1e9).ceil();
            let at_a_time = at_a_time.clamp(CONNECTIONS_MIN, CONNECTIONS_MAX);
            let slice = self.plan.base.slice;
            let all = (at_a_time as u32).div_ceil(streams);
            let all = all.max(self.plan.shards.saturating_mul(slice.of));
            slice.share(all.into()) as u32
        };
        let first = needed(self.plan.longest_ns());
        if !self.plan.has_class_without_time() {
            return (first, first);
        }
        (first, needed(self.plan.base.timeouts.request_ns).max(first))
    }

    fn part_of(
        &self,
        Brief { order, offset_ns }: &Brief,
        counts: &[Arc<WindowCounts>],
    ) -> Result<ShardPlan, ModelError> {
        let mut plan = self.plan.base.clone();
        let window_ns = ns(order.window_s);
        let steps: Vec<Step> = order
            .segments
            .iter()
            .map(|segment| Step {
                from_per_s: segment.rate_per_s,
                to_per_s: segment.rate_per_s,
                duration_ns: windows_in(segment.duration_s, order.window_s) as u64 * window_ns,
            })
            .collect();
        plan.limits.duration_ns = steps.iter().map(|step| step.duration_ns).sum();
        plan.limits.requests = None;
        plan.seed = order.seed;
        let mut users_before = None;
        plan.model = match &self.plan.users {
            None => LoadModel::Profile { steps, arrivals: self.plan.arrivals },
            Some(users) => {
                let before = users.before(self.answer_ns);
                users_before = Some(before);
                users.model(&steps, self.plan.arrivals, order.seed, before)?
            }
        };
        let (first, most) = self.connections(order);
        plan.connections = most;
        plan.warm_connections = (first < most).then_some(first);
        plan.part = Part {
            phase: self.parts,
            offset_ns: *offset_ns,
            windows: counts.to_vec(),
            // Late anyway: by the end of an order they have waited for a connection longer than their limit.
            drop_backlog: true,
            end_early: order.abort.map(|_| Arc::new(AtomicBool::new(false))),
            users_before,
            ..Part::default()
        };
        Ok(plan)
    }

    /// Offers one rate for a while and keeps what was recorded apart, beside adding it to the whole.
    pub fn measure(&mut self, segment: Segment, seed: u64) -> Stretch {
        let window_s = 1.0f64.min(segment.duration_s);
        let order =
            Order { segments: vec![segment], window_s, seed, abort: None, allowed: Vec::new() };
        self.apart = Some((Interval::default(), Health::default()));
        let from_s = now_ns().saturating_sub(self.began_ns) as f64 / 1e9;
        let trial = self.run(&order);
        let whole_s = trial.windows.len() as f64 * window_s;
        let mut counts = Window::default();
        trial.windows.iter().for_each(|window| counts.add(window));
        let (totals, health) = self.apart.take().unwrap_or_default();
        Stretch {
            from_s,
            // A stretch that was ended early has windows that never began.
            seconds: if trial.interrupted { trial.elapsed_s.min(whole_s) } else { whole_s },
            counts,
            limits: self.plan.limits.iter().map(|limit| limit.limit_ns).collect(),
            totals,
            health,
            interrupted: trial.interrupted,
        }
    }

    fn carry_out(&mut self, order: &Order) -> Result<Trial, E> {
        let began_ns = now_ns();
        let offset_ns = began_ns.saturating_sub(self.began_ns);
        let own = Brief { order: order.clone(), offset_ns };
        let Some(brief) = self.crew.brief(own)? else { return Ok(Shift::ended().trial) };
        let order = &brief.order;
        let (window_ns, windows) = (ns(order.window_s), Lookout::windows_of(order));
        let timeout_ns = self.plan.base.timeouts.request_ns;
        let of_shard = |_| {
            let counts = WindowCounts::new(window_ns, windows, &self.plan.limits);
            Arc::new(counts.with_timeout(timeout_ns))
        };
        let counts: Vec<_> = (0..self.plan.shards).map(of_shard).collect();
        let plan = self.part_of(&brief, &counts).map_err(RunError::from)?;
        let sessions = (self.sessions)(order.seed);
        let limit_ns = self.plan.longest_ns();
        let lookout = Lookout { order, counts: &counts, limit_ns, began_ns };
        let Shift { end, mut trial } = self.crew.carry_out(&plan, sessions, &lookout)?;
        self.parts += 1;
        self.answer_ns = answer_ns(&trial.windows).min(limit_ns);
        if self.plan.users.is_some() {
            users::count_held_up(&mut trial.windows, order, limit_ns as f64 / 1e9);
        }
        end.into_iter().for_each(|end| self.keep(end));
        Ok(trial)
    }

    fn keep(&mut self, end: RunEnd) {
        if let Some((totals, health)) = &mut self.apart {
            totals.merge(&end.totals);
            health.absorb(&end.health);
        }
        match &mut self.end {
            None => self.end = Some(end),
            Some(all) => all.absorb(end),
        }
    }
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

fn windows_in(duration_s: f64, window_s: f64) -> usize {
    ((duration_s / window_s).round() as usize).max(1)
}

/// Mean response time of all requests, ns.
fn answer_ns(windows: &[Window]) -> u64 {
    let mut all = Window::default();
    windows.iter().for_each(|window| all.add(window));
    ns(all.response_sum_s / all.scheduled.max(1) as f64)
}

impl<P: Protocol, E: From<RunError>> Plant for EnginePlant<'_, P, E> {
    fn run(&mut self, order: &Order) -> Trial {
        self.carry_out(order).unwrap_or_else(|error| {
            self.error.get_or_insert(error);
            Shift::ended().trial
        })
    }

    fn limits(&self) -> usize {
        self.plan.limits.len()
    }
}

//! The search itself, whatever protocol its target speaks.

use super::{Task, users};
use anyhow::Result;
use plimsoll_core::seek::notes::Arriving;
use plimsoll_engine::plant::{EnginePlant, PlantPlan};
use plimsoll_engine::run::Driven;
use plimsoll_engine::windows::WindowLimit;
use plimsoll_job::keeping::{About, Finished, JobEnd, Keeping, Staff, carry_out};
use plimsoll_job::method::unless_dead;
use plimsoll_job::output::Output;
use plimsoll_job::prepare::only_whole;
use plimsoll_job::progress::SearchProgress;
use plimsoll_job::sought::Quest;
use plimsoll_job::together::has_agents;
use plimsoll_job::usage::usage;
use plimsoll_wire::Sessions;
use std::cell::RefCell;

/// Reason why one part of a search cannot run alone.
pub const PARTS: &str = "each rate follows from the replies to all parts; use --agents";

/// Sessions of one part of the search for every shard, from a seed.
type PartSessions<'a, P> = dyn FnMut(u64) -> Result<Vec<Box<dyn Sessions<P> + Send>>> + 'a;

/// The requests of a search and the limits that judge them.
pub struct Subject<'a, P: Driven> {
    /// Plan and class names of the requests, for the record.
    pub about: &'a About<'a>,
    /// The limits that requests are counted by.
    pub limits: Vec<WindowLimit>,
    /// Makes the sessions of a part.
    pub sessions: &'a mut PartSessions<'a, P>,
}

/// Searches, and keeps the record.
///
/// # Errors
/// When no load could be offered at all.
pub fn search<P: Driven>(
    task: &Task,
    subject: Subject<'_, P>,
    output: &Output,
    protocol: impl Fn() -> P + Sync,
) -> Result<Finished> {
    if !has_agents() {
        only_whole(task.scenario.slice, "a search", PARTS)?;
    }
    let progress = SearchProgress::new(&task.goal, output.voice());
    let about = subject.about;
    let finished = carry_out(&task.scenario, about, output, |keeping| {
        let end = offer(task, subject, &progress, keeping, protocol);
        progress.done();
        end
    });
    progress.done();
    finished
}

fn offer<P: Driven>(
    task: &Task,
    subject: Subject<'_, P>,
    progress: &SearchProgress,
    keeping: Keeping<'_>,
    protocol: impl Fn() -> P + Sync,
) -> Result<JobEnd> {
    let Subject { about, limits, sessions: make } = subject;
    let mut second = |interval: &_| progress.second(interval);
    let sessions_error = RefCell::new(None);
    let mut sessions = |seed: u64| match make(seed) {
        Ok(sessions) => sessions,
        Err(error) => {
            sessions_error.borrow_mut().get_or_insert(error);
            Vec::new()
        }
    };
    let users = users::of(&about.plan.model);
    let depth = protocol().depth();
    let plan = PlantPlan {
        base: about.plan.clone(),
        arrivals: task.arrivals,
        users: users.clone(),
        limits,
        connections_fixed: task.connections_fixed,
        shards: task.scenario.threads,
        depth,
    };
    let mut crew = Staff::new(keeping, protocol, &mut second);
    let mut plant = EnginePlant::new(plan, &mut sessions, &mut crew);
    let quest = Quest {
        goal: &task.goal,
        method: task.method,
        arrivals: task.arrivals,
        arriving: if users.is_some() { Arriving::Users } else { Arriving::Requests },
        watches: task.watches,
        places: task.connections_fixed.then_some(about.plan.connections.saturating_mul(depth)),
    };
    let mut sought = quest.carry_out(&mut plant, progress);
    let end = plant.finish()?;
    if let Some(error) = sessions_error.take() {
        return Err(error);
    }
    let end =
        end.ok_or_else(|| usage("--budget: no load was offered; give the search more time"))?;
    if let Some(users) = &users {
        users::tell(&mut sought, users.requests);
    }
    let verdict = Some(unless_dead(sought.verdict, &end));
    Ok(JobEnd { end, results: sought.results, verdict, warnings: sought.warnings })
}

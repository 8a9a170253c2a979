//! The highest rate of calls that holds a limit: the search of `plimsoll seek`, and the writes of all its parts checked.

use super::{Before, Counted, MakeSessions, by_agents, conclude, verdict, worn_out};
use crate::command::task::Task;
use crate::{VoterTally, Voting};
use anyhow::Result;
use plimsoll_core::seek::goal::Goal;
use plimsoll_core::seek::notes::Arriving;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_engine::plant::{EnginePlant, PlantPlan};
use plimsoll_engine::run::Driven;
use plimsoll_engine::shard::ShardPlan;
use plimsoll_engine::windows::WindowLimit;
use plimsoll_job::goal::{Wish, timeout};
use plimsoll_job::keeping::{JobEnd, Keeping, Staff};
use plimsoll_job::method::unless_dead;
use plimsoll_job::progress::{SearchProgress, Voice};
use plimsoll_job::sought::Quest;
use plimsoll_job::together::has_agents;
use plimsoll_job::usage::usage;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

/// The goal of the search, and the longest response time of each limit, ns.
///
/// # Errors
/// A limit that cannot be sought, or a budget that makes no sense.
pub fn goal(task: &Task) -> Result<(Goal, Vec<u64>)> {
    let search = &task.search;
    let wish = Wish {
        slo: &task.scenario.slo,
        budget: task.scenario.length(),
        width: &search.width,
        confidence: &search.confidence,
        seed: task.scenario.seed,
        start_per_s: search.start_per_s,
        most_per_s: search.most_per_s,
        method: search.method,
    };
    wish.goal()
}

/// The votes of all parts of a search: each part has a seed, and so telephones, of its own.
#[derive(Default)]
struct Parts {
    ended: VoterTally,
    /// The part that runs, or the last one, and what its sessions counted.
    current: Option<(Arc<Voting>, Receiver<VoterTally>)>,
    first_ns: Option<u64>,
}

impl Parts {
    /// Adds up the part that has ended.
    fn close(&mut self) {
        if let Some((voting, counted)) = self.current.take() {
            self.ended.merge(&VoterTally::of_shards(&counted));
            self.first_ns = self.first_ns.or(voting.first_call_ns());
        }
    }
}

/// Searches.
///
/// # Errors
/// When no load could be offered at all.
pub fn search<P: Driven, F: Fn() -> P + Sync>(
    task: &Task,
    before: &Before,
    base: &ShardPlan,
    voice: Voice,
    protocol: &F,
    make: &MakeSessions<P>,
    keeping: Keeping<'_>,
) -> Result<JobEnd> {
    let (goal, limits_ns) = goal(task)?;
    let mut base = base.clone();
    base.timeouts.request_ns = base.timeouts.request_ns.max(timeout(&goal).ns);
    let shards = task.scenario.threads;
    let plan = PlantPlan {
        base,
        arrivals: task.search.arrivals,
        users: None,
        // There is one class: a limit on it is a limit on all.
        limits: limits_ns.into_iter().map(WindowLimit::of_all).collect(),
        connections_fixed: true,
        shards,
        depth: protocol().depth(),
    };
    let parts = RefCell::new(Parts::default());
    let mut sessions = |seed: u64| {
        let mut parts = parts.borrow_mut();
        parts.close();
        let mut settings = task.settings.clone();
        settings.game.seed = seed;
        // These rules were taken before.
        let Ok(voting) = Voting::new(settings, shards).map(Arc::new) else { return Vec::new() };
        let (sender, counted) = channel();
        parts.current = Some((voting.clone(), counted));
        (0..shards).map(|shard| make(&voting, shard, shards, sender.clone())).collect()
    };
    let progress = SearchProgress::new(&goal, voice);
    let mut second = |interval: &_| progress.second(interval);
    let mut crew = Staff::new(keeping, protocol, &mut second);
    let mut plant = EnginePlant::new(plan, &mut sessions, &mut crew);
    let quest = Quest {
        goal: &goal,
        method: task.search.method,
        arrivals: task.search.arrivals,
        arriving: Arriving::Requests,
        watches: task.search.watches,
        places: None,
    };
    let sought = quest.carry_out(&mut plant, &progress);
    progress.done();
    let end = plant
        .finish()?
        .ok_or_else(|| usage("--budget is too short for a single call; use a longer one"))?;
    let mut parts = parts.into_inner();
    parts.close();
    let (tally, first_ns) = (parts.ended, parts.first_ns);
    // A search has no laps: each of its parts is a load of its own.
    let counted = Counted { tally, tuned: None, first_ns, trouble: None, laps: Vec::new() };
    let (result, trouble) = match has_agents() {
        true => by_agents::conclude(task, before, &end, counted)?,
        false => conclude(task, before, &end, counted),
    };
    let of_search = unless_dead(sought.verdict, &end);
    let of_writes = verdict(task, &result, trouble, &end);
    let judged = match of_writes {
        Some(own) if of_search.kind == VerdictKind::Valid || own.kind == VerdictKind::Void => own,
        _ => of_search,
    };
    let mut all = sought.results;
    all.put(result.clone());
    Ok(JobEnd {
        end,
        results: all,
        verdict: Some(judged),
        warnings: [before.prepared.clone(), worn_out(&result), sought.warnings].concat(),
    })
}

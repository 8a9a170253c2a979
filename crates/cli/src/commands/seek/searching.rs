//! The search itself, whatever protocol its target speaks.

use super::Task;
use crate::commands::method::{results, search_as, unless_dead, verdict_of};
use crate::execute::Output;
use crate::keeping::{About, Finished, JobEnd, Keeping, carry_out};
use crate::search_progress::SearchProgress;
use crate::usage::usage;
use anyhow::Result;
use plimsoll_core::schedule::{Arrivals, LoadModel};
use plimsoll_core::seek::finding::Measured;
use plimsoll_core::seek::search::seek;
use plimsoll_core::seek::watch::watch;
use plimsoll_engine::plant::{EnginePlant, PlantPlan};
use plimsoll_engine::windows::WindowLimit;
use plimsoll_wire::{Protocol, Sessions};
use std::cell::RefCell;

/// Share of the connections that may be busy at the line before it is put in doubt.
const CONNECTIONS_BUSY: f64 = 0.8;

/// Sessions of one part of the search for every shard, from a seed.
type PartSessions<'a, P> = dyn FnMut(u64) -> Result<Vec<Box<dyn Sessions<P> + Send>>> + 'a;

/// The requests of a search and the limits that judge them.
pub struct Subject<'a, P: Protocol> {
    /// The scenario in the record.
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
pub fn search<P: Protocol>(
    task: &Task,
    subject: Subject<'_, P>,
    output: &Output,
    protocol: impl Fn() -> P + Sync,
) -> Result<Finished> {
    let progress = SearchProgress::new(&task.goal, output.quiet);
    let about = subject.about;
    let finished = carry_out(&task.scenario, about, output, |keeping| {
        let end = offer(task, subject, &progress, keeping, protocol);
        progress.done();
        end
    });
    progress.done();
    finished
}

fn offer<P: Protocol>(
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
    let arrivals = match task.scenario.load {
        LoadModel::Open { arrivals, .. } => arrivals,
        _ => Arrivals::Poisson,
    };
    let plan = PlantPlan {
        base: about.plan.clone(),
        arrivals,
        limits,
        connections_fixed: task.connections_fixed,
        shards: task.scenario.threads,
    };
    let mut plant =
        EnginePlant::new(plan, protocol, &mut sessions, keeping.sink, &mut second, keeping.stop);
    let (results, verdict, warnings) = match task.method.rival() {
        None => {
            let search = if task.watches { watch } else { seek };
            let finding = search(&mut plant, &task.goal, &mut |event| progress.event(event));
            let fixed = task.connections_fixed.then_some(about.plan.connections);
            let own = fixed
                .zip(finding.certified.as_ref())
                .and_then(|(fixed, at_line)| held_by_connections(at_line, fixed));
            let own = own.into_iter().chain(repeated(finding.repeated)).collect();
            (results(&finding, arrivals), verdict_of(&finding), own)
        }
        Some(rival) => {
            let (results, verdict, _) = search_as(rival, &mut plant, &task.goal);
            (results, verdict, Vec::new())
        }
    };
    let end = plant.finish()?;
    if let Some(error) = sessions_error.take() {
        return Err(error);
    }
    let end =
        end.ok_or_else(|| usage("--budget: no load was offered; give the search more time"))?;
    let verdict = Some(unless_dead(verdict, &end));
    Ok(JobEnd { end, results, verdict, warnings })
}

/// Says how much of the search was measured anew.
fn repeated(parts: u32) -> Option<String> {
    (parts > 0).then(|| {
        format!(
            "the generator was late in {parts} part{} of the search, which {} measured once more: this machine \
             stands still now and then, or has too little to do this",
            if parts == 1 { "" } else { "s" },
            if parts == 1 { "was" } else { "were" },
        )
    })
}

/// Says so when a fixed number of connections was nearly all in use at the line, which then may be theirs. By
/// Little's law the rate times the mean response time is the number of requests in flight or waiting.
fn held_by_connections(at_line: &Measured, fixed: u32) -> Option<String> {
    let busy = at_line.rate_per_s * at_line.response_mean_s;
    (busy >= CONNECTIONS_BUSY * f64::from(fixed)).then(|| {
        format!(
            "{busy:.1} requests were in flight or waiting at the line, with {fixed} connections: the line may be \
             theirs; use more --connections, or for HTTP leave them out"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::seek::plant::Window;

    #[test]
    fn a_line_that_all_connections_are_busy_at_may_be_theirs() {
        let counts = Window { scheduled: 1000, response_sum_s: 50.0, ..Window::default() };
        let certified = Measured::new(100.0, 10.0, 1, &counts);
        assert!(
            held_by_connections(&certified, 6).is_some_and(|text| text.contains("5.0 requests"))
        );
        assert!(held_by_connections(&certified, 7).is_none());
    }
}

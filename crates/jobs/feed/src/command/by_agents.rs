//! A feed that agents carry out beside the load of others.

use super::merging;
use super::task::Task;
use anyhow::Result;
use plimsoll_core::interval::Interval;
use plimsoll_engine::run::RunEnd;
use plimsoll_job::keeping::{Keeping, Nowhere, Started};
use plimsoll_job::together::gather;
use plimsoll_record::feed::FeedResult;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The feed of all its agents.
pub struct Fed {
    /// Its result.
    pub result: FeedResult,
    /// Results that are missing, in a line.
    pub lacks: Option<String>,
    /// Warnings, each with the name of an agent.
    pub warnings: Vec<String>,
}

/// Lets the agents of this place feed. `second` sees each second of the feed, `over` its end, before the results of the agents come.
///
/// # Errors
/// When the feed did not begin, or a result cannot be read.
pub fn feed_by_agents(
    task: &Task,
    stop: Arc<AtomicBool>,
    second: &mut (dyn FnMut(&Interval) + Send),
    over: &dyn Fn(&RunEnd),
) -> Result<Fed> {
    let mut nowhere = Nowhere;
    let mut keeping = Keeping { sink: &mut nowhere, stop, started: Started::default() };
    let (http, (sessions, _counted)) = (task.http, task.sessions());
    let end = keeping.run(&task.plan, || http, sessions, second)?;
    over(&end);
    let gathered = gather(|| Err(anyhow::anyhow!("a coordinator feeds nothing itself")))?;
    let (result, lacks, warnings) =
        merging::together(gathered, task.feed.input.names(), end.cpu_s)?;
    Ok(Fed { result, lacks, warnings })
}

//! A matrix whose load agents send: the coordinator leads them from cell to cell, and puts together what they counted.
//!
//! All processes carry out the same runs of a cell, each with its own part of the users. Only the coordinator starts engines,
//! ingests texts, probes and keeps cells.

use crate::sessions::Tally;
use anyhow::{Result, bail};
use plimsoll_core::clock::now_ns;
use plimsoll_engine::run::RunEnd;
use plimsoll_engine::shard::ShardPlan;
use plimsoll_job::together::{Gathered, gather, has_agents, share};
use plimsoll_record::search::CellKey;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The coordinator's message to all agents.
#[derive(Serialize, Deserialize)]
pub enum Lead {
    /// The next cell.
    Cell(Box<Order>),
    /// Outcome of a run, which all processes take the next step from.
    Outcome {
        /// True if the cell is given up.
        is_given_up: bool,
        /// Time from the beginning of the first cell to the next run, ns.
        offset_ns: u64,
    },
    /// There are no more cells.
    Over,
}

/// A cell, as agents need it beside the settings of the matrix.
#[derive(Serialize, Deserialize)]
pub struct Order {
    /// Key of the cell.
    pub key: CellKey,
    /// Address of an engine that the coordinator has started; others are known.
    pub started_at: Option<String>,
    /// The index.
    pub index: String,
    /// For each query of the list, why it is not asked, if so.
    pub refused: Vec<Option<String>>,
    /// Time from the beginning of the first cell, ns.
    pub offset_ns: u64,
}

/// Leads the agents to a cell, or to the end. Without agents there is no one to lead.
///
/// # Errors
/// When the message is too long.
pub fn lead(message: Lead) -> Result<()> {
    if has_agents() {
        share(|| Ok(message))?;
    }
    Ok(())
}

/// Place of a run among all runs of a matrix by agents.
#[derive(Debug, Default)]
pub struct Turn {
    /// Number of runs before it.
    runs: u32,
    /// Time from the beginning of the first cell, ns.
    pub offset_ns: u64,
    began_ns: Option<u64>,
}

impl Turn {
    /// The next cell begins: returns the time since the first one did, ns.
    pub fn begin(&mut self) -> u64 {
        let now_ns = now_ns();
        self.offset_ns = now_ns.saturating_sub(*self.began_ns.get_or_insert(now_ns));
        self.offset_ns
    }

    /// The next run has its place.
    pub fn take(&mut self, plan: &mut ShardPlan) {
        if has_agents() {
            (plan.part.phase, plan.part.offset_ns) = (self.runs, self.offset_ns);
            self.runs += 1;
        }
    }
}

/// Counts of one part of a run.
#[derive(Serialize, Deserialize)]
struct Part {
    /// Counts of its users, with times since the start.
    tally: Tally,
    /// True if nothing came back any more.
    is_given_up: bool,
    /// True if its generator was the limit.
    is_limited: bool,
}

/// Counts of all parts of a run.
#[derive(Default)]
pub struct Counted {
    /// Counts of all users.
    pub tally: Tally,
    /// True if nothing came back any more.
    pub is_given_up: bool,
    /// Names of the agents whose generator was the limit; none if there are no agents.
    pub limited: Option<Vec<String>>,
    /// The results that are missing, in a line.
    pub lacks: Option<String>,
}

/// Puts the counts of all parts of a run together. `own` are those of this process, if it has users.
///
/// # Errors
/// A result that cannot be sent or read.
pub fn put_together(
    (tally, is_given_up): (Tally, bool),
    end: &RunEnd,
    is_limited: impl FnOnce() -> bool,
) -> Result<Counted> {
    if !has_agents() {
        return Ok(Counted { tally, is_given_up, ..Counted::default() });
    }
    let start_ns = end.start_ns;
    let own = || {
        let tally = tally.since(start_ns);
        Ok(Part { tally, is_given_up, is_limited: is_limited() })
    };
    Ok(all(gather(own)?))
}

fn all(gathered: Gathered<Part>) -> Counted {
    let mut counted =
        Counted { lacks: gathered.lacks(), limited: Some(Vec::new()), ..Counted::default() };
    for (at, part) in gathered.parts.into_iter().enumerate() {
        counted.is_given_up |= part.value.is_given_up;
        if let (true, Some(limited)) = (part.value.is_limited, &mut counted.limited) {
            limited.push(part.agent);
        }
        match at {
            0 => counted.tally = part.value.tally,
            _ => counted.tally.beside(part.value.tally),
        }
    }
    counted
}

/// The coordinator has no more runs for this agent.
#[derive(Debug, Error)]
#[error("the coordinator has ended the matrix")]
pub struct Over;

/// Agrees on the outcome of a run, so that all processes take the next step from it: true if the cell is given up.
///
/// # Errors
/// [`Over`], and the end of the agents' run.
pub fn agree(turn: &mut Turn, is_given_up: bool) -> Result<bool> {
    if !has_agents() {
        return Ok(is_given_up);
    }
    match share(|| Ok(Lead::Outcome { is_given_up, offset_ns: turn.begin() }))? {
        Lead::Outcome { is_given_up, offset_ns } => {
            turn.offset_ns = offset_ns;
            Ok(is_given_up)
        }
        Lead::Over => Err(Over.into()),
        Lead::Cell(_) => bail!(
            "the runs of this agent are not those of its coordinator; this is a defect in plimsoll, please report it"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::QueryTally;
    use plimsoll_job::together;

    fn part(
        agent: &str,
        start_ns: u64,
        last_ns: u64,
        hits: u64,
        is_limited: bool,
    ) -> together::Part<Part> {
        let query = QueryTally { ok: 3, failed: 1, hits_min: Some(hits), hits_max: Some(hits) };
        let tally =
            Tally { start_ns, last_ns, window_ok: 3, queries: vec![query], ..Tally::default() };
        // Clocks of different machines have nothing in common but the start.
        let tally = tally.since(start_ns.saturating_sub(5));
        let value = Part { tally, is_given_up: is_limited, is_limited };
        together::Part { index: 0, agent: agent.to_owned(), value }
    }

    #[test]
    fn the_counts_of_agents_are_added_and_their_times_are_those_since_the_start() {
        let parts = vec![
            part("a", 1_000, 9_000, 7, false),
            part("b", 500_000, 504_000, 5, true),
            part("c", 70, 80, 9, false),
        ];
        let counted = all(Gathered { parts, missing: Vec::new() });
        let Counted { tally, is_given_up, limited, lacks } = counted;
        assert_eq!((tally.start_ns, tally.last_ns, tally.first_over_ns), (6, 8_006, 0));
        assert_eq!((tally.window_ok, tally.queries[0].ok, tally.queries[0].failed), (9, 9, 3));
        assert_eq!((tally.queries[0].hits_min, tally.queries[0].hits_max), (Some(5), Some(9)));
        assert_eq!((is_given_up, limited, lacks), (true, Some(vec!["b".to_owned()]), None));
        let missing = vec![(1, "b".to_owned())];
        let counted = all(Gathered { parts: vec![part("a", 1, 2, 0, false)], missing });
        assert_eq!(counted.lacks.unwrap(), "the results of 1 of 2 agents are missing: b");
    }
}

//! An agent's part of a matrix: its share of the users of each cell to which the coordinator leads it.

use super::crew::{Lead, Order, Over, Turn};
use super::filling;
use super::matrix::targets;
use super::measuring::{Asked, Kept, Way, repeats};
use super::server::{Server, closed};
use super::wrong;
use crate::query::Query;
use crate::spec::{MatrixSpec, Place};
use anyhow::{Context as _, Result};
use plimsoll_core::interval::Interval;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::Slice;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_engine::health::raise_descriptor_limit;
use plimsoll_engine::run::RunEnd;
use plimsoll_job::keeping::{About, Finished, JobEnd, Keeping, carry_out};
use plimsoll_job::output::Output;
use plimsoll_job::prepare::plan_of;
use plimsoll_job::signals;
use plimsoll_job::together::{hear, wait_until_prepared};
use plimsoll_job::usage::unreachable;
use plimsoll_record::{JobResults, Sink};
use plimsoll_workloads::http::Troubles;
use plimsoll_workloads::rows::Rows;
use std::sync::Arc;

/// The part of an agent.
struct Part<'a> {
    spec: &'a MatrixSpec,
    list: Vec<Query>,
    rows: Option<Arc<Rows>>,
    slice: Slice,
    turn: Turn,
    /// Everything that was measured here.
    end: Option<RunEnd>,
}

/// Carries out the part of an agent, and keeps a record of it.
///
/// # Errors
/// A target that this agent cannot reach or does not accept, and the end of the run before the first cell.
pub fn run(spec: &MatrixSpec, slice: Slice, output: &Output) -> Result<Finished> {
    raise_descriptor_limit();
    let list = spec.list().map_err(wrong)?;
    let rows = filling::rows(spec, &list)?;
    let targets = targets(spec);
    if let Some(unknown) = targets.iter().find(|target| target.addresses.is_empty()) {
        let host = &unknown.host;
        return Err(unreachable(format!("host '{host}' is unknown on the machine of this agent")));
    }
    let scenario = scenario(spec, slice);
    let plan = plan_of(&scenario, targets, None, list.len());
    let about = About {
        plan: &plan,
        class_names: list.iter().map(|query| query.name.clone()).collect(),
        distinct_requests: None,
        troubles: Troubles::default(),
    };
    wait_until_prepared()?;
    let part = Part { spec, list, rows, slice, turn: Turn::default(), end: None };
    carry_out(&scenario, &about, output, |keeping| part.walk(keeping))
}

/// The load of the largest cell, for the record of this part.
fn scenario(spec: &MatrixSpec, slice: Slice) -> Scenario {
    let address = |place: &Place| match place {
        Place::Address(url) => Some(url.clone()),
        Place::Serve(_) => None,
    };
    Scenario {
        job: "search".to_owned(),
        targets: spec.engines.iter().filter_map(|engine| address(&engine.place)).collect(),
        load: closed(spec.users.iter().copied().max().unwrap_or(1)),
        warmup: spec.warmup,
        duration: Some(spec.duration),
        timeout: spec.timeout,
        seed: spec.seed,
        slice,
        ..Scenario::default()
    }
}

impl Part<'_> {
    /// Follows the coordinator from cell to cell.
    fn walk(mut self, keeping: Keeping<'_>) -> Result<JobEnd> {
        let Keeping { sink, .. } = keeping;
        loop {
            let order = match hear() {
                Ok(Lead::Cell(order)) => order,
                Ok(Lead::Over | Lead::Outcome { .. }) => break,
                // What was measured before the end is kept.
                Err(_) if self.end.is_some() => break,
                Err(error) => return Err(error),
            };
            self.turn.offset_ns = order.offset_ns;
            match self.cell(&order, sink) {
                Ok(()) => {}
                Err(error) if self.end.is_some() && is_end(&error) => break,
                Err(error) => return Err(error),
            }
        }
        let end = self.end.unwrap_or_else(|| RunEnd {
            totals: Interval::new(self.list.len()),
            ..RunEnd::default()
        });
        // Whether its generator was the limit is reported cell by cell.
        let verdict = match end.interrupted {
            false => Verdict::default(),
            true => {
                let why = "stopped in the middle of a cell".to_owned();
                Verdict::new(VerdictKind::Partial, vec![why])
            }
        };
        let results = JobResults::default();
        Ok(JobEnd { end, results, verdict: Some(verdict), warnings: Vec::new() })
    }

    fn cell(&mut self, order: &Order, sink: &mut (dyn Sink + Send)) -> Result<()> {
        let engine = self.spec.engines.iter().find(|engine| engine.name == order.key.engine);
        let engine = engine.context("the coordinator named an engine that is not in the matrix")?;
        let url = match (&order.started_at, &engine.place) {
            (Some(url), Place::Serve(_)) => url,
            (None, Place::Address(url)) => url,
            _ => anyhow::bail!("the coordinator has another engine of this name"),
        };
        let server = Server::new(url, engine.dialect, &self.spec.headers, self.spec.timeout)?;
        let asked = Asked {
            spec: self.spec,
            list: &self.list,
            refused: &order.refused,
            rows: self.rows.as_ref(),
            index: &order.index,
            key: &order.key,
            slice: self.slice,
        };
        let mut way = Way {
            server: &server,
            cpu_s: &|| None,
            second: &|_| {},
            repeat: &|_, _| {},
            turn: &mut self.turn,
            kept: Some(Kept { sink, end: &mut self.end }),
        };
        repeats(&mut way, &asked).map(drop)
    }
}

/// Returns true if the coordinator, or a signal, has ended the matrix.
fn is_end(error: &anyhow::Error) -> bool {
    error.is::<Over>() || signals::is_stopped()
}

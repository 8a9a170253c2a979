//! Cells whose load agents send.

use super::{Asked, CellAbout, CellPart, Engine, Loaded, Matrix, Way, cell, repeats, totals};
use crate::cell::Measured;
use crate::command::crew::{Lead, Order, lead};
use crate::spec::{MatrixSpec, Place};
use anyhow::Result;
use plimsoll_core::clock::now_ns;
use plimsoll_core::interval::{Interval, IntervalLine};
use plimsoll_core::schedule::Slice;
use plimsoll_job::signals::Stopped;
use plimsoll_job::together::{agents_elsewhere, has_agents, has_processes, parts_in_all};
use plimsoll_job::usage::usage;

/// Rejects a matrix that agents cannot carry out, before anything is started.
///
/// # Errors
/// The first setting that needs the whole of a cell in one process, or that is too small to be shared out.
pub(super) fn check(spec: &MatrixSpec) -> Result<()> {
    if !has_agents() {
        return Ok(());
    }
    if spec.passes.is_some() && spec.profile.is_none() {
        return Err(usage(
            "--passes cannot be shared out to agents: the window ends when the first of all users has finished; use --duration, \
             or --users-profile with --passes",
        ));
    }
    let parts = parts_in_all(Slice::WHOLE);
    for &users in &spec.users {
        let profile = spec.profile_of(users).map_err(|error| usage(error.to_string()))?;
        let most = profile.map_or(u64::from(users), |profile| profile.most_at_once());
        if most < u64::from(parts) {
            return Err(usage(format!(
                "--users {users} cannot be shared out to {parts} parts; use fewer parts, or numbers from {parts} on"
            )));
        }
    }
    let started = spec.engines.iter().find(|engine| matches!(engine.place, Place::Serve(_)));
    let elsewhere = agents_elsewhere();
    if let (Some(engine), false, false) = (started, has_processes(), elsewhere.is_empty()) {
        return Err(usage(format!(
            "--engine {}: plimsoll starts this engine on this machine, where agent {} cannot reach it; start it by itself, and \
             name it as NAME=http://HOST:PORT",
            engine.name,
            elsewhere.join(", ")
        )));
    }
    Ok(())
}

impl Matrix<'_> {
    /// All repeats of a cell, by this process or by agents.
    pub(super) fn measured(
        &mut self,
        engine: &Engine,
        place: &Loaded<'_>,
        about: &CellAbout,
    ) -> Result<Vec<Measured>> {
        let asked = Asked {
            spec: self.spec,
            list: &self.list,
            refused: &about.refused,
            rows: self.rows.as_ref(),
            index: &place.index,
            key: &about.key,
            slice: Slice::WHOLE,
        };
        lead(Lead::Cell(Box::new(Order {
            key: about.key.clone(),
            started_at: engine.is_ours().then(|| engine.server.address().to_owned()),
            index: place.index.clone(),
            refused: about.refused.clone(),
            offset_ns: self.turn.begin(),
        })))?;
        let (shown, watching, start_ns) = (&self.shown, &self.watching, self.start_ns);
        let mut way = Way {
            server: &engine.server,
            cpu_s: &|| engine.cpu_s(),
            second: &|second: &Interval| {
                watching.take_elsewhere(now_ns().saturating_sub(start_ns));
                shown.second(second);
            },
            repeat: &|done, of| shown.repeat(done, of),
            turn: &mut self.turn,
            kept: None,
        };
        repeats(&mut way, &asked)
    }

    /// Finished cells, and the one in which an agent was lost.
    pub(super) fn parts(&self) -> impl Iterator<Item = &CellPart> {
        self.state.cells.iter().chain(&self.cut)
    }

    /// Ends the walk after a cell in which an agent was lost. Its measurements are in the record, and the cell is measured again
    /// when the matrix is resumed.
    pub(super) fn cut_off(&mut self, about: &CellAbout, measured: &[Measured]) -> Result<()> {
        let cell = cell(about, measured);
        self.shown.ends(&cell, true);
        let totals = Some(IntervalLine::from(&totals(measured, self.list.len())));
        self.cut = Some(CellPart { cell, totals });
        super::record::so_far(self)?;
        Err(Stopped { during: "in a cell that is not whole".to_owned() }.into())
    }
}

//! Results that are written at once, so that a stopped matrix can be resumed.

use super::super::state::CellPart;
use super::record;
use super::{Matrix, seconds_since};
use anyhow::Result;
use plimsoll_core::interval::IntervalLine;
use plimsoll_record::search::{Cell, TimeSpent};

impl Matrix<'_> {
    /// Keeps what is known of an engine, for sittings that do not meet it any more.
    pub(super) fn keep_engine(&self, index: usize) -> Result<()> {
        self.state.put(&format!("engine-{index:02}.json"), &self.engines[index])
    }

    /// Keeps a finished cell, in memory and in the record's folder.
    pub(super) fn keep(
        &mut self,
        cell: Cell,
        totals: Option<IntervalLine>,
        measured: bool,
    ) -> Result<()> {
        self.shown.ends(&cell, measured);
        self.store(cell, totals)
    }

    pub(super) fn store(&mut self, cell: Cell, totals: Option<IntervalLine>) -> Result<()> {
        let number = self.state.cells.len();
        let part = CellPart { cell, totals };
        self.state.put(&format!("cell-{number:05}.json"), &part)?;
        self.state.cells.push(part);
        self.state.put("time.json", &self.spent())?;
        record::so_far(self)
    }

    /// Returns the time spent in all sessions.
    #[must_use]
    pub fn spent(&self) -> TimeSpent {
        let (before, now) = (&self.state.before, &self.time);
        TimeSpent {
            total_s: before.total_s + seconds_since(self.start_ns),
            cells_s: before.cells_s + now.cells_s,
            warming_s: before.warming_s + now.warming_s,
            loading_s: before.loading_s + now.loading_s,
            waiting_s: before.waiting_s + now.waiting_s,
            starting_s: before.starting_s + now.starting_s,
            asking_s: before.asking_s + now.asking_s,
            cells: before.cells + now.cells,
        }
    }
}

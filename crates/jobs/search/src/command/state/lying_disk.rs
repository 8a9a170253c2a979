//! The state of a matrix on a disk that loses what was not synced, and fails.

use super::tests::{cell, spec};
use super::{CellPart, State, TimeSpent};
use plimsoll_disk::Disk;
use plimsoll_disk::simulated::{Forgets, Simulated};
use plimsoll_disk::sweep::{self, Start, Store};
use plimsoll_report::folder::RunFolder;
use plimsoll_report::naming::Naming;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const CELLS: u32 = 3;

/// A matrix that finishes three cells.
struct Matrix;

/// The parts that were kept, by the word of the state.
#[derive(Default)]
struct Acknowledged {
    /// The record's folder, once the matrix was begun.
    folder: Option<PathBuf>,
    cells: u32,
}

fn begun(disk: &Simulated) -> Option<State> {
    let own: Arc<dyn Disk> = Arc::new(disk.clone());
    let (runs, started_us) = (Path::new("/home/runs"), 1_795_294_102_123_456);
    let folder = RunFolder::create_on(own, runs, "search", Naming::default(), started_us).ok()?;
    State::begin(Some(folder), &spec("[1, 5]")).ok()
}

impl Store for Matrix {
    type Acknowledged = Acknowledged;

    fn name(&self) -> &'static str {
        "state of `search`"
    }

    fn work(&self, disk: &Simulated) -> Acknowledged {
        let mut done = Acknowledged::default();
        let Some(state) = begun(disk) else { return done };
        done.folder = state.folder.as_ref().map(|folder| folder.path().to_owned());
        for number in 1..=CELLS {
            // A matrix ends with the first part that cannot be kept.
            if state.put(&format!("cell-{number:05}.json"), &cell(number)).is_err() {
                break;
            }
            done.cells = number;
            let spent = TimeSpent { cells: u64::from(number), ..TimeSpent::default() };
            if state.put("time.json", &spent).is_err() {
                break;
            }
        }
        done
    }

    fn start(&self, disk: &Simulated, done: &Acknowledged) -> Start {
        let Some(folder) = &done.folder else { return Start::Whole };
        let copy = tempfile::tempdir().unwrap();
        disk.copy_to(copy.path()).unwrap();
        let folder = copy.path().join(folder.strip_prefix("/").unwrap());
        let state = match State::resume(&folder, &spec("[1, 5]")) {
            Ok(state) => state,
            Err(error) => return Start::Said(format!("{error:#}")),
        };
        let found = state.cells.len() as u32;
        if found < done.cells {
            return Start::Wrong(format!("{found} of {} cells are there", done.cells));
        }
        let as_text = |part: &CellPart| serde_json::to_string(part).unwrap();
        let is_whole = |(part, number)| as_text(part) == as_text(&cell(number));
        match state.cells.iter().zip(1..).all(is_whole) {
            true => Start::Whole,
            false => Start::Wrong("a cell is another one".to_owned()),
        }
    }
}

#[test]
fn finished_cells_are_there_whatever_the_disk_does() {
    sweep::must_pass(&Matrix, 1);
}

#[test]
fn parts_that_are_not_synced_are_found() {
    for forgets in [Forgets::Files, Forgets::Folders] {
        let finding = sweep::first_finding(&Matrix, forgets);
        assert!(finding.is_some(), "{forgets:?}: the sweep does not see it");
    }
}

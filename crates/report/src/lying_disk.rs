//! The record of a run on a disk that loses what was not synced, and fails.

use crate::assemble::RecordHeader;
use crate::folder::RunFolder;
use crate::load::load;
use crate::naming::Naming;
use crate::samples;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_disk::Disk;
use plimsoll_disk::simulated::{Forgets, Simulated};
use plimsoll_disk::sweep::{self, Start, Store};
use plimsoll_record::{RunRecord, Sink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const START_US: u64 = 1_795_294_102_000_000;

/// A run with three seconds.
struct Run;

/// The steps of the run that returned well.
#[derive(Default)]
struct Acknowledged {
    /// The folder, once it was made.
    folder: Option<PathBuf>,
    /// The name of the class that the last early record has.
    begun: bool,
    /// The record, once it was finished.
    finished: bool,
}

fn finished(run_id: &str) -> RunRecord {
    RunRecord { run_id: run_id.to_owned(), ..samples::good() }
}

impl Store for Run {
    type Acknowledged = Acknowledged;

    fn name(&self) -> &'static str {
        "run record"
    }

    fn work(&self, disk: &Simulated) -> Acknowledged {
        let mut done = Acknowledged::default();
        let own: Arc<dyn Disk> = Arc::new(disk.clone());
        let runs = Path::new("/home/runs");
        let folder = RunFolder::create_on(own, runs, "load", Naming::default(), START_US);
        let Ok(folder) = folder else { return done };
        done.folder = Some(folder.path().to_owned());
        let header = RecordHeader { run_id: folder.run_id().to_owned(), ..samples::header() };
        // A run goes on if its record cannot be written now.
        done.begun = folder.begin(&header).is_ok();
        if let Ok(mut journal) = folder.journal(&header) {
            for second in samples::seconds().into_iter().take(2) {
                let _ = journal.interval(&second);
            }
        }
        done.finished = folder.finish(&finished(folder.run_id())).is_ok();
        done
    }

    fn start(&self, disk: &Simulated, done: &Acknowledged) -> Start {
        let Some(folder) = &done.folder else { return Start::Whole };
        let copy = tempfile::tempdir().unwrap();
        disk.copy_to(copy.path()).unwrap();
        let loaded = match load(&copy.path().join(folder.strip_prefix("/").unwrap())) {
            Ok(loaded) => loaded,
            Err(error) => return Start::Said(error.to_string()),
        };
        let record = loaded.record;
        if !loaded.cut {
            let expected = finished(&record.run_id);
            return if record == expected { Start::Whole } else { wrong("another record") };
        }
        if done.finished {
            return wrong("the finished record is gone");
        }
        if done.begun && record.classes.len() != samples::header().class_names.len() {
            return wrong("the early record is not the last one");
        }
        if record.verdict.kind != VerdictKind::Partial || record.ledger.balance().is_err() {
            return wrong("the record of a cut run does not say so");
        }
        let most = samples::good().ledger.sent;
        if record.ledger.sent > most { wrong("more requests than were sent") } else { Start::Whole }
    }
}

fn wrong(what: &str) -> Start {
    Start::Wrong(what.to_owned())
}

#[test]
fn a_record_is_whole_whatever_the_disk_does() {
    sweep::must_pass(&Run, 2);
}

#[test]
fn a_record_that_is_not_synced_is_found() {
    for forgets in [Forgets::Files, Forgets::Folders] {
        let finding = sweep::first_finding(&Run, forgets);
        assert!(finding.is_some(), "{forgets:?}: the sweep does not see it");
    }
}

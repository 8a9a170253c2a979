//! The parts of a page that the record itself does not have: its seconds, and samples of its failures.

use super::resources::Resources;
use crate::error::RecordError;
use crate::journal::{kept_failure, read_failures};
use crate::resources;
use crate::run_json::FAILURES;
use crate::series::Series;
use plimsoll_core::interval::Interval;
use plimsoll_record::{FailureSample, Sink};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Most samples of failures of one kind.
const SAMPLES_MAX: usize = 6;
/// Samples of one kind with a class and a reason that another one has.
const ALIKE_MAX: usize = 2;

/// Seconds and failures of a run: read from its folder, or taken while it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// The run over time.
    pub series: Series,
    /// Some failures of each kind, the first ones, with secrets left out.
    pub failures: Vec<FailureSample>,
    /// Resources of target, generator and machine over time.
    pub resources: Resources,
    /// Resources of other machines over time, which agents watched, by the names of their files.
    pub watchers: BTreeMap<String, Resources>,
}

impl Course {
    /// Reads the files in the folder of a record; one that does not exist is empty.
    ///
    /// # Errors
    /// When a file cannot be read. Damaged lines are left out.
    pub fn of_folder(folder: &Path) -> Result<Self, RecordError> {
        let mut own = Self { series: Series::of_folder(folder)?, ..Self::default() };
        read_failures(&folder.join(FAILURES), |sample| own.take(sample))?;
        resources::read(folder, |line| own.resources.push(line))?;
        for name in resources::files_of_watchers(folder) {
            let mut read = Resources::default();
            resources::read_file(&folder.join(&name), |line| read.push(line))?;
            own.watchers.insert(name, read);
        }
        Ok(own)
    }

    /// Keeps a failure if few of its kind are there, or few like it.
    fn take(&mut self, sample: FailureSample) {
        let of_kind = || self.failures.iter().filter(|one| one.kind == sample.kind);
        let alike =
            of_kind().filter(|one| one.class == sample.class && one.reason == sample.reason);
        if of_kind().count() < SAMPLES_MAX && alike.count() < ALIKE_MAX {
            self.failures.push(sample);
        }
    }
}

impl Sink for Course {
    fn counts_from(&mut self, _start_ns: u64) {}

    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        self.series.push(interval);
        Ok(())
    }

    fn failure(&mut self, sample: &FailureSample) -> io::Result<()> {
        self.take(kept_failure(sample));
        Ok(())
    }
}

//! Facts about a run that are known before its first second.

use std::collections::BTreeMap;

/// A run as its outlets name it.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Id of the record; of a run without a record, one that is made up.
    pub run_id: String,
    /// Version of plimsoll.
    pub version: String,
    /// Job or command.
    pub job: String,
    /// Name that the user gave the run; may be empty.
    pub name: String,
    /// Labels that the user gave the run.
    pub labels: BTreeMap<String, String>,
    /// Names of the classes, in the order of the parts of a second.
    pub classes: Vec<String>,
    /// Names of the measured phases, by index.
    pub phases: Vec<String>,
    /// Time of the start, us since the Unix epoch.
    pub started_us: u64,
}

impl Facts {
    /// The name of a measured phase.
    #[must_use]
    pub fn phase(&self, index: u32) -> String {
        self.phases.get(index as usize).cloned().unwrap_or_else(|| format!("phase {index}"))
    }

    /// The name of a class.
    #[must_use]
    pub fn class(&self, index: usize) -> String {
        self.classes.get(index).cloned().unwrap_or_else(|| format!("class {index}"))
    }
}

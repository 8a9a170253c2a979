//! State of a visit, kept so that it can resume after an interruption.

use super::error::VisitError;
use super::form::VisitForm;
use super::format::DocumentFormat;
use super::output::Destination;
use super::slice::SliceProgress;
use super::synced;
use plimsoll_workloads::id_digest::IdDigest;
use plimsoll_workloads::output::Packing;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// The name and version of the file that a resume reads.
const STATE_SCHEMA: &str = "plimsoll.visit-state/1";

/// State that is kept to resume after an interruption.
#[derive(Serialize, Deserialize)]
pub(super) struct State {
    pub schema: String,
    pub form: VisitForm,
    pub destination: Destination,
    pub format: DocumentFormat,
    pub packing: Packing,
    /// Length of each file.
    pub bytes: Vec<u64>,
    /// Digest of the ids in them.
    #[serde(default)]
    pub digest: IdDigest,
    pub slices: Vec<SliceProgress>,
}

impl State {
    /// Name and version of the file of this state.
    pub fn schema() -> String {
        STATE_SCHEMA.to_owned()
    }

    /// Writes it to a file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), VisitError> {
        let error = |error| VisitError::File { path: path.to_owned(), error };
        let text = serde_json::to_string_pretty(self).map_err(|e| error(e.into()))?;
        let mut whole = path.as_os_str().to_owned();
        whole.push(".new");
        let written = || {
            let mut file = File::create(&whole)?;
            file.write_all(text.as_bytes())?;
            synced::file(&file)?;
            std::fs::rename(&whole, path)?;
            synced::folder(path)
        };
        written().map_err(error)
    }

    pub fn read(path: &Path) -> Result<Self, VisitError> {
        let error = |error| VisitError::File { path: path.to_owned(), error };
        let text = std::fs::read_to_string(path).map_err(error)?;
        serde_json::from_str(&text).map_err(|error| VisitError::OtherVisit {
            path: path.to_owned(),
            what: format!("it does not hold a visit's state ({error})"),
        })
    }

    /// The first thing in which the saved visit is another one.
    pub fn differs(
        &self,
        (form, destination, format, packing): (&VisitForm, &Destination, DocumentFormat, Packing),
    ) -> Option<String> {
        let own = &self.form;
        let same = [
            ("form of the file", self.schema == STATE_SCHEMA),
            ("path", own.path == form.path),
            ("cluster", own.cluster == form.cluster),
            ("selection", own.selection == form.selection),
            ("field set", own.field_set == form.field_set),
            ("--from or --to", (own.from_us, own.to_us) == (form.from_us, form.to_us)),
            ("--include-removes", own.include_removes == form.include_removes),
            ("bucket spaces", own.bucket_spaces == form.bucket_spaces),
            ("number of slices", own.slices == form.slices),
            ("--slice-id", own.slice_id == form.slice_id),
            ("part of a larger visit", own.part == form.part),
            ("number of slices", self.slices.len() == form.visited().len()),
            ("output", self.destination == *destination),
            ("format", self.format == format),
            ("compression", self.packing == packing),
        ];
        let (what, _) = same.into_iter().find(|(_, same)| !same)?;
        Some(format!("the interrupted visit had another {what}"))
    }

    /// From where on the file with this index may hold what no token covers.
    pub fn since(&self, file: usize, files: usize) -> u64 {
        let in_file = |index: usize| files == 1 || index == file;
        let slices = self.slices.iter().enumerate().filter(|(index, _)| in_file(*index));
        slices.map(|(_, slice)| slice.since).min().unwrap_or(0)
    }
}

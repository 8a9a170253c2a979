//! Where the documents of a visit go, and flags that exclude each other.

use super::{CompressFlag, FormatFlag, VisitArgs};
use crate::{Destination, DocumentFormat, Packing, Written};
use anyhow::Result;
use plimsoll_job::output::Output;
use plimsoll_job::together::{has_agents, is_coordinator, own_place};
use plimsoll_job::usage::usage;
use std::path::Path;

impl VisitArgs {
    pub(super) fn destination(&self) -> (Destination, Packing) {
        let by_flag = self.compress.map(|how| match how {
            CompressFlag::None => Packing::Plain,
            CompressFlag::Gzip => Packing::Gzip,
            CompressFlag::Zstd => Packing::Zstd,
        });
        match &self.out_dir {
            Some(folder) => {
                (Destination::Folder(folder.clone()), by_flag.unwrap_or(Packing::Plain))
            }
            None if self.out == Path::new("-") => (Destination::Stdout, Packing::Plain),
            None => {
                let packing = by_flag.unwrap_or_else(|| Packing::of_name(&self.out));
                (Destination::File(self.out.clone()), packing)
            }
        }
    }

    /// The destination of what this process writes: a coordinator writes no documents, and each agent has files of its own.
    pub(super) fn written(&self, output: &Output) -> Result<Written> {
        let (destination, packing) = self.destination();
        let own = |path: &Path| own_place(path, output.runs.as_deref(), self.part.slice());
        let destination = match destination {
            _ if is_coordinator() => Destination::Nowhere,
            Destination::File(path) => Destination::File(own(&path)?),
            Destination::Folder(path) => Destination::Folder(own(&path)?),
            other @ (Destination::Stdout | Destination::Nowhere) => other,
        };
        let format = match self.format {
            FormatFlag::Documents => DocumentFormat::Documents,
            FormatFlag::VespaFeed => DocumentFormat::VespaFeed,
        };
        Ok(Written { destination, format, packing })
    }

    /// Rejects flags that exclude each other.
    pub(super) fn check(&self) -> Result<()> {
        match (self.slice_id, self.slices()?) {
            (Some(_), _) if self.measure => {
                return Err(usage(
                    "--slice-id cannot be used with --measure, which reads all slices",
                ));
            }
            (Some(_), None) => return Err(usage("--slice-id needs --slices N")),
            (Some(id), Some(slices)) if id >= slices => {
                return Err(usage(format!(
                    "--slice-id must be below --slices, from 0 to {}",
                    slices - 1
                )));
            }
            _ => {}
        }
        let (destination, _) = self.destination();
        let to_stdout = destination == Destination::Stdout && !self.measure;
        if to_stdout && has_agents() {
            return Err(usage(
                "documents of several agents cannot go to one stdout; use --out NAME, a file below each agent's --runs folder, or \
                 --out /dev/null to count only",
            ));
        }
        if to_stdout && self.output.results.json.as_deref() == Some(Path::new("-")) {
            return Err(usage(
                "the documents and --json - cannot both go to stdout; use --out FILE",
            ));
        }
        if to_stdout && self.output.outlets.takes_stdout() {
            return Err(usage(
                "the documents and --stream - cannot both go to stdout; use --out FILE",
            ));
        }
        if to_stdout && self.resume.is_some() {
            return Err(usage(
                "--resume cannot resume output that was written to stdout; use --out",
            ));
        }
        if to_stdout && self.compress.is_some_and(|how| how != CompressFlag::None) {
            return Err(usage(
                "--compress applies to files; use --out, or pipe stdout into gzip or zstd",
            ));
        }
        Ok(())
    }
}

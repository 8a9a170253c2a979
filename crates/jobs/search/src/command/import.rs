//! A printed table as a record.

use super::reading::read_text;
use super::{SearchArgs, print};
use crate::printed_table::read;
use anyhow::Result;
use plimsoll_core::clock::{format_utc, wall_us};
use plimsoll_core::interval::Interval;
use plimsoll_core::units::Span;
use plimsoll_job::exit;
use plimsoll_job::tool;
use plimsoll_job::usage::usage;
use plimsoll_record::JobResults;
use plimsoll_report::assemble::{Ending, RecordHeader, assemble};
use plimsoll_report::folder::RunFolder;
use serde_json::json;
use std::path::Path;

/// Timeout of requests if the flags have none: the usual limit of the tools that print such tables.
const TIMEOUT: Span = Span::seconds(60);

/// Arguments of a matrix that is measured: a printed table has no use for them.
pub const OF_A_MATRIX: [&str; 35] = [
    "file",
    "engine",
    "corpus",
    "sizes",
    "shards",
    "distance",
    "groups",
    "users",
    "queries",
    "hits",
    "order",
    "duration",
    "warmup",
    "passes",
    "repeat",
    "think",
    "pace",
    "profile",
    "rows",
    "rows_order",
    "rows_per",
    "check",
    "assertions",
    "skip_refused",
    "header",
    "seed",
    "loaders",
    "keep_indexes",
    "resume",
    "fresh",
    "data",
    "show",
    "print_queries",
    "watch",
    "part",
];

/// Reads the table, keeps the record and prints it.
///
/// # Errors
/// When there is no table in the file, or the record cannot be kept.
pub fn run(path: &Path, args: &SearchArgs) -> Result<u8> {
    let shown = path.display();
    let text = read_text(path, &format!("--import {shown}"), "a file with a printed table")?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let timeout = args.timeout.unwrap_or(TIMEOUT);
    let result = read(&text, &name, timeout.as_seconds())
        .map_err(|error| usage(format!("--import {shown}: {error}")))?;
    let output = args.results.output();
    output.check()?;
    let folder = output
        .runs
        .as_deref()
        .map(|runs| RunFolder::create_named(runs, "search", output.naming(), wall_us()))
        .transpose()?;
    let own = folder.as_ref().map(RunFolder::header);
    let header = RecordHeader {
        tool: tool::own(),
        command: tool::command(),
        job: "search".to_owned(),
        naming: output.naming(),
        scenario: json!({ "import": name, "timeout": timeout }),
        ..own.unwrap_or_else(|| RecordHeader {
            started_at: format_utc(wall_us()),
            ..RecordHeader::default()
        })
    };
    let ending = Ending {
        duration_s: Some(0.0),
        warnings: vec![
            "printed by another tool: plimsoll measured none of these figures".to_owned(),
        ],
        job_results: JobResults::of(result),
        ..Ending::default()
    };
    let record = assemble(&header, &Interval::new(0), Vec::new(), ending);
    if let Some(folder) = &folder {
        folder.finish(&record)?;
    }
    print(&record, folder.as_ref().map(RunFolder::path), args)?;
    Ok(exit::FINE)
}

//! One command before the measurement: it makes a job's files, or prepares its target.

use anyhow::{Context, Result};
use plimsoll_core::ledger::Ledger;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_job::child::{End, follow, plimsoll, spawn_on};
use plimsoll_record::JobResults;
use rustix::thread::CpuSet;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Grace period for a command that is stopped.
const PATIENCE: Duration = Duration::from_secs(5);
/// End of the stderr of a command that is kept for the reason of a failure, bytes.
const SAID_BYTES: u64 = 4096;

/// A command of plimsoll whose work counts, and not its figures.
pub struct Step<'a> {
    pub arguments: &'a [String],
    pub processors: Option<CpuSet>,
    /// Longest duration; the command is stopped after it.
    pub limit: Duration,
    /// Its stderr is the user's; otherwise it is kept for the reason of a failure.
    pub shows_progress: bool,
}

/// End of a command.
pub enum Done {
    Whole,
    Stopped,
    /// With its end, and what it said.
    Failed(String, String),
}

impl Step<'_> {
    /// Runs it to its end; `record` is where the record of a load, a feed or a visit goes, unless the command names a
    /// place itself.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn carry_out(&self, record: &Path) -> Result<Done> {
        let mut all = self.arguments.to_vec();
        let has_ledger = |word: &String| ["load", "feed", "visit"].contains(&word.as_str());
        let names_json = all.iter().any(|word| word.starts_with("--json"));
        if all.first().is_some_and(has_ledger) && !names_json {
            all.extend(["--json".to_owned(), record.to_string_lossy().into_owned()]);
        }
        remove_earlier(record)?;
        let (end, said) = self.run(&mut plimsoll(&all)?)?;
        Ok(match end {
            End::Exit(Some(0)) => Done::Whole,
            // "Not valid" is said of the figures; whether the work is done, the ledger says.
            End::Exit(Some(3)) if all_was_done(record) => Done::Whole,
            End::Stopped => Done::Stopped,
            end => Done::Failed(format!("{end:?}"), said),
        })
    }

    /// Runs a command to its end. Returns the end of its stderr too, unless that is the user's.
    fn run(&self, command: &mut Command) -> Result<(End, String)> {
        // A file has room for all of it. A command that fills a pipe waits until the pipe is read.
        let said = (!self.shows_progress).then(tempfile::tempfile).transpose();
        let said =
            said.context("no temporary file can be created; set TMPDIR to another folder")?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(match &said {
            Some(file) => Stdio::from(file.try_clone()?),
            None => Stdio::inherit(),
        });
        let end = follow(&mut spawn_on(command, self.processors)?, self.limit, PATIENCE);
        Ok((end, said.map_or_else(String::new, last_of)))
    }
}

/// Returns the end of a text; of one that cannot be read, as much as can.
fn last_of(mut text: File) -> String {
    let length = text.metadata().map_or(0, |about| about.len());
    let mut bytes = Vec::new();
    let _ = text
        .seek(SeekFrom::Start(length.saturating_sub(SAID_BYTES)))
        .and_then(|_| text.take(SAID_BYTES).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

/// Removes the record of an earlier command, which would answer for one that writes none.
fn remove_earlier(record: &Path) -> Result<()> {
    match std::fs::remove_file(record) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", record.display()))
        }
        _ => Ok(()),
    }
}

/// True if each request of a load succeeded, or if a feed or a visit is complete, even though the figures are
/// not the target's: a load whose generator was the limit has fed what a load of fewer requests a second would have fed.
fn all_was_done(record: &Path) -> bool {
    let text = std::fs::read(record).unwrap_or_default();
    let Ok(record) = plimsoll_record::read(&text) else { return false };
    is_done(record.verdict.kind, &record.job_results, &record.ledger)
}

fn is_done(verdict: VerdictKind, results: &JobResults, books: &Ledger) -> bool {
    if matches!(verdict, VerdictKind::Partial | VerdictKind::Void) {
        return false;
    }
    let (feed, visit) = (results.feed(), results.visit());
    match feed.map(|feed| feed.complete).or(visit.map(|visit| visit.complete)) {
        Some(complete) => complete,
        None => books.scheduled > 0 && books.ok == books.scheduled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_job::child::program;
    use plimsoll_record::feed::FeedResult;

    #[test]
    fn a_preparation_is_done_when_all_is_there_whoever_set_its_speed() {
        let limited = VerdictKind::GeneratorLimited;
        let mut results = JobResults::default();
        let books = |scheduled, ok| Ledger { scheduled, ok, ..Ledger::default() };
        assert!(!is_done(limited, &results, &books(0, 0)), "nothing was asked");
        assert!(!is_done(limited, &results, &books(10, 9)));
        assert!(is_done(limited, &results, &books(10, 10)));
        assert!(!is_done(VerdictKind::Partial, &results, &books(10, 10)));
        // A feed asks again what was refused for the moment: its books have failures, and it may be complete.
        for complete in [true, false] {
            results.put(FeedResult { complete, ..FeedResult::default() });
            assert_eq!(is_done(limited, &results, &books(10, 9)), complete);
        }
        assert!(!all_was_done(Path::new("/no/such/file")));
    }

    #[test]
    fn a_command_with_much_output_does_not_wait_for_a_reader() {
        let limit = Duration::from_secs(30);
        let step = Step { arguments: &[], processors: None, limit, shows_progress: false };
        let mut command = program("sh");
        command.args(["-c", "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo failed >&2; exit 4"]);
        let (end, said) = step.run(&mut command).unwrap();
        assert_eq!(end, End::Exit(Some(4)));
        assert!(said.len() < 5000 && said.ends_with("xfailed"), "{said}");
    }

    #[test]
    fn the_record_of_an_earlier_command_does_not_answer_for_this_one() {
        let dir = tempfile::tempdir().unwrap();
        let record = dir.path().join("prepared.json");
        remove_earlier(&record).unwrap();
        std::fs::write(&record, "{}").unwrap();
        remove_earlier(&record).unwrap();
        assert!(!record.exists());
        assert!(remove_earlier(dir.path()).is_err());
    }
}

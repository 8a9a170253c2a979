//! Outputs: stdout, files that flags name, and lines on stderr.

use crate::exit;
use crate::usage::usage;
use anyhow::Result;
use plimsoll_record::RunRecord;
use plimsoll_report::RecordError;
use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Outputs besides stdout.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// Folder of run records; `None` keeps none.
    pub runs: Option<PathBuf>,
    /// Also write the record here as JSON; `-` is stdout, instead of the text.
    pub json: Option<PathBuf>,
    /// No progress.
    pub quiet: bool,
}

impl Output {
    /// Makes sure that record and JSON can be written, before any load: a run whose result is lost was for nothing.
    ///
    /// # Errors
    /// When the folder cannot be made or written, or the file cannot be opened for writing.
    pub fn check(&self) -> Result<()> {
        if let Some(runs) = &self.runs {
            can_be_written(runs)
                .map_err(|source| RecordError::Create { path: runs.clone(), source })?;
        }
        let Some(path) = self.json.as_deref().filter(|path| *path != Path::new("-")) else {
            return Ok(());
        };
        let is_new = !path.exists();
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
        opened.map_err(|error| usage(unwritten("--json", path, &error)))?;
        if is_new {
            // An empty file would look like a result until there is one.
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    }
}

/// Tries a folder, and leaves nothing behind where it was not there.
fn can_be_written(folder: &Path) -> std::io::Result<()> {
    let is_new = !folder.exists();
    std::fs::create_dir_all(folder)?;
    let tried = tempfile::tempdir_in(folder).map(drop);
    if is_new {
        let _ = std::fs::remove_dir(folder);
    }
    tried
}

fn unwritten(flag: &str, path: &Path, error: &std::io::Error) -> String {
    format!("{flag} {}: {error}; check the path", path.display())
}

/// A line on stderr. No one has to read it: a run does not end because its reader is gone.
pub fn note(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Set when a file of the result could not be written, which makes the exit code 1.
static LOST_A_FILE: AtomicBool = AtomicBool::new(false);

/// Writes the JSON that was asked for and says whether stdout was taken by it.
///
/// If the file cannot be written, the reason goes to stderr, the page is still printed, and the exit code is 1.
///
/// # Errors
/// When stdout cannot be written.
pub fn write_json(output: &Output, record: &RunRecord) -> Result<bool> {
    match output.json.as_deref() {
        None => Ok(false),
        Some(path) if path == Path::new("-") => {
            print_out(&plimsoll_report::json::pretty(record))?;
            Ok(true)
        }
        Some(path) => {
            put_result("--json", path, &plimsoll_report::json::pretty(record));
            Ok(false)
        }
    }
}

/// Writes a file of the result that a flag names; that it cannot be written is said and remembered.
pub fn put_result(flag: &str, path: &Path, text: &str) {
    if let Err(error) = put_file(path, text) {
        lost_file(&unwritten(flag, path, &error));
    }
}

/// Says that a file of the result is lost, and remembers it for the exit code.
pub fn lost_file(why: &str) {
    note(&format!("plimsoll: {why}"));
    LOST_A_FILE.store(true, Ordering::Relaxed);
}

/// The exit code with the files in mind: one that could not be written outranks what was measured.
#[must_use]
pub fn with_files(code: u8) -> u8 {
    if has_lost_a_file() { exit::FAILED } else { code }
}

pub(crate) fn has_lost_a_file() -> bool {
    LOST_A_FILE.load(Ordering::Relaxed)
}

/// Puts a whole file in its place or leaves what was there: it is written beside and renamed. A path that is not a regular file,
/// or lies where no file can be made beside it, is written as it is.
fn put_file(path: &Path, text: &str) -> std::io::Result<()> {
    // A link stays one: the file that it leads to is replaced.
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let other_kind = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    let Some(name) = path.file_name().filter(|_| !other_kind) else {
        return std::fs::write(path, text);
    };
    let mut beside = name.to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(beside);
    let mut file = match std::fs::File::create(&beside) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return std::fs::write(path, text);
        }
        Err(error) => return Err(error),
    };
    let written = file.write_all(text.as_bytes()).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        // Half a file helps nobody.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// Writes to stdout. A reader that went away is no error of plimsoll.
///
/// # Errors
/// When stdout cannot be written for another reason.
pub fn print_out(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| anyhow::anyhow!("stdout cannot be written: {error}")),
    }
}

/// Returns true if a terminal of this kind is sent colours: `NO_COLOR` says no, and so does a terminal without them.
fn may_colour(no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    no_color.is_none() && term.is_none_or(|term| term != "dumb")
}

/// The way text goes to stdout.
#[must_use]
pub fn style() -> plimsoll_report::text::Style {
    let terminal = std::io::stdout().is_terminal();
    plimsoll_report::text::Style {
        colour: terminal
            && may_colour(
                std::env::var_os("NO_COLOR").as_deref(),
                std::env::var_os("TERM").as_deref(),
            ),
        width: if terminal { width(std::io::stdout()).unwrap_or(100) } else { 100 },
        lost_file: has_lost_a_file(),
    }
}

/// Number of columns that a terminal has: what `COLUMNS` says, else what the terminal itself says.
pub fn width(terminal: impl std::os::fd::AsFd) -> Option<usize> {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let own = || rustix::termios::tcgetwinsize(terminal).ok().map(|size| usize::from(size.ws_col));
    told.or_else(own).filter(|&columns| columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_put_whole_in_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("a.json"), dir.path().join("link.json"));
        put_file(&path, "one").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        put_file(&link, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert!(link.is_symlink());
        put_file(Path::new("/dev/null"), "nowhere").unwrap();
        // A device that is always full: nothing is renamed over it.
        assert!(put_file(Path::new("/dev/full"), "text").is_err());
        assert!(put_file(&dir.path().join("no/such/folder"), "text").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left beside");
    }

    #[test]
    fn colours_are_for_terminals_that_have_them() {
        let (dumb, good) = (Some(OsStr::new("dumb")), Some(OsStr::new("xterm")));
        assert!(may_colour(None, good) && may_colour(None, None));
        assert!(!may_colour(None, dumb));
        assert!(!may_colour(Some(OsStr::new("1")), good));
    }
}

//! Outputs: stdout, files that flags name, and lines on stderr.

use crate::exit;
use crate::outlet_flags::OutletFlags;
use crate::screen::{Voice, columns, make_way};
pub use crate::screen::{name_left_out, note};
use crate::usage::usage;
use crate::watching;
use anyhow::Result;
use plimsoll_core::system_error::with_advice;
use plimsoll_report::RecordError;
use plimsoll_report::naming::{Label, Naming, RunName};
use plimsoll_resources::watch::Watch;
use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Outputs besides stdout.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// Folder of run records; `None` keeps none.
    pub runs: Option<PathBuf>,
    /// Also write the record here as JSON; `-` is stdout, instead of the text.
    pub json: Option<PathBuf>,
    /// Also write the result here as JUnit XML.
    pub junit: Option<PathBuf>,
    /// Also write the result here as CSV.
    pub csv: Option<PathBuf>,
    /// Also write the result here as a web page.
    pub html: Option<PathBuf>,
    /// Name of the run.
    pub name: Option<RunName>,
    /// Labels of the run.
    pub labels: Vec<Label>,
    /// Things to watch; without any, the targets that can be found.
    pub watch: Vec<Watch>,
    /// No progress.
    pub quiet: bool,
    /// The whole page, and a line of progress for each finished part.
    pub verbose: bool,
    /// Destinations of the seconds of the run.
    pub outlets: OutletFlags,
}

impl Output {
    /// Returns name and labels as a record keeps them.
    #[must_use]
    pub fn naming(&self) -> Naming {
        let labels = self.labels.iter().map(|label| (label.key.clone(), label.value.clone()));
        Naming {
            name: self.name.as_ref().map(|name| name.0.clone()).unwrap_or_default(),
            labels: labels.collect(),
        }
    }

    /// Returns the amount that the job says while it runs.
    #[must_use]
    pub fn voice(&self) -> Voice {
        match (self.quiet, self.verbose) {
            (true, _) => Voice::Quiet,
            (false, true) => Voice::Verbose,
            (false, false) => Voice::Calm,
        }
    }

    /// Returns the files that flags name, each with its flag.
    fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let all = [
            ("--json", &self.json),
            ("--junit", &self.junit),
            ("--csv", &self.csv),
            ("--html", &self.html),
        ];
        all.into_iter().filter_map(|(flag, path)| Some((flag, path.as_deref()?)))
    }

    /// True if stdout is for a program: the record, or the seconds, and no text of any kind.
    #[must_use]
    pub fn takes_stdout(&self) -> bool {
        self.json.as_deref() == Some(Path::new("-")) || self.outlets.takes_stdout()
    }

    /// True if a flag names a file for the result.
    #[must_use]
    pub fn has_files(&self) -> bool {
        self.files().next().is_some()
    }

    /// Makes sure that record and files can be written, before any load: a run whose result is lost was for nothing.
    ///
    /// # Errors
    /// When the folder cannot be made or written, when a file cannot be opened for writing, when two flags contradict each
    /// other, or when `--watch` names nothing that runs.
    pub fn check(&self) -> Result<()> {
        self.check_naming()?;
        self.check_stream()?;
        watching::check(&self.watch)?;
        if let Some(runs) = &self.runs {
            can_be_written(runs)
                .map_err(|source| RecordError::Create { path: runs.clone(), source })?;
        }
        let mut seen: Vec<(&str, &Path)> = Vec::new();
        for (flag, path) in self.files() {
            if path == Path::new("-") {
                if flag != "--json" {
                    let form = flag.trim_start_matches('-');
                    return Err(usage(format!(
                        "{flag} -: name a file; 'plimsoll report --format {form}' prints it"
                    )));
                }
                continue;
            }
            if let Some((other, _)) = seen.iter().find(|(_, known)| *known == path) {
                return Err(usage(format!(
                    "{flag} {}: the file of {other}; name another one",
                    path.display()
                )));
            }
            can_be_opened(path).map_err(|error| usage(unwritten(flag, path, &error)))?;
            seen.push((flag, path));
        }
        Ok(())
    }

    /// The stream goes to a file of its own.
    fn check_stream(&self) -> Result<()> {
        self.outlets.check()?;
        let Some(stream) = self.outlets.stream.as_deref() else { return Ok(()) };
        if let Some((other, _)) = self.files().find(|(_, path)| *path == stream) {
            return Err(usage(format!(
                "--stream {}: {other} writes there too; name another file",
                stream.display()
            )));
        }
        if self.outlets.takes_stdout() {
            return Ok(());
        }
        can_be_opened(stream).map_err(|error| usage(unwritten("--stream", stream, &error)))
    }

    fn check_naming(&self) -> Result<()> {
        for (index, label) in self.labels.iter().enumerate() {
            if self.labels[..index].iter().any(|other| other.key == label.key) {
                return Err(usage(format!(
                    "--label {}: this key is given twice; use each key once",
                    label.key
                )));
            }
        }
        Ok(())
    }
}

/// Tries to open a file for writing, and leaves nothing behind if it was not there.
fn can_be_opened(path: &Path) -> std::io::Result<()> {
    // The reader of a pipe would take this for all that comes.
    if std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        return Ok(());
    }
    let file = behind_links(path);
    let is_new = !file.exists();
    std::fs::OpenOptions::new().create(true).append(true).open(&file)?;
    if is_new {
        // An empty file would look like a result until there is one.
        let _ = std::fs::remove_file(&file);
    }
    Ok(())
}

/// Most links that lead to one file, as in Linux.
const LINKS_MAX: usize = 40;

/// The file to which a path leads over links, also if the file is not there.
fn behind_links(path: &Path) -> PathBuf {
    if path.exists() {
        // A link to a pipe, such as /dev/stdout, leads to no path.
        return std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    }
    let mut file = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(link) = std::fs::read_link(&file) else { break };
        // A relative one counts from its folder.
        file = file.parent().unwrap_or(Path::new("")).join(link);
    }
    file
}

/// Tries of a folder that is gone each time.
const TRIES: usize = 100;

/// Tries a folder, and leaves nothing behind where it was not there.
fn can_be_written(folder: &Path) -> std::io::Result<()> {
    let is_new = !folder.exists();
    let once = || {
        std::fs::create_dir_all(folder)?;
        tempfile::tempdir_in(folder).map(drop)
    };
    let mut tries = 0..TRIES;
    let tried = loop {
        let tried = once();
        let is_gone = tried.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        // Another process that tries the same new folder may remove it in between.
        if !is_gone || tries.next().is_none() {
            break tried;
        }
    };
    if is_new {
        let _ = std::fs::remove_dir(folder);
    }
    tried
}

fn unwritten(flag: &str, path: &Path, error: &std::io::Error) -> String {
    format!("{flag} {}: {}", path.display(), with_advice(error))
}

/// Set when a file of the result could not be written, which makes the exit code 1.
static LOST_A_FILE: AtomicBool = AtomicBool::new(false);

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
    let path = &behind_links(path);
    let other_kind = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    let Some(name) = path.file_name().filter(|_| !other_kind) else {
        return std::fs::write(path, text);
    };
    let mut front = name.to_owned();
    front.push(".");
    // Under a name that another user of a shared folder cannot guess, and lead elsewhere by a link; with the usual rights.
    let beside = tempfile::Builder::new()
        .prefix(&front)
        .suffix(".new")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(
            path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new(".")),
        );
    let mut file = match beside {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return std::fs::write(path, text);
        }
        Err(error) => return Err(error),
    };
    // Half a file is of no use: it goes when it is dropped.
    file.write_all(text.as_bytes())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Writes to stdout. A reader that went away is no error of plimsoll.
///
/// # Errors
/// When stdout cannot be written for another reason.
pub fn print_out(text: &str) -> Result<()> {
    make_way(&std::io::stdout());
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

/// The way a page goes to stdout, with everything if it is `verbose`.
#[must_use]
pub fn style(verbose: bool) -> plimsoll_report::text::Style {
    let terminal = std::io::stdout().is_terminal();
    plimsoll_report::text::Style {
        colour: terminal
            && may_colour(
                std::env::var_os("NO_COLOR").as_deref(),
                std::env::var_os("TERM").as_deref(),
            ),
        width: columns(std::io::stdout()),
        verbose,
        lost_file: has_lost_a_file(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two commands that start at once in a place without a folder of records.
    #[test]
    fn several_may_try_the_same_new_folder_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("runs");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..500).for_each(|_| can_be_written(&folder).unwrap()));
            }
        });
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(can_be_written(&file.join("runs")).is_err());
    }

    #[test]
    fn a_file_is_put_whole_in_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("a.json"), dir.path().join("link.json"));
        put_file(&path, "one").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        put_file(&link, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert!(link.is_symlink());
        // Also if its file is not there yet: neither the check before a run nor the result takes its place.
        std::fs::remove_file(&path).unwrap();
        can_be_opened(&link).unwrap();
        assert!(link.is_symlink() && !path.exists());
        put_file(&link, "three").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three");
        assert!(link.is_symlink());
        put_file(Path::new("/dev/null"), "nowhere").unwrap();
        // A device that is always full: nothing is renamed over it.
        assert!(put_file(Path::new("/dev/full"), "text").is_err());
        assert!(put_file(&dir.path().join("no/such/folder"), "text").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left beside");
    }

    /// The check before a run must not look like the end of the result to a reader that waits for it.
    #[test]
    fn the_reader_of_a_pipe_gets_the_result() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = {
            let pipe = pipe.clone();
            std::thread::spawn(move || std::fs::read_to_string(pipe).unwrap())
        };
        can_be_opened(&pipe).unwrap();
        put_file(&pipe, "result").unwrap();
        assert_eq!(reader.join().unwrap(), "result");
    }

    #[test]
    fn flags_that_contradict_each_other_are_rejected_before_a_run() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        let labels = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let wrong = [
            (Output { csv: Some("-".into()), ..Output::default() }, "--csv -: name a file"),
            (
                Output { json: Some(file.clone()), junit: Some(file.clone()), ..Output::default() },
                "the file of --json",
            ),
            (Output { labels: labels(&["a=1", "b=2", "a=1"]), ..Output::default() }, "--label a:"),
            (Output { junit: Some(dir.path().into()), ..Output::default() }, "--junit "),
        ];
        for (output, word) in wrong {
            let error = output.check().unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        let good =
            Output { json: Some(file.clone()), csv: Some("/dev/null".into()), ..Output::default() };
        good.check().unwrap();
        assert!(!file.exists(), "nothing is left behind");
    }

    #[test]
    fn colours_are_for_terminals_that_have_them() {
        let (dumb, good) = (Some(OsStr::new("dumb")), Some(OsStr::new("xterm")));
        assert!(may_colour(None, good) && may_colour(None, None));
        assert!(!may_colour(None, dumb));
        assert!(!may_colour(Some(OsStr::new("1")), good));
    }
}

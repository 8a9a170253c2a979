//! Hooks: what happens around a run, in order before and in reverse order after it.
//!
//! A hook that fails warns; the run goes on and its figures stand. Files of hooks are made in a folder of their
//! own and moved into the run's record at the end, since the record's folder is made by the command itself.

mod copymove;
mod cpu_limit;
mod file;
mod mpstat;
mod perf;
mod perf_stat;
pub mod proc_stat;
mod sampler;
mod series;
mod shell;

use super::near_miss::unknown;
use anyhow::Result;
use plimsoll_job::output::note;
use plimsoll_job::signals;
use plimsoll_job::usage::usage;
use plimsoll_record::catalogue::{HookRecord, Hooks as Kept};
use plimsoll_report::plain::printable;
use plimsoll_report::window::Window;
use rustix::thread::CpuSet;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// All hooks there are.
pub const KNOWN: [&str; 6] = ["cpu-mpstat", "perf", "copymove", "shell", "file", "cpu-limit"];

/// The folder of a record that holds what hooks left.
pub const FOLDER: &str = "hooks";

/// A hook as a job or the command line names it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookSpec {
    /// One of [`KNOWN`].
    pub name: String,
    /// Its options; each hook has a form of its own.
    #[serde(default)]
    pub options: Value,
}

impl HookSpec {
    /// As benchpress lists hooks: `name: {options}`.
    #[must_use]
    pub fn shown(&self) -> String {
        match &self.options {
            Value::Null => format!("{}: {{}}", self.name),
            options => format!("{}: {options}", self.name),
        }
    }
}

/// A file of samples over time that a hook has left.
pub struct SeriesFile {
    /// Its name in the folder of hooks.
    pub name: String,
    /// Form in which to read it.
    pub form: SeriesForm,
}

/// The form of a file of samples.
pub enum SeriesForm {
    /// `index,timestamp,...`, the timestamp in seconds since the Unix epoch.
    Csv,
    /// The text of `mpstat` with times of day in UTC, begun at this moment, s since the Unix epoch.
    Mpstat(f64),
}

/// One hook.
trait Hook {
    /// Begins, before the target starts; files go to `folder`.
    fn before(&mut self, folder: &Path) -> Result<(), String>;

    /// Ends, when the command has ended.
    fn after(&mut self, folder: &Path) -> Result<(), String>;

    /// Puts back what it took away, since there is no record that could keep it.
    fn give_back(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// The processors that command and target may use.
    fn processors(&self) -> Option<CpuSet> {
        None
    }

    /// Files of samples to cut to the measured window.
    fn series(&self) -> Vec<SeriesFile> {
        Vec::new()
    }

    /// Problems during the hook, besides those that `before` and `after` return.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Reads a hook's options.
fn options<T: DeserializeOwned + Default>(spec: &HookSpec) -> Result<T> {
    if spec.options.is_null() {
        return Ok(T::default());
    }
    serde_json::from_value(spec.options.clone())
        .map_err(|error| usage(format!("hook {}: {error}", spec.name)))
}

fn build(spec: &HookSpec) -> Result<Box<dyn Hook>> {
    Ok(match spec.name.as_str() {
        "cpu-mpstat" => Box::new(mpstat::CpuMpstat::new(options(spec)?)?),
        "perf" => Box::new(perf::Perf::new(options(spec)?)),
        "copymove" => Box::new(copymove::CopyMove::new(options(spec)?)?),
        "shell" => Box::new(shell::Shell::new(options(spec)?)),
        "file" => Box::new(file::Files::new(options(spec)?)),
        "cpu-limit" => Box::new(cpu_limit::CpuLimit::new(&spec.options)?),
        other => return Err(unknown("hook", other, &KNOWN)),
    })
}

/// Makes sure that all hooks exist and that their options have the right form.
///
/// # Errors
/// One line on the first that is wrong.
pub fn check(specs: &[HookSpec]) -> Result<()> {
    specs.iter().try_for_each(|spec| build(spec).map(drop))
}

/// The hooks of a run: the job's, then those of the command line, with its options.
///
/// # Errors
/// A name or options that no hook has.
pub fn chosen(
    own: &[HookSpec],
    names: &[String],
    arguments: Option<&str>,
) -> Result<Vec<HookSpec>> {
    let mut specs = own.to_vec();
    for name in names {
        if !KNOWN.contains(&name.as_str()) {
            return Err(unknown("hook", name, &KNOWN));
        }
        if !specs.iter().any(|spec| &spec.name == name) {
            specs.push(HookSpec { name: name.clone(), options: Value::Null });
        }
    }
    let Some(text) = arguments else {
        check(&specs)?;
        return Ok(specs);
    };
    let given: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        usage(format!(
            "-a '{text}': {error}; write '{{\"perf\": {{\"mpstat\": {{\"interval\": 1}}}}}}'"
        ))
    })?;
    for (name, options) in given {
        if let Some(spec) = specs.iter_mut().find(|spec| spec.name == name) {
            match (&mut spec.options, options) {
                (Value::Object(own), Value::Object(more)) => own.extend(more),
                (own, options) => *own = options,
            }
        } else if KNOWN.contains(&name.as_str()) {
            return Err(usage(format!("-a {name}: this run has no such hook; add -k {name}")));
        } else {
            return Err(unknown("hook", &name, &KNOWN));
        }
    }
    check(&specs)?;
    Ok(specs)
}

struct Running {
    name: String,
    hook: Box<dyn Hook>,
    begun: bool,
    warnings: Vec<String>,
}

/// The hooks of one run.
pub struct Hooks {
    running: Vec<Running>,
    folder: PathBuf,
    /// True if a record holds the files.
    kept: bool,
    /// True if the files could not be moved into the record.
    remain: bool,
}

impl Hooks {
    /// Makes them, and the folder for their files. Nothing has begun yet.
    ///
    /// # Errors
    /// Wrong options, or a folder that cannot be made.
    pub fn new(specs: &[HookSpec], folder: &Path) -> Result<Self> {
        let running = |spec: &HookSpec| {
            let (name, warnings) = (spec.name.clone(), Vec::new());
            Ok(Running { name, hook: build(spec)?, begun: false, warnings })
        };
        let running = specs.iter().map(running).collect::<Result<Vec<_>>>()?;
        Ok(Self { running, folder: folder.to_owned(), kept: false, remain: false })
    }

    /// Begins all, in order, or as many as begin before the user stops this process. A failure is printed on stderr
    /// and kept for the record.
    pub fn before(&mut self) {
        for one in &mut self.running {
            if signals::is_stopped() {
                return;
            }
            one.begun = true;
            if let Err(problem) = one.hook.before(&self.folder) {
                // It is ended like the others: what it did before it failed is to be undone.
                one.warn(problem);
            }
        }
    }

    /// Ends all that began, in reverse order.
    pub fn after(&mut self) {
        self.end(true);
    }

    /// Ends all that began and says nothing of it: the command line was refused, and that is all there is to say.
    pub fn after_refusal(&mut self) {
        self.end(false);
    }

    fn end(&mut self, tell: bool) {
        for one in self.running.iter_mut().rev() {
            if !std::mem::take(&mut one.begun) {
                continue;
            }
            let ended = one.hook.after(&self.folder);
            for problem in ended.err().into_iter().chain(one.hook.warnings()) {
                if tell {
                    one.warn(problem);
                } else {
                    one.keep_warning(&problem);
                }
            }
        }
    }

    /// The processors that command and target may use: what all hooks allow.
    #[must_use]
    pub fn processors(&self) -> Option<CpuSet> {
        self.running.iter().filter(|one| one.begun).find_map(|one| one.hook.processors())
    }

    /// Moves the files into the record, cuts samples to the measured windows, and returns what is there.
    ///
    /// It goes into the record as its section `hooks`.
    #[must_use]
    pub fn keep(&mut self, record: &Path, windows: &[Window]) -> Kept {
        let mut kept = BTreeMap::new();
        let place = record.join(FOLDER);
        let moved = move_all(&self.folder, &place);
        (self.kept, self.remain) = (moved.is_ok(), moved.is_err());
        for one in &mut self.running {
            if let Err(problem) = &moved {
                one.warn(problem.clone());
            }
            let mut about = HookRecord::default();
            for file in one.hook.series() {
                let path = place.join(&file.name);
                if !path.is_file() {
                    continue;
                }
                about.files.push(file.name.clone());
                match series::cut(&path, &file.form, windows) {
                    Ok(cut) => {
                        about.averages.insert(file.name.clone(), cut.averages);
                        about.samples_measured.insert(file.name.clone(), cut.samples);
                        about.files.push(cut.name);
                    }
                    Err(problem) => one.warn(problem),
                }
            }
            about.warnings.clone_from(&one.warnings);
            // A hook that is there twice has two entries.
            let mut name = one.name.clone();
            for number in 2.. {
                if !kept.contains_key(&name) {
                    break;
                }
                name = format!("{}-{number}", one.name);
            }
            kept.insert(name, about);
        }
        Kept(kept)
    }

    /// Returns true if the files could not be moved into the record: a warning names their folder, which must stay.
    #[must_use]
    pub const fn remain(&self) -> bool {
        self.remain
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        // Whatever ended the run, what a hook has begun is ended too: samplers, files, moved files.
        self.after();
        if !self.kept {
            for one in self.running.iter_mut().rev() {
                if let Err(problem) = one.hook.give_back() {
                    one.warn(problem);
                }
            }
        }
    }
}

impl Running {
    fn warn(&mut self, problem: String) {
        let line = self.keep_warning(&problem);
        note(&format!("plimsoll: hook {}: {line}", self.name));
    }

    fn keep_warning(&mut self, problem: &str) -> String {
        let line = printable(problem);
        self.warnings.push(line.clone());
        line
    }
}

/// Moves a folder's content; across file systems by copying.
fn move_all(from: &Path, to: &Path) -> Result<(), String> {
    let shown = |error: std::io::Error| format!("files remain in {}: {error}", from.display());
    if std::fs::read_dir(from).map_err(shown)?.next().is_none() {
        return std::fs::remove_dir(from).map_err(shown);
    }
    if std::fs::rename(from, to).is_ok() {
        return Ok(());
    }
    std::fs::create_dir_all(to).map_err(shown)?;
    for entry in std::fs::read_dir(from).map_err(shown)? {
        let entry = entry.map_err(shown)?;
        std::fs::copy(entry.path(), to.join(entry.file_name())).map_err(shown)?;
    }
    std::fs::remove_dir_all(from).map_err(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(name: &str, options: Value) -> HookSpec {
        HookSpec { name: name.to_owned(), options }
    }

    #[test]
    fn hooks_of_the_command_line_come_after_the_jobs_and_change_their_options() {
        let own = [spec("cpu-mpstat", json!({"args": ["-u", "1"]}))];
        let names = ["shell".to_owned(), "cpu-mpstat".to_owned()];
        let given = r#"{"shell": {"before": ["true"]}, "cpu-mpstat": {"interval": 2}}"#;
        let chosen = chosen(&own, &names, Some(given)).unwrap();
        assert_eq!(chosen[0].shown(), r#"cpu-mpstat: {"args":["-u","1"],"interval":2}"#);
        assert_eq!(chosen[1], spec("shell", json!({"before": ["true"]})));
    }

    #[test]
    fn what_no_hook_has_is_refused() {
        let message = |names: &[&str], arguments: Option<&str>| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            super::chosen(&[], &names, arguments).unwrap_err().to_string()
        };
        assert!(message(&["prf"], None).contains("unknown hook 'prf'; did you mean 'perf'?"));
        assert!(message(&[], Some("{")).contains("-a '{'"));
        assert!(message(&[], Some(r#"{"perf": {}}"#)).contains("add -k perf"));
        assert!(message(&["shell"], Some(r#"{"shel": {}}"#)).contains("did you mean 'shell'?"));
        assert!(message(&["shell"], Some(r#"{"shell": {"befor": []}}"#)).contains("befor"));
        assert!(message(&["cpu-limit"], None).contains("cpu-limit"));
    }

    #[test]
    fn they_begin_in_order_end_in_reverse_and_a_failing_one_only_warns() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, log) = (dir.path().join("staged"), dir.path().join("log"));
        std::fs::create_dir(&folder).unwrap();
        let say = |word: &str| json!([format!("echo {word} >> '{}'", log.display())]);
        let specs = [
            spec("shell", json!({"before": say("first"), "after": say("last")})),
            spec("copymove", json!({"before": ["/no/such/[file"]})),
            spec("shell", json!({"before": say("second"), "after": say("third")})),
        ];
        assert!(check(&specs).is_err(), "a pattern that is none");
        let specs =
            [specs[0].clone(), spec("shell", json!({"before": ["exit 3"]})), specs[2].clone()];
        let mut hooks = Hooks::new(&specs, &folder).unwrap();
        hooks.before();
        hooks.after();
        hooks.after();
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "first\nsecond\nthird\nlast\n");
        let record = dir.path().join("record");
        std::fs::create_dir(&record).unwrap();
        let kept = hooks.keep(&record, &[]);
        assert!(kept.0["shell-2"].warnings[0].contains("exit 3"), "{kept:?}");
        assert!(record.join("hooks/shell.txt").is_file() && !folder.exists());
    }
}

//! A run of the targets: built, fed with what is known, watched to its end, and reported in a table.

mod build;
mod outcome;
mod table;

use build::Programs;
use outcome::Outcome;
use plimsoll_fuzzing::{Target, corpus, seeds, words};
use plimsoll_zoo::page;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An input that takes longer is a finding, s.
const TIMEOUT_S: u32 = 10;
/// A target that takes more memory is a finding, MB.
const MEMORY_MB: u32 = 2048;
/// The time of a run if nothing is said, minutes.
const USUAL_MINUTES: u64 = 10;

/// A checker that is compiled into the targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sanitizer {
    /// `AddressSanitizer`.
    Address,
}

/// The run that was asked for.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The time of all targets together, minutes.
    pub minutes: Option<u64>,
    /// Inputs of each target.
    pub inputs: Option<u64>,
    /// The targets.
    pub targets: Vec<&'static Target>,
    /// Checker.
    pub sanitizer: Option<Sanitizer>,
    /// Page that takes the table.
    pub page: Option<String>,
}

impl Plan {
    /// The time of one target, s; none if only inputs count.
    fn seconds_each(&self, at_once: usize) -> Option<u64> {
        let minutes = match (self.minutes, self.inputs) {
            (None, Some(_)) => return None,
            (minutes, _) => minutes.unwrap_or(USUAL_MINUTES),
        };
        let rounds = self.targets.len().div_ceil(at_once).max(1) as u64;
        Some((minutes * 60 / rounds).max(1))
    }
}

/// Folders of a target that are not in the repository.
struct Place {
    inputs: PathBuf,
    findings: PathBuf,
    log: PathBuf,
    words: PathBuf,
}

impl Place {
    fn of(programs: &Programs, target: &Target) -> Result<Self, String> {
        let own = |kind: &str| programs.work.join(kind).join(target.name);
        let (inputs, findings) = (own("inputs"), own("findings"));
        let (log, words) = (own("log").with_extension("txt"), own("words").with_extension("dict"));
        let parents = [log.parent(), words.parent()].into_iter().flatten();
        for folder in [inputs.as_path(), findings.as_path()].into_iter().chain(parents) {
            fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        Ok(Self { inputs, findings, log, words })
    }

    /// Puts down what is known: the inputs of the repository, the first inputs, and the words.
    fn fill(&self, target: &Target) -> Result<(), String> {
        let mut inputs = known(target)?;
        inputs.extend(seeds::of(target.name));
        for mut input in inputs {
            input.truncate(target.longest);
            let path = self.inputs.join(format!("known-{:016x}", hash(&input)));
            fs::write(&path, input).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let text = dictionary(target).unwrap_or_default();
        fs::write(&self.words, text).map_err(|error| format!("{}: {error}", self.words.display()))
    }
}

/// The words of a target as libFuzzer reads them; none for one without words, as libFuzzer refuses an empty file.
fn dictionary(target: &Target) -> Option<String> {
    let quoted = |word: &&str| {
        let bytes: String = word.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
        format!("\"{bytes}\"\n")
    };
    let words = words::of(target.name);
    (!words.is_empty()).then(|| words.iter().map(quoted).collect())
}

fn hash(input: &[u8]) -> u64 {
    use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
    BuildHasherDefault::<DefaultHasher>::default().hash_one(input)
}

/// The inputs of a target in the repository.
fn known(target: &Target) -> Result<Vec<Vec<u8>>, String> {
    let path = corpus::path(target.name);
    match fs::read(&path) {
        Ok(file) => corpus::unpack(&file).map_err(|error| format!("{}: {error}", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

fn names(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Runs the targets; returns false if there is a finding.
///
/// # Errors
/// One line about what could not be built, started or written.
pub fn run(plan: &Plan) -> Result<bool, String> {
    let programs = Programs::build(plan)?;
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let seconds = plan.seconds_each(at_once);
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once.min(plan.targets.len()) {
            scope.spawn(|| {
                while let Some(target) = plan.targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = fuzz(&programs, target, seconds, plan.inputs);
                    if let Ok(outcome) = &outcome {
                        eprintln!("{}", outcome.line(target.name));
                    }
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes.push((target.name, outcome));
                    }
                }
            });
        }
    });
    let mut found =
        outcomes.into_inner().map_err(|_| "a thread of the run has ended".to_owned())?;
    let place = |name: &str| plan.targets.iter().position(|target| target.name == name);
    found.sort_by_key(|(name, _)| place(name));
    let (mut ended, mut problems) = (Vec::new(), Vec::new());
    for (name, outcome) in found {
        match outcome {
            Ok(outcome) => ended.push((name, outcome)),
            Err(problem) => problems.push(problem),
        }
    }
    let found = ended;
    let text = table::render(&found, plan, at_once);
    println!("{text}");
    // One that could not run does not hide what the others found; the page is for runs of all.
    if !problems.is_empty() {
        return Err(problems.join("; "));
    }
    if let Some(path) = &plan.page {
        page::refresh(path, "fuzz", &text)?;
    }
    Ok(found.iter().all(|(_, outcome)| outcome.findings.is_empty()))
}

/// Runs one target until its time is over, it had its inputs, or there is a finding.
fn fuzz(
    programs: &Programs,
    target: &Target,
    seconds: Option<u64>,
    inputs: Option<u64>,
) -> Result<Outcome, String> {
    let place = Place::of(programs, target)?;
    place.fill(target)?;
    let before = names(&place.inputs);
    let findings_before = names(&place.findings);
    let log = fs::File::create(&place.log)
        .map_err(|error| format!("{}: {error}", place.log.display()))?;
    let mut command = Command::new(programs.of(target.name)?);
    command
        .arg(format!("-max_len={}", target.longest))
        .arg(format!("-timeout={TIMEOUT_S}"))
        .arg(format!("-rss_limit_mb={MEMORY_MB}"))
        .arg(format!("-artifact_prefix={}/", place.findings.display()))
        .args(dictionary(target).map(|_| format!("-dict={}", place.words.display())))
        .args(["-print_final_stats=1", "-reload=0"])
        .args(seconds.map(|seconds| format!("-max_total_time={seconds}")))
        .args(inputs.map(|inputs| format!("-runs={inputs}")))
        .arg(&place.inputs)
        .env("ASAN_OPTIONS", "detect_leaks=0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    let status = command.status().map_err(|error| format!("{}: {error}", target.name))?;
    let text = fs::read(&place.log).map_err(|error| format!("{}: {error}", place.log.display()))?;
    let mut outcome = Outcome::read(&String::from_utf8_lossy(&text));
    outcome.new_inputs = names(&place.inputs).difference(&before).count();
    outcome.findings = names(&place.findings).difference(&findings_before).cloned().collect();
    if !status.success() && outcome.findings.is_empty() {
        return Err(format!("{} ended with {status}; see {}", target.name, place.log.display()));
    }
    Ok(outcome)
}

/// Begins the corpus of targets that have none with their first inputs.
///
/// # Errors
/// One line about what could not be written.
pub fn begin_corpus(plan: &Plan) -> Result<bool, String> {
    for target in &plan.targets {
        let path = corpus::path(target.name);
        if path.exists() {
            continue;
        }
        let mut inputs = seeds::of(target.name);
        inputs.iter_mut().for_each(|input| input.truncate(target.longest));
        fs::write(&path, corpus::pack(inputs))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(true)
}

/// Keeps the inputs that reach all that was reached, the smallest of them, in the repository.
///
/// # Errors
/// As [`run`].
pub fn keep_corpus(plan: &Plan) -> Result<bool, String> {
    let programs = Programs::build(plan)?;
    for target in &plan.targets {
        let place = Place::of(&programs, target)?;
        place.fill(target)?;
        let kept = programs.work.join("kept").join(target.name);
        let failed = |error: std::io::Error| format!("{}: {error}", kept.display());
        if kept.exists() {
            fs::remove_dir_all(&kept).map_err(failed)?;
        }
        fs::create_dir_all(&kept).map_err(failed)?;
        let status = Command::new(programs.of(target.name)?)
            .args(["-merge=1", &format!("-max_len={}", target.longest)])
            .args([format!("-timeout={TIMEOUT_S}"), format!("-rss_limit_mb={MEMORY_MB}")])
            .args([&kept, &place.inputs])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(|error| format!("{}: {error}", target.name))?;
        if !status.success() {
            return Err(format!("{}: the inputs could not be merged: {status}", target.name));
        }
        let inputs: Vec<Vec<u8>> =
            names(&kept).iter().filter_map(|path| fs::read(path).ok()).collect();
        let all = inputs.len();
        let file = corpus::pack(inputs);
        let written = corpus::unpack(&file).map_or(0, |inputs| inputs.len());
        let path = corpus::path(target.name);
        fs::write(&path, &file).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("{:20} {written} of {all} inputs, {} bytes", target.name, file.len());
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_target_with_words_has_a_dictionary() {
        let of = |name: &str| dictionary(plimsoll_fuzzing::target(name).unwrap());
        assert_eq!(of("content_codings"), None);
        let yql = of("yql").unwrap();
        assert!(yql.lines().count() > 5 && yql.starts_with("\"\\x"), "{yql}");
    }
}

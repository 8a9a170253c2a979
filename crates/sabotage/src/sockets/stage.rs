//! Carries a case out and judges it.

use super::case::{Before, Case, Source, TOLERANCE, Target};
use super::process::{Process, address};
use super::quiet::{OTHERS_MAX, Used};
use crate::judging::arrivals::{Seen, seen};
use crate::judging::{Finding, Grade, Range, Reported, Truth, judge, record};
use crate::sabotages::bursts;
use crate::sabotages::confines::Confine;
use crate::sabotages::cores::{self, Neighbours};
use crate::sabotages::live::{self, Doing, Live, Mounted, Quota};
use crate::targets::log::Log;
use crate::targets::observer::Observer;
use crate::targets::proxy::Proxy;
use crate::targets::server::Server;
use plimsoll_core::clock::now_ns;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longest time for preparing a target.
const PREPARING: Duration = Duration::from_secs(60);
/// Seed of the times of bursts.
const BURSTS_SEED: u64 = 1;
/// Number of times that a run is done on a machine that others use.
const TRIES: u32 = 3;
/// Time beyond its limit for which a run is waited for before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(20);

/// Place of runs.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The built program.
    pub program: PathBuf,
    /// The core of targets.
    pub targets_core: usize,
    /// The core of the generator.
    pub generators_core: usize,
}

/// A target and what holds it up.
#[derive(Default)]
struct Held {
    url: String,
    log: Option<Log>,
    observer: Option<Observer>,
    _process: Option<Process>,
    _server: Option<Server>,
    _proxy: Option<Proxy>,
}

/// The disturbance of the run, undone when dropped.
#[derive(Default)]
struct Done {
    _doings: Vec<Doing>,
    _neighbours: Vec<Neighbours>,
    _quotas: Vec<Quota>,
}

impl Stage {
    /// The program that `PLIMSOLL` names, or the one beside this one; the first two cores that may be used.
    ///
    /// # Errors
    /// When there is no such program.
    pub fn here() -> Result<Self, String> {
        let beside = || Some(std::env::current_exe().ok()?.parent()?.join("plimsoll"));
        let program = std::env::var_os("PLIMSOLL").map(PathBuf::from).or_else(beside);
        let program = program.filter(|program| program.exists()).ok_or(
            "no plimsoll beside this program; build it (make build), or name it in PLIMSOLL",
        )?;
        Ok(Self::of(program))
    }

    /// This program, on the first two cores that may be used.
    #[must_use]
    pub fn of(program: PathBuf) -> Self {
        let (targets_core, generators_core) = cores::two();
        Self { program, targets_core, generators_core }
    }

    /// Carries a case out. A run during which others used the machine is done again: neither the target's truth nor
    /// the machine's health is known then; `even_if_busy` takes it all the same.
    ///
    /// # Errors
    /// When the harness itself could not do what the case asks for, or the machine was never quiet.
    pub fn run(&self, case: &Case, even_if_busy: bool) -> Result<Finding, String> {
        let mut others = 0.0;
        for _ in 0..TRIES {
            let before = Used::now();
            let finding = self.run_once(case)?;
            others = Used::now().by_others_since(&before);
            if others <= OTHERS_MAX || even_if_busy {
                return Ok(finding);
            }
        }
        Err(format!("others used {:.0} % of a core {TRIES} times", others * 100.0))
    }

    /// Carries a case out once, in a folder of its own, whoever uses the machine.
    ///
    /// # Errors
    /// When the harness itself could not do what the case asks for.
    pub fn run_once(&self, case: &Case) -> Result<Finding, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let folder = folder.path();
        let mut runs = folder.join("runs");
        let mut _mounted = None;
        let freezes = |live: &Live| matches!(live, Live::FrozenDisk { .. });
        if let Confine::Disk(kilobytes) = case.confine {
            _mounted = Some(Mounted::small(runs.clone(), kilobytes)?);
        } else if case.live.iter().any(freezes) {
            runs = folder.join("frozen");
            _mounted = Some(Mounted::in_a_file(runs.clone())?);
        }
        let mut held = self.target(case)?;
        self.prepare(case, &held.url, folder)?;
        let slow_reader = case.live.contains(&Live::SlowReader);
        let _reader = slow_reader.then(|| live::slow_reader(&folder.join("out"))).transpose()?;
        let core = match case.confine {
            Confine::OnTargetsCore => self.targets_core,
            _ => self.generators_core,
        };
        let begun_ns = now_ns();
        let mut command = self.command(case, folder);
        case.interposed.apply(&mut command, folder)?;
        command.args(arguments(&case.words, &held.url, folder));
        let json = folder.join("run.json");
        command.args(["--quiet", "--json"]).arg(&json).arg("--runs").arg(&runs);
        let mut process = Process::start(command, core, folder)?;
        let done = self.sabotage(case, &process, (&runs, folder))?;
        let ended = process.wait(case.ends_within + PATIENCE)?;
        let took = Duration::from_nanos(now_ns() - begun_ns);
        drop(done);
        end_target_in_few_ports(folder);
        let Some(status) = ended else {
            return Ok(broken(format!("it had not ended after {:.1} s", took.as_secs_f64())));
        };
        let text = std::fs::read_to_string(&json).unwrap_or_default();
        let Ok(value) = serde_json::from_str::<Value>(&text) else {
            let said = std::fs::read_to_string(folder.join("stderr")).unwrap_or_default();
            let said: String = said.chars().take(300).collect();
            // What cannot be had is refused before anything is sent.
            if case.kind == "few files" && status.code() == Some(64) && said.contains("may open") {
                return Ok(Finding { said, defects: Vec::new(), ..broken(String::new()) });
            }
            return Ok(broken(format!("no record, exit {status}: {}", said.trim())));
        };
        Ok(judged(case, &mut held, &value, (status.code(), took)))
    }

    /// Carries a case out and returns the successful requests per second that it reports.
    ///
    /// # Errors
    /// When it leaves no record.
    pub fn rate_of(&self, case: &Case) -> Result<f64, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (folder, held) = (folder.path(), self.target(case)?);
        let json = folder.join("run.json");
        let mut command = self.command(case, folder);
        command.args(arguments(&case.words, &held.url, folder));
        command.args(["--quiet", "--no-record", "--json"]).arg(&json);
        let mut process = Process::start(command, self.generators_core, folder)?;
        process.wait(case.ends_within + PATIENCE)?;
        let text = std::fs::read_to_string(&json).unwrap_or_default();
        let record: Value = serde_json::from_str(&text).map_err(|_| "no record".to_owned())?;
        Ok(record.pointer("/rate/ok_per_s").and_then(Value::as_f64).unwrap_or(0.0))
    }

    fn command(&self, case: &Case, folder: &Path) -> Command {
        match (case.confine, &case.target) {
            (Confine::Ports(ports), Target::Served(words)) => {
                let place = (self.targets_core, folder);
                Confine::in_few_ports(ports, &self.program, words, place)
            }
            (confine, _) => confine.command(&self.program),
        }
    }

    fn target(&self, case: &Case) -> Result<Held, String> {
        let serve = |words: &str| {
            let mut command = Command::new(&self.program);
            command.arg("serve").args(words.split(' '));
            Process::serve(command, self.targets_core)
        };
        let said = |error: std::io::Error| error.to_string();
        Ok(match &case.target {
            // It is started in the generator's own network, where it has this address.
            Target::Served(_) if matches!(case.confine, Confine::Ports(_)) => {
                Held { url: "http://127.0.0.1:8080".to_owned(), ..Held::default() }
            }
            Target::Served(words) => {
                let (process, url) = serve(words)?;
                Held { url, _process: Some(process), ..Held::default() }
            }
            Target::Delayed(words, delay) => {
                let (process, url) = serve(words)?;
                let behind = address(&url)?;
                let proxy = Proxy::start(behind, *delay, self.targets_core).map_err(said)?;
                let url = url.replace(&behind.to_string(), &proxy.address.to_string());
                Held { url, _process: Some(process), _proxy: Some(proxy), ..Held::default() }
            }
            Target::Observed(..) => {
                let observer = Observer::start(self.targets_core)?;
                let url = format!("http://{}", observer.address);
                Held { url, observer: Some(observer), ..Held::default() }
            }
            Target::Scripted(script) => {
                let server = Server::start(*script, self.targets_core).map_err(said)?;
                let (url, log) = (format!("http://{}", server.address), Some(server.log.clone()));
                Held { url, log, _server: Some(server), ..Held::default() }
            }
        })
    }

    fn prepare(&self, case: &Case, url: &str, folder: &Path) -> Result<(), String> {
        if let Target::Observed(count, _) = case.target {
            let numbers: String = (0..count).map(|number| format!("/{number}\n")).collect();
            std::fs::write(folder.join("numbers"), numbers).map_err(|error| error.to_string())?;
        }
        if case.interposed.has_own_stat {
            bursts::write_first_stat(folder)?;
        }
        let (Before::Fed(count) | Before::Written(count)) = case.before else { return Ok(()) };
        let input = folder.join("input.jsonl");
        std::fs::write(&input, operations(count)).map_err(|error| error.to_string())?;
        if matches!(case.before, Before::Written(_)) {
            return Ok(());
        }
        let mut command = Command::new(&self.program);
        command.args(["feed", url, "--quiet", "--no-record"]).arg(&input);
        let mut feed = Process::start(command, self.generators_core, folder)?;
        match feed.wait(PREPARING)? {
            Some(status) if status.success() => Ok(()),
            other => Err(format!("the documents could not be fed: {other:?}")),
        }
    }

    fn sabotage(
        &self,
        case: &Case,
        process: &Process,
        (runs, folder): (&Path, &Path),
    ) -> Result<Done, String> {
        let (pid, mut done) = (process.pid(), Done::default());
        for what in &case.live {
            match *what {
                Live::Pulses { stopped, every } => {
                    done._doings.push(live::pulses(pid, stopped, every));
                }
                Live::Interrupt(after) => done._doings.push(live::interrupt(pid, after)),
                Live::FrozenDisk { frozen, every } => {
                    done._doings.push(live::freezes(runs.to_owned(), frozen, every));
                }
                Live::Neighbours(count) => {
                    done._neighbours.push(Neighbours::on(self.generators_core, count));
                }
                Live::NeighboursAnywhere(count) => {
                    done._neighbours.push(Neighbours::anywhere(count));
                }
                Live::Bursts(absent) => {
                    done._doings.push(bursts::start(pid, absent, BURSTS_SEED, folder)?);
                }
                Live::StoppedOnce { after, stopped } => {
                    done._doings.push(live::stopped_once(pid, after, stopped));
                }
                Live::Quota(percent) => done._quotas.push(Quota::of(pid, percent)?),
                Live::ClockSteps(by) => done._doings.push(live::clock_steps(by)?),
                Live::SlowReader => {}
            }
        }
        Ok(done)
    }
}

/// Puts operations with 10 kB each, one a line.
fn operations(count: u64) -> String {
    let text = "plain words of some length ".repeat(370);
    let mut out = String::new();
    for number in 0..count {
        // Writing to memory cannot fail.
        let _ = writeln!(
            out,
            "{{\"put\":\"id:plimsoll:doc::{number}\",\"fields\":{{\"title\":\"document {number}\",\"body\":\"{text}\"}}}}"
        );
    }
    out
}

/// Words of a command line; what stands between single quotes is one word.
fn arguments(words: &str, url: &str, folder: &Path) -> Vec<String> {
    let bare = url.split_once("://").map_or(url, |(_, rest)| rest);
    let folder = folder.display().to_string();
    let replaced = words.replace("URL", url).replace("ADDRESS", bare).replace("FOLDER", &folder);
    let mut arguments = Vec::new();
    for (number, part) in replaced.split('\'').enumerate() {
        if number % 2 == 1 {
            arguments.push(part.to_owned());
        } else {
            arguments.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    arguments
}

/// The target of a run with few ports outlives the shell that started it.
fn end_target_in_few_ports(folder: &Path) {
    let pid = std::fs::read_to_string(folder.join("pid")).unwrap_or_default();
    if let Some(pid) = pid.trim().parse().ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

fn broken(defect: String) -> Finding {
    let grade = Grade::NotTheTargets;
    Finding { grade, said: String::new(), wrong: None, false_alarm: false, defects: vec![defect] }
}

/// Compares the statements of a record with the truth of its target.
fn judged(case: &Case, held: &mut Held, record: &Value, ended: (Option<i32>, Duration)) -> Finding {
    let mut reported = record::read(record);
    name_limits(&mut reported, case);
    let arrivals = held.observer.take().map(Observer::end);
    let seen = match &case.target {
        Target::Observed(_, rate) => arrivals.map(|arrivals| seen(&arrivals, *rate, reported.ok)),
        _ => None,
    };
    let truth = truth(case, held.log.as_ref(), seen.as_ref());
    let mut finding = judge(&reported, &truth, TOLERANCE);
    if let Some(seen) = seen {
        let is_valid = finding.grade != Grade::NotTheTargets;
        finding.wrong = seen.contradicts(record, is_valid).or(finding.wrong);
        finding.said = format!("{}; {}", finding.said, seen.words(record));
    }
    look_further(case, record, &reported, ended, &mut finding);
    finding
}

fn truth(case: &Case, log: Option<&Log>, seen: Option<&Seen>) -> Truth {
    let figures = match (&case.source, log) {
        (Source::Arrivals, _) => seen.map_or([None; 4], Seen::figures),
        (Source::Known(figures), _) => *figures,
        (Source::Log(rate), Some(log)) => {
            let [p50, p95, p99] = log.held_ms([0.50, 0.95, 0.99]).map(|ms| Some(Range::exact(ms)));
            [p50, p95, p99, *rate]
        }
        _ => [None; 4],
    };
    Truth { figures, healthy: case.healthy, kinds: case.kinds, limits: case.limits.clone() }
}

/// Limits go by the name that the case gives them, whatever stands behind it in the record.
fn name_limits(reported: &mut Reported, case: &Case) {
    for (name, _) in &mut reported.limits {
        let is = |known: &&(String, bool)| {
            let rest = name.strip_prefix(&known.0);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '.'))
        };
        if let Some((known, _)) = case.limits.iter().find(is) {
            name.clone_from(known);
        }
    }
}

/// Exit code, time, and the numbers of the record.
fn look_further(
    case: &Case,
    record: &Value,
    reported: &Reported,
    (code, took): (Option<i32>, Duration),
    finding: &mut Finding,
) {
    let missed = reported.limits.iter().any(|(_, held)| !held);
    let expected: &[i32] = match reported.kind.as_str() {
        // The result was printed, and its record is lost.
        "valid" if matches!(case.confine, Confine::Disk(_)) => &[1],
        "valid" if missed => &[2],
        "valid" => &[0],
        "target-failed" => &[4],
        _ => &[3],
    };
    if !code.is_some_and(|code| expected.contains(&code)) {
        let kind = &reported.kind;
        finding.defects.push(format!("exit {code:?} with verdict {kind}, limits missed: {missed}"));
    }
    if took > case.ends_within {
        let (took, most) = (took.as_secs_f64(), case.ends_within.as_secs_f64());
        finding.defects.push(format!("it took {took:.1} s, {most:.1} s at most"));
    }
    for (pointer, expected) in &case.numbers {
        let found = record.pointer(pointer).and_then(Value::as_f64);
        if found != Some(*expected) && finding.grade != Grade::NotTheTargets {
            finding.defects.push(format!("{pointer} is {found:?}, not {expected}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        let words = "load ADDRESS --check 'body=~a b' --out FOLDER/x URL";
        let expected = ["load", "h:1", "--check", "body=~a b", "--out", "/f/x", "http://h:1"];
        assert_eq!(arguments(words, "http://h:1", Path::new("/f")), expected);
    }

    #[test]
    fn exit_codes_that_do_not_fit_and_runs_that_take_too_long_are_defects() {
        let case = Case::new("nothing", Target::Served("null"), "", 1.0, 1.0);
        let valid = Reported { kind: "valid".to_owned(), ..Reported::default() };
        let missed = Reported { limits: vec![("p95".to_owned(), false)], ..valid.clone() };
        let soon = Duration::from_secs(1);
        for (reported, code, took, defects) in [
            (&valid, 0, soon, 0),
            (&valid, 2, soon, 1),
            (&missed, 2, soon, 0),
            (&missed, 0, soon, 1),
            (&valid, 0, Duration::from_secs(60), 1),
        ] {
            let mut finding = broken(String::new());
            finding.defects.clear();
            look_further(&case, &Value::Null, reported, (Some(code), took), &mut finding);
            assert_eq!(finding.defects.len(), defects, "{reported:?} {code} {took:?}");
        }
    }
}

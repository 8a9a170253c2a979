//! Several runs of a job: median, spread, and the geometric mean over jobs.

mod sheet;

use crate::error::RecordError;
use crate::folder::RUN_JSON;
use crate::number::significant;
use crate::run_json::run_json_text;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_record::catalogue::CatalogueEntry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The figure of runs whose job names none.
const PLAIN_METRIC: &str = "/rate/ok_per_s";

/// One run of the past.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PastRun {
    /// Folder of its record.
    pub folder: PathBuf,
    /// Its id.
    pub run_id: String,
    /// The name of its job in the catalogue, or the command.
    pub job: String,
    /// The target, if the run has no name of its own: figures of several targets are not one figure's spread.
    pub target: Option<String>,
    /// Name that the user gave it; empty if none.
    #[serde(skip)]
    pub name: String,
    /// Labels that the user gave it.
    #[serde(skip)]
    pub labels: BTreeMap<String, String>,
    /// UTC.
    pub started_at: String,
    /// Verdict; only `valid` runs are counted.
    pub verdict: VerdictKind,
    /// JSON pointer of the figure in its record.
    pub metric: String,
    /// The figure; NaN if the source of an import does not give it.
    pub value: f64,
    /// The figure by the job's baseline, when it has one.
    pub score: Option<f64>,
}

impl PastRun {
    /// Returns true if it takes part in the statistics: it is valid and came to something.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.verdict == VerdictKind::Valid && self.value > 0.0
    }
}

/// The figures of the runs of one job that count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Number of runs.
    pub runs: usize,
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// Their mean.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// `(max - min) / median`, %.
    pub spread_pct: f64,
    /// Sample standard deviation by the mean, %; `None` for one run.
    pub stdev_pct: Option<f64>,
}

impl Spread {
    /// Of these figures; `None` when there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let (n, half) = (sorted.len(), sorted.len() / 2);
        let median =
            if n % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) };
        let mean = sorted.iter().sum::<f64>() / n as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let stdev_pct = (n > 1).then(|| (squares / (n - 1) as f64).sqrt() / mean * 100.0);
        let spread_pct = (max - min) / median * 100.0;
        Some(Self { runs: n, median, mean, min, max, spread_pct, stdev_pct })
    }
}

/// The runs of one job; of a command without a name of its own, those on one target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobHistory {
    /// Its name.
    pub job: String,
    /// The target, where runs of other targets stand apart.
    pub target: Option<String>,
    /// All its runs, oldest first, also those that do not count.
    pub runs: Vec<PastRun>,
    /// The raw figures of those that count.
    pub values: Option<Spread>,
    /// Their scores, when the job has a baseline.
    pub scores: Option<Spread>,
}

impl JobHistory {
    /// The runs of a job, those of each target by themselves where the job has no name of its own.
    fn of(job: &str, past: &[PastRun], newest_only: bool) -> Vec<Self> {
        let mut runs: Vec<PastRun> = past.iter().filter(|run| run.job == job).cloned().collect();
        if newest_only {
            runs.drain(..runs.len().saturating_sub(1));
        }
        let mut targets: Vec<Option<String>> = Vec::new();
        for run in &runs {
            if !targets.contains(&run.target) {
                targets.push(run.target.clone());
            }
        }
        if targets.is_empty() {
            targets.push(None);
        }
        let one = |target: Option<String>| {
            let of_target = runs.iter().filter(|run| run.target == target).cloned();
            let runs: Vec<PastRun> = of_target.collect();
            let counted = || runs.iter().filter(|run| run.counts());
            let values: Vec<f64> = counted().map(|run| run.value).collect();
            let scores: Vec<f64> = counted().filter_map(|run| run.score).collect();
            let (values, scores) = (Spread::of(&values), Spread::of(&scores));
            Self { job: job.to_owned(), target, values, scores, runs }
        };
        targets.into_iter().map(one).collect()
    }
}

/// Several jobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct History {
    /// Name and version of this shape.
    pub schema: &'static str,
    /// The jobs, in the order in which they were asked for.
    pub jobs: Vec<JobHistory>,
    /// Geometric mean of the jobs' median scores; `None` when no job has one.
    pub geometric_mean: Option<f64>,
    /// True if jobs are missing from it: without a run that counts, or without a baseline.
    pub partial: bool,
}

#[derive(Deserialize)]
struct Head {
    run_id: String,
    job: String,
    started_at: String,
    rate: HeadRate,
    verdict: Verdict,
    catalogue: Option<CatalogueEntry>,
    #[serde(default)]
    target: HeadTarget,
    #[serde(default)]
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// The rate of a run; `None` if the source of an import does not give it.
#[derive(Deserialize)]
struct HeadRate {
    ok_per_s: Option<f64>,
}

#[derive(Default, Deserialize)]
struct HeadTarget {
    #[serde(default)]
    url: String,
}

/// Names of commands: a run that is called so has no job of the catalogue.
const UNNAMED: [&str; 5] = ["load", "fbench", "seek", "feed", "import"];

/// Runs of the past, oldest first.
#[derive(Debug, Default)]
pub struct Past {
    /// Those whose records can be read.
    pub runs: Vec<PastRun>,
    /// Reason why others are left out.
    pub left_out: Vec<RecordError>,
}

/// All runs in a folder of runs, oldest first.
///
/// # Errors
/// When `runs_dir` cannot be read or holds no record.
pub fn past_runs(runs_dir: &Path) -> Result<Past, RecordError> {
    let no_runs = || RecordError::NoRuns { path: runs_dir.to_owned() };
    let entries = match fs::read_dir(runs_dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(no_runs()),
        Err(source) => return Err(RecordError::Read { path: runs_dir.to_owned(), source }),
    };
    let mut folders: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join(RUN_JSON).is_file())
        .collect();
    folders.sort();
    if folders.is_empty() {
        return Err(no_runs());
    }
    let mut past = Past::default();
    for folder in folders {
        match past_run(folder) {
            Ok(run) => past.runs.push(run),
            Err(error) => past.left_out.push(error),
        }
    }
    Ok(past)
}

fn past_run(folder: PathBuf) -> Result<PastRun, RecordError> {
    let path = folder.join(RUN_JSON);
    let text = run_json_text(&path)?;
    let head: Head = plimsoll_record::read_as(&text)
        .map_err(|problem| RecordError::Damaged { path, problem })?;
    let plain = (PLAIN_METRIC.to_owned(), head.rate.ok_per_s.unwrap_or(f64::NAN));
    let unnamed = head.catalogue.is_none() && UNNAMED.contains(&head.job.as_str());
    let target = unnamed.then_some(head.target.url);
    let (job, (metric, value), score) = match head.catalogue {
        Some(entry) => (entry.name, entry.metric.zip(entry.value).unwrap_or(plain), entry.score),
        None => (head.job, plain, None),
    };
    let (run_id, started_at) = (head.run_id, head.started_at);
    Ok(PastRun {
        folder,
        run_id,
        job,
        target,
        name: head.name,
        labels: head.labels,
        started_at,
        verdict: head.verdict.kind,
        metric,
        value,
        score,
    })
}

impl History {
    /// The history of these jobs. With `newest_only`, of each only the last run.
    #[must_use]
    pub fn of(jobs: &[String], past: &[PastRun], newest_only: bool) -> Self {
        let jobs: Vec<JobHistory> =
            jobs.iter().flat_map(|job| JobHistory::of(job, past, newest_only)).collect();
        let medians: Vec<f64> =
            jobs.iter().filter_map(|job| job.scores).map(|score| score.median).collect();
        let logs: f64 = medians.iter().map(|median| median.ln()).sum();
        Self {
            schema: "plimsoll.history/1",
            geometric_mean: (!medians.is_empty()).then(|| (logs / medians.len() as f64).exp()),
            partial: medians.len() < jobs.len(),
            jobs,
        }
    }

    /// As text.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        for job in &self.jobs {
            render_job(&mut out, job);
        }
        let mean = match self.geometric_mean {
            Some(mean) if self.partial => {
                format!("{} (partial: some jobs have no score)", significant(mean))
            }
            Some(mean) => significant(mean),
            None => "- (no job has a baseline and a run that counts)".to_owned(),
        };
        // Writing to a text cannot fail.
        let _ = writeln!(out, "Geometric mean of scores   {mean}");
        out
    }
}

fn render_job(out: &mut String, job: &JobHistory) {
    let target = job.target.as_ref().map_or(String::new(), |target| format!("  {target}"));
    let _ = writeln!(out, "{}{target}", job.job);
    let metric = job.runs.last().map_or(PLAIN_METRIC, |run| &run.metric).trim_start_matches('/');
    if job.runs.is_empty() {
        let _ = writeln!(out, "  no run in this folder\n");
        return;
    }
    let _ = writeln!(
        out,
        "  {:<20}  {:<8}  {:>12}  {:>9}  {metric}",
        "started", "run", "value", "score"
    );
    for run in &job.runs {
        let score = run.score.map_or("-".to_owned(), significant);
        let note = match run.verdict {
            _ if run.counts() => String::new(),
            VerdictKind::Valid => "  not counted: 0".to_owned(),
            kind => format!("  not counted: {}", kind.name()),
        };
        let value = if run.value.is_nan() { "unknown".to_owned() } else { significant(run.value) };
        let id = &run.run_id;
        let line = format!("  {:<20}  {id:<8}  {value:>12}  {score:>9}{note}", run.started_at);
        let _ = writeln!(out, "{line}");
    }
    for (name, spread) in [("value", job.values), ("score", job.scores)] {
        let Some(s) = spread.filter(|spread| spread.runs > 1) else { continue };
        let stdev = s.stdev_pct.map_or("-".to_owned(), |pct| format!("{pct:.2} %"));
        let _ = writeln!(
            out,
            "  {name}: median {} of {} runs, {} to {} (spread {:.2} %, stdev {stdev})",
            significant(s.median),
            s.runs,
            significant(s.min),
            significant(s.max),
            s.spread_pct,
        );
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::{RunFolder, amend};
    use crate::samples;
    use plimsoll_record::JobResults;

    fn run(job: &str, value: f64, score: Option<f64>, verdict: VerdictKind) -> PastRun {
        PastRun {
            name: String::new(),
            labels: BTreeMap::new(),
            folder: PathBuf::from("runs/x"),
            run_id: "1a2b3c4d".to_owned(),
            job: job.to_owned(),
            target: None,
            started_at: "2026-11-21T20:48:22Z".to_owned(),
            verdict,
            metric: PLAIN_METRIC.to_owned(),
            value,
            score,
        }
    }

    #[test]
    fn known_spreads() {
        assert_eq!(Spread::of(&[]), None);
        let one = Spread::of(&[5.0]).unwrap();
        assert_eq!((one.median, one.spread_pct, one.stdev_pct), (5.0, 0.0, None));
        let four = Spread::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((four.median, four.mean, four.min, four.max), (2.5, 2.5, 1.0, 4.0));
        assert!((four.spread_pct - 120.0).abs() < 1e-9);
        // The sample standard deviation of 1, 2, 3, 4 is sqrt(5/3).
        assert!((four.stdev_pct.unwrap() - (5.0f64 / 3.0).sqrt() / 2.5 * 100.0).abs() < 1e-9);
    }

    #[test]
    fn the_geometric_mean_is_of_medians_and_tells_what_is_missing() {
        let valid = VerdictKind::Valid;
        let past = [
            run("a", 100.0, Some(1.0), valid),
            run("a", 200.0, Some(2.0), valid),
            run("a", 900.0, Some(9.0), VerdictKind::GeneratorLimited),
            run("a", 400.0, Some(4.0), valid),
            run("b", 80.0, Some(8.0), valid),
            run("b", 0.0, Some(0.0), valid),
            run("c", 5.0, None, valid),
        ];
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let two = History::of(&names(&["a", "b"]), &past, false);
        assert!((two.geometric_mean.unwrap() - 4.0).abs() < 1e-9 && !two.partial);
        assert_eq!(two.jobs[0].values.unwrap().runs, 3);
        let text = two.render();
        assert!(text.contains("not counted: generator-limited"), "{text}");
        assert!(text.contains("not counted: 0"), "{text}");
        let three = History::of(&names(&["a", "b", "c"]), &past, false);
        assert!((three.geometric_mean.unwrap() - 4.0).abs() < 1e-9 && three.partial);
        assert!(three.render().contains("partial"));
        let last = History::of(&names(&["a"]), &past, true);
        assert_eq!(last.jobs[0].scores.unwrap().median, 4.0);
        let none = History::of(&names(&["d"]), &past, false);
        assert!(none.geometric_mean.is_none() && none.partial);
    }

    #[test]
    fn several_runs_are_a_table_and_a_plot_with_their_median() {
        let valid = VerdictKind::Valid;
        let later = |hour: u32, run: PastRun| PastRun {
            started_at: format!("2026-11-21T{hour:02}:00:00Z"),
            ..run
        };
        let past = [
            later(1, run("a", 100.0, Some(1.0), valid)),
            later(3, run("a", 200.0, Some(2.0), valid)),
            later(4, run("a", 900.0, None, VerdictKind::GeneratorLimited)),
        ];
        let history = History::of(&["a".to_owned()], &past, false);
        let sheet = history.sheet();
        samples::check_places_in(&sheet, &serde_json::to_value(&history).unwrap());
        let text = samples::outline(&sheet, &["decide", "job-1"]);
        for part in [
            "a | 2 </jobs/0/values/runs> | 150 </jobs/0/values/median> | 100",
            "900 </jobs/0/runs/2/value> | unknown | no: generator-limited [Warn]",
            "line value (neutral) 3 of 3: Some(100.0) Some(900.0)",
            "dots not counted (bad) 1 of 3",
            "level 150: median 150",
        ] {
            assert!(text.contains(part), "no '{part}' in\n{text}");
        }
        assert_eq!(sheet.title, "a: 3 runs");
    }

    #[test]
    fn runs_without_a_name_are_compared_with_those_on_the_same_target() {
        let on = |target: &str, value| PastRun {
            target: Some(target.to_owned()),
            ..run("load", value, None, VerdictKind::Valid)
        };
        let past = [on("http://a/", 100.0), on("http://b/", 9000.0), on("http://a/", 110.0)];
        let history = History::of(&["load".to_owned()], &past, false);
        let spreads: Vec<_> = history.jobs.iter().map(|job| job.values.unwrap()).collect();
        assert_eq!(spreads.len(), 2);
        assert_eq!((spreads[0].runs, spreads[0].max, spreads[1].runs), (2, 110.0, 1));
        assert!(history.render().contains("load  http://a/\n"), "{}", history.render());
        let newest = History::of(&["load".to_owned()], &past, true);
        assert_eq!((newest.jobs.len(), newest.jobs[0].runs[0].value), (1, 110.0));
    }

    #[test]
    fn runs_are_read_back_from_their_folders() {
        let dir = tempfile::tempdir().unwrap();
        for (second, score) in [(0, None), (1, Some(3.0))] {
            let at_us = 1_795_294_102_123_456 + second * 1_000_000;
            let folder = RunFolder::create(dir.path(), "load", at_us).unwrap();
            folder.finish(&samples::good()).unwrap();
            if score.is_some() {
                let name = "mine".to_owned();
                let entry = CatalogueEntry { name, score, ..CatalogueEntry::default() };
                amend(folder.path(), JobResults::of(entry)).unwrap();
            }
        }
        std::fs::create_dir(dir.path().join("no-record")).unwrap();
        let damaged = dir.path().join("no-catalogue");
        std::fs::create_dir(&damaged).unwrap();
        let entry = serde_json::json!({"name": 1});
        let mut record = serde_json::to_value(samples::good()).unwrap();
        record["catalogue"] = entry;
        std::fs::write(damaged.join(RUN_JSON), record.to_string()).unwrap();
        let Past { runs: past, left_out } = past_runs(dir.path()).unwrap();
        let told: Vec<String> = left_out.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("no-catalogue/run.json") && told[0].contains("catalogue.name"));
        let jobs: Vec<&str> = past.iter().map(|run| run.job.as_str()).collect();
        assert_eq!(jobs, ["load", "mine"]);
        assert_eq!(past[0].value, samples::good().rate.ok_per_s);
        assert_eq!(past[1].score, Some(3.0));
        assert!(past_runs(&dir.path().join("nowhere")).is_err());
    }
}

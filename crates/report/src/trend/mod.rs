//! The history of runs: the trend of each figure for each job, target, settings and machine, with the changes of level in it.
//!
//! A change is a candidate: runs of a history were not interleaved, so that a change of the machine looks like one of the target.

mod sheet;
mod text;

use crate::command::shell;
use crate::figures::{Figure, Unit, name};
use crate::likeness::Likeness;
use crate::past::{Run, Runs};
use plimsoll_core::verdict::VerdictKind;
use plimsoll_decide::change_points::{ChangePoint, SERIES_LEAST, Terms, change_points};
use plimsoll_decide::rule::Better;
use serde::Serialize;

/// Findings in one direction, with none in the other, from which the machine is suspected.
pub const SUSPECT: usize = 10;

/// The history of a folder of runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trend {
    /// Name and version of this shape.
    pub schema: &'static str,
    /// The folder.
    pub folder: String,
    /// Runs that are like each other, by job.
    pub groups: Vec<Group>,
    /// Remarks on all findings together.
    pub remarks: Vec<String>,
}

/// Runs of one job with the same target, settings and machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// Properties that the runs have in common.
    #[serde(flatten)]
    pub likeness: Likeness,
    /// The load in words.
    pub load: String,
    /// The runs, oldest first.
    pub runs: Vec<Shown>,
    /// The figures.
    pub trends: Vec<Figures>,
}

/// A run of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shown {
    /// Its id.
    pub run_id: String,
    /// UTC.
    pub started_at: String,
    /// Version and commit of the program that measured.
    pub tool: String,
    /// Name and labels that the user gave it.
    pub called: String,
    /// Verdict; only `valid` runs count.
    pub verdict: VerdictKind,
}

/// One figure over all runs of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Name of the metric, as `--fail-on` has it.
    pub metric: &'static str,
    /// The part of the run that it is of; empty for the run as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub of: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Value of each run, in their order; `None` if it has none.
    pub values: Vec<Option<f64>>,
    /// Runs that count: valid, with a value.
    pub counted: usize,
    /// Median of the runs that count.
    pub median: Option<f64>,
    /// Changes of level, oldest first.
    pub findings: Vec<Finding>,
}

impl Figures {
    /// Returns the metric and what it is of.
    #[must_use]
    pub fn name(&self) -> String {
        name(self.metric, &self.of)
    }
}

/// A change of level: a candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Index of the first run with the new level in the runs of the group.
    pub at: usize,
    /// Its id.
    pub run_id: String,
    /// Its start, UTC.
    pub started_at: String,
    /// The run before it, which counts.
    pub after: String,
    /// Level before the change: the median of the runs that count since the change before.
    pub before_level: f64,
    /// Level behind it.
    pub level: f64,
    /// Share of random orders of the runs with as large a change, 0 to 1.
    pub p_value: f64,
    /// `better` or `worse`.
    pub direction: &'static str,
    /// Command that confirms the change, or shows that it was the machine's. `BEFORE` and `AFTER` stand for the addresses of the
    /// target before and after the change.
    pub confirm: String,
}

impl Trend {
    /// Returns the history of these runs.
    #[must_use]
    pub fn of(folder: &str, runs: &Runs) -> Self {
        let mut likenesses: Vec<&Likeness> = Vec::new();
        for run in &runs.runs {
            if !likenesses.contains(&&run.likeness) {
                likenesses.push(&run.likeness);
            }
        }
        likenesses.sort_by(|a, b| a.job.cmp(&b.job).then_with(|| a.target.cmp(&b.target)));
        let group = |likeness: &&Likeness| {
            let own: Vec<&Run> =
                runs.runs.iter().filter(|run| run.likeness == **likeness).collect();
            Group::of(likeness, &own)
        };
        let groups: Vec<Group> = likenesses.iter().map(group).collect();
        let mut remarks: Vec<String> = suspicion(&groups).into_iter().collect();
        if runs.older > 0 {
            remarks.push(format!("{} older runs are not shown", runs.older));
        }
        Self { schema: "plimsoll.trend/1", folder: folder.to_owned(), groups, remarks }
    }

    /// Returns all findings.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.groups.iter().flat_map(|group| &group.trends).flat_map(|trend| &trend.findings)
    }
}

/// Many findings all in one direction: a change of targets has some in the other too.
fn suspicion(groups: &[Group]) -> Option<String> {
    let all = || groups.iter().flat_map(|group| &group.trends).flat_map(|trend| &trend.findings);
    let worse = all().filter(|finding| finding.direction == "worse").count();
    let count = all().count();
    let one_sided = worse == 0 || worse == count;
    (count >= SUSPECT && one_sided).then(|| {
        let direction = if worse == 0 { "better" } else { "worse" };
        format!(
            "suspect the machine: all {count} findings are {direction}; look for another program, clock rate or kernel first"
        )
    })
}

impl Group {
    fn of(likeness: &Likeness, runs: &[&Run]) -> Self {
        let mut figures: Vec<&Figure> = Vec::new();
        for figure in runs.iter().flat_map(|run| &run.figures) {
            if !figures.iter().any(|known| known.is_same(figure)) {
                figures.push(figure);
            }
        }
        figures.sort_by_key(|figure| !figure.of.is_empty());
        let shown = |run: &&Run| Shown {
            run_id: run.run_id.clone(),
            started_at: run.started_at.clone(),
            tool: run.tool.clone(),
            called: run.called.clone(),
            verdict: run.verdict,
        };
        Self {
            likeness: likeness.clone(),
            load: likeness.load(),
            runs: runs.iter().map(shown).collect(),
            trends: figures.into_iter().map(|figure| trend(figure, runs)).collect(),
        }
    }

    /// Returns the number of runs that count.
    #[must_use]
    pub fn counted(&self) -> usize {
        self.runs.iter().filter(|run| run.verdict == VerdictKind::Valid).count()
    }
}

fn trend(figure: &Figure, runs: &[&Run]) -> Figures {
    let values: Vec<Option<f64>> =
        runs.iter().map(|run| run.figure(figure).map(|own| own.value)).collect();
    let valid = |index: &usize| runs[*index].verdict == VerdictKind::Valid;
    let places: Vec<usize> =
        (0..runs.len()).filter(|index| valid(index) && values[*index].is_some()).collect();
    let counted: Vec<f64> = places.iter().filter_map(|index| values[*index]).collect();
    let points = change_points(&counted, &Terms::default());
    let finding = |point: &ChangePoint| finding(figure, point, &counted, &places, runs);
    Figures {
        metric: figure.metric,
        of: figure.of.clone(),
        unit: figure.unit,
        counted: counted.len(),
        median: median(&counted),
        findings: points.iter().map(finding).collect(),
        values,
    }
}

fn finding(
    figure: &Figure,
    point: &ChangePoint,
    counted: &[f64],
    places: &[usize],
    runs: &[&Run],
) -> Finding {
    let level = |from: usize, to: usize| median(&counted[from..to]).unwrap_or(f64::NAN);
    let (before_level, now) = (level(point.from, point.at), level(point.at, point.to));
    let rises = now > before_level;
    let is_better = rises == (figure.better() == Better::Higher);
    let (first, before) = (runs[places[point.at]], runs[places[point.at - 1]]);
    Finding {
        at: places[point.at],
        run_id: first.run_id.clone(),
        started_at: first.started_at.clone(),
        after: before.run_id.clone(),
        before_level,
        level: now,
        p_value: point.p_value,
        direction: if is_better { "better" } else { "worse" },
        confirm: confirm(figure.metric, first),
    }
}

/// Flags of a run that say where its result goes, and their values: a comparison has its own.
const OUTPUT_FLAGS: [(&str, bool); 15] = [
    ("--live", false),
    ("--json", true),
    ("--junit", true),
    ("--csv", true),
    ("--html", true),
    ("--runs", true),
    ("--name", true),
    ("--label", true),
    ("--stream", true),
    ("--otlp", true),
    ("--seed", true),
    ("--assert", true),
    ("--quiet", false),
    ("--verbose", false),
    ("--no-record", false),
];

/// Flags of a job with values that a comparison rejects: it has its own budget and search, and judges no block by a limit.
fn of_own_runs(job: &str) -> &'static [(&'static str, bool)] {
    match job {
        "load" | "voter" | "hello" => &[("--slo", true)],
        "seek" => {
            &[("--budget", true), ("--width", true), ("--confidence", true), ("--strategy", true)]
        }
        _ => &[],
    }
}

/// The command that confirms a change: both targets in turn, under the load of the run.
fn confirm(metric: &str, run: &Run) -> String {
    let mut words =
        run.command.iter().skip_while(|word| word.rsplit('/').next() == Some("plimsoll"));
    let mut load = Vec::new();
    while let Some(word) = words.next() {
        let is_flag = |(flag, _): &&(&str, bool)| {
            word == flag || word.strip_prefix(flag).is_some_and(|rest| rest.starts_with('='))
        };
        match OUTPUT_FLAGS.iter().chain(of_own_runs(&run.likeness.job)).find(is_flag) {
            Some((flag, has_value)) if *has_value && word == flag => drop(words.next()),
            Some(_) => {}
            None => load.push(word.clone()),
        }
    }
    let load = if load.is_empty() { run.likeness.job.clone() } else { shell(&load) };
    format!("plimsoll ab --a BEFORE --b AFTER --on {metric} -- {load}")
}

/// The middle value, or the mean of the two in the middle.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[n / 2]),
        n => Some(f64::midpoint(sorted[n / 2 - 1], sorted[n / 2])),
    }
}

/// Words for a group that is too short for changes.
fn too_short(counted: usize) -> Option<String> {
    (counted < SERIES_LEAST)
        .then(|| format!("plimsoll looks for changes once {SERIES_LEAST} runs count"))
}

#[cfg(test)]
mod tests;

//! Several runs as a page that is data: a table and a plot for each job. Places of numbers are those in the JSON of the history.

use super::{History, JobHistory, PLAIN_METRIC, PastRun, Spread};
use crate::number::{counted, significant};
use crate::sheet::{Cell, Field, Listed, OfRuns, Part, Plot, Section, Sheet, Table, Tone};
use plimsoll_core::verdict::VerdictKind;

impl History {
    /// Returns the page of these runs.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        let runs: usize = self.jobs.iter().map(|job| job.runs.len()).sum();
        let mut sections = vec![self.overview()];
        sections.extend(self.jobs.iter().enumerate().map(|(index, job)| section(index, job)));
        let jobs = counted(self.jobs.len() as u64, "job");
        let all = || self.jobs.iter().flat_map(|job| &job.runs);
        let first = all().map(|run| run.started_at.as_str()).min().unwrap_or_default();
        let last = all().map(|run| run.started_at.as_str()).max().unwrap_or_default();
        let counted_runs = all().filter(|run| run.counts()).count();
        Sheet {
            title: match self.jobs.as_slice() {
                [one] => format!("{}: {}", one.job, counted(runs as u64, "run")),
                _ => format!("{} of {jobs}", counted(runs as u64, "run")),
            },
            when: format!("{first} to {last}"),
            verdict: "history".to_owned(),
            tone: if counted_runs == runs { Tone::Good } else { Tone::Warn },
            outcome: format!(
                "{counted_runs} of {} count: valid, and not 0.",
                counted(runs as u64, "run")
            ),
            sections,
            footer: vec![format!("plimsoll {}", env!("CARGO_PKG_VERSION"))],
        }
    }

    /// One row a job: median, spread and score.
    fn overview(&self) -> Section {
        let heads =
            ["job", "#runs that count", "#median", "#smallest", "#largest", "#spread", "#score"];
        let mut table = Table::new(&heads).sortable();
        for (index, job) in self.jobs.iter().enumerate() {
            let place = index.to_string();
            let at = |of: &'static str, field: &'static str| ["jobs", place.as_str(), of, field];
            let known = |spread: Option<Spread>,
                         of: &'static str,
                         field: &'static str,
                         value: fn(&Spread) -> f64| {
                Cell::or_unknown(spread, |spread| {
                    Cell::number(value(&spread), significant(value(&spread)))
                })
                .from(&at(of, field))
            };
            let runs = job.values.map_or(Cell::count(0), |values| {
                Cell::count(values.runs as u64).from(&at("values", "runs"))
            });
            let spread = Cell::or_unknown(job.values, |values| {
                Cell::number(values.spread_pct, format!("{:.2} %", values.spread_pct))
            });
            let cells = vec![
                Cell::text(name(job)),
                runs,
                known(job.values, "values", "median", |spread| spread.median),
                known(job.values, "values", "min", |spread| spread.min),
                known(job.values, "values", "max", |spread| spread.max),
                spread.from(&at("values", "spread_pct")),
                known(job.scores, "scores", "median", |spread| spread.median),
            ];
            table.row(if job.values.is_some() { Tone::Plain } else { Tone::Warn }, cells);
        }
        let mean =
            Cell::or_unknown(self.geometric_mean, |mean| Cell::number(mean, significant(mean)));
        let mut facts = vec![(
            "geometric mean of the median scores".to_owned(),
            mean.from(&["geometric_mean"]),
        )];
        if self.partial {
            let why = "jobs without a run that counts, or without a baseline, have no score";
            facts.push(("partial".to_owned(), Cell::text(why)));
        }
        let note = "Median of the runs that count. spread: largest less smallest, over the median. score: median figure over the \
                    baseline of the job.";
        Section::new("decide", "To decide from", note)
            .with(Part::Table(table))
            .with(Part::Facts(facts))
    }
}

fn name(job: &JobHistory) -> String {
    match &job.target {
        Some(target) => format!("{} {target}", job.job),
        None => job.job.clone(),
    }
}

/// All runs of a job.
fn section(index: usize, job: &JobHistory) -> Section {
    let place = index.to_string();
    let at = ["jobs", place.as_str(), "runs"];
    let list = Listed { at: &at, items: &job.runs };
    let fields = [
        Field::text("started", |run: &PastRun| run.started_at.clone()),
        Field::text("run", |run: &PastRun| run.run_id.clone()),
        Field::new("value", "value", |run: &PastRun| {
            Cell::number(run.value, significant(run.value))
        }),
        Field::new("score", "score", |run: &PastRun| {
            Cell::or_unknown(run.score, |score| Cell::number(score, significant(score)))
        }),
        Field::text("counted", |run: &PastRun| match run.verdict {
            _ if run.counts() => "yes".to_owned(),
            VerdictKind::Valid => "no: 0".to_owned(),
            kind => format!("no: {}", kind.name()),
        }),
    ];
    let tone = |run: &PastRun| if run.counts() { Tone::Plain } else { Tone::Warn };
    let metric = job.runs.last().map_or(PLAIN_METRIC, |run| &run.metric).trim_start_matches('/');
    let note = format!("value: {metric} of the record of each run, oldest run first.");
    let id = format!("job-{}", index + 1);
    let section = Section::new(&id, &name(job), &note);
    if job.runs.is_empty() {
        return section.with(Part::Text(Tone::Warn, "No run in this folder.".to_owned()));
    }
    let twin = list.some(&fields, Plot::TWIN_ROWS_MAX, tone);
    let shown = plot(&id, job, twin);
    section.with(Part::Plot(Box::new(shown))).with(Part::Table(list.table(&fields, tone)))
}

/// The figures of the runs in the order of time, with their median.
fn plot(id: &str, job: &JobHistory, twin: Table) -> Plot {
    let values = |is_shown: fn(&PastRun) -> bool| {
        job.runs.iter().map(|run| Some(run.value).filter(|_| is_shown(run))).collect()
    };
    let shown = OfRuns {
        name: "value".to_owned(),
        line: values(|_| true),
        counted: values(PastRun::counts),
        others: values(|run| !run.counts()),
        median: job.values.map(|values| (values.median, significant(values.median))),
        marks: Vec::new(),
    };
    shown.plot(id, "Figure of each run, and their median".to_owned(), twin)
}

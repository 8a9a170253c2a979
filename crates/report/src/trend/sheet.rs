//! A history as a page: an overview, and a plot of each figure with its changes.

use super::text::words;
use super::{Figures, Group, Trend, too_short};
use crate::number::counted;
use crate::sheet::{Cell, Mark, OfRuns, Part, Plot, Section, Sheet, Table, Tone};
use plimsoll_core::verdict::VerdictKind;

impl Trend {
    /// Returns the page of the history.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        let runs: usize = self.groups.iter().map(|group| group.runs.len()).sum();
        let all = || self.groups.iter().flat_map(|group| &group.runs);
        let first = all().map(|run| run.started_at.as_str()).min().unwrap_or_default();
        let last = all().map(|run| run.started_at.as_str()).max().unwrap_or_default();
        let findings = self.findings().count();
        let sections = self.groups.iter().enumerate().map(|(index, group)| section(index, group));
        Sheet {
            title: format!("history of {}", counted(runs as u64, "run")),
            when: format!("{first} to {last}"),
            verdict: "history".to_owned(),
            tone: if findings == 0 { Tone::Good } else { Tone::Warn },
            outcome: match findings {
                0 => "No change of level was found.".to_owned(),
                many => format!(
                    "{}: candidates, until 'plimsoll ab' has confirmed them.",
                    counted(many as u64, "change")
                ),
            },
            sections: std::iter::once(self.overview()).chain(sections).collect(),
            footer: vec![format!("plimsoll {}", env!("CARGO_PKG_VERSION"))],
        }
    }

    fn overview(&self) -> Section {
        let heads =
            ["job", "change", "first run with it", "#before", "#after", "#p", "confirm with"];
        let mut table = Table::new(&heads).sortable();
        for group in &self.groups {
            for trend in &group.trends {
                for finding in &trend.findings {
                    let level = |value: f64| Cell::number(value, trend.unit.shown(value));
                    let tone = if finding.direction == "worse" { Tone::Bad } else { Tone::Good };
                    let cells = vec![
                        Cell::text(name(group)),
                        Cell::text(format!("{} is {}", trend.name(), finding.direction)),
                        Cell::text(format!("{} ({})", finding.run_id, finding.started_at)),
                        level(finding.before_level),
                        level(finding.level),
                        Cell::number(finding.p_value, format!("{:.4}", finding.p_value)),
                        Cell::text(finding.confirm.clone()),
                    ];
                    table.row(tone, cells);
                }
            }
        }
        let note = "A change is a candidate: runs of a history were not interleaved. p: share of random orders of the runs with as \
                    large a change.";
        let mut section = Section::new("decide", "Changes", note);
        for remark in &self.remarks {
            section = section.with(Part::Text(Tone::Warn, remark.clone()));
        }
        match table.rows.is_empty() {
            true => {
                section.with(Part::Text(Tone::Good, "No change of level was found.".to_owned()))
            }
            false => section.with(Part::Table(table)),
        }
    }
}

fn name(group: &Group) -> String {
    let parts = [&group.likeness.job, &group.likeness.target, &group.load];
    let parts: Vec<&str> =
        parts.iter().map(|part| part.as_str()).filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

fn section(index: usize, group: &Group) -> Section {
    let id = format!("group-{}", index + 1);
    let note = format!(
        "{}. {} of {} count: valid. Number of the run on the x axis, oldest first.",
        group.likeness.machine,
        group.counted(),
        counted(group.runs.len() as u64, "run")
    );
    let mut section = Section::new(&id, &name(group), &note);
    if let Some(words) = too_short(group.counted()) {
        section = section.with(Part::Text(Tone::Plain, words));
    }
    for (at, trend) in group.trends.iter().enumerate() {
        for finding in &trend.findings {
            let tone = if finding.direction == "worse" { Tone::Bad } else { Tone::Good };
            section = section.with(Part::Text(tone, words(trend, finding)));
        }
        section =
            section.with(Part::Plot(Box::new(plot(&format!("{id}-{}", at + 1), group, trend))));
    }
    section
}

fn plot(id: &str, group: &Group, trend: &Figures) -> Plot {
    let values = |is_shown: fn(bool) -> bool| {
        let both = group.runs.iter().zip(&trend.values);
        both.map(|(run, value)| value.filter(|_| is_shown(run.verdict == VerdictKind::Valid)))
            .collect()
    };
    let mark = |finding: &super::Finding| Mark {
        x: finding.at as f64 + 0.5,
        label: format!("{} since {}", finding.direction, finding.run_id),
        tone: if finding.direction == "worse" { "bad" } else { "good" },
    };
    let shown = OfRuns {
        name: trend.name(),
        line: values(|valid| valid),
        counted: values(|valid| valid),
        others: values(|valid| !valid),
        median: trend.median.map(|median| (median, trend.unit.shown(median))),
        marks: trend.findings.iter().map(mark).collect(),
    };
    shown.plot(id, trend.name(), twin(group, trend))
}

/// The newest runs with their values.
fn twin(group: &Group, trend: &Figures) -> Table {
    let mut table = Table::new(&["started", "run", "name, labels", "#value", "counted"]);
    let skipped = group.runs.len().saturating_sub(Plot::TWIN_ROWS_MAX);
    for (run, value) in group.runs.iter().zip(&trend.values).skip(skipped) {
        let is_valid = run.verdict == VerdictKind::Valid;
        let counted =
            if is_valid { "yes".to_owned() } else { format!("no: {}", run.verdict.name()) };
        let value = Cell::or_unknown(*value, |value| Cell::number(value, trend.unit.shown(value)));
        let texts =
            [&run.started_at, &run.run_id, &run.called].map(|text| Cell::text(text.clone()));
        let tone = if is_valid { Tone::Plain } else { Tone::Warn };
        table.row(tone, [texts.to_vec(), vec![value, Cell::text(counted)]].concat());
    }
    table
}

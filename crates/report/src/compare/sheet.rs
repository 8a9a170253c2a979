//! A comparison as a page: the answers, and the runs laid over each other.

use super::rows::{Row, change_of};
use super::{Comparison, Side};
use crate::load::Loaded;
use crate::series::{Column, Series, Times};
use crate::sheet::{
    Cell, Line, Lines, Part, Plot, PlotKind, Section, Sheet, Table, Tone, Values, YAxis,
};
use crate::times::of_all_classes;
use plimsoll_core::histogram::Histogram;
use plimsoll_record::RunRecord;

/// Colours of the runs, in their order.
const TONES: [&str; 8] = [
    "series-1", "series-2", "series-3", "series-4", "series-5", "series-6", "series-7", "series-8",
];
/// Most columns of a plot over time.
const COLUMNS_MAX: usize = 1_000;
/// Points of a percentile curve for each factor of ten of the number of requests.
const POINTS_PER_DECADE: i32 = 20;
/// Percentiles of the table below the curve.
const PERCENTILES: [(f64, &str); 6] =
    [(0.5, "50"), (0.9, "90"), (0.95, "95"), (0.99, "99"), (0.999, "99.9"), (1.0, "100 (max)")];

impl Comparison {
    /// Returns the page of a comparison. `records` and the series of their seconds are in the order of the comparison.
    #[must_use]
    pub fn sheet(&self, records: &[Loaded], series: &[Series]) -> Sheet {
        let names: Vec<&str> = self.sides.iter().map(|side| side.mark.as_str()).collect();
        let (verdict, tone) = self.word();
        let records: Vec<&RunRecord> = records.iter().map(|one| &one.record).collect();
        let sections = [
            Some(self.asked()),
            Some(self.answers()),
            self.ruled(),
            self.own_text(),
            curve(&names, &records),
            over_time(&names, series, THROUGHPUT),
            over_time(&names, series, LATENCY),
        ];
        let jobs = &self.sides[0].job;
        let first = self.sides.iter().map(|side| side.started_at.as_str()).min();
        let last = self.sides.iter().map(|side| side.started_at.as_str()).max();
        Sheet {
            title: format!("compare {jobs}: {} runs", self.sides.len()),
            when: format!("{} to {}", first.unwrap_or_default(), last.unwrap_or_default()),
            verdict: verdict.to_owned(),
            tone,
            outcome: self.outcome(),
            sections: sections.into_iter().flatten().collect(),
            footer: vec![format!("plimsoll {}", env!("CARGO_PKG_VERSION"))],
        }
    }

    /// The word of the page: what the rules say, or else the worst answer.
    fn word(&self) -> (&'static str, Tone) {
        use plimsoll_decide::rule::Judged;
        let has = |answer: &str| {
            self.rows.iter().flat_map(|row| &row.against).any(|one| one.answer == Some(answer))
        };
        match self.judged() {
            Some(Judged::Fails) => ("fails", Tone::Bad),
            Some(Judged::CannotTell) => ("cannot tell", Tone::Warn),
            Some(Judged::Holds) => ("holds", Tone::Good),
            None if has("worse") => ("worse", Tone::Bad),
            None if has("better") => ("better", Tone::Good),
            None if has("same") => ("same", Tone::Good),
            None => ("cannot tell", Tone::Warn),
        }
    }

    /// The numbers of answers in a sentence.
    fn outcome(&self) -> String {
        let all = || self.rows.iter().flat_map(|row| &row.against).filter_map(|one| one.answer);
        let count = |answer: &str| all().filter(|own| *own == answer).count();
        let parts: Vec<String> = ["worse", "better", "same", "cannot tell"]
            .iter()
            .map(|answer| (count(answer), answer))
            .filter(|(count, _)| *count > 0)
            .map(|(count, answer)| format!("{answer}: {count}"))
            .collect();
        match parts.is_empty() {
            true => "No figure has an answer.".to_owned(),
            false => format!("Answers against A: {}.", parts.join(", ")),
        }
    }

    fn asked(&self) -> Section {
        let heads = ["", "run", "started", "#measured", "verdict", "name, labels", "figures from"];
        let mut table = Table::new(&heads);
        for side in &self.sides {
            let Side { mark, folder, started_at, verdict, called, origin, duration_s, .. } = side;
            let measured = Cell::seconds(*duration_s);
            let from = if origin.is_empty() { "measured" } else { origin };
            let tone = if verdict == "valid" { Tone::Plain } else { Tone::Warn };
            let texts = [folder, started_at].map(|text| Cell::text(text.clone()));
            let [folder, started] = texts;
            let more = [verdict.as_str(), called.as_str(), from].map(Cell::text);
            let cells = [vec![Cell::text(mark.clone()), folder, started, measured], more.to_vec()];
            table.row(tone, cells.concat());
        }
        let note = "A is the baseline: each other run is compared with it.";
        let mut section = Section::new("asked", "The runs", note).with(Part::Table(table));
        for note in &self.notes {
            section = section.with(Part::Text(Tone::Warn, note.clone()));
        }
        section
    }

    fn answers(&self) -> Section {
        let mut section = Section::new(
            "decide",
            "To decide from",
            &format!(
                "Names are those of --fail-on. same: the whole interval is within {} %.",
                super::rows::percent(self.margin)
            ),
        );
        for index in 1..self.sides.len() {
            let mark = &self.sides[index].mark;
            let (value, ratio, answer) =
                (format!("#{mark}"), format!("#{mark}/A"), format!("{mark} is"));
            let mut table =
                Table::new(&["", "#A", &value, &ratio, "interval of the ratio", &answer]);
            for row in &self.rows {
                answer_row(&mut table, row, index);
            }
            section = section.with(Part::Table(table));
        }
        section
    }

    fn ruled(&self) -> Option<Section> {
        let mut table = Table::new(&["rule", "figure", "run", "result", "change"]);
        for rule in &self.rules {
            let tone = match rule.judged {
                "fails" => Tone::Bad,
                "holds" => Tone::Good,
                _ => Tone::Warn,
            };
            let words = [&rule.rule, &rule.row, &rule.mark].map(|text| Cell::text(text.clone()));
            let cells =
                [words.to_vec(), vec![Cell::text(rule.judged), Cell::text(rule.words.clone())]];
            table.row(tone, cells.concat());
        }
        let note = "A rule fails, or holds, if the whole interval is on one side of its bound.";
        let section = Section::new("rules", "Rules (--fail-on)", note);
        (!self.rules.is_empty()).then(|| section.with(Part::Table(table)))
    }

    /// The own comparison of the job for two records.
    fn own_text(&self) -> Option<Section> {
        let section = Section::new("job", "Comparison of the job", "");
        let text = self.text.trim_end().to_owned();
        (!text.is_empty()).then(|| section.with(Part::Command(text)))
    }
}

fn answer_row(table: &mut Table, row: &Row, index: usize) {
    let Some(against) = row.against.get(index - 1) else { return };
    let value = |at: usize| {
        Cell::or_unknown(row.values[at], |value| Cell::number(value, row.unit.shown(value)))
    };
    let ratio =
        Cell::or_unknown(against.ratio, |ratio| Cell::number(ratio, format!("x {ratio:.3}")));
    let interval = against.interval.map_or("-".to_owned(), |[low, high]| match high {
        high if high < 1_000.0 => format!("{low:.3} to {high:.3}"),
        _ => format!("above {low:.3}"),
    });
    let (words, tone) = match against.answer {
        Some("worse") => (format!("worse: {}", change_of(against)), Tone::Bad),
        Some("better") => (format!("better: {}", change_of(against)), Tone::Good),
        Some("same") => (against.words.clone(), Tone::Good),
        Some(_) => (against.words.clone(), Tone::Plain),
        None => ("no rule names it".to_owned(), Tone::Plain),
    };
    let name = Cell::text(row.name());
    table.row(
        tone,
        vec![name, value(0), value(index), ratio, Cell::text(interval), Cell::text(words)],
    );
}

/// The percentile curves, one line a run. A run whose response times are damaged has none.
fn curve(names: &[&str], records: &[&RunRecord]) -> Option<Section> {
    let note =
        "The further right, the rarer: 99 is one request of a hundred. Successful requests only.";
    let mut section = Section::new("curves", "Percentile curves", note);
    let times = |(name, record): (&&str, &&RunRecord)| {
        of_all_classes(record, "response").unwrap_or_else(|problem| {
            let text = format!("{name} has no curve: {problem}.");
            section.parts.push(Part::Text(Tone::Warn, text));
            Histogram::new()
        })
    };
    let all: Vec<Histogram> = names.iter().zip(records).map(times).collect();
    let known =
        || names.iter().zip(&all).zip(TONES.iter().cycle()).filter(|((_, h), _)| !h.is_empty());
    if known().count() == 0 {
        return (!section.parts.is_empty()).then_some(section);
    }
    let line = |((name, times), tone): ((&&str, &Histogram), &&'static str)| {
        let (x, y) = points(times);
        let id = name.to_lowercase();
        Line::new(name, tone, Values::of(&format!("curve-{id}-ms"), y))
            .over(Values::of(&format!("curve-{id}-q"), x))
    };
    let heads: Vec<String> = known().map(|((name, _), _)| format!("#{name}")).collect();
    let heads: Vec<&str> =
        std::iter::once("percentile").chain(heads.iter().map(String::as_str)).collect();
    let mut twin = Table::new(&heads);
    for (quantile, label) in PERCENTILES {
        let cell = |times: &Histogram| match (1.0 - quantile) * times.count() as f64 {
            few if few < 1.0 && quantile < 1.0 => Cell::text("-"),
            _ => Cell::ms(times.quantile_ns(quantile) as f64 / 1e6),
        };
        let cells = known().map(|((_, times), _)| cell(times));
        twin.row(Tone::Plain, std::iter::once(Cell::text(label)).chain(cells).collect());
    }
    let lines = Lines {
        x_label: "percentile".to_owned(),
        x_is_log: true,
        y: vec![YAxis::log("ms")],
        lines: known().map(line).collect(),
        ..Lines::default()
    };
    let plot = Plot {
        id: "curve".to_owned(),
        caption: "Response time by percentile".to_owned(),
        kind: PlotKind::Curve(lines),
        twin,
        is_pictured: true,
    };
    Some(section.with(Part::Plot(Box::new(plot))))
}

/// The curve: 1 / (1 - quantile), and the time in ms.
fn points(times: &Histogram) -> (Vec<f64>, Vec<f64>) {
    let most = (times.count() as f64).max(1.0);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for step in 0.. {
        let at = 10f64.powf(f64::from(step) / f64::from(POINTS_PER_DECADE));
        let is_last = at >= most;
        let quantile = if is_last { 1.0 } else { 1.0 - 1.0 / at };
        x.push(at.min(most));
        y.push(times.quantile_ns(quantile) as f64 / 1e6);
        if is_last {
            return (x, y);
        }
    }
    (x, y)
}

/// A plot over the time of the runs.
struct OverTime {
    id: &'static str,
    title: &'static str,
    caption: &'static str,
    unit: &'static str,
    value: fn(&Column) -> Option<f64>,
}

const THROUGHPUT: &OverTime = &OverTime {
    id: "throughput",
    title: "Throughput",
    caption: "Successful requests per second",
    unit: "/s",
    value: |column| column.per_s(column.ok),
};

const LATENCY: &OverTime = &OverTime {
    id: "latency",
    title: "Response time",
    caption: "99th percentile of the response time",
    unit: "ms",
    value: |column| Times::of(&column.response).map(|times| times.p99_ns as f64 / 1e6),
};

fn over_time(names: &[&str], series: &[Series], plot: &OverTime) -> Option<Section> {
    // A last column that is shorter than the others has other counts.
    let whole = |columns: Vec<Column>| -> Vec<Column> {
        let least = columns.first().map_or(0.0, |first| first.seconds() / 2.0);
        columns.into_iter().filter(|column| column.seconds() >= least).collect()
    };
    let all: Vec<_> = series.iter().map(|one| whole(one.coarse(COLUMNS_MAX))).collect();
    if all.iter().all(Vec::is_empty) {
        return None;
    }
    let mut lines = Vec::new();
    for ((name, columns), tone) in names.iter().zip(&all).zip(TONES.iter().cycle()) {
        let id = format!("{}-{}", plot.id, name.to_lowercase());
        let x = Values::of(&format!("{id}-s"), columns.iter().map(|one| one.to_ns as f64 / 1e9));
        let y = Values::new(&id, columns.iter().map(|one| (plot.value)(one)));
        lines.push(Line::new(name, tone, y).over(x));
    }
    let heads: Vec<String> = names.iter().map(|name| format!("#{name}")).collect();
    let heads: Vec<&str> = std::iter::once("#at").chain(heads.iter().map(String::as_str)).collect();
    let mut twin = Table::new(&heads);
    let longest = all.iter().max_by_key(|columns| columns.len()).map_or(&[][..], Vec::as_slice);
    let step = longest.len().div_ceil(Plot::TWIN_ROWS_MAX).max(1);
    for (at, column) in longest.iter().enumerate().step_by(step) {
        let number = |value: f64| match plot.unit {
            "ms" => Cell::ms(value),
            _ => Cell::per_s(value),
        };
        let cell = |columns: &Vec<Column>| {
            columns.get(at).and_then(plot.value).map_or(Cell::text("-"), number)
        };
        let first = Cell::seconds(column.to_ns as f64 / 1e9);
        twin.row(Tone::Plain, std::iter::once(first).chain(all.iter().map(cell)).collect());
    }
    let lines = Lines {
        x_label: "s since the start of each run".to_owned(),
        y: vec![YAxis::linear(plot.unit)],
        lines,
        is_time: true,
        ..Lines::default()
    };
    let shown = Plot {
        id: plot.id.to_owned(),
        caption: plot.caption.to_owned(),
        kind: PlotKind::Lines(lines),
        twin,
        is_pictured: true,
    };
    let note = "Time in seconds since the start of the measured stretch of each run.";
    Some(Section::new(plot.id, plot.title, note).with(Part::Plot(Box::new(shown))))
}

//! A line that was followed over time.

use plimsoll_core::seek::finding::Finding;
use plimsoll_core::seek::watch::Watched;
use plimsoll_report::number::percent;
use plimsoll_report::sections::Decision;
use plimsoll_report::sheet::{Cell, Field, Listed, Mark, Part, PlotKind, Tone, YAxis};

fn list(finding: &Finding) -> Listed<'_, Watched> {
    Listed { at: &["seek", "watch"], items: finding.watch.as_deref().unwrap_or_default() }
}

fn fields<'a>() -> Vec<Field<'a, Watched>> {
    let rate = |rate: Option<f64>| Cell::or_unknown(rate, Cell::per_s);
    let end = move |one: &Watched, high: bool| {
        rate(one.interval_per_s.map(|ends| if high { ends.1 } else { ends.0 }))
    };
    vec![
        Field::new("line", "line_per_s", move |one: &Watched| rate(one.line_per_s))
            .toned("series-1"),
        Field::new("lower end", "interval_per_s/0", move |one: &Watched| end(one, false))
            .toned("neutral"),
        Field::new("upper end", "interval_per_s/1", move |one: &Watched| end(one, true))
            .toned("neutral")
            .down_to("lower end"),
        Field::new("capacity", "capacity_per_s", move |one: &Watched| rate(one.capacity_per_s))
            .toned("offered"),
    ]
}

fn until<'a>() -> Field<'a, Watched> {
    Field::new("until s", "until_s", |one: &Watched| Cell::seconds(one.until_s))
}

/// The line over time; `None` if it was not followed.
pub(super) fn plot(finding: &Finding) -> Option<Part> {
    let list = list(finding);
    let caption = format!(
        "The line with its interval of {} confidence, and what the target completes under overload, over time",
        percent(finding.confidence)
    );
    let mut plot =
        list.plot(("line-over-time", &caption), &until(), vec![YAxis::linear("/s")], fields())?;
    if let PlotKind::Lines(lines) = &mut plot.kind {
        let mark = |one: &Watched| Mark {
            x: one.until_s,
            label: one.note.clone().unwrap_or_default(),
            tone: "warn",
        };
        lines.marks = list.items.iter().filter(|one| one.note.is_some()).map(mark).collect();
    }
    plot.is_pictured = true;
    Some(Part::Plot(Box::new(plot)))
}

/// All stretches.
pub(super) fn table(finding: &Finding) -> Part {
    let mut all = vec![
        Field::new("from s", "from_s", |one: &Watched| Cell::seconds(one.from_s)),
        until(),
        Field::new("state", "state", |one: &Watched| Cell::count(one.state.into())),
    ];
    all.extend(fields());
    all.push(Field::new("blocks", "blocks", |one: &Watched| Cell::count(one.blocks)));
    all.push(Field::text("note", |one: &Watched| one.note.clone().unwrap_or_default()));
    let tone = |one: &Watched| if one.interval_per_s.is_some() { Tone::Plain } else { Tone::Warn };
    Part::Table(list(finding).table(&all, tone))
}

/// The rows to decide from: the line at the end, and how it was at the start.
pub(super) fn decisions(finding: &Finding) -> Vec<Decision> {
    let all = finding.watch.as_deref().unwrap_or_default();
    let known = |one: &&(usize, &Watched)| one.1.interval_per_s.is_some();
    let stretches: Vec<(usize, &Watched)> = all.iter().enumerate().collect();
    let first = stretches.iter().find(known);
    let last = stretches.iter().rev().find(known);
    let mut rows = Vec::new();
    for (label, stretch) in [("line at the start", first), ("line at the end", last)] {
        let Some((index, one)) = stretch else { continue };
        let at = index.to_string();
        let end = |high: bool| one.interval_per_s.map(|ends| if high { ends.1 } else { ends.0 });
        let figure = |label: &str, value: Option<f64>, path: &[&str]| {
            let steps = [&["seek", "watch", at.as_str()], path].concat();
            Decision::figure(label, Cell::or_unknown(value, Cell::per_s).from(&steps))
        };
        rows.push(figure(label, one.line_per_s, &["line_per_s"]));
        rows.push(figure(&format!("{label}: lower end"), end(false), &["interval_per_s", "0"]));
        rows.push(figure(&format!("{label}: upper end"), end(true), &["interval_per_s", "1"]));
    }
    rows
}

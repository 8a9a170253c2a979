//! A load that adapts itself to a limit.

use plimsoll_record::voter::{TuneCheck, TunePoint, TuneResult};
use plimsoll_report::sheet::{
    Cell, Field, Listed, Mark, Part, PlotKind, Section, Table, Tone, YAxis,
};

/// The section; `None` if there is nothing to show.
pub(super) fn section(tuned: &TuneResult) -> Option<Section> {
    let note = "late: share of the answers that came later than the limit. The checks hold a fixed number of calls in flight; the \
                last one is the result.";
    let list = Listed { at: &["voter", "auto_tune", "trace"], items: &tuned.trace };
    let at = Field::new("until s", "at_s", |point: &TunePoint| Cell::seconds(point.at_s));
    let fields = vec![
        Field::new("calls/s", "rate_per_s", |point: &TunePoint| Cell::per_s(point.rate_per_s))
            .toned("achieved"),
        Field::new("in flight", "under_way", |point: &TunePoint| {
            Cell::count(point.under_way.into())
        })
        .toned("series-6")
        .on(1),
    ];
    let late = Field::new("late", "late", |point: &TunePoint| Cell::share(point.late));
    let late = vec![late.times(100.0).toned("failed")];
    let axes = vec![YAxis::linear("/s"), YAxis::linear("calls")];
    let caption =
        format!("Calls per second and in flight while the load was tuned to {}", tuned.goal);
    let mut plot = list.plot(("tuning", &caption), &at, axes, fields);
    if let Some(PlotKind::Lines(lines)) = plot.as_mut().map(|plot| &mut plot.kind) {
        let missed = |point: &&TunePoint| !point.held && point.rate_per_s > 0.0;
        let mark =
            |point: &TunePoint| Mark { x: point.at_s, label: "missed".to_owned(), tone: "bad" };
        lines.marks = tuned.trace.iter().filter(missed).take(40).map(mark).collect();
    }
    let share = "Share of the answers that came later than the limit";
    let late = list.plot(("tuning-late", share), &at, vec![YAxis::linear("%")], late);
    let figure = |cell: Cell, field: &'static str| cell.from(&["voter", "auto_tune", field]);
    let facts = vec![
        ("limit".to_owned(), Cell::text(tuned.goal.clone())),
        (
            "time that the limit judges".to_owned(),
            Cell::text(match tuned.latency.as_str() {
                "server" => "as the server reports it",
                _ => "from the intended start of a call, by this client",
            }),
        ),
        (
            "median rate of the windows that held".to_owned(),
            figure(Cell::or_unknown(tuned.best_rate_per_s, Cell::per_s), "best_rate_per_s"),
        ),
        (
            "median calls in flight in them".to_owned(),
            figure(
                Cell::or_unknown(tuned.best_under_way, |calls| {
                    Cell::number(calls, calls.to_string())
                }),
                "best_under_way",
            ),
        ),
        ("windows".to_owned(), figure(Cell::count(tuned.windows), "windows")),
        ("windows that held".to_owned(), figure(Cell::count(tuned.windows_held), "windows_held")),
    ];
    Some(
        Section::new("tuning", "Tuned load", note)
            .with_some(plot.map(|plot| Part::Plot(Box::new(plot))))
            .with_some(late.map(|plot| Part::Plot(Box::new(plot))))
            .with(Part::Facts(facts))
            .with_some((!tuned.checks.is_empty()).then(|| Part::Table(checks(tuned)))),
    )
}

/// The runs with a fixed number of calls in flight.
fn checks(tuned: &TuneResult) -> Table {
    let list = Listed { at: &["voter", "auto_tune", "checks"], items: &tuned.checks };
    let columns = [
        Field::new("in flight", "under_way", |one: &TuneCheck| Cell::count(one.under_way.into())),
        Field::new("calls/s", "rate_per_s", |one: &TuneCheck| Cell::per_s(one.rate_per_s)),
        Field::new("calls", "calls", |one: &TuneCheck| Cell::count(one.calls)),
        Field::new("late", "late", |one: &TuneCheck| Cell::share(one.late)),
        Field::new("seconds", "seconds", |one: &TuneCheck| Cell::seconds(one.seconds)),
        Field::text("limit", |one: &TuneCheck| said(one).to_owned()),
    ];
    let tone = |one: &TuneCheck| if one.held { Tone::Good } else { Tone::Bad };
    list.table(&columns, tone).captioned("Checks")
}

fn said(check: &TuneCheck) -> &'static str {
    match (check.held, check.counts) {
        (true, true) => "held",
        (true, false) => "held, too short to count",
        (false, _) => "MISSED",
    }
}

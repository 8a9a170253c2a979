//! The way of a search: the rates that it looked at, and how the stretch that holds the line got narrower.

use plimsoll_core::seek::finding::{Finding, PhaseSpan};
use plimsoll_core::seek::steps::{Step, StepKind};
use plimsoll_report::sheet::{
    Band, Cell, Field, Line, Lines, Listed, Part, Plot, PlotKind, Section, Tone, Values, YAxis,
};

/// The section; `None` for a record that keeps no steps.
pub(super) fn section(finding: &Finding) -> Option<Section> {
    let list = Listed { at: &["seek", "steps"], items: &finding.steps };
    if finding.steps.is_empty() {
        return None;
    }
    let fields = fields();
    let twin = list.some(&fields, Plot::TWIN_ROWS_MAX, tone);
    let lines = Lines {
        x: Some(Values::of("narrowing-t", finding.steps.iter().map(|step| step.at_s))),
        x_label: "s since the start of the search".to_owned(),
        y: vec![YAxis::log("/s")],
        lines: lines(&finding.steps),
        bands: finding.phases.iter().filter_map(band).collect(),
        ..Lines::default()
    };
    let plot = Plot {
        id: "narrowing".to_owned(),
        caption: "Rates that were offered, and the stretch that holds the line, over the search"
            .to_owned(),
        kind: PlotKind::Lines(lines),
        twin,
        is_pictured: true,
    };
    let note = "Looks are short; runs are contiguous and certify a rate. The bracket lies between the highest rate that held and \
                the lowest that broke a limit; the interval holds the line with the confidence that was asked for.";
    let phases = Listed { at: &["seek", "phases"], items: &finding.phases };
    let columns = [
        Field::text("phase", name),
        Field::new("from", "from_s", |span: &PhaseSpan| Cell::seconds(span.from_s)),
        Field::new("until", "until_s", |span: &PhaseSpan| Cell::seconds(span.until_s)),
    ];
    Some(
        Section::new("narrowing", "How the search narrowed", note)
            .with(Part::Plot(Box::new(plot)))
            .with(Part::Table(phases.table(&columns, |_| Tone::Plain).captioned("Phases"))),
    )
}

/// Looks and runs as points; bracket and interval as far as they were known at each step.
fn lines(steps: &[Step]) -> Vec<Line> {
    let values = |label: &str, numbers: Vec<Option<f64>>| {
        Values::new(&format!("narrowing-{}", label.replace([',', ' '], "-")), numbers)
    };
    let points = |label: &str, tone, kind, held| {
        let at =
            |step: &Step| step.rate_per_s.filter(|_| step.kind == kind && step.held == Some(held));
        let numbers = steps.iter().map(at).collect::<Vec<_>>();
        Line { is_dots: true, ..Line::new(label, tone, values(label, numbers)) }
    };
    let known = |label: &str, tone, kind: StepKind, end: fn(&Step) -> Option<f64>| {
        let mut last = None;
        let mut at = |step: &Step| {
            if step.kind == kind {
                last = end(step);
            }
            last
        };
        Line::new(label, tone, values(label, steps.iter().map(&mut at).collect()))
    };
    let (bracket, estimate) = (StepKind::Bracket, StepKind::Estimate);
    let all = [
        known("bracket, lower end", "neutral", bracket, |step| step.low_per_s),
        known("bracket, upper end", "neutral", bracket, |step| step.high_per_s)
            .down_to("bracket, lower end"),
        known("interval, lower end", "series-1", estimate, |step| step.low_per_s),
        known("interval, upper end", "series-1", estimate, |step| step.high_per_s)
            .down_to("interval, lower end"),
        known("estimate", "series-6", estimate, |step| step.rate_per_s),
        points("look, held", "good", StepKind::Look, true),
        points("look, broke", "bad", StepKind::Look, false),
        points("run, held", "series-3", StepKind::Run, true),
        points("run, missed", "series-2", StepKind::Run, false),
    ];
    all.into_iter().filter(|line| line.y.numbers.iter().any(Option::is_some)).collect()
}

fn fields<'a>() -> Vec<Field<'a, Step>> {
    let rate = |rate: Option<f64>| rate.map_or(Cell::text(""), Cell::per_s);
    vec![
        Field::new("at", "at_s", |step: &Step| Cell::seconds(step.at_s)),
        Field::text("step", |step: &Step| words(step).to_owned()),
        Field::new("rate", "rate_per_s", move |step: &Step| rate(step.rate_per_s)),
        Field::new("between", "low_per_s", move |step: &Step| rate(step.low_per_s)),
        Field::new("and", "high_per_s", move |step: &Step| rate(step.high_per_s)),
    ]
}

fn words(step: &Step) -> &'static str {
    match (step.kind, step.held) {
        (StepKind::Look, Some(true)) => "look, held",
        (StepKind::Look, _) => "look, broke a limit",
        (StepKind::Bracket, _) => "bracket",
        (StepKind::Estimate, _) => "estimate",
        (StepKind::Run, Some(true)) => "run, held",
        (StepKind::Run, _) => "run, MISSED",
    }
}

fn tone(step: &Step) -> Tone {
    match (step.kind, step.held) {
        (StepKind::Run, Some(true)) => Tone::Good,
        (StepKind::Run, Some(false)) => Tone::Bad,
        _ => Tone::Plain,
    }
}

fn name(span: &PhaseSpan) -> String {
    let name = serde_json::to_value(span.phase).ok();
    name.as_ref().and_then(|name| name.as_str()).unwrap_or("phase").to_owned()
}

fn band(span: &PhaseSpan) -> Option<Band> {
    let is_some = span.until_s > span.from_s;
    is_some.then(|| Band { from: span.from_s, to: span.until_s, label: name(span) })
}

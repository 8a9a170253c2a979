//! The page that is data of a comparison.

use crate::page::{method, tone as text_tone};
use crate::words::{change, interval, late_note, sentence, short, value};
use plimsoll_record::RunRecord;
use plimsoll_record::ab::{AbJudged, AbMetric, AbPair, AbResult};
use plimsoll_report::page::Tone as TextTone;
use plimsoll_report::sections::{Decision, put_first};
use plimsoll_report::series::Series;
use plimsoll_report::sheet::{
    Cell, Field, Level, Listed, Part, PlotKind, Section, Sheet, Table, Tone, YAxis,
};

/// Metrics whose pairs are plotted at most.
const PLOTTED_MOST: usize = 4;
/// Colours of these.
const TONES: [&str; PLOTTED_MOST] = ["p50", "p90", "p99", "ok"];

/// Adds the sections of a comparison. Changes nothing for a record without one.
pub(crate) fn sheet(sheet: &mut Sheet, record: &RunRecord, _course: &Series) {
    let Some(ab) = record.job_results.ab() else { return };
    // What both sides did together describes neither.
    let of_both = [
        "decide",
        "throughput",
        "latency",
        "heat",
        "curve",
        "phases",
        "slowest",
        "health",
        "bottleneck",
    ];
    of_both.iter().for_each(|id| sheet.remove(id));
    put_first(sheet, &decisions(ab), false);
    sheet.title = format!("ab: {} of A and B", ab.job);
    let decide = sheet.section("decide").cloned();
    sheet.remove("decide");
    let added = [Some(answers(ab)), decide, pairs(ab), Some(how(ab))];
    let at = usize::from(sheet.sections.first().is_some_and(|first| first.id == "asked"));
    // The answers in words come before all figures.
    sheet.sections.splice(at..at, added.into_iter().flatten());
}

fn tone(metric: &AbMetric) -> Tone {
    match text_tone(metric.answer) {
        TextTone::Good => Tone::Good,
        TextTone::Bad => Tone::Bad,
        TextTone::Warn => Tone::Warn,
        _ => Tone::Plain,
    }
}

/// The named metrics as the table to decide from, with the rules that they must hold.
fn decisions(ab: &AbResult) -> Vec<Decision> {
    let named = ab.metrics.iter().enumerate().filter(|(_, metric)| metric.answer.is_some());
    named
        .map(|(index, metric)| {
            let place = index.to_string();
            let ratio = Cell::or_unknown(metric.ratio, |ratio| {
                Cell::number(ratio, change(ratio)).from(&["ab", "metrics", &place, "ratio"])
            });
            let row = Decision::figure(&format!("{}: {}", metric.name, short(metric, ab)), ratio);
            let rule = ab.rules.iter().find(|rule| {
                rule.rule
                    .strip_prefix(&metric.name)
                    .is_some_and(|rest| rest.starts_with(['<', '>']))
            });
            match rule {
                Some(rule) if rule.judged != AbJudged::CannotTell => {
                    row.against(&format!("not {}", rule.rule), rule.judged == AbJudged::Holds)
                }
                _ => row,
            }
        })
        .collect()
}

/// The answers in words, and as a table.
fn answers(ab: &AbResult) -> Section {
    let mut section = Section::new("answers", "Is B better than A?", "");
    for metric in &ab.metrics {
        if let Some(text) = sentence(metric, ab) {
            section = section.with(Part::Text(tone(metric), text));
        }
    }
    let heads = ["metric", "#A", "#B", "#B to A", "interval", "#pairs", "answer"];
    let mut table = Table::new(&heads);
    for (index, metric) in ab.metrics.iter().enumerate() {
        let place = index.to_string();
        let at = |field: &'static str| ["ab", "metrics", place.as_str(), field];
        let own = |own: Option<f64>, field| {
            Cell::or_unknown(own, |number| {
                Cell::number(number, value(metric, Some(number))).from(&at(field))
            })
        };
        table.row(
            tone(metric),
            vec![
                Cell::text(metric.name.clone()),
                own(metric.a, "a"),
                own(metric.b, "b"),
                Cell::or_unknown(metric.ratio, |ratio| {
                    Cell::number(ratio, change(ratio)).from(&at("ratio"))
                }),
                Cell::text(interval(metric).unwrap_or_else(|| "unknown".to_owned())),
                Cell::count(metric.pairs).from(&at("pairs")),
                Cell::text(short(metric, ab)),
            ],
        );
    }
    "A, B: geometric mean over the blocks. Interval: of one metric alone. Metrics that were not named have no answer."
        .clone_into(&mut section.note);
    if let Some(late) = late_note(ab) {
        section.note = format!("{late}. {}", section.note);
    }
    section.with(Part::Table(table))
}

/// The ratio of each pair over the time of the comparison.
fn pairs(ab: &AbResult) -> Option<Section> {
    let counted: Vec<AbPair> =
        ab.blocks.iter().filter(|pair| pair.left_out.is_empty()).cloned().collect();
    // Paths into the record would be wrong if pairs are left out, so all are plotted then.
    let items = if counted.len() == ab.blocks.len() { counted } else { ab.blocks.clone() };
    let list = Listed { at: &["ab", "blocks"], items: &items };
    let at = Field::new("at s", "at_s", |pair: &AbPair| Cell::seconds(pair.at_s));
    let named = ab.metrics.iter().enumerate().filter(|(_, metric)| metric.answer.is_some());
    let lines: Vec<Field<'_, AbPair>> = named
        .take(PLOTTED_MOST)
        .zip(TONES)
        .map(|((index, metric), tone)| {
            let ratio = move |pair: &AbPair| {
                let own = |side: &[Option<f64>]| side.get(index).copied().flatten();
                match own(&pair.b).zip(own(&pair.a)) {
                    Some((b, a)) if a > 0.0 => Cell::number(b / a, change(b / a)),
                    _ => Cell::Unknown,
                }
            };
            Field::new(&metric.name, "", ratio).toned(tone).dots()
        })
        .collect();
    let caption = "B to A in each pair, over the time of the comparison";
    let mut plot = list.plot(("pairs", caption), &at, vec![YAxis::log("times")], lines)?;
    if let PlotKind::Lines(lines) | PlotKind::Scatter(lines) | PlotKind::Curve(lines) =
        &mut plot.kind
    {
        lines.levels.push(Level { y: 1.0, label: "no difference".to_owned(), axis: 0 });
    }
    let note = "One point a pair. Drift of the machine hits both blocks of a pair and is not in their ratio.";
    Some(Section::new("pairs", "Pairs", note).with(Part::Plot(Box::new(plot))))
}

/// Sides, lengths and the generator.
fn how(ab: &AbResult) -> Section {
    let mut facts = vec![
        ("A".to_owned(), Cell::text(ab.a.name.clone())),
        ("B".to_owned(), Cell::text(ab.b.name.clone())),
    ];
    for rule in &ab.rules {
        let judged = match rule.judged {
            AbJudged::Holds => "holds",
            AbJudged::CannotTell => "cannot tell",
            AbJudged::Fails => "fails",
        };
        let said = format!("{}: {judged}", rule.rule);
        facts.push(("Rule".to_owned(), Cell::text(said)));
    }
    facts.extend(method(ab).into_iter().map(|(label, text)| (label.to_owned(), Cell::text(text))));
    facts.extend(ab.notes.iter().map(|note| ("Note".to_owned(), Cell::text(note.clone()))));
    Section::new("method", "How it was measured", "").with(Part::Facts(facts))
}

//! The page of a comparison: the answers in words, then a table, then how it was measured.

use crate::words::{change, interval, late_note, sentence, share, short, value};
use plimsoll_record::RunRecord;
use plimsoll_record::ab::{AbAnswer, AbEnd, AbJudged, AbMetric, AbResult};
use plimsoll_report::forms::Below;
use plimsoll_report::number::{counted, lasting};
use plimsoll_report::page::{Column, Page, Tone};
use plimsoll_report::plain::printable;

/// Pairs that the verbose page lists.
const PAIRS_SHOWN: usize = 200;

/// The emphasis of an answer.
pub(crate) fn tone(answer: Option<AbAnswer>) -> Tone {
    match answer {
        Some(AbAnswer::Better | AbAnswer::Same) => Tone::Good,
        Some(AbAnswer::Worse) => Tone::Bad,
        Some(AbAnswer::CannotTell) => Tone::Warn,
        None => Tone::Plain,
    }
}

pub(crate) fn sections(page: &mut Page<'_>, record: &RunRecord) -> Option<Below> {
    let ab = record.job_results.ab()?;
    for metric in &ab.metrics {
        if let Some(text) = sentence(metric, ab) {
            page.headline(&text, tone(metric.answer));
        }
    }
    table(page, ab);
    page.blank();
    for rule in &ab.rules {
        let (said, tone) = match rule.judged {
            AbJudged::Holds => ("holds", Tone::Good),
            AbJudged::CannotTell => ("cannot tell", Tone::Warn),
            AbJudged::Fails => ("FAILS", Tone::Bad),
        };
        page.entry("Rule", &format!("{}: {said}", rule.rule), tone);
    }
    for (label, text) in method(ab) {
        page.entry(label, &text, Tone::Plain);
    }
    ab.notes.iter().for_each(|note| page.entry("Note", &printable(note), Tone::Plain));
    if page.is_verbose() {
        page.blank();
        pairs(page, ab);
    }
    Some(Below::Ending)
}

fn table(page: &mut Page<'_>, ab: &AbResult) {
    let columns = [
        Column::text("Metric"),
        Column::number("A", 0),
        Column::number("B", 0),
        Column::number("B to A", 0),
        Column::number("interval", 2),
        Column::number("pairs", 1),
        Column::text("answer"),
    ];
    let row = |metric: &AbMetric| {
        let cells = vec![
            format!("  {}", metric.name),
            value(metric, metric.a),
            value(metric, metric.b),
            metric.ratio.map_or_else(|| "-".to_owned(), change),
            interval(metric).unwrap_or_else(|| "-".to_owned()),
            metric.pairs.to_string(),
            short(metric, ab),
        ];
        (cells, tone(metric.answer))
    };
    let rows: Vec<_> = ab.metrics.iter().map(row).collect();
    page.table(&columns, &rows);
    let level = ab.metrics.first().map_or(0.95, |metric| metric.confidence);
    page.note(&format!(
        "A, B: geometric mean over the blocks; interval: {} of one metric alone; metrics that were not named have no answer",
        share(level)
    ));
    if let Some(late) = late_note(ab) {
        page.note(late);
    }
}

/// The method of the measurement, as labels and sentences.
pub(crate) fn method(ab: &AbResult) -> Vec<(&'static str, String)> {
    let plan = &ab.plan;
    let mut rows = vec![("Blocks", blocks(ab))];
    let mut pairs = format!(
        "{} of up to {}, {}",
        counted(ab.pairs, "pair"),
        ab.pairs_planned,
        if ab.duet { "both blocks of a pair at once" } else { "random order in each pair" }
    );
    if ab.pairs_left_out > 0 {
        pairs += &format!("; {} left out", counted(ab.pairs_left_out, "more pair"));
    }
    pairs += match ab.ended {
        AbEnd::Settled => "; ended because all is decided or all pairs are done",
        AbEnd::Budget => "; ended because the time was over",
        AbEnd::Stopped => "; stopped by the user",
        AbEnd::Failed => "; ended by a block that could not be measured",
    };
    rows.push(("Pairs", pairs));
    let error = share(ab.error);
    let spent = lasting(ab.spent_s);
    rows.push((
        "Error",
        format!(
            "a wrong claim has a chance of at most {error}; {spent} in all, {} for the pilots",
            lasting(plan.pilot_s)
        ),
    ));
    let generator = &ab.generator;
    let counts = format!(
        "it had no processor or no time left in {} of {} blocks",
        generator.limited_blocks, generator.blocks
    );
    let text = match (generator.is_judged, generator.is_limit) {
        // The verdict has the reason.
        (true, true) => format!("the limit; {counts}"),
        (true, false) if generator.is_late => format!("late; {counts}; {}", generator.reason),
        (true, false) => format!("not the limit; {counts}; {}", generator.reason),
        (false, _) => generator.reason.clone(),
    };
    rows.push(("Generator", printable(&text)));
    rows
}

fn blocks(ab: &AbResult) -> String {
    let plan = &ab.plan;
    match plan.block_s {
        None => plan.reason.clone(),
        Some(block_s) => {
            let before = match plan.discard_s > 0.0 {
                true => format!("after {} that are left out", lasting(plan.discard_s)),
                false => "of which nothing is left out".to_owned(),
            };
            format!("{} each, {before}; {}", lasting(block_s), plan.reason)
        }
    }
}

/// The pairs one by one.
fn pairs(page: &mut Page<'_>, ab: &AbResult) {
    let named: Vec<usize> =
        (0..ab.metrics.len()).filter(|&index| ab.metrics[index].answer.is_some()).collect();
    page.heading("Pairs, B to A");
    for (number, pair) in ab.blocks.iter().take(PAIRS_SHOWN).enumerate() {
        let order = if pair.b_first { "B A" } else { "A B" };
        let change_of = |&index: &usize| {
            let own = |side: &[Option<f64>]| side.get(index).copied().flatten();
            let ratio = own(&pair.b).zip(own(&pair.a)).map(|(b, a)| change(b / a));
            format!("{} {}", ab.metrics[index].name, ratio.unwrap_or_else(|| "-".to_owned()))
        };
        let mut line = named.iter().map(change_of).collect::<Vec<_>>().join(", ");
        if !pair.left_out.is_empty() {
            line += &format!("; left out: {}", printable(&pair.left_out));
        }
        page.line(&format!("  {:>3}  {order}  {line}", number + 1), Tone::Plain);
    }
}

pub(crate) fn headline(record: &RunRecord) -> Option<String> {
    let ab = record.job_results.ab()?;
    let named = ab.metrics.iter().filter(|metric| metric.answer.is_some());
    Some(
        named
            .map(|metric| format!("{} {}", metric.name, short(metric, ab)))
            .collect::<Vec<_>>()
            .join(", "),
    )
}

pub(crate) fn csv(record: &RunRecord) -> Option<Vec<Vec<String>>> {
    let ab = record.job_results.ab()?;
    let heads =
        ["metric", "unit", "a", "b", "ratio", "low", "high", "confidence", "pairs", "answer"];
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let row = |metric: &AbMetric| {
        vec![
            metric.name.clone(),
            metric.unit.clone(),
            number(metric.a),
            number(metric.b),
            number(metric.ratio),
            number(metric.interval.map(|(low, _)| low)),
            number(metric.interval.map(|(_, high)| high)),
            metric.confidence.to_string(),
            metric.pairs.to_string(),
            metric.answer.map(|answer| answer.to_string()).unwrap_or_default(),
        ]
    };
    let heads = heads.map(str::to_owned).to_vec();
    Some(std::iter::once(heads).chain(ab.metrics.iter().map(row)).collect())
}

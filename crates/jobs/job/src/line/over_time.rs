//! The page of a target whose line was followed over time.

use plimsoll_core::seek::finding::Finding;
use plimsoll_core::seek::watch::Watched;
use plimsoll_report::number::{count, counted, percent, significant};
use plimsoll_report::page::{Column, Page, Tone};
use plimsoll_report::plain::printable;

/// Rows of the table on the page, and changes that are listed; record and CSV hold all.
const ROWS_MAX: usize = 40;
const NOTES_MAX: usize = 10;

/// Writes where the line was, stretch by stretch.
pub(super) fn sections(page: &mut Page<'_>, finding: &Finding, watched: &[Watched]) {
    // The reason of the verdict says where the line was.
    let with = watched.iter().filter(|one| one.interval_per_s.is_some()).count();
    let text = match with {
        0 => "no line was found".to_owned(),
        _ => format!(
            "{}, {with} with an interval that holds the line with a confidence of {}",
            counted(watched.len() as u64, "stretch").replace("stretchs", "stretches"),
            percent(finding.confidence)
        ),
    };
    page.headline(&text, Tone::Strong);
    if let Some(binding) = &finding.binding {
        page.entry("Limit", &format!("{} breaks first", printable(binding)), Tone::Plain);
    }
    page.blank();
    table(page, watched);
    notes(page, watched);
    page.blank();
}

fn table(page: &mut Page<'_>, watched: &[Watched]) {
    let columns = [
        Column::number("From, s", 0),
        Column::number("until, s", 0),
        Column::number("state", 2),
        Column::number("line/s", 0),
        Column::number("between", 0),
        Column::number("and", 0),
        Column::number("capacity/s", 3),
        Column::number("blocks", 1),
    ];
    let cell = |value: Option<f64>| value.map_or("-".to_owned(), significant);
    let row = |one: &Watched| {
        let cells = vec![
            format!("{:.0}", one.from_s),
            format!("{:.0}", one.until_s),
            one.state.to_string(),
            cell(one.line_per_s),
            cell(one.interval_per_s.map(|(low, _)| low)),
            cell(one.interval_per_s.map(|(_, high)| high)),
            cell(one.capacity_per_s),
            count(one.blocks),
        ];
        (cells, if one.interval_per_s.is_some() { Tone::Plain } else { Tone::Warn })
    };
    // An even choice of many, with both ends.
    let shown = watched.len().min(ROWS_MAX);
    let at = |place: usize| if shown > 1 { place * (watched.len() - 1) / (shown - 1) } else { 0 };
    let rows: Vec<(Vec<String>, Tone)> = (0..shown).map(|place| row(&watched[at(place)])).collect();
    if rows.is_empty() {
        return;
    }
    page.table(&columns, &rows);
    if shown < watched.len() {
        page.note(&format!("{shown} of {} stretches; record and CSV have all", watched.len()));
    }
}

/// The changes of the line, and the reasons of stretches without an interval.
fn notes(page: &mut Page<'_>, watched: &[Watched]) {
    let noted: Vec<(&Watched, &String)> =
        watched.iter().filter_map(|one| Some((one, one.note.as_ref()?))).collect();
    if noted.is_empty() {
        return;
    }
    page.blank();
    for (one, note) in noted.iter().take(NOTES_MAX) {
        let at = format!("{:.0} s", one.until_s);
        page.entry(&at, &printable(note), Tone::Plain);
    }
    if noted.len() > NOTES_MAX {
        page.note(&format!("{NOTES_MAX} of {} notes; record and CSV have all", noted.len()));
    }
}

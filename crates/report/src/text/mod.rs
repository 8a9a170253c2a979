//! The result as a person reads it.
//!
//! The outcome stands first, because the page has to fit a screen and a reader begins at the top: one line that says what came
//! out and decides the exit code, the reasons, and the result in figures. Then comes what a reader must know before using the
//! figures (failures, limits, warnings), then the times. Everything else is for those who ask for it. The page is plain ASCII
//! unless a request's text is not.

mod agents;
mod details;
mod imported;
mod ledger;
mod resources;
pub(crate) mod tables;
mod verdict;

use crate::forms::{Below, Forms};
use crate::number::significant;
use crate::page::{Alert, Page, Tone};
use crate::plain::printable;
use crate::rate::fell_behind;
use plimsoll_record::RunRecord;
use std::path::Path;

pub(crate) use crate::number::samples_needed;
pub use crate::page::Style;

/// Returns the whole page. `folder` is where the record lies, when it was kept; `jobs` show their own sections.
#[must_use]
pub fn render(record: &RunRecord, folder: Option<&Path>, style: &Style, jobs: &[Forms]) -> String {
    let mut own = Page::new(style);
    let below = jobs.iter().find_map(|job| (job.page)(&mut own, record));
    if below.is_none() {
        headline(&mut own, record);
    }
    let below = below.unwrap_or(Below::Figures);
    let (headline, alerts) = own.take_top();
    let mut page = Page::new(style);
    top(&mut page, record, &headline, below);
    page.blank();
    head(&mut page, record);
    page.blank();
    warnings(&mut page, record, alerts, below);
    page.append(own);
    measured(&mut page, record, below);
    place(&mut page, record, folder);
    page.finish()
}

/// Returns the page of a run at one load without its job and target, which stand above it.
#[must_use]
pub fn figures(record: &RunRecord, folder: Option<&Path>, style: &Style) -> String {
    let mut own = Page::new(style);
    headline(&mut own, record);
    let (headline, _) = own.take_top();
    let mut page = Page::new(style);
    top(&mut page, record, &headline, Below::Figures);
    page.blank();
    warnings(&mut page, record, Vec::new(), Below::Figures);
    page.blank();
    measured(&mut page, record, Below::Figures);
    place(&mut page, record, folder);
    page.finish()
}

/// The headline of a run at one load: its rate.
pub fn headline(page: &mut Page<'_>, record: &RunRecord) {
    verdict::headline(page, record);
}

/// The outcome, the result in figures, and the reasons.
fn top(page: &mut Page<'_>, record: &RunRecord, headline: &[(String, Tone)], below: Below) {
    if below == Below::Remarks {
        // Nothing was run, so that nothing has an outcome.
        for (text, tone) in headline {
            page.line(text, *tone);
        }
        return;
    }
    verdict::outcome(page, record);
    for (text, tone) in headline {
        page.entry("", text, *tone);
    }
    verdict::reasons(page, record);
}

/// The job, its target, and when it was run.
fn head(page: &mut Page<'_>, record: &RunRecord) {
    if let Some(import) = record.job_results.import() {
        imported::head(page, record, import);
        return named(page, record);
    }
    let mut what = printable(&record.job);
    if !record.target.url.is_empty() {
        what += &format!(" {}", printable(&record.target.url));
    }
    if record.target.same_host {
        what += " (on this machine)";
    }
    page.entry("Run", &what, Tone::Plain);
    let mut when = format!("started {}", record.started_at);
    when += &format!(", measured {} s", significant(record.duration_s));
    if let Some(seed) = record.scenario.get("seed").and_then(serde_json::Value::as_u64) {
        when += &format!(", seed {seed}");
    }
    page.entry("", &when, Tone::Plain);
    named(page, record);
}

/// Name and labels that the user gave the record.
fn named(page: &mut Page<'_>, record: &RunRecord) {
    let name = (!record.name.is_empty()).then(|| format!("name {}", printable(&record.name)));
    let labels = record.labels.iter().map(|(key, value)| printable(&format!("{key}={value}")));
    let named: Vec<String> = name.into_iter().chain(labels).collect();
    if !named.is_empty() {
        page.entry("", &named.join(", "), Tone::Plain);
    }
}

/// Facts that a reader should know before using the figures; a label stands once.
fn warnings(page: &mut Page<'_>, record: &RunRecord, own: Vec<Alert>, below: Below) {
    let mut above = Page::new(page.style());
    let is_ledger_told = below == Below::Figures && !ledger::is_clean(&record.ledger)
        || record.ledger.failed.total() > 0;
    // Of an import, parts of the ledger are unknown: its own page says what is known.
    if is_ledger_told && record.job_results.import().is_none() {
        ledger::alert(&mut above, record);
    }
    own.iter().for_each(|one| above.alert(one.label, &one.text, one.tone));
    verdict::limits(&mut above, record);
    if below == Below::Figures && fell_behind(record) {
        let text = format!(
            "the target fell behind, at {}/s: response times include the wait",
            significant(record.rate.achieved_per_s)
        );
        above.alert("Warning", &text, Tone::Warn);
    }
    let unknown = record.job_results.unknown().map(|section| {
        let key = &section.key;
        format!("the section '{key}' is not shown: this plimsoll does not know it; use a newer one")
    });
    let mut seen: Vec<&str> = Vec::new();
    for warning in &record.warnings {
        // Two parts of a run may remark the same.
        if !seen.contains(&warning.as_str()) {
            above.alert("Warning", &printable(warning), Tone::Warn);
            seen.push(warning);
        }
    }
    unknown.for_each(|text| above.alert("Warning", &printable(&text), Tone::Warn));
    let (_, alerts) = above.take_top();
    let mut last = "";
    for one in &alerts {
        page.entry(if one.label == last { "" } else { one.label }, &one.text, one.tone);
        last = one.label;
    }
}

/// The times and counts of a run, more or fewer as its job wants it.
fn measured(page: &mut Page<'_>, record: &RunRecord, below: Below) {
    page.blank();
    match below {
        Below::Figures => figure_tables(page, record),
        Below::Books if page.is_verbose() => {
            if ledger::is_clean(&record.ledger) {
                ledger::sums(page, &record.ledger);
            }
            details::statuses(page, record);
            details::generator(page, record);
        }
        Below::Books | Below::Remarks | Below::Ending => {}
    }
    if below != Below::Remarks {
        agents::table(page, record);
        page.blank();
    }
    if matches!(below, Below::Figures | Below::Books) {
        resources::watched(page, record);
    }
    page.blank();
}

fn figure_tables(page: &mut Page<'_>, record: &RunRecord) {
    tables::latency(page, record);
    page.blank();
    if page.is_verbose() {
        tables::phases(page, record);
        page.blank();
    }
    if record.classes.len() > 1 {
        tables::classes(page, record);
        page.blank();
    }
    if page.is_verbose() {
        tables::slowest(page, record);
        crate::traces::lines(page, record);
        page.blank();
        details::all(page, record);
    }
}

/// Where the record lies, and how to see more of it.
fn place(page: &mut Page<'_>, record: &RunRecord, folder: Option<&Path>) {
    let Some(folder) = folder else { return };
    page.entry("Record", &folder.display().to_string(), Tone::Plain);
    if page.is_verbose() {
        return;
    }
    let id = printable(&record.run_id);
    let in_runs = folder.parent() == Some(Path::new("runs"))
        && folder.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&*id));
    if in_runs && !id.is_empty() {
        page.entry("More", &format!("plimsoll report {id} --verbose"), Tone::Plain);
    } else {
        page.entry("More", "plimsoll report with this folder and --verbose", Tone::Plain);
    }
}

#[cfg(test)]
mod tests;

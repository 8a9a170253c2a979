//! The sections that pages of all jobs have, in the order in which people read them.

mod agents;
mod classes;
mod course;
mod curve;
mod decide;
mod failures;
mod findings;
mod health;
mod known;
mod over_time;
mod resources;
mod said;
mod setting;
mod timeline;

use crate::forms::Forms;
use crate::outcome;
use crate::sheet::{Sheet, Tone};
use plimsoll_record::RunRecord;
use plimsoll_record::exit::{FINE, of_record};
use timeline::Timeline;

pub use classes::CLASSES_MAX;
pub use course::Course;
pub use decide::{Decision, ROWS_MAX, put_first};
pub use resources::Resources;

/// Returns the page of a record as data. `course` is what its folder has beside it; `jobs` add their own sections.
#[must_use]
pub fn sheet(record: &RunRecord, course: &Course, jobs: &[Forms]) -> Sheet {
    let timeline = Timeline::new(record, &course.series);
    let (meaning, tone) = outcome::meaning(record);
    let sections = [
        Some(setting::asked(record)),
        decide::section(record),
        decide::limits(record),
        over_time::throughput(record, &timeline),
        over_time::latency(record, &timeline),
        over_time::heat(&course.series, &timeline),
        curve::section(record),
        over_time::against_rate(&timeline),
        classes::classes(record),
        classes::phases(record),
        failures::section(record, course),
        classes::slowest(record),
        failures::ledger(record),
        agents::section(record),
        health::section(record, &timeline),
        resources::section(record, &course.resources),
    ];
    let watchers = resources::of_watchers(record, &course.watchers);
    let last = [
        findings::section(record, &timeline),
        Some(setting::machine(record)),
        setting::command(record),
    ];
    let mut sheet = Sheet {
        title: setting::title(record),
        when: setting::when(record),
        verdict: record.verdict.kind.name().to_owned(),
        tone: if tone == Tone::Good && of_record(record) != FINE { Tone::Bad } else { tone },
        outcome: format!("{}: {meaning}.", sentence(&outcome::line(record, false))),
        sections: sections
            .into_iter()
            .flatten()
            .chain(watchers)
            .chain(last.into_iter().flatten())
            .collect(),
        footer: setting::footer(record),
    };
    if let Some(section) = sheet.section_mut("throughput") {
        section.note += &format!(" {}.", over_time::resolution(&course.series));
    }
    jobs.iter().for_each(|job| (job.sheet)(&mut sheet, record, &course.series));
    known::blank_unknown(&mut sheet, record);
    sheet
}

/// A text that begins a sentence.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests;

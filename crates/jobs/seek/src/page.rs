//! The page of `seek`: the load line, in requests and in users per second.

use plimsoll_job::line;
use plimsoll_record::RunRecord;
use plimsoll_record::seek::SeekUsers;
use plimsoll_report::forms::{Below, Forms};
use plimsoll_report::number::significant;
use plimsoll_report::page::{Page, Tone};
use plimsoll_report::series::Series;
use plimsoll_report::sheet::Sheet;

/// The forms in which a load line is shown.
pub const FORMS: Forms = Forms {
    page: sections,
    csv: line::csv,
    headline: line::headline,
    figures: line::figures,
    sheet,
    ..Forms::LOAD
};

fn sections(page: &mut Page<'_>, record: &RunRecord) -> Option<Below> {
    let results = &record.job_results;
    let found = results.seek()?;
    if results.voter().is_some() {
        return (plimsoll_voter::FORMS.page)(page, record);
    }
    // A ranking benchmark has a page of its own.
    if results.rank().is_some() {
        return None;
    }
    line::sections(page, &found.finding);
    if let Some(found) = &found.users {
        users(page, found);
    }
    Some(Below::Books)
}

/// Says how many users a second the line is.
fn users(page: &mut Page<'_>, users: &SeekUsers) {
    let mut text = match users.certified_per_s {
        Some(per_s) => format!("{} users/s", significant(per_s)),
        None => "no rate of users was certified".to_owned(),
    };
    if let Some(estimate) = users.estimate_per_s {
        text += &format!("; estimate {}/s", significant(estimate));
    }
    if let Some((low, high)) = users.interval_per_s {
        text += &format!(", between {} and {}", significant(low), significant(high));
    }
    text += &format!("; {} requests each", significant(f64::from(users.requests)));
    page.headline(&text, Tone::Plain);
}

/// Adds the load line to the page. One of votes or of ranking has a page of its own, which adds it.
fn sheet(sheet: &mut Sheet, record: &RunRecord, course: &Series) {
    let results = &record.job_results;
    if results.voter().is_some() {
        return (plimsoll_voter::FORMS.sheet)(sheet, record, course);
    }
    if results.rank().is_none() {
        line::sheet(sheet, record);
    }
}

//! The line in users per second, where a search let users come.

use super::number::significant;
use super::page::{Page, Tone};
use plimsoll_record::seek::SeekUsers;

/// Says how many users a second the line is.
pub fn line(page: &mut Page<'_>, users: &SeekUsers) {
    let mut text = match users.certified_per_s {
        Some(per_s) => format!("{} users/s hold the limits", significant(per_s)),
        None => "no rate of users/s was certified".to_owned(),
    };
    if let Some(estimate) = users.estimate_per_s {
        text += &format!("; estimate {}/s", significant(estimate));
    }
    if let Some((low, high)) = users.interval_per_s {
        text += &format!(", between {} and {}", significant(low), significant(high));
    }
    text += &format!("; {} requests each", significant(f64::from(users.requests)));
    page.entry("Users", &text, Tone::Plain);
}

//! The line in users per second, where a search let users come.

use super::number::significant;
use super::page::{Page, Tone};
use plimsoll_core::record::RunRecord;
use serde_json::Value;

/// Says how many users a second the line is.
pub fn line(page: &mut Page<'_>, record: &RunRecord) {
    let Some(users) = record.job_results.get("seek").and_then(|found| found.get("users")) else {
        return;
    };
    let number = |pointer: &str| users.pointer(pointer).and_then(Value::as_f64);
    let Some(each) = number("/requests") else { return };
    let mut text = match number("/certified_per_s") {
        Some(per_s) => format!("{} users/s hold the limits", significant(per_s)),
        None => "no rate of users/s was certified".to_owned(),
    };
    if let Some(estimate) = number("/estimate_per_s") {
        text += &format!("; estimate {}/s", significant(estimate));
    }
    if let (Some(low), Some(high)) = (number("/interval_per_s/0"), number("/interval_per_s/1")) {
        text += &format!(", between {} and {}", significant(low), significant(high));
    }
    text += &format!("; {} requests each", significant(each));
    page.entry("Users", &text, Tone::Plain);
}

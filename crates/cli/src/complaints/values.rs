//! Values that cannot be read, in plain words: never the words of a parser.

use clap::error::{ContextKind, ContextValue};
use plimsoll_workloads::edit_distance::near_miss;
use std::error::Error;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

/// Returns one line about the value of a flag, which the parser names with its placeholder: `--clients <N>`.
pub fn wrong_value(error: &clap::Error, flag: &str) -> String {
    let flag = match flag.split_once(' ') {
        Some((flag, _)) => flag,
        None => flag.trim_start_matches('<').trim_end_matches(['>', '.']),
    };
    let value = error.get(ContextKind::InvalidValue).map(ToString::to_string).unwrap_or_default();
    if let Some(ContextValue::Strings(words)) = error.get(ContextKind::ValidValue)
        && !words.is_empty()
    {
        return wrong_word(flag, &value, words);
    }
    let Some(source) = error.source() else {
        return match value.as_str() {
            "" => format!("{flag}: the value is missing"),
            value => format!("{flag}: '{value}' is not a value of this option"),
        };
    };
    let text = source.to_string();
    match wrong_number(&value, source) {
        Some(problem) => format!("{flag}: {problem}"),
        None if text.contains(&value) => format!("{flag}: {text}"),
        None => format!("{flag} '{value}': {text}"),
    }
}

fn wrong_word(flag: &str, value: &str, words: &[String]) -> String {
    let names: Vec<&str> = words.iter().map(String::as_str).collect();
    let list = match names.split_last() {
        Some((last, front)) if !front.is_empty() => format!("{} or {last}", front.join(", ")),
        _ => names.join(", "),
    };
    match near_miss(value, &names) {
        _ if value.is_empty() => format!("{flag}: the value is missing; write {list}"),
        Some(near) => format!("{flag} '{value}': did you mean '{near}'? Write {list}"),
        None => format!("{flag} '{value}': write {list}"),
    }
}

/// Returns the fault of a number in plain words; `None` if the value is of another kind.
fn wrong_number(value: &str, source: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = source.downcast_ref::<ParseIntError>() {
        let is_number = value.trim().parse::<f64>().is_ok_and(f64::is_finite);
        return Some(match error.kind() {
            IntErrorKind::Empty => "the number is missing".to_owned(),
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
                format!("'{value}' is too large a number")
            }
            _ if is_number && value.starts_with('-') => {
                format!("'{value}' is not a whole number of at least 0")
            }
            _ if is_number => format!("'{value}' is not a whole number"),
            _ => format!("'{value}' is not a number"),
        });
    }
    if source.is::<ParseFloatError>() {
        return Some(format!("'{value}' is not a number"));
    }
    let text = source.to_string();
    let (_, range) = text.split_once(" is not in ")?;
    let (least, most) = range.split_once("..")?;
    let (least, most): (i64, i64) = match most.strip_prefix('=') {
        Some(most) => (least.parse().ok()?, most.parse().ok()?),
        None => (least.parse().ok()?, most.parse::<i64>().ok()? - 1),
    };
    let (least, most) = (grouped(least), grouped(most));
    Some(format!("'{value}' is out of range; use a number from {least} to {most}"))
}

/// Returns a number with commas between its thousands.
fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = if number < 0 { "-".to_owned() } else { String::new() };
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

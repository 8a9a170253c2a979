//! `plimsoll-zoo ab`.

use super::late;
use super::models::{self, Model};
use super::table::{Row, markdown};
use crate::page::refresh;
use std::process::ExitCode;

const USAGE: &str = "plimsoll-zoo ab [SESSIONS] [MODEL] [--late] [--first-seed N] [--page FILE]";
/// Sessions of a model, unless the command line has another number.
const SESSIONS: u64 = 1_000;
/// Seeds of the published tables begin here. The method was tuned on those below 6,000.
const FIRST_SEED: u64 = 2_000_000;

struct Arguments {
    sessions: u64,
    model: String,
    first_seed: u64,
    is_late: bool,
    page: Option<String>,
}

impl Arguments {
    fn parse(given: &[String]) -> Result<Self, String> {
        let mut parsed = Self {
            sessions: SESSIONS,
            model: String::new(),
            first_seed: FIRST_SEED,
            is_late: false,
            page: None,
        };
        let mut given = given.iter();
        let mut place = 0;
        while let Some(argument) = given.next() {
            let mut value = || given.next().ok_or(format!("{argument} needs a value"));
            let number = |text: &str| match text.parse::<u64>() {
                Ok(number) if number > 0 => Ok(number),
                _ => Err(format!("'{text}' is not a number of at least 1")),
            };
            match (argument.as_str(), place) {
                ("--first-seed", _) => parsed.first_seed = number(value()?)?,
                ("--late", _) => parsed.is_late = true,
                ("--page", _) => parsed.page = Some(value()?.clone()),
                (flag, _) if flag.starts_with('-') => {
                    return Err(format!("unknown option '{flag}'"));
                }
                (sessions, 0) => (parsed.sessions, place) = (number(sessions)?, 1),
                (model, 1) => (parsed.model, place) = (model.to_owned(), 2),
                (other, _) => return Err(format!("unexpected argument '{other}'")),
            }
        }
        Ok(parsed)
    }
}

fn carry_out(arguments: &Arguments) -> Result<String, String> {
    let mut chosen = models::all();
    chosen.retain(|model| model.name.starts_with(&arguments.model));
    if chosen.is_empty() {
        let names: Vec<&str> = models::all().iter().map(|model| model.name).collect();
        return Err(format!("unknown model '{}'; expected {}", arguments.model, names.join(", ")));
    }
    if arguments.is_late {
        return late_generators(&chosen, arguments);
    }
    let rows: Vec<Row> = chosen
        .into_iter()
        .map(|model| Row::of(model, arguments.sessions, arguments.first_seed))
        .collect();
    let text = format!(
        "`make ab-zoo`, {} sessions of each kind and model; {} of 20 % and of the others.\n{}",
        arguments.sessions,
        (arguments.sessions / 5).max(1),
        markdown(&rows)
    );
    if let Some(page) = &arguments.page {
        refresh(page, "ab-zoo", &text)?;
    }
    Ok(text)
}

/// The table of comparisons whose generator is late.
fn late_generators(chosen: &[Model], arguments: &Arguments) -> Result<String, String> {
    let each = |model: &Model| {
        late::KINDS
            .map(|kinds| late::Row::of(*model, kinds, arguments.sessions, arguments.first_seed))
    };
    let rows: Vec<late::Row> = chosen.iter().flat_map(each).collect();
    let text = format!(
        "`make ab-late-zoo`, {} sessions of each kind and model.\n\n{}",
        arguments.sessions,
        late::markdown(&rows)
    );
    if let Some(page) = &arguments.page {
        refresh(page, "ab-late-zoo", &text)?;
    }
    Ok(text)
}

/// Carries out the command with the arguments after `ab`; returns 64 if they are wrong.
#[must_use]
#[allow(clippy::print_stdout, clippy::print_stderr)]
pub fn run(given: &[String]) -> ExitCode {
    match Arguments::parse(given).and_then(|arguments| carry_out(&arguments)) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("plimsoll-zoo: {reason}\nusage: {USAGE}");
            ExitCode::from(64)
        }
    }
}

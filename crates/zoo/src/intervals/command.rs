//! `plimsoll-zoo intervals`.

use super::{HEAD, line, measure};
use crate::page::refresh;
use std::process::ExitCode;

const USAGE: &str = "plimsoll-zoo intervals [RUNS] [TARGET] [--page FILE]";

/// Prints the table of `plimsoll-zoo intervals`, or writes it into a page; the exit code is 1 if a row covers less than it claims.
#[must_use]
#[allow(clippy::print_stdout, clippy::print_stderr)]
pub fn run(given: &[String]) -> ExitCode {
    let refused = |what: &str, problem: &str| {
        eprintln!("plimsoll-zoo: {what:?}: {problem}\nusage: {USAGE}");
        ExitCode::from(64)
    };
    let (mut words, mut page) = (Vec::new(), None);
    let mut given = given.iter();
    while let Some(word) = given.next() {
        match word.as_str() {
            "--page" => match given.next() {
                Some(path) => page = Some(path),
                None => return refused(word, "write the file behind it"),
            },
            flag if flag.starts_with('-') => return refused(flag, "unknown option"),
            _ => words.push(word.as_str()),
        }
    }
    let runs = words.first().map_or("500", |word| word);
    let Some(runs) = runs.parse::<u64>().ok().filter(|runs| *runs > 0) else {
        return refused(runs, "write a number of runs");
    };
    let name = words.get(1).map_or("", |word| word);
    let rows = super::rows(name);
    if rows.is_empty() {
        return refused(name, "no target's name begins so; write for instance 'M/M/1 at 0.8'");
    }
    let mut is_short = false;
    let mut lines = vec![HEAD.to_owned()];
    for (target, rate_per_s, length_s) in rows {
        let covered = measure(target, rate_per_s, length_s, runs);
        lines.push(line(target, rate_per_s, length_s, &covered));
        for one in covered.iter().filter(|one| one.is_short()) {
            eprintln!("covers too little: {} {rate_per_s}/s {length_s} s: {one:?}", target.name());
            is_short = true;
        }
    }
    let table = lines.join("\n");
    if let Some(path) = page {
        if let Err(problem) = refresh(path, "interval-zoo", &table) {
            eprintln!("plimsoll-zoo: {problem}");
            return ExitCode::FAILURE;
        }
    } else {
        println!("{table}");
    }
    ExitCode::from(u8::from(is_short))
}

//! `make fuzz`: runs the targets under libFuzzer, each for its share of the time, and writes what came of it into a page.

// This program prints.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod campaign;

use campaign::{Plan, Sanitizer};
use plimsoll_fuzzing::{TARGETS, target};
use std::process::ExitCode;

const USAGE: &str = "\
usage: plimsoll-fuzzing run [--minutes N] [--inputs N] [--target NAME] [--sanitizer address] [--page FILE]
       plimsoll-fuzzing corpus [--target NAME]
       plimsoll-fuzzing seeds [--target NAME]
       plimsoll-fuzzing one NAME FILE
       plimsoll-fuzzing list

run     fuzz all targets or one, for N minutes in all, or until each has had N inputs
corpus  keep the smallest inputs that reach all that was reached in fuzz/corpus
seeds   begin the corpus of a new target in fuzz/corpus with its first inputs
one     run one input, such as a finding, without instrumentation
list    print the targets";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["run", rest @ ..] => plan(rest).and_then(|plan| campaign::run(&plan)),
        ["corpus", rest @ ..] => plan(rest).and_then(|plan| campaign::keep_corpus(&plan)),
        ["seeds", rest @ ..] => plan(rest).and_then(|plan| campaign::begin_corpus(&plan)),
        ["one", name, file] => one(name, file).map(|()| true),
        ["list"] => {
            TARGETS.iter().for_each(|target| println!("{:20} {}", target.name, target.reads));
            Ok(true)
        }
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(problem) => {
            eprintln!("plimsoll-fuzzing: {problem}");
            ExitCode::from(2)
        }
    }
}

fn plan(words: &[&str]) -> Result<Plan, String> {
    let mut plan = Plan { targets: TARGETS.iter().collect(), ..Plan::default() };
    for pair in words.chunks(2) {
        let [flag, value] = pair else { return Err(format!("{} needs a value", pair[0])) };
        let number = || {
            let number = value.parse::<u64>().ok().filter(|number| *number > 0);
            number.ok_or_else(|| format!("{flag} {value}: write a whole number from 1"))
        };
        match *flag {
            "--minutes" => plan.minutes = Some(number()?),
            "--inputs" => plan.inputs = Some(number()?),
            "--page" => plan.page = Some((*value).to_owned()),
            "--sanitizer" if *value == "address" => plan.sanitizer = Some(Sanitizer::Address),
            "--sanitizer" => return Err(format!("--sanitizer {value}: write address")),
            "--target" => {
                let found = target(value);
                let known = || TARGETS.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
                let found = found.ok_or_else(|| format!("--target {value}: write {}", known()))?;
                plan.targets = vec![found];
            }
            _ => return Err(format!("unknown option '{flag}'\n{USAGE}")),
        }
    }
    Ok(plan)
}

fn one(name: &str, file: &str) -> Result<(), String> {
    let found = target(name).ok_or_else(|| format!("unknown target '{name}'"))?;
    let input = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    (found.run)(&input);
    println!("{name}: every property holds for {file}");
    Ok(())
}

//! Runs the saboteur and prints what plimsoll said about itself.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod commands;

use commands::arguments::{Arguments, USAGE};
use commands::{heading, loaded, soak};
use plimsoll_sabotage::judging::Finding;
use plimsoll_sabotage::judging::table::{Line, Table};
use plimsoll_sabotage::sockets::list;
use plimsoll_sabotage::sockets::stage::Stage;
use plimsoll_sabotage::virtual_time::{draw, one};
use plimsoll_zoo::page::refresh;
use plimsoll_zoo::parallel;
use std::process::ExitCode;

/// Largest share of runs on a healthy machine that may be called not valid.
const FALSE_ALARMS_MAX: f64 = 0.01;

fn show(name: &str, finding: &Finding) {
    let mut line = format!("{name}: {}", finding.said);
    if let Some(wrong) = &finding.wrong {
        line += &format!("; WRONG: {wrong}");
    }
    if finding.false_alarm {
        line += "; NOT VALID ON A HEALTHY MACHINE";
    }
    for defect in &finding.defects {
        line += &format!("; DEFECT: {defect}");
    }
    eprintln!("{line}");
}

fn in_virtual_time(arguments: &Arguments) -> Table {
    let seeds = arguments.seed..arguments.seed + arguments.runs;
    let seeds: Vec<u64> =
        seeds.filter(|seed| draw::kind(*seed).contains(&arguments.only)).collect();
    let findings = parallel::map(seeds.len() as u64, |at| one(seeds[at as usize]));
    let mut table = Table::default();
    for (seed, (kind, healthy, finding)) in seeds.iter().zip(findings) {
        if arguments.shows(&finding) {
            show(&format!("virtual seed {seed}, {kind}"), &finding);
        }
        if arguments.each {
            eprintln!("{:?}", draw::scene(*seed));
        }
        table.add(kind, &finding, healthy);
    }
    table
}

/// Runs that the harness could not carry out here are said, and are no findings.
fn on_sockets(arguments: &Arguments) -> Result<(Table, Vec<String>), String> {
    let stage = Stage::here()?;
    let (mut table, mut left_out) = (Table::default(), Vec::new());
    let cases = list::all();
    for case in cases.iter().filter(|case| case.kind.contains(&arguments.only)) {
        match stage.run(case, arguments.even_if_busy) {
            Ok(finding) => {
                if arguments.shows(&finding) {
                    show(&format!("{}, {}", case.kind, case.words), &finding);
                }
                table.add(case.kind, &finding, case.healthy);
            }
            Err(reason) => {
                eprintln!("{}, {}: not carried out: {reason}", case.kind, case.words);
                left_out.push(format!("{} ({reason})", case.kind));
            }
        }
    }
    Ok((table, left_out))
}

fn headline(line: &Line) -> String {
    format!(
        "{} runs: valid and wrong {}, not valid on a healthy machine {} of {}, other defects {}.",
        line.runs, line.wrong, line.false_alarms, line.healthy, line.defects
    )
}

fn is_well(line: &Line) -> bool {
    line.wrong == 0
        && line.defects == 0
        && line.false_alarms as f64 <= line.healthy as f64 * FALSE_ALARMS_MAX
}

fn text(arguments: &Arguments) -> Result<(String, bool), String> {
    let mut text = heading("sabotage");
    let mut well = true;
    if arguments.command != "virtual" {
        let (table, left_out) = on_sockets(arguments)?;
        well &= is_well(&table.total());
        text += &format!("\nReal sockets, {}\n\n{}", headline(&table.total()), table.markdown());
        if !left_out.is_empty() {
            text += &format!("\nNot carried out on this machine: {}.\n", left_out.join(", "));
        }
    }
    if arguments.command != "sockets" {
        let table = in_virtual_time(arguments);
        well &= is_well(&table.total());
        text += &format!("\nVirtual time, {}\n\n{}", headline(&table.total()), table.markdown());
    }
    Ok((text, well))
}

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("plimsoll-sabotage: {problem}\nusage: {USAGE}");
            return ExitCode::from(64);
        }
    };
    let done = match arguments.command.as_str() {
        "serve" => soak::serve(&arguments),
        "soak" => soak::soak(&arguments),
        "slow" => soak::slow(&arguments),
        "loaded" => loaded::run(&arguments, show),
        _ => verdicts(&arguments),
    };
    done.unwrap_or_else(|problem| {
        eprintln!("plimsoll-sabotage: {problem}");
        ExitCode::FAILURE
    })
}

/// The table of docs/verdicts.md. The exit code is 2 if a verdict was wrong.
fn verdicts(arguments: &Arguments) -> Result<ExitCode, String> {
    let (text, is_well) = text(arguments)?;
    println!("{text}");
    arguments.page.as_ref().map_or(Ok(()), |page| refresh(page, "sabotage", &text))?;
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

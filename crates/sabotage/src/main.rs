//! Runs the saboteur and prints what plimsoll said about itself.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use plimsoll_core::clock::{format_utc, wall_us};
use plimsoll_engine::health::machine;
use plimsoll_sabotage::judging::Finding;
use plimsoll_sabotage::judging::table::{Line, Table, replace};
use plimsoll_sabotage::sockets::list;
use plimsoll_sabotage::sockets::stage::Stage;
use plimsoll_sabotage::virtual_time::{draw, one};
use plimsoll_zoo::parallel;
use std::process::ExitCode;

const USAGE: &str = "plimsoll-sabotage [all|virtual|sockets] [--runs N] [--seed N] [--only KIND] [--each] [--even-if-busy] [--page FILE]\n\
                     \n\
                     all      both stages (default)\n\
                     virtual  runs in virtual time: --runs of them [default: 1000], from --seed on [default: 0]\n\
                     sockets  the built program against real targets; PLIMSOLL names the program, or it stands beside this one\n\
                     --only   only sabotages whose name contains KIND\n\
                     --each   print each run and its scene, not only those with a finding\n\
                     --even-if-busy  also judge runs during which others used the machine; figures may then be off\n\
                     --page   also put the tables between the markers of FILE";

/// Largest share of runs on a healthy machine that may be called not valid.
const FALSE_ALARMS_MAX: f64 = 0.01;

struct Arguments {
    stage: String,
    runs: u64,
    seed: u64,
    only: String,
    each: bool,
    even_if_busy: bool,
    page: Option<String>,
}

impl Arguments {
    fn parse(mut given: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Self {
            stage: "all".to_owned(),
            runs: 1_000,
            seed: 0,
            only: String::new(),
            each: false,
            even_if_busy: false,
            page: None,
        };
        while let Some(argument) = given.next() {
            let mut value = || given.next().ok_or(format!("{argument} needs a value"));
            let number = |text: String| {
                text.parse().map_err(|_| format!("{argument} takes a number, not '{text}'"))
            };
            match argument.as_str() {
                "all" | "virtual" | "sockets" => parsed.stage = argument,
                "--runs" => parsed.runs = number(value()?)?,
                "--seed" => parsed.seed = number(value()?)?,
                "--only" => parsed.only = value()?,
                "--each" => parsed.each = true,
                "--even-if-busy" => parsed.even_if_busy = true,
                "--page" => parsed.page = Some(value()?),
                _ => return Err(format!("unknown argument '{argument}'")),
            }
        }
        Ok(parsed)
    }

    fn shows(&self, finding: &Finding) -> bool {
        self.each || finding.wrong.is_some() || finding.false_alarm || !finding.defects.is_empty()
    }
}

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
    let (machine, date) = (machine(), format_utc(wall_us()));
    let mut text = format!(
        "`make sabotage` on {}, {}, {} processors, Linux {}.\n",
        date.get(..10).unwrap_or(&date),
        machine.cpu,
        machine.cpus,
        machine.kernel
    );
    let mut well = true;
    if arguments.stage != "virtual" {
        let (table, left_out) = on_sockets(arguments)?;
        well &= is_well(&table.total());
        text += &format!("\nReal sockets, {}\n\n{}", headline(&table.total()), table.markdown());
        if !left_out.is_empty() {
            text += &format!("\nNot carried out on this machine: {}.\n", left_out.join(", "));
        }
    }
    if arguments.stage != "sockets" {
        let table = in_virtual_time(arguments);
        well &= is_well(&table.total());
        text += &format!("\nVirtual time, {}\n\n{}", headline(&table.total()), table.markdown());
    }
    Ok((text, well))
}

fn put_into(page: &str, text: &str) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{page}: {error}");
    let old = std::fs::read_to_string(page).map_err(said)?;
    let new = replace(&old, text).map_err(|problem| format!("{page}: {problem}"))?;
    std::fs::write(page, new).map_err(said)
}

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("plimsoll-sabotage: {problem}\nusage: {USAGE}");
            return ExitCode::from(64);
        }
    };
    let told = text(&arguments).and_then(|(text, well)| {
        println!("{text}");
        arguments.page.as_ref().map_or(Ok(()), |page| put_into(page, &text))?;
        Ok(well)
    });
    match told {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(problem) => {
            eprintln!("plimsoll-sabotage: {problem}");
            ExitCode::FAILURE
        }
    }
}

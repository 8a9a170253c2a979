//! Runs the simulation over many seeds, or one seed with its trace.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use plimsoll_core::clock::{format_utc, wall_us};
use plimsoll_engine::health::machine;
use plimsoll_simulate::driver::{Seeds, Tally, first_found, run, silence_panics};
use plimsoll_simulate::parts::{Order, PARTS, Part};
use plimsoll_simulate::planted::Planted;
use plimsoll_simulate::table::{self, grouped};
use plimsoll_zoo::page::refresh;
use std::process::ExitCode;

const USAGE: &str = "plimsoll-simulate [--seeds N] [--part NAME] [--from SEED] [--twice-every N] [--commit TEXT] [--page FILE]\n       \
                     plimsoll-simulate --part NAME --trace SEED\n\
                     \n\
                     --seeds        runs of each part [default: 1000]\n\
                     --part         only this part (engine, sessions, http1, http2, postgres, volt, feed, visit, users, admission)\n\
                     --from         the first seed [default: 0]\n\
                     --twice-every  run one of N seeds twice and compare the records [default: 10]\n\
                     --trace        run this seed alone, and print its scene, its requests and what is wrong\n\
                     --commit       the commit that the page names\n\
                     --page         also put the tables between the markers of FILE";

/// Seeds within which each planted defect must be found.
const PLANTED_SEEDS: u64 = 1_000;

struct Arguments {
    seeds: Seeds,
    part: Option<Part>,
    trace: Option<u64>,
    commit: String,
    page: Option<String>,
}

impl Arguments {
    fn parse(mut given: impl Iterator<Item = String>) -> Result<Self, String> {
        let seeds = Seeds { from: 0, count: 1_000, twice_every: 10 };
        let (part, trace, commit, page) = (None, None, String::new(), None);
        let mut parsed = Self { seeds, part, trace, commit, page };
        while let Some(argument) = given.next() {
            let mut value = || given.next().ok_or(format!("{argument} needs a value"));
            let number = |text: String| {
                text.parse().map_err(|_| format!("{argument} takes a number, not '{text}'"))
            };
            match argument.as_str() {
                "--seeds" => parsed.seeds.count = number(value()?)?,
                "--from" => parsed.seeds.from = number(value()?)?,
                "--twice-every" => parsed.seeds.twice_every = number(value()?)?,
                "--trace" => parsed.trace = Some(number(value()?)?),
                "--commit" => parsed.commit = value()?,
                "--page" => parsed.page = Some(value()?),
                "--part" => {
                    let name = value()?;
                    let part = Part::named(&name);
                    let names = PARTS.map(|part| part.name).join(", ");
                    parsed.part =
                        Some(part.ok_or(format!("unknown part '{name}'; there are {names}"))?);
                }
                _ => return Err(format!("unknown argument '{argument}'")),
            }
        }
        if parsed.trace.is_some() && parsed.part.is_none() {
            return Err("--trace needs --part, the part whose seed it is".to_owned());
        }
        Ok(parsed)
    }
}

fn trace(part: Part, seed: u64) -> ExitCode {
    let order = Order { seed, wants_trace: true, ..Order::default() };
    let outcome = part.run_twice(order);
    println!("{}", outcome.trace);
    if outcome.findings.is_empty() {
        println!("{} seed {seed}: nothing is wrong", part.name);
        return ExitCode::SUCCESS;
    }
    outcome.findings.iter().for_each(|finding| println!("{} seed {seed}: {finding}", part.name));
    ExitCode::from(2)
}

fn simulate(arguments: &Arguments, part: Part) -> Tally {
    let (name, count) = (part.name, arguments.seeds.count);
    let tally = run(part, arguments.seeds, |done| {
        if done > 0 && done.is_multiple_of(10_000) {
            eprintln!("{name}: {} of {} runs", grouped(done), grouped(count));
        }
    });
    eprintln!(
        "{name}: {} runs in {:.1} s, {} with a finding",
        grouped(tally.runs),
        tally.took_ns as f64 / 1e9,
        tally.failed
    );
    for (seed, findings) in &tally.findings {
        eprintln!("{name} seed {seed} (make simulate PART={name} TRACE={seed} prints it):");
        findings.iter().for_each(|finding| eprintln!("    {finding}"));
    }
    tally
}

/// Each planted defect, in the first part that finds it.
fn planted() -> Vec<table::Found> {
    let each = |planted: Planted| {
        let parts = ["http1", "http2"].into_iter().filter_map(Part::named);
        let found = parts.map(|part| (part, first_found(part, planted, PLANTED_SEEDS)));
        let found: Vec<_> = found.collect();
        let best =
            found.into_iter().min_by_key(|(_, found)| found.as_ref().map_or(u64::MAX, |f| f.0));
        best.map(|(part, found)| (planted, part, found))
    };
    Planted::ALL.into_iter().filter_map(each).collect()
}

fn text(arguments: &Arguments, rows: &[(Part, Tally)]) -> (String, bool) {
    let (machine, date) = (machine(), format_utc(wall_us()));
    let found = planted();
    let well = rows.iter().all(|(_, tally)| tally.failed == 0)
        && found.iter().all(|(_, _, found)| found.is_some());
    let commit = match arguments.commit.as_str() {
        "" => String::new(),
        commit => format!(", commit {commit}"),
    };
    let text = format!(
        "`make simulate SEEDS={}` on {}{commit}: {}, {} processors, Linux {}. Seeds from {} on.\n\n{}\n{}\n\
         Defects that were planted in the engine's books, its clock, a codec or the sessions, and the run in which the \
         judge finds each:\n\n{}",
        arguments.seeds.count,
        date.get(..10).unwrap_or(&date),
        machine.cpu,
        machine.cpus,
        machine.kernel,
        arguments.seeds.from,
        table::parts(rows),
        table::faults(rows),
        table::planted(&found),
    );
    (text, well)
}

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("plimsoll-simulate: {problem}\nusage: {USAGE}");
            return ExitCode::from(64);
        }
    };
    silence_panics();
    if let (Some(part), Some(seed)) = (arguments.part, arguments.trace) {
        return trace(part, seed);
    }
    let parts = arguments.part.map_or(PARTS.to_vec(), |part| vec![part]);
    let rows: Vec<(Part, Tally)> =
        parts.into_iter().map(|part| (part, simulate(&arguments, part))).collect();
    let (text, well) = text(&arguments, &rows);
    println!("{text}");
    let written = arguments.page.as_ref().map_or(Ok(()), |page| refresh(page, "simulate", &text));
    match (written, well) {
        (Ok(()), true) => ExitCode::SUCCESS,
        (Ok(()), false) => ExitCode::from(2),
        (Err(problem), _) => {
            eprintln!("plimsoll-simulate: {problem}");
            ExitCode::FAILURE
        }
    }
}

//! Lets plimsoll meet every hostile peer, and prints what came of it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use plimsoll_core::clock::{format_utc, wall_us};
use plimsoll_engine::health::machine;
use plimsoll_hostile::floods::{self, Measure};
use plimsoll_hostile::{peers, table};
use plimsoll_zoo::page::refresh;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "plimsoll-hostile [all|peers|floods] [--seconds N] [--connections N] [--only TEXT] [--page FILE]\n\
                     \n\
                     all            both parts (default)\n\
                     peers          hostile servers, met by the commands of plimsoll\n\
                     floods         floods of the servers of plimsoll\n\
                     --seconds      length of each [default: 5]\n\
                     --connections  connections of a flood that is made of many [default: 10000]\n\
                     --only         only those whose name contains TEXT\n\
                     --page         also put the tables between the markers of FILE\n\
                     PLIMSOLL names the program, or it stands beside this one.";

struct Arguments {
    part: String,
    seconds: u32,
    connections: usize,
    only: String,
    page: Option<String>,
}

impl Arguments {
    fn parse(mut given: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Self {
            part: "all".to_owned(),
            seconds: 5,
            connections: 10_000,
            only: String::new(),
            page: None,
        };
        while let Some(argument) = given.next() {
            let mut value = || given.next().ok_or(format!("{argument} needs a value"));
            let wrong = |text: &str| format!("{argument} takes a number, not '{text}'");
            match argument.as_str() {
                "all" | "peers" | "floods" => parsed.part = argument,
                "--seconds" => {
                    let text = value()?;
                    parsed.seconds = text.parse().map_err(|_| wrong(&text))?;
                }
                "--connections" => {
                    let text = value()?;
                    parsed.connections = text.parse().map_err(|_| wrong(&text))?;
                }
                "--only" => parsed.only = value()?,
                "--page" => parsed.page = Some(value()?),
                _ => return Err(format!("unknown argument '{argument}'")),
            }
        }
        Ok(parsed)
    }

    fn has(&self, part: &str) -> bool {
        self.part == "all" || self.part == part
    }
}

fn program() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os("PLIMSOLL") {
        // It is started in other folders.
        let path = PathBuf::from(named);
        return path
            .canonicalize()
            .map_err(|error| format!("PLIMSOLL={}: {error}", path.display()));
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let beside = own.with_file_name("plimsoll");
    if beside.is_file() {
        Ok(beside)
    } else {
        Err(format!("{} is not there; build it first", beside.display()))
    }
}

/// Says what is wrong with one case; returns the number of faults.
fn tell(name: &str, faults: &[String], output: &str) -> usize {
    eprintln!("{name}: {}", if faults.is_empty() { "well".to_owned() } else { faults.join("; ") });
    if !faults.is_empty() {
        let shown: String = output.chars().take(2_000).flat_map(char::escape_default).collect();
        eprintln!("  {}", shown.replace("\\n", "\n  "));
    }
    faults.len()
}

fn meet(arguments: &Arguments, program: &Path) -> Result<(Vec<table::Met>, usize), String> {
    let (mut met, mut faults) = (Vec::new(), 0);
    for case in peers::all() {
        let name = format!("{}: {}", case.group, case.name);
        if !name.contains(&arguments.only) {
            continue;
        }
        let place = tempfile::tempdir().map_err(|error| error.to_string())?;
        peers::provide(place.path()).map_err(|error| error.to_string())?;
        let length = Duration::from_secs(arguments.seconds.into());
        let found =
            case.play(program, place.path(), length).map_err(|error| format!("{name}: {error}"))?;
        faults += tell(&name, &case.faults(&found), &found.ended.output);
        met.push((case, found));
    }
    Ok((met, faults))
}

fn withstand(arguments: &Arguments, program: &Path) -> Result<(Vec<table::Stood>, usize), String> {
    let (mut stood, mut faults) = (Vec::new(), 0);
    let measure = Measure {
        seconds: arguments.seconds,
        connections: arguments.connections,
        patience: Duration::from_secs(10),
    };
    for flood in floods::all() {
        let name = format!("{}: {}", flood.server, flood.name);
        if !name.contains(&arguments.only) {
            continue;
        }
        let place = tempfile::tempdir().map_err(|error| error.to_string())?;
        let found = flood
            .play(program, place.path(), measure)
            .map_err(|error| format!("{name}: {error}"))?;
        faults += tell(&name, &flood.faults(&found), &found.output);
        stood.push((flood, found));
    }
    Ok((stood, faults))
}

fn run(arguments: &Arguments) -> Result<usize, String> {
    let program = program()?;
    let (machine, date) = (machine(), format_utc(wall_us()));
    let mut text = format!(
        "`make flood` on {}, {}, {} processors, Linux {}; {} s for each case, {} connections.\n",
        date.get(..10).unwrap_or(&date),
        machine.cpu,
        machine.cpus,
        machine.kernel,
        arguments.seconds,
        arguments.connections,
    );
    let mut faults = 0;
    if arguments.has("peers") {
        let (met, own) = meet(arguments, &program)?;
        text += &format!(
            "\nHostile servers: {} cases, {own} faults.\n\n{}",
            met.len(),
            table::peers(&met)
        );
        faults += own;
    }
    if arguments.has("floods") {
        let (stood, own) = withstand(arguments, &program)?;
        text +=
            &format!("\nFloods: {} cases, {own} faults.\n\n{}", stood.len(), table::floods(&stood));
        faults += own;
    }
    println!("{text}");
    if let Some(page) = &arguments.page {
        refresh(page, "flood", &text)?;
    }
    Ok(faults)
}

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("{problem}\n\n{USAGE}");
            return ExitCode::from(64);
        }
    };
    match run(&arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(2)
        }
    }
}

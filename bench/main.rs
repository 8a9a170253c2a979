//! `make bench`: plimsoll beside its peers on this machine, as ratios.
//!
//! Each measure alternates between plimsoll and its peers inside one round, so that a machine whose speed drifts
//! within minutes is fair to all of them; a ratio is taken within each round, and the median of the rounds' ratios is
//! what counts. The target is pinned to one core and the generator to another. CPU time comes from the kernel
//! (`wait4`), the number of requests from each tool's own output. Nothing leaves the loopback interface.

// The result of a benchmark is what it prints.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod against;
// A browser that does not answer ends the benchmark.
#[allow(clippy::unwrap_used, dead_code)]
#[path = "../tests/page/browser.rs"]
mod browser;
mod child;
#[path = "../tests/delay.rs"]
mod delay;
mod document;
mod engine;
mod flags;
mod generator;
mod http;
mod machine;
mod measure;
mod reply;
mod server;
#[allow(dead_code)]
#[path = "../tests/page/sheets.rs"]
mod sheets;
mod statistics;
mod table;

use anyhow::Result;
use clap::Parser;
use flags::{Flags, Measure};
use machine::{Conditions, Cores};
use measure::{Bench, Section};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn main() -> ExitCode {
    match run(&Flags::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(flags: &Flags) -> Result<ExitCode> {
    flags.check()?;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let cores = Cores::choose()?;
    let bench = Bench {
        plimsoll: flags.plimsoll.clone(),
        rounds: flags.rounds,
        seconds: flags.seconds,
        cores,
        interrupted,
        folder: tempfile::Builder::new().prefix("plimsoll-bench-").tempdir()?,
    };
    println!("plimsoll beside its peers: {}\n{}\n", machine::describe(), cores.describe());
    let mut missed = 0;
    for measure in flags.measures() {
        let before = Conditions::now()?;
        let mut section = match measure {
            Measure::Against => against::against(&bench, &against::Options::of(flags)?)?,
            _ => bench.run(measure)?,
        };
        let how_long = match measure {
            Measure::Against => "blocks of 0.7 s".to_owned(),
            _ => format!("{} rounds, {} s a run", bench.rounds, bench.seconds_of(measure)),
        };
        section.notes.push(before.since(&how_long)?);
        show(measure, &section, flags)?;
        missed += section.claims.iter().filter(|claim| !claim.holds()).count();
    }
    Ok(if flags.gate && missed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn show(measure: Measure, section: &Section, flags: &Flags) -> Result<()> {
    println!("## {}\n\n{}", section.title, section.body());
    if let Some(path) = &flags.write {
        document::refresh(path, measure.name(), &section.body())?;
        eprintln!("bench: refreshed '{}' in {}", measure.name(), path.display());
    }
    Ok(())
}

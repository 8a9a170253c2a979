//! `plimsoll feed` beside `vespa feed`: operations a second, and CPU for each.

use super::{Bench, Claim, Section, search};
use crate::child::{self, Child};
use crate::server::Server;
use crate::statistics::{median, ratios, short, spread, whole};
use crate::table::Table;
use anyhow::{Context, Result, bail};
use plimsoll_core::clock::now_ns;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Longest time of one feed, s.
const LIMIT_S: u32 = 120;

/// One feed of everything.
struct Fed {
    per_s: f64,
    cpu_us: f64,
    server_cpu_us: f64,
}

/// Who feeds.
enum Feeder {
    Plimsoll(&'static str),
    Vespa(PathBuf),
}

impl Feeder {
    fn start(&self, bench: &Bench, server: &Server, file: &Path) -> Result<Child> {
        let (url, file) = (server.url.trim_end_matches('/'), file.display());
        let (program, line) = match self {
            Feeder::Plimsoll(flags) => (
                &bench.plimsoll,
                format!("feed {url} {file} {flags} --no-record --quiet --vespa-statistics -"),
            ),
            Feeder::Vespa(program) => (program, format!("feed -t {url} {file}")),
        };
        let arguments: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        Child::start(program, &arguments, Some(bench.cores.generator))
    }

    /// Feeds the file, and makes sure that every operation of it was accepted.
    fn run(&self, bench: &Bench, server: &Server, file: &Path, operations: u64) -> Result<Fed> {
        let (begun_ns, before_s) = (now_ns(), server.cpu_s()?);
        let ended = self.start(bench, server, file)?.finish(LIMIT_S, &bench.interrupted)?;
        let seconds = (now_ns() - begun_ns) as f64 / 1e9;
        let said: Value = serde_json::from_str(&ended.output)
            .with_context(|| format!("what a feeder said: {}", ended.errors.trim()))?;
        let accepted = said.get("feeder.ok.count").and_then(Value::as_u64);
        if accepted != Some(operations) {
            bail!("{accepted:?} of {operations} operations were accepted: {}", ended.errors.trim());
        }
        let each_us = |cpu_s: f64| cpu_s * 1e6 / operations as f64;
        Ok(Fed {
            per_s: operations as f64 / seconds,
            cpu_us: each_us(ended.cpu_s),
            server_cpu_us: each_us(server.cpu_s()? - before_s),
        })
    }
}

/// The bundled text, again and again by each feeder in turn.
///
/// # Errors
/// When a tool is missing or fails, or an operation is not accepted.
pub fn feed(bench: &Bench) -> Result<Section> {
    let server = Server::plimsoll(bench, "search", &["--durability", "none"])?;
    let file = bench.folder.path().join("operations.ndjson");
    let operations = search::write_operations(&file)?;
    let feeders = [
        ("plimsoll feed", Feeder::Plimsoll("")),
        ("plimsoll feed --http1", Feeder::Plimsoll("--http1")),
        ("vespa feed", Feeder::Vespa(child::vespa()?)),
    ];
    // Nobody pays for the first writes.
    feeders[0].1.run(bench, &server, &file, operations)?;
    let mut runs: Vec<Vec<Fed>> = feeders.iter().map(|_| Vec::new()).collect();
    for round in 0..bench.rounds as usize {
        for step in 0..feeders.len() {
            let at = (round + step) % feeders.len();
            eprint!("\rround {} of {}: {:<40}", round + 1, bench.rounds, feeders[at].0);
            runs[at].push(feeders[at].1.run(bench, &server, &file, operations)?);
        }
    }
    eprint!("\r{:<70}\r", "");
    let column = |at: usize, value: fn(&Fed) -> f64| runs[at].iter().map(value).collect::<Vec<_>>();
    let (cpu, rate) = (|fed: &Fed| fed.cpu_us, |fed: &Fed| fed.per_s);
    let (base_cpu, base_rate) = (column(2, cpu), column(2, rate));
    let mut table = Table::new(&[
        "feeder",
        "operations/s",
        "ratio to vespa feed",
        "CPU us/operation",
        "ratio to vespa feed",
        "target CPU us/operation",
    ]);
    for (at, (name, _)) in feeders.iter().enumerate() {
        table.row(vec![
            (*name).to_owned(),
            spread(&column(at, rate), whole),
            spread(&ratios(&column(at, rate), &base_rate), |ratio| format!("{ratio:.2}")),
            spread(&column(at, cpu), short),
            spread(&ratios(&column(at, cpu), &base_cpu), |ratio| format!("{ratio:.2}")),
            short(median(&column(at, |fed| fed.server_cpu_us))),
        ]);
    }
    let against = |value: fn(&Fed) -> f64, base: &[f64]| median(&ratios(&column(0, value), base));
    Ok(Section {
        title: format!("Feeding {} documents to the embedded search target", whole(operations as f64)),
        tables: vec![table],
        claims: vec![
            Claim::most("CPU per operation, of vespa feed's", against(cpu, &base_cpu), 0.5),
            Claim::least("operations/s, of vespa feed's", against(rate, &base_rate), 1.0),
        ],
        notes: vec![
            "Start and end of each feeder are in its time. The target keeps documents in memory until it is closed \
             (`--durability none`), so that the disk is not what is measured."
                .to_owned(),
        ],
    })
}

//! `plimsoll visit` beside `vespa visit` and a download: documents a second, and CPU for what was received.

use super::{Bench, Claim, Section, search};
use crate::child::{self, Child, require};
use crate::delay::Delay;
use crate::server::Server;
use crate::statistics::{median, ratios, short, spread, whole};
use crate::table::Table;
use anyhow::{Context, Result, bail};
use plimsoll_core::clock::now_ns;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often the bundled text is in the corpus, under other ids.
const COPIES: u32 = 4;
/// Longest time of one visit, s.
const LIMIT_S: u32 = 120;
/// Round trip of the long way.
const ROUND_TRIP: Duration = Duration::from_millis(70);
/// Slices on the long way.
const SLICES: u32 = 32;
/// How much more they have to bring than one chunked chain.
const SLICING_PAYS: f64 = 15.0;

/// One visit of everything.
struct Dump {
    documents: f64,
    /// Bytes of the documents as they were written.
    bytes: f64,
    seconds: f64,
    cpu_s: f64,
}

impl Dump {
    fn gbps(&self) -> f64 {
        self.bytes * 8.0 / 1e9 / self.seconds
    }

    fn cpu_s_per_gb(&self) -> f64 {
        self.cpu_s * 1e9 / self.bytes
    }
}

/// How the corpus is fetched.
enum Way {
    /// `plimsoll visit` with these flags, into a file.
    Plimsoll(&'static str),
    /// `vespa visit` with these flags, its output into a file.
    Vespa(PathBuf, &'static str),
    /// `curl` into a file, and a parse of that file.
    Download,
}

impl Way {
    fn run(&self, bench: &Bench, server: &Server, documents: u64) -> Result<Dump> {
        let file = bench.folder.path().join("dump");
        let _ = std::fs::remove_file(&file);
        let begun_ns = now_ns();
        let cpu_s = match self {
            Way::Plimsoll(flags) => own(bench, &server.url, flags, &file)?.cpu_s,
            Way::Vespa(program, flags) => vespa(bench, program, flags, server, &file)?,
            Way::Download => download(bench, server, &file)?,
        };
        let seconds = (now_ns() - begun_ns) as f64 / 1e9;
        let bytes = std::fs::metadata(&file)?.len() as f64;
        let ids = count_ids(&file)?;
        if ids != documents {
            bail!("{ids} of {documents} documents came");
        }
        Ok(Dump { documents: documents as f64, bytes, seconds, cpu_s })
    }
}

/// Documents of a dump, by the beginnings of their ids.
fn count_ids(file: &Path) -> Result<u64> {
    let bytes = std::fs::read(file)?;
    let finder = memchr::memmem::find_iter(&bytes, b"\"id:plimsoll:doc::");
    Ok(finder.count() as u64)
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// One visit by plimsoll; what it took is its own processor time, and the record's figures.
fn own(bench: &Bench, url: &str, flags: &str, file: &Path) -> Result<Dump> {
    let line = format!("visit {url} --cluster plimsoll --quiet --no-record --json - {flags} --out");
    let mut arguments = words(&line);
    arguments.push(file.display().to_string());
    let child = Child::start(&bench.plimsoll, &arguments, Some(bench.cores.generator))?;
    let ended = child.finish(LIMIT_S, &bench.interrupted)?;
    let failed = || format!("plimsoll visit ended with {:?}: {}", ended.code, ended.errors.trim());
    let record: Value = serde_json::from_str(&ended.output).with_context(failed)?;
    // How fast it is is what is measured here: that plimsoll was the limit is no failure.
    let complete = record.pointer("/visit/complete").and_then(Value::as_bool) == Some(true);
    if !complete || !matches!(ended.code, Some(0 | 3)) {
        bail!(failed());
    }
    let at = |path: &str| record.pointer(path).and_then(Value::as_f64).context(path.to_owned());
    Ok(Dump {
        documents: at("/visit/documents")?,
        bytes: at("/visit/bytes")?,
        seconds: at("/visit/seconds")?,
        cpu_s: ended.cpu_s,
    })
}

fn vespa(bench: &Bench, program: &Path, flags: &str, server: &Server, file: &Path) -> Result<f64> {
    let target = server.url.trim_end_matches('/');
    let arguments = words(&format!("visit -t {target} --content-cluster plimsoll {flags}"));
    let child = Child::start(program, &arguments, Some(bench.cores.generator))?;
    let ended = child.finish(LIMIT_S, &bench.interrupted)?;
    if ended.code != Some(0) {
        bail!("vespa visit failed with {:?}: {}", ended.code, ended.errors.trim());
    }
    std::fs::write(file, &ended.output)?;
    Ok(ended.cpu_s)
}

fn download(bench: &Bench, server: &Server, file: &Path) -> Result<f64> {
    let url = format!("{}document/v1/?cluster=plimsoll&stream=true", server.url);
    let path = file.display().to_string();
    let curl = [&["-sSf".to_owned(), "-o".to_owned()][..], &[path.clone(), url]].concat();
    let parse = ["-c", "import json,sys; json.load(open(sys.argv[1], 'rb'))"].map(str::to_owned);
    let parse = [&parse[..], &[path]].concat();
    let mut cpu_s = 0.0;
    for (program, arguments) in [("curl", curl), ("python3", parse)] {
        let child = Child::start(&require(program)?, &arguments, Some(bench.cores.generator))?;
        let ended = child.finish(LIMIT_S, &bench.interrupted)?;
        if ended.code != Some(0) {
            bail!("{program} failed with {:?}: {}", ended.code, ended.errors.trim());
        }
        cpu_s += ended.cpu_s;
    }
    Ok(cpu_s)
}

/// Beside other tools on loopback, then over a long way.
///
/// # Errors
/// When a tool is missing or fails, or does not bring every document.
pub fn visit(bench: &Bench) -> Result<Section> {
    let server = Server::plimsoll(bench, "search", &["--durability", "none"])?;
    let documents = search::feed_bundled(bench, &server, COPIES)?;
    let cli = child::vespa()?;
    let ways = [
        ("plimsoll visit --slices 4", Way::Plimsoll("--slices 4")),
        ("plimsoll visit --slices 1", Way::Plimsoll("--slices 1")),
        ("vespa visit", Way::Vespa(cli.clone(), "")),
        ("vespa visit --stream", Way::Vespa(cli, "--stream")),
        ("curl to a file, then a JSON parse", Way::Download),
    ];
    let mut dumps: Vec<Vec<Dump>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..bench.rounds as usize {
        for step in 0..ways.len() {
            let at = (round + step) % ways.len();
            eprint!("\rround {} of {}: {:<40}", round + 1, bench.rounds, ways[at].0);
            dumps[at].push(ways[at].1.run(bench, &server, documents)?);
        }
    }
    eprint!("\r{:<70}\r", "");
    let names: Vec<_> = ways.iter().map(|way| way.0).collect();
    let (long, pays) = long_way(bench, &server)?;
    let cpu = |at: usize, base: usize| {
        median(&ratios(
            &column(&dumps[at], Dump::cpu_s_per_gb),
            &column(&dumps[base], Dump::cpu_s_per_gb),
        ))
    };
    Ok(Section {
        title: format!("Visiting {} documents of the embedded search target", whole(documents as f64)),
        tables: vec![table(&names, &dumps), long],
        claims: vec![
            Claim::most("CPU per GB of plimsoll visit, of vespa visit's", cpu(0, 2), 0.5),
            Claim::most("the same, of a download's and a parse's", cpu(0, 4), 1.0),
            Claim::least("32 streamed slices over the long way, of one chunked", pays, SLICING_PAYS),
        ],
        notes: vec![
            "GB and Gbit are of the documents as each tool writes them. The second table goes through a proxy that \
             holds back every byte for 35 ms each way; bandwidth is not limited."
                .to_owned(),
        ],
    })
}

fn column(dumps: &[Dump], value: impl Fn(&Dump) -> f64) -> Vec<f64> {
    dumps.iter().map(value).collect()
}

fn table(names: &[&str], dumps: &[Vec<Dump>]) -> Table {
    let mut table =
        Table::new(&["tool", "documents/s", "Gbit/s", "CPU s/GB", "ratio to vespa visit"]);
    let base = column(&dumps[2], Dump::cpu_s_per_gb);
    for (name, dumps) in names.iter().zip(dumps) {
        let cpu = column(dumps, Dump::cpu_s_per_gb);
        table.row(vec![
            (*name).to_owned(),
            spread(&column(dumps, |dump| dump.documents / dump.seconds), whole),
            spread(&column(dumps, Dump::gbps), short),
            spread(&cpu, short),
            spread(&ratios(&cpu, &base), |ratio| format!("{ratio:.2}")),
        ]);
    }
    table
}

/// One chunked chain of requests against many streamed ones, through a proxy that adds a round trip.
fn long_way(bench: &Bench, server: &Server) -> Result<(Table, f64)> {
    let proxy = Delay::start(server.address(), ROUND_TRIP)?;
    let file = bench.folder.path().join("long");
    let sliced = format!("--slices {SLICES}");
    let mut per_s = [Vec::new(), Vec::new()];
    for _ in 0..bench.rounds {
        for (at, flags) in ["--slices 1 --chunked", &sliced].into_iter().enumerate() {
            let dump = own(bench, &proxy.url(), flags, &file)?;
            per_s[at].push(dump.documents / dump.seconds);
        }
    }
    let mut table = Table::new(&["70 ms away", "documents/s", "ratio"]);
    let [one, many] = &per_s;
    table.row(vec!["one slice, chunked".to_owned(), spread(one, whole), "1.00".to_owned()]);
    let gain = ratios(many, one);
    table.row(vec![
        format!("{SLICES} slices, streamed"),
        spread(many, whole),
        spread(&gain, short),
    ]);
    Ok((table, median(&gain)))
}

//! The cost of a run that is watched, followed and sent elsewhere, and the lag of one that fifty tabs of a browser follow.

use super::{Bench, Claim, Section};
use crate::browser::Browser;
use crate::child::Child;
use crate::generator::CONNECTIONS;
use crate::measure::page::CHROMIUM;
use crate::reply::{self, Sample};
use crate::server::Server;
use crate::statistics::{median, ratios, short, spread};
use crate::table::Table;
use anyhow::{Context, Result, bail};
use plimsoll_core::clock::{SECOND_NS, now_ns};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

/// Requests a second: of the run whose cost is measured, and of the one that fifty tabs follow.
const RATES: (u32, u32) = (20_000, 2_000);
/// Length of a run, in lengths of other measures: the work that is done once, such as the page at the end, is a small part
/// of it.
const LENGTH: u32 = 5;
const TABS: usize = 50;
/// Longest time until a run prints the address of its page, ns.
const PAGE_NS: u64 = 20 * SECOND_NS;
/// Seconds that a run may take beyond its length: to give fifty tabs the report.
const PATIENCE_S: u32 = 30;
/// Largest CPU time per request with all outlets, of that with none.
const COST_MAX: f64 = 1.03;
/// Largest p99 of lag, of that without: room for the noise of a median of rounds.
const LAG_MAX: f64 = 1.2;

/// The outlets of a run.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Nothing, and no process is watched.
    Alone,
    /// A browser's events, an OTLP receiver, a page at the end, and the target's process.
    All,
    /// The live page, without a browser.
    NoTab,
    /// The same, while fifty tabs of Chromium follow another run, which has the target's core: a machine that has a busy browser.
    Elsewhere,
    /// The live page in fifty tabs of Chromium.
    Tabs,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Alone => "none, `--watch none`",
            Self::All => "`--live`, `--otlp`, `--html`, `--watch`",
            Self::NoTab => "`--live`, no browser",
            Self::Elsewhere => "`--live`, 50 tabs on another run",
            Self::Tabs => "`--live`, 50 tabs",
        }
    }
}

/// A target, and a receiver of metrics.
struct Scene {
    target: Server,
    receiver: Server,
}

/// The cost of all outlets, and the lag of a run that fifty tabs follow.
///
/// # Errors
/// When Chromium is missing, or a run fails.
pub fn outlets(bench: &Bench) -> Result<Section> {
    anyhow::ensure!(Path::new(CHROMIUM).exists(), "{CHROMIUM} is missing; run: make bench-tools");
    let scene = Scene {
        target: Server::plimsoll(bench, "null", &[])?,
        receiver: Server::plimsoll(bench, "null", &[])?,
    };
    let cost_of = [Kind::Alone, Kind::All];
    let tabs_of = [Kind::NoTab, Kind::Elsewhere, Kind::Tabs];
    let cost = alternate(bench, &scene, &cost_of, RATES.0)?;
    let tabs = alternate(bench, &scene, &tabs_of, RATES.1)?;
    let cpu = |runs: &[Sample]| -> Vec<f64> { runs.iter().map(Sample::cpu_us).collect() };
    let lag = |runs: &[Sample]| -> Vec<f64> {
        runs.iter().map(|run| run.own.map_or(f64::NAN, |own| own.lag_p99_us)).collect()
    };
    let ratio = |of: &dyn Fn(&[Sample]) -> Vec<f64>, runs: &[Vec<Sample>], than: usize| {
        median(&ratios(&of(&runs[than + 1]), &of(&runs[than])))
    };
    let mut table =
        Table::new(&["outlets", "requests/s", "CPU us/request", "ratio", "lag p99 us", "ratio"]);
    let groups = [(&cost_of[..], RATES.0, &cost), (&tabs_of[..], RATES.1, &tabs)];
    for (kinds, rate, runs) in groups {
        for (kind, own) in kinds.iter().zip(runs) {
            let of_first = |of: &dyn Fn(&[Sample]) -> Vec<f64>| {
                spread(&ratios(&of(own), &of(&runs[0])), |ratio| format!("{ratio:.2}"))
            };
            table.row(vec![
                kind.name().to_owned(),
                rate.to_string(),
                spread(&cpu(own), short),
                of_first(&cpu),
                spread(&lag(own), short),
                of_first(&lag),
            ]);
        }
    }
    let claims = vec![
        Claim::most(
            "CPU per request with all outlets, of that with none",
            ratio(&cpu, &cost, 0),
            COST_MAX,
        ),
        Claim::most("lag p99 with all outlets, of that with none", ratio(&lag, &cost, 0), LAG_MAX),
        Claim::most(
            "lag p99 with fifty tabs, of that with the same tabs on another run",
            ratio(&lag, &tabs, 1),
            LAG_MAX,
        ),
    ];
    let notes = vec![format!(
        "Runs of {} s, in turn. With all outlets, a client follows the events of the live page as a browser does. The tabs are opened \
         while the run goes on, and become its report; Chromium and the receiver of metrics share the target's core. A browser that \
         loads fifty pages is felt on the other core as well, whichever run they show: so the tabs are compared with the same tabs on \
         another run.",
        LENGTH * bench.seconds
    )];
    Ok(Section {
        title: "Outlets: a live page, metrics, and the target's resources".to_owned(),
        tables: vec![table],
        claims,
        notes,
    })
}

/// Runs of several kinds in turn.
fn alternate(bench: &Bench, scene: &Scene, kinds: &[Kind], rate: u32) -> Result<Vec<Vec<Sample>>> {
    let mut runs = vec![Vec::new(); kinds.len()];
    for round in 0..bench.rounds as usize {
        for step in 0..kinds.len() {
            let at = (round + step) % kinds.len();
            let name = kinds[at].name();
            eprint!("\rround {} of {}: {name:<60}", round + 1, bench.rounds);
            let sample = run(bench, scene, kinds[at], rate, round);
            runs[at].push(sample.with_context(|| format!("outlets: {name}"))?);
        }
    }
    eprint!("\r{:<80}\r", "");
    Ok(runs)
}

fn run(bench: &Bench, scene: &Scene, kind: Kind, rate: u32, round: usize) -> Result<Sample> {
    let seconds = LENGTH * bench.seconds;
    let outlets = match kind {
        Kind::Alone => "--watch none".to_owned(),
        Kind::All => {
            let page = bench.folder.path().join("report.html");
            let (otlp, page) = (&scene.receiver.url, page.display());
            format!("--live --otlp {otlp} --html {page} --watch {}", scene.target.id()?)
        }
        Kind::NoTab | Kind::Elsewhere | Kind::Tabs => "--live".to_owned(),
    };
    let start = |url: &str, outlets: &str, core| {
        let line = format!(
            "load {url} --rate {rate} --connections {CONNECTIONS} --duration {seconds}s --seed {} --no-record --json - {outlets}",
            round + 1
        );
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Child::start(&bench.plimsoll, &arguments, Some(core))
    };
    let child = start(&scene.target.url, &outlets, bench.cores.generator)?;
    let other = match kind {
        Kind::Elsewhere => Some(start(&scene.receiver.url, "--live", bench.cores.target)?),
        _ => None,
    };
    let follower = match kind {
        Kind::All => Some(follow(&page(bench, &child)?)?),
        _ => None,
    };
    let browser = match kind {
        Kind::Tabs | Kind::Elsewhere => {
            Some(tabs(bench, &page(bench, other.as_ref().unwrap_or(&child))?)?)
        }
        _ => None,
    };
    let ended = child.finish(seconds + PATIENCE_S, &bench.interrupted)?;
    drop((browser, other));
    if let Some(follower) = follower {
        let bytes = follower.join().ok().context("the client that follows the page")?;
        anyhow::ensure!(bytes > 0, "the live page sent no event");
    }
    // 3: the run itself says that the generator was late; that is what is measured here.
    if !matches!(ended.code, Some(0 | 3)) {
        bail!("plimsoll failed with {:?}: {}", ended.code, ended.errors.trim());
    }
    Ok(Sample { cpu_s: ended.cpu_s, ..reply::plimsoll(&ended.output)? })
}

/// The address of the live page, once the run has printed it.
fn page(bench: &Bench, child: &Child) -> Result<String> {
    let end_ns = now_ns() + PAGE_NS;
    loop {
        let said = child.errors_so_far()?;
        if let Some(url) = said.split_whitespace().find(|word| word.contains("/?token=")) {
            return Ok(url.to_owned());
        }
        if child.ends_within(10_000_000, &bench.interrupted)? || now_ns() > end_ns {
            bail!("the run printed no address of its page: {}", said.trim());
        }
    }
}

/// Follows the events of a page on a thread until the run ends; returns their bytes.
fn follow(url: &str) -> Result<std::thread::JoinHandle<usize>> {
    let (host, token) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once("/?token="))
        .context("the address of the page")?;
    let mut stream = TcpStream::connect(host)?;
    stream.write_all(
        format!("GET /events?token={token} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes(),
    )?;
    Ok(std::thread::spawn(move || {
        let mut bytes = [0; 65_536];
        std::iter::from_fn(|| stream.read(&mut bytes).ok().filter(|count| *count > 0)).sum()
    }))
}

/// A browser on the target's core, with the page in fifty tabs.
fn tabs(bench: &Bench, url: &str) -> Result<Browser> {
    let before = sched_getaffinity(None)?;
    let mut own = CpuSet::new();
    own.set(bench.cores.target);
    // The browser inherits it.
    sched_setaffinity(None, &own)?;
    let mut browser = Browser::start(Path::new(CHROMIUM), Box::new(()));
    sched_setaffinity(None, &before)?;
    for _ in 0..TABS {
        browser.open_tab(url);
    }
    Ok(browser)
}

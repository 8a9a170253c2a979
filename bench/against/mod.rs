//! `make bench-against REF`: what an operation costs in this build and in another, row by row, with an answer for each.
//!
//! A row is the CPU time of one kind of operation, of the generator or of the server. Both builds run in short blocks, A B or
//! B A by chance, and the unit is the pair: the logarithm of the ratio of its two blocks. The answers over all rows together
//! have the error rate that `plimsoll_decide::pairs` states.

mod block;
mod history;
mod inputs;
mod scenes;

use crate::flags::Flags;
use crate::measure::{Bench, Claim, Section};
use crate::statistics::{median, short};
use crate::table::Table;
use anyhow::{Context, Result};
use block::{Part, block};
use plimsoll_core::rng::Rng;
use plimsoll_decide::pairs::{Direction, Finding, Kind, Metric, Pairs, Terms};
use scenes::{SCENES, Scene};
use std::path::{Path, PathBuf};

/// Pairs of each row. With ten, the sign-flip test alone can reach the error rate of a whole list.
const PAIRS: usize = 12;
/// False answers of a whole list, as a share of the lists.
const ERROR: f64 = 0.05;
/// Costs within this share of each other are the same; a row that is worse by more fails the gate.
const MARGIN: f64 = 0.03;
/// Seed of the order of the blocks.
const ORDER_SEED: u64 = 1;

/// The builds of a comparison.
struct Builds {
    /// The build of this checkout: the other end of every row.
    own: Bench,
    /// The build that the other is compared with.
    before: Bench,
    /// The build in question.
    now: Bench,
}

/// The costs of a row.
struct Measured {
    name: String,
    /// CPU time of an operation, us: before, now; in order of the pairs.
    costs_us: [Vec<f64>; 2],
    /// Why it has none.
    absent: Option<String>,
}

/// The options of a comparison.
pub struct Options {
    /// The build to compare with.
    pub before: PathBuf,
    /// Names of the two builds, such as their commits.
    pub names: [String; 2],
    /// Folder of the history, if the result is added to it.
    pub history: Option<PathBuf>,
    /// Only the scenes whose name begins with one of these; all, if it is empty.
    pub scenes: Vec<String>,
}

impl Options {
    /// The options of the command line.
    ///
    /// # Errors
    /// When there is nothing to compare with.
    pub fn of(flags: &Flags) -> Result<Self> {
        let before = flags.before.clone().context("--only against needs --before FILE")?;
        let name = |given: &Option<String>, otherwise: &Path| {
            given.clone().unwrap_or_else(|| otherwise.display().to_string())
        };
        let names = [name(&flags.before_name, &before), name(&flags.now_name, &flags.plimsoll)];
        Ok(Self { before, names, history: flags.history.clone(), scenes: flags.scenes.clone() })
    }
}

/// Compares the builds, and adds the result to the history.
///
/// # Errors
/// When this checkout's own build fails, or the history cannot be written. What only the build before cannot do leaves a
/// row without a figure.
pub fn against(bench: &Bench, options: &Options) -> Result<Section> {
    let builds = Builds {
        own: bench.of(Path::new(env!("CARGO_BIN_EXE_plimsoll")))?,
        before: bench.of(&options.before)?,
        now: bench.of(&bench.plimsoll)?,
    };
    let mut order = Rng::new(ORDER_SEED);
    let mut rows = Vec::new();
    let is_wanted = |scene: &&Scene| {
        options.scenes.is_empty()
            || options.scenes.iter().any(|name| scene.name.starts_with(name.as_str()))
    };
    for scene in SCENES.iter().filter(is_wanted) {
        rows.extend(measure(scene, &builds, &mut order)?);
    }
    eprint!("\r{:<70}\r", "");
    let findings = answers(&rows);
    if let Some(folder) = &options.history {
        history::append(folder, &options.names, &rows, &findings)?;
    }
    Ok(section(&options.names, &rows, &findings))
}

/// Measures the rows of one scene, the two builds in turn.
fn measure(scene: &Scene, builds: &Builds, order: &mut Rng) -> Result<Vec<Measured>> {
    eprint!("\r{:<70}", format!("{}: servers and documents", scene.name));
    let folder = builds.own.folder.path();
    let inputs = (scene.inputs)(&builds.own, folder)
        .with_context(|| format!("inputs of '{}'", scene.name))?;
    let own = match scene.has(Part::Generator, &inputs) {
        true => Some(scene.start(&builds.own, &builds.own)?),
        false => None,
    };
    // A server that does not start, or refuses its documents, leaves the rows of servers without figures.
    let servers = match scene.has(Part::Server, &inputs) {
        true => scene
            .start(&builds.before, &builds.own)
            .and_then(|before| Ok([before, scene.start(&builds.now, &builds.own)?]))
            .map(Some),
        false => Ok(None),
    };
    let mut measured = Vec::new();
    for row in &inputs {
        eprint!("\r{:<70}", format!("{}: {}", scene.name, row.name));
        let result = match (row.part, &own, &servers) {
            (Part::Generator, Some(own), _) => pairs(order, |side, seed| {
                let client = if side == 0 { &builds.before } else { &builds.now };
                block(row, client, own, seed)
            }),
            (Part::Server, _, Ok(Some(servers))) => {
                pairs(order, |side, seed| block(row, &builds.own, &servers[side], seed))
            }
            (Part::Server, _, Err(error)) => Err(anyhow::anyhow!("{error:#}")),
            _ => unreachable!("a server was started for each part that has a row"),
        };
        measured.push(match result {
            Ok(costs_us) => Measured { name: row.title(), costs_us, absent: None },
            Err(error) => {
                if builds.own.is_interrupted() {
                    return Err(error);
                }
                let reason = format!("{error:#}").lines().next().unwrap_or_default().to_owned();
                Measured { name: row.title(), costs_us: Default::default(), absent: Some(reason) }
            }
        });
    }
    Ok(measured)
}

/// Runs the blocks of a row: a block of each side that is not counted, then the pairs.
fn pairs(
    order: &mut Rng,
    mut block: impl FnMut(usize, usize) -> Result<f64>,
) -> Result<[Vec<f64>; 2]> {
    let mut costs: [Vec<f64>; 2] = Default::default();
    for side in 0..2 {
        block(side, 0)?;
    }
    for pair in 1..=PAIRS {
        let first = (order.next_u64() % 2) as usize;
        for side in [first, 1 - first] {
            costs[side].push(block(side, pair)?);
        }
    }
    Ok(costs)
}

/// The answers of all rows that were measured, in their order.
fn answers(rows: &[Measured]) -> Vec<Finding> {
    let measured: Vec<&Measured> = rows.iter().filter(|row| row.absent.is_none()).collect();
    let metrics = measured
        .iter()
        .map(|row| Metric { name: row.name.clone(), direction: Direction::LowerIsBetter })
        .collect();
    let terms = Terms { error: ERROR, margin: MARGIN, pairs_most: PAIRS };
    let mut pairs = Pairs::new(terms, metrics);
    for pair in 0..PAIRS {
        let ratios: Vec<Option<f64>> = measured
            .iter()
            .map(|row| Some((row.costs_us[1][pair] / row.costs_us[0][pair]).ln()))
            .collect();
        pairs.add(&ratios);
    }
    pairs.findings()
}

/// Returns the answer in words.
fn word(kind: &Kind) -> &'static str {
    match kind {
        Kind::Better => "better",
        Kind::Worse => "WORSE",
        Kind::Same => "same",
        Kind::CannotTell => "cannot tell",
    }
}

fn section(names: &[String; 2], rows: &[Measured], findings: &[Finding]) -> Section {
    let mut table = Table::new(&[
        "CPU time of an operation, us",
        &names[0],
        &names[1],
        "ratio",
        "interval",
        "answer",
    ]);
    let mut claims = Vec::new();
    let mut notes = Vec::new();
    let mut left = findings.iter();
    for row in rows {
        let Some(finding) = row.absent.is_none().then(|| left.next()).flatten() else {
            let reason = row.absent.clone().unwrap_or_default();
            notes.push(format!("Not measured: {}: {reason}", row.name));
            continue;
        };
        table.row(vec![
            row.name.clone(),
            short(median(&row.costs_us[0])),
            short(median(&row.costs_us[1])),
            format!("{:.3}", finding.ratio),
            format!("{:.3} to {:.3}", finding.low, finding.high),
            word(&finding.kind).to_owned(),
        ]);
        if fails(finding) {
            let what = format!("{}: {} of {}", row.name, names[1], names[0]);
            claims.push(Claim::most(&what, finding.ratio, 1.0 + MARGIN));
        }
    }
    notes.push(format!(
        "{PAIRS} pairs of blocks for each row; of lists without any difference, at most {:.0} % have a wrong answer. \
         Same: within {:.0} %. The generator of each build loads this checkout's server, and this checkout's generator loads the \
         server of each build.",
        ERROR * 100.0,
        MARGIN * 100.0
    ));
    Section {
        title: format!("{} beside {}", names[1], names[0]),
        tables: vec![table],
        claims,
        notes,
    }
}

/// True if a row fails the gate: it is worse, and by more than the margin.
fn fails(finding: &Finding) -> bool {
    matches!(finding.kind, Kind::Worse) && finding.ratio > 1.0 + MARGIN
}

//! `plimsoll ab` on real sockets: claims between equal sides, a planted difference, and a generator that is the limit.

use super::{Bench, Claim, Section};
use crate::child::Child;
use crate::flags::Measure;
use crate::server::Server;
use crate::table::Table;
use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Time that a comparison may take beyond its budget, s.
const PATIENCE_S: u32 = 120;
/// A limited generator needs no more time than this to be noticed, s.
pub const LIMITED_S: u32 = 30;
/// Service times of the queue, and those of the one that is 5 % slower.
const SERVICE: &str = "exponential:5ms";
const SLOWER: &str = "exponential:5.25ms";
const QUEUE: [&str; 3] = ["--servers", "0", "--service"];
/// The load on queues and nginx, and one that no generator can make on one core.
const LOAD: [&str; 5] = ["load", "--rate", "1000", "--arrivals", "poisson"];
const TOO_MUCH: [&str; 3] = ["load", "--rate", "2000000"];
const METRICS: [&str; 3] = ["p50", "p95", "p99"];

/// Answers of the sessions of one row.
#[derive(Default)]
struct Row {
    budget_s: u32,
    sessions: u32,
    limited: u32,
    /// Sessions with any claim of a difference.
    claims: u32,
    /// Worse, better and same, for each metric.
    answers: [[u32; 3]; METRICS.len()],
    seconds: f64,
    /// Sessions whose generator was late, and not the limit.
    late: u32,
}

impl Row {
    fn add(&mut self, record: &Value) {
        self.sessions += 1;
        if record["verdict"]["kind"] == "generator-limited" {
            let reason = record["ab"]["generator"]["reason"].as_str().unwrap_or_default();
            self.limits(reason);
        }
        self.late += u32::from(record["ab"]["generator"]["is_late"] == true);
        self.seconds += record["ab"]["spent_s"].as_f64().unwrap_or_default();
        let mut has_claim = false;
        for metric in record["ab"]["metrics"].as_array().into_iter().flatten() {
            let Some(at) = METRICS.iter().position(|name| metric["name"] == *name) else {
                continue;
            };
            let word = metric["answer"].as_str().unwrap_or_default();
            if let Some(kind) = ["worse", "better", "same"].iter().position(|own| *own == word) {
                self.answers[at][kind] += 1;
                has_claim |= kind < 2;
            }
        }
        self.claims += u32::from(has_claim);
    }

    fn limits(&mut self, reason: &str) {
        self.limited += 1;
        eprintln!("\rsession {}: {reason}", self.sessions);
    }

    fn cells(&self, name: &str) -> Vec<String> {
        let mut cells = vec![name.to_owned(), self.sessions.to_string(), self.claims.to_string()];
        cells.extend(
            self.answers.iter().map(|[worse, better, same]| {
                format!("{worse} worse, {better} better, {same} same")
            }),
        );
        cells.push(self.late.to_string());
        cells.push(self.limited.to_string());
        cells.push(format!("{:.0}", self.seconds / f64::from(self.sessions.max(1))));
        cells
    }
}

/// One queue on both sides.
///
/// # Errors
/// When a server or a comparison fails, or the user asked to stop.
pub fn queue(bench: &Bench) -> Result<Section> {
    let one = serve_queue(bench, SERVICE, "7")?;
    let row = sessions(bench, [&one, &one], bench.seconds, &LOAD, &[])?;
    Ok(section(bench, "one serve queue, both sides", &row, few_claims(bench, &row), &on_queue()))
}

/// One nginx on both sides.
///
/// # Errors
/// As [`queue`].
pub fn nginx(bench: &Bench) -> Result<Section> {
    let one = Server::nginx(bench)?;
    let row = sessions(bench, [&one, &one], bench.seconds, &LOAD, &[])?;
    Ok(section(bench, "one nginx, both sides", &row, few_claims(bench, &row), &at_rate()))
}

/// A queue, and one whose service times are 5 % longer.
///
/// # Errors
/// As [`queue`].
pub fn slower(bench: &Bench) -> Result<Section> {
    let (fast, slow) = (serve_queue(bench, SERVICE, "7")?, serve_queue(bench, SLOWER, "8")?);
    let row = sessions(bench, [&fast, &slow], bench.seconds, &LOAD, &[])?;
    let found = Claim::least(
        "sessions that found p50 worse",
        f64::from(row.answers[0][0]),
        (f64::from(bench.rounds) * 0.95).floor(),
    );
    Ok(section(bench, "serve queue, B 5 % slower", &row, vec![found], &on_queue()))
}

/// More load than the generator can send, and a side whose requests take more of its time.
///
/// # Errors
/// As [`queue`].
pub fn limited(bench: &Bench) -> Result<Section> {
    let null = Server::plimsoll(bench, "null", &[])?;
    let header = format!("--header 'X-Large: {}'", "x".repeat(4000));
    let more = ["--b-flags", header.as_str()];
    let row =
        sessions(bench, [&null, &null], bench.seconds_of(Measure::AbLimited), &TOO_MUCH, &more)?;
    let none =
        Claim::most("sessions of a limited generator with a claim", f64::from(row.claims), 0.0);
    let name = "serve null, more than the generator can send";
    Ok(section(bench, name, &row, vec![none], &format!("{} requests/s;", TOO_MUCH[2])))
}

/// The load in words.
fn at_rate() -> String {
    format!("{} arrivals at {}/s;", LOAD[4], LOAD[2])
}

/// The same with the queues.
fn on_queue() -> String {
    let rate = at_rate();
    format!("{rate} service times {SERVICE} and, where B is slower, {SLOWER}, without a queue;")
}

fn serve_queue(bench: &Bench, service: &str, seed: &str) -> Result<Server> {
    Server::plimsoll(bench, "queue", &[&QUEUE[..], &[service, "--seed", seed]].concat())
}

/// One session in twenty may be wrong. A session that the generator limited claims nothing, and would prove nothing.
fn few_claims(bench: &Bench, row: &Row) -> Vec<Claim> {
    let share = |share: f64| (f64::from(bench.rounds) * share).max(1.0);
    vec![
        Claim::most("sessions with a claim", f64::from(row.claims), share(0.05)),
        Claim::most("sessions that the generator limited", f64::from(row.limited), share(0.1)),
    ]
}

fn section(bench: &Bench, name: &str, row: &Row, claims: Vec<Claim>, load: &str) -> Section {
    let mut table = Table::new(&[
        "sides",
        "sessions",
        "with a claim",
        "p50",
        "p95",
        "p99",
        "late",
        "generator-limited",
        "mean time, s",
    ]);
    table.row(row.cells(name));
    let budget_s = row.budget_s;
    Section {
        title: format!("Comparisons on real sockets: {name}"),
        tables: vec![table],
        claims,
        notes: vec![format!(
            "{load} --budget {budget_s}s, --error 5%, --margin 5%; each of the {} sessions has a seed of its own, and the \
             generator a core.",
            bench.rounds
        )],
    }
}

/// The comparisons of a row, one after the other: two at a time on one core are each other's delay, and both are then
/// `generator-limited`.
fn sessions(
    bench: &Bench,
    sides: [&Server; 2],
    budget_s: u32,
    block: &[&str],
    more: &[&str],
) -> Result<Row> {
    let mut row = Row { budget_s, ..Row::default() };
    let file = bench.folder.path().join("ab.json");
    let shown = file.display().to_string();
    for session in 1..=bench.rounds {
        eprint!("\rsession {session} of {}, {} with a claim  ", bench.rounds, row.claims);
        let (budget, seed) = (format!("{budget_s}s"), session.to_string());
        let mut words = vec!["ab", "--a", &sides[0].url, "--b", &sides[1].url];
        words.extend(["--budget", &budget, "--seed", &seed, "--no-record", "--quiet"]);
        words.extend(["--json", &shown]);
        words.extend(more);
        words.push("--");
        words.extend(block);
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let child = Child::start(&bench.plimsoll, &words, Some(bench.cores.generator))?;
        let ended = child.finish(budget_s + PATIENCE_S, &bench.interrupted)?;
        // The pilot may have seen that already.
        if ended.code == Some(64) && ended.errors.contains("the generator was the limit") {
            row.sessions += 1;
            row.limits(ended.errors.trim());
            continue;
        }
        if !matches!(ended.code, Some(0 | 3)) {
            bail!("session {session}: {}", ended.errors.trim());
        }
        let text = std::fs::read(&file).with_context(|| shown.clone())?;
        row.add(&serde_json::from_slice(&text)?);
    }
    eprint!("\r{:<60}\r", "");
    Ok(row)
}

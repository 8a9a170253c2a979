//! `plimsoll ab` on real sockets: claims between equal sides, a planted difference, and a generator that is the limit.

use super::{Bench, Claim, Section};
use crate::child::Child;
use crate::server::Server;
use crate::table::Table;
use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Time that a comparison may take beyond its budget, s.
const PATIENCE_S: u32 = 120;
/// A limited generator needs no more time than this to be noticed, s.
const LIMITED_S: u32 = 30;
/// Sessions at the same time, but for those of a limited generator: each takes a tenth of a core.
const AT_ONCE: usize = 4;
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
    sessions: u32,
    limited: u32,
    /// Sessions with any claim of a difference.
    claims: u32,
    /// Worse, better and same, for each metric.
    answers: [[u32; 3]; METRICS.len()],
    seconds: f64,
}

impl Row {
    fn add(&mut self, record: &Value) {
        self.sessions += 1;
        self.limited += u32::from(record["verdict"]["kind"] == "generator-limited");
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

    fn cells(&self, name: &str) -> Vec<String> {
        let mut cells = vec![name.to_owned(), self.sessions.to_string(), self.claims.to_string()];
        cells.extend(
            self.answers.iter().map(|[worse, better, same]| {
                format!("{worse} worse, {better} better, {same} same")
            }),
        );
        cells.push(self.limited.to_string());
        cells.push(format!("{:.0}", self.seconds / f64::from(self.sessions.max(1))));
        cells
    }
}

/// Runs all rows, `rounds` comparisons each.
///
/// # Errors
/// When a server or a comparison fails, or the user asked to stop.
pub fn comparisons(bench: &Bench) -> Result<Section> {
    let mut table = Table::new(&[
        "sides",
        "sessions",
        "with a claim",
        "p50",
        "p95",
        "p99",
        "generator-limited",
        "mean time, s",
    ]);
    let queue = |service: &str, seed: &str| {
        Server::plimsoll(bench, "queue", &[&QUEUE[..], &[service, "--seed", seed]].concat())
    };
    let mut rows: Vec<(&str, Row)> = Vec::new();
    let one = queue(SERVICE, "7")?;
    rows.push(("one serve queue, both sides", sessions(bench, "equal", [&one, &one], &LOAD, &[])?));
    drop(one);
    let nginx = Server::nginx(bench)?;
    rows.push(("one nginx, both sides", sessions(bench, "nginx", [&nginx, &nginx], &LOAD, &[])?));
    drop(nginx);
    let (fast, slow) = (queue(SERVICE, "7")?, queue(SLOWER, "8")?);
    rows.push((
        "serve queue, B 5 % slower",
        sessions(bench, "slower", [&fast, &slow], &LOAD, &[])?,
    ));
    drop((fast, slow));
    let null = Server::plimsoll(bench, "null", &[])?;
    let header = format!("--header 'X-Large: {}'", "x".repeat(4000));
    let more = ["--b-flags", header.as_str()];
    rows.push((
        "serve null, more than the generator can send",
        sessions(bench, "limited", [&null, &null], &TOO_MUCH, &more)?,
    ));
    rows.iter().for_each(|(name, row)| table.row(row.cells(name)));
    let most = (f64::from(bench.rounds) * 0.05).max(1.0);
    let claims = vec![
        Claim::most("sessions of one queue with a claim", f64::from(rows[0].1.claims), most),
        Claim::most("sessions of one nginx with a claim", f64::from(rows[1].1.claims), most),
        Claim::least(
            "sessions that found p50 worse where B is 5 % slower",
            f64::from(rows[2].1.answers[0][0]),
            (f64::from(bench.rounds) * 0.95).floor(),
        ),
        Claim::most(
            "sessions of a limited generator with a claim",
            f64::from(rows[3].1.claims),
            0.0,
        ),
    ];
    Ok(Section {
        title: "Comparisons on real sockets".to_owned(),
        tables: vec![table],
        claims,
        notes: vec![format!(
            "Poisson arrivals at 1,000/s, --budget {}s, --error 5%, --margin 5%; service times {SERVICE} and {SLOWER}, without a \
             queue. Each session has a seed of its own; {AT_ONCE} at a time, but for those of a limited generator.",
            bench.seconds
        )],
    })
}

fn sessions(
    bench: &Bench,
    name: &str,
    sides: [&Server; 2],
    block: &[&str],
    more: &[&str],
) -> Result<Row> {
    let mut row = Row::default();
    let is_limited = name == "limited";
    let budget_s = if is_limited { LIMITED_S.min(bench.seconds) } else { bench.seconds };
    let all: Vec<u32> = (1..=bench.rounds).collect();
    for at_once in all.chunks(if is_limited { 1 } else { AT_ONCE }) {
        eprint!("\r{name}: session {} of {}      ", at_once[0], bench.rounds);
        let mut running = Vec::new();
        for session in at_once {
            let file = bench.folder.path().join(format!("ab-{session}.json"));
            let (budget, seed) = (format!("{budget_s}s"), session.to_string());
            let mut words = vec!["ab", "--a", &sides[0].url, "--b", &sides[1].url];
            words.extend(["--budget", &budget, "--seed", &seed, "--no-record", "--quiet"]);
            let shown = file.display().to_string();
            words.extend(["--json", &shown]);
            words.extend(more);
            words.push("--");
            words.extend(block);
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            let child = Child::start(&bench.plimsoll, &words, Some(bench.cores.generator))?;
            running.push((session, file, child));
        }
        for (session, file, child) in running {
            let ended = child.finish(budget_s + PATIENCE_S, &bench.interrupted)?;
            if !matches!(ended.code, Some(0 | 3)) {
                bail!("session {session} of {name}: {}", ended.errors.trim());
            }
            let text = std::fs::read(&file).with_context(|| file.display().to_string())?;
            row.add(&serde_json::from_slice(&text)?);
        }
    }
    // Should another row fail half an hour later.
    eprintln!("\r{:<60}", row.cells(name).join(" | "));
    Ok(row)
}

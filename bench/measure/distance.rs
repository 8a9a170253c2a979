//! Words and phrases with many errors: the automaton at four edits, and the scan of raw text at any number.

use super::engines;
use super::{Bench, Claim, Section};
use crate::engine::{Engine, Took, path, pin};
use crate::http::Client;
use crate::statistics::{median, quantile, short, spread, whole};
use crate::table::Table;
use anyhow::{Context, Result, bail};
use plimsoll_core::clock::now_ns;
use plimsoll_scan::{Case, Corpus, Found, Kernel, Metric, Pattern};
use serde_json::{Value, json};

/// Words that are asked for with four edits: short and long, frequent and rare, spelt right and wrong.
const WORDS: [&str; 10] = [
    "network",
    "library",
    "grafical",
    "compression",
    "scientifc",
    "database",
    "interpretor",
    "documentation",
    "kernel",
    "aplication",
];
/// How often each word is asked in a round.
const TIMES: usize = 10;
/// Longest median time of a word, ms.
const AUTOMATON_GOAL_MS: f64 = 10.0;
/// Text that is scanned, bytes: the same again and again until it is so long, for no cache holds it then.
const TEXT_BYTES: usize = 128 << 20;
/// Characters looked for, and errors allowed.
const LENGTHS: [usize; 11] = [1, 2, 3, 5, 8, 12, 20, 30, 60, 120, 240];
const ERRORS: [u32; 7] = [0, 1, 2, 3, 4, 8, 16];
/// What a scan is to reach: bytes a second, and the share of what copying the same text reaches.
const SCAN_GOAL_GBPS: f64 = 1.0;
const COPY_GOAL: f64 = 0.8;

/// Both searches on the descriptions of Debian's packages.
///
/// # Errors
/// When a server does not start or refuses something, or the host knows no packages.
pub fn distance(bench: &Bench) -> Result<Section> {
    // A thread of its own, that this program is not bound to one core for ever.
    std::thread::scope(|scope| {
        let measured = scope.spawn(|| measured(bench)).join();
        measured.map_err(|_| anyhow::anyhow!("the measure failed"))?
    })
}

fn measured(bench: &Bench) -> Result<Section> {
    pin(bench)?;
    let documents = engines::documents(None)?;
    let bytes: usize = documents.iter().map(|document| document.body.len()).sum();
    let bodies: Vec<&str> = documents.iter().map(|document| document.body.as_str()).collect();
    let (automaton, worst_ms) = automaton(bench, &documents)?;
    let mut tables = vec![automaton];
    let mut claims = vec![Claim::most(
        "automaton, four edits: the slowest word's median, ms",
        worst_ms,
        AUTOMATON_GOAL_MS,
    )];
    let text = Text::new(&bodies);
    for kernel in Kernel::available().into_iter().skip(1).rev() {
        let cells = scan(bench, &text, kernel)?;
        let best = tables.len() == 1;
        tables.push(scan_table(kernel, &cells));
        if best {
            let all: Vec<&Cell> = cells.iter().flatten().collect();
            let slowest = all.iter().map(|cell| cell.slowest_gbps());
            let least = slowest.fold(f64::INFINITY, f64::min);
            let shares: Vec<f64> = all.iter().map(|cell| cell.share()).collect();
            let name = format!("{kernel:?}");
            claims.push(Claim::least(
                &format!("{name}: the slowest scan of any round, GB/s"),
                least,
                SCAN_GOAL_GBPS,
            ));
            claims.push(Claim::least(
                &format!("{name}: the median scan's share of a copy's speed"),
                median(&shares),
                COPY_GOAL,
            ));
        }
    }
    let notes = vec![
        format!(
            "{} descriptions of Debian packages, {} MB of text. The automaton's times are those of a client that asks one \
             query at a time for 10 hits, after the server has been started again: the first query of each word is in \
             the first column.",
            whole(documents.len() as f64),
            short(bytes as f64 / 1e6)
        ),
        format!(
            "Scans: one core, {} MB (the same text again and again); GB/s, and in brackets the share of what copying \
             the same bytes reaches in the same round, in per cent. Edits, capitals ignored; what is looked for is a piece of \
             a description, so that it occurs, another one each round: frequent ones take longer. A dash: every text matches, since as many errors are allowed as there are \
             characters.",
            whole(text.bytes.len() as f64 / 1e6)
        ),
    ];
    Ok(Section { title: "Many errors".to_owned(), tables, claims, notes })
}

/// The table, and the slowest word's median in ms.
fn automaton(bench: &Bench, documents: &[engines::Description]) -> Result<(Table, f64)> {
    let bulks = engines::bulks(documents)?;
    let engine = Engine::start(bench, "search", &["--fuzzy", "automaton"])?;
    let took: Took = engine.load(bench, &bulks, documents.len(), 1)?;
    engine.client()?.done("POST", &path("_forcemerge?max_num_segments=1"), b"")?;
    eprintln!("\rloaded {} documents in {} s", whole(took.count), short(took.seconds));
    let mut client = engine.client()?;
    let mut table = Table::new(&["automaton, 4 edits", "matches", "first ms", "p50 ms", "p99 ms"]);
    let mut worst_ms: f64 = 0.0;
    for word in WORDS {
        let query = json!({"fuzzy": {"body": {"value": word, "fuzziness": 4}}});
        let body = json!({"query": query, "size": 10, "track_total_hits": true}).to_string();
        let (first_ms, matches) = ask(&mut client, &body)?;
        let mut times = Vec::new();
        for _ in 0..TIMES * bench.rounds as usize {
            times.push(ask(&mut client, &body)?.0);
        }
        worst_ms = worst_ms.max(median(&times));
        table.row(vec![
            word.to_owned(),
            whole(matches as f64),
            short(first_ms),
            short(median(&times)),
            short(quantile(&times, 0.99)),
        ]);
    }
    Ok((table, worst_ms))
}

fn ask(client: &mut Client, body: &str) -> Result<(f64, u64)> {
    let begun_ns = now_ns();
    let reply = client.done("POST", &path("_search"), body.as_bytes())?;
    let ms = (now_ns() - begun_ns) as f64 / 1e6;
    let reply: Value = serde_json::from_slice(reply)?;
    let total = reply["hits"]["total"]["value"].as_u64();
    Ok((ms, total.context("a reply without a number of hits")?))
}

/// Documents one behind the other.
struct Text {
    bytes: Vec<u8>,
    ends: Vec<u64>,
    /// How many of them differ: behind these they come again.
    different: usize,
}

impl Text {
    fn new(bodies: &[&str]) -> Self {
        let (mut bytes, mut ends) = (Vec::with_capacity(TEXT_BYTES), Vec::new());
        'full: loop {
            for body in bodies {
                if bytes.len() + body.len() > TEXT_BYTES {
                    break 'full;
                }
                plimsoll_scan::letters::append(body, &mut bytes);
                ends.push(bytes.len() as u64);
            }
        }
        let different = bodies.len().min(ends.len());
        Self { bytes, ends, different }
    }

    /// A piece of so many characters in the middle of a document: the first that is long enough from the middle of a
    /// round's share of the text on.
    fn piece(&self, length: usize, round: u32, rounds: u32) -> Result<&[u8]> {
        let first = self.different * (2 * round as usize + 1) / (2 * rounds as usize);
        let starts = self.ends[first..].windows(2);
        let spans = starts.map(|pair| (pair[0] as usize, pair[1] as usize));
        let long = |(start, end): &(usize, usize)| end - start > 2 * length + 40;
        let (start, end) = spans.into_iter().find(long).context("a document as long")?;
        let from = start + (end - start - length) / 2;
        // From the start of a word on, if there is one.
        let word = self.bytes[from..end - length].iter().position(|byte| *byte == b' ');
        let from = from + word.map_or(0, |at| at + 1);
        Ok(&self.bytes[from..from + length])
    }
}

/// The speeds of one scan, round by round.
struct Cell {
    length: usize,
    errors: u32,
    scans: Vec<f64>,
    copies: Vec<f64>,
}

impl Cell {
    fn gbps(&self) -> f64 {
        median(&self.scans)
    }

    fn slowest_gbps(&self) -> f64 {
        self.scans.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn share(&self) -> f64 {
        median(&self.scans.iter().zip(&self.copies).map(|(a, b)| a / b).collect::<Vec<_>>())
    }
}

fn scan(bench: &Bench, text: &Text, kernel: Kernel) -> Result<Vec<Vec<Cell>>> {
    let corpus = Corpus::new(&text.bytes, &text.ends)?;
    let mut copy = vec![1_u8; text.bytes.len()];
    let speed = |begun_ns: u64| text.bytes.len() as f64 / (now_ns() - begun_ns) as f64;
    let mut cells: Vec<Vec<Cell>> = Vec::new();
    for length in LENGTHS {
        let errors = ERRORS.into_iter().filter(|errors| (*errors as usize) < length);
        let cell = |errors| Cell { length, errors, scans: vec![], copies: vec![] };
        cells.push(errors.map(cell).collect());
    }
    for round in 0..bench.rounds {
        eprint!("\rround {} of {}: {kernel:<40?}", round + 1, bench.rounds);
        for cell in cells.iter_mut().flatten() {
            let piece = text.piece(cell.length, round, bench.rounds)?;
            let pattern = Pattern::new(piece, Metric::Edits, cell.errors, Case::IgnoreAscii)?;
            let begun_ns = now_ns();
            copy.copy_from_slice(&text.bytes);
            std::hint::black_box(&copy);
            cell.copies.push(speed(begun_ns));
            let begun_ns = now_ns();
            let mut found = Found::new(corpus.documents());
            pattern.scan().with_kernel(kernel).documents(&corpus, &mut found);
            cell.scans.push(speed(begun_ns));
            if found.count() == 0 {
                bail!("{kernel:?} does not find what is there");
            }
        }
    }
    eprint!("\r{:<60}\r", "");
    Ok(cells)
}

fn scan_table(kernel: Kernel, cells: &[Vec<Cell>]) -> Table {
    let title = format!("{kernel:?}: characters");
    let errors: Vec<String> = ERRORS.iter().map(|errors| format!("k={errors}")).collect();
    let mut header = vec![title.as_str()];
    header.extend(errors.iter().map(String::as_str));
    header.push("copy");
    let mut table = Table::new(&header);
    for row in cells {
        let length = row.first().map_or(0, |cell| cell.length);
        let mut line = vec![length.to_string()];
        for errors in ERRORS {
            let cell = row.iter().find(|cell| cell.errors == errors);
            line.push(cell.map_or("-".to_owned(), |cell| {
                format!("{} ({:.0})", short(cell.gbps()), cell.share() * 100.0)
            }));
        }
        let copies: Vec<f64> = row.iter().flat_map(|cell| cell.copies.clone()).collect();
        line.push(spread(&copies, |speed| format!("{speed:.1}")));
        table.row(line);
    }
    table
}

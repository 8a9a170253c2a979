//! The embedded search target beside the real OpenSearch: requests a CPU second over ten kinds of queries, and loading.

use super::{Bench, Claim, Section};
use crate::child::Child;
use crate::engine::{CLIENTS, Engine, Took, path};
use crate::statistics::{median, ratios, short, spread, whole};
use crate::table::Table;
use anyhow::{Result, bail};
use plimsoll_workloads::corpus::{Corpus, CorpusOptions, Source};
use serde_json::{Value, json};
use std::io::Write;

/// Documents of the text, and of one bulk.
const DOCUMENTS: u64 = 60_000;
const BULK: usize = 500;
/// Bytes of a description in the mean at least: 400 where the long ones are known, 45 where only the first lines are.
const LEAST_BYTES: usize = 150;
/// Partitions of the index: what the engines of the published table had by default.
const SHARDS: u64 = 5;
/// Hits asked for: the published benchmark's, and what a page shows.
const SIZES: [u64; 2] = [1000, 10];
/// What is claimed of both.
const GOAL: f64 = 3.0;
const NAMES: [&str; 2] = ["plimsoll", "OpenSearch"];

/// A kind of query, and what is asked. Words are misspelt on purpose.
fn kinds() -> Vec<(&'static str, Value)> {
    let near = |field: &str, words: &str, operator: &str| json!({"match": {field: {"query": words, "operator": operator, "fuzziness": 2}}});
    let body = |words: &str| near("body", words, "or");
    let phrase = |words: &str| json!({"match_phrase": {"body": {"query": words}}});
    let category = |word: &str| near("category", word, "or");
    vec![
        ("fuzzy", json!({"fuzzy": {"body": {"value": "Network", "fuzziness": 2}}})),
        ("match, and", near("body", "databse managment", "and")),
        ("must, match or", json!({"bool": {"must": [near("body", "grafical enviroment", "or")]}})),
        (
            "should, one of two",
            json!({"bool": {"should": [body("scientifc calculaton"), category("electronics")],
                            "minimum_should_match": 1}}),
        ),
        (
            "must, must_not",
            json!({"bool": {"must": [body("calculaton")], "must_not": [body("scientifc")]}}),
        ),
        (
            "must, two fields",
            json!({"bool": {"must": [body("scientifc libraries"), category("pythom")]}}),
        ),
        (
            "must, must_not, two fields",
            json!({"bool": {"must": [body("scientifc libraries")], "must_not": [category("pythom")]}}),
        ),
        ("match, and, spelt right", near("body", "application configuration", "and")),
        ("match_phrase", phrase("this package contains the")),
        (
            "must match_phrase, must_not",
            json!({"bool": {"must": [phrase("shared library")], "must_not": [category("debug")]}}),
        ),
    ]
}

/// A document of the text.
pub type Description = plimsoll_workloads::corpus::Document;

/// The first descriptions of Debian's packages, or all.
///
/// # Errors
/// When they cannot be read, or only their first lines are there: those are another text.
pub fn documents(limit: Option<u64>) -> Result<Vec<Description>> {
    let corpus = Corpus::open(&Source::Debian, &CorpusOptions { limit })?;
    let documents: Vec<Description> = corpus.documents()?.collect::<Result<_, _>>()?;
    let bytes: usize = documents.iter().map(|document| document.body.len()).sum();
    if bytes < LEAST_BYTES * documents.len() {
        bail!("apt knows no long descriptions of its packages; run: make bench-tools");
    }
    Ok(documents)
}

/// Documents as bulks.
///
/// # Errors
/// None: memory takes them.
pub fn bulks(documents: &[Description]) -> Result<Vec<Vec<u8>>> {
    let mut bulks = Vec::new();
    for (number, documents) in documents.chunks(BULK).enumerate() {
        let mut bulk = Vec::new();
        for (at, document) in documents.iter().enumerate() {
            let fields = json!({
                "title": document.title, "body": document.body, "category": document.category,
                "author": document.author, "score": document.score,
            });
            let id = number * BULK + at;
            writeln!(bulk, "{{\"index\":{{\"_id\":\"{id}\"}}}}\n{fields}")?;
        }
        bulks.push(bulk);
    }
    Ok(bulks)
}

/// What was loaded, for the reader.
fn about(documents: &[Description], bulks: &[Vec<u8>]) -> String {
    let mb = |bytes: usize| short(bytes as f64 / 1e6);
    format!(
        "{} descriptions of Debian packages, {} MB as bulks, {} MB of them text",
        whole(documents.len() as f64),
        mb(bulks.iter().map(Vec::len).sum()),
        mb(documents.iter().map(|document| document.body.len()).sum())
    )
}

/// What one kind took at one size, by engine and round.
type Cell = [Vec<Took>; 2];

fn install(bench: &Bench) -> Result<()> {
    let arguments = ["install", "opensearch"].map(str::to_owned);
    let ended = Child::start(&bench.plimsoll, &arguments, None)?.finish(600, &bench.interrupted)?;
    if ended.code != Some(0) {
        bail!("installing OpenSearch failed: {}", ended.errors.trim());
    }
    Ok(())
}

/// Loads and asks both, in turn.
///
/// # Errors
/// When OpenSearch cannot be installed or started, or an engine refuses or fails at something.
pub fn engines(bench: &Bench) -> Result<Section> {
    install(bench)?;
    let documents = documents(Some(DOCUMENTS))?;
    let (bulks, count) = (bulks(&documents)?, documents.len());
    let about = about(&documents, &bulks);
    drop(documents);
    // With the half a GiB that it has by default, OpenSearch refuses bulks that come as fast as it takes them (status 429).
    let heap = ["--heap", "1GiB"];
    let engines =
        [Engine::start(bench, "search", &[])?, Engine::start(bench, "opensearch", &heap)?];
    let load = |engine: &Engine| engine.load(bench, &bulks, count, SHARDS);
    let mut warmed = [[0; 2]; 2];
    for (at, engine) in engines.iter().enumerate() {
        eprint!("\rwarming {:<60}", format!("{}: loading", NAMES[at]));
        warmed[at][0] = engine.warm_loading(bench, &bulks, count, SHARDS)?;
    }
    let loads = alternating(bench, "loading", |engine| load(&engines[engine]))?;
    for engine in &engines {
        engine.client()?.done("POST", &path("_forcemerge?max_num_segments=1"), b"")?;
    }
    let kinds = kinds();
    let mut hits = Vec::new();
    for (_, query) in &kinds {
        hits.push([engines[0].hits(query)?, engines[1].hits(query)?]);
    }
    let bodies: Vec<[Vec<u8>; 2]> =
        kinds.iter().map(|(_, query)| SIZES.map(|size| body(query, size))).collect();
    let all: Vec<&[u8]> = bodies.iter().flatten().map(Vec::as_slice).collect();
    for (at, engine) in engines.iter().enumerate() {
        eprint!("\rwarming {:<60}", format!("{}: queries", NAMES[at]));
        warmed[at][1] = engine.warm_asking(bench, &all)?;
    }
    let for_ns = u64::from(bench.seconds) * 100_000_000;
    let mut cells: Vec<[Cell; 2]> = Vec::new();
    cells.resize_with(kinds.len(), || [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]]);
    for round in 0..bench.rounds as usize {
        for (kind, bodies) in bodies.iter().enumerate() {
            eprint!("\rround {} of {}: {:<40}", round + 1, bench.rounds, kinds[kind].0);
            for (size, body) in bodies.iter().enumerate() {
                for step in 0..2 {
                    let at = (round + kind + step) % 2;
                    cells[kind][size][at].push(engines[at].ask(bench, body, for_ns, 1)?);
                }
            }
        }
    }
    eprint!("\r{:<60}\r", "");
    let names: Vec<&str> = kinds.iter().map(|kind| kind.0).collect();
    Ok(section(&about, warmed, &loads, &names, &hits, &cells))
}

/// One run of each engine in each round, the first in turn.
fn alternating(
    bench: &Bench,
    what: &str,
    mut run: impl FnMut(usize) -> Result<Took>,
) -> Result<[Vec<Took>; 2]> {
    let mut all = [Vec::new(), Vec::new()];
    for round in 0..bench.rounds as usize {
        for step in 0..2 {
            let at = (round + step) % 2;
            eprint!("\r{what}, round {} of {}: {:<30}", round + 1, bench.rounds, NAMES[at]);
            all[at].push(run(at)?);
        }
    }
    Ok(all)
}

fn body(query: &Value, size: u64) -> Vec<u8> {
    json!({"query": query, "from": 0, "size": size}).to_string().into_bytes()
}

fn column(all: &[Took], value: impl Fn(&Took) -> f64) -> Vec<f64> {
    all.iter().map(value).collect()
}

/// Each round's ratio of plimsoll's figure to OpenSearch's.
fn gains(cell: &Cell, value: impl Fn(&Took) -> f64) -> Vec<f64> {
    ratios(&column(&cell[0], &value), &column(&cell[1], &value))
}

/// Each round's geometric mean of the kinds' ratios.
fn geometric(cells: &[[Cell; 2]], size: usize) -> Vec<f64> {
    let gains: Vec<Vec<f64>> =
        cells.iter().map(|kind| gains(&kind[size], Took::per_cpu_s)).collect();
    let rounds = gains.first().map_or(0, Vec::len);
    let mean = |round: usize| {
        (gains.iter().map(|kind| kind[round].ln()).sum::<f64>() / gains.len() as f64).exp()
    };
    (0..rounds).map(mean).collect()
}

fn section(
    about: &str,
    warmed: [[u32; 2]; 2],
    loads: &Cell,
    names: &[&str],
    hits: &[[u64; 2]],
    cells: &[[Cell; 2]],
) -> Section {
    let times = |gains: &[f64]| spread(gains, |gain| format!("{gain:.2}"));
    let mut loading = Table::new(&["loading", "plimsoll", "OpenSearch", "ratio"]);
    let mut row = |what: &str, value: fn(&Took) -> f64| {
        let [own, other] = [0, 1].map(|at| spread(&column(&loads[at], value), whole));
        loading.row(vec![what.to_owned(), own, other, times(&gains(loads, value))]);
    };
    row("documents a second", Took::per_s);
    row("documents a CPU second", Took::per_cpu_s);
    let mut tables = vec![loading];
    let mut claims = vec![Claim::least(
        "documents/s, of OpenSearch's",
        median(&gains(loads, Took::per_s)),
        GOAL,
    )];
    for (size, hits_asked) in SIZES.iter().enumerate() {
        let title = format!("size {hits_asked}: requests a CPU second");
        let header = [&title, "matches", "plimsoll", "OpenSearch", "ratio", "requests/s, ratio"];
        let mut table = Table::new(&header.map(|word: &str| word));
        for ((name, cell), hits) in names.iter().zip(cells).zip(hits) {
            let cell = &cell[size];
            let [own, other] = [0, 1].map(|at| spread(&column(&cell[at], Took::per_cpu_s), short));
            let matches = match hits {
                [own, other] if own == other => whole(*own as f64),
                [own, other] => format!("{} and {}", whole(*own as f64), whole(*other as f64)),
            };
            let gain = times(&gains(cell, Took::per_cpu_s));
            let wall = times(&gains(cell, Took::per_s));
            table.row(vec![(*name).to_owned(), matches, own, other, gain, wall]);
        }
        let means = geometric(cells, size);
        let dash = || "-".to_owned();
        table.row(vec!["geometric mean".into(), dash(), dash(), dash(), times(&means), dash()]);
        tables.push(table);
        let what = format!("requests a CPU second at size {hits_asked}, of OpenSearch's");
        claims.push(Claim::least(&what, median(&means), GOAL));
    }
    let notes = vec![
        format!(
            "{about}. {SHARDS} shards, fields as the engines guess them, refreshed as by default, every bulk on the disk \
             before it is acknowledged (the default of both). Each engine on one core: OpenSearch as `plimsoll serve \
             opensearch --heap 1GiB` starts it. Merged into one segment a shard before the queries. {CLIENTS} clients ask the same \
             query until the time is over; CPU is that of the engine's whole process."
        ),
        format!(
            "Warmed with both cores until it grew no faster: plimsoll by {} loads and {} turns of all queries, OpenSearch \
             by {} and {}.",
            warmed[0][0], warmed[0][1], warmed[1][0], warmed[1][1]
        ),
        "Matches of both engines where they differ: each shard keeps its 50 nearest words, and which ones those \
         are depends on the words of the shard's segments."
            .to_owned(),
    ];
    Section { title: "Ten kinds of queries beside OpenSearch".to_owned(), tables, claims, notes }
}

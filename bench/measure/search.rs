//! The embedded search target: how fast it is fed, and how fast it answers.

use super::{Bench, Claim, Section};
use crate::child::Child;
use crate::reply::{self, Sample};
use crate::server::Server;
use crate::statistics::{median, short, spread, whole};
use crate::table::Table;
use anyhow::{Result, bail};
use plimsoll_workloads::corpus::{Corpus, CorpusOptions, Source};
use plimsoll_workloads::query_mix::QueryClass;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Clients that ask queries.
const CLIENTS: u32 = 8;
/// Longest time of feeding, s.
const FEED_LIMIT_S: u32 = 180;
/// Largest median time of a fuzzy query, as a multiple of that of a query for one word.
const FUZZY_GOAL: f64 = 4.0;
/// Flags of every run.
const TAIL: &str = "--no-record --quiet --json -";
/// Pause until what was fed can be found, ns; the target commits every 100 ms.
const VISIBLE_NS: u64 = 1_000_000_000;

/// Writes the bundled text, `copies` times under other ids, as requests of the document API and returns their number.
fn write_feed(path: &Path, copies: u32) -> Result<u64> {
    let corpus = Corpus::open(&Source::Bundled, &CorpusOptions::default())?;
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    let (mut fields, mut documents) = (Vec::new(), 0);
    for copy in 0..copies {
        for document in corpus.documents()? {
            let document = document?;
            fields.clear();
            document.to_fields_json(&mut fields);
            let suffix = if copy == 0 { String::new() } else { format!("-{copy}") };
            let path = format!("/document/v1/plimsoll/doc/docid/{}{suffix}", document.id);
            let body = std::str::from_utf8(&fields)?;
            writeln!(file, r#"{{"method":"POST","path":"{path}","body":{body}}}"#)?;
            documents += 1;
        }
    }
    file.flush()?;
    Ok(documents)
}

/// Writes the bundled text as operations that a feeder takes and returns their number.
///
/// # Errors
/// When the file cannot be written.
pub fn write_operations(path: &Path) -> Result<u64> {
    let corpus = Corpus::open(&Source::Bundled, &CorpusOptions::default())?;
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    let (mut fields, mut documents) = (Vec::new(), 0);
    for document in corpus.documents()? {
        let document = document?;
        fields.clear();
        document.to_fields_json(&mut fields);
        // The fields come as a body, `{"fields":{...}}`, whose first brace the operation has before its id.
        let body = std::str::from_utf8(&fields)?.trim_start().trim_start_matches('{');
        writeln!(file, r#"{{"put":"id:plimsoll:doc::{}",{body}"#, document.id)?;
        documents += 1;
    }
    file.flush()?;
    Ok(documents)
}

/// Feeds the bundled text, `copies` times under other ids, and returns how many documents that were.
///
/// # Errors
/// When one of them is refused.
pub fn feed_bundled(bench: &Bench, server: &Server, copies: u32) -> Result<u64> {
    let feed = bench.folder.path().join("feed.ndjson");
    let documents = write_feed(&feed, copies)?;
    let fed = put(bench, server, &feed, documents)?;
    if fed.requests != documents as f64 {
        bail!("{} of {documents} documents were fed within {FEED_LIMIT_S} s", fed.requests);
    }
    Ok(documents)
}

fn put(bench: &Bench, server: &Server, feed: &Path, documents: u64) -> Result<Sample> {
    let (url, path) = (server.url.trim_end_matches('/'), feed.display());
    let line = format!(
        "load {url} --queries {path} --clients 32 --requests {documents} --duration {FEED_LIMIT_S}s {TAIL}"
    );
    run(bench, &line, FEED_LIMIT_S)
}

fn run(bench: &Bench, line: &str, limit_s: u32) -> Result<Sample> {
    let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let child = Child::start(&bench.plimsoll, &arguments, Some(bench.cores.generator))?;
    let ended = child.finish(limit_s + 20, &bench.interrupted)?;
    if !matches!(ended.code, Some(0 | 3)) {
        bail!("plimsoll failed with {:?}: {}", ended.code, ended.errors.trim());
    }
    Ok(Sample { cpu_s: ended.cpu_s, ..reply::plimsoll(&ended.output)? })
}

/// The flags of a run that asks the queries of a file.
fn asking(server: &Server, queries: &Path, clients: u32, seconds: u32) -> String {
    let (url, path) = (server.url.trim_end_matches('/'), queries.display());
    format!(
        "load {url} --queries {path} --clients {clients} --check vespa --duration {seconds}s {TAIL}"
    )
}

/// Writes queries of six kinds that fit the bundled text.
fn write_queries(bench: &Bench, path: &Path) -> Result<()> {
    let made = ["corpus", "queries", "--each", "200", "--out"].map(str::to_owned);
    let made = [&made[..], &[path.display().to_string()]].concat();
    let ended = Child::start(&bench.plimsoll, &made, None)?.finish(60, &bench.interrupted)?;
    if ended.code != Some(0) {
        bail!("making queries failed: {}", ended.errors.trim());
    }
    Ok(())
}

/// Feeds the bundled text once, then asks a mix of six kinds of queries in each round, and each kind by itself.
///
/// # Errors
/// When a document or a query is refused.
pub fn search(bench: &Bench) -> Result<Section> {
    let (feed, queries) =
        (bench.folder.path().join("feed.ndjson"), bench.folder.path().join("queries.ndjson"));
    let documents = write_feed(&feed, 1)?;
    write_queries(bench, &queries)?;
    let server = Server::plimsoll(bench, "search", &[])?;
    let fed = put(bench, &server, &feed, documents)?;
    if fed.requests != documents as f64 {
        bail!("{} of {documents} documents were fed within {FEED_LIMIT_S} s", fed.requests);
    }
    std::thread::sleep(std::time::Duration::from_nanos(VISIBLE_NS));
    let line = asking(&server, &queries, CLIENTS, bench.seconds);
    let mut asked = Vec::new();
    for _ in 0..bench.rounds {
        asked.push(run(bench, &line, bench.seconds)?);
    }
    let mut table =
        Table::new(&["what", "a second", "p50 ms", "p99 ms", "generator CPU us/request"]);
    let column = |value: fn(&Sample) -> f64| asked.iter().map(value).collect::<Vec<_>>();
    table.row(vec![
        format!("feeding {} documents, 32 connections", whole(documents as f64)),
        whole(fed.per_s),
        short(fed.p50_us / 1e3),
        short(fed.p99_us / 1e3),
        short(fed.cpu_us()),
    ]);
    table.row(vec![
        format!("queries, six kinds, {CLIENTS} clients"),
        spread(&column(|sample| sample.per_s), whole),
        spread(&column(|sample| sample.p50_us / 1e3), short),
        spread(&column(|sample| sample.p99_us / 1e3), short),
        spread(&column(Sample::cpu_us), short),
    ]);
    let (kinds, claim) = kinds(bench, &server, &queries)?;
    Ok(Section {
        title: "The embedded search target on one core, with the bundled text".to_owned(),
        tables: vec![table, kinds],
        claims: vec![claim],
        notes: vec!["Service time; the target, not the generator, is the limit here.".to_owned()],
    })
}

/// One kind of queries, round by round.
struct Kind {
    name: &'static str,
    queries: PathBuf,
    p50_us: Vec<f64>,
    /// CPU time of the server for a query, us.
    cpu_us: Vec<f64>,
}

impl Kind {
    /// Writes the queries of this kind into a file of their own.
    fn of(class: QueryClass, mix: &str, folder: &Path) -> Result<Self> {
        let (name, mark) = (class.name(), format!("\"class\":\"{}\"", class.name()));
        let own: String = mix
            .lines()
            .filter(|line| line.contains(&mark))
            .map(|line| line.to_owned() + "\n")
            .collect();
        if own.is_empty() {
            bail!("there is no query of the kind {name}");
        }
        let queries = folder.join(format!("{name}.ndjson"));
        std::fs::write(&queries, own)?;
        Ok(Self { name, queries, p50_us: Vec::new(), cpu_us: Vec::new() })
    }

    fn ask(&mut self, bench: &Bench, server: &Server) -> Result<()> {
        let seconds = bench.seconds.div_ceil(2);
        let before_s = server.tree_cpu_s()?;
        let sample = run(bench, &asking(server, &self.queries, 1, seconds), seconds)?;
        self.p50_us.push(sample.p50_us);
        self.cpu_us.push((server.tree_cpu_s()? - before_s) * 1e6 / sample.requests);
        Ok(())
    }
}

/// Asks each kind of queries by itself, one at a time; the kinds alternate.
fn kinds(bench: &Bench, server: &Server, queries: &Path) -> Result<(Table, Claim)> {
    let mix = std::fs::read_to_string(queries)?;
    let kind = |class| Kind::of(class, &mix, bench.folder.path());
    let mut kinds = QueryClass::ALL.into_iter().map(kind).collect::<Result<Vec<_>>>()?;
    for _ in 0..bench.rounds {
        for kind in &mut kinds {
            kind.ask(bench, server)?;
        }
    }
    let ratios = |kind: &Kind| -> Vec<f64> {
        kind.p50_us.iter().zip(&kinds[0].p50_us).map(|(p50, of_first)| p50 / of_first).collect()
    };
    let first = kinds[0].name;
    let mut table = Table::new(&[
        "one client, one kind of queries",
        "p50 ms",
        &format!("of {first}'s"),
        "server CPU us/query",
    ]);
    let mut fuzzy = f64::INFINITY;
    for kind in &kinds {
        let milliseconds: Vec<f64> = kind.p50_us.iter().map(|us| us / 1e3).collect();
        table.row(vec![
            kind.name.to_owned(),
            spread(&milliseconds, short),
            spread(&ratios(kind), short),
            spread(&kind.cpu_us, short),
        ]);
        if kind.name == QueryClass::Fuzzy.name() {
            fuzzy = median(&ratios(kind));
        }
    }
    let what = format!("p50 of fuzzy queries, as a multiple of {first}'s");
    Ok((table, Claim::most(&what, fuzzy, FUZZY_GOAL)))
}

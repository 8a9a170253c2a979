//! The documents and queries of the list. They are the same for every build.

use crate::child::Child;
use crate::measure::Bench;
use crate::reply;
use crate::server::Server;
use anyhow::{Result, bail};
use plimsoll_workloads::corpus::{Corpus, CorpusOptions, Source};
use plimsoll_workloads::query_mix::QueryClass;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Documents that are fed in one block.
pub const DOCUMENTS: usize = 4000;
/// Bulk requests of one block, and their documents.
pub const BULKS: usize = 20;
const DOCUMENTS_OF_A_BULK: usize = 250;
/// Documents that a server holds before it is asked.
const FILLED: usize = 67_700;
/// Pause after a server was filled: commits, refreshes and merges have ended.
const SETTLED: Duration = Duration::from_secs(3);
/// Queries of a kind.
const QUERIES: usize = 50;
/// Longest time of filling a server, s.
const FILL_S: u32 = 120;
/// The index of the Elasticsearch scenes.
const INDEX: &str = "texts";

/// The bundled documents: their ids, and their fields as JSON.
fn bundled(most: usize) -> Result<Vec<(String, Value)>> {
    let corpus = Corpus::open(&Source::Bundled, &CorpusOptions::default())?;
    let mut documents = Vec::new();
    let mut text = Vec::new();
    for document in corpus.documents()?.take(most) {
        let document = document?;
        text.clear();
        document.to_fields_json(&mut text);
        let mut fields: Value = serde_json::from_slice(&text)?;
        documents.push((document.id.to_string(), fields["fields"].take()));
    }
    Ok(documents)
}

/// Writes documents as requests and as operations of a feed, and returns the two files.
///
/// # Errors
/// When a file cannot be written.
pub fn write_documents(folder: &Path) -> Result<[PathBuf; 2]> {
    let (puts, operations) = documents_as_text(DOCUMENTS)?;
    let files = [folder.join("puts.ndjson"), folder.join("operations.ndjson")];
    std::fs::write(&files[0], puts)?;
    std::fs::write(&files[1], operations)?;
    Ok(files)
}

fn documents_as_text(most: usize) -> Result<(String, String)> {
    let (mut puts, mut operations) = (String::new(), String::new());
    for (id, fields) in bundled(most)? {
        let path = format!("/document/v1/plimsoll/doc/docid/{id}");
        let put = json!({"method": "POST", "path": path, "body": {"fields": fields}});
        let operation = json!({"put": format!("id:plimsoll:doc::{id}"), "fields": fields});
        let _ = writeln!(puts, "{put}");
        let _ = writeln!(operations, "{operation}");
    }
    Ok((puts, operations))
}

/// Fills a server by the document API.
///
/// # Errors
/// When a document is refused.
pub fn fill_documents(client: &Bench, server: &Server, folder: &Path) -> Result<()> {
    let file = folder.join("all.ndjson");
    if !file.is_file() {
        std::fs::write(&file, documents_as_text(FILLED)?.0)?;
    }
    let line = format!("--queries {} --clients 32 --requests {FILLED}", file.display());
    fill(client, server, &line, FILLED)
}

/// Fills an index by bulk requests.
///
/// # Errors
/// When a document is refused.
pub fn fill_index(client: &Bench, server: &Server, folder: &Path) -> Result<()> {
    let file = folder.join("all-bulks.ndjson");
    if !file.is_file() {
        std::fs::write(&file, bulks(&bundled(FILLED)?))?;
    }
    let requests = FILLED.div_ceil(DOCUMENTS_OF_A_BULK);
    let file = file.display();
    let line = format!("--queries {file} --check elasticsearch --clients 4 --requests {requests}");
    fill(client, server, &line, requests)
}

fn fill(client: &Bench, server: &Server, line: &str, requests: usize) -> Result<()> {
    let url = server.url.trim_end_matches('/');
    let line = format!("load {url} {line} --duration {FILL_S}s --no-record --quiet --json -");
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let child = Child::start(&client.plimsoll, &words, Some(client.cores.generator))?;
    let ended = child.finish(FILL_S + 20, &client.interrupted)?;
    if !matches!(ended.code, Some(0 | 3)) {
        bail!("plimsoll ended with {:?}: {}", ended.code, ended.errors.trim());
    }
    let sample = reply::plimsoll(&ended.output)?;
    if sample.requests != requests as f64 {
        bail!("{} of {requests} requests were answered within {FILL_S} s", sample.requests);
    }
    std::thread::sleep(SETTLED);
    Ok(())
}

fn bulks(documents: &[(String, Value)]) -> String {
    let mut lines = String::new();
    for chunk in documents.chunks(DOCUMENTS_OF_A_BULK) {
        let mut body = String::new();
        for (id, fields) in chunk {
            let _ = writeln!(body, "{}\n{fields}", json!({"index": {"_id": id}}));
        }
        let headers = json!({"Content-Type": "application/x-ndjson"});
        let path = format!("/{INDEX}/_bulk");
        let request = json!({"method": "POST", "path": path, "headers": headers, "body": body});
        let _ = writeln!(lines, "{request}");
    }
    lines
}

/// Writes the bulk requests of a block.
///
/// # Errors
/// When the file cannot be written.
pub fn write_bulks(folder: &Path) -> Result<PathBuf> {
    let file = folder.join("bulks.ndjson");
    std::fs::write(&file, bulks(&bundled(BULKS * DOCUMENTS_OF_A_BULK)?))?;
    Ok(file)
}

/// Writes the quickstart's queries, a file for each class.
///
/// # Errors
/// When they cannot be made.
pub fn write_classes(bench: &Bench, folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mix = folder.join("mix.ndjson");
    let words = ["corpus", "queries", "--each", "200", "--out"].map(str::to_owned);
    let words = [&words[..], &[mix.display().to_string()]].concat();
    let ended = Child::start(&bench.plimsoll, &words, None)?.finish(60, &bench.interrupted)?;
    if ended.code != Some(0) {
        bail!("making queries failed: {}", ended.errors.trim());
    }
    let mix = std::fs::read_to_string(mix)?;
    let mut files = Vec::new();
    for class in QueryClass::ALL {
        let mark = format!("\"class\":\"{}\"", class.name());
        let own: String = mix
            .lines()
            .filter(|line| line.contains(&mark))
            .map(|line| format!("{line}\n"))
            .collect();
        if own.is_empty() {
            bail!("there is no query of the class {}", class.name());
        }
        let file = folder.join(format!("{}.ndjson", class.name()));
        std::fs::write(&file, own)?;
        files.push((class.name().to_owned(), file));
    }
    Ok(files)
}

/// Words of the bundled text, with their neighbour: two from each of many documents.
fn word_pairs() -> Result<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    for (_, fields) in bundled(FILLED)?.into_iter().step_by(FILLED / (4 * QUERIES)) {
        let body = fields["body"].as_str().unwrap_or_default().to_lowercase();
        let words: Vec<&str> = body.split(' ').collect();
        let is_word = |word: &str| word.len() > 4 && word.bytes().all(|b| b.is_ascii_lowercase());
        let pair = words.windows(2).find(|pair| pair.iter().all(|word| is_word(word)));
        pairs.extend(pair.map(|pair| (pair[0].to_owned(), pair[1].to_owned())));
    }
    if pairs.len() < QUERIES {
        bail!("the bundled text has {} pairs of words, fewer than {QUERIES}", pairs.len());
    }
    pairs.truncate(QUERIES);
    Ok(pairs)
}

fn write_bodies(file: &Path, query: impl Fn(&str, &str) -> Value) -> Result<()> {
    let mut lines = String::new();
    for (one, two) in word_pairs()? {
        let path = format!("/{INDEX}/_search");
        let body = json!({"size": 10, "track_total_hits": true, "query": query(&one, &two)});
        let _ = writeln!(lines, "{}", json!({"method": "POST", "path": path, "body": body}));
    }
    Ok(std::fs::write(file, lines)?)
}

/// A word with its third letter replaced.
fn misspelt(word: &str) -> String {
    let letter = if word.as_bytes()[2] == b'x' { "z" } else { "x" };
    format!("{}{letter}{}", &word[..2], &word[3..])
}

/// Writes searches of Elasticsearch's API, a file for each kind.
///
/// # Errors
/// When a file cannot be written.
pub fn write_searches(folder: &Path) -> Result<Vec<(&'static str, PathBuf)>> {
    type Query = fn(&str, &str) -> Value;
    let kinds: [(&str, Query); 5] = [
        ("match", |one, two| json!({"match": {"body": format!("{one} {two}")}})),
        ("phrase", |one, two| json!({"match_phrase": {"body": format!("{one} {two}")}})),
        ("prefix", |one, _| json!({"prefix": {"body": {"value": &one[..4]}}})),
        ("fuzzy", |one, _| json!({"fuzzy": {"body": {"value": misspelt(one), "fuzziness": 2}}})),
        (
            "bool",
            |one, two| json!({"bool": {"must": [{"match": {"body": one}}], "must_not": [{"match": {"body": two}}]}}),
        ),
    ];
    let mut files = Vec::new();
    for (kind, query) in kinds {
        let file = folder.join(format!("es-{kind}.ndjson"));
        write_bodies(&file, query)?;
        files.push((kind, file));
    }
    Ok(files)
}

/// Writes phrases with up to four errors, which are found by scanning the text.
///
/// # Errors
/// When the file cannot be written.
pub fn write_scans(folder: &Path) -> Result<PathBuf> {
    let file = folder.join("scans.ndjson");
    write_bodies(&file, |one, two| {
        let text = format!("{} {two}", misspelt(one));
        json!({"match_phrase": {"body": {"query": text, "fuzziness": 2}}})
    })?;
    Ok(file)
}

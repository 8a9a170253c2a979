//! Loading a text into an engine, until all of it can be found.

use super::at_rest;
use super::engine::Engine;
use super::server::{Door, Server, closed};
use super::shown::Shown;
use super::text::Text;
use crate::bulk::{BulkSessions, CopySessions, LoadTally};
use crate::dialect::{Call, Dialect, Feeding};
use anyhow::{Context, Result};
use plimsoll_core::clock::now_ns;
use plimsoll_core::interval::Interval;
use plimsoll_core::outcome::Failure;
use plimsoll_core::schedule::Slice;
use plimsoll_core::units::Span;
use plimsoll_engine::run::run as run_engine;
use plimsoll_job::keeping::Nowhere;
use plimsoll_job::signals;
use plimsoll_record::search::Load;
use plimsoll_wire::Sessions;
use plimsoll_wire::http::Http;
use plimsoll_wire::postgres::Postgres;
use serde_json::Value;
use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest time for making or removing an index, a count.
const ORDER_WITHIN: Span = Span::seconds(120);
/// Longest time until what was written is findable: a refresh, or the making of indexes after the load.
const REFRESH_WITHIN: Span = Span::seconds(3600);
/// Longest time of one bulk request.
const BULK_WITHIN: Span = Span::seconds(300);
/// Longest time that documents that were acknowledged may take to be found.
const FOUND_WITHIN: Span = Span::seconds(300);
/// Counts in a row that were not answered, after which no one is there any more.
const GONE_MAX: u32 = 100;
/// Between two counts.
const COUNT_EVERY: Duration = Duration::from_millis(50);
/// Connections for documents that are written one by one.
const SINGLE_LOADERS: u32 = 32;

/// Text to ingest, and its destination.
pub struct Order<'a> {
    /// The text.
    pub text: &'a Text,
    /// The index.
    pub index: &'a str,
    /// Its shards.
    pub shards: u32,
    /// Connections.
    pub loaders: u32,
    /// True if an index that is there and whole is used as it is.
    pub reuse: bool,
}

/// Ingests a text. A failure is in the load's `trouble`.
///
/// # Errors
/// When the user stops the program, or it fails itself.
pub fn load(engine: &Engine, name: &str, order: &Order<'_>, shown: &Shown) -> Result<Load> {
    let mut load = Load {
        engine: name.to_owned(),
        size: order.text.label.clone(),
        shards: order.shards,
        ..Load::default()
    };
    let server = &engine.server;
    if order.reuse && is_there(server, order)? {
        load.documents = order.text.documents;
        load.reused = true;
        load.index_bytes = index_size(server, order.index)?;
        return Ok(load);
    }
    load.trouble = prepare(server, order)?;
    if load.trouble.is_none() {
        let cpu_before = engine.cpu_s();
        load.trouble = write(server, order, &mut load, shown)?;
        load.server_cpu_s =
            engine.cpu_s().zip(cpu_before).map(|(after, before)| (after - before).max(0.0));
    }
    if load.trouble.is_none() {
        shown.doing(&format!("{name}: until all of {} can be found", order.text.label));
        let (seconds, trouble) = until_found(server, order)?;
        load.searchable_s = seconds;
        load.trouble = trouble;
    }
    if load.trouble.is_none() {
        shown.doing(&format!("{name}: until it is done with {}", order.text.label));
        if let Some((seconds, busy)) = at_rest::wait(engine)? {
            (load.at_rest_s, load.busy) = (Some(seconds), busy);
        }
        load.index_bytes = index_size(server, order.index)?;
    }
    Ok(load)
}

/// Returns true if an index with all of this text, and everything made after ingesting, exists from before.
fn is_there(server: &Server, order: &Order<'_>) -> Result<bool> {
    let found = told(server, server.dialect.count_whole(order.index))?;
    if found != Ok(Some(order.text.documents)) {
        return Ok(false);
    }
    // Where all texts have the same place, another one of as many documents may be there.
    for line in order.text.ends()? {
        let id = line.get("id").and_then(Value::as_str).unwrap_or_default();
        let Some(call) = server.dialect.document(id) else { break };
        let answer = server.ask_one(&call, ORDER_WITHIN)?;
        if !answer.is_ok() || !server.dialect.is_document(&answer.body, &line) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes an index, in as many steps as the engine takes for it; that it is not there is as good.
fn take_away(server: &Server, index: &str) -> Result<Option<String>> {
    let until_ns = now_ns() + REFRESH_WITHIN.ns;
    for call in server.dialect.remove(index) {
        let mut next = Some(call);
        while let Some(call) = next.take().filter(|_| now_ns() < until_ns) {
            let answer = server.ask_one(&call, ORDER_WITHIN)?;
            if answer.status != 404
                && let Some(trouble) = server.trouble(&answer)
            {
                return Ok(Some(trouble));
            }
            next = server.dialect.remove_on(&answer.body);
        }
    }
    Ok(None)
}

/// Removes an index that is in the way and makes an empty one.
fn prepare(server: &Server, order: &Order<'_>) -> Result<Option<String>> {
    let dialect = server.dialect;
    // Where every document type has one index, there is nothing to remove from a fresh one.
    let shared = dialect == Dialect::Vespa;
    let is_empty = || -> Result<bool> {
        Ok(shared && told(server, dialect.count(order.index))? == Ok(Some(0)))
    };
    if !is_empty()?
        && let Some(trouble) = take_away(server, order.index)?
    {
        return Ok(Some(format!("removing an old index: {trouble}")));
    }
    // And in one that was emptied, what is still found would be taken for what is written next.
    let until_ns = now_ns() + FOUND_WITHIN.ns;
    while shared && !is_empty()? {
        if now_ns() > until_ns {
            return Ok(Some(format!(
                "documents are found {FOUND_WITHIN} after all of the namespace plimsoll were removed"
            )));
        }
        signals::go_on("while an index was emptied")?;
        std::thread::sleep(COUNT_EVERY);
    }
    for call in dialect.create(order.index, order.shards) {
        let answer = server.ask_one(&call, ORDER_WITHIN)?;
        if let Some(trouble) = server.trouble(&answer) {
            return Ok(Some(format!("creating the index: {trouble}")));
        }
    }
    Ok(None)
}

fn write(
    server: &Server,
    order: &Order<'_>,
    load: &mut Load,
    shown: &Shown,
) -> Result<Option<String>> {
    let clients = match server.dialect.feeding() {
        Feeding::Bulk | Feeding::Copy => order.loaders,
        Feeding::Single(_) => order.loaders.max(SINGLE_LOADERS),
    };
    let mut plan = server.plan(closed(clients), None, Slice::WHOLE)?;
    plan.timeouts.request_ns = plan.timeouts.request_ns.max(BULK_WITHIN.ns);
    let tally = Arc::new(LoadTally::default());
    let stop = Arc::new(AtomicBool::new(false));
    let file =
        File::open(&order.text.path).with_context(|| order.text.path.display().to_string())?;
    let text = BufReader::with_capacity(1 << 20, file);
    let start_ns = now_ns();
    let mut progress = |_: &Interval| {
        if signals::is_stopped() {
            stop.store(true, Ordering::Relaxed);
        }
        let seconds = (now_ns() - start_ns) as f64 / 1e9;
        let (documents, bytes) =
            (tally.documents.load(Ordering::Relaxed), tally.bytes.load(Ordering::Relaxed));
        shown.loading(documents, order.text.documents, bytes, seconds);
    };
    let end = match &server.door {
        Door::Http(form) => {
            let (dialect, form, http) = (server.dialect, form.clone(), server.http());
            let (tally, give_up) = (tally.clone(), stop.clone());
            let own = BulkSessions::new(text, form, dialect, order.index, clients, tally, give_up);
            let own: Vec<Box<dyn Sessions<Http> + Send>> = vec![Box::new(own)];
            run_engine(&plan, || http, own, &mut Nowhere, &mut progress, &stop)?
        }
        Door::Postgres(address) => {
            let protocol = server.postgres(address, BULK_WITHIN)?;
            let (statement, _) = server.dialect.bulk_path(order.index);
            let own = CopySessions::new(text, statement, clients, tally.clone(), stop.clone());
            let own: Vec<Box<dyn Sessions<Postgres> + Send>> = vec![Box::new(own)];
            run_engine(&plan, || protocol.clone(), own, &mut Nowhere, &mut progress, &stop)?
        }
    };
    signals::go_on("while a text was ingested")?;
    load.documents = tally.documents.load(Ordering::Relaxed);
    load.bytes = tally.bytes.load(Ordering::Relaxed);
    load.failed = tally.failed.load(Ordering::Relaxed);
    load.retried = tally.retried.load(Ordering::Relaxed);
    load.seconds = tally.seconds();
    let seconds = load.seconds.max(1e-9);
    load.documents_per_s = load.documents as f64 / seconds;
    load.mb_per_s = load.bytes as f64 / 1e6 / seconds;
    let first = tally.first_trouble().or(end.refused.map(Into::into));
    let first = first.unwrap_or_else(|| "no reason was given".to_owned());
    let missing = order.text.documents.saturating_sub(load.documents);
    Ok((missing > 0).then(|| {
        format!("{missing} of {} documents were not accepted; first: {first}", order.text.documents)
    }))
}

/// Asks an engine for a number; `None` if its answer holds none. The inner error is the reason why no answer came.
fn told(server: &Server, asked: Option<Call>) -> Result<Result<Option<u64>, Failure>> {
    let Some(call) = asked else { return Ok(Ok(None)) };
    let answer = server.ask_one(&call, ORDER_WITHIN)?;
    Ok(match answer.lost {
        Some(failure) => Err(failure),
        None if server.trouble(&answer).is_some() => Ok(None),
        None => Ok(server.dialect.read_count(&answer.body)),
    })
}

fn index_size(server: &Server, index: &str) -> Result<Option<u64>> {
    let Some(call) = server.dialect.index_size(index) else { return Ok(None) };
    let answer = server.ask_one(&call, ORDER_WITHIN)?;
    Ok(if answer.is_ok() { server.dialect.read_index_size(&answer.body) } else { None })
}

/// Waits until as many documents can be found as were written, and says how long that took.
fn until_found(server: &Server, order: &Order<'_>) -> Result<(f64, Option<String>)> {
    let start_ns = now_ns();
    let seconds = || (now_ns() - start_ns) as f64 / 1e9;
    for call in server.dialect.refresh(order.index) {
        let answer = server.ask_one(&call, REFRESH_WITHIN)?;
        if let Some(trouble) = server.trouble(&answer) {
            return Ok((seconds(), Some(format!("refreshing the index: {trouble}"))));
        }
    }
    let mut gone = 0;
    loop {
        let found = told(server, server.dialect.count(order.index))?;
        if found == Ok(Some(order.text.documents)) {
            return Ok((seconds(), None));
        }
        gone = if found.is_err() { gone + 1 } else { 0 };
        if let (Err(failure), GONE_MAX..) = (found, gone) {
            let (lost, url) = (failure.name(), &server.url);
            return Ok((
                seconds(),
                Some(format!("{lost} at {url} while waiting until all documents can be found")),
            ));
        }
        if now_ns() - start_ns > FOUND_WITHIN.ns {
            let found = found.ok().flatten().map_or("none".to_owned(), |found| found.to_string());
            let trouble = format!(
                "{found} of {} documents can be found {FOUND_WITHIN} after ingesting (documents with the same id count once)",
                order.text.documents
            );
            return Ok((seconds(), Some(trouble)));
        }
        signals::go_on("while an index was waited for")?;
        std::thread::sleep(COUNT_EVERY);
    }
}

/// Removes an index that is no longer needed; that it cannot be removed is no trouble of a cell's.
///
/// # Errors
/// When the user stops the program.
pub fn remove(server: &Server, index: &str) -> Result<()> {
    take_away(server, index).map(|_| ())
}

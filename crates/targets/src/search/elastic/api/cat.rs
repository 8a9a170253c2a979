//! `_cat`: tables for people.

use super::super::error::ElasticError;
use super::super::index::Index;
use super::super::names::matches;
use super::super::{NODE, VERSION};
use super::{Answer, Outcome, Request, no_handler};
use crate::search::http::reads;
use plimsoll_core::clock::wall_us;
use serde_json::{Map, Value as Json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A table: names of columns with their short forms, then rows.
struct Table {
    columns: Vec<(&'static str, &'static str)>,
    rows: Vec<Vec<String>>,
}

pub(super) async fn route(request: &Request<'_>, rest: &[&str]) -> Outcome {
    if !reads(request.method) {
        return Err(no_handler(request));
    }
    let all = || request.elastic().indices.resolve(rest.get(2).copied().unwrap_or("_all"), false);
    let table = match rest {
        ["_cat", "indices"] | ["_cat", "indices", _] => indices(&looked_at(all()?).await, request)?,
        ["_cat", "count"] | ["_cat", "count", _] => count(&looked_at(all()?).await),
        ["_cat", "shards"] | ["_cat", "shards", _] => shards(&looked_at(all()?).await),
        ["_cat", "health"] => health(&all()?),
        ["_cat", "nodes"] => Table {
            columns: vec![
                ("ip", "i"),
                ("node.role", "r"),
                ("master", "m"),
                ("name", "n"),
                ("version", "v"),
            ],
            rows: vec![["127.0.0.1", "dim", "*", NODE, VERSION].map(ToOwned::to_owned).to_vec()],
        },
        ["_cat"] => {
            let list = "=^.^=\n/_cat/count\n/_cat/count/{index}\n/_cat/health\n/_cat/indices\n\
                        /_cat/indices/{index}\n/_cat/nodes\n/_cat/shards\n/_cat/shards/{index}\n";
            return Ok(Answer::text(list.to_owned()));
        }
        _ => return Err(no_handler(request)),
    };
    shown(request, table)
}

/// Tables tell how many documents can be found: whoever reads them looks into the indices.
async fn looked_at(all: Vec<Arc<Index>>) -> Vec<Arc<Index>> {
    for index in &all {
        index.looked_at().await;
    }
    all
}

/// The unit of sizes that was asked for: a divisor, or nothing for one that fits.
fn unit(request: &Request<'_>) -> Result<Option<u64>, ElasticError> {
    match request.params.get("bytes") {
        None => Ok(None),
        Some("b") => Ok(Some(1)),
        Some("k" | "kb") => Ok(Some(1 << 10)),
        Some("m" | "mb") => Ok(Some(1 << 20)),
        Some("g" | "gb") => Ok(Some(1 << 30)),
        Some(other) => Err(ElasticError::argument(format!("unknown unit [{other}] of [bytes]"))),
    }
}

fn size(bytes: u64, unit: Option<u64>) -> String {
    match unit {
        Some(unit) => (bytes / unit).to_string(),
        None if bytes < 1 << 10 => format!("{bytes}b"),
        None if bytes < 1 << 20 => format!("{:.1}kb", bytes as f64 / 1024.0),
        None if bytes < 1 << 30 => format!("{:.1}mb", bytes as f64 / 1_048_576.0),
        None => format!("{:.1}gb", bytes as f64 / 1_073_741_824.0),
    }
}

fn indices(all: &[Arc<Index>], request: &Request<'_>) -> Result<Table, ElasticError> {
    let unit = unit(request)?;
    let row = |index: &Arc<Index>| {
        let settings = index.state.settings();
        let shards = &index.shards;
        let removed: u64 = shards.iter().map(|s| s.counters.removed.load(Ordering::Relaxed)).sum();
        let bytes = size(index.bytes(), unit);
        let health = if shards.iter().any(|s| s.failure().is_some()) { "red" } else { "green" };
        vec![
            health.to_owned(),
            "open".to_owned(),
            index.name().to_owned(),
            index.state.uuid.clone(),
            settings.shards.to_string(),
            settings.replicas.to_string(),
            shards.iter().map(|shard| shard.searchable_documents()).sum::<u64>().to_string(),
            removed.to_string(),
            bytes.clone(),
            bytes,
        ]
    };
    Ok(Table {
        columns: vec![
            ("health", "h"),
            ("status", "s"),
            ("index", "i"),
            ("uuid", "id"),
            ("pri", "p"),
            ("rep", "r"),
            ("docs.count", "dc"),
            ("docs.deleted", "dd"),
            ("store.size", "ss"),
            ("pri.store.size", "pri.ss"),
        ],
        rows: all.iter().map(row).collect(),
    })
}

fn now() -> (String, String) {
    let seconds = wall_us() / 1_000_000;
    let of_day = seconds % 86_400;
    let time = format!("{:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60);
    (seconds.to_string(), time)
}

fn count(all: &[Arc<Index>]) -> Table {
    let (epoch, time) = now();
    let documents: u64 =
        all.iter().flat_map(|index| &index.shards).map(|shard| shard.searchable_documents()).sum();
    Table {
        columns: vec![("epoch", "t"), ("timestamp", "ts"), ("count", "dc")],
        rows: vec![vec![epoch, time, documents.to_string()]],
    }
}

fn health(all: &[Arc<Index>]) -> Table {
    let (epoch, time) = now();
    let shards: usize = all.iter().map(|index| index.shards.len()).sum();
    let failed = all.iter().flat_map(|index| &index.shards).any(|shard| shard.failure().is_some());
    let status = if failed { "red" } else { "green" };
    let one = "1".to_owned();
    Table {
        columns: vec![
            ("epoch", "t"),
            ("timestamp", "ts"),
            ("cluster", "cl"),
            ("status", "st"),
            ("node.total", "nt"),
            ("node.data", "nd"),
            ("shards", "sh"),
            ("pri", "p"),
            ("relo", "r"),
            ("init", "i"),
            ("unassign", "u"),
            ("pending_tasks", "pt"),
            ("max_task_wait_time", "mtwt"),
            ("active_shards_percent", "asp"),
        ],
        rows: vec![vec![
            epoch,
            time,
            "plimsoll".to_owned(),
            status.to_owned(),
            one.clone(),
            one,
            shards.to_string(),
            shards.to_string(),
            "0".to_owned(),
            "0".to_owned(),
            "0".to_owned(),
            "0".to_owned(),
            "-".to_owned(),
            "100.0%".to_owned(),
        ]],
    }
}

fn shards(all: &[Arc<Index>]) -> Table {
    let shards = all.iter().flat_map(|index| index.shards.iter().map(move |shard| (index, shard)));
    let row = |(index, shard): (&Arc<Index>, &Arc<super::super::shard::Shard>)| {
        vec![
            index.name().to_owned(),
            shard.number.to_string(),
            "p".to_owned(),
            "STARTED".to_owned(),
            shard.searchable_documents().to_string(),
            "127.0.0.1".to_owned(),
            NODE.to_owned(),
        ]
    };
    Table {
        columns: vec![
            ("index", "i"),
            ("shard", "s"),
            ("prirep", "p"),
            ("state", "st"),
            ("docs", "d"),
            ("ip", "ip"),
            ("node", "n"),
        ],
        rows: shards.map(row).collect(),
    }
}

/// The table with the columns that were asked for, as text or as JSON.
fn shown(request: &Request<'_>, mut table: Table) -> Outcome {
    if let Some(by) = request.params.get("s") {
        let (name, order) = by.split_once(':').unwrap_or((by, "asc"));
        let column = table.columns.iter().position(|(long, short)| name == *long || name == *short);
        let column = column.ok_or_else(|| {
            let reason = format!("Unable to sort by unknown sort key `{name}`");
            ElasticError::new(400, "unsupported_operation_exception", reason)
        })?;
        let key = |row: &Vec<String>| {
            (row[column].parse::<u64>().unwrap_or(u64::MAX), row[column].clone())
        };
        table.rows.sort_by_key(key);
        if order == "desc" {
            table.rows.reverse();
        }
    }
    let chosen: Vec<usize> = match request.params.get("h") {
        None => (0..table.columns.len()).collect(),
        Some(names) => {
            let wanted = |name: &str| {
                let columns = table.columns.iter().enumerate();
                let fits = |(long, short): &(&str, &str)| matches(name, long) || name == *short;
                let found: Vec<usize> =
                    columns.filter(|(_, c)| fits(c)).map(|(number, _)| number).collect();
                found
            };
            names.split(',').flat_map(wanted).collect()
        }
    };
    if request.params.get("format") == Some("json") {
        let rows = table.rows.iter().map(|row| {
            let cells = chosen.iter().map(|column| {
                (table.columns[*column].0.to_owned(), Json::String(row[*column].clone()))
            });
            Json::Object(cells.collect::<Map<_, _>>())
        });
        return Ok(Answer::json(&Json::Array(rows.collect())));
    }
    let mut lines: Vec<Vec<&str>> = Vec::new();
    if request.params.flag("v") {
        lines.push(chosen.iter().map(|column| table.columns[*column].0).collect());
    }
    lines.extend(table.rows.iter().map(|row| chosen.iter().map(|c| row[*c].as_str()).collect()));
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..chosen.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(number, (cell, width))| {
            if number + 1 == line.len() { (*cell).to_owned() } else { format!("{cell:<width$}") }
        });
        text.push_str(&cells.collect::<Vec<_>>().join(" "));
        text.push('\n');
    }
    Ok(Answer::text(text))
}

//! `_cat`: tables for people.

use super::super::error::ElasticError;
use super::super::index::Index;
use super::super::{NODE, VERSION};
use super::table::{Table, left, right, shown};
use super::{Answer, Outcome, Request, no_handler, not_allowed};
use plimsoll_core::clock::wall_us;
use plimsoll_front::reads;
use std::fs::read_to_string;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The tables that Elasticsearch has and this server has not.
const OTHERS: [&str; 17] = [
    "aliases",
    "allocation",
    "cluster_manager",
    "component_templates",
    "fielddata",
    "master",
    "nodeattrs",
    "pending_tasks",
    "plugins",
    "recovery",
    "repositories",
    "segment_replication",
    "segments",
    "snapshots",
    "tasks",
    "templates",
    "thread_pool",
];

pub(super) async fn route(request: &Request<'_>, rest: &[&str]) -> Outcome {
    if !reads(request.method) {
        return Err(not_allowed(request, "GET"));
    }
    let all = || request.app.indices.resolve(rest.get(2).copied().unwrap_or("_all"), false);
    let table = match rest {
        ["_cat", "indices"] | ["_cat", "indices", _] => indices(&looked_at(all()?).await, request)?,
        ["_cat", "count"] | ["_cat", "count", _] => count(&looked_at(all()?).await),
        ["_cat", "shards"] | ["_cat", "shards", _] => shards(&looked_at(all()?).await),
        ["_cat", "health"] => health(&all()?, request),
        ["_cat", "nodes"] => nodes(),
        ["_cat"] => {
            let list = "=^.^=\n/_cat/count\n/_cat/count/{index}\n/_cat/health\n/_cat/indices\n\
                        /_cat/indices/{index}\n/_cat/nodes\n/_cat/shards\n/_cat/shards/{index}\n";
            return Ok(Answer::text(list.to_owned()));
        }
        ["_cat", other, ..] if OTHERS.contains(other) => {
            return Err(ElasticError::unsupported(&format!("[_cat/{other}]")));
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
    let wanted = request.params.get("health");
    if let Some(other) = wanted.filter(|health| !["green", "yellow", "red"].contains(health)) {
        return Err(ElasticError::argument(format!("unknown value [{other}] of [health]")));
    }
    let health = |index: &Index| {
        if index.shards.iter().any(|shard| shard.failure().is_some()) { "red" } else { "green" }
    };
    let row = |index: &Arc<Index>| {
        let settings = index.state.settings();
        let shards = &index.shards;
        let removed: u64 = shards.iter().map(|s| s.counters.removed.load(Ordering::Relaxed)).sum();
        let bytes = size(index.bytes(), unit);
        vec![
            health(index).to_owned(),
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
            left("health", "h"),
            left("status", "s"),
            left("index", "i"),
            left("uuid", "id"),
            right("pri", "p"),
            right("rep", "r"),
            right("docs.count", "dc"),
            right("docs.deleted", "dd"),
            right("store.size", "ss"),
            right("pri.store.size", "pri.ss"),
        ],
        rows: all
            .iter()
            .filter(|index| wanted.is_none_or(|wanted| wanted == health(index)))
            .map(row)
            .collect(),
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
        columns: vec![left("epoch", "t"), left("timestamp", "ts"), left("count", "dc")],
        rows: vec![vec![epoch, time, documents.to_string()]],
    }
}

/// The one node. Unknown figures, such as the heap, have no column.
fn nodes() -> Table {
    let told = read_to_string("/proc/loadavg").unwrap_or_default();
    let mut loads = told.split(' ').take(3).map(ToOwned::to_owned);
    let mut load = || loads.next().unwrap_or_default();
    let row = vec![
        NODE.to_owned(),
        "127.0.0.1".to_owned(),
        ram_percent().unwrap_or_default(),
        load(),
        load(),
        load(),
        "dim".to_owned(),
        "*".to_owned(),
        NODE.to_owned(),
        VERSION.to_owned(),
    ];
    Table {
        columns: vec![
            left("id", "nodeId").hidden(),
            left("ip", "i"),
            right("ram.percent", "rp"),
            right("load_1m", "l"),
            right("load_5m", "load_5m"),
            right("load_15m", "load_15m"),
            left("node.role", "r"),
            left("master", "m"),
            left("name", "n"),
            left("version", "v").hidden(),
        ],
        rows: vec![row],
    }
}

/// Part of the machine's memory that is taken, per cent.
fn ram_percent() -> Option<String> {
    let told = read_to_string("/proc/meminfo").ok()?;
    let kilobytes = |name: &str| -> Option<u64> {
        let line = told.lines().find(|line| line.starts_with(name))?;
        line.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    let (all, free) = (kilobytes("MemTotal:")?, kilobytes("MemAvailable:")?);
    Some((100 * all.saturating_sub(free) / all.max(1)).to_string())
}

fn health(all: &[Arc<Index>], request: &Request<'_>) -> Table {
    let (epoch, time) = now();
    let shards: usize = all.iter().map(|index| index.shards.len()).sum();
    let failed = all.iter().flat_map(|index| &index.shards).any(|shard| shard.failure().is_some());
    let status = if failed { "red" } else { "green" };
    let one = "1".to_owned();
    let clock = |name, short| match request.params.get("ts") {
        Some("false") => left(name, short).hidden(),
        _ => left(name, short),
    };
    Table {
        columns: vec![
            clock("epoch", "t"),
            clock("timestamp", "ts"),
            left("cluster", "cl"),
            left("status", "st"),
            right("node.total", "nt"),
            right("node.data", "nd"),
            right("shards", "sh"),
            right("pri", "p"),
            right("relo", "r"),
            right("init", "i"),
            right("unassign", "u"),
            right("pending_tasks", "pt"),
            right("max_task_wait_time", "mtwt"),
            right("active_shards_percent", "asp"),
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
            left("index", "i"),
            left("shard", "s"),
            left("prirep", "p"),
            left("state", "st"),
            right("docs", "d"),
            left("ip", "ip"),
            left("node", "n"),
        ],
        rows: shards.map(row).collect(),
    }
}

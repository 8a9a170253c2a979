//! The list: servers, and the operations that are measured on each.

use super::block::{Part, Row};
use super::inputs;
use crate::measure::Bench;
use crate::server::Server;
use anyhow::{Context, Result};
use std::path::Path;

/// Rows that share their servers.
pub struct Scene {
    /// Its name.
    pub name: &'static str,
    /// Kind of server for `plimsoll serve`.
    kind: &'static str,
    flags: &'static [&'static str],
    /// Writes the files of the rows, and returns the rows.
    pub inputs: fn(&Bench, &Path) -> Result<Vec<Row>>,
    /// Fills a server: client, server, folder.
    fill: fn(&Bench, &Server, &Path) -> Result<()>,
}

/// A disk is not part of what is compared. An earlier build does not know this flag, and answers queries without it.
const UNSAFE: &[&str] = &["--durability", "none"];

/// All of them.
pub const SCENES: [Scene; 9] = [
    Scene { name: "http", kind: "null", flags: &[], inputs: http, fill: nothing },
    Scene {
        name: "queue",
        kind: "queue",
        flags: &["--service", "fixed:10us"],
        inputs: queue,
        fill: nothing,
    },
    Scene {
        name: "queries",
        kind: "search",
        flags: &[],
        inputs: queries,
        fill: inputs::fill_documents,
    },
    Scene {
        name: "writes",
        kind: "search",
        flags: UNSAFE,
        inputs: writes,
        fill: inputs::fill_documents,
    },
    Scene {
        name: "elasticsearch",
        kind: "search",
        flags: &[],
        inputs: searches,
        fill: inputs::fill_index,
    },
    Scene { name: "bulk", kind: "search", flags: UNSAFE, inputs: bulks, fill: inputs::fill_index },
    Scene {
        name: "scan",
        kind: "search",
        flags: &["--fuzzy", "scan"],
        inputs: scan,
        fill: inputs::fill_index,
    },
    Scene {
        name: "voter",
        kind: "voter",
        flags: &["--partitions", "1"],
        inputs: voter,
        fill: nothing,
    },
    Scene {
        name: "postgresql",
        kind: "postgresql",
        flags: &["--durability", "async"],
        inputs: postgresql,
        fill: nothing,
    },
];

impl Scene {
    /// Starts the server of a build and fills it.
    ///
    /// # Errors
    /// When it does not start, or refuses a document.
    pub fn start(&self, host: &Bench, client: &Bench) -> Result<Server> {
        let server = Server::plimsoll(host, self.kind, self.flags)
            .with_context(|| format!("serve {}", self.kind))?;
        (self.fill)(client, &server, client.folder.path())
            .with_context(|| format!("filling serve {}", self.kind))?;
        Ok(server)
    }

    /// True if one of these rows measures this part.
    pub fn has(&self, part: Part, rows: &[Row]) -> bool {
        rows.iter().any(|row| row.part == part)
    }
}

fn nothing(_: &Bench, _: &Server, _: &Path) -> Result<()> {
    Ok(())
}

fn http(_: &Bench, _: &Path) -> Result<Vec<Row>> {
    let closed = "load {url} --clients 32 --duration 700ms";
    let open = "load {url} --connections 32 --rate 20000 --seed {seed} --duration 700ms";
    Ok(vec![
        Row::new("HTTP/1.1, closed", Part::Generator, closed),
        Row::new("HTTP/1.1, 20,000/s", Part::Generator, open),
        Row::new("HTTP/1.1, null", Part::Server, closed),
    ])
}

fn queue(_: &Bench, _: &Path) -> Result<Vec<Row>> {
    let closed = "load {url} --clients 32 --no-batching --duration 700ms";
    Ok(vec![Row::new("HTTP/1.1, queue", Part::Server, closed)])
}

fn queries(bench: &Bench, folder: &Path) -> Result<Vec<Row>> {
    let health = "load {url}/state/v1/health --http2 --clients 32 --duration 700ms";
    let mut rows = vec![Row::new("HTTP/2, closed", Part::Generator, health)];
    for (class, file) in inputs::write_classes(bench, folder)? {
        let ask = format!(
            "load {{url}} --queries {} --clients 1 --check vespa --duration 700ms",
            file.display()
        );
        rows.push(Row::new(&format!("query {class}"), Part::Server, &ask));
    }
    Ok(rows)
}

fn writes(_: &Bench, folder: &Path) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let visit = format!(
        "visit {{url}} --cluster plimsoll --slices 4 --out {}",
        folder.join("dump").display()
    );
    let [puts, operations] = inputs::write_documents(folder)?;
    let feed = format!("feed {{url}} {} --inflight 64", operations.display());
    let put = format!(
        "load {{url}} --queries {} --clients 32 --requests {} --duration 30s",
        puts.display(),
        inputs::DOCUMENTS
    );
    for part in [Part::Generator, Part::Server] {
        rows.push(Row::new("visit", part, &visit).counted("/visit/documents"));
    }
    for part in [Part::Generator, Part::Server] {
        rows.push(Row::new("feed", part, &feed));
    }
    rows.push(Row::new("document put", Part::Server, &put));
    Ok(rows)
}

fn searches(_: &Bench, folder: &Path) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (kind, file) in inputs::write_searches(folder)? {
        let ask = format!(
            "load {{url}} --queries {} --clients 1 --check elasticsearch --duration 700ms",
            file.display()
        );
        rows.push(Row::new(&format!("Elasticsearch {kind}"), Part::Server, &ask));
    }
    Ok(rows)
}

fn bulks(_: &Bench, folder: &Path) -> Result<Vec<Row>> {
    let bulk = format!(
        "load {{url}} --queries {} --clients 4 --check elasticsearch --requests {} --duration 30s",
        inputs::write_bulks(folder)?.display(),
        inputs::BULKS
    );
    Ok(vec![Row::new("Elasticsearch bulk", Part::Server, &bulk)])
}

fn scan(_: &Bench, folder: &Path) -> Result<Vec<Row>> {
    let ask = format!(
        "load {{url}} --queries {} --clients 1 --check elasticsearch --duration 700ms",
        inputs::write_scans(folder)?.display()
    );
    Ok(vec![Row::new("scan", Part::Server, &ask)])
}

/// An earlier build knows `--clients` as `--workers`; both are understood.
fn voter(_: &Bench, _: &Path) -> Result<Vec<Row>> {
    let vote = "voter {url} --workers 64 --duration 700ms --seed {seed}";
    Ok(vec![
        Row::new("voter call", Part::Generator, vote),
        Row::new("voter call", Part::Server, vote),
    ])
}

fn postgresql(_: &Bench, _: &Path) -> Result<Vec<Row>> {
    let vote = "voter {url} --workers 32 --sql function --duration 700ms --seed {seed}";
    Ok(vec![Row::new("PostgreSQL call", Part::Generator, vote)])
}

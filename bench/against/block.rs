//! One block: a run of plimsoll against a server, and the CPU time of an operation in it.

use crate::child::{Child, first_line};
use crate::measure::Bench;
use crate::server::Server;
use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Longest time of a block, s.
const LIMIT_S: u32 = 60;

/// Whose CPU time is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The program that makes the load.
    Generator,
    /// The server that takes it.
    Server,
}

/// One row of the list.
pub struct Row {
    /// The operation.
    pub name: String,
    /// Whose time counts.
    pub part: Part,
    /// Command line without the program; `{url}` is the server, `{seed}` the number of the block.
    pub words: Vec<String>,
    /// Place of the number of operations in the record.
    pub operations: &'static str,
}

impl Row {
    /// A row whose command line is given as one text.
    pub fn new(name: &str, part: Part, line: &str) -> Self {
        let tail = "--no-record --quiet --json -";
        let words = line.split_whitespace().chain(tail.split(' ')).map(str::to_owned).collect();
        Self { name: name.to_owned(), part, words, operations: "/ledger/ok" }
    }

    /// The same, whose operations are counted elsewhere.
    pub fn counted(self, operations: &'static str) -> Self {
        Self { operations, ..self }
    }

    /// Its name in tables and in the history.
    pub fn title(&self) -> String {
        let part = if self.part == Part::Generator { "generator" } else { "server" };
        format!("{}: {part}", self.name)
    }
}

/// Runs a block and returns the CPU time of an operation, us.
///
/// # Errors
/// When a request failed, the program does not understand its command line, or was stopped.
pub fn block(row: &Row, client: &Bench, server: &Server, seed: usize) -> Result<f64> {
    let url = server.url.trim_end_matches('/');
    let seed = (seed + 1).to_string();
    let words: Vec<String> =
        row.words.iter().map(|word| word.replace("{url}", url).replace("{seed}", &seed)).collect();
    let before_s = server.tree_cpu_s()?;
    let child = Child::start(&client.plimsoll, &words, Some(client.cores.generator))?;
    let ended = child.finish(LIMIT_S, &client.interrupted)?;
    let server_s = server.tree_cpu_s()? - before_s;
    // It ends with 3 when it judges that a run says little about the target; what it costs is what is measured here.
    if !matches!(ended.code, Some(0 | 3)) {
        bail!("plimsoll {} ended with {:?}: {}", words[0], ended.code, first_line(&ended.errors));
    }
    let record: Value = serde_json::from_str(&ended.output).context("the record of a block")?;
    let number = |path: &str| -> Result<f64> {
        record.pointer(path).and_then(Value::as_f64).with_context(|| format!("no {path}"))
    };
    let (sent, ok) = (number("/ledger/sent")?, number("/ledger/ok")?);
    let operations = number(row.operations)?;
    if ok != sent || operations < 1.0 {
        bail!("of {sent} requests {ok} succeeded, with {operations} operations");
    }
    let cpu_s = if row.part == Part::Generator { ended.cpu_s } else { server_s };
    if cpu_s <= 0.0 {
        bail!("{operations} operations took no CPU time that the kernel counts");
    }
    Ok(cpu_s * 1e6 / operations)
}

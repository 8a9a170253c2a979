//! Result of a search matrix, under `search` in its record, and in one file per finished part beside it.

use plimsoll_core::histogram::LatencySummary;
use plimsoll_core::units::Size;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

mod probe;
pub mod scaling;

pub use probe::{Probe, ProbeAnswer};

/// A matrix, whole or as far as it came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchResult {
    /// `measured` by this program, or `imported` from a printed table.
    pub origin: String,
    /// The text that was searched: `synthetic`, `bundled`, `debian`, or the name of a file.
    pub corpus: String,
    /// Order in which users ask: `block`, `interleaved` or `shuffle`.
    pub order: String,
    /// The way users come and what they do between requests, where that is not all at once and nothing; empty otherwise.
    pub users_come: String,
    /// Longest time of a request, s: a cell with a slower one is withheld.
    pub timeout_s: f64,
    /// The engines, in the order in which they were asked for.
    pub engines: Vec<EngineRecord>,
    /// The texts' sizes, smallest first, as they were asked for.
    pub sizes: Vec<SizeRecord>,
    /// Pairs of distance and shards, in the order of the tables.
    pub groups: Vec<Group>,
    /// The numbers of users, in the order of the rows.
    pub users: Vec<u32>,
    /// The queries, in the order of the list.
    pub queries: Vec<QueryRecord>,
    /// The cells, in the order in which they were measured.
    pub cells: Vec<Cell>,
    /// One entry each time a text was loaded.
    pub loads: Vec<Load>,
    /// Results of probing each engine's edit distances.
    pub probes: Vec<Probe>,
    /// Answers of each engine to each query, which is sent once before the cells of its table.
    pub answers: Vec<Answer>,
    /// Queries to which engines gave different answers.
    pub disagreements: Vec<Disagreement>,
    /// Recall of documents known to be in the text.
    pub recall: Vec<Recall>,
    /// Account of the time.
    pub time: TimeSpent,
}

/// An engine of a matrix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineRecord {
    /// Its name in the tables.
    pub name: String,
    /// The language it is asked in: `elasticsearch`, `vespa` or `postgresql`.
    pub dialect: String,
    /// Name and version, such as `opensearch 2.19.1`.
    pub version: String,
    /// Its address, or the arguments of `plimsoll serve` that start it.
    pub place: String,
    /// Reason why none of its cells could be measured, if so.
    pub trouble: Option<String>,
}

/// A size of text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeRecord {
    /// As it was asked for: `64MB`.
    pub label: String,
    /// That in bytes; 0 where all of a text was asked for.
    pub bytes: u64,
    /// Documents of the text.
    pub documents: u64,
    /// Bytes of its NDJSON.
    pub text_bytes: u64,
}

/// One row of tables: a distance and a number of shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Group {
    /// Edit distance asked for.
    pub distance: u8,
    /// Shards of the index.
    pub shards: u32,
}

/// A query of the list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueryRecord {
    /// Its name.
    pub name: String,
    /// Its kind: `fuzzy`, `match`, `phrase`, `bool` and so on.
    pub kind: String,
    /// Number of times that a user asks it in a row, or before the list comes round.
    pub repeat: u32,
}

/// Key of a cell: engine, size, distance, shards and users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellKey {
    /// The engine's name.
    pub engine: String,
    /// The size's label.
    pub size: String,
    /// Edit distance asked for.
    pub distance: u8,
    /// Shards of the index.
    pub shards: u32,
    /// Users at a time.
    pub users: u32,
}

/// `index 64MB, distance 2, 5 shards, 10 users`.
impl fmt::Display for CellKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |number: u32, thing: &str| {
            format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
        };
        let (shards, users) = (counted(self.shards, "shard"), counted(self.users, "user"));
        write!(f, "{} {}, distance {}, {shards}, {users}", self.engine, self.size, self.distance)
    }
}

/// The mark of a cell whose engine still had work left from ingesting.
pub const BUSY: &str = "busy ingesting";
/// The same mark in records of earlier versions.
const BUSY_BEFORE: &str = "busy with its load";

/// Reads the marks of a cell, in the words of today.
fn marks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let mut marks = Vec::<String>::deserialize(deserializer)?;
    for mark in marks.iter_mut().filter(|mark| *mark == BUSY_BEFORE) {
        BUSY.clone_into(mark);
    }
    Ok(marks)
}

/// One cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cell {
    /// Key of the cell.
    #[serde(flatten)]
    pub key: CellKey,
    /// Successful requests per second in the steady window: the number of the table. None where it is withheld.
    pub ok_per_s: Option<f64>,
    /// Reason why it is withheld.
    pub reason: Option<String>,
    /// Marks that a reader must see beside the number: `clamped to 2`, `engine restarted`.
    #[serde(deserialize_with = "marks")]
    pub marks: Vec<String>,
    /// Interval of 95 % over the repeats (Student's t), per second; none below two repeats.
    pub interval_per_s: Option<[f64; 2]>,
    /// The repeats.
    pub repeats: Vec<Repeat>,
    /// Requests that succeeded, warm-up and the end included.
    pub ok: u64,
    /// Requests that failed, warm-up and the end included.
    pub failed: u64,
    /// Those of them that took longer than the timeout.
    pub timed_out: u64,
    /// Successful requests per second whether or not others failed.
    pub raw_ok_per_s: f64,
    /// Response times of the measured stretches, ms.
    pub latency_ms: LatencySummary,
    /// Mean response time of the requests that ended in the steady window, ms.
    pub mean_ms: f64,
    /// Mean response time that users and rate imply (N / X, less the think time), ms.
    pub implied_ms: Option<f64>,
    /// Implied over measured; near 1 if the requests are counted correctly.
    pub little: Option<f64>,
    /// CPU time of the server from the first request to the last reply, s; none where it is another machine's.
    pub server_cpu_s: Option<f64>,
    /// CPU time of the server for each successful request, ms.
    pub server_cpu_ms_per_request: Option<f64>,
    /// CPU time of this program meanwhile, s.
    pub generator_cpu_s: f64,
    /// Share of its time that this program's thread had work in the repeat in which that was most, 0 to 1.
    pub generator_busiest: f64,
    /// Response times by query.
    pub queries: Vec<QueryCell>,
    /// Time from the first request to the last reply, all repeats and warm-ups, s.
    pub elapsed_s: f64,
}

/// One repeat of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Repeat {
    /// Successful requests per second in the steady window.
    pub ok_per_s: f64,
    /// Successful requests in it.
    pub ok: u64,
    /// Requests that failed, also outside the window.
    pub failed: u64,
    /// Length of the window, s.
    pub window_s: f64,
    /// Mean response time of the successful requests of the window, ms.
    pub mean_ms: f64,
    /// Time of the whole run, warm-up and last replies included, s.
    pub elapsed_s: f64,
    /// Speed-up of the second half of the window over the first, as a share, with the queries weighed by what they cost
    /// (`statistics::gain`); none where users come and go, or a half has no request.
    pub second_half_gain: Option<f64>,
}

/// A query in a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueryCell {
    /// Its name.
    pub name: String,
    /// Requests that succeeded.
    pub ok: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Hits, where all replies reported the same.
    pub hits: Option<u64>,
    /// True if replies reported different numbers of hits.
    pub hits_varied: bool,
    /// Response times, ms.
    pub latency_ms: LatencySummary,
    /// Reason why it was not asked: the dialect cannot say it, or the engine refused it.
    pub refused: Option<String>,
}

/// The loading of one text into one engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Load {
    /// The engine's name.
    pub engine: String,
    /// The size's label.
    pub size: String,
    /// Shards of the index.
    pub shards: u32,
    /// Documents acknowledged.
    pub documents: u64,
    /// Bytes of requests' bodies.
    pub bytes: u64,
    /// From the first request to the last acknowledgement, s.
    pub seconds: f64,
    /// From there until all documents could be found, s.
    pub searchable_s: f64,
    /// From there until the server had no work of its own left, such as the merging of what was written, s; none where it is
    /// not one of plimsoll.
    pub at_rest_s: Option<f64>,
    /// True if it still had some when it was waited for no longer.
    #[serde(default)]
    pub busy: bool,
    /// Documents per second while loading.
    pub documents_per_s: f64,
    /// Megabytes (10^6) of bodies per second while loading.
    pub mb_per_s: f64,
    /// Documents that were refused for good.
    pub failed: u64,
    /// Requests and documents that were rejected with 429 and sent again.
    pub retried: u64,
    /// Bytes of the index as the engine tells them, where it does.
    pub index_bytes: Option<u64>,
    /// CPU time of the server, s; none where it is another machine's.
    pub server_cpu_s: Option<f64>,
    /// True if it was there from before.
    pub reused: bool,
    /// Reason why the index could not be used, if so.
    pub trouble: Option<String>,
}

/// An engine's answer to a query, asked once before the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// The engine's name.
    pub engine: String,
    /// The size's label.
    pub size: String,
    /// Edit distance asked for.
    pub distance: u8,
    /// Shards of the index.
    pub shards: u32,
    /// The query's name.
    pub query: String,
    /// Number of documents that match, if the engine reports it.
    pub hits: Option<u64>,
    /// A digest of the matching documents' ids, whatever their order, where the reply holds all of them.
    pub ids: Option<String>,
    /// Time that the first answer took, ms.
    pub first_ms: f64,
    /// Reason why there is no answer: the dialect cannot say it, or the engine's own message.
    pub refused: Option<String>,
}

/// A query to which engines gave different answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Disagreement {
    /// The size's label.
    pub size: String,
    /// Edit distance asked for.
    pub distance: u8,
    /// Shards of the index.
    pub shards: u32,
    /// The query's name.
    pub query: String,
    /// Each engine that answered, with its hits.
    pub hits: Vec<EngineHits>,
    /// Most hits less fewest.
    pub difference: u64,
    /// True if the numbers are the same and the documents are not.
    pub other_documents: bool,
}

/// An engine's hits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineHits {
    /// The engine's name.
    pub engine: String,
    /// Its hits.
    pub hits: u64,
}

/// Recall of an engine for documents known to be in a synthetic text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recall {
    /// The engine's name.
    pub engine: String,
    /// The size's label.
    pub size: String,
    /// Edit distance asked for.
    pub distance: u8,
    /// Shards of the index.
    pub shards: u32,
    /// The query's name.
    pub query: String,
    /// Documents that match by the text's own truth.
    pub expected: u64,
    /// Documents that the engine claimed.
    pub found: u64,
}

/// Account of the time of a matrix, s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeSpent {
    /// All of it, in all sittings.
    pub total_s: f64,
    /// In cells: warm-up, measured stretch, last replies.
    pub cells_s: f64,
    /// Of the time in cells: warming up.
    pub warming_s: f64,
    /// Making texts and loading them, and waiting until they can be found and engines are done with them.
    pub loading_s: f64,
    /// Of the time of loading: waiting until what was acknowledged can be found.
    pub waiting_s: f64,
    /// Starting engines.
    pub starting_s: f64,
    /// Probes, and asking each query once.
    pub asking_s: f64,
    /// Cells measured.
    pub cells: u64,
}

impl TimeSpent {
    /// Time that is none of the other kinds: reckoning, writing the record, looking for signs of life, s.
    #[must_use]
    pub fn rest_s(&self) -> f64 {
        let told = self.cells_s + self.loading_s + self.starting_s + self.asking_s;
        (self.total_s - told).max(0.0)
    }

    /// Share of the time without loading that no cell had, 0 to 1.
    #[must_use]
    pub fn outside_cells(&self) -> f64 {
        let rest = self.total_s - self.loading_s;
        if rest > 0.0 { ((rest - self.cells_s) / rest).clamp(0.0, 1.0) } else { 0.0 }
    }
}

impl SearchResult {
    /// The cell at a place.
    #[must_use]
    pub fn cell(&self, key: &CellKey) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.key == *key)
    }

    /// The cells of one column of one table, in the order of the users.
    #[must_use]
    pub fn column(&self, engine: &str, group: Group, size: &str) -> Vec<&Cell> {
        let mut cells: Vec<&Cell> = self
            .cells
            .iter()
            .filter(|cell| {
                let key = &cell.key;
                key.engine == engine
                    && key.size == size
                    && key.distance == group.distance
                    && key.shards == group.shards
            })
            .collect();
        cells.sort_by_key(|cell| cell.key.users);
        cells
    }

    /// Number of cells that the matrix has when it is whole.
    #[must_use]
    pub fn cells_planned(&self) -> usize {
        self.engines.len() * self.sizes.len() * self.groups.len() * self.users.len()
    }

    /// Puts together which queries engines answer differently, from their answers.
    #[must_use]
    pub fn find_disagreements(answers: &[Answer]) -> Vec<Disagreement> {
        let mut found: Vec<Disagreement> = Vec::new();
        let mut seen = Vec::new();
        for answer in answers {
            let place = (&answer.size, answer.distance, answer.shards, &answer.query);
            if seen.contains(&place) {
                continue;
            }
            seen.push(place);
            let same: Vec<&Answer> = answers
                .iter()
                .filter(|other| {
                    (&other.size, other.distance, other.shards, &other.query) == place
                        && other.hits.is_some()
                })
                .collect();
            let hits: Vec<EngineHits> = same
                .iter()
                .map(|one| EngineHits {
                    engine: one.engine.clone(),
                    hits: one.hits.unwrap_or_default(),
                })
                .collect();
            let most = hits.iter().map(|one| one.hits).max().unwrap_or_default();
            let least = hits.iter().map(|one| one.hits).min().unwrap_or_default();
            let mut ids = same.iter().filter_map(|one| one.ids.as_ref());
            let first = ids.next();
            let other_documents = most == least && ids.any(|id| Some(id) != first);
            if most != least || other_documents {
                found.push(Disagreement {
                    size: answer.size.clone(),
                    distance: answer.distance,
                    shards: answer.shards,
                    query: answer.query.clone(),
                    hits,
                    difference: most - least,
                    other_documents,
                });
            }
        }
        found
    }
}

/// A size as tables head their columns with it: `64MB`, `1GB`.
#[must_use]
pub fn size_label(size: Size) -> String {
    let bytes = size.bytes;
    for (unit, name) in [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")] {
        if bytes >= unit {
            let text = format!("{:.3}", bytes as f64 / unit as f64);
            return format!("{}{name}", text.trim_end_matches('0').trim_end_matches('.'));
        }
    }
    format!("{bytes}B")
}

#[cfg(test)]
mod tests;

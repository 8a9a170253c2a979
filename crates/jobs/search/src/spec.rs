//! The matrix: which engines, texts, shards, users and queries; from a TOML file, from flags, or from both.

mod file;

use super::SearchError;
use super::dialect::Dialect;
use super::query::{DISTANCE_MAX, Query, parse};
use super::sessions::{HttpAsking, Order};
use plimsoll_core::assertion::{Assertion, Scope};
use plimsoll_core::scenario::RowsScenario;
use plimsoll_core::schedule::{Pause, ProfileError, UserProfile};
use plimsoll_core::units::{Size, Span};
use plimsoll_record::search::{Group, size_label};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

pub use file::{
    EngineFile, MatrixFile, RowsFile, expanded, parse_engine, read, read_foreign, wrong_in,
};

/// Most engines, sizes, groups, or numbers of users.
const LIST_MAX: usize = 64;
/// Most cells.
const CELLS_MAX: usize = 10_000;
/// Numbers of users of a matrix that names none, on one machine.
const USERS: [u32; 4] = [1, 5, 10, 20];
/// Most users of a cell.
const USERS_MAX: u32 = 100_000;
/// Most shards of an index.
const SHARDS_MAX: u32 = 1024;

/// Action for cells whose engine refuses some of the queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnRefused {
    /// They are withheld: the engine was not asked the same.
    #[default]
    Withhold,
    /// They count what is left, and say so.
    Skip,
}

/// Location of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// At an address.
    Address(String),
    /// Started with these arguments of `plimsoll serve`.
    Serve(Vec<String>),
}

/// An engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineSpec {
    /// Its name in the tables.
    pub name: String,
    /// Its language.
    pub dialect: Dialect,
    /// Address of the engine, or the arguments that start it.
    pub place: Place,
}

/// Numbers of users of a matrix that names none, shared out to this many parts: those of one machine of which each part has one.
#[must_use]
pub fn usual_users(parts: u32) -> Vec<u32> {
    let users: Vec<u32> = USERS.into_iter().filter(|&users| users >= parts).collect();
    if users.is_empty() { vec![parts] } else { users }
}

/// A matrix, checked and whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixSpec {
    /// The engines.
    pub engines: Vec<EngineSpec>,
    /// The text: `synthetic`, `bundled`, `debian` or `ndjson:FILE`.
    pub corpus: String,
    /// Bytes of text, ascending; 0 is all of it.
    pub sizes: Vec<u64>,
    /// Distances and shards, one table an engine each.
    pub groups: Vec<Group>,
    /// Users at a time.
    pub users: Vec<u32>,
    /// In which order they ask.
    pub order: Order,
    /// Length of the steady window.
    pub duration: Span,
    /// Load of the same kind before it.
    pub warmup: Span,
    /// Instead of a duration: each user asks the list this often.
    pub passes: Option<u32>,
    /// Repeats of each cell.
    pub repeat: u32,
    /// Longest time of a request.
    pub timeout: Span,
    /// Think time between an answer and the next request.
    pub think: Pause,
    /// Time from one intended start of a user to its next; 0: none.
    #[serde(default)]
    pub pace: Span,
    /// The way users come, instead of all at once; `{users}` in it is the cell's number.
    #[serde(default)]
    pub profile: Option<String>,
    /// Rows whose values requests are filled with.
    #[serde(default)]
    pub rows: Option<RowsScenario>,
    /// Checks of replies besides those of each dialect.
    #[serde(default)]
    pub checks: Vec<String>,
    /// Assertions on each cell.
    #[serde(default)]
    pub assertions: Vec<Assertion>,
    /// Action for refused queries.
    pub refused: OnRefused,
    /// Hits that each query asks for, where that is not the query's own number.
    pub hits: Option<u32>,
    /// Headers of every request, `Name: value`.
    pub headers: Vec<String>,
    /// Seed of texts and orders.
    pub seed: u64,
    /// The list of queries, as TOML.
    pub queries: String,
    /// The files that it reads beside them, with length and time: a file that has changed is another one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

fn differ<T: Ord>(items: impl IntoIterator<Item = T>) -> bool {
    let mut seen = BTreeSet::new();
    items.into_iter().all(|item| seen.insert(item))
}

impl MatrixSpec {
    /// The queries, with the matrix's own number of hits.
    ///
    /// # Errors
    /// When the list cannot be read.
    pub fn list(&self) -> Result<Vec<Query>, SearchError> {
        let mut queries = parse(&self.queries, "queries")?;
        if let Some(hits) = self.hits {
            queries.iter_mut().for_each(|query| query.size = hits);
        }
        Ok(queries)
    }

    fn check(&self) -> Result<(), SearchError> {
        let cells = [self.engines.len(), self.sizes.len(), self.groups.len(), self.users.len()];
        let groups = self.groups.iter().map(|group| (group.distance, group.shards));
        let wrong = if self.engines.is_empty() {
            "no engine; name one with --engine, such as --engine index or --engine mine=http://HOST:9200"
        } else if cells.iter().any(|length| *length > LIST_MAX) {
            "at most 64 engines, sizes, groups and numbers of users each"
        } else if cells.iter().product::<usize>() > CELLS_MAX {
            "more than 10,000 cells; divide it into several matrices"
        } else if !differ(self.engines.iter().map(|engine| &engine.name)) {
            "two engines have the same name; write NAME=KIND or NAME=URL to tell them apart"
        } else if !differ(&self.sizes) {
            "sizes: the same size twice; write it once"
        } else if !differ(self.sizes.iter().map(|&bytes| size_label(Size { bytes }))) {
            "sizes: two of them have the same name in the tables; choose sizes that are farther apart"
        } else if !differ(groups) {
            "groups: the same group twice; write it once"
        } else if !differ(&self.users) {
            "users: the same number twice; write it once"
        } else if self.users.iter().any(|users| !(1..=USERS_MAX).contains(users)) {
            "users: use numbers from 1 to 100,000"
        } else if self.groups.iter().any(|group| !(1..=SHARDS_MAX).contains(&group.shards)) {
            "shards: use numbers from 1 to 1,024"
        } else if self.groups.iter().any(|group| group.distance > DISTANCE_MAX) {
            "distance: use numbers from 0 to 8"
        } else if self.duration.ns == 0 {
            "duration: must be more than 0; every wait has a limit"
        } else if self.timeout.ns == 0 {
            "timeout: must be more than 0; every wait has a limit"
        } else if self.passes == Some(0) {
            "passes: use at least 1"
        } else if !(1..=100).contains(&self.repeat) {
            "repeat: use a number from 1 to 100"
        } else if self.hits.is_some_and(|hits| hits > 10_000) {
            "hits: use a number from 0 to 10,000"
        } else {
            return self.check_load();
        };
        Err(SearchError::new(wrong))
    }

    /// Checks the combination of users, rows, checks and assertions.
    fn check_load(&self) -> Result<(), SearchError> {
        let names: Vec<String> = self.list()?.into_iter().map(|query| query.name).collect();
        for users in &self.users {
            self.profile_of(*users)?;
        }
        HttpAsking::checks(Dialect::Elasticsearch, &self.checks)
            .map_err(|error| SearchError::new(error.to_string()))?;
        for assertion in &self.assertions {
            if let Scope::Class(name) = &assertion.scope
                && !names.contains(name)
            {
                return Err(SearchError::new(format!(
                    "assertion '{assertion}': unknown query '{name}'; write one of {}",
                    names.join(", ")
                )));
            }
        }
        let is_http = |one: &EngineSpec| one.dialect != Dialect::Postgresql;
        if !self.headers.is_empty() && !self.engines.iter().any(is_http) {
            return Err(SearchError::new(
                "headers: no engine of this matrix is asked over HTTP; leave them out",
            ));
        }
        let postgresql = self.engines.iter().any(|one| one.dialect == Dialect::Postgresql);
        let other = |check: &&String| !check.starts_with("hits") && !check.starts_with("time");
        if let (true, Some(check)) = (postgresql, self.checks.iter().find(other)) {
            return Err(SearchError::new(format!(
                "check '{check}' looks at HTTP, and PostgreSQL has none; there it can be about hits and time"
            )));
        }
        Ok(())
    }

    /// The way the users of a cell come; none where all of them are there from the first moment.
    ///
    /// # Errors
    /// When the profile cannot be read.
    pub fn profile_of(&self, users: u32) -> Result<Option<UserProfile>, SearchError> {
        let Some(text) = &self.profile else { return Ok(None) };
        if !text.contains("{users}") && self.users.len() > 1 {
            return Err(SearchError::new(format!(
                "profile '{text}': write {{users}} where the number of users belongs, or ask for one number only"
            )));
        }
        let filled = text.replace("{users}", &users.to_string());
        filled.parse().map(Some).map_err(|error: ProfileError| {
            SearchError::new(format!(
                "profile '{filled}': column {}: {}",
                error.column, error.problem
            ))
        })
    }

    /// The differences from another matrix, one short sentence each; empty if the two are the same.
    #[must_use]
    pub fn differences(&self, before: &MatrixSpec) -> Vec<String> {
        let value = |spec: &MatrixSpec| serde_json::to_value(spec).unwrap_or_default();
        let (now, before) = (value(self), value(before));
        let Some(fields) = now.as_object() else { return Vec::new() };
        fields
            .iter()
            .filter(|(name, value)| before.get(name.as_str()) != Some(value))
            .map(|(name, value)| match name.as_str() {
                "queries" => "the queries differ".to_owned(),
                "files" => "a file that it reads has changed".to_owned(),
                _ => {
                    let was = before.get(name.as_str()).cloned().unwrap_or_default();
                    format!("{name} was {was} and is {value}")
                }
            })
            .collect()
    }

    /// Numbers of shards, each once, in the order of the groups.
    #[must_use]
    pub fn shards(&self) -> Vec<u32> {
        let mut all: Vec<u32> = Vec::new();
        for group in &self.groups {
            if !all.contains(&group.shards) {
                all.push(group.shards);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests;

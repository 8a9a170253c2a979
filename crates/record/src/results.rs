//! Results of jobs: the sections of a record beside what all runs have.

use crate::ab::AbResult;
use crate::catalogue::{CatalogueEntry, Hooks};
use crate::fbench::FbenchResult;
use crate::feed::{FeedResult, MixResult};
use crate::fleet::FleetResult;
use crate::import::ImportResult;
use crate::rank::RankResult;
use crate::reading::read_value;
use crate::resources::ResourcesResult;
use crate::search::SearchResult;
use crate::seek::{RivalResult, SeekResult};
use crate::visit::VisitResult;
use crate::voter::VoterResult;
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

sections! {
    /// Results of `fbench`: the figures of vespa-fbench's summary.
    Fbench = fbench: FbenchResult;
    /// Results of `seek`, `rank` and `voter --seek`: the load line.
    Seek = seek: SeekResult;
    /// Results of a search with another tool's method (`--strategy`).
    Rival = rival: RivalResult;
    /// Results of `rank`: the runs at one rate each, and what each instance did in the last one.
    Rank = rank: RankResult;
    /// Results of `voter` and `hello`: votes, rows and client processes.
    Voter = voter: VoterResult;
    /// Results of `visit`.
    Visit = visit: VisitResult;
    /// Results of `feed`, alone or beside queries.
    Feed = feed: FeedResult;
    /// Results of a feed beside queries: what the queries felt.
    Mix = mix: MixResult;
    /// Results of `search`: the matrix, or a printed table of one.
    Search = search: SearchResult;
    /// Results of `ab`: two sides under the same load, in pairs of blocks.
    Ab = ab: AbResult;
    /// Agents of a run on several machines.
    Fleet = fleet: FleetResult;
    /// Source of figures that another tool measured, and which fields of this record it does not give.
    Import = import: ImportResult;
    /// Job of the catalogue that made the run, and its score.
    Catalogue = catalogue: CatalogueEntry;
    /// Results of the job's hooks, by name: files in `hooks/`, and averages over the measured window.
    Hooks = hooks: Hooks;
    /// Resources of target, generator and machine; the seconds are in `resources.ndjson`.
    Resources = resources: ResourcesResult;
}

/// A section that this version does not know. It is kept, so that a record passes through unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct UnknownSection {
    /// Its key in the record.
    pub key: String,
    /// Its content.
    pub value: Value,
}

/// The sections of a record, each at most once, in the order of the file. A run has as many as things happened in it: a
/// ranking benchmark that searched has `seek` and `rank`, one of the catalogue `catalogue` and `hooks` as well; a load has
/// none but `resources`, which every run that put load on a target has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobResults(Vec<JobResult>);

impl JobResults {
    /// One section.
    #[must_use]
    pub fn of(result: impl Into<JobResult>) -> Self {
        Self(vec![result.into()])
    }

    /// These sections and one more.
    #[must_use]
    pub fn with(mut self, result: impl Into<JobResult>) -> Self {
        self.put(result);
        self
    }

    /// Adds a section, in the place of one with the same key.
    pub fn put(&mut self, result: impl Into<JobResult>) {
        let result = result.into();
        match self.0.iter_mut().find(|one| one.key() == result.key()) {
            Some(one) => *one = result,
            None => self.0.push(result),
        }
    }

    /// Adds sections, each in the place of one with the same key.
    pub fn extend(&mut self, others: Self) {
        others.0.into_iter().for_each(|one| self.put(one));
    }

    /// The sections, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &JobResult> {
        self.0.iter()
    }

    /// The sections that a job itself fills; those of the catalogue, of its hooks, of agents and of resources are
    /// beside it.
    pub fn of_job(&self) -> impl Iterator<Item = &JobResult> {
        self.0.iter().filter(|one| {
            !matches!(
                one,
                JobResult::Catalogue(_)
                    | JobResult::Hooks(_)
                    | JobResult::Resources(_)
                    | JobResult::Fleet(_)
            )
        })
    }

    /// The load line of a search, to add to.
    pub fn seek_mut(&mut self) -> Option<&mut SeekResult> {
        self.0.iter_mut().find_map(|one| match one {
            JobResult::Seek(found) => Some(&mut **found),
            _ => None,
        })
    }

    /// True if the run searched for a load line, by whatever method.
    #[must_use]
    pub fn is_search(&self) -> bool {
        self.seek().is_some() || self.rival().is_some()
    }

    /// The sections that this version does not know.
    pub fn unknown(&self) -> impl Iterator<Item = &UnknownSection> {
        self.0.iter().filter_map(|one| match one {
            JobResult::Unknown(section) => Some(section),
            _ => None,
        })
    }
}

impl Serialize for JobResults {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|one| map.serialize_entry(one.key(), one))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for JobResults {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // By way of values: a map with numbers for keys cannot be read out of a flattened record.
        let sections = Map::<String, Value>::deserialize(deserializer)?;
        let read = |(key, value)| JobResult::read(key, value).map_err(D::Error::custom);
        sections.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }
}

/// Reads one section; the error names the field.
fn read_section<T: DeserializeOwned>(key: &str, value: Value) -> Result<T, String> {
    read_value(&value).map_err(|(field, problem)| match field.as_str() {
        "." => format!("{key}: {problem}"),
        field => format!("{key}.{field}: {problem}"),
    })
}

#[cfg(test)]
mod tests;

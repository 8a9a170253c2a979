//! The parameters of `/document/v1/` that all operations share.

use plimsoll_documents::field_set::FieldSet;
use plimsoll_documents::render::Tensors;
use plimsoll_documents::schema::Schemas;
use plimsoll_serving::parameters::{Parameters, duration_us, is_true};
use std::time::Duration;

/// Longest time that an operation may take when the request does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(180);

/// Parameters of Vespa's API that must have a value when they are given.
const KNOWN: [&str; 24] = [
    "bucketSpace",
    "cluster",
    "concurrency",
    "condition",
    "continuation",
    "create",
    "destinationCluster",
    "dryRun",
    "fieldSet",
    "format.tensors",
    "fromTimestamp",
    "includeRemoves",
    "route",
    "selection",
    "sliceId",
    "slices",
    "stream",
    "timeChunk",
    "timeout",
    "toTimestamp",
    "trace",
    "tracelevel",
    "wantedDocumentCount",
    "ignoreUndefinedFields",
];

/// Parameters of a request, checked as far as all operations check them.
pub(super) struct Options<'a> {
    parameters: Parameters,
    path: &'a str,
}

impl<'a> Options<'a> {
    pub(super) fn read(path: &'a str, query: &str) -> Result<Self, String> {
        let parameters = Parameters::from_query(query).map_err(|error| error.to_string())?;
        // Of several with the same name the last one counts, here too.
        if let Some(name) = KNOWN.iter().find(|name| parameters.get(name) == Some("")) {
            return Err(format!("Expected non-empty value for request property '{name}'"));
        }
        Ok(Self { parameters, path })
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.get(name)
    }

    /// Any word but `true`, in any case, means no.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(is_true)
    }

    pub(super) fn disallow(&self, names: &[&str]) -> Result<(), String> {
        match names.iter().find(|name| self.get(name).is_some()) {
            None => Ok(()),
            Some(name) => Err(format!("May not specify '{name}' at '{}'", self.path)),
        }
    }

    pub(super) fn require(&self, name: &str) -> Result<&str, String> {
        self.get(name).ok_or_else(|| format!("Must specify '{name}' at '{}'", self.path))
    }

    /// A whole number that is not negative.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let number = text
            .parse()
            .map_err(|_| format!("Failed parsing '{text}': For input string: \"{text}\""))?;
        Ok(Some(number))
    }

    pub(super) fn time(&self, name: &str) -> Result<Option<Duration>, String> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let us = duration_us(text).ok_or_else(|| {
            format!("Failed parsing '{text}': expected a time such as 500ms or 2s")
        })?;
        Ok(Some(Duration::from_micros(us)))
    }

    /// Fields that are shown, and how tensors are.
    pub(super) fn shown(&self, schemas: &Schemas) -> Result<(FieldSet, Tensors), String> {
        let fields = match self.get("fieldSet") {
            Some(text) => FieldSet::parse(text, schemas)?,
            None => FieldSet::Every,
        };
        let tensors = self.get("format.tensors").map(Tensors::parse).transpose()?;
        Ok((fields, tensors.unwrap_or_default()))
    }

    pub(super) fn timeout(&self) -> Result<Duration, String> {
        Ok(self.time("timeout")?.unwrap_or(DEFAULT_TIMEOUT))
    }
}

//! Settings of a feed.

use crate::scenario::{Scenario, TlsScenario, headers_from, path_from};
use crate::schedule::{LoadModel, Slice};
use crate::units::Span;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Settings of a feed: the form that flags become and that TOML files hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeedScenario {
    /// `http://` or `https://` addresses; connections are dealt out to them in turn.
    pub targets: Vec<String>,
    /// Files of operations, one after the other; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// Headers of all requests, `Name: value`.
    pub headers: Vec<String>,
    /// Version of HTTP: `auto`, `1.1` or `2`.
    pub http: String,
    /// Connections, all threads together.
    pub connections: Option<u32>,
    /// Operations in flight, all threads together; without it, found by measuring.
    pub inflight: Option<u32>,
    /// Intended starts; without it, as fast as the target takes the operations.
    pub load: Option<LoadModel>,
    /// Ends the feed after this time, with whatever was fed.
    pub duration: Option<Span>,
    /// Longest time that an operation may take, with all its repetitions.
    pub timeout: Option<Span>,
    /// Ends the feed when nothing was accepted for this long.
    pub deadline: Option<Span>,
    /// Number of times that an operation is sent again after failures other than 429.
    pub retries: u32,
    /// Statuses beside 2xx that count as accepted: 404, 412.
    pub accept: Vec<u16>,
    /// Packing of bodies: `auto`, `gzip` or `none`.
    pub compression: String,
    /// Vespa's route.
    pub route: Option<String>,
    /// Operations to pass over at the beginning.
    pub skip: u64,
    /// The target answers without looking at what it gets.
    pub dry_run: bool,
    /// File of what was not accepted.
    pub failed: Option<PathBuf>,
    /// Threads that send.
    pub threads: u32,
    /// The part of a larger feed that is carried out here. All other settings, `threads` apart, are those of the larger one.
    #[serde(skip_serializing_if = "Slice::is_whole")]
    pub slice: Slice,
    /// Seed of pauses and intended starts.
    pub seed: u64,
    /// TLS.
    pub tls: TlsScenario,
}

impl Default for FeedScenario {
    fn default() -> Self {
        Self {
            targets: Vec::new(),
            files: Vec::new(),
            headers: Vec::new(),
            http: "auto".to_owned(),
            connections: None,
            inflight: None,
            load: None,
            duration: None,
            timeout: None,
            deadline: None,
            retries: 10,
            accept: Vec::new(),
            compression: "auto".to_owned(),
            route: None,
            skip: 0,
            dry_run: false,
            failed: None,
            threads: 1,
            slice: Slice::WHOLE,
            seed: 1,
            tls: TlsScenario::default(),
        }
    }
}

impl FeedScenario {
    /// The scenario of a file in this folder: its relative paths begin there.
    #[must_use]
    pub fn with_paths_from(mut self, folder: &Path) -> FeedScenario {
        let paths = self.files.iter_mut().chain(&mut self.failed).chain(self.tls.paths());
        paths.for_each(|path| *path = path_from(folder, path));
        headers_from(folder, &mut self.headers);
        self
    }

    /// The scenario as it may be shown: values of secret headers and secret parts of addresses left out.
    #[must_use]
    pub fn without_secrets(&self) -> FeedScenario {
        let own = Scenario {
            targets: self.targets.clone(),
            headers: self.headers.clone(),
            ..Scenario::default()
        }
        .without_secrets();
        FeedScenario { targets: own.targets, headers: own.headers, ..self.clone() }
    }
}

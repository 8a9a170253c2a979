//! Settings of a run: the form that flags become, that TOML files hold, and that records keep.

use crate::admission::AdmissionModel;
use crate::assertion::Assertion;
use crate::schedule::{LoadModel, Slice, Think};
use crate::secrets::{is_secret_header, without_address_secrets};
use crate::slo::ClassSlo;
use crate::units::{Share, Span};
use crate::verdict::{ConnectionLimit, MAX_FAILED};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

mod paths;
pub use paths::{headers_from, path_from};

/// A run over HTTP, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// Name of the job in the record.
    pub job: String,
    /// `http://` or `https://` addresses; connections are dealt out to them in turn.
    pub targets: Vec<String>,
    /// File of requests: the query file format, or NDJSON. Without it, the targets' own paths are asked.
    pub queries: Option<PathBuf>,
    /// Records of the query file are URLs followed by bodies.
    pub post: bool,
    /// Order of the requests: `file`, `shuffle` or `random`; of users also `block` and `interleaved`.
    pub order: String,
    /// Number of times that each user asks each request of the source.
    pub repeat: u32,
    /// Rows whose values requests are filled with.
    pub rows: Option<RowsScenario>,
    /// Method of requests whose source names none; without it POST where there are bodies, else GET.
    pub method: Option<String>,
    /// Body of requests whose source has none.
    pub body: Option<String>,
    /// File with the bytes of that body, instead of its text.
    pub body_file: Option<PathBuf>,
    /// Headers of all requests, `Name: value`, where `${NAME}` is a variable of the environment, or `@FILE` with a header on
    /// each line.
    pub headers: Vec<String>,
    /// Classes of requests, `NAME=REGEX`.
    pub classes: Vec<String>,
    /// Checks that make a reply a success.
    pub checks: Vec<String>,
    /// The way hits are counted: `auto`, `off`, or a JSON pointer.
    pub hits: String,
    /// Header of replies with the server's own time, as `--server-time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_time: Option<String>,
    /// Share of requests whose trace is sampled, 0 to 1; every request then has the header `traceparent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<f64>,
    /// Address of a trace, with `{trace_id}` in it, for links to those of the slowest requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_url: Option<String>,
    /// The way load is offered.
    pub load: LoadModel,
    /// Length of the measured stretch; without it a profile's own, as long as `requests` take, or 10 s.
    pub duration: Option<Span>,
    /// Warm-up time before it; requests are sent but not counted.
    pub warmup: Span,
    /// Requests of the whole run, if limited.
    pub requests: Option<u64>,
    /// Requests of each client that are not measured.
    pub ignore_first: u32,
    /// Connections; by default one a client, or 64, or one a slot when there are more slots.
    pub connections: Option<u32>,
    /// Worker threads.
    pub threads: u32,
    /// The part of a larger run that is carried out here. All other settings, `threads` apart, are those of the larger run.
    #[serde(skip_serializing_if = "Slice::is_whole")]
    pub slice: Slice,
    /// Longest time from sending a request to its last byte.
    pub timeout: Span,
    /// Longest time to open a connection, TLS included.
    pub connect_timeout: Span,
    /// Connections carry more than one request.
    pub keepalive: bool,
    /// HTTP/2 instead of HTTP/1.1: many requests at a time on each connection.
    pub http2: bool,
    /// Admission of requests: waiting and rejection.
    pub admission: AdmissionModel,
    /// Time before an intended start in which a thread polls instead of sleeping.
    pub spin: Span,
    /// True if replies are gathered in batches at full speed.
    pub batching: bool,
    /// Seed of every random choice.
    pub seed: u64,
    /// Limits that the run must hold.
    pub slo: Vec<ClassSlo>,
    /// Assertions on the record; the run fails if one does not hold.
    pub assertions: Vec<Assertion>,
    /// Share of the requests that may fail before the result is no longer the target's.
    pub max_failed: Share,
    /// TLS.
    pub tls: TlsScenario,
}

/// Source and order of rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowsScenario {
    /// CSV with a line of names, or NDJSON of objects.
    pub file: PathBuf,
    /// Row that comes next.
    #[serde(default)]
    pub order: RowOrder,
    /// Unit that gets a row of its own.
    #[serde(default)]
    pub per: RowsPer,
}

/// Row that comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowOrder {
    /// Each once, in the order of the file; when they are used up the run ends.
    Queue,
    /// In the order of the file, from its start again after its end.
    #[default]
    Circular,
    /// Each once, in a seeded order; when they are used up the run ends.
    Shuffle,
    /// Drawn with replacement.
    Random,
}

/// Unit that gets a row of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowsPer {
    /// Every request.
    #[default]
    Request,
    /// Every user, for all of its requests.
    User,
}

/// TLS as a scenario names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsScenario {
    /// PEM file of authorities to trust; without it, the system's.
    pub ca_file: Option<PathBuf>,
    /// PEM file of the client's certificate chain.
    pub certificate_file: Option<PathBuf>,
    /// PEM file of the client's private key.
    pub key_file: Option<PathBuf>,
    /// Name to ask for and to check instead of the target's host.
    pub server_name: Option<String>,
    /// Trust any certificate for any name.
    pub insecure: bool,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            job: "load".to_owned(),
            targets: Vec::new(),
            queries: None,
            post: false,
            order: "file".to_owned(),
            repeat: 1,
            rows: None,
            method: None,
            body: None,
            body_file: None,
            headers: Vec::new(),
            classes: Vec::new(),
            checks: Vec::new(),
            hits: "auto".to_owned(),
            server_time: None,
            traceparent: None,
            trace_url: None,
            load: LoadModel::Closed { clients: 10, think: Think::None, cycle_ns: 0 },
            duration: None,
            warmup: Span::default(),
            requests: None,
            ignore_first: 0,
            connections: None,
            threads: 1,
            slice: Slice::WHOLE,
            timeout: Span::seconds(30),
            connect_timeout: Span::seconds(5),
            keepalive: true,
            http2: false,
            admission: AdmissionModel::Direct,
            spin: Span::default(),
            batching: true,
            seed: 1,
            slo: Vec::new(),
            assertions: Vec::new(),
            max_failed: Share(MAX_FAILED),
            tls: TlsScenario::default(),
        }
    }
}

impl Scenario {
    /// Replacement of a secret header's value in records.
    pub const LEFT_OUT: &str = "(left out)";
    /// Connections that users begin with when none were asked for; no more than there can be users.
    pub const USER_CONNECTIONS: u32 = 1000;
    /// Longest run of users, or of a number of requests, without a duration.
    pub const LONGEST: Span = Span::seconds(40 * 24 * 3600);
    /// Connections when none were asked for: one a client, or this many.
    pub const CONNECTIONS: u32 = 64;
    /// Most connections that open, burst, profile and user load grows to by itself.
    pub const CONNECTIONS_GROWN: u32 = 8192;
    /// Requests at a time that a connection of HTTP/2 is given, unless the connections were named.
    pub const STREAMS: u32 = 32;

    /// Slice of each thread: the threads of all parts of a run together are those of one process with as many.
    pub fn shards(&self) -> impl Iterator<Item = Slice> + use<> {
        let (slice, threads) = (self.slice, self.threads);
        (0..threads).map(move |thread| slice.cut(thread, threads))
    }

    /// Threads of all parts together.
    #[must_use]
    pub const fn threads_in_all(&self) -> u32 {
        self.threads.saturating_mul(self.slice.of)
    }

    /// Connections of this part of the run at its beginning.
    #[must_use]
    pub fn own_connections(&self) -> u32 {
        self.slice.share(self.connection_count().into()) as u32
    }

    /// Clients of this part of the run, in a closed model.
    #[must_use]
    pub fn own_clients(&self) -> Option<u32> {
        self.load.clients().map(|clients| self.slice.share(clients.into()) as u32)
    }

    /// Requests of this part of the run, if they are limited.
    #[must_use]
    pub fn own_requests(&self) -> Option<u64> {
        self.requests.map(|requests| self.slice.share(requests))
    }

    /// Length of the measured stretch: what was asked for, a profile's own, [`Self::LONGEST`] where a number of requests was
    /// asked for, or 10 s. A profile ends with its last step even when more was asked for, and its first part is the warm-up.
    /// Users end when the last one has left: this is the longest time that it can take, unless a duration was asked for.
    #[must_use]
    pub fn length(&self) -> Span {
        if let Some(most) = self.load.most_users() {
            // Where there are fewer connections than users, they may have to wait for each other's timeouts.
            let in_turn = most.div_ceil(u64::from(self.connection_count())).max(1);
            let request_ns = self.timeout.ns.saturating_add(self.connect_timeout.ns);
            let request_ns = request_ns.saturating_mul(in_turn);
            let longest_ns = self.load.longest_run_ns(request_ns).unwrap_or(u64::MAX);
            return self.duration.unwrap_or(Span { ns: longest_ns.min(Self::LONGEST.ns) });
        }
        // Behind its last step a profile offers nothing: seconds there would be measured as seconds without load.
        let own_ns = self.load.own_duration_ns().map(|ns| ns.saturating_sub(self.warmup.ns));
        match (self.duration, own_ns) {
            (Some(asked), Some(own_ns)) => Span { ns: asked.ns.min(own_ns) },
            (Some(asked), None) => asked,
            (None, Some(own_ns)) => Span { ns: own_ns },
            // A number of requests is sent however long that takes.
            (None, None) if self.requests.is_some() => Self::LONGEST,
            (None, None) => Span::seconds(10),
        }
    }

    /// Time that the measured stretch will be as far as can be known: of users, until the last one may have come.
    #[must_use]
    pub fn expected_length(&self) -> Span {
        match (self.load.most_users(), self.duration, self.load.own_duration_ns()) {
            (Some(_), None, Some(own_ns)) => Span { ns: own_ns },
            _ => self.length(),
        }
    }

    /// Method of requests whose source names none.
    #[must_use]
    pub fn default_method(&self) -> &str {
        let has_bodies = self.post || self.has_body();
        self.method.as_deref().unwrap_or(if has_bodies { "POST" } else { "GET" })
    }

    /// Returns true if the scenario gives its requests a body.
    #[must_use]
    pub fn has_body(&self) -> bool {
        self.body.is_some() || self.body_file.is_some()
    }

    /// Number of connections that the whole run uses: what was asked for, else one a client or [`Self::CONNECTIONS`], and
    /// with slots enough for all of them, since each request in flight has a connection of its own; in HTTP/2 one
    /// for every [`Self::STREAMS`] of them. Threads share none, so that there is one for each unless clients bring theirs.
    #[must_use]
    pub fn connection_count(&self) -> u32 {
        let most_users = self.load.most_users();
        let users = most_users.map(|most| most.min(Self::USER_CONNECTIONS.into()) as u32);
        let own = match (self.load.clients().or(users), self.admission) {
            (Some(users), AdmissionModel::Managed { slots, .. }) if most_users.is_some() => {
                users.min(slots)
            }
            (Some(clients), _) => clients,
            (None, AdmissionModel::Managed { slots, .. }) => slots.max(Self::CONNECTIONS),
            // Whoever arrives together is in flight together.
            (None, AdmissionModel::Direct) => match self.load {
                LoadModel::Burst { size, .. } => {
                    size.clamp(Self::CONNECTIONS, Self::CONNECTIONS_GROWN)
                }
                _ => Self::CONNECTIONS,
            },
        };
        let own = if self.http2 { own.div_ceil(Self::STREAMS) } else { own };
        let least = if self.load.clients() == Some(own) { 1 } else { self.threads_in_all() };
        self.connections.unwrap_or_else(|| own.max(least)).max(1)
    }

    /// Returns true if a connection carries several requests at a time: HTTP/2, and calls of VoltDB.
    fn shares_connections(&self) -> bool {
        let one_by_one =
            |target: &String| target.starts_with("http") || target.starts_with("postgres");
        self.http2 || !self.targets.iter().all(one_by_one)
    }

    /// Most connections of the whole run, on a machine that lets this process open `openable` of them, and what bounds them:
    /// of a run in parts, each part has its share of both.
    ///
    /// Requests that come at their own time need as many connections as there are requests in flight (Little's law),
    /// which no one knows before: unless a number was asked for, connections grow with need.
    #[must_use]
    pub fn connections_at_most(&self, openable: u32) -> (u32, ConnectionLimit) {
        let first = self.connection_count();
        if let Some(asked) = self.connections {
            let is_limit = match (self.load.clients(), self.admission) {
                (Some(clients), AdmissionModel::Direct) => asked < clients,
                (None, AdmissionModel::Direct) => true,
                // Slots bound the requests in flight, and connections only where they are fewer.
                (_, AdmissionModel::Managed { slots, .. }) => {
                    asked < slots && !self.shares_connections()
                }
            };
            let limit =
                if is_limit { ConnectionLimit::Asked(asked) } else { ConnectionLimit::None };
            return (asked, limit);
        }
        if self.load.clients().is_some() || self.admission != AdmissionModel::Direct {
            return (first, ConnectionLimit::None);
        }
        let wanted = self.load.most_users().map_or(u64::MAX, |most| {
            if self.http2 { most.div_ceil(Self::STREAMS.into()) } else { most }
        });
        if wanted <= u64::from(first) {
            return (first, ConnectionLimit::None);
        }
        // A database takes a fixed number of connections, and a login that is one too many ends the run.
        if self.targets.iter().any(|target| !target.starts_with("http")) {
            return (first, ConnectionLimit::Own(first));
        }
        let grown = Self::CONNECTIONS_GROWN;
        let grown = if self.http2 { grown.div_ceil(Self::STREAMS) } else { grown };
        let most = wanted.min(grown.into()) as u32;
        match (self.slice.share(most.into()) <= openable.into(), wanted <= u64::from(most)) {
            (true, true) => (most, ConnectionLimit::None),
            (true, false) => (most, ConnectionLimit::Own(most)),
            (false, _) => {
                // The limit is that of this machine, and its share of the run's connections.
                let most = openable.max(self.threads).max(1).saturating_mul(self.slice.of);
                (most, ConnectionLimit::Machine(most))
            }
        }
    }

    /// The scenario as a record may keep it: values of secret headers, passwords and secret parameters in
    /// addresses and forms left out.
    #[must_use]
    pub fn without_secrets(&self) -> Scenario {
        let mut shown = self.clone();
        // What a file holds is not here.
        for header in shown.headers.iter_mut().filter(|header| !header.starts_with('@')) {
            let (name, _) = header.split_once(':').unwrap_or((header, ""));
            if is_secret_header(name) {
                *header = format!("{name}: {}", Self::LEFT_OUT);
            }
        }
        let texts = shown.headers.iter_mut().chain(&mut shown.targets).chain(&mut shown.body);
        let texts = texts.chain(&mut shown.trace_url);
        for text in texts {
            *text = without_address_secrets(text);
        }
        shown
    }
}

#[cfg(test)]
mod tests;

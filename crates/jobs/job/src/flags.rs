//! Flags with the same names, help and defaults in all jobs.

use crate::outlet_flags::OutletFlags;
use crate::output::Output;
use crate::usage::usage;
use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_core::assertion::Assertion;
use plimsoll_core::scenario::{Scenario, TlsScenario};
use plimsoll_core::schedule::{Pause, Slice};
use plimsoll_core::slo::ClassSlo;
use plimsoll_core::units::Share;
use plimsoll_core::units::Span;
use plimsoll_report::naming::{Label, RunName};
use plimsoll_resources::watch::Watch;
use std::path::PathBuf;

/// Distribution of the gaps between requests that arrive at their own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ArrivalsFlag {
    /// Equal gaps.
    Uniform,
    /// Independent exponential gaps.
    Poisson,
}

/// The flags of a run that is measured once.
#[derive(Args, Debug)]
pub struct RunFlags {
    /// Length of the measured part [default: 10s]
    ///
    /// Such as 500ms or 5m; a bare number is seconds. With a rate profile the default is its length; with --requests the run
    /// ends when they have ended, with --users when the last user has left.
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    pub duration: Option<Span>,
    /// Warm-up time; requests are sent but not counted
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "Run")]
    pub warmup: Span,
    /// Number of requests after which the run ends
    ///
    /// Warm-up is included. With --duration, the run ends at the earlier of the two.
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub requests: Option<u64>,
    /// Number of connections [default: as needed]
    ///
    /// By default, each client has a connection. In other load models, plimsoll starts with 64 connections and, over HTTP,
    /// opens more as needed.
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub connections: Option<u32>,
    /// Timeouts.
    #[command(flatten)]
    pub wait: WaitFlags,
    /// Threads of the generator.
    #[command(flatten)]
    pub generator: GeneratorFlags,
    /// Part of a larger run.
    #[command(flatten)]
    pub part: PartFlag,
    /// Seed of all random choices
    ///
    /// The same seed sends the same requests at the same intended starts.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Run")]
    pub seed: u64,
    /// Handle each reply as it comes, not in batches
    ///
    /// Without this flag, plimsoll collects replies in batches of up to 50 us when clients send at full speed.
    #[arg(long, help_heading = "Run")]
    pub no_batching: bool,
    /// Limit on the result; exit code 2 if missed: p95=500ms
    ///
    /// A limit is p95=500ms, mean=50ms, max=2s, errors=0.1% or rate=1000. A limit on one class is written
    /// 'p95{class=fuzzy}=50ms'. May be repeated.
    #[arg(long, value_name = "LIMIT", help_heading = "Limits")]
    pub slo: Vec<ClassSlo>,
    /// Assertion on the result; exit code 2 if it fails
    ///
    /// Such as 'global p95 < 500ms', 'each failed.percent <= 1%' or 'class search rate between 90/s and 110/s'. May be
    /// repeated.
    #[arg(long = "assert", value_name = "ASSERTION", help_heading = "Limits")]
    pub assertions: Vec<Assertion>,
    /// Largest share of failed requests; exit code 4 above it
    ///
    /// Above it, the result does not describe the target, and the verdict is target-failed.
    #[arg(long, value_name = "SHARE", default_value = "50%", help_heading = "Limits")]
    pub max_failed: Share,
    /// Destinations of the results.
    #[command(flatten)]
    pub output: OutputFlags,
}

/// Timeouts of requests and connections.
#[derive(Args, Debug)]
pub struct WaitFlags {
    /// Longest time from sending a request to its last byte
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Run")]
    pub timeout: Span,
    /// Longest time to open a connection, TLS included
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Run")]
    pub connect_timeout: Span,
}

/// Threads of the generator, and how they wait.
#[derive(Args, Debug)]
pub struct GeneratorFlags {
    /// Number of generator threads
    ///
    /// Each has its share of the connections, the clients and the schedule.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Run")]
    pub threads: u32,
    /// Time to poll before each intended start
    ///
    /// Polling instead of sleeping causes less lag and more CPU time; 60us is enough.
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "Run")]
    pub spin: Span,
}

/// The part of a larger run that this process carries out.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct PartFlag {
    /// Part of a larger run, I/N from 0/N: all other flags, --threads apart, are those of the larger run
    #[arg(long, hide = true, value_name = "I/N")]
    part: Option<Slice>,
}

impl PartFlag {
    /// Returns the slice; the whole unless the flag is given.
    #[must_use]
    pub fn slice(self) -> Slice {
        self.part.unwrap_or(Slice::WHOLE)
    }
}

/// Requests of each virtual user.
#[derive(Args, Debug, Default)]
pub struct UserFlags {
    /// Requests of each user [default: all of the source]
    ///
    /// A user sends them one after the other. By default, a user sends all requests of the source, --passes times.
    #[arg(long, value_name = "N", help_heading = "Users")]
    pub user_requests: Option<u32>,
    /// Times that each user sends each request [default: 1]
    #[arg(long, alias = "repeat", value_name = "N", help_heading = "Users")]
    pub passes: Option<u32>,
    /// Pace and think time.
    #[command(flatten)]
    pub pauses: PauseFlags,
}

/// Pauses between the requests of a client or a user.
#[derive(Args, Debug, Default)]
pub struct PauseFlags {
    /// Think time between a reply and the next request
    ///
    /// A constant (2s) or a random time: 'uniform 1s 3s', 'exponential 2s' or 'normal 2s 500ms'. Random times follow from the
    /// seed.
    #[arg(long, value_name = "TIME", help_heading = "Users")]
    pub think: Option<Pause>,
    /// Time between the intended starts of a user's requests
    ///
    /// A user whose reply is late sends at once and catches up.
    #[arg(long, value_name = "TIME", help_heading = "Users")]
    pub pace: Option<Span>,
}

impl UserFlags {
    /// The first flag of users that was given, apart from `--think`, which clients have too.
    #[must_use]
    pub fn first(&self) -> Option<&'static str> {
        let given = [
            ("--user-requests", self.user_requests.is_some()),
            ("--passes", self.passes.is_some()),
            ("--pace", self.pauses.pace.is_some()),
        ];
        given.iter().find(|(_, is)| *is).map(|(flag, _)| *flag)
    }

    /// The requests of each user; 0 is all of the source.
    ///
    /// # Errors
    /// When no request is left.
    pub fn requests(&self) -> Result<u32> {
        match self.user_requests {
            Some(0) => Err(usage("--user-requests must be at least 1")),
            requests => Ok(requests.unwrap_or(0)),
        }
    }
}

/// Forms of a result, and its place.
#[derive(Args, Debug)]
pub struct ResultFlags {
    /// Write the run record as JSON to FILE
    ///
    /// - is stdout; the record is then printed instead of the text.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write the result as JUnit XML to FILE
    ///
    /// For a build server.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub junit: Option<PathBuf>,
    /// Write the result as CSV to FILE
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub csv: Option<PathBuf>,
    /// Write the result as a web page to FILE
    ///
    /// One file that needs nothing else: plots, tables, failures, and the command of the run.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Name of the run, in its record and its folder
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    pub name: Option<RunName>,
    /// Label of the run, such as commit=3f2a9c1
    ///
    /// It is kept in the record. May be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", help_heading = "Output")]
    pub labels: Vec<Label>,
    /// Folder of run records
    #[arg(long, value_name = "DIR", default_value = "runs", help_heading = "Output")]
    pub runs: PathBuf,
    /// Keep no run record
    #[arg(long, help_heading = "Output")]
    pub no_record: bool,
    /// No progress on stderr
    #[arg(long, help_heading = "Output")]
    pub quiet: bool,
    /// Print all details of the result
    ///
    /// Also a line on stderr for each finished part of a search. 'plimsoll report --verbose' prints the details later.
    #[arg(long, help_heading = "Output")]
    pub verbose: bool,
}

impl ResultFlags {
    /// Returns the flags as a command needs them that watches no process and sends no seconds.
    #[must_use]
    pub fn output(&self) -> Output {
        Output {
            runs: (!self.no_record).then(|| self.runs.clone()),
            json: self.json.clone(),
            junit: self.junit.clone(),
            csv: self.csv.clone(),
            html: self.html.clone(),
            name: self.name.clone(),
            labels: self.labels.clone(),
            quiet: self.quiet,
            verbose: self.verbose,
            ..Output::default()
        }
    }
}

/// Processes beside the generator.
#[derive(Args, Debug)]
pub struct WatchFlags {
    /// Process or control group to watch [default: the target]
    ///
    /// PID, NAME of a program (or its path), or CGROUP (its path, or a unit such as nginx.service); LABEL=NAME names it in the
    /// record. plimsoll records CPU, memory, disk and network of it, of itself and of the machine each second. By default, it
    /// watches the target if that runs on this machine. none watches nothing. May be repeated.
    #[arg(long, value_name = "PID|NAME|CGROUP", help_heading = "Output")]
    pub watch: Vec<Watch>,
}

/// Destinations of the results.
#[derive(Args, Debug)]
pub struct OutputFlags {
    /// The result.
    #[command(flatten)]
    pub results: ResultFlags,
    /// Processes to watch.
    #[command(flatten)]
    pub watching: WatchFlags,
    /// Destinations of the seconds of the run.
    #[command(flatten)]
    pub outlets: OutletFlags,
}

impl OutputFlags {
    /// The flags as the run needs them.
    #[must_use]
    pub fn output(&self) -> Output {
        Output {
            watch: self.watching.watch.clone(),
            outlets: self.outlets.clone(),
            ..self.results.output()
        }
    }
}

/// TLS.
#[derive(Args, Debug, Default)]
pub struct TlsFlags {
    /// PEM file of authorities to trust, instead of the system's
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    pub cacert: Option<PathBuf>,
    /// PEM file of the client's certificate; needs --key
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    pub cert: Option<PathBuf>,
    /// PEM file of the client's private key; needs --cert
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    pub key: Option<PathBuf>,
    /// Host name to request and to check, instead of the URL's
    #[arg(long, value_name = "NAME", help_heading = "TLS")]
    pub sni: Option<String>,
    /// Accept any certificate, without verification
    #[arg(long, help_heading = "TLS")]
    pub insecure: bool,
}

impl RunFlags {
    /// Puts the flags into a scenario.
    pub fn fill(&self, scenario: &mut Scenario) {
        scenario.duration = self.duration;
        scenario.warmup = self.warmup;
        scenario.requests = self.requests;
        scenario.connections = self.connections;
        scenario.timeout = self.wait.timeout;
        scenario.connect_timeout = self.wait.connect_timeout;
        scenario.threads = self.generator.threads;
        scenario.slice = self.part.slice();
        scenario.seed = self.seed;
        scenario.spin = self.generator.spin;
        scenario.batching = !self.no_batching;
        scenario.slo.clone_from(&self.slo);
        scenario.assertions.clone_from(&self.assertions);
        scenario.max_failed = self.max_failed;
    }
}

impl TlsFlags {
    /// The flags as a scenario holds them.
    #[must_use]
    pub fn scenario(&self) -> TlsScenario {
        TlsScenario {
            ca_file: self.cacert.clone(),
            certificate_file: self.cert.clone(),
            key_file: self.key.clone(),
            server_name: self.sni.clone(),
            insecure: self.insecure,
        }
    }
}

/// A status of `--accept`.
pub fn status(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| {
        "expected 404 (no such document or type) or 412 (condition not met)".to_owned()
    })
}

//! Flags with the same words everywhere.

use crate::output::Output;
use clap::{Args, ValueEnum};
use plimsoll_core::assertion::Assertion;
use plimsoll_core::scenario::{Scenario, TlsScenario};
use plimsoll_core::slo::ClassSlo;
use plimsoll_core::units::Share;
use plimsoll_core::units::Span;
use plimsoll_report::naming::{Label, RunName};
use std::path::PathBuf;

/// How requests of an open model follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ArrivalsFlag {
    /// Equal gaps.
    Uniform,
    /// Independent exponential gaps.
    Poisson,
}

/// What every run knows.
#[derive(Args, Debug)]
pub struct RunFlags {
    /// Measure for this long, such as 500ms or 5m; by default 10s, as long as a profile is, or until --requests have ended.
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    pub duration: Option<Span>,
    /// Load of the same kind before the measured stretch.
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "Run")]
    pub warmup: Span,
    /// End after this many requests, warm-up included; with --duration, when that is over at the latest.
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub requests: Option<u64>,
    /// Connections to keep; by default one a client, or 64 in open models.
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub connections: Option<u32>,
    /// Longest time from sending a request to its last byte.
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Run")]
    pub timeout: Span,
    /// Longest time for a connection, TLS included.
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Run")]
    pub connect_timeout: Span,
    /// Threads; each owns a share of connections and schedule.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Run")]
    pub threads: u32,
    /// Seed of every random choice; the same seed asks the same requests at the same times.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Run")]
    pub seed: u64,
    /// Poll this long before each intended start instead of sleeping: less lag, more CPU (60us is enough).
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "Run")]
    pub spin: Span,
    /// Look at every reply as it comes instead of gathering replies in batches at full speed.
    #[arg(long, help_heading = "Run")]
    pub no_batching: bool,
    /// A limit the run must hold, or exit code 2: p95=500ms, mean=50ms, max=2s, errors=0.1%, rate=1000; of one class
    /// 'p95{class=fuzzy}=50ms'.
    #[arg(long, value_name = "LIMIT", help_heading = "Run")]
    pub slo: Vec<ClassSlo>,
    /// What the record must say, or exit code 2: 'global p95 < 500ms', 'each failed.percent <= 1%', 'class search rate
    /// between 90/s and 110/s'; may be repeated.
    #[arg(long = "assert", value_name = "ASSERTION", help_heading = "Run")]
    pub assertions: Vec<Assertion>,
    /// Share of requests that may fail before the result is not the target's (exit code 4).
    #[arg(long, value_name = "SHARE", default_value = "50%", help_heading = "Limits")]
    pub max_failed: Share,
    /// What the flags about output say.
    #[command(flatten)]
    pub output: OutputFlags,
}

/// Where results go.
#[derive(Args, Debug)]
pub struct OutputFlags {
    /// Write the run record as JSON to FILE; '-' is stdout, instead of the text.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write the result as JUnit XML to FILE, for a build server.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub junit: Option<PathBuf>,
    /// Write the result as CSV to FILE.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub csv: Option<PathBuf>,
    /// Name of the run, kept in its record and in the name of its folder.
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    pub name: Option<RunName>,
    /// Label of the run, such as commit=3f2a9c1, kept in its record; may be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", help_heading = "Output")]
    pub labels: Vec<Label>,
    /// Folder of run records.
    #[arg(long, value_name = "DIR", default_value = "runs", help_heading = "Output")]
    pub runs: PathBuf,
    /// Keep no run record.
    #[arg(long, help_heading = "Output")]
    pub no_record: bool,
    /// No progress on stderr.
    #[arg(long, help_heading = "Output")]
    pub quiet: bool,
}

impl OutputFlags {
    /// The flags as the run needs them.
    #[must_use]
    pub fn output(&self) -> Output {
        Output {
            runs: (!self.no_record).then(|| self.runs.clone()),
            json: self.json.clone(),
            junit: self.junit.clone(),
            csv: self.csv.clone(),
            name: self.name.clone(),
            labels: self.labels.clone(),
            quiet: self.quiet,
        }
    }
}

/// TLS.
#[derive(Args, Debug, Default)]
pub struct TlsFlags {
    /// PEM file of authorities to trust instead of the system's.
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    pub cacert: Option<PathBuf>,
    /// PEM file of the client's certificate; goes with --key.
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    pub cert: Option<PathBuf>,
    /// PEM file of the client's private key; goes with --cert.
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    pub key: Option<PathBuf>,
    /// Host name to ask for and to check instead of the URL's.
    #[arg(long, value_name = "NAME", help_heading = "TLS")]
    pub sni: Option<String>,
    /// Trust any certificate for any name.
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
        scenario.timeout = self.timeout;
        scenario.connect_timeout = self.connect_timeout;
        scenario.threads = self.threads;
        scenario.seed = self.seed;
        scenario.spin = self.spin;
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

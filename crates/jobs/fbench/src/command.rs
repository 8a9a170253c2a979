//! `plimsoll fbench`: vespa-fbench's flags, query files, output files and summary, with correct counting.

mod running;

use crate::source::{SourceOptions, Sources};
use crate::summary::{STARTING, own_block, stopped_lines, summary};
use anyhow::Result;
use clap::Args;
use plimsoll_core::clock::{SECOND_NS, now_ns};
use plimsoll_core::interval::Interval;
use plimsoll_core::scenario::{Scenario, TlsScenario};
use plimsoll_core::schedule::{LoadModel, Think};
use plimsoll_core::units::Span;
use plimsoll_engine::run::RunEnd;
use plimsoll_engine::target::Target;
use plimsoll_job::execute::{code, execute};
use plimsoll_job::flags::{OutputFlags, PartFlag};
use plimsoll_job::headers::filled_line;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::keeping::Finished;
use plimsoll_job::output::{print_out, style};
use plimsoll_job::prepare::{Prepared, check_parts, plan_of, tls_of};
use plimsoll_job::results::write_results;
use plimsoll_job::url::{Url, split_authority};
use plimsoll_job::usage::usage;
use plimsoll_record::JobResults;
use plimsoll_record::fbench::{FbenchOptions, FbenchResult, FbenchSums};
use plimsoll_report::forms::Forms;
use plimsoll_workloads::authority::Authority;
use plimsoll_workloads::http::{Form, Troubles};
use plimsoll_workloads::render::{FbenchForm, FbenchOptions as FormOptions};
use running::Running;
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

const EXAMPLES: &str = "\
Examples:
  Eight clients, each with its own file (query000.txt ...), for a minute:
    plimsoll fbench -n 8 -q query%03d.txt -s 60 127.0.0.1 8080
  POST bodies from one file, divided among 32 clients; replies are kept:
    plimsoll fbench -n 32 -P -z -q bodies.txt -o out%03d.txt -s 30 127.0.0.1 8080
  One client at exactly 1000 requests per second; the first 20 requests are not counted:
    plimsoll fbench -n 1 -c 1 -i 20 -q queries.txt -s 10 127.0.0.1 8080
  TLS with a client certificate:
    plimsoll fbench -T ca.pem -C cert.pem -K key.pem -n 4 -q queries.txt -s 10 example.org 443

The summary is identical to the original's. The block after it is plimsoll's: response times from
the intended start, separate failures, and the ledger. docs/fbench.md lists every difference.
Exit codes: 0 measured, 3 not valid, 4 the target failed, 64 wrong usage.";

/// Send the load of vespa-fbench to one or several hosts
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true, args_override_self = true)]
pub struct FbenchArgs {
    /// Clients, one connection each
    #[arg(short = 'n', value_name = "CLIENTS", default_value_t = 10)]
    clients: u32,
    /// Time between a client's intended starts, ms
    ///
    /// 0: no pause. A negative value: the client pauses as long as the answer took.
    #[arg(short = 'c', value_name = "MS", default_value_t = 0)]
    cycle_ms: i64,
    /// Smallest body of a successful reply, bytes
    #[arg(short = 'l', value_name = "BYTES", default_value_t = 0)]
    limit: u64,
    /// First requests of each client, not counted
    ///
    /// -1: no request is counted.
    #[arg(short = 'i', value_name = "N", default_value_t = 0)]
    ignore: i64,
    /// Run time, seconds; -1: until stopped
    #[arg(short = 's', value_name = "SECONDS", default_value_t = 60)]
    seconds: i64,
    /// Query file or pipe
    ///
    /// %d, %03d or %x in the name is the number of the client. - is stdin.
    #[arg(short = 'q', value_name = "PATTERN", default_value = "query%03d.txt")]
    queries: String,
    /// Output file of each client
    ///
    /// %d, %03d or %x in the name is the number of the client.
    #[arg(short = 'o', value_name = "PATTERN")]
    output: Option<String>,
    /// Times to read a query file again; -1: no limit
    #[arg(short = 'r', value_name = "N", default_value_t = -1)]
    restart: i64,
    /// Limit of a URL line of a query file, bytes
    ///
    /// A line of this many bytes or more is skipped and counted. Values below 1024 count as 1024.
    #[arg(short = 'm', value_name = "BYTES", default_value_t = 131_072)]
    max_line: i64,
    /// Time between two summaries, seconds; 0: none
    ///
    /// plimsoll prints a summary when the seconds left are a multiple of this; with -s -1, when the seconds passed are.
    #[arg(short = 'p', value_name = "SECONDS", default_value_t = 0)]
    print_every: i64,
    /// Open a new connection for each request
    #[arg(short = 'k')]
    no_keepalive: bool,
    /// Use HTTP/2
    ///
    /// With prior knowledge on http://, by ALPN on https://. 32 clients share a connection.
    #[arg(long)]
    http2: bool,
    /// Text to append to each URL
    #[arg(short = 'a', value_name = "TEXT", default_value = "", allow_hyphen_values = true)]
    append: String,
    /// Header of every request, 'Name: value'
    ///
    /// ${VARIABLE} in the value is taken from the environment and not recorded. May be repeated.
    #[arg(short = 'H', value_name = "LINE")]
    header: Vec<String>,
    /// Name for the Host header and for TLS
    ///
    /// It replaces the host of the connection.
    #[arg(short = 'A', value_name = "[user@]HOST[:PORT]")]
    authority: Option<String>,
    /// Send POST requests
    ///
    /// Each URL in the query file is followed by its body.
    #[arg(short = 'P')]
    post: bool,
    /// Decode the bodies in the query file from base64
    #[arg(short = 'd')]
    base64: bool,
    /// Accepted for old scripts; has no effect
    ///
    /// plimsoll always requests benchmark headers.
    #[arg(short = 'x')]
    benchmark_data: bool,
    /// Request coverage headers too
    #[arg(short = 'y')]
    coverage: bool,
    /// Use one query file for all clients, divided equally
    #[arg(short = 'z')]
    single_file: bool,
    /// PEM file of authorities to trust; turns TLS on
    #[arg(short = 'T', value_name = "FILE")]
    ca: Option<PathBuf>,
    /// PEM file of the client's certificate
    #[arg(short = 'C', value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// PEM file of the client's private key
    #[arg(short = 'K', value_name = "FILE")]
    key: Option<PathBuf>,
    /// TLS files from Vespa's own configuration
    ///
    /// VESPA_TLS_CONFIG_FILE names it. If it is not set, connections are in plain text.
    #[arg(short = 'D')]
    vespa_tls: bool,
    /// Hosts and ports, in pairs
    ///
    /// Client i uses pair i modulo their number.
    #[arg(value_name = "HOST PORT", required = true)]
    hosts: Vec<String>,

    /// Longest time from sending a request to its last byte
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Beyond the original")]
    timeout: Span,
    /// Longest time to open a connection, TLS included
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Beyond the original")]
    connect_timeout: Span,
    /// Accept any certificate, without verification
    ///
    /// Turns TLS on.
    #[arg(long, help_heading = "Beyond the original")]
    insecure: bool,
    /// Number of generator threads
    ///
    /// Each has its share of the connections, the clients and the schedule.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Beyond the original")]
    threads: u32,
    /// Time to poll before each intended start
    ///
    /// Polling instead of sleeping causes less lag and more CPU time; 60us is enough.
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "Beyond the original")]
    spin: Span,
    /// Handle each reply as it comes, not in batches
    ///
    /// Without this flag, plimsoll collects replies in batches of up to 50 us when clients send at full speed.
    #[arg(long, help_heading = "Beyond the original")]
    no_batching: bool,
    #[command(flatten)]
    part: PartFlag,
    #[command(flatten)]
    out: OutputFlags,
}

/// Longest run: `-s -1` means "until stopped"; a 64-bit clock in ns counts longer than any machine runs.
const FOR_EVER: Span = Span { ns: u64::MAX / 4 };

impl FbenchArgs {
    fn check(&self) -> Result<()> {
        if self.clients == 0 {
            return Err(usage("-n must be at least 1 client"));
        }
        if self.clients > 100_000 {
            return Err(usage("-n: at most 100000 clients"));
        }
        if self.threads == 0 || self.threads > self.clients {
            return Err(usage("--threads: use a number from 1 to the number of clients"));
        }
        if self.seconds < -1 {
            return Err(usage("-s: use seconds, or -1 to run until stopped"));
        }
        if self.seconds == 0 {
            return Err(usage("-s must be at least 1, or -1 to run until stopped"));
        }
        if self.print_every < 0 {
            return Err(usage("-p: use seconds, or 0 for no summaries during the run"));
        }
        if self.restart < -1 {
            return Err(usage("-r: use a number of times, or -1 for no limit"));
        }
        if self.base64 && !self.post {
            return Err(usage("-d decodes POST bodies; it needs -P"));
        }
        let waits = [("--timeout", self.timeout), ("--connect-timeout", self.connect_timeout)];
        if let Some((flag, _)) = waits.iter().find(|(_, wait)| wait.ns == 0) {
            return Err(usage(format!("{flag}: must be more than 0; every wait has a limit")));
        }
        Ok(())
    }

    fn tls(&self) -> Result<Option<TlsScenario>> {
        if self.ca.is_none() && (self.certificate.is_some() || self.key.is_some()) && !self.insecure
        {
            return Err(usage("-C and -K need a CA certificate; give it with -T"));
        }
        if self.certificate.is_some() != self.key.is_some() {
            return Err(usage("-C and -K go together; give both"));
        }
        let named = self.ca.is_some() || self.certificate.is_some() || self.insecure;
        if !named {
            return if self.vespa_tls { crate::vespa_tls::read() } else { Ok(None) };
        }
        Ok(Some(TlsScenario {
            ca_file: self.ca.clone(),
            certificate_file: self.certificate.clone(),
            key_file: self.key.clone(),
            server_name: None,
            insecure: self.insecure,
        }))
    }

    /// The pairs of host and port.
    fn pairs(&self, tls: bool) -> Result<Vec<Authority>> {
        if let Some(url) = self.hosts.iter().find(|host| host.contains("://")) {
            return Err(usage(format!(
                "'{url}': write host and port without a scheme, such as 127.0.0.1 8080"
            )));
        }
        if !self.hosts.len().is_multiple_of(2) {
            return Err(usage(format!(
                "'{}' has no port; hosts and ports come in pairs, such as 127.0.0.1 8080",
                self.hosts.last().map_or("", String::as_str)
            )));
        }
        self.hosts
            .chunks(2)
            .map(|pair| {
                let port =
                    pair[1].parse().ok().filter(|&port: &u16| port > 0).ok_or_else(|| {
                        usage(format!(
                            "port '{}' of {}: use a number from 1 to 65535",
                            pair[1], pair[0]
                        ))
                    })?;
                Ok(Authority { host: pair[0].clone(), port, tls })
            })
            .collect()
    }

    /// Returns the authority of `-A` for the Host header and TLS.
    fn named_authority(&self, tls: bool) -> Result<Option<Authority>> {
        let Some(text) = &self.authority else { return Ok(None) };
        let host = text.rsplit_once('@').map_or(text.as_str(), |(_, host)| host);
        let (host, port) = split_authority(host, if tls { 443 } else { 80 })
            .ok_or_else(|| usage(format!("-A '{text}': write [user@]host[:port]")))?;
        Ok(Some(Authority { host, port, tls }))
    }

    /// Returns how requests are written, for each pair.
    fn forms(&self, pairs: &[Authority], named: Option<&Authority>) -> Result<Vec<Form>> {
        let headers = self.header.iter().map(|line| filled_line("-H", line));
        let headers = headers.collect::<Result<Vec<String>>>()?;
        let form = |pair| {
            let form = FbenchForm::new(&FormOptions {
                host: named.unwrap_or(pair).host_header(),
                headers: &headers,
                append: &self.append,
                post: self.post,
                coverage: self.coverage,
                close: self.no_keepalive,
            });
            form.map(Form::Fbench).map_err(usage)
        };
        pairs.iter().map(form).collect()
    }

    fn scenario(&self, tls: Option<TlsScenario>, targets: Vec<String>) -> Scenario {
        let think = if self.cycle_ms < 0 { Think::AsResponse } else { Think::None };
        let cycle_ns = self.cycle_ms.max(0) as u64 * 1_000_000;
        Scenario {
            job: "fbench".to_owned(),
            targets,
            queries: Some(PathBuf::from(&self.queries)),
            post: self.post,
            headers: self.header.clone(),
            load: LoadModel::Closed { clients: self.clients, think, cycle_ns },
            duration: Some(u64::try_from(self.seconds).map_or(FOR_EVER, Span::seconds)),
            ignore_first: u32::try_from(self.ignore).unwrap_or(u32::MAX),
            threads: self.threads,
            slice: self.part.slice(),
            timeout: self.timeout,
            connect_timeout: self.connect_timeout,
            keepalive: !self.no_keepalive,
            http2: self.http2,
            spin: self.spin,
            batching: !self.no_batching,
            tls: tls.unwrap_or_default(),
            ..Scenario::default()
        }
    }

    fn options(&self, clients: u32, ran_for_s: i64) -> FbenchOptions {
        FbenchOptions {
            clients,
            ran_for_s,
            cycle_ms: self.cycle_ms,
            lower_limit_bytes: self.limit,
            keepalive: !self.no_keepalive,
        }
    }
}

impl Job for FbenchArgs {
    const NAME: &'static str = "fbench";
    const FORMS: Forms = Forms { sheet: crate::sheet::sheet, ..Forms::LOAD };

    fn run(&self, _program: &Program) -> Result<u8> {
        run(self)
    }
}

/// Runs the command.
///
/// # Errors
/// Wrong usage, or a program failure.
fn run(args: &FbenchArgs) -> Result<u8> {
    args.check()?;
    let tls = args.tls()?;
    let pairs = args.pairs(tls.is_some())?;
    let named = args.named_authority(tls.is_some())?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let targets = pairs.iter().map(|a| format!("{scheme}://{}:{}/", bracketed(&a.host), a.port));
    let mut scenario = args.scenario(tls, targets.collect());
    if let Some(named) = named.as_ref().filter(|named| named.tls) {
        scenario.tls.server_name = Some(named.host.clone());
    }
    check_parts(&scenario)?;
    let clients = scenario.own_clients().unwrap_or(args.clients);
    let forms = args.forms(&pairs, named.as_ref())?;
    let sources = Sources::open(
        &SourceOptions {
            pattern: &args.queries,
            output: args.output.as_deref(),
            clients: args.clients,
            slice: scenario.slice,
            post: args.post,
            base64: args.base64,
            max_line: usize::try_from(args.max_line).unwrap_or(0),
            restart: args.restart,
            shared: args.single_file,
        },
        &forms,
    )?;
    let prepared = prepared(args, &scenario, &pairs, &sources, forms)?;
    let output = args.out.output();
    output.check()?;
    let to_stdout = !output.takes_stdout();
    if to_stdout {
        print_out(STARTING)?;
    }
    let running = Mutex::new(Running {
        options: args.options(clients, args.seconds),
        print_every: args.print_every,
        skipped: sources.skipped,
        exhausted: sources.exhausted.clone(),
        to_stdout,
        dots: 0,
        passed: 0,
        totals: Interval::default(),
    });
    let running = || running.lock().unwrap_or_else(PoisonError::into_inner);
    let stopped = Cell::new(false);
    let results = |end: &RunEnd| {
        let sums = sums(end, sources.skipped);
        // Not the measured stretch: a client hears only after its last pause that it has nothing left to ask. But a run
        // whose last cycle begins after its end has taken its time.
        let ended_early = end.interrupted || running().is_exhausted() || args.seconds < 0;
        let passed_ns = if ended_early {
            now_ns().saturating_sub(end.start_ns)
        } else {
            args.seconds as u64 * SECOND_NS
        };
        running().end(passed_ns, &end.totals, &sums);
        stopped.set(end.interrupted);
        let options = args.options(clients, ran_for(args, end, passed_ns));
        JobResults::of(FbenchResult::new(&options, &end.totals, &sums))
    };
    let finished =
        execute(&scenario, prepared, &output, &mut |second| running().second(second), &results)?;
    if !write_results(&output, &finished, &[FbenchArgs::FORMS])? {
        let left = clients - running().dots;
        print_out(&stopped_lines(left, stopped.get()))?;
        print_out(&printed(&finished, output.verbose))?;
    }
    Ok(code(&finished))
}

fn printed(finished: &Finished, verbose: bool) -> String {
    let own = own_block(&finished.record, finished.folder.as_deref(), &style(verbose));
    let result = finished.record.job_results.fbench();
    format!("{}{own}", result.map(summary).unwrap_or_default())
}

fn bracketed(host: &str) -> String {
    if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() }
}

fn prepared(
    args: &FbenchArgs,
    scenario: &Scenario,
    pairs: &[Authority],
    sources: &Sources,
    forms: Vec<Form>,
) -> Result<Prepared> {
    let urls: Vec<Url> = pairs
        .iter()
        .map(|authority| Url { authority: authority.clone(), target: "/".to_owned() })
        .collect();
    let tls = tls_of(scenario, &urls)?;
    let targets = pairs.iter().map(|pair| Target::resolve(&pair.host, pair.port)).collect();
    let plan = plan_of(scenario, targets, tls, 1);
    let troubles = Troubles::default();
    let sessions = sources.sessions(args.threads, forms, args.limit, &args.append, &troubles)?;
    Ok(Prepared {
        plan,
        sessions,
        class_names: vec!["all".to_owned()],
        distinct_requests: Some(sources.records),
        troubles,
    })
}

/// `-s` as given, or the whole seconds that passed when the run was stopped or had no end.
fn ran_for(args: &FbenchArgs, end: &RunEnd, passed_ns: u64) -> i64 {
    if end.interrupted || args.seconds < 0 { (passed_ns / SECOND_NS) as i64 } else { args.seconds }
}

fn sums(end: &RunEnd, skipped: u64) -> FbenchSums {
    FbenchSums { clients_ended: end.clients_measured, elapsed_ns: end.client_elapsed_ns, skipped }
}

/// Returns the command if the program was started through a link with the original's name.
#[must_use]
pub fn link_command(program: &str) -> Option<&'static str> {
    match program {
        "vespa-fbench" => Some("fbench"),
        "vespa-fbench-split-file" => Some("split-file"),
        "vespa-fbench-result-filter.pl" => Some("result-filter"),
        _ => None,
    }
}

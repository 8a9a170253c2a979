//! `plimsoll serve`: the embedded targets, each a process of its own.

use super::common::ArrivalsFlag;
use super::serve_engine::{self, ClusterArgs, DatabaseArgs, NodeArgs};
use super::serve_rank::{self, RankArgs};
use super::serve_voter::{self, VoterArgs};
use crate::engines::Engine;
use crate::execute::print_out;
use crate::exit;
use crate::temporary::temporary_folder;
use crate::usage::usage;
use anyhow::Result;
use clap::{Args, Subcommand};
use plimsoll_core::units::Span;
use plimsoll_targets::null::{self, NullConfig};
use plimsoll_targets::queue::{
    self, Arrivals, QueueConfig, ServiceTime, Stall, StationConfig, truth_or_reason,
};
use plimsoll_targets::search::{self, Durability, FuzzyMode, SearchConfig};
use plimsoll_targets::stop::Stop;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  The fastest honest reply, to calibrate the generator:
    plimsoll serve null --port 8080
  Four servers, exponential service of 5 ms, and what the mathematics says at 600 requests a second:
    plimsoll serve queue --port 8080 --servers 4 --service exponential:5ms --rate 600
  A search engine that keeps its documents:
    plimsoll serve search --port 8080 --data /tmp/plimsoll-data
  The same behind four ports, 8080 to 8083, to read it out in parallel:
    plimsoll serve search --port 8080 --data /tmp/plimsoll-data --containers 4
  A ranking server for two processors; frames and HTTP on one port:
    plimsoll serve rank --port 11222
  A voter database that keeps what it acknowledged; VoltDB's protocol:
    plimsoll serve voter --port 21212 --data /tmp/plimsoll-votes --durability sync
  The real OpenSearch with a heap of 1 GiB, its data kept:
    plimsoll serve opensearch --port 9200 --heap 1GiB --data /var/tmp/opensearch
  The real PostgreSQL in a temporary folder:
    plimsoll serve postgresql --port 5433
  The real VoltDB with the schema of voter, four partitions:
    plimsoll serve voltdb --port 21212 --partitions 4

Each prints one line when it answers, such as 'ready null http://127.0.0.1:8080'.
Ctrl-C stops it in order.";

/// Serve a target: null, queue, search, rank or voter, or a real engine.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand, Debug)]
enum Kind {
    /// The fastest honest HTTP reply.
    Null(NullArgs),
    /// A station with servers, a queue and a service time, whose truth is known.
    Queue(QueueArgs),
    /// A real search engine that speaks Vespa's query and document APIs and Elasticsearch's.
    Search(SearchArgs),
    /// FeedSim's leaf server, written afresh: eight stages a request, by frames and by HTTP.
    Rank(RankArgs),
    /// A partitioned database that speaks VoltDB's protocol and runs the voter application.
    Voter(VoterArgs),
    /// The real OpenSearch, one node on loopback; first: plimsoll install opensearch.
    Opensearch(NodeArgs),
    /// The real Elasticsearch, one node on loopback; first: plimsoll install elasticsearch.
    Elasticsearch(NodeArgs),
    /// The real PostgreSQL, a private cluster on loopback, from the distribution's package.
    Postgresql(ClusterArgs),
    /// The real VoltDB, one node on loopback with the schema of voter; first: plimsoll install voltdb.
    Voltdb(DatabaseArgs),
}

#[derive(Args, Debug)]
pub struct ListenArgs {
    /// Port; 0 takes any free one and prints it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Address to listen on; anything but loopback opens the target to the network.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: String,
    /// Also write the ready line to this file.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct NullArgs {
    #[command(flatten)]
    listen: ListenArgs,
    /// Bytes of body in each reply.
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    body_bytes: usize,
    /// Threads.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Never sleep: takes a whole core a thread.
    #[arg(long)]
    busy_poll: bool,
}

#[derive(Args, Debug)]
struct QueueArgs {
    #[command(flatten)]
    listen: ListenArgs,
    /// Servers; 0 means that nobody ever waits for one.
    #[arg(long, value_name = "N", default_value_t = 1)]
    servers: u32,
    /// Service time: fixed:5ms, exponential:5ms, lognormal:MEDIAN,SIGMA, gamma:SHAPE,MEAN, bimodal:SHARE,A,B.
    #[arg(long, value_name = "DISTRIBUTION", default_value = "exponential:5ms")]
    service: ServiceTime,
    /// Fixed delay added to each reply; it occupies no server.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    delay: Span,
    /// Length of regular stalls; goes with --stall-every.
    #[arg(long, value_name = "TIME")]
    stall: Option<Span>,
    /// From the end of one stall to the end of the next; the first begins this minus --stall after the first
    /// request.
    #[arg(long, value_name = "TIME")]
    stall_every: Option<Span>,
    /// Every N-th request ends in status 503, after its service time like any other; 0: none.
    #[arg(long, value_name = "N", default_value_t = 0)]
    error_every: u64,
    /// Requests in the station above which an arrival is turned away at once.
    #[arg(long, value_name = "N")]
    cap: Option<u64>,
    /// Status of a request that is turned away: 429 or 503.
    #[arg(long, value_name = "CODE", default_value_t = 503)]
    reject_status: u16,
    /// Bytes of body in each reply.
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    body_bytes: usize,
    /// Seed of the service times.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print what the mathematics says at this rate, requests per second.
    #[arg(long, value_name = "PER_S")]
    rate: Option<f64>,
    /// The arrivals that --rate is about: poisson or uniform.
    #[arg(long, value_enum, value_name = "KIND", default_value = "poisson")]
    arrivals: ArrivalsFlag,
    /// Spin this long before a reply is due instead of sleeping, so that waking up does not add to the
    /// service time; 0s spares the CPU.
    #[arg(long, value_name = "TIME", default_value = "100us")]
    spin: Span,
}

#[derive(Args, Debug)]
struct SearchArgs {
    #[command(flatten)]
    listen: ListenArgs,
    /// Folder of documents and index, kept across restarts; without it a temporary one.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Pause between two commits of the index: until then a write cannot be found.
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    refresh: Span,
    /// Threads that run queries; 0 is one a processor.
    #[arg(long, value_name = "N", default_value_t = 0)]
    query_threads: usize,
    /// Vespa schema of a document type; repeat it for more types. Without any, the built-in type
    /// 'doc' is served.
    #[arg(long, value_name = "FILE")]
    schema: Vec<PathBuf>,
    /// Name of the content cluster.
    #[arg(long, value_name = "NAME", default_value = "plimsoll")]
    cluster: String,
    /// Ports over the same documents, --port and those after it: each with limits of its own, as the containers of
    /// a Vespa application.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    containers: u16,
    /// When a write is acknowledged: on the disk (sync), when it can be read and on the disk 100 ms later (async),
    /// or when it can be read and on the disk when the server stops (none).
    #[arg(long, value_enum, value_name = "WHEN", default_value = "sync")]
    durability: DurabilityFlag,
    /// Bits of the location that name a bucket: 8 are 256 buckets to visit, 16 are 65,536.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=32))]
    distribution_bits: u8,
    /// Document operations of a container that are under way at a time; further ones wait.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    operations: u32,
    /// Document operations of a container that wait; still further ones are answered with 429 at once.
    #[arg(long, value_name = "N", default_value_t = 256)]
    throttled: u32,
    /// How approximate words of Elasticsearch's queries are found: like Lucene, to 2 edits and by the 50 nearest
    /// words (index); to 4 edits by every word that is as near (automaton); or by reading the text itself, to any
    /// number of edits (scan).
    #[arg(long, value_enum, value_name = "MODE", default_value = "index")]
    fuzzy: FuzzyFlag,
    /// Threads that share one scan of the text, with --fuzzy scan.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    scan_threads: u16,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum FuzzyFlag {
    Index,
    Automaton,
    Scan,
}

impl From<FuzzyFlag> for FuzzyMode {
    fn from(flag: FuzzyFlag) -> Self {
        match flag {
            FuzzyFlag::Index => Self::Index,
            FuzzyFlag::Automaton => Self::Automaton,
            FuzzyFlag::Scan => Self::Scan,
        }
    }
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum DurabilityFlag {
    Sync,
    Async,
    None,
}

impl From<DurabilityFlag> for Durability {
    fn from(flag: DurabilityFlag) -> Self {
        match flag {
            DurabilityFlag::Sync => Self::Sync,
            DurabilityFlag::Async => Self::Async,
            DurabilityFlag::None => Self::None,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// A wrong configuration, or an address that cannot be bound.
pub fn run(args: &ServeArgs) -> Result<u8> {
    match &args.kind {
        Kind::Null(args) => serve_null(args),
        Kind::Queue(args) => serve_queue(args),
        Kind::Search(args) => serve_search(args),
        Kind::Rank(args) => serve_rank::run(args),
        Kind::Voter(args) => serve_voter::run(args),
        Kind::Opensearch(args) => serve_engine::run_node(Engine::OpenSearch, args),
        Kind::Elasticsearch(args) => serve_engine::run_node(Engine::Elasticsearch, args),
        Kind::Postgresql(args) => serve_engine::run_cluster(args),
        Kind::Voltdb(args) => serve_engine::run_database(args),
    }
}

fn serve_null(args: &NullArgs) -> Result<u8> {
    let config = NullConfig {
        body_bytes: args.body_bytes,
        threads: args.threads,
        busy_poll: args.busy_poll,
    };
    config.validate().map_err(|error| usage(error.to_string()))?;
    let (listener, stop) = listen(&args.listen)?;
    ready("null", &["http"], &listener, &args.listen)?;
    null::run(listener, config, stop)?;
    Ok(exit::FINE)
}

fn serve_queue(args: &QueueArgs) -> Result<u8> {
    let stall = match (args.stall, args.stall_every) {
        (Some(length), Some(period)) => Some(Stall { length_ns: length.ns, period_ns: period.ns }),
        (None, None) => None,
        _ => return Err(usage("--stall and --stall-every go together; give both")),
    };
    let config = QueueConfig {
        station: StationConfig {
            servers: args.servers,
            service: args.service,
            delay_ns: args.delay.ns,
            stall,
            error_every: args.error_every,
            in_flight_cap: args.cap,
            seed: args.seed,
            ..StationConfig::default()
        },
        body_bytes: args.body_bytes,
        reject_status: args.reject_status,
        spin_ns: args.spin.ns,
        ..QueueConfig::default()
    };
    config.validate().map_err(|error| usage(error.to_string()))?;
    if let Some(rate) = args.rate {
        if !(rate.is_finite() && rate > 0.0) {
            return Err(usage(format!("--rate {rate}: write a number above 0, such as 600")));
        }
        let arrivals = match args.arrivals {
            ArrivalsFlag::Poisson => Arrivals::Poisson,
            ArrivalsFlag::Uniform => Arrivals::Uniform,
        };
        print_out(&truth_text(&config, rate, arrivals))?;
    }
    let (listener, stop) = listen(&args.listen)?;
    ready("queue", &["http"], &listener, &args.listen)?;
    queue::run(listener, config, stop)?;
    Ok(exit::FINE)
}

fn truth_text(config: &QueueConfig, rate: f64, arrivals: Arrivals) -> String {
    match truth_or_reason(config, rate, arrivals) {
        Err(reason) => format!("truth at {rate}/s: no closed form: {reason}\n"),
        Ok(truth) => {
            let shown = |name: &str, ms: Option<f64>| {
                ms.map_or(String::new(), |ms| format!("  {name} {ms:.3} ms"))
            };
            format!(
                "truth at {rate}/s: {} ({})  busy {:.1} %{}{}{}{}{}\n",
                truth.model,
                truth.source,
                truth.utilization * 100.0,
                shown("mean", truth.mean_ms),
                shown("p50", truth.p50_ms),
                shown("p90", truth.p90_ms),
                shown("p95", truth.p95_ms),
                shown("p99", truth.p99_ms),
            )
        }
    }
}

fn serve_search(args: &SearchArgs) -> Result<u8> {
    // It goes when the server has ended.
    let temporary;
    let data_dir = match &args.data {
        Some(folder) => folder.as_path(),
        None => {
            temporary = temporary_folder("search")?;
            temporary.path()
        }
    };
    let mut config = SearchConfig::new(data_dir);
    config.refresh_interval = Duration::from_nanos(args.refresh.ns);
    config.query_threads = args.query_threads;
    config.schemas.clone_from(&args.schema);
    config.cluster.clone_from(&args.cluster);
    config.durability = args.durability.into();
    config.distribution_bits = args.distribution_bits;
    config.operations_under_way = args.operations as usize;
    config.max_throttled = args.throttled as usize;
    config.fuzzy = args.fuzzy.into();
    config.scan_threads = usize::from(args.scan_threads);
    let (first, stop) = listen(&args.listen)?;
    let mut listeners = vec![first];
    for number in 1..args.containers {
        listeners.push(next_port(&args.listen, &listeners[0], number)?);
    }
    let server =
        search::Server::open(config, listeners.len()).map_err(|error| usage(error.to_string()))?;
    let addresses = listeners.iter().map(TcpListener::local_addr);
    ready_at("search", &["http"], &addresses.collect::<Result<Vec<_>, _>>()?, &args.listen)?;
    server.serve(listeners, &stop)?;
    Ok(exit::FINE)
}

/// Binds the port of a further container: the one that many after the first, or any free one when the first was
/// any.
fn next_port(args: &ListenArgs, first: &TcpListener, number: u16) -> Result<TcpListener> {
    let port = if args.port == 0 { Some(0) } else { args.port.checked_add(number) };
    let address = first.local_addr()?;
    port.ok_or_else(|| usage("--containers goes past port 65535; take a lower --port")).and_then(
        |port| {
            bind((address.ip(), port)).map_err(|error| {
                usage(format!(
                    "cannot listen on {} port {port} for container {number}: {error}; take another \
                     --port (0 takes any free ones)",
                    address.ip()
                ))
            })
        },
    )
}

/// Connections that may wait to be accepted; the kernel takes `net.core.somaxconn` where that is less.
const ACCEPT_QUEUE: i32 = 4096;

/// Binds with room for thousands of connections that come at once: in the standard library's queue of 128 the others'
/// first packets are dropped, and sent again after a second.
fn bind(address: impl ToSocketAddrs) -> std::io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    rustix::net::listen(&listener, ACCEPT_QUEUE)?;
    Ok(listener)
}

/// Binds a second port on the same address.
pub fn beside(args: &ListenArgs, port: u16, flag: &str) -> Result<TcpListener> {
    let bare = args.host.trim_start_matches('[').trim_end_matches(']');
    bind((bare, port)).map_err(|error| {
        usage(format!("cannot listen on {} port {port}: {error}; take another {flag}", args.host))
    })
}

/// Binds, and stops on SIGINT and SIGTERM.
pub fn listen(args: &ListenArgs) -> Result<(TcpListener, Stop)> {
    let bare = args.host.trim_start_matches('[').trim_end_matches(']');
    let listener = bind((bare, args.port)).map_err(|error| {
        usage(format!(
            "cannot listen on {} port {}: {error}; take another --port (0 takes any free one)",
            args.host, args.port
        ))
    })?;
    let stop = Stop::new()?;
    let asked = stop.clone();
    let mut signals = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
    ])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if signals.forever().next().is_some() {
            asked.request();
        }
    })?;
    Ok((listener, stop))
}

/// The listener's queue answers from here on, so that "ready" is true.
pub fn ready(
    kind: &str,
    schemes: &[&str],
    listener: &TcpListener,
    args: &ListenArgs,
) -> Result<()> {
    ready_at(kind, schemes, &[listener.local_addr()?], args)
}

/// The same for several listeners.
fn ready_at(
    kind: &str,
    schemes: &[&str],
    addresses: &[SocketAddr],
    args: &ListenArgs,
) -> Result<()> {
    let named = |address: &SocketAddr| {
        let urls = schemes.iter().map(|scheme| format!("{scheme}://{address}"));
        urls.collect::<Vec<_>>().join(" ")
    };
    let addresses: Vec<String> = addresses.iter().map(named).collect();
    ready_line(kind, &addresses, args)
}

/// Says that a target answers at these addresses.
pub fn ready_line(kind: &str, urls: &[String], args: &ListenArgs) -> Result<()> {
    let line = format!("ready {kind} {}\n", urls.join(" "));
    if let Some(path) = &args.ready_file {
        std::fs::write(path, &line).map_err(|error| {
            usage(format!("--ready-file {}: {error}; check the path", path.display()))
        })?;
    }
    print_out(&line)
}

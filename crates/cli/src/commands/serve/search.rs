//! `plimsoll serve search`: the flags of the search server.

use super::listening::{ListenArgs, bind, listen, ready_at};
use anyhow::Result;
use clap::Args;
#[cfg(feature = "vespa")]
use plimsoll_core::units::Span;
#[cfg(feature = "elastic")]
use plimsoll_elastic::FuzzyMode;
#[cfg(feature = "elastic")]
use plimsoll_elastic::{Elastic, ElasticConfig};
use plimsoll_front::{Api, Durability, FrontConfig, Pools};
use plimsoll_job::exit;
use plimsoll_job::temporary::temporary_folder;
use plimsoll_job::usage::usage;
#[cfg(feature = "vespa")]
use plimsoll_vespa::{Vespa, VespaConfig};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(feature = "vespa")]
use std::time::Duration;

/// Largest value of `--operations` and of `--throttled`: the queues of a container are allocated in full at the start.
#[cfg(feature = "vespa")]
const OPERATIONS_MAX: i64 = 65_536;

#[derive(Args, Debug)]
pub struct SearchArgs {
    #[command(flatten)]
    listen: ListenArgs,
    /// Folder of the data [default: a temporary one]
    ///
    /// Documents and index; they are kept across restarts.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[cfg(feature = "vespa")]
    /// Pause between two commits of the index
    ///
    /// A write can be found after the next commit.
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    refresh: Span,
    /// Threads that run queries; 0: one per processor
    #[arg(long, value_name = "N", default_value_t = 0)]
    query_threads: usize,
    #[cfg(feature = "vespa")]
    /// Vespa schema of a document type [default: the type doc]
    ///
    /// May be repeated. The type doc is built in.
    #[arg(long, value_name = "FILE")]
    schema: Vec<PathBuf>,
    #[cfg(feature = "vespa")]
    /// Name of the content cluster
    #[arg(long, value_name = "NAME", default_value = "plimsoll")]
    cluster: String,
    /// Number of ports over the same documents
    ///
    /// --port and the following ones, each with its own limits, as the containers of a Vespa application.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    containers: u16,
    /// Acknowledgement of a write: sync, async or none
    ///
    /// sync: once on the disk; async: once readable, and on the disk 100 ms later; none: once readable, and on the disk up to
    /// ten seconds later, or when the server stops.
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "WHEN",
        default_value = "sync"
    )]
    durability: DurabilityFlag,
    #[cfg(feature = "vespa")]
    /// Bits of the location that name a bucket
    ///
    /// 8 are 256 buckets to visit, 16 are 65,536.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=32))]
    distribution_bits: u8,
    #[cfg(feature = "vespa")]
    /// Document operations in flight per container
    ///
    /// Further operations wait.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=OPERATIONS_MAX))]
    operations: u32,
    #[cfg(feature = "vespa")]
    /// Document operations that wait, per container
    ///
    /// Further operations get 429 at once.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(0..=OPERATIONS_MAX))]
    throttled: u32,
    #[cfg(feature = "elastic")]
    /// Fuzzy search: index, automaton or scan
    ///
    /// Of Elasticsearch's queries. index: as in Lucene, up to 2 edits and the 50 nearest words; automaton: up to 4 edits and
    /// every word within the distance; scan: reads the text itself, any number of edits.
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "MODE",
        default_value = "index"
    )]
    fuzzy: FuzzyFlag,
    #[cfg(feature = "elastic")]
    /// Threads that share one scan of the text
    ///
    /// With --fuzzy scan.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    scan_threads: u16,
}

#[cfg(feature = "elastic")]
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum FuzzyFlag {
    Index,
    Automaton,
    Scan,
}

#[cfg(feature = "elastic")]
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
enum DurabilityFlag {
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
pub fn run(args: &SearchArgs) -> Result<u8> {
    // It goes when the server has ended.
    let temporary;
    let data_dir = match &args.data {
        Some(folder) => folder.as_path(),
        None => {
            temporary = temporary_folder("search")?;
            temporary.path()
        }
    };
    let (first, stop) = listen(&args.listen)?;
    let mut listeners = vec![first];
    for number in 1..args.containers {
        listeners.push(next_port(&args.listen, &listeners[0], number)?);
    }
    let front = args.front();
    let pools = Pools::start(&front, listeners.len())?;
    let apis = args.open(data_dir, &front, &pools, listeners.len())?;
    let addresses = listeners.iter().map(TcpListener::local_addr);
    ready_at("search", &["http"], &addresses.collect::<Result<Vec<_>, _>>()?, &args.listen)?;
    plimsoll_front::run(listeners, &front, &pools, apis, &stop)?;
    Ok(exit::FINE)
}

impl SearchArgs {
    fn front(&self) -> FrontConfig {
        FrontConfig {
            query_threads: self.query_threads,
            #[cfg(feature = "vespa")]
            read_queue: (self.operations + self.throttled) as usize,
            ..FrontConfig::default()
        }
    }

    /// Opens the data of all APIs of this build. Vespa's is asked first for a path.
    #[cfg_attr(not(feature = "vespa"), expect(unused_variables))]
    fn open(
        &self,
        data_dir: &Path,
        front: &FrontConfig,
        pools: &Pools,
        containers: usize,
    ) -> Result<Vec<Arc<dyn Api>>> {
        let mut apis: Vec<Arc<dyn Api>> = Vec::new();
        #[cfg(feature = "vespa")]
        {
            let vespa = Vespa::open(self.vespa(data_dir, front), containers, pools);
            apis.push(Arc::new(vespa.map_err(|error| usage(error.to_string()))?));
        }
        #[cfg(feature = "elastic")]
        {
            let elastic = Elastic::open(&self.elastic(data_dir), pools);
            apis.push(Arc::new(elastic.map_err(|error| usage(error.to_string()))?));
        }
        Ok(apis)
    }

    #[cfg(feature = "vespa")]
    fn vespa(&self, data_dir: &Path, front: &FrontConfig) -> VespaConfig {
        VespaConfig {
            refresh_interval: Duration::from_nanos(self.refresh.ns),
            schemas: self.schema.clone(),
            cluster: self.cluster.clone(),
            durability: self.durability.into(),
            distribution_bits: self.distribution_bits,
            operations_under_way: self.operations as usize,
            max_throttled: self.throttled as usize,
            front: front.clone(),
            ..VespaConfig::new(data_dir)
        }
    }

    #[cfg(feature = "elastic")]
    fn elastic(&self, data_dir: &Path) -> ElasticConfig {
        ElasticConfig {
            durability: self.durability.into(),
            fuzzy: self.fuzzy.into(),
            scan_threads: usize::from(self.scan_threads),
            // Vespa's command line looks for them in the reply of `/`.
            #[cfg(feature = "vespa")]
            root: plimsoll_vespa::HANDLERS,
            ..ElasticConfig::new(data_dir)
        }
    }
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

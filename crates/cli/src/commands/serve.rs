//! `plimsoll serve`: servers under test, each a process of its own. Which of them a build has, its features say.

#[cfg(not(all(
    feature = "stations",
    feature = "ranker",
    any(feature = "vespa", feature = "elastic"),
    feature = "voterdb"
)))]
mod absent;
mod engine;
#[cfg_attr(not(feature = "servers"), allow(dead_code, reason = "each server takes its part"))]
mod examples;
#[cfg(any(
    feature = "stations",
    feature = "ranker",
    feature = "vespa",
    feature = "elastic",
    feature = "voterdb"
))]
#[cfg_attr(not(feature = "servers"), allow(dead_code, reason = "each server takes its part"))]
mod listening;
mod nats;
#[cfg(feature = "ranker")]
mod rank;
#[cfg(any(feature = "vespa", feature = "elastic"))]
mod search;
#[cfg(feature = "stations")]
mod stations;
#[cfg(feature = "voterdb")]
mod voter;

use anyhow::Result;
use clap::{Args, Subcommand};
use engine::{ClusterArgs, DatabaseArgs, NodeArgs};
use plimsoll_catalogue::engines::Engine;
use plimsoll_job::job::{Job, Program};

const EXAMPLES: &str = "\
Examples:
  A minimal server, to find the generator's own limit:
    plimsoll serve null --port 8080
  Four servers, exponential service of 5 ms, and predicted response times at 600 requests/s:
    plimsoll serve queue --port 8080 --servers 4 --service exponential:5ms --rate 600
  A search engine that keeps its documents:
    plimsoll serve search --port 8080 --data /tmp/plimsoll-data
  The same behind four ports, 8080 to 8083, to read it out in parallel:
    plimsoll serve search --port 8080 --data /tmp/plimsoll-data --containers 4
  A ranking server for two processors; frames and HTTP on one port:
    plimsoll serve rank --port 11222
  A voter database that keeps acknowledged votes; VoltDB's protocol:
    plimsoll serve voter --port 21212 --data /tmp/plimsoll-votes --durability sync
  The real OpenSearch with a heap of 1 GiB, its data kept:
    plimsoll serve opensearch --port 9200 --heap 1GiB --data /var/tmp/opensearch
  The real PostgreSQL in a temporary folder:
    plimsoll serve postgresql --port 5433
  The real VoltDB with the schema of voter, four partitions:
    plimsoll serve voltdb --port 21212 --partitions 4
  The server of the message bus between machines:
    plimsoll serve nats --port 4222

Each prints one line when it is ready, such as 'ready null http://127.0.0.1:8080'.
Ctrl-C stops it cleanly.";

/// Serve a target: null, queue, search, rank, voter or an engine
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand, Debug)]
#[cfg_attr(not(feature = "servers"), allow(clippy::large_enum_variant))]
enum Kind {
    /// Serve a minimal HTTP server, to find the generator's own limit
    #[cfg(feature = "stations")]
    #[command(after_help = examples::NULL)]
    Null(stations::NullArgs),
    /// Not in this build, which lacks the feature `stations`.
    #[cfg(not(feature = "stations"))]
    Null(absent::AbsentArgs),
    /// Serve a queueing model (M/M/k) with known response times
    #[cfg(feature = "stations")]
    #[command(after_help = examples::QUEUE)]
    Queue(stations::QueueArgs),
    /// Not in this build, which lacks the feature `stations`.
    #[cfg(not(feature = "stations"))]
    Queue(absent::AbsentArgs),
    /// Serve a search engine with Vespa's and Elasticsearch's APIs
    #[cfg(any(feature = "vespa", feature = "elastic"))]
    #[command(after_help = examples::SEARCH)]
    Search(search::SearchArgs),
    /// Not in this build, which lacks the features `vespa` and `elastic`.
    #[cfg(not(any(feature = "vespa", feature = "elastic")))]
    Search(absent::AbsentArgs),
    /// Serve FeedSim's leaf server, eight stages per request
    #[cfg(feature = "ranker")]
    #[command(after_help = examples::RANK)]
    Rank(rank::RankArgs),
    /// Not in this build, which lacks the feature `ranker`.
    #[cfg(not(feature = "ranker"))]
    Rank(absent::AbsentArgs),
    /// Serve a partitioned database with VoltDB's protocol
    #[cfg(feature = "voterdb")]
    #[command(after_help = examples::VOTER)]
    Voter(voter::VoterArgs),
    /// Not in this build, which lacks the feature `voterdb`.
    #[cfg(not(feature = "voterdb"))]
    Voter(absent::AbsentArgs),
    /// Serve the real OpenSearch (plimsoll install opensearch)
    #[command(after_help = examples::OPENSEARCH)]
    Opensearch(NodeArgs),
    /// Serve the real Elasticsearch (plimsoll install elasticsearch)
    #[command(after_help = examples::ELASTICSEARCH)]
    Elasticsearch(NodeArgs),
    /// Serve the real PostgreSQL, from the distribution's package
    #[command(after_help = examples::POSTGRESQL)]
    Postgresql(ClusterArgs),
    /// Serve the real VoltDB (plimsoll install voltdb)
    #[command(after_help = examples::VOLTDB)]
    Voltdb(DatabaseArgs),
    /// Serve the NATS server of the message bus (plimsoll install nats)
    #[command(after_help = examples::NATS)]
    Nats(nats::NatsArgs),
}

impl Job for ServeArgs {
    const NAME: &'static str = "serve";

    fn run(&self, _program: &Program) -> Result<u8> {
        run(self)
    }
}

/// Runs the command.
///
/// # Errors
/// A wrong configuration, an address that cannot be bound, or a server that this build lacks.
fn run(args: &ServeArgs) -> Result<u8> {
    match &args.kind {
        #[cfg(feature = "stations")]
        Kind::Null(args) => stations::serve_null(args),
        #[cfg(not(feature = "stations"))]
        Kind::Null(_) => Err(absent::refusal("null", "stations")),
        #[cfg(feature = "stations")]
        Kind::Queue(args) => stations::serve_queue(args),
        #[cfg(not(feature = "stations"))]
        Kind::Queue(_) => Err(absent::refusal("queue", "stations")),
        #[cfg(any(feature = "vespa", feature = "elastic"))]
        Kind::Search(args) => search::run(args),
        #[cfg(not(any(feature = "vespa", feature = "elastic")))]
        Kind::Search(_) => Err(absent::refusal("search", "vespa,elastic")),
        #[cfg(feature = "ranker")]
        Kind::Rank(args) => rank::run(args),
        #[cfg(not(feature = "ranker"))]
        Kind::Rank(_) => Err(absent::refusal("rank", "ranker")),
        #[cfg(feature = "voterdb")]
        Kind::Voter(args) => voter::run(args),
        #[cfg(not(feature = "voterdb"))]
        Kind::Voter(_) => Err(absent::refusal("voter", "voterdb")),
        Kind::Opensearch(args) => engine::run_node(Engine::OpenSearch, args),
        Kind::Elasticsearch(args) => engine::run_node(Engine::Elasticsearch, args),
        Kind::Postgresql(args) => engine::run_cluster(args),
        Kind::Voltdb(args) => engine::run_database(args),
        Kind::Nats(args) => nats::run(args),
    }
}

/// Checks the flags of a ranking server before one is started with them.
///
/// # Errors
/// The error of the server itself, or its absence.
#[cfg(feature = "ranker")]
pub fn check_rank(words: &[String]) -> Result<()> {
    rank::check(words)
}

/// Says that there is no ranking server to be started.
///
/// # Errors
/// Always.
#[cfg(not(feature = "ranker"))]
pub fn check_rank(_words: &[String]) -> Result<()> {
    Err(absent::refusal("rank", "ranker"))
}

//! `plimsoll serve rank`: the ranking server's flags.

use super::listening::{ListenArgs, listen, ready};
use anyhow::Result;
use clap::{Args, Parser, ValueEnum};
use plimsoll_core::units::{Size, Span};
use plimsoll_job::exit;
use plimsoll_job::usage::usage;
use plimsoll_ranker::{RankConfig, RankError, ReplySize, Server};

/// Numbers that the flags start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// Two processors, about 60 MB, about 13 ms of CPU and 20 ms of wait per request.
    Mini,
    /// FeedSim's own: its sizes, and its formulas for threads on this machine.
    Feedsim,
}

#[derive(Args, Debug)]
pub struct RankArgs {
    #[command(flatten)]
    listen: ListenArgs,
    /// Set of defaults: mini or feedsim
    ///
    /// Other flags override it. mini: two processors, about 60 MB, about 13 ms of CPU and 20 ms of wait per request; feedsim:
    /// FeedSim's own sizes, and its formulas for threads on this machine.
    #[arg(long, value_enum, hide_possible_values = true, default_value = "mini")]
    preset: Preset,
    /// Seed of all random choices [default: 1]
    ///
    /// Of the data, and of each request.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Size of the graph: 2^N nodes
    ///
    /// A request computes the same share of it.
    #[arg(long, value_name = "N")]
    scale: Option<u32>,
    /// Edges per node, on average
    #[arg(long, value_name = "N")]
    degree: Option<u32>,
    /// Nodes whose PageRank a request computes
    #[arg(long, value_name = "N")]
    subset: Option<usize>,
    /// Threads that take requests through their stages
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Threads, and tasks of a request, for PageRank
    #[arg(long, value_name = "N")]
    cpu_threads: Option<usize>,
    /// Threads, and tasks of a request, that build stories
    #[arg(long, value_name = "N")]
    srv_io_threads: Option<usize>,
    /// Threads that chase pointers
    #[arg(long, value_name = "N")]
    srv_cpu_threads: Option<usize>,
    /// Threads that read requests and write replies
    #[arg(long, value_name = "N")]
    net_threads: Option<usize>,
    /// Functions in the instruction walk, at least
    ///
    /// Further ones are drawn in proportion.
    #[arg(long, value_name = "N")]
    walk_calls: Option<u64>,
    /// Wait of a request off the CPU
    #[arg(long, value_name = "TIME")]
    wait: Option<Span>,
    /// Let the wait hold its worker
    ///
    /// It does in the original.
    #[arg(long, value_name = "YES", action = clap::ArgAction::Set)]
    wait_holds_worker: Option<bool>,
    /// Random letters that are compressed
    #[arg(long, value_name = "SIZE")]
    compress: Option<Size>,
    /// Stories that are built and serialised
    ///
    /// Half of them are compressed.
    #[arg(long, value_name = "N")]
    stories: Option<usize>,
    /// Objects in each story
    #[arg(long, value_name = "N")]
    objects: Option<usize>,
    /// Stories in the reply
    ///
    /// The payload of the reply is their beginning.
    #[arg(long, value_name = "N")]
    reply_stories: Option<usize>,
    /// Size of replies, such as fixed:16310
    ///
    /// Or a distribution, such as cdf:0.5=4kB,0.9=16kB,1=64kB.
    #[arg(long, value_name = "SIZES")]
    reply: Option<ReplySize>,
    /// Entries of 8 bytes in the pointer chase
    ///
    /// They form a cycle.
    #[arg(long, value_name = "N")]
    chase_entries: Option<usize>,
    /// Steps of the pointer chase
    #[arg(long, value_name = "N")]
    chase_steps: Option<u64>,
    /// Largest number of requests in the server
    ///
    /// Further requests are rejected at once.
    #[arg(long, value_name = "N")]
    in_flight_max: Option<usize>,
    /// Longest payload of a request
    ///
    /// A longer one closes its connection.
    #[arg(long, value_name = "SIZE")]
    request_max: Option<Size>,
}

/// Runs the command.
///
/// # Errors
/// A wrong configuration, or an address that cannot be bound.
pub fn run(args: &RankArgs) -> Result<u8> {
    let config = args.config();
    config.validate().map_err(|error| usage(error.to_string()))?;
    let (listener, stop) = listen(&args.listen)?;
    let server = Server::open(config).map_err(|error| match error {
        RankError::System(error) => anyhow::Error::from(error),
        error => usage(error.to_string()),
    })?;
    ready("rank", &["rank", "http"], &listener, &args.listen)?;
    server.serve(listener, &stop)?;
    Ok(exit::FINE)
}

/// The flags by themselves.
#[derive(Parser, Debug)]
struct Alone {
    #[command(flatten)]
    args: RankArgs,
}

/// Checks the flags of a server before one is started with them.
///
/// # Errors
/// The error of the server itself.
pub fn check(words: &[String]) -> Result<()> {
    let words = std::iter::once("rank").chain(words.iter().map(String::as_str));
    let Ok(Alone { args }) = Alone::try_parse_from(words) else { return Ok(()) };
    args.config().validate().map_err(|error| usage(error.to_string()))
}

impl RankArgs {
    fn config(&self) -> RankConfig {
        let mut config = match self.preset {
            Preset::Mini => RankConfig::mini(),
            Preset::Feedsim => {
                let processors = std::thread::available_parallelism().map_or(1, usize::from);
                RankConfig::feedsim(processors, has_smt())
            }
        };
        if let Some(scale) = self.scale {
            config = config.with_scale(scale);
        }
        if let Some(calls) = self.walk_calls {
            let before = config.walk_calls.max(1) as f64;
            config.walk_gamma_scale *= calls as f64 / before;
            config.walk_calls = calls;
        }
        set(&mut config.seed, self.seed);
        set(&mut config.degree, self.degree);
        set(&mut config.subset_nodes, self.subset);
        set(&mut config.threads.workers, self.threads);
        set(&mut config.threads.cpu, self.cpu_threads);
        set(&mut config.threads.srv_io, self.srv_io_threads);
        set(&mut config.threads.srv_cpu, self.srv_cpu_threads);
        set(&mut config.threads.net, self.net_threads);
        set(&mut config.wait_ns, self.wait.map(|wait| wait.ns));
        set(&mut config.wait_holds_worker, self.wait_holds_worker);
        set(&mut config.compress_bytes, self.compress.map(|size| size.bytes as usize));
        set(&mut config.stories, self.stories);
        set(&mut config.objects, self.objects);
        if self.preset == Preset::Feedsim {
            config.reply_stories = (config.stories / config.threads.srv_io.max(1)).max(1);
        }
        set(&mut config.reply_stories, self.reply_stories);
        set(&mut config.reply_bytes, self.reply.clone());
        set(&mut config.chase_entries, self.chase_entries);
        set(&mut config.chase_steps, self.chase_steps);
        set(&mut config.in_flight_max, self.in_flight_max);
        let request_max = self.request_max.map(|size| u32::try_from(size.bytes));
        set(&mut config.request_bytes_max, request_max.map(|bytes| bytes.unwrap_or(u32::MAX)));
        config
    }
}

fn set<T>(value: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *value = given;
    }
}

/// Returns true if the machine's processors share cores.
fn has_smt() -> bool {
    let active = std::fs::read_to_string("/sys/devices/system/cpu/smt/active");
    active.is_ok_and(|text| text.trim() == "1")
}
